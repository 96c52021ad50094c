// SPDX-License-Identifier: Apache-2.0

// Reports of the load generator: rows, comparisons, an HTML page.
#ifndef CROUT_CLIENT_CLI_BENCH_BENCH_REPORT_H_
#define CROUT_CLIENT_CLI_BENCH_BENCH_REPORT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/bench/bench.h"
#include "client/cli/report/json.h"

namespace crout::cli {

// Appends the rows of one run, one for each kind of call: counts, calls a second, percentiles.
// `rate` is 0 for a run without a rate.
void AppendRows(int concurrency, double rate, const BenchResult& result, Json* rows);

// Reads the output of `croutctl --json bench`. FileError if the file is missing or has other
// contents.
absl::StatusOr<Json> ReadRun(const std::string& path);

// Compares each of `rows` with the row of `baseline` that has the same concurrency, rate and call.
// Adds the ratios "per_second_ratio", "p50_ratio" and "p99_ratio"; 1 means equal.
void CompareRows(const Json& baseline, Json* rows);

// Makes a self-contained HTML page: the description of the run, the rows as a table, and a chart of
// latencies over percentiles. The curves of `baseline`, if not null, are dashed.
std::string BenchHtml(const Json& run, const Json* baseline);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_BENCH_BENCH_REPORT_H_
