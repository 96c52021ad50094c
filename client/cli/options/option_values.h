// SPDX-License-Identifier: Apache-2.0

// Checks of option values. Their messages name the value and what is expected.
#ifndef CROUT_CLIENT_CLI_OPTIONS_OPTION_VALUES_H_
#define CROUT_CLIENT_CLI_OPTIONS_OPTION_VALUES_H_

#include <CLI/CLI.hpp>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/util/nearest.h"

namespace crout::cli {

// Accepts one of `names`. Otherwise names the nearest one and lists all.
inline CLI::Validator OneOf(const std::vector<std::string>& names) {
  return CLI::Validator(
      [names](const std::string& text) {
        for (const std::string& name : names) {
          if (text == name) return std::string();
        }
        return absl::StrCat("'", text, "' is none of ", absl::StrJoin(names, ", "),
                            NearestHint(text, names));
      },
      absl::StrCat("{", absl::StrJoin(names, ","), "}"));
}

enum class LowEnd { kIncluded, kExcluded };

// Accepts numbers from `low` to `high`, without `low` if it is kExcluded.
template <class T>
CLI::Validator InRange(T low, T high, LowEnd low_end = LowEnd::kIncluded) {
  return CLI::Validator(
      [=](const std::string& text) {
        T value;
        if (!CLI::detail::lexical_cast(text, value)) {
          return absl::StrCat("'", text, "' is not ",
                              std::is_integral_v<T> ? "an integer" : "a number");
        }
        const bool excluded = low_end == LowEnd::kExcluded;
        if ((excluded ? value > low : value >= low) && value <= high) return std::string();
        if (high == std::numeric_limits<T>::max()) {
          return absl::StrCat(text, " is ", excluded ? "not above " : "below ", low);
        }
        return absl::StrCat(text, " is not in the range ", excluded ? "(" : "[", low, ", ", high,
                            "]");
      },
      "");
}

// Accepts numbers from 0 on.
template <class T>
CLI::Validator NotNegative() {
  return InRange<T>(T{0}, std::numeric_limits<T>::max());
}

// Accepts numbers above 0.
template <class T>
CLI::Validator Positive() {
  return InRange<T>(T{0}, std::numeric_limits<T>::max(), LowEnd::kExcluded);
}

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_OPTIONS_OPTION_VALUES_H_
