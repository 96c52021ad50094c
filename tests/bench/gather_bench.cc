// Small calls of many clients that a real croutd runs together, beside the same daemon where each
// runs alone. Prints one JSON object, with the device, the commit and the date:
//   gather_bench [DEVICE [CLIENTS [N]]] > result.json
//
// throughput: FactorizeAndSolve calls a second of `CLIENTS` clients (64), each with a connection of
//             its own and the next call as soon as the last is answered, of order N (64); and
//             calls that compute nothing (DescribeFactor), which bound it.
// latency:    median seconds of the same call by one client.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iostream>
#include <memory>
#include <random>
#include <string>
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

constexpr int kRounds = 5;
constexpr double kRoundSeconds = 2;
constexpr int kLatencyCalls = 2001;

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

void FactorAndSolve(client::Client& client, const Problem& problem) {
  std::vector<double> x(problem.n);
  client::SpanSink sink(absl::MakeSpan(x));
  v1::Factor factor;
  Check(client
            .FactorizeAndSolve(client::MatrixSource::Dense(problem.a, problem.n, problem.n),
                               client::MatrixSource::Dense(problem.b, problem.n, 1), {}, &factor,
                               &sink)
            .status());
}

// Calls a second of all clients together.
template <class Call>
double Throughput(const std::vector<std::unique_ptr<client::Client>>& clients, Call call) {
  std::atomic<bool> over = false;
  std::atomic<int64_t> calls = 0;
  const double seconds = Time([&] {
    std::vector<std::jthread> threads;
    threads.reserve(clients.size());
    for (const auto& client : clients) {
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

nlohmann::ordered_json Bench(const std::string& device, bool gather, int count,
                             const Problem& problem) {
  e2e::Daemon daemon({"--devices=" + device, std::string("--gather=") + (gather ? "on" : "off"),
                      "--log-calls=none"});
  std::vector<std::unique_ptr<client::Client>> clients;
  for (int i = 0; i < count; ++i) clients.push_back(ClientOf(daemon));
  const auto work = [&](client::Client& client) { FactorAndSolve(client, problem); };
  const v1::Factor kept = Check(
      clients[0]->Factorize(client::MatrixSource::Dense(problem.a, problem.n, problem.n), {}, {}));
  const auto empty = [&](client::Client& client) {
    Check(client.Describe(kept.handle()).status());
  };
  for (const auto& client : clients) work(*client);
  std::vector<double> latency;
  for (int k = 0; k < kLatencyCalls; ++k) latency.push_back(Time([&] { work(*clients[0]); }));
  std::vector<double> rates;
  std::vector<double> empty_rates;
  for (int round = 0; round < kRounds; ++round) {
    rates.push_back(Throughput(clients, work));
    empty_rates.push_back(Throughput(clients, empty));
  }
  return {{"gather", gather},
          {"calls_per_second", Median(rates)},
          {"min", *std::min_element(rates.begin(), rates.end())},
          {"max", *std::max_element(rates.begin(), rates.end())},
          {"empty_calls_per_second", Median(empty_rates)},
          {"alone_us", 1e6 * Median(latency)}};
}

DeviceInfo InfoOf([[maybe_unused]] const std::string& name) {
#ifdef CROUT_HAVE_CUDA
  if (name != "host") return Check(cuda::MakeDevice(0, cuda::Options()))->info();
#endif
  return host::MakeDevice({})->info();
}

void Run(const std::string& device, int clients, int64_t n) {
  const Problem problem = MakeProblem(n);
  nlohmann::ordered_json result = ResultHeader("gather", InfoOf(device));
  result["n"] = n;
  result["clients"] = clients;
  result["rounds"] = kRounds;
  for (const bool gather : {true, false}) {
    result["gathered"].push_back(Bench(device, gather, clients, problem));
  }
  std::cout << result.dump(2) << "\n";
}

}  // namespace
}  // namespace crout

int main(int argc, char** argv) {
  crout::Run(argc > 1 ? argv[1] : "host", argc > 2 ? std::stoi(argv[2]) : 64,
             argc > 3 ? std::stoi(argv[3]) : 64);
}
