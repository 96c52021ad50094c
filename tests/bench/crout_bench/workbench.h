// SPDX-License-Identifier: Apache-2.0

// The matrix of a case in device memory, and the buffers that its subjects share.
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

// Returns `values` rounded to `dtype`. Here and below, float64 values of complex numbers are
// interleaved real and imaginary parts.
std::vector<double> RoundedTo(DType dtype, std::vector<double> values);
// Convert float64 values to packed elements of `dtype`, and back.
std::vector<std::byte> Packed(DType dtype, const std::vector<double>& values);
std::vector<double> Unpacked(DType dtype, const std::vector<std::byte>& bytes);

// A matrix and buffers for one order and type. The context must outlive the object. Destroy the
// object after Synchronize(), because destruction returns buffers to the device's pool. Not
// thread-safe.
class Workbench {
 public:
  // `values` is n x n, column-major. Returns the errors of allocations and copies.
  static absl::StatusOr<Workbench> Create(ExecutionContext& context, DType dtype, int64_t n,
                                          const std::vector<double>& values);

  ExecutionContext& context() const { return *context_; }
  DType dtype() const { return dtype_; }
  int64_t n() const { return n_; }
  size_t matrix_bytes() const { return static_cast<size_t>(n_) * n_ * SizeOf(dtype_); }

  // Returns a copy of the matrix in a new buffer.
  absl::StatusOr<Buffer> Copy() const;
  // Replaces the matrix by `values`, n x n. Does not change lu().
  absl::Status Assign(const std::vector<double>& values);

  // Buffers that subjects overwrite in turns. Reset() copies the matrix to lu().
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
