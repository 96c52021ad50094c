// Small calls of many clients that a real croutd runs together, beside the same daemon where each
// runs alone: two daemons, in turn, round by round. One JSON object, with the device, the commit
// and the date: to FILE, which is written anew after each round, so that a run that is ended early
// keeps what it has; else to standard output.
//   gather_bench [--output=FILE] [DEVICE [CLIENTS [N]]]
//
// throughput: FactorizeAndSolve calls a second of `CLIENTS` clients (64), each with a connection of
//             its own and the next call as soon as the last is answered, of order N (64); and
//             calls that compute nothing (DescribeFactor), which bound it.
// latency:    median seconds of the same call by one client, and of what the server says that its
//             phases took.
// costs:      of one call by as many clients, from a call of nothing to the whole one: processor
//             time on both sides, how often threads of the daemon went to sleep, and what the
//             server says that its phases took.

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "crout/client.h"
#include "kernels/host/device/host_device.h"
#include "nlohmann/json.hpp"
#include "tests/bench/bench_result.h"
#include "tests/e2e/daemon.h"
#ifdef CROUT_HAVE_CUDA
#include "kernels/cuda/device/cuda_device.h"
#endif

namespace crout {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kRounds = 5;
constexpr double kRoundSeconds = 1.5;
constexpr int kLatencyCalls = 401;  // of a round

struct Problem {
  int64_t n = 64;
  std::vector<double> a;
  std::vector<double> b;
};

Problem MakeProblem(int64_t n) {
  Problem problem{n, std::vector<double>(n * n), std::vector<double>(n, 1.0)};
  std::mt19937_64 generator(1);
  for (double& v : problem.a) v = static_cast<double>(generator() >> 11) * 0x1p-52 - 1;
  return problem;
}

std::unique_ptr<client::Client> ClientOf(const e2e::Daemon& daemon) {
  client::ClientOptions options;
  options.server = daemon.address();
  return Check(client::Client::Connect(options));
}

v1::Timings FactorAndSolve(client::Client& client, const Problem& problem) {
  std::vector<double> x(problem.n);
  client::SpanSink sink(absl::MakeSpan(x));
  v1::Factor factor;
  return Check(client.FactorizeAndSolve(
                   client::MatrixSource::Dense(problem.a, problem.n, problem.n),
                   client::MatrixSource::Dense(problem.b, problem.n, 1), {}, &factor, &sink))
      .timings();
}

// What the server says that phases of a call took, in seconds.
struct Phase {
  const char* name;
  double (*seconds)(const v1::Timings& timings);
};
constexpr Phase kPhases[] = {
    {"receive_us", [](const v1::Timings& t) { return t.receive_seconds(); }},
    {"queue_us", [](const v1::Timings& t) { return t.queue_seconds(); }},
    {"work_us",
     [](const v1::Timings& t) {
       return t.host_to_device_seconds() + t.factor_seconds() + t.solve_seconds() +
              t.device_to_host_seconds();
     }},
    {"server_us", [](const v1::Timings& t) { return t.total_seconds(); }},
};

v1::Timings Solve(client::Client& client, const std::string& handle, const Problem& problem) {
  std::vector<double> x(problem.n);
  client::SpanSink sink(absl::MakeSpan(x));
  return Check(
             client.Solve(handle, client::MatrixSource::Dense(problem.b, problem.n, 1), {}, &sink))
      .timings();
}

// What the processor spent on a process, in seconds, and how often its threads went to sleep.
struct Spent {
  double daemon = 0;
  double daemon_switches = 0;
  double clients = 0;
};

Spent SpentBy(pid_t daemon) {
  const std::filesystem::path process = "/proc/" + std::to_string(daemon);
  Spent spent;
  std::ifstream stat(process / "stat");
  const std::string text(std::istreambuf_iterator<char>(stat), {});
  // Behind the name, which may hold anything, from the third field on.
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

// A daemon, with calls gathered or not, and its clients.
class Subject {
 public:
  using Call = std::function<void(client::Client&)>;

  Subject(const std::string& device, bool gather, int clients, const Problem& problem)
      : gather_(gather),
        problem_(problem),
        daemon_({"--devices=" + device, std::string("--gather=") + (gather ? "on" : "off"),
                 "--log-calls=none"}) {
    for (int i = 0; i < clients; ++i) clients_.push_back(ClientOf(daemon_));
    kept_ = Check(clients_[0]->Factorize(
                      client::MatrixSource::Dense(problem.a, problem.n, problem.n), {}, {}))
                .handle();
    for (const auto& client : clients_) FactorAndSolve(*client, problem_);
  }

  void RunRound() {
    rates_.push_back(Throughput([&](client::Client& client) { FactorAndSolve(client, problem_); }));
    empty_rates_.push_back(Throughput([&](client::Client& client) { DescribeKept(client); }));
    std::vector<double> seconds;
    std::array<std::vector<double>, std::size(kPhases)> phases;
    for (int k = 0; k < kLatencyCalls; ++k) {
      v1::Timings timings;
      seconds.push_back(Time([&] { timings = FactorAndSolve(*clients_[0], problem_); }));
      for (size_t i = 0; i < std::size(kPhases); ++i) {
        phases[i].push_back(kPhases[i].seconds(timings));
      }
    }
    alone_.push_back(Median(std::move(seconds)));
    for (size_t i = 0; i < std::size(kPhases); ++i) {
      alone_phases_[i].push_back(Median(std::move(phases[i])));
    }
  }

  // A record for each kind of call.
  void AddCosts(Json& rows) {
    const Problem tiny = MakeProblem(1);
    rows.push_back(CostOf("nothing", 0, [&](client::Client& client) {
      DescribeKept(client);
      return std::optional<v1::Timings>();
    }));
    rows.push_back(CostOf("factorize and solve", 1, [&](client::Client& client) {
      return std::optional(FactorAndSolve(client, tiny));
    }));
    rows.push_back(CostOf("solve", problem_.n, [&](client::Client& client) {
      return std::optional(Solve(client, kept_, problem_));
    }));
    rows.push_back(CostOf("factorize and solve", problem_.n, [&](client::Client& client) {
      return std::optional(FactorAndSolve(client, problem_));
    }));
  }

  Json Summary() const {
    Json row = {{"gather", gather_}};
    AddSpread(rates_, 1, "calls_per_second", row);
    AddSpread(empty_rates_, 1, "empty_calls_per_second", row);
    AddSpread(alone_, 1e6, "alone_us", row);
    for (size_t i = 0; i < std::size(kPhases); ++i) {
      row[std::string("alone_") + kPhases[i].name] = 1e6 * Median(alone_phases_[i]);
    }
    return row;
  }

  // This one beside the other, by rounds.
  Json Beside(const Subject& other) const {
    std::vector<double> gain;
    std::vector<double> of_empty;
    std::vector<double> extra;
    for (size_t round = 0; round < rates_.size(); ++round) {
      gain.push_back(rates_[round] / other.rates_[round]);
      of_empty.push_back(rates_[round] / empty_rates_[round]);
      extra.push_back(alone_[round] - other.alone_[round]);
    }
    Json row = {{"n", problem_.n}, {"clients", clients_.size()}, {"rounds", rates_.size()}};
    AddSpread(gain, 1, "gain", row);
    AddSpread(of_empty, 1, "of_empty_calls", row);
    AddSpread(extra, 1e6, "alone_extra_us", row);
    return row;
  }

 private:
  static void AddSpread(const std::vector<double>& values, double scale, const std::string& name,
                        Json& row) {
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    row[name] = scale * Median(values);
    row["least_" + name] = scale * *least;
    row["most_" + name] = scale * *most;
  }

  void DescribeKept(client::Client& client) const { Check(client.Describe(kept_).status()); }

  // Calls a second of all clients together.
  double Throughput(const Call& call) {
    std::atomic<bool> over = false;
    std::atomic<int64_t> calls = 0;
    const double seconds = Time([&] {
      std::vector<std::jthread> threads;
      threads.reserve(clients_.size());
      for (const auto& client : clients_) {
        threads.emplace_back([&, client = client.get()] {
          while (!over) {
            call(*client);
            ++calls;
          }
        });
      }
      std::this_thread::sleep_for(std::chrono::duration<double>(kRoundSeconds));
      over = true;
    });
    return static_cast<double>(calls) / seconds;
  }

  // `call(client)` is what the server says of it, if it says anything.
  template <class F>
  Json CostOf(const char* what, int64_t n, F call) {
    std::atomic<int64_t> calls = 0;
    // Of all calls together, in nanoseconds.
    std::atomic<int64_t> waited = 0;
    std::array<std::atomic<int64_t>, std::size(kPhases)> phases = {};
    const auto add = [](std::atomic<int64_t>& sum, double seconds) {
      sum += static_cast<int64_t>(1e9 * seconds);
    };
    const Spent before = SpentBy(daemon_.process().pid());
    const double rate = Throughput([&](client::Client& client) {
      std::optional<v1::Timings> timings;
      add(waited, Time([&] { timings = call(client); }));
      ++calls;
      if (!timings) return;
      for (size_t i = 0; i < std::size(kPhases); ++i) add(phases[i], kPhases[i].seconds(*timings));
    });
    const Spent after = SpentBy(daemon_.process().pid());
    const auto each = [&](double sum) { return sum / static_cast<double>(calls); };
    Json row = {{"call", what},
                {"n", n},
                {"gather", gather_},
                {"clients", clients_.size()},
                {"calls_per_second", rate},
                {"daemon_cpu_us", 1e6 * each(after.daemon - before.daemon)},
                {"clients_cpu_us", 1e6 * each(after.clients - before.clients)},
                {"daemon_sleeps", each(after.daemon_switches - before.daemon_switches)},
                {"client_waits_us", 1e-3 * each(static_cast<double>(waited))}};
    if (phases.back() == 0) return row;
    for (size_t i = 0; i < std::size(kPhases); ++i) {
      row[kPhases[i].name] = 1e-3 * each(static_cast<double>(phases[i]));
    }
    return row;
  }

  const bool gather_;
  const Problem& problem_;
  e2e::Daemon daemon_;
  std::vector<std::unique_ptr<client::Client>> clients_;
  std::string kept_;  // a factor
  // Of each round.
  std::vector<double> rates_;
  std::vector<double> empty_rates_;
  std::vector<double> alone_;
  std::array<std::vector<double>, std::size(kPhases)> alone_phases_;
};

DeviceInfo InfoOf([[maybe_unused]] const std::string& name) {
#ifdef CROUT_HAVE_CUDA
  if (name != "host") return Check(cuda::MakeDevice(0, cuda::Options()))->info();
#endif
  return host::MakeDevice({})->info();
}

void Run(const std::string& device, int clients, int64_t n, const std::string& output) {
  const Problem problem = MakeProblem(n);
  Json result = ResultHeader("gather", InfoOf(device));
  result["cores"] = CoresOfProcess();
  result["n"] = n;
  result["clients"] = clients;
  result["rounds"] = kRounds;
  Subject together(device, true, clients, problem);
  Subject apart(device, false, clients, problem);
  for (int round = 0; round < kRounds; ++round) {
    together.RunRound();
    apart.RunRound();
    result["gathered"] = Json::array({together.Summary(), apart.Summary()});
    result["gathering"] = Json::array({together.Beside(apart)});
    WriteResult(result, output);
  }
  for (Subject* const subject : {&together, &apart}) {
    subject->AddCosts(result["call_costs"]);
    WriteResult(result, output);
  }
  if (output.empty()) std::cout << result.dump(2) << "\n";
}

int Main(int argc, char** argv) {
  constexpr std::string_view kOutput = "--output=";
  std::string output;
  std::vector<std::string> words;
  for (const std::string_view argument : std::span(argv, argv + argc).subspan(1)) {
    if (argument.starts_with(kOutput)) {
      output = argument.substr(kOutput.size());
    } else {
      words.emplace_back(argument);
    }
  }
  constexpr const char* kDefaults[] = {"host", "64", "64"};
  for (size_t k = words.size(); k < std::size(kDefaults); ++k) words.emplace_back(kDefaults[k]);
  Run(words[0], std::stoi(words[1]), std::stoi(words[2]), output);
  return 0;
}

}  // namespace
}  // namespace crout

int main(int argc, char** argv) { return crout::Main(argc, argv); }
