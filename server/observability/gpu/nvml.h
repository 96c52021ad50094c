// SPDX-License-Identifier: Apache-2.0

// NVIDIA's management library, as far as Crout needs it, loaded when the daemon runs: a machine
// without a GPU has no such library, and the build needs none.
#ifndef CROUT_SERVER_OBSERVABILITY_GPU_NVML_H_
#define CROUT_SERVER_OBSERVABILITY_GPU_NVML_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/observability/gpu/gpu_reading.h"

namespace crout {

// What the driver installs beside itself; the number is that of the ABI.
inline constexpr char kNvmlFile[] = "libnvidia-ml.so.1";

struct NvmlFunctions;  // nvml.cc

// Every call may wait for the driver, one that hangs without end. Not thread-safe.
class Nvml {
 public:
  // A GPU as the library knows it (nvmlDevice_t). Valid while the Nvml lives.
  using Gpu = void*;
  struct XidEvent {
    Gpu gpu;
    uint64_t xid;  // https://docs.nvidia.com/deploy/xid-errors/
  };

  // UNAVAILABLE, with the reason, where there is no library `file`, or no driver behind it.
  static absl::StatusOr<std::unique_ptr<Nvml>> Load(const std::string& file);
  ~Nvml();
  Nvml(const Nvml&) = delete;  // It shuts the library down.
  Nvml& operator=(const Nvml&) = delete;

  // The GPU at an address of PCI, "0000:5d:00.0".
  absl::StatusOr<Gpu> Find(const std::string& pci_bus_id) const;

  // All but Xid errors and age.
  GpuReading Read(Gpu gpu) const;

  // Has WaitForXid tell the Xid errors of `gpu` from now on. An error where the driver does not.
  absl::Status WatchXids(Gpu gpu);
  // The next one, or nothing once `patience` is over. Some GPU is watched. An error comes at once,
  // and at each call, where a GPU was lost.
  absl::StatusOr<std::optional<XidEvent>> WaitForXid(absl::Duration patience);

 private:
  explicit Nvml(std::unique_ptr<const NvmlFunctions> functions);

  const std::unique_ptr<const NvmlFunctions> functions_;
  void* events_ = nullptr;  // nvmlEventSet_t
};

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_GPU_NVML_H_
