// SPDX-License-Identifier: Apache-2.0

// Measures the service from outside, with a croutd on this machine, over TCP and over a Unix
// socket. Prints one JSON object with the device, the commit and the date:
//   service_bench [DEVICE [PART...]] > result.json
//
//   concurrency  factorizations of order 512 by one to eight concurrent clients
//   payload      the transfer of a 512 MiB matrix, with new contents each time, from the client's
//                buffer to memory from which the device can factor. A solution checks all entries.
//   series       a step of a time series for the client and in the server. The client sends the
//                full matrix, a change of 0.1 % of its entries, or a change of rank 8.
//   batch        Factorize of a batch of 1000 matrices of orders 1 to 64 for the client, and the
//                server's time to receive it
//   latency      the time from the last byte of a 256 x 256 matrix to the reply for gRPC, and of
//                the vendor's routine alone on the same device

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "kernels/algorithm_registry.h"
#include "nlohmann/json.hpp"
#include "tests/bench/harness/bench_result.h"
#include "tests/bench/harness/named_device.h"

// After the kernels, whose types have names of the client's types.
#include "crout/series.h"
#include "tests/e2e/harness/daemon.h"

namespace crout {
namespace {

constexpr int64_t kPayloadOrder = 8192;  // 512 MiB of float64
constexpr int kPayloadRounds = 5;
constexpr int64_t kLatencyOrder = 256;
constexpr int kLatencyRounds = 301;
constexpr int64_t kConcurrencyOrder = 512;
constexpr int kConcurrencyJobs = 40;  // number per client and round
constexpr int kConcurrencyRounds = 7;

// Fills `a` (n x n) with entries uniform in [-1, 1) that depend on `seed`. n is added to the
// diagonal, so that solutions are accurate.
void Fill(uint64_t seed, int64_t n, std::vector<double>& a) {
  std::mt19937_64 generator(seed);
  for (double& v : a) v = static_cast<double>(generator() >> 11) * 0x1p-52 - 1;
  for (int64_t i = 0; i < n; ++i) a[i * (n + 1)] += static_cast<double>(n);
}

std::vector<double> RowSums(const std::vector<double>& a, int64_t n) {
  std::vector<double> sums(n, 0.0);
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < n; ++i) sums[i] += a[i + j * n];
  }
  return sums;
}

int64_t ResidentBytes(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string key; status >> key;) {
    int64_t kib = 0;
    if (key == "VmRSS:" && status >> kib) return kib * 1024;
  }
  return 0;
}

std::unique_ptr<Client> ClientOf(const std::string& address) {
  ClientOptions options;
  options.server = address;
  return Check(Client::Connect(options));
}

struct PayloadRound {
  double gigabytes_per_second = 0;
  double rss_growth_mib = 0;  // growth after the last byte was sent, without the payload
};

PayloadRound RunPayload(Client& client, pid_t daemon, const std::vector<double>& a) {
  const int64_t n = kPayloadOrder;
  const int64_t before = ResidentBytes(daemon);
  int64_t at_end = before;
  CallOptions call;
  call.on_progress = [&](const ProgressUpdate& update) {
    if (!update.job && update.bytes_sent == update.bytes_total) at_end = ResidentBytes(daemon);
  };
  FactorOptions options;
  options.equilibrate = Equilibrate::kOff;
  const FactorDescription factor =
      Check(client.Factor(MatrixSource::Dense(a, n, n), options, {}, call));
  // The solution of A x = A 1 is 1 only if each entry arrived at its index.
  const std::vector<double> b = RowSums(a, n);
  std::vector<double> x(n);
  SpanSink sink(absl::MakeSpan(x));
  Check(client.Solve(factor.handle, MatrixSource::Dense(b, n, 1), {}, &sink).status());
  for (const double v : x) {
    if (!(std::abs(v - 1) < 1e-9)) Check(absl::DataLossError("the matrix did not arrive whole"));
  }
  Check(client.Release(factor.handle));
  const auto bytes = static_cast<double>(a.size() * sizeof(double));
  return {bytes / factor.timings.receive_seconds * 1e-9,
          (static_cast<double>(at_end - before) - bytes) / (1 << 20)};
}

nlohmann::ordered_json BenchPayload(const std::string& device) {
  nlohmann::ordered_json cases = nlohmann::ordered_json::array();
  e2e::TempDir directory;
  const std::string socket = "unix:" + directory.File("crout.sock");
  std::vector<double> a(kPayloadOrder * kPayloadOrder);
  uint64_t seed = 0;
  for (const std::string transport : {"tcp", "unix"}) {
    e2e::Daemon daemon({"--devices=" + device, "--host-budget=8GiB",
                        "--listen=" + (transport == "unix" ? socket : "127.0.0.1:0")});
    const auto client = ClientOf(daemon.address());
    std::vector<double> rates;
    double rss_growth = -1e9;
    for (int round = 0; round < kPayloadRounds; ++round) {
      Fill(++seed, kPayloadOrder, a);
      const PayloadRound result = RunPayload(*client, daemon.process().pid(), a);
      rates.push_back(result.gigabytes_per_second);
      // In later rounds, the daemon's memory is already mapped.
      if (round == 0) rss_growth = result.rss_growth_mib;
    }
    cases.push_back({{"transport", transport},
                     {"mib", kPayloadOrder * kPayloadOrder * 8 >> 20},
                     {"rounds", kPayloadRounds},
                     {"gb_per_s_median", Median(rates)},
                     {"gb_per_s_min", *std::min_element(rates.begin(), rates.end())},
                     {"gb_per_s_max", *std::max_element(rates.begin(), rates.end())},
                     {"rss_beyond_payload_mib", rss_growth}});
  }
  return cases;
}

// Returns the median seconds of the vendor's getrf alone, without allocations.
double BareGetrf(Device& device, const std::vector<double>& a) {
  const int64_t n = kLatencyOrder;
  auto context = Check(device.CreateContext());
  const LuAlgorithm* getrf = Check(FindAlgorithm(device, "getrf", DType::kFloat64, n));
  const size_t bytes = a.size() * sizeof(double);
  const Buffer lu = Check(device.memory().Allocate(bytes));
  const Buffer ipiv = Check(device.memory().Allocate(n * sizeof(int64_t)));
  const Buffer workspace =
      Check(device.memory().Allocate(Check(getrf->WorkspaceBytes(DType::kFloat64, n, {}))));
  std::vector<double> times;
  for (int round = 0; round < kLatencyRounds; ++round) {
    Check(context->ops().CopyToDevice(a.data(), lu.data(), bytes));
    Check(context->Synchronize());
    times.push_back(Time([&] {
      Check(getrf->Factor(*context, {lu.data(), DType::kFloat64, n, n, n}, ipiv.as<int64_t>(),
                          {workspace.data(), workspace.size()}, {}, [] { return false; }));
      Check(context->Synchronize());
    }));
  }
  return Median(std::move(times));
}

nlohmann::ordered_json BenchLatency(const std::string& device_name) {
  const int64_t n = kLatencyOrder;
  std::vector<double> a(n * n);
  Fill(1, n, a);
  std::vector<double> after_last_byte;
  std::vector<double> round_trip;
  {
    e2e::Daemon daemon({"--devices=" + device_name});
    const auto client = ClientOf(daemon.address());
    for (int round = -20; round < kLatencyRounds; ++round) {  // the first are warm-up
      FactorDescription factor;
      const double seconds =
          Time([&] { factor = Check(client->Factor(MatrixSource::Dense(a, n, n), {}, {})); });
      Check(client->Release(factor.handle));
      if (round < 0) continue;
      round_trip.push_back(seconds);
      after_last_byte.push_back(factor.timings.total_seconds - factor.timings.receive_seconds);
    }
  }
  const double bare = BareGetrf(*OpenDevice(device_name), a);
  const double served = Median(after_last_byte);
  return {{"n", n},
          {"rounds", kLatencyRounds},
          {"bare_getrf_us", 1e6 * bare},
          {"last_byte_to_reply_us", 1e6 * served},
          {"extra_us", 1e6 * (served - bare)},
          {"round_trip_us", 1e6 * Median(round_trip)}};
}

// Returns the factorizations per second of `clients` concurrent clients, each with a connection.
double Throughput(const e2e::Daemon& daemon, int clients, const std::vector<double>& a) {
  std::vector<std::unique_ptr<Client>> connections;
  for (int i = 0; i < clients; ++i) connections.push_back(ClientOf(daemon.address()));
  const auto source = MatrixSource::Dense(a, kConcurrencyOrder, kConcurrencyOrder);
  const auto run = [&](Client& client, int jobs) {
    for (int job = 0; job < jobs; ++job) {
      Check(client.Release(Check(client.Factor(source, {}, {})).handle));
    }
  };
  for (const auto& connection : connections) run(*connection, 2);
  const double seconds = Time([&] {
    std::vector<std::jthread> threads;
    for (const auto& connection : connections) {
      threads.emplace_back([&] { run(*connection, kConcurrencyJobs); });
    }
  });
  return clients * kConcurrencyJobs / seconds;
}

nlohmann::ordered_json BenchConcurrency(const std::string& device_name) {
  std::vector<double> a(kConcurrencyOrder * kConcurrencyOrder);
  Fill(1, kConcurrencyOrder, a);
  e2e::Daemon daemon({"--devices=" + device_name});
  nlohmann::ordered_json cases = nlohmann::ordered_json::array();
  double serial = 0;
  for (const int clients : {1, 2, 4, 8}) {
    std::vector<double> rates;
    for (int round = 0; round < kConcurrencyRounds; ++round) {
      rates.push_back(Throughput(daemon, clients, a));
    }
    if (clients == 1) serial = Median(rates);
    cases.push_back({{"clients", clients},
                     {"factorizations_per_second", Median(rates)},
                     {"min", *std::min_element(rates.begin(), rates.end())},
                     {"max", *std::max_element(rates.begin(), rates.end())},
                     {"over_serial", Median(rates) / serial}});
  }
  return {{"n", kConcurrencyOrder}, {"rounds", kConcurrencyRounds}, {"cases", cases}};
}

struct SeriesRound {
  double step = 0;  // seconds, measured by the client
  double receive = 0;
  double work = 0;  // seconds in the server without receiving and sending
};

// Runs a series: two steps with full matrices, then `steps` steps. change(step, a, send) changes
// the matrix, passes the new matrix or its change to `send`, and returns the seconds that send
// returns.
template <class Change>
std::vector<SeriesRound> RunSeries(std::shared_ptr<Client> client, int64_t n, int steps,
                                   Change change) {
  std::vector<double> a(n * n);
  Fill(1, n, a);
  const std::vector<double> b(n, 1.0);
  const auto rhs = MatrixSource::Dense(b, n, 1);
  std::vector<double> x(n);
  SpanSink sink(absl::MakeSpan(x));
  Series series(std::move(client));
  for (int warm = 0; warm < 2; ++warm) {
    Check(series.Step(MatrixSource::Dense(a, n, n), rhs, &sink).status());
  }
  std::vector<SeriesRound> rounds;
  for (int step = 0; step < steps; ++step) {
    SeriesResult result;
    const double seconds = change(step, a, [&](const auto& arriving) {
      return Time([&] { result = Check(series.Step(arriving, rhs, &sink)).result; });
    });
    if (!result.accurate) Check(absl::DataLossError("a step is not accurate"));
    const Timings& timings = result.timings;
    rounds.push_back({seconds, timings.receive_seconds,
                      timings.host_to_device_seconds + timings.factor_seconds +
                          timings.solve_seconds + timings.device_to_host_seconds});
  }
  return rounds;
}

nlohmann::ordered_json Describe(const char* sent, int64_t n, size_t bytes,
                                const std::vector<SeriesRound>& rounds) {
  const auto median = [&](auto field) {
    std::vector<double> values;
    for (const SeriesRound& round : rounds) values.push_back(1e3 * field(round));
    return Median(std::move(values));
  };
  return {{"n", n},
          {"sent", sent},
          {"bytes", bytes},
          {"steps", rounds.size()},
          {"step_ms", median([](const SeriesRound& r) { return r.step; })},
          {"receive_ms", median([](const SeriesRound& r) { return r.receive; })},
          {"work_ms", median([](const SeriesRound& r) { return r.work; })}};
}

nlohmann::ordered_json BenchSeries(const std::string& device_name) {
  constexpr int kSteps = 20;
  constexpr double kDrift = 1e-4;
  constexpr int64_t kRank = 8;
  nlohmann::ordered_json cases = nlohmann::ordered_json::array();
  e2e::Daemon daemon({"--devices=" + device_name, "--host-budget=12GiB"});
  const std::shared_ptr<Client> client = ClientOf(daemon.address());
  std::mt19937_64 generator(7);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (const int64_t n : {int64_t{2048}, device_name == "host" ? int64_t{3000} : int64_t{8192}}) {
    const auto whole = [&](int, std::vector<double>& a, const auto& send) {
      for (int64_t k = 0; k < n * n; k += 17) a[k] += kDrift * uniform(generator);
      return send(MatrixSource::Dense(a, n, n));
    };
    cases.push_back(
        Describe("all values", n, n * n * sizeof(double), RunSeries(client, n, kSteps, whole)));
    const int64_t count = n * n / 1000;
    const auto entries = [&](int step, std::vector<double>& a, const auto& send) {
      std::vector<int32_t> rows;
      std::vector<int32_t> cols;
      std::vector<double> values;
      for (int64_t k = 0; k < count; ++k) {
        const int64_t at = (k * 997 + step) % (n * n);  // new positions in each step
        rows.push_back(static_cast<int32_t>(at % n));
        cols.push_back(static_cast<int32_t>(at / n));
        values.push_back(a[at] += kDrift * uniform(generator));
      }
      return send(MatrixChange::Entries<double>(rows, cols, values));
    };
    cases.push_back(
        Describe("0.1 % of the entries", n, count * 16, RunSeries(client, n, kSteps, entries)));
    const auto low_rank = [&](int, std::vector<double>&, const auto& send) {
      std::vector<double> u(n * kRank);
      std::vector<double> v(n * kRank);
      for (double& value : u) value = kDrift * uniform(generator);
      for (double& value : v) value = uniform(generator);
      return send(MatrixChange::LowRank<double>(u, v, n, kRank));
    };
    cases.push_back(Describe("rank 8", n, 2 * n * kRank * sizeof(double),
                             RunSeries(client, n, kSteps, low_rank)));
  }
  return cases;
}

nlohmann::ordered_json BenchBatch(const std::string& device_name) {
  constexpr int kMembers = 1000;
  constexpr int kLargest = 64;
  constexpr int kRounds = 101;
  std::mt19937_64 generator(5);
  std::uniform_int_distribution<int64_t> order(1, kLargest);
  std::vector<std::vector<double>> members(kMembers);
  BatchSource batch;
  size_t bytes = 0;
  for (std::vector<double>& a : members) {
    const int64_t n = order(generator);
    a.resize(n * n);
    Fill(generator(), n, a);
    batch.Add(a.data(), n, n);
    bytes += a.size() * sizeof(double);
  }
  e2e::Daemon daemon({"--devices=" + device_name});
  const auto client = ClientOf(daemon.address());
  std::vector<double> calls;
  std::vector<double> receive;
  for (int round = -10; round < kRounds; ++round) {  // the first are warm-up
    FactorDescription factor;
    const double seconds =
        Time([&] { factor = Check(client->Factor(MatrixSource::Batch(batch))); });
    Check(client->Release(factor.handle));
    if (round < 0) continue;
    calls.push_back(seconds);
    receive.push_back(factor.timings.receive_seconds);
  }
  return {{"members", kMembers},
          {"largest", kLargest},
          {"bytes", bytes},
          {"rounds", kRounds},
          {"call_ms", 1e3 * Median(calls)},
          {"receive_ms", 1e3 * Median(receive)},
          {"of_receive", Median(calls) / Median(receive)}};
}

int Main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "host";
  const std::vector<std::string> parts(argv + std::min(argc, 2), argv + argc);
  const auto wanted = [&](const char* part) {
    return parts.empty() || std::find(parts.begin(), parts.end(), part) != parts.end();
  };
  nlohmann::ordered_json result = ResultHeader("service", OpenDevice(name)->info());
  result["cores"] = CoresOfProcess();
  if (wanted("latency")) result["latency"] = BenchLatency(name);
  if (wanted("concurrency")) result["concurrency"] = BenchConcurrency(name);
  if (wanted("series")) result["series"] = BenchSeries(name);
  if (wanted("batch")) result["batch"] = BenchBatch(name);
  if (wanted("payload")) result["payload"] = BenchPayload(name);
  std::cout << FormatResult(result);
  return 0;
}

}  // namespace
}  // namespace crout

int main(int argc, char** argv) { return crout::Main(argc, argv); }
