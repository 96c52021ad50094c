// How a device's speed differs from what its cost tables say.
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

// Seconds measured over seconds predicted, by method, type and order of the matrix.
class CostRatios {
 public:
  // Replaces an earlier one of the same place. `method` is of lower case letters, digits and '_'.
  void Set(std::string_view method, DType dtype, int64_t n, double ratio);

  // Between the orders that were measured by a power law, beyond them that of the nearest; 1 for
  // what was not measured.
  double Of(std::string_view method, DType dtype, int64_t n) const;

  bool empty() const { return ratios_.empty(); }

  // A file's text, with a checksum, that Parse reads back to the last bit. `key`, one line, says
  // what was measured where.
  std::string Serialize(std::string_view key) const;

  // Strict: INVALID_ARGUMENT for whatever Serialize(key) does not write, another key included.
  static absl::StatusOr<CostRatios> Parse(std::string_view text, std::string_view key);

  // No text is longer.
  static constexpr size_t kMaxTextBytes = size_t{64} << 10;

 private:
  using ByOrder = std::map<int64_t, double>;

  std::map<std::pair<std::string, DType>, ByOrder> ratios_;
};

}  // namespace crout

#endif  // CROUT_KERNELS_COSTS_COST_RATIOS_H_
