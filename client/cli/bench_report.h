// What comes of runs of the load generator: rows, comparisons, a page.
#ifndef CROUT_CLIENT_CLI_BENCH_REPORT_H_
#define CROUT_CLIENT_CLI_BENCH_REPORT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/bench.h"
#include "client/cli/json.h"

namespace crout::cli {

// The rows of one run, one for each kind of call: counts, calls a second, percentiles. `rate` is 0
// for a run without one.
void AppendRows(int concurrency, double rate, const BenchResult& result, Json* rows);

// Reads what `croutctl --json bench` printed. A FileError where there is no such file, or it is
// something else.
absl::StatusOr<Json> ReadRun(const std::string& path);

// Adds to each of `rows` that has its like in `baseline` (the same concurrency, rate and call) how
// its figures stand to those: "per_second_ratio", "p50_ratio", "p99_ratio"; 1 is the same.
void CompareRows(const Json& baseline, Json* rows);

// A page of HTML that needs nothing else: what was run where and when, the rows as a table, and
// latencies over percentiles, with those of `baseline`, unless null, dashed.
std::string BenchHtml(const Json& run, const Json* baseline);

// Replaces the file. A FileError where that fails.
absl::Status WriteReport(const std::string& path, const std::string& text);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_BENCH_REPORT_H_
