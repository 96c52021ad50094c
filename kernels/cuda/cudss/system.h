// One system of equations in cuDSS, and how it is told of it.
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

// cudssMatchingAlg_t: whether columns are exchanged, and rows and columns scaled, so that the
// diagonal is large.
enum class CudssMatching : int { kNone = 0, kLargestProduct = 5, kAsItThinks = 6 };

struct CudssOptions {
  // The same bits each time on GPUs of one kind; solves take one right-hand side then.
  bool deterministic = true;
  CudssMatching matching = CudssMatching::kNone;
  CudssArena* memory = nullptr;  // where the handle takes memory from arenas
};

// A square matrix by rows, of int64 row starts and int32 columns that ascend within a row, and
// right-hand sides and solutions, n x columns, column-major without gaps: in device memory.
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

// What an analysis found that another one of the pattern can begin with.
struct CudssOrdering {
  std::vector<int32_t> permutation;
  std::vector<int32_t> partition;
};

struct CudssFindings {
  int64_t info = 0;              // 0, or what went wrong on the GPU
  int64_t entries = 0;           // of L and U
  int64_t perturbed_pivots = 0;  // that were too small, and were made larger
};

// LU of a general matrix, without refinement: CUDSS_MTYPE_GENERAL. Thread-safe; what is enqueued
// waits for what any system of the handle enqueued before.
class CudssSystem {
 public:
  // The handle, the matrix, the first vectors (which no phase before a solve reads) and
  // options.memory outlive the system, which is destroyed with the device current and nothing
  // of its own in flight; for that it may have to wait for an analysis of another one.
  static absl::StatusOr<std::unique_ptr<CudssSystem>> Create(CudssHandle& handle,
                                                             const CudssMatrix& a,
                                                             const CudssVectors& vectors,
                                                             const CudssOptions& options);
  ~CudssSystem();
  CudssSystem(const CudssSystem&) = delete;  // It owns the library's objects.
  CudssSystem& operator=(const CudssSystem&) = delete;

  // Before Analyze: instead of an ordering of its own.
  absl::Status Use(const CudssOrdering& ordering);
  // Ordering and symbolic factorization, once, most of it on the host. UNIMPLEMENTED for what the
  // library does not support, as in the next two.
  absl::Status Analyze(cudaStream_t stream);
  // Enqueues the numeric factorization; with `again`, of other values in the matrix's place, by
  // what the last one found.
  absl::Status Factor(cudaStream_t stream, bool again = false);
  // Enqueues x := op(A)^-1 b.
  absl::Status Solve(Op op, const CudssVectors& vectors, cudaStream_t stream);

  // After Analyze.
  absl::StatusOr<CudssOrdering> Ordering();
  // The most of the device's memory that it expects to have at a time, up to solves with as many
  // columns as the first vectors.
  absl::StatusOr<size_t> DeviceBytes();
  // After Factor, when that has ended on the device.
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
  int64_t columns_ ABSL_GUARDED_BY(handle_.mutex) = 0;  // of b_ and x_
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CUDSS_SYSTEM_H_
