// SPDX-License-Identifier: Apache-2.0

// Values that the driver of a GPU reports.
#ifndef CROUT_SERVER_OBSERVABILITY_GPU_GPU_READING_H_
#define CROUT_SERVER_OBSERVABILITY_GPU_GPU_READING_H_

#include <optional>

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

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_GPU_GPU_READING_H_
