// SPDX-License-Identifier: Apache-2.0

// Reads samples from metrics in the Prometheus text format.
#ifndef CROUT_TESTS_SERVER_SCRAPE_H_
#define CROUT_TESTS_SERVER_SCRAPE_H_

#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#include "absl/strings/numbers.h"

namespace crout {

// Returns the value of `series`, written as in the text with its labels in alphabetical order, such
// as `crout_cache_hits_total{tier="device"}`. Returns nullopt if the series is missing.
inline std::optional<double> SampleOf(std::string_view exposition, std::string_view series) {
  const std::string prefix = std::string(series) + " ";
  std::istringstream lines{std::string(exposition)};
  for (std::string line; std::getline(lines, line);) {
    double value = 0;
    if (line.starts_with(prefix) && absl::SimpleAtod(line.substr(prefix.size()), &value)) {
      return value;
    }
  }
  return std::nullopt;
}

// Returns the number of calls, of all methods, that ended with `code`. Without `code`, returns the
// number that ended with an error.
inline double CallsRefused(std::string_view exposition, std::string_view code = "") {
  double count = 0;
  std::istringstream lines{std::string(exposition)};
  for (std::string line; std::getline(lines, line);) {
    double value = 0;
    const bool counts = code.empty() ? line.find("code=\"OK\"") == line.npos
                                     : line.find("code=\"" + std::string(code) + "\"") != line.npos;
    if (line.starts_with("crout_requests_total{") && counts &&
        absl::SimpleAtod(line.substr(line.rfind(' ') + 1), &value)) {
      count += value;
    }
  }
  return count;
}

}  // namespace crout

#endif  // CROUT_TESTS_SERVER_SCRAPE_H_
