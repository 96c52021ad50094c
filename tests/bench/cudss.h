// SPDX-License-Identifier: Apache-2.0

// NVIDIA's cuDSS for comparison with sparse LU on a GPU. Uses the binding of the method `cudss`,
// with cuDSS's own threading layer and memory.
#ifndef CROUT_TESTS_BENCH_CUDSS_H_
#define CROUT_TESTS_BENCH_CUDSS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/cudss/library.h"
#include "kernels/cuda/cudss/system.h"
#include "kernels/sparse_view.h"
#include "tests/bench/gpu_irr_bench.h"

namespace crout {

// One system in the GPU's memory: LU of a general matrix, without refinement. Each call blocks
// until the GPU is done.
class CudssSolver {
 public:
  // a: float64, in host memory. b: n rows, column-major. `deterministic`: gives the same bits each
  // time, as our methods do. This is not cuDSS's default and restricts it to one right-hand side at
  // a time.
  CudssSolver(const cuda::CudssLibrary& library, const AnySparse& a, const std::vector<double>& b,
              bool deterministic);

  // Runs ordering and symbolic factorization from scratch.
  absl::Status Analyze();
  absl::Status Factor();
  // Reuses what the last factorization determined, as for new values on the same pattern.
  absl::Status Refactor();
  // Solve for the first column of b, or for all columns.
  absl::Status SolveOne() { return Solve(1); }
  absl::Status SolveAll() { return Solve(columns_); }
  // Replaces the first column of b.
  void SetFirst(const std::vector<double>& b);
  std::vector<double> X() const { return x_.Download(); }

  absl::StatusOr<cuda::CudssFindings> Findings();
  // Returns the library's estimate of its peak memory on the GPU.
  absl::StatusOr<size_t> DeviceBytes();

 private:
  // FAILED_PRECONDITION if nothing was analyzed.
  absl::Status CheckAnalyzed() const;
  absl::Status Solve(int64_t columns);
  cuda::CudssVectors Vectors(int64_t columns) const { return {b_.get(), x_.get(), columns}; }

  const cuda::CudssLibrary& library_;
  const int64_t n_;
  const int64_t nonzeros_;
  const int64_t columns_;  // columns of b
  const bool deterministic_;
  // A by rows.
  DeviceArray<int64_t> row_start_;
  DeviceArray<int32_t> column_;
  DeviceArray<double> value_;
  DeviceArray<double> b_, x_;
  // Results of the last analysis.
  std::unique_ptr<cuda::CudssHandle> handle_;
  std::unique_ptr<cuda::CudssSystem> system_;
};

}  // namespace crout

#endif  // CROUT_TESTS_BENCH_CUDSS_H_
