// SPDX-License-Identifier: Apache-2.0

#include "server/devices.h"

#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "kernels/host/device/host_device.h"
#include "kernels/host/device/out_of_core_device.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/strings.h"
#include "server/groups/group_device.h"
#include "server/observability/log/log.h"
#ifdef CROUT_HAVE_CUDA
#include "kernels/cuda/device/cuda_device.h"
#endif

namespace crout {
namespace {

// The devices to open.
struct Selection {
  std::vector<int> gpus;
  bool host = false;

  void AddGpu(int ordinal) {
    if (std::find(gpus.begin(), gpus.end(), ordinal) == gpus.end()) gpus.push_back(ordinal);
  }
};

int CountGpus() {
#ifdef CROUT_HAVE_CUDA
  return cuda::CountCudaDevices();
#else
  return 0;
#endif
}

// Returns the reason why no GPU is usable.
std::string NoGpuReason() {
#ifdef CROUT_HAVE_CUDA
  return std::string(cuda::CheckCudaDevices().message());
#else
  return "this build has no CUDA support";
#endif
}

// Returns the GPUs of groups, which are no separate devices.
absl::StatusOr<std::set<int>> GroupedGpus(std::span<const GroupSpec> groups) {
  std::set<int> gpus;
  for (const GroupSpec& group : groups) {
    for (const int gpu : group.gpus) {
      if (gpus.insert(gpu).second) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("--group: cuda:", gpu, " is in two groups. Name it in one of them"));
    }
  }
  return gpus;
}

absl::Status NoGpu(std::string_view name) {
  return absl::NotFoundError(
      absl::StrCat("--devices=", ToAbsl(name), ": no usable GPU: ", NoGpuReason()));
}

absl::Status Select(std::string_view name, int gpu_count, const std::set<int>& grouped,
                    Selection* selection) {
  int ordinal = 0;
  absl::string_view number = ToAbsl(name);
  if (name == "host") {
    selection->host = true;
  } else if (name == "auto" || name == "cuda") {
    for (int i = 0; i < gpu_count; ++i) {
      if (!grouped.contains(i)) selection->AddGpu(i);
    }
    if (gpu_count == 0 && name == "cuda") return NoGpu(name);
    if (gpu_count == 0) Log(LogLevel::kInfo, "gpu_not_found", {{"reason", NoGpuReason()}});
    if (name == "auto" && selection->gpus.empty()) selection->host = true;
  } else if (absl::SimpleAtoi(number, &ordinal) ||  // "cuda:0,1" arrives as "cuda:0" and "1"
             (absl::ConsumePrefix(&number, "cuda:") && absl::SimpleAtoi(number, &ordinal))) {
    if (gpu_count == 0) return NoGpu(name);
    if (ordinal < 0 || ordinal >= gpu_count) {
      return absl::NotFoundError(absl::StrCat("--devices=", ToAbsl(name), ": this machine has ",
                                              gpu_count,
                                              " usable GPUs (cuda:0 to cuda:", gpu_count - 1, ")"));
    }
    if (grouped.contains(ordinal)) {
      return absl::InvalidArgumentError(
          absl::StrCat("cuda:", ordinal,
                       " is in --devices and in --group. A group needs exclusive use of its GPUs. "
                       "Remove this GPU from one of the two settings"));
    }
    selection->AddGpu(ordinal);
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("--devices: '", ToAbsl(name), "' is not auto, host, cuda or cuda:N"));
  }
  return absl::OkStatus();
}

#ifdef CROUT_HAVE_CUDA
absl::StatusOr<std::unique_ptr<Device>> OpenGpu(int ordinal, const Config& config) {
  cuda::Options options;
  options.memory_bytes = config.pool.device_budget_bytes;
  options.memory_fraction = config.pool.memory_fraction;
  if (config.pool.scheduler.streams > 0) options.streams = config.pool.scheduler.streams;
  options.calibrate = true;
  options.state_directory = config.state_dir;
  options.log = [ordinal](const std::string& report) {
    Log(LogLevel::kInfo, "device_calibrated",
        {{"device", absl::StrCat("cuda:", ordinal)}, {"costs", report}});
  };
  return cuda::MakeDevice(ordinal, options);
}
#else
absl::StatusOr<std::unique_ptr<Device>> OpenGpu(int /*ordinal*/, const Config& /*config*/) {
  return absl::UnimplementedError("this build has no CUDA support");
}
#endif

}  // namespace

absl::Status AddOutOfCoreDevices(size_t gpu_bytes, std::shared_ptr<host::Executor> executor,
                                 std::vector<std::shared_ptr<Device>>& devices) {
  const std::vector<std::shared_ptr<Device>> others = devices;
  for (const std::shared_ptr<Device>& gpu : others) {
    if (gpu->info().kind != DeviceKind::kCuda) continue;
    auto device = host::MakeOutOfCoreDevice(gpu, gpu_bytes, executor);
    if (absl::IsResourceExhausted(device.status())) {
      return absl::ResourceExhaustedError(
          absl::StrCat("--out-of-core-memory=", gpu_bytes, ": ", gpu->info().name,
                       " could not set these bytes aside: ", device.status().message(),
                       ". Set a smaller size, or end other programs that use the GPU"));
    }
    CROUT_RETURN_IF_ERROR(device.status());
    devices.push_back(*std::move(device));
  }
  if (devices.size() > others.size()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("--out-of-core-memory=", gpu_bytes,
                   " needs a GPU, and --devices names none that is usable. Remove the setting or "
                   "add a GPU to --devices"));
}

absl::StatusOr<std::vector<std::shared_ptr<Device>>> OpenDevices(const Config& config) {
  Selection selection;
  CROUT_ASSIGN_OR_RETURN(const std::set<int> grouped, GroupedGpus(config.groups));
  const int gpu_count = CountGpus();
  for (const std::string& name : config.devices) {
    CROUT_RETURN_IF_ERROR(Select(name, gpu_count, grouped, &selection));
  }
  const bool out_of_core = config.pool.out_of_core_bytes > 0;
  std::vector<std::shared_ptr<Device>> devices;
  for (const int ordinal : selection.gpus) {
    CROUT_ASSIGN_OR_RETURN(devices.emplace_back(), OpenGpu(ordinal, config));
  }
  if (!selection.host && config.groups.empty() && !out_of_core) return devices;
  const std::shared_ptr<host::Executor> executor = host::MakeExecutor(config.host_threads);
  if (selection.host) devices.push_back(host::MakeDevice({.executor = executor}));
  for (const GroupSpec& group : config.groups) {
    CROUT_ASSIGN_OR_RETURN(devices.emplace_back(),
                           MakeGroupDevice(group, executor,
                                           {.tls = config.tls,
                                            .identities_file = config.identities_file,
                                            .signed_tokens = config.signed_tokens}));
  }
  if (out_of_core) {
    CROUT_RETURN_IF_ERROR(AddOutOfCoreDevices(config.pool.out_of_core_bytes, executor, devices));
  }
  return devices;
}

}  // namespace crout
