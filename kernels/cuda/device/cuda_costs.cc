// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/device/cuda_costs.h"

#include <algorithm>
#include <cctype>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "kernels/costs/measure_costs.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {
namespace {

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
