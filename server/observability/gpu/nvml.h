// SPDX-License-Identifier: Apache-2.0

// The part of NVIDIA's management library (NVML) that Crout uses. It is loaded at run time, because
// machines without a GPU lack it and the build must not require it.
#ifndef CROUT_SERVER_OBSERVABILITY_GPU_NVML_H_
#define CROUT_SERVER_OBSERVABILITY_GPU_NVML_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace crout {

// One reading of a GPU, for all processes that use it. A value is empty if the GPU or the driver
// does not report it.
struct GpuReading {
  std::optional<double> compute_utilization;  // fraction of the last second with a running kernel
  std::optional<double> memory_utilization;   // fraction of the last second with memory accesses
  std::optional<double> memory_total_bytes;
  std::optional<double> memory_used_bytes;
  std::optional<double> power_watts;
  std::optional<double> power_limit_watts;  // the GPU slows down above it
  std::optional<double> energy_joules;      // since the driver was loaded
  std::optional<double> temperature_celsius;
  std::optional<double> slowdown_celsius;  // the GPU slows down from this temperature on
  std::optional<double> sm_clock_hertz;
  std::optional<double> memory_clock_hertz;
  std::optional<double> ecc_corrected;  // errors since the driver was loaded
  std::optional<double> ecc_uncorrected;
  std::optional<double> xid_errors;  // reported since the daemon started
  std::optional<double> last_xid;    // number of the last Xid error; 0: none yet
  double age_seconds = 0;            // since the driver was queried
};

// Installed by the NVIDIA driver. The number is the ABI version.
inline constexpr char kNvmlFile[] = "libnvidia-ml.so.1";

struct NvmlFunctions;  // nvml.cc

// Every call may wait for the driver, forever if the driver hangs. Not thread-safe.
class Nvml {
 public:
  // The library's handle of a GPU (nvmlDevice_t). Valid while the Nvml lives.
  using Gpu = void*;
  struct XidEvent {
    Gpu gpu;
    uint64_t xid;  // number of the error; see https://docs.nvidia.com/deploy/xid-errors/
  };

  // UNAVAILABLE, with the reason, if the library `file` cannot be loaded or has no driver.
  static absl::StatusOr<std::unique_ptr<Nvml>> Load(const std::string& file);
  ~Nvml();
  Nvml(const Nvml&) = delete;  // It shuts the library down.
  Nvml& operator=(const Nvml&) = delete;

  // Returns the GPU at a PCI address such as "0000:5d:00.0". UNAVAILABLE, with the driver's
  // message, if there is none.
  absl::StatusOr<Gpu> Find(const std::string& pci_bus_id) const;

  // Reads all values except Xid errors and age.
  GpuReading Read(Gpu gpu) const;

  // Makes WaitForXid() report the Xid errors of `gpu` from now on. Returns an error if the driver
  // does not report them.
  absl::Status WatchXids(Gpu gpu);
  // Returns the next Xid error, or nothing after `timeout`. At least one WatchXids() must have
  // succeeded. If a GPU is lost, every call returns an error at once.
  absl::StatusOr<std::optional<XidEvent>> WaitForXid(absl::Duration timeout);

 private:
  explicit Nvml(std::unique_ptr<const NvmlFunctions> functions);

  const std::unique_ptr<const NvmlFunctions> functions_;
  void* events_ = nullptr;  // nvmlEventSet_t
};

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_GPU_NVML_H_
