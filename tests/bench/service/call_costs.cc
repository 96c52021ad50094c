// SPDX-License-Identifier: Apache-2.0

#include "tests/bench/service/call_costs.h"

#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>

#include "tests/bench/harness/bench_result.h"

namespace crout {
namespace {

using Json = nlohmann::ordered_json;

// Processor seconds of the daemon and of this process, and the number of voluntary context switches
// of the daemon's threads.
struct ProcessorUsage {
  double daemon = 0;
  double daemon_switches = 0;
  double clients = 0;
};

ProcessorUsage ProcessorUsageOf(pid_t daemon) {
  const std::filesystem::path process = "/proc/" + std::to_string(daemon);
  ProcessorUsage spent;
  std::ifstream stat(process / "stat");
  const std::string text(std::istreambuf_iterator<char>(stat), {});
  // The name of the program may contain any character and ends with the last ')'. Field 3 follows.
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  constexpr int kUserTime = 14;
  std::string skipped;
  for (int field = 3; field < kUserTime; ++field) fields >> skipped;
  double user = 0;
  double system = 0;
  fields >> user >> system;
  spent.daemon = (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
  for (const auto& task : std::filesystem::directory_iterator(process / "task")) {
    std::ifstream status(task.path() / "status");
    for (std::string key; status >> key;) {
      double count = 0;
      if (key == "voluntary_ctxt_switches:" && status >> count) spent.daemon_switches += count;
    }
  }
  rusage own;
  getrusage(RUSAGE_SELF, &own);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  spent.clients = seconds(own.ru_utime) + seconds(own.ru_stime);
  return spent;
}

// Returns the record of a kind of call. call(client) makes one call and returns the timings of the
// server's reply, if it has any.
template <class F>
Json CostOf(SmallRequests& requests, const char* what, int64_t n, F call) {
  std::atomic<int64_t> calls = 0;
  // Sums over all calls, in nanoseconds.
  std::atomic<int64_t> waited = 0;
  std::array<std::atomic<int64_t>, std::size(kServerPhases)> phases = {};
  const auto add = [](std::atomic<int64_t>& sum, double seconds) {
    sum += static_cast<int64_t>(1e9 * seconds);
  };
  const ProcessorUsage before = ProcessorUsageOf(requests.daemon());
  const double rate = requests.Throughput([&](Client& client) {
    std::optional<Timings> timings;
    add(waited, Time([&] { timings = call(client); }));
    ++calls;
    if (!timings) return;
    for (size_t i = 0; i < std::size(kServerPhases); ++i)
      add(phases[i], kServerPhases[i].seconds(*timings));
  });
  const ProcessorUsage after = ProcessorUsageOf(requests.daemon());
  const auto each = [&](double sum) { return sum / static_cast<double>(calls); };
  Json row = {{"call", what},
              {"n", n},
              {"batching", requests.batching()},
              {"clients", requests.clients()},
              {"calls_per_second", rate},
              {"daemon_cpu_us", 1e6 * each(after.daemon - before.daemon)},
              {"clients_cpu_us", 1e6 * each(after.clients - before.clients)},
              {"daemon_sleeps", each(after.daemon_switches - before.daemon_switches)},
              {"client_waits_us", 1e-3 * each(static_cast<double>(waited))}};
  if (phases.back() == 0) return row;
  for (size_t i = 0; i < std::size(kServerPhases); ++i) {
    row[kServerPhases[i].name] = 1e-3 * each(static_cast<double>(phases[i]));
  }
  return row;
}

}  // namespace

void AddCallCosts(SmallRequests& calls, Json& rows) {
  const SmallProblem tiny(1);
  const int64_t n = calls.problem().n;
  rows.push_back(CostOf(calls, "nothing", 0, [&](Client& client) {
    calls.DescribeKept(client);
    return std::optional<Timings>();
  }));
  rows.push_back(CostOf(calls, "factorize and solve", 1, [&](Client& client) {
    return std::optional(SmallRequests::FactorAndSolve(client, tiny));
  }));
  rows.push_back(CostOf(calls, "solve", n,
                        [&](Client& client) { return std::optional(calls.Solve(client)); }));
  rows.push_back(CostOf(calls, "factorize and solve", n, [&](Client& client) {
    return std::optional(SmallRequests::FactorAndSolve(client, calls.problem()));
  }));
}

}  // namespace crout
