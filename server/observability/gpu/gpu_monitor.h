// SPDX-License-Identifier: Apache-2.0

// What the drivers of GPUs say of them, for those who must not wait for a driver.
#ifndef CROUT_SERVER_OBSERVABILITY_GPU_GPU_MONITOR_H_
#define CROUT_SERVER_OBSERVABILITY_GPU_GPU_MONITOR_H_

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "kernels/util/mutex.h"
#include "server/observability/gpu/gpu_reading.h"
#include "server/observability/gpu/nvml.h"

namespace crout {

// Asks the driver every second, on a thread of its own, which loads NVML first: a driver that hangs
// holds up that alone. Without a GPU, a library or a driver there are no readings; the log says
// why, once (`gpu_metrics`), and each Xid error (`gpu_xid`). Thread-safe.
class GpuMonitor {
 public:
  struct Gpu {
    std::string device;      // its name, for the log: "cuda:0"
    std::string pci_bus_id;  // "0000:5d:00.0"; empty: not a GPU
  };

  // `library` is the file of NVML.
  explicit GpuMonitor(std::vector<Gpu> gpus, std::string library = kNvmlFile);
  // Waits for the driver's answer, some 100 ms where it answers.
  ~GpuMonitor();
  GpuMonitor(const GpuMonitor&) = delete;  // Its thread points to it.
  GpuMonitor& operator=(const GpuMonitor&) = delete;

  // The last reading of each of the `gpus`, in their order.
  std::vector<std::optional<GpuReading>> last() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Watched {
    size_t index;  // in gpus_
    Nvml::Gpu gpu;
    std::optional<double> xid_errors;  // nothing: the driver does not tell them
    std::optional<double> last_xid;
  };
  struct Answer {
    GpuReading reading;
    Clock::time_point asked;
  };

  void Work() ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<Watched> Find(Nvml& nvml) const;
  void Sample(const Nvml& nvml, const std::vector<Watched>& all) ABSL_LOCKS_EXCLUDED(mutex_);
  // Counts Xid errors until `end`, or the monitor ends; not so long where the driver tells none.
  void WatchXids(Clock::time_point end, Nvml& nvml, std::vector<Watched>* all)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Count(const Nvml::XidEvent& event, std::vector<Watched>* all) const;
  // Waits for the end of the monitor, at most until `end`; whether that has come.
  bool StoppingBy(Clock::time_point end) ABSL_LOCKS_EXCLUDED(mutex_);

  // Constant after construction.
  const std::vector<Gpu> gpus_;
  const std::string library_;

  mutable Mutex mutex_;
  CondVar wake_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::optional<Answer>> last_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_GPU_GPU_MONITOR_H_
