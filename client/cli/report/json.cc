// SPDX-License-Identifier: Apache-2.0

#include "client/cli/report/json.h"

#include <cmath>

namespace crout::cli {

Json ToJson(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

}  // namespace crout::cli
