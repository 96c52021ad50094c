// SPDX-License-Identifier: Apache-2.0

#include "server/observability/metrics/process_metrics.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <sstream>

namespace crout {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

std::string ContentsOf(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

MetricFamily FamilyOf(const char* name, const char* help, MetricType type, double value) {
  prometheus::ClientMetric metric;
  (type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
  return {name, help, type, {metric}};
}

// Returns the time of the system's boot in seconds since 1970: the line "btime" of /proc/stat.
std::optional<int64_t> BootTime() {
  std::istringstream lines(ContentsOf("/proc/stat"));
  for (std::string word; lines >> word;) {
    int64_t seconds = 0;
    if (word == "btime" && lines >> seconds) return seconds;
    lines.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::nullopt;
}

// Returns the number of open files, without the descriptor that this function opens.
std::optional<int64_t> OpenFiles() {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir("/proc/self/fd"), closedir);
  if (directory == nullptr) return std::nullopt;
  int64_t count = -1;
  while (const dirent* entry = readdir(directory.get())) count += entry->d_name[0] != '.' ? 1 : 0;
  return count;
}

double LimitOf(rlim_t limit) {
  return limit == RLIM_INFINITY ? std::numeric_limits<double>::infinity()
                                : static_cast<double>(limit);
}

void AppendStat(const ProcessStat& stat, std::vector<MetricFamily>* families) {
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  const auto page = static_cast<double>(sysconf(_SC_PAGESIZE));
  families->push_back(FamilyOf("process_cpu_seconds_total", "User and system CPU time.",
                               MetricType::Counter, static_cast<double>(stat.cpu_ticks) / ticks));
  families->push_back(FamilyOf("process_threads", "Threads of the process.", MetricType::Gauge,
                               static_cast<double>(stat.threads)));
  families->push_back(FamilyOf("process_virtual_memory_bytes", "Virtual memory of the process.",
                               MetricType::Gauge, static_cast<double>(stat.virtual_bytes)));
  families->push_back(FamilyOf("process_resident_memory_bytes", "Resident memory of the process.",
                               MetricType::Gauge, static_cast<double>(stat.resident_pages) * page));
  static const std::optional<int64_t> boot = BootTime();
  if (!boot.has_value()) return;
  families->push_back(FamilyOf(
      "process_start_time_seconds", "Unix time at which the process started.", MetricType::Gauge,
      static_cast<double>(*boot) + static_cast<double>(stat.start_ticks) / ticks));
}

}  // namespace

std::optional<ProcessStat> ParseProcessStat(const std::string& text) {
  // The line is PID (NAME) STATE ...; NAME may contain blanks and parentheses, later fields do not.
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream words(text.substr(name_end + 1));
  std::string state;
  words >> state;  // field 3 of proc(5)
  int64_t fields[25] = {};
  for (int field = 4; field <= 24; ++field) {
    // The loop ends at field 24, because later fields hold addresses, which may exceed int64_t.
    if (!(words >> fields[field])) return std::nullopt;
  }
  return ProcessStat{.cpu_ticks = fields[14] + fields[15],
                     .threads = fields[20],
                     .start_ticks = fields[22],
                     .virtual_bytes = fields[23],
                     .resident_pages = fields[24]};
}

std::vector<MetricFamily> ProcessFamilies() {
  std::vector<MetricFamily> families;
  if (const auto stat = ParseProcessStat(ContentsOf("/proc/self/stat"))) {
    AppendStat(*stat, &families);
  }
  if (const auto open_files = OpenFiles()) {
    families.push_back(FamilyOf("process_open_fds", "Open file descriptors.", MetricType::Gauge,
                                static_cast<double>(*open_files)));
  }
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    families.push_back(FamilyOf("process_max_fds", "Limit on open file descriptors.",
                                MetricType::Gauge, LimitOf(limit.rlim_cur)));
  }
  if (getrlimit(RLIMIT_AS, &limit) == 0) {
    families.push_back(FamilyOf("process_virtual_memory_max_bytes", "Limit on virtual memory.",
                                MetricType::Gauge, LimitOf(limit.rlim_cur)));
  }
  return families;
}

}  // namespace crout
