// SPDX-License-Identifier: Apache-2.0

// Caches the readings of GPU drivers, so that readers never wait for a driver.
#ifndef CROUT_SERVER_OBSERVABILITY_GPU_GPU_MONITOR_H_
#define CROUT_SERVER_OBSERVABILITY_GPU_GPU_MONITOR_H_

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "kernels/util/mutex.h"
#include "server/observability/gpu/nvml.h"

namespace crout {

// Queries the driver once a second on its own thread, which also loads NVML. A driver that hangs
// blocks only this thread. There are no readings without a GPU, the library or the driver. Logs
// once why a GPU has no readings (`gpu_metrics_unavailable`), and logs each Xid error
// (`gpu_xid_reported`). Thread-safe.
class GpuMonitor {
 public:
  struct Gpu {
    std::string device;      // name for the log, such as "cuda:0"
    std::string pci_bus_id;  // such as "0000:5d:00.0"; empty: not a GPU
  };

  // `library` is the file name of NVML.
  explicit GpuMonitor(std::vector<Gpu> gpus, std::string library = kNvmlFile);
  // Waits for the driver's current answer, about 100 ms if the driver responds.
  ~GpuMonitor();
  GpuMonitor(const GpuMonitor&) = delete;  // Its thread points to it.
  GpuMonitor& operator=(const GpuMonitor&) = delete;

  // Returns the last reading of each element of `gpus`. A reading is empty before the first answer
  // of the driver, and for an element that is not a GPU.
  std::vector<std::optional<GpuReading>> last() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Watched {
    size_t index;  // in gpus_
    Nvml::Gpu gpu;
    std::optional<double> xid_errors;  // empty: the driver does not report them
    std::optional<double> last_xid;
  };
  struct TimedReading {
    GpuReading reading;
    Clock::time_point query_time;
  };

  void Work() ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<Watched> Find(Nvml& nvml) const;
  void Sample(const Nvml& nvml, const std::vector<Watched>& all) ABSL_LOCKS_EXCLUDED(mutex_);
  // Counts Xid errors until `end`, or until the monitor stops. Returns at once if the driver
  // reports no Xid errors.
  void WatchXids(Clock::time_point end, Nvml& nvml, std::vector<Watched>* all)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Count(const Nvml::XidEvent& event, std::vector<Watched>* all) const;
  // Waits until `end`, or until the monitor stops. Returns true if it is stopping.
  bool StoppingBy(Clock::time_point end) ABSL_LOCKS_EXCLUDED(mutex_);

  // Constant after construction.
  const std::vector<Gpu> gpus_;
  const std::string library_;

  mutable Mutex mutex_;
  CondVar wake_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::optional<TimedReading>> last_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_GPU_GPU_MONITOR_H_
