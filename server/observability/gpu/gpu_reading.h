// SPDX-License-Identifier: Apache-2.0

// What a GPU's driver says of it, apart from what Crout itself knows.
#ifndef CROUT_SERVER_OBSERVABILITY_GPU_GPU_READING_H_
#define CROUT_SERVER_OBSERVABILITY_GPU_GPU_READING_H_

#include <optional>

namespace crout {

// Of one GPU, whoever uses it. What this GPU or this driver does not tell is left out.
struct GpuReading {
  std::optional<double> compute_utilization;  // share of the last second or less in which it ran
  std::optional<double> memory_utilization;   // likewise, in which its memory was read or written
  std::optional<double> memory_total_bytes;
  std::optional<double> memory_used_bytes;
  std::optional<double> power_watts;
  std::optional<double> power_limit_watts;  // above which it slows down
  std::optional<double> energy_joules;      // since the driver was loaded
  std::optional<double> temperature_celsius;
  std::optional<double> slowdown_celsius;  // temperature from which it slows down
  std::optional<double> sm_clock_hertz;
  std::optional<double> memory_clock_hertz;
  std::optional<double> ecc_corrected;  // errors since the driver was loaded
  std::optional<double> ecc_uncorrected;
  std::optional<double> xid_errors;  // that the driver has told since the daemon began,
  std::optional<double> last_xid;    // and the number of the last one; 0: none yet
  double age_seconds = 0;            // since the driver was asked
};

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_GPU_GPU_READING_H_
