// SPDX-License-Identifier: Apache-2.0

// A load generator: concurrent workers with one connection each, in constant memory.
#ifndef CROUT_CLIENT_CLI_BENCH_BENCH_H_
#define CROUT_CLIENT_CLI_BENCH_BENCH_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/bench/latency_histogram.h"
#include "client/cli/bench/pace.h"
#include "crout/client.h"

namespace crout::cli {

enum class BenchMode {
  kSolve,   // solves with one factor, made before the measurement
  kFactor,  // factors, and releases each
  kMixed,   // each worker factors, solves ten times, releases
  kMix,     // a factorization or a solve each time, by BenchOptions::factor_share
};

struct BenchOptions {
  BenchMode mode = BenchMode::kSolve;
  int64_t n = 256;
  int64_t nrhs = 1;
  v1::Dtype dtype = v1::DTYPE_FLOAT64;
  v1::FactorizeOptions factorize;
  double factor_share = 0;  // for kMix: share of factorizations, 0 to 1
  PaceOptions pace;
};

// Counts of one kind of call.
struct BenchCounts {
  // Latencies of successful calls, each from its scheduled start.
  LatencyHistogram latencies;
  std::map<std::string, int64_t> errors;  // by status name
};

struct BenchResult {
  absl::Duration elapsed;                    // without the warm-up
  std::map<std::string, BenchCounts> calls;  // by "factorize", "solve"
};

// Runs `concurrency` workers on random, diagonally dominant matrices. Calls are not retried;
// refusals are counted. With a rate, `concurrency` limits the calls in flight. Returns an error
// only if the preparation fails or no call succeeds.
absl::StatusOr<BenchResult> RunBench(const client::ClientOptions& client,
                                     const BenchOptions& options, int concurrency);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_BENCH_BENCH_H_
