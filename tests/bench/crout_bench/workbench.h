// The matrix of a case in device memory, with all that the peers which take turns on it share.
#ifndef CROUT_TESTS_BENCH_CROUT_BENCH_WORKBENCH_H_
#define CROUT_TESTS_BENCH_CROUT_BENCH_WORKBENCH_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "kernels/memory.h"

namespace crout::bench {

// `values` in `dtype`'s precision. Here and below complex numbers are their parts, as Problem has
// them.
std::vector<double> RoundedTo(DType dtype, std::vector<double> values);
// Packed elements of `dtype`, and back.
std::vector<std::byte> Packed(DType dtype, const std::vector<double>& values);
std::vector<double> Unpacked(DType dtype, const std::vector<std::byte>& bytes);

// One order and type on one context, which outlives it. Freed buffers go back to the device's pool:
// destroy it after Synchronize().
class Workbench {
 public:
  // `values`: n x n, column-major.
  static absl::StatusOr<Workbench> Create(ExecutionContext& context, DType dtype, int64_t n,
                                          const std::vector<double>& values);

  ExecutionContext& context() const { return *context_; }
  DType dtype() const { return dtype_; }
  int64_t n() const { return n_; }
  size_t matrix_bytes() const { return static_cast<size_t>(n_) * n_ * SizeOf(dtype_); }

  // A copy of the matrix of its own.
  absl::StatusOr<Buffer> Copy() const;
  // Another matrix of the same order.
  absl::Status Assign(const std::vector<double>& values);

  // What peers overwrite in turns: fresh after Reset().
  AnyMatrix lu() const { return {lu_.data(), dtype_, n_, n_, n_}; }
  int64_t* ipiv() const { return ipiv_.as<int64_t>(); }
  std::span<std::byte> workspace() const { return {workspace_.data(), workspace_.size()}; }
  absl::Status Reset();
  absl::Status ReserveWorkspace(size_t bytes);

 private:
  ExecutionContext* context_ = nullptr;
  DType dtype_ = DType::kFloat64;
  int64_t n_ = 0;
  Buffer original_;
  Buffer lu_;
  Buffer ipiv_;
  Buffer workspace_;
};

}  // namespace crout::bench

#endif  // CROUT_TESTS_BENCH_CROUT_BENCH_WORKBENCH_H_
