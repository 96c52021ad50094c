// SPDX-License-Identifier: Apache-2.0

#include <barrier>
#include <thread>

#include "tests/bench/harness/gpu_bench.h"

namespace crout {
namespace {

constexpr int kContexts = 8;
constexpr int kJobs = 32;  // number per context and repetition
constexpr int kRepetitions = 7;

void RunJobs(ExecutionContext& context, const DeviceMatrix& matrix) {
  for (int job = 0; job < kJobs; ++job) {
    FactorOnce(context, matrix.Copy(context), matrix.shape());
  }
}

// Returns the seconds for kJobs on each of the first `count` contexts, with one thread per context.
double RunOn(const std::vector<std::unique_ptr<ExecutionContext>>& contexts, int count,
             const DeviceMatrix& matrix) {
  std::barrier start(count + 1);
  std::vector<std::thread> threads;
  for (int c = 0; c < count; ++c) {
    threads.emplace_back([&, c] {
      start.arrive_and_wait();
      RunJobs(*contexts[c], matrix);
    });
  }
  start.arrive_and_wait();
  return Time([&] {
    for (std::thread& thread : threads) thread.join();
  });
}

}  // namespace

nlohmann::json BenchConcurrency(Device& device) {
  std::vector<std::unique_ptr<ExecutionContext>> contexts;
  for (int c = 0; c < kContexts; ++c) contexts.push_back(Check(device.CreateContext()));
  constexpr int64_t kN = 512;
  const DeviceMatrix matrix(*contexts[0], kN);
  nlohmann::json result = {{"n", kN}, {"jobs", kJobs}, {"repetitions", kRepetitions}};
  double serial = 0;
  for (const int count : {1, 2, 4, 8}) {
    RunOn(contexts, count, matrix);  // warm-up
    std::vector<double> rates;
    for (int r = 0; r < kRepetitions; ++r) {
      rates.push_back(count * kJobs / RunOn(contexts, count, matrix));
    }
    if (count == 1) serial = Median(rates);
    result["contexts"].push_back({{"count", count},
                                  {"factorizations_per_second", Median(rates)},
                                  {"over_serial", Median(rates) / serial}});
  }
  return result;
}

}  // namespace crout
