// SPDX-License-Identifier: Apache-2.0

// One system of linear equations in cuDSS.
#ifndef CROUT_KERNELS_CUDA_CUDSS_SYSTEM_H_
#define CROUT_KERNELS_CUDA_CUDSS_SYSTEM_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/cudss/arena.h"
#include "kernels/cuda/cudss/handle.h"
#include "kernels/cuda/cudss/library.h"
#include "kernels/dtype.h"
#include "kernels/matrix.h"

namespace crout::cuda {

// cudssMatchingAlg_t: whether columns are exchanged, and rows and columns scaled, to make the
// diagonal large.
enum class CudssMatching : int { kNone = 0, kLargestProduct = 5, kAutomatic = 6 };

struct CudssOptions {
  // Results have the same bits on GPUs of one kind. Solves then accept one right-hand side.
  bool deterministic = true;
  CudssMatching matching = CudssMatching::kNone;
  CudssArena* memory = nullptr;  // set if the handle takes its memory from arenas
};

// A square matrix by rows with int64 row starts and int32 columns that ascend within a row. The
// right-hand sides and solutions are n x columns, column-major without gaps. All in device memory.
struct CudssMatrix {
  DType dtype = DType::kFloat64;
  int64_t n = 0;  // > 0
  int64_t nonzeros = 0;
  const int64_t* row_start = nullptr;
  const int32_t* column = nullptr;
  const void* value = nullptr;
};
struct CudssVectors {
  const void* b = nullptr;
  void* x = nullptr;
  int64_t columns = 1;
};

// Results of an analysis that another analysis of the same pattern can start from.
struct CudssOrdering {
  std::vector<int32_t> permutation;
  std::vector<int32_t> partition;
};

struct CudssFindings {
  int64_t info = 0;              // 0, or the error on the GPU
  int64_t entries = 0;           // in L and U
  int64_t perturbed_pivots = 0;  // pivots that were too small and were perturbed
};

// LU of a general matrix (CUDSS_MTYPE_GENERAL), without refinement. Thread-safe. Work waits for
// everything that any system of the handle enqueued before.
class CudssSystem {
 public:
  // The handle, the matrix, the first vectors (read by no phase before a solve) and options.memory
  // outlive the system. Destroy it with the device current and none of its work in flight; the
  // destructor may have to wait for another system's analysis.
  static absl::StatusOr<std::unique_ptr<CudssSystem>> Create(CudssHandle& handle,
                                                             const CudssMatrix& a,
                                                             const CudssVectors& vectors,
                                                             const CudssOptions& options);
  ~CudssSystem();
  CudssSystem(const CudssSystem&) = delete;  // owns the library's objects
  CudssSystem& operator=(const CudssSystem&) = delete;

  // Replaces cuDSS's own ordering. Call before Analyze.
  absl::Status Use(const CudssOrdering& ordering);
  // Runs the ordering and the symbolic factorization, mostly on the host. Call once. UNIMPLEMENTED
  // if the library does not support the request; the same holds for Factor and Solve.
  absl::Status Analyze(cudaStream_t stream);
  // Enqueues the numeric factorization. With `again`, refactors new values at the same address and
  // reuses the results of the last factorization.
  absl::Status Factor(cudaStream_t stream, bool again = false);
  // Enqueues x := op(A)^-1 b.
  absl::Status Solve(Op op, const CudssVectors& vectors, cudaStream_t stream);

  // Requires Analyze.
  absl::StatusOr<CudssOrdering> Ordering();
  // The peak device memory in bytes that the library expects, including solves with as many columns
  // as the first vectors.
  absl::StatusOr<size_t> DeviceBytes();
  // Requires Factor, completed on the device.
  absl::StatusOr<CudssFindings> Findings();

 private:
  CudssSystem(CudssHandle& handle, CudssArena* arena)
      : handle_(handle), f_(handle.functions()), arena_(arena) {}
  absl::Status Initialize(const CudssMatrix& a, const CudssOptions& options)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(handle_.mutex);
  absl::Status Set(int parameter, int value) ABSL_EXCLUSIVE_LOCKS_REQUIRED(handle_.mutex);
  absl::Status SetVectors(const CudssVectors& vectors) ABSL_EXCLUSIVE_LOCKS_REQUIRED(handle_.mutex);
  absl::Status Execute(int phase, const char* name, cudaStream_t stream)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(handle_.mutex);
  absl::Status Get(int parameter, void* value, size_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(handle_.mutex);
  absl::Status Put(int parameter, const std::vector<int32_t>& values)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(handle_.mutex);
  absl::StatusOr<int> PartitionLevels() ABSL_EXCLUSIVE_LOCKS_REQUIRED(handle_.mutex);

  CudssHandle& handle_;
  const CudssFunctions& f_;
  CudssArena* const arena_;
  // Constant after Create.
  DType dtype_ = DType::kFloat64;
  int64_t n_ = 0;

  void* config_ ABSL_GUARDED_BY(handle_.mutex) = nullptr;
  void* data_ ABSL_GUARDED_BY(handle_.mutex) = nullptr;
  void* a_ ABSL_GUARDED_BY(handle_.mutex) = nullptr;
  void* b_ ABSL_GUARDED_BY(handle_.mutex) = nullptr;
  void* x_ ABSL_GUARDED_BY(handle_.mutex) = nullptr;
  int64_t columns_ ABSL_GUARDED_BY(handle_.mutex) = 0;  // columns of b_ and x_
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CUDSS_SYSTEM_H_
