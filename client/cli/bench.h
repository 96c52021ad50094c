// A load generator: concurrent workers with a connection each, in constant memory.
#ifndef CROUT_CLIENT_CLI_BENCH_H_
#define CROUT_CLIENT_CLI_BENCH_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/latency_histogram.h"
#include "client/cli/pace.h"
#include "crout/client.h"

namespace crout::cli {

enum class BenchMode {
  kSolve,   // solves with one factor, made before the clock starts
  kFactor,  // factors, releasing each
  kMixed,   // each worker factors, solves ten times, releases
  kMix,     // a factorization or a solve each time, as BenchOptions::factor_share says
};

struct BenchOptions {
  BenchMode mode = BenchMode::kSolve;
  int64_t n = 256;
  int64_t nrhs = 1;
  v1::Dtype dtype = v1::DTYPE_FLOAT64;
  v1::FactorizeOptions factorize;
  double factor_share = 0;  // of kMix: factorizations among its calls, 0 to 1
  PaceOptions pace;
};

// Of one kind of call.
struct BenchCounts {
  // Of the calls that succeeded, each from when it was to begin.
  LatencyHistogram latencies;
  std::map<std::string, int64_t> errors;  // by name of the status
};

struct BenchResult {
  absl::Duration elapsed;                    // without the warm-up
  std::map<std::string, BenchCounts> calls;  // by "factorize", "solve"
};

// Loads the server with `concurrency` workers on random, diagonally dominant matrices. Calls are
// not tried again: refusals are counted. With a rate, `concurrency` bounds the calls under way. An
// error only where the preparation fails, or no call at all succeeds.
absl::StatusOr<BenchResult> RunBench(const client::ClientOptions& client,
                                     const BenchOptions& options, int concurrency);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_BENCH_H_
