// SPDX-License-Identifier: Apache-2.0

// Functions of all benchmarks: the header and format of results, timing, medians, and error
// handling.
#ifndef CROUT_TESTS_BENCH_HARNESS_BENCH_RESULT_H_
#define CROUT_TESTS_BENCH_HARNESS_BENCH_RESULT_H_

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "crout_version.h"
#include "kernels/device.h"
#include "nlohmann/json.hpp"

namespace crout {

// If `status` is an error, prints it and exits with 1. Check(value) otherwise returns the value.
inline void Check(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}
template <class T>
T Check(absl::StatusOr<T> value) {
  Check(value.status());
  return *std::move(value);
}

// Returns the elapsed seconds of f().
template <class F>
double Time(F&& f) {
  const auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Returns the median, or the larger of the two middle values. `values` must not be empty.
inline double Median(std::vector<double> values) {
  auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Returns the header of a result: benchmark, device, version, commit, date (UTC), and the machine's
// load average over the last minute, or -1 if it is unavailable.
inline nlohmann::ordered_json ResultHeader(const std::string& benchmark, const DeviceInfo& device) {
  const std::time_t now = std::time(nullptr);
  std::tm utc;
  gmtime_r(&now, &utc);
  char date[32];
  std::strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", &utc);
  double load = 0;
  if (getloadavg(&load, 1) != 1) load = -1;
  return {{"benchmark", benchmark},
          {"device", device.description},
          {"version", CROUT_VERSION},
          {"commit", CROUT_COMMIT},
          {"date", date},
          {"load", load}};
}

// Formats a JSON object with one member a line, and with one element a line in members that are
// arrays.
inline std::string FormatResult(const nlohmann::ordered_json& result) {
  std::string text = "{";
  const char* separator = "\n";
  for (const auto& [key, value] : result.items()) {
    text += absl::StrCat(separator, nlohmann::json(key).dump(), ": ");
    separator = ",\n";
    if (!value.is_array() || value.empty()) {
      text += value.dump();
      continue;
    }
    const char* item_separator = "[\n ";
    for (const nlohmann::ordered_json& item : value) {
      text += item_separator + item.dump();
      item_separator = ",\n ";
    }
    text += "\n]";
  }
  return text + "\n}\n";
}

// Replaces the file at `path` atomically, so that a benchmark that is killed leaves its last
// complete result. Returns UNAVAILABLE if the file cannot be written.
inline absl::Status ReplaceFile(const std::string& path, const std::string& text) {
  const std::string part = path + ".part";
  std::ofstream file(part);
  file << text;
  file.close();
  if (!file) return absl::UnavailableError(absl::StrCat("cannot write ", part));
  std::error_code error;
  std::filesystem::rename(part, path, error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot write ", path, ": ", error.message()));
}

// Returns the number of cores that this process may use, which taskset can restrict. 0 on error.
inline int CoresOfProcess() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}

// Writes a complete or intermediate result to `path`, unless `path` is empty. Exits on an error.
inline void WriteResult(const nlohmann::ordered_json& result, const std::string& path) {
  if (!path.empty()) Check(ReplaceFile(path, FormatResult(result)));
}

}  // namespace crout

#endif  // CROUT_TESTS_BENCH_HARNESS_BENCH_RESULT_H_
