// SPDX-License-Identifier: Apache-2.0

// Measures dynamic batching of small requests. Compares a croutd that batches the requests of many
// clients with a croutd that runs each request alone, in turn in each round. Writes one JSON object
// with the device, the commit and the date: to FILE after each round, so that an interrupted run
// leaves its results, otherwise to standard output at the end.
//   dynamic_batch_bench [--output=FILE] [DEVICE [CLIENTS [N]]]
//
//   throughput  FactorizeAndSolve calls of order N (default 64) per second by CLIENTS clients
//               (default 64). Each client has its own connection and makes its next call after the
//               previous reply. DescribeFactor, which computes nothing, is an upper bound.
//   latency     median seconds of the same call by one client, and of its phases in the server
//   costs       costs per call of several kinds of calls (call_costs.h), by CLIENTS clients

#include <algorithm>
#include <array>
#include <cstdint>
#include <iostream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/bench/harness/bench_result.h"
#include "tests/bench/harness/named_device.h"
#include "tests/bench/service/call_costs.h"
#include "tests/bench/service/small_requests.h"

namespace crout {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kRounds = 5;
constexpr int kLatencyCalls = 401;  // number per round

// A daemon and its results: throughput of all clients, and latency of one client.
class Subject {
 public:
  Subject(const std::string& device, bool batching, int clients, const SmallProblem& problem)
      : calls_(device, batching, clients, problem) {}

  SmallRequests& calls() { return calls_; }

  void RunRound() {
    const SmallProblem& problem = calls_.problem();
    rates_.push_back(
        calls_.Throughput([&](Client& client) { SmallRequests::FactorAndSolve(client, problem); }));
    empty_rates_.push_back(calls_.Throughput([&](Client& client) { calls_.DescribeKept(client); }));
    std::vector<double> seconds;
    std::array<std::vector<double>, std::size(kServerPhases)> phases;
    for (int k = 0; k < kLatencyCalls; ++k) {
      Timings timings;
      seconds.push_back(
          Time([&] { timings = SmallRequests::FactorAndSolve(calls_.first(), problem); }));
      for (size_t i = 0; i < std::size(kServerPhases); ++i) {
        phases[i].push_back(kServerPhases[i].seconds(timings));
      }
    }
    alone_.push_back(Median(std::move(seconds)));
    for (size_t i = 0; i < std::size(kServerPhases); ++i) {
      alone_phases_[i].push_back(Median(std::move(phases[i])));
    }
  }

  Json Summary() const {
    Json row = {{"batching", calls_.batching()}};
    AddSpread(rates_, 1, "calls_per_second", row);
    AddSpread(empty_rates_, 1, "empty_calls_per_second", row);
    AddSpread(alone_, 1e6, "alone_us", row);
    for (size_t i = 0; i < std::size(kServerPhases); ++i) {
      row[std::string("alone_") + kServerPhases[i].name] = 1e6 * Median(alone_phases_[i]);
    }
    return row;
  }

  // Compares with `other` in each round: the ratio of throughputs, the share of the upper bound,
  // and the additional latency of one client.
  Json Beside(const Subject& other) const {
    std::vector<double> gain;
    std::vector<double> of_empty;
    std::vector<double> extra;
    for (size_t round = 0; round < rates_.size(); ++round) {
      gain.push_back(rates_[round] / other.rates_[round]);
      of_empty.push_back(rates_[round] / empty_rates_[round]);
      extra.push_back(alone_[round] - other.alone_[round]);
    }
    Json row = {
        {"n", calls_.problem().n}, {"clients", calls_.clients()}, {"rounds", rates_.size()}};
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

  SmallRequests calls_;
  // One value per round.
  std::vector<double> rates_;
  std::vector<double> empty_rates_;
  std::vector<double> alone_;
  std::array<std::vector<double>, std::size(kServerPhases)> alone_phases_;
};

void Run(const std::string& device, int clients, int64_t n, const std::string& output) {
  const SmallProblem problem(n);
  Json result = ResultHeader("dynamic_batch", OpenDevice(device)->info());
  result["cores"] = CoresOfProcess();
  result["n"] = n;
  result["clients"] = clients;
  result["rounds"] = kRounds;
  Subject together(device, true, clients, problem);
  Subject apart(device, false, clients, problem);
  for (int round = 0; round < kRounds; ++round) {
    together.RunRound();
    apart.RunRound();
    result["throughput"] = Json::array({together.Summary(), apart.Summary()});
    result["batching_gain"] = Json::array({together.Beside(apart)});
    WriteResult(result, output);
  }
  for (Subject* const subject : {&together, &apart}) {
    AddCallCosts(subject->calls(), result["call_costs"]);
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
  constexpr const char* kDefaults[] = {"host", "64", "64"};
  for (size_t k = words.size(); k < std::size(kDefaults); ++k) words.emplace_back(kDefaults[k]);
  Run(words[0], std::stoi(words[1]), std::stoi(words[2]), output);
  return 0;
}

}  // namespace
}  // namespace crout

int main(int argc, char** argv) { return crout::Main(argc, argv); }
