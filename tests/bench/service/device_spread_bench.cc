// SPDX-License-Identifier: Apache-2.0

// Measures how the service scales over devices. Compares a croutd with one device with a croutd
// with several, in turn in each round. Payloads travel in shared memory. Writes one JSON object
// with the device, the commit and the date: to FILE after each round, so that an interrupted run
// leaves its results, otherwise to standard output at the end.
//   device_spread_bench [--output=FILE] [ONE [ALL [CLIENTS [N [NRHS]]]]]
//
// ONE and ALL are values of `croutd --devices`, by default "cuda:0" and "cuda". CLIENTS threads
// (default 32) each make their next call after the previous reply.
//
//   solves          solves per second with one cached factor of order N (default 8192) and NRHS
//                   right-hand sides (default 256)
//   factorizations  factorizations of order N per second
//
// `gain` is the ratio of the rates of a round. `device_copies` is the number of copies of the
// factor at the end, from the metrics of the daemon.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <iterator>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/bench/harness/bench_result.h"
#include "tests/bench/harness/named_device.h"
#include "tests/server/scrape.h"

// After the kernels, whose types have names of the client's types.
#include "crout/client.h"
#include "tests/e2e/harness/daemon.h"

namespace crout {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kRounds = 5;
constexpr std::chrono::seconds kRoundTime{5};
constexpr int64_t kSpareBytes = int64_t{1} << 30;

struct Load {
  int clients;
  int64_t n;
  int64_t nrhs;
};

// A daemon, its client, and the rates of its rounds.
class Subject {
 public:
  Subject(const std::string& devices, const Load& load)
      : devices_(devices),
        load_(load),
        daemon_({"--devices=" + devices, "--listen=unix:" + directory_.File("crout.sock"),
                 absl::StrCat("--max-shared-memory=", 4 * SharedBytes()),
                 absl::StrCat("--host-budget=", 6 * SharedBytes()),
                 absl::StrCat("--queue-capacity=", 4 * load.clients), "--log-calls=none"}),
        client_(Connect(daemon_)),
        a_(client_->Allocate<double>(load.n * load.n)) {
    std::mt19937_64 generator(1);
    for (int64_t i = 0; i < load.n * load.n; ++i) {
      a_[i] = static_cast<double>(generator() >> 11) * 0x1p-52 - 1;
    }
    for (int i = 0; i < load.clients; ++i) {
      b_.push_back(client_->Allocate<double>(load.n * load.nrhs));
      for (int64_t k = 0; k < load.n * load.nrhs; ++k) b_.back()[k] = 1;
      x_.push_back(client_->Allocate<double>(load.n * load.nrhs));
    }
    handle_ = Check(Factor()).handle;
    // The first calls map memory, and the copies of the factor are made.
    SolvesPerSecond();
    FactorizationsPerSecond();
  }

  void RunRound() {
    solves_.push_back(SolvesPerSecond());
    factorizations_.push_back(FactorizationsPerSecond());
  }

  Json Summary() {
    Json row = {{"devices", devices_}};
    AddSpread(solves_, "solves_per_second", row);
    AddSpread(factorizations_, "factorizations_per_second", row);
    row["device_copies"] =
        SampleOf(daemon_.ScrapeMetrics(), "crout_cache_device_copies").value_or(-1);
    return row;
  }

  // Returns the ratios of the rates of this subject and those of `one`, round by round.
  Json Beside(const Subject& one) const {
    Json row = {{"rounds", solves_.size()}};
    AddSpread(Ratios(solves_, one.solves_), "gain_of_solves", row);
    AddSpread(Ratios(factorizations_, one.factorizations_), "gain_of_factorizations", row);
    return row;
  }

 private:
  static std::unique_ptr<Client> Connect(const e2e::Daemon& daemon) {
    ClientOptions options;
    options.server = daemon.address();
    return Check(Client::Connect(options));
  }
  static std::vector<double> Ratios(const std::vector<double>& over,
                                    const std::vector<double>& under) {
    std::vector<double> ratios;
    for (size_t round = 0; round < over.size(); ++round)
      ratios.push_back(over[round] / under[round]);
    return ratios;
  }
  static void AddSpread(const std::vector<double>& values, const std::string& name, Json& row) {
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    row[name] = Median(values);
    row["least_" + name] = *least;
    row["most_" + name] = *most;
  }

  // Bytes of all payloads, and memory for the jobs of the host device.
  int64_t SharedBytes() const {
    const int64_t matrix = load_.n * load_.n;
    const int64_t columns = 2 * load_.clients * load_.n * load_.nrhs;
    return static_cast<int64_t>(sizeof(double)) * (matrix + columns) + kSpareBytes;
  }

  absl::StatusOr<FactorDescription> Factor() {
    return client_->Factor(
        MatrixSource::Dense(absl::MakeConstSpan(a_.get(), load_.n * load_.n), load_.n, load_.n));
  }
  double SolvesPerSecond() {
    return Rate([this](int i) {
      const auto count = static_cast<size_t>(load_.n * load_.nrhs);
      SpanSink sink(absl::MakeSpan(x_[i].get(), count));
      Check(client_
                ->Solve(handle_,
                        MatrixSource::Dense(absl::MakeConstSpan(b_[i].get(), count), load_.n,
                                            load_.nrhs),
                        {}, &sink)
                .status());
    });
  }
  double FactorizationsPerSecond() {
    return Rate([this](int) { Check(client_->Release(Check(Factor()).handle)); });
  }
  // Returns the calls per second of all threads together.
  template <class Call>
  double Rate(const Call& call) {
    std::atomic<bool> over = false;
    std::atomic<int64_t> calls = 0;
    const double seconds = Time([&] {
      std::vector<std::jthread> threads;
      for (int i = 0; i < load_.clients; ++i) {
        threads.emplace_back([&, i] {
          while (!over) {
            call(i);
            ++calls;
          }
        });
      }
      std::this_thread::sleep_for(kRoundTime);
      over = true;
    });
    return static_cast<double>(calls) / seconds;
  }

  const std::string devices_;
  const Load load_;
  e2e::TempDir directory_;
  e2e::Daemon daemon_;
  const std::unique_ptr<Client> client_;
  const std::shared_ptr<double[]> a_;
  std::vector<std::shared_ptr<double[]>> b_;  // one for each thread
  std::vector<std::shared_ptr<double[]>> x_;
  std::string handle_;
  std::vector<double> solves_;          // per second, one value per round
  std::vector<double> factorizations_;  // the same
};

void Run(const std::string& one, const std::string& all, const Load& load,
         const std::string& output) {
  Json result = ResultHeader("device_spread", OpenDevice(one)->info());
  result["cores"] = CoresOfProcess();
  result["n"] = load.n;
  result["nrhs"] = load.nrhs;
  result["clients"] = load.clients;
  Subject on_one(one, load);
  Subject on_all(all, load);
  for (int round = 0; round < kRounds; ++round) {
    on_one.RunRound();
    on_all.RunRound();
    result["throughput"] = Json::array({on_one.Summary(), on_all.Summary()});
    result["gain"] = Json::array({on_all.Beside(on_one)});
    WriteResult(result, output);
  }
  if (output.empty()) std::cout << FormatResult(result);
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
  constexpr const char* kDefaults[] = {"cuda:0", "cuda", "32", "8192", "256"};
  for (size_t k = words.size(); k < std::size(kDefaults); ++k) words.emplace_back(kDefaults[k]);
  Run(words[0], words[1], {std::stoi(words[2]), std::stoll(words[3]), std::stoll(words[4])},
      output);
  return 0;
}

}  // namespace
}  // namespace crout

int main(int argc, char** argv) { return crout::Main(argc, argv); }
