// NVIDIA's cuDSS as a peer, beside which sparse LU on a GPU is measured: by the binding that the
// method `cudss` has, with its threading layer and memory of its own.
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

// One system in the GPU's memory, with LU for a general matrix and without refinement. Each call
// blocks until the GPU is done.
class CudssSolver {
 public:
  // a: float64, in host memory. b: n x its columns, column-major, of which X is found.
  // `deterministic`: the same bits each time, as ours, which is not its default; then it takes one
  // right-hand side at a time.
  CudssSolver(const cuda::CudssLibrary& library, const AnySparse& a, const std::vector<double>& b,
              bool deterministic);

  // Ordering and symbolic factorization, of which nothing is kept from an earlier one.
  absl::Status Analyze();
  absl::Status Factor();
  // With what the last factorization found, as for new values on the same pattern.
  absl::Status Refactor();
  // Of the first column of b, or of all of them.
  absl::Status SolveOne() { return Solve(1); }
  absl::Status SolveAll() { return Solve(columns_); }
  // Other values for the first column of b.
  void SetFirst(const std::vector<double>& b);
  std::vector<double> X() const { return x_.Download(); }

  absl::StatusOr<cuda::CudssFindings> Findings();
  // The most of the GPU's memory that the library expected to take.
  absl::StatusOr<size_t> DeviceBytes();

 private:
  // FAILED_PRECONDITION where nothing was analysed.
  absl::Status CheckAnalyzed() const;
  absl::Status Solve(int64_t columns);
  cuda::CudssVectors Vectors(int64_t columns) const { return {b_.get(), x_.get(), columns}; }

  const cuda::CudssLibrary& library_;
  const int64_t n_;
  const int64_t nonzeros_;
  const int64_t columns_;  // of b
  const bool deterministic_;
  // By rows.
  DeviceArray<int64_t> row_start_;
  DeviceArray<int32_t> column_;
  DeviceArray<double> value_;
  DeviceArray<double> b_, x_;
  // Of the last analysis.
  std::unique_ptr<cuda::CudssHandle> handle_;
  std::unique_ptr<cuda::CudssSystem> system_;
};

}  // namespace crout

#endif  // CROUT_TESTS_BENCH_CUDSS_H_
