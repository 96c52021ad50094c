// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/cudss/system.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {
namespace {

// Enumeration values of version 1: cudssConfigParam_t.
constexpr int kConfigMatching = 3;
constexpr int kConfigSolveMode = 4;
constexpr int kConfigPartitionLevels = 17;  // ND_NLEVELS
constexpr int kConfigDeterministic = 24;
// cudssDataParam_t.
constexpr int kDataInfo = 0;
constexpr int kDataEntries = 1;
constexpr int kDataPivots = 2;
constexpr int kDataPermutation = 4;  // row permutation of the reordering
constexpr int kDataUserPermutation = 9;
constexpr int kDataEstimates = 13;
constexpr int kDataUserPartition = 21;
constexpr int kDataPartition = 22;
// cudssPhase_t.
constexpr int kAnalysis = 1 | 2;
constexpr int kFactorization = 4;
constexpr int kRefactorization = 8;
constexpr int kSolve = 16 | 32 | 64 | 128 | 256 | 512;
// cudssMatrixType_t, cudssMatrixViewType_t, cudssIndexBase_t and cudssLayout_t.
constexpr int kGeneral = 0;
constexpr int kFull = 0;
constexpr int kBaseZero = 0;
constexpr int kColumnMajor = 0;

constexpr size_t kEstimates = 16;
constexpr size_t kDevicePeak = 1;

// cudssSolveMode_t. It has no conjugate transpose for real numbers.
int ModeOf(Op op, DType dtype) {
  if (op == Op::kNone) return 0;
  return op == Op::kConjugateTranspose && IsComplex(dtype) ? 2 : 1;
}

size_t PartitionSize(int levels) { return (size_t{1} << levels) - 1; }

}  // namespace

absl::StatusOr<std::unique_ptr<CudssSystem>> CudssSystem::Create(CudssHandle& handle,
                                                                 const CudssMatrix& a,
                                                                 const CudssVectors& vectors,
                                                                 const CudssOptions& options) {
  std::unique_ptr<CudssSystem> system(new CudssSystem(handle, options.memory));
  MutexLock lock(&system->handle_.mutex);
  CROUT_RETURN_IF_ERROR(system->Initialize(a, options));
  CROUT_RETURN_IF_ERROR(system->SetVectors(vectors));
  return system;
}

absl::Status CudssSystem::Initialize(const CudssMatrix& a, const CudssOptions& options) {
  dtype_ = a.dtype;
  n_ = a.n;
  handle_.Use(arena_);
  CROUT_RETURN_IF_CUDSS_ERROR(f_.config_create(&config_), "cudssConfigCreate");
  CROUT_RETURN_IF_ERROR(Set(kConfigDeterministic, options.deterministic ? 1 : 0));
  CROUT_RETURN_IF_ERROR(Set(kConfigMatching, static_cast<int>(options.matching)));
  CROUT_RETURN_IF_CUDSS_ERROR(f_.data_create(handle_.get(), &data_), "cudssDataCreate");
  CROUT_RETURN_IF_CUDSS_ERROR(
      f_.matrix_create_csr(&a_, n_, n_, a.nonzeros, a.row_start, nullptr, a.column, a.value,
                           CUDA_R_64I, CUDA_R_32I, CudaTypeOf(dtype_), kGeneral, kFull, kBaseZero),
      "cudssMatrixCreateCsr");
  return absl::OkStatus();
}

// Destroys the members through the library. Failures are ignored, because nothing can be done about
// them.
CudssSystem::~CudssSystem() {
  MutexLock lock(&handle_.mutex);
  handle_.Use(arena_);
  for (void* matrix : {a_, b_, x_}) {
    if (matrix != nullptr) f_.matrix_destroy(matrix);
  }
  if (data_ != nullptr) f_.data_destroy(handle_.get(), data_);
  if (config_ != nullptr) f_.config_destroy(config_);
  handle_.Use(nullptr);  // the arena may be destroyed from here on
}

absl::Status CudssSystem::Set(int parameter, int value) {
  return CudssStatus(f_.config_set(config_, parameter, &value, sizeof(value)), "cudssConfigSet");
}

absl::Status CudssSystem::SetVectors(const CudssVectors& vectors) {
  if (vectors.columns == columns_) {
    CROUT_RETURN_IF_CUDSS_ERROR(f_.matrix_set_values(b_, vectors.b), "cudssMatrixSetValues");
    return CudssStatus(f_.matrix_set_values(x_, vectors.x), "cudssMatrixSetValues");
  }
  columns_ = 0;
  for (void** matrix : {&b_, &x_}) {
    if (*matrix != nullptr) f_.matrix_destroy(std::exchange(*matrix, nullptr));
  }
  const auto create = [&](void** matrix, const void* values) {
    return CudssStatus(f_.matrix_create_dense(matrix, n_, vectors.columns, n_, values,
                                              CudaTypeOf(dtype_), kColumnMajor),
                       "cudssMatrixCreateDn");
  };
  CROUT_RETURN_IF_ERROR(create(&b_, vectors.b));
  CROUT_RETURN_IF_ERROR(create(&x_, vectors.x));
  columns_ = vectors.columns;
  return absl::OkStatus();
}

absl::Status CudssSystem::Execute(int phase, const char* name, cudaStream_t stream) {
  handle_.Use(arena_);
  return handle_.Enqueue(stream, [&] {
    handle_.mutex.AssertHeld();  // held by the caller; lambdas are not analyzed
    return CudssStatus(f_.execute(handle_.get(), phase, config_, data_, a_, x_, b_), name);
  });
}

absl::Status CudssSystem::Analyze(cudaStream_t stream) {
  MutexLock lock(&handle_.mutex);
  return Execute(kAnalysis, "cudssExecute, analysis", stream);
}

absl::Status CudssSystem::Factor(cudaStream_t stream, bool again) {
  MutexLock lock(&handle_.mutex);
  return again ? Execute(kRefactorization, "cudssExecute, refactorization", stream)
               : Execute(kFactorization, "cudssExecute, factorization", stream);
}

absl::Status CudssSystem::Solve(Op op, const CudssVectors& vectors, cudaStream_t stream) {
  MutexLock lock(&handle_.mutex);
  CROUT_RETURN_IF_ERROR(Set(kConfigSolveMode, ModeOf(op, dtype_)));
  CROUT_RETURN_IF_ERROR(SetVectors(vectors));
  return Execute(kSolve, op == Op::kNone ? "cudssExecute, solve" : "cudssExecute, transposed solve",
                 stream);
}

absl::Status CudssSystem::Get(int parameter, void* value, size_t bytes) {
  handle_.Use(arena_);
  size_t written = 0;
  return CudssStatus(f_.data_get(handle_.get(), data_, parameter, value, bytes, &written),
                     "cudssDataGet");
}

absl::StatusOr<int> CudssSystem::PartitionLevels() {
  int levels = 0;
  size_t written = 0;
  CROUT_RETURN_IF_CUDSS_ERROR(
      f_.config_get(config_, kConfigPartitionLevels, &levels, sizeof(levels), &written),
      "cudssConfigGet");
  constexpr int kMaxLevels = 30;
  if (levels < 0 || levels > kMaxLevels)
    return absl::InternalError(absl::StrCat("cuDSS returned ", levels,
                                            " levels of the ordering; expected 0 to ", kMaxLevels));
  return levels;
}

absl::StatusOr<CudssOrdering> CudssSystem::Ordering() {
  MutexLock lock(&handle_.mutex);
  CROUT_ASSIGN_OR_RETURN(const int levels, PartitionLevels());
  CudssOrdering ordering;
  ordering.permutation.resize(n_);
  ordering.partition.resize(PartitionSize(levels));
  CROUT_RETURN_IF_ERROR(Get(kDataPermutation, ordering.permutation.data(), n_ * sizeof(int32_t)));
  CROUT_RETURN_IF_ERROR(
      Get(kDataPartition, ordering.partition.data(), ordering.partition.size() * sizeof(int32_t)));
  return ordering;
}

absl::Status CudssSystem::Put(int parameter, const std::vector<int32_t>& values) {
  handle_.Use(arena_);
  return CudssStatus(
      f_.data_set(handle_.get(), data_, parameter, values.data(), values.size() * sizeof(int32_t)),
      "cudssDataSet");
}

absl::Status CudssSystem::Use(const CudssOrdering& ordering) {
  MutexLock lock(&handle_.mutex);
  CROUT_RETURN_IF_ERROR(Put(kDataUserPermutation, ordering.permutation));
  return Put(kDataUserPartition, ordering.partition);
}

absl::StatusOr<size_t> CudssSystem::DeviceBytes() {
  MutexLock lock(&handle_.mutex);
  std::array<int64_t, kEstimates> bytes = {};
  CROUT_RETURN_IF_ERROR(Get(kDataEstimates, bytes.data(), sizeof(bytes)));
  return static_cast<size_t>(std::max<int64_t>(0, bytes[kDevicePeak]));
}

absl::StatusOr<CudssFindings> CudssSystem::Findings() {
  MutexLock lock(&handle_.mutex);
  CudssFindings found;
  int info = 0;
  int32_t pivots = 0;  // the type of the indices
  CROUT_RETURN_IF_ERROR(Get(kDataInfo, &info, sizeof(info)));
  CROUT_RETURN_IF_ERROR(Get(kDataEntries, &found.entries, sizeof(found.entries)));
  CROUT_RETURN_IF_ERROR(Get(kDataPivots, &pivots, sizeof(pivots)));
  found.info = info;
  found.perturbed_pivots = pivots;
  return found;
}

}  // namespace crout::cuda
