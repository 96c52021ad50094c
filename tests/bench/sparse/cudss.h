// SPDX-License-Identifier: Apache-2.0

// NVIDIA's cuDSS, for comparison with sparse LU on a GPU. Uses the binding of the method `cudss`,
// but the memory and the threading layer of cuDSS.
#ifndef CROUT_TESTS_BENCH_SPARSE_CUDSS_H_
#define CROUT_TESTS_BENCH_SPARSE_CUDSS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/cudss/library.h"
#include "kernels/cuda/cudss/system.h"
#include "kernels/sparse_view.h"
#include "tests/bench/irregular_batches/gpu_irr_bench.h"

namespace crout {

// A system in the GPU's memory, solved by LU of a general matrix without refinement. Each call
// waits for the GPU. Errors are those of cuDSS, or FAILED_PRECONDITION without a successful
// Analyze(). Not thread-safe.
class CudssSolver {
 public:
  // `a` is in float64 and in host memory. `b` has n rows and is column-major. `deterministic`
  // requests equal bits in each run, like those of our methods. This is not cuDSS's default, and
  // permits only one right-hand side at a time.
  CudssSolver(const cuda::CudssLibrary& library, const AnySparse& a, const std::vector<double>& b,
              bool deterministic);

  // Runs ordering and symbolic factorization with a new handle.
  absl::Status Analyze();
  absl::Status Factor();
  // Factors again and reuses the last factorization's choices, as for new values of the same
  // pattern.
  absl::Status Refactor();
  // Solve for the first column of b, or for all its columns.
  absl::Status SolveOne() { return Solve(1); }
  absl::Status SolveAll() { return Solve(columns_); }
  // Replaces the first column of b.
  void SetFirst(const std::vector<double>& b);
  // Returns the solutions, n rows, column-major.
  std::vector<double> X() const { return x_.Download(); }

  absl::StatusOr<cuda::CudssFindings> Findings();
  // Returns the library's estimate of its peak GPU memory.
  absl::StatusOr<size_t> DeviceBytes();

 private:
  // Returns FAILED_PRECONDITION without a successful Analyze().
  absl::Status CheckAnalyzed() const;
  absl::Status Solve(int64_t columns);
  cuda::CudssVectors Vectors(int64_t columns) const { return {b_.get(), x_.get(), columns}; }

  const cuda::CudssLibrary& library_;
  const int64_t n_;
  const int64_t nonzeros_;
  const int64_t columns_;  // number of columns of b
  const bool deterministic_;
  // A in compressed rows.
  DeviceArray<int64_t> row_start_;
  DeviceArray<int32_t> column_;
  DeviceArray<double> value_;
  DeviceArray<double> b_, x_;
  // Results of the last analysis.
  std::unique_ptr<cuda::CudssHandle> handle_;
  std::unique_ptr<cuda::CudssSystem> system_;
};

}  // namespace crout

#endif  // CROUT_TESTS_BENCH_SPARSE_CUDSS_H_
