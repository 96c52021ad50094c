// SPDX-License-Identifier: Apache-2.0

// The matrix of a case in device memory, and the buffers shared by the subjects that take turns on
// it.
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

// Returns `values` rounded to the precision of `dtype`. Here and below, complex numbers have
// interleaved parts, as in Problem.
std::vector<double> RoundedTo(DType dtype, std::vector<double> values);
// Converts to packed elements of `dtype`, and back.
std::vector<std::byte> Packed(DType dtype, const std::vector<double>& values);
std::vector<double> Unpacked(DType dtype, const std::vector<std::byte>& bytes);

// Buffers for one order and type on one context, which must outlive it. Destroy it after
// Synchronize(), because freed buffers return to the device's pool.
class Workbench {
 public:
  // `values`: n x n, column-major.
  static absl::StatusOr<Workbench> Create(ExecutionContext& context, DType dtype, int64_t n,
                                          const std::vector<double>& values);

  ExecutionContext& context() const { return *context_; }
  DType dtype() const { return dtype_; }
  int64_t n() const { return n_; }
  size_t matrix_bytes() const { return static_cast<size_t>(n_) * n_ * SizeOf(dtype_); }

  // Returns a separate copy of the matrix.
  absl::StatusOr<Buffer> Copy() const;
  // Replaces the matrix by another of the same order.
  absl::Status Assign(const std::vector<double>& values);

  // Buffers that subjects overwrite in turns. Reset() restores them.
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
