// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/device/start_up.h"

#include <algorithm>
#include <cctype>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "kernels/costs/measured_costs.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/execution_context.h"
#include "kernels/jobs/solve.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {
namespace {

// The vendor's routines select other kernels for larger matrices.
constexpr int64_t kOrders[] = {256, 2048};

struct WarmUpBuffers {
  Buffer matrix;
  Buffer ipiv;
  Buffer rhs;
  Buffer workspace;
  Buffer prepared;
  Buffer probe;
};

absl::StatusOr<WarmUpBuffers> Allocate(Context& context, DType dtype, int64_t n) {
  Device& device = context.device();
  size_t workspace = 2 * n * sizeof(double);  // for the scales
  size_t prepared = 0;
  for (const auto& algorithm : device.algorithms()) {
    if (!algorithm->SupportsDense(dtype)) continue;
    CROUT_ASSIGN_OR_RETURN(const size_t bytes, algorithm->WorkspaceBytes(dtype, n, {}));
    workspace = std::max(workspace, bytes);
  }
  for (const auto& solver : device.solvers()) {
    if (!solver->SupportsDense(dtype)) continue;
    CROUT_ASSIGN_OR_RETURN(const size_t bytes, solver->WorkspaceBytes(dtype, n, 1));
    workspace = std::max(workspace, bytes);
    CROUT_ASSIGN_OR_RETURN(const size_t beside, solver->PreparedBytes(dtype, n));
    prepared = std::max(prepared, beside);
  }
  WarmUpBuffers buffers;
  CROUT_ASSIGN_OR_RETURN(buffers.matrix, device.memory().Allocate(n * n * SizeOf(dtype)));
  CROUT_ASSIGN_OR_RETURN(buffers.ipiv, device.memory().Allocate(n * sizeof(int64_t)));
  CROUT_ASSIGN_OR_RETURN(buffers.rhs, device.memory().Allocate(n * SizeOf(WideOf(dtype))));
  CROUT_ASSIGN_OR_RETURN(buffers.workspace, device.memory().Allocate(workspace));
  CROUT_ASSIGN_OR_RETURN(buffers.prepared, device.memory().Allocate(prepared));
  CROUT_ASSIGN_OR_RETURN(buffers.probe,
                         device.memory().Allocate(FactorProbeVectors(dtype) * n * sizeof(double)));
  return buffers;
}

absl::Status Solve(Context& context, const WarmUpBuffers& buffers, const FactorView& factor) {
  const int64_t n = factor.lu.rows;
  const AnyMatrix b = {buffers.rhs.data(), factor.lu.dtype, n, 1, n};
  for (const auto& solver : context.device().solvers()) {
    if (!solver->SupportsDense(factor.lu.dtype) || !solver->Supports(factor.unit_diagonal))
      continue;
    CROUT_RETURN_IF_ERROR(
        solver->Prepare(context, factor, {buffers.prepared.data(), buffers.prepared.size()}));
    CROUT_RETURN_IF_ERROR(solver->Solve(context, factor, Op::kNone, 0, b,
                                        {buffers.workspace.data(), buffers.workspace.size()}));
  }
  const DType wide = WideOf(factor.lu.dtype);
  const AnyMatrix x = {buffers.rhs.data(), wide, n, 1, n};
  const AnyMatrix r = {buffers.workspace.data(), wide, n, 1, n};
  return context.ops().Residual(factor.lu, Op::kNone, 1, x, x, r);
}

// Runs on the zero matrix, because the result is not used.
absl::Status Run(Context& context, const WarmUpBuffers& buffers, DType dtype, int64_t n) {
  const AnyMatrix a = {buffers.matrix.data(), dtype, n, n, n};
  auto* ipiv = buffers.ipiv.as<int64_t>();
  auto* scales = buffers.workspace.as<double>();
  CROUT_RETURN_IF_CUDA_ERROR(cudaMemsetAsync(a.data, 0, buffers.matrix.size(), context.stream()));
  CROUT_RETURN_IF_CUDA_ERROR(
      cudaMemsetAsync(buffers.rhs.data(), 0, buffers.rhs.size(), context.stream()));
  CROUT_RETURN_IF_ERROR(context.ops().Import({a.data, dtype, Layout::kColumnMajor, n, n}, a));
  CROUT_RETURN_IF_ERROR(context.ops().EquilibrationScales(a, scales, scales + n));
  CROUT_RETURN_IF_ERROR(context.ops().CopyScaled(a, scales, scales + n, a));
  const FactorProbe probe = {n, 1, buffers.probe.as<double>()};
  CROUT_RETURN_IF_ERROR(context.ops().StartProbe(a, probe));
  for (const auto& algorithm : context.device().algorithms()) {
    if (!algorithm->SupportsDense(dtype)) continue;
    CROUT_RETURN_IF_ERROR(algorithm->Factor(context, a, ipiv,
                                            {buffers.workspace.data(), buffers.workspace.size()},
                                            {}, [] { return false; }));
    const UnitDiagonal unit = algorithm->traits().unit_diagonal;
    CROUT_RETURN_IF_ERROR(context.ops().InspectFactor(a, unit == UnitDiagonal::kU, ipiv, probe));
    CROUT_RETURN_IF_ERROR(
        Solve(context, buffers,
              {.lu = a, .ipiv = ipiv, .unit_diagonal = unit, .prepared = buffers.prepared.data()}));
  }
  CROUT_RETURN_IF_ERROR(context.ops().InspectPivots(a));
  return absl::OkStatus();
}

absl::Status WarmUpWith(Context& context, DType dtype, int64_t n) {
  CROUT_ASSIGN_OR_RETURN(const WarmUpBuffers buffers, Allocate(context, dtype, n));
  SyncOnExit sync(context);
  CROUT_RETURN_IF_ERROR(Run(context, buffers, dtype, n));
  CROUT_RETURN_IF_ERROR(context.Synchronize());
  sync.Dismiss();
  return absl::OkStatus();
}

// Increase when the cost tables or the measurements change, or when a method's implementation
// changes.
constexpr int kVersion = 2;

struct Identity {
  std::string file;  // file name
  std::string key;
};

absl::StatusOr<int> Attribute(cudaDeviceAttr attribute, int device) {
  int value = 0;
  CROUT_RETURN_IF_CUDA_ERROR(cudaDeviceGetAttribute(&value, attribute, device));
  return value;
}

absl::StatusOr<Identity> Identify(Context& context) {
  const int device = context.core().ordinal();
  cudaDeviceProp properties;
  CROUT_RETURN_IF_CUDA_ERROR(cudaGetDeviceProperties(&properties, device));
  CROUT_ASSIGN_OR_RETURN(const int clock, Attribute(cudaDevAttrClockRate, device));
  int driver = 0;
  int runtime = 0;
  int cublas = 0;
  int cusolver = 0;
  CROUT_RETURN_IF_CUDA_ERROR(cudaDriverGetVersion(&driver));
  CROUT_RETURN_IF_CUDA_ERROR(cudaRuntimeGetVersion(&runtime));
  CROUT_RETURN_IF_CUBLAS_ERROR(cublasGetVersion(context.cublas(), &cublas));
  CROUT_RETURN_IF_CUSOLVER_ERROR(cusolverGetVersion(&cusolver));
  const std::string uuid = absl::BytesToHexString(
      absl::string_view(properties.uuid.bytes, sizeof(properties.uuid.bytes)));
  std::string name = properties.name;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isprint(c) == 0; }, '?');
  const DeviceLimits& limits = context.core().limits();
  return Identity{
      absl::StrCat("costs-", uuid, ".txt"),
      absl::StrCat(name, "; ", uuid, "; ", limits.multiprocessors, " multiprocessors, ",
                   limits.shared_bytes, " bytes of shared memory, clusters of ",
                   limits.cluster_blocks, ", ", clock, " kHz; driver ", driver, ", runtime ",
                   runtime, ", cuBLAS ", cublas, ", cuSOLVER ", cusolver, "; Crout ", kVersion)};
}

}  // namespace

absl::Status WarmUp(Context& context) {
  for (const DType dtype :
       {DType::kFloat64, DType::kFloat32, DType::kComplex128, DType::kComplex64}) {
    for (const int64_t n : kOrders) CROUT_RETURN_IF_ERROR(WarmUpWith(context, dtype, n));
  }
  return absl::OkStatus();
}

StoredCosts CalibrateCosts(Context& context, const std::string& directory) {
  const absl::StatusOr<Identity> identity = Identify(context);
  if (!identity.ok()) {
    return {{},
            absl::StrCat("built-in estimates; the device could not be identified: ",
                         identity.status().message())};
  }
  return LoadOrMeasureCosts(
      directory.empty() ? "" : absl::StrCat(directory, "/", identity->file), identity->key, [&] {
        return MeasureCosts(context, {.orders = {256, 1024, 4096}, .max_seconds = 2});
      });
}

}  // namespace crout::cuda
