// SPDX-License-Identifier: Apache-2.0

// Ratios of a device's measured times to its cost tables.
#ifndef CROUT_KERNELS_COSTS_COST_RATIOS_H_
#define CROUT_KERNELS_COSTS_COST_RATIOS_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "kernels/dtype.h"

namespace crout {

// Measured over predicted seconds, by method, type and order of the matrix.
class CostRatios {
 public:
  // Sets or replaces a ratio. `method` consists of lower-case letters, digits and '_'.
  void Set(std::string_view method, DType dtype, int64_t n, double ratio);

  // Returns the ratio, interpolated by a power law between measured orders and constant outside
  // them; 1 if nothing was measured for this method and type.
  double Ratio(std::string_view method, DType dtype, int64_t n) const;

  bool empty() const { return ratios_.empty(); }

  // Returns the text of a file, with a checksum; Parse restores it exactly. `key` is one line that
  // identifies the device and the version that were measured.
  std::string Serialize(std::string_view key) const;

  // Strict: INVALID_ARGUMENT for any text that Serialize(key) does not write, including another
  // key.
  static absl::StatusOr<CostRatios> Parse(std::string_view text, std::string_view key);

  // Largest size of a text.
  static constexpr size_t kMaxTextBytes = size_t{64} << 10;

 private:
  using ByOrder = std::map<int64_t, double>;

  std::map<std::pair<std::string, DType>, ByOrder> ratios_;
};

}  // namespace crout

#endif  // CROUT_KERNELS_COSTS_COST_RATIOS_H_
