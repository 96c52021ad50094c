// bench
#include <memory>
#include <vector>

#include "client/cli/bench.h"
#include "client/cli/commands.h"
#include "client/cli/enum_names.h"
#include "client/cli/factor_options.h"
#include "client/cli/text.h"

namespace crout::cli {
namespace {

struct BenchArguments {
  BenchOptions options;
  std::vector<int> concurrency = {1};
};

void AppendRows(int concurrency, const BenchResult& result, Json* rows) {
  for (const auto& [call, counts] : result.calls) {
    int64_t errors = 0;
    for (const auto& [name, count] : counts.errors) errors += count;
    const LatencyHistogram& latencies = counts.latencies;
    const auto quantile = [&](double q) { return absl::ToDoubleSeconds(latencies.Quantile(q)); };
    rows->push_back({{"concurrency", concurrency},
                     {"call", call},
                     {"requests", latencies.count()},
                     {"errors", errors},
                     {"per_second", static_cast<double>(latencies.count()) /
                                        absl::ToDoubleSeconds(result.elapsed)},
                     {"p50_seconds", quantile(0.5)},
                     {"p90_seconds", quantile(0.9)},
                     {"p99_seconds", quantile(0.99)},
                     {"max_seconds", absl::ToDoubleSeconds(latencies.max())},
                     {"errors_by_status", counts.errors}});
  }
}

absl::Status Run(Session* session, const BenchArguments& arguments) {
  Json rows = Json::array();
  for (const int concurrency : arguments.concurrency) {
    const auto result = RunBench(session->client_options(), arguments.options, concurrency);
    if (!result.ok()) return result.status();
    AppendRows(concurrency, *result, &rows);
  }
  session->Print(
      Json{
          {"server", session->server()},
          {"n", arguments.options.n},
          {"nrhs", arguments.options.nrhs},
          {"dtype", ShortName(*v1::Dtype_descriptor()->FindValueByNumber(arguments.options.dtype))},
          {"results", rows}},
      FormatObjects({"concurrency", "call", "requests", "errors", "per_second", "p50_seconds",
                     "p90_seconds", "p99_seconds", "max_seconds"},
                    rows));
  return absl::OkStatus();
}

}  // namespace

void AddBenchCommand(CLI::App* app, Session* session) {
  const auto arguments = std::make_shared<BenchArguments>();
  BenchOptions* options = &arguments->options;
  CLI::App* bench = session->AddCommand(app, "bench", "Load the server; percentiles and throughput",
                                        [=] { return Run(session, *arguments); });
  bench->add_option("--mode", options->mode, "solve, factor or mixed; solve unless given")
      ->transform(
          CLI::CheckedTransformer(std::map<std::string, BenchMode>{{"solve", BenchMode::kSolve},
                                                                   {"factor", BenchMode::kFactor},
                                                                   {"mixed", BenchMode::kMixed}}));
  bench->add_option("--n", options->n, "Order of the matrix")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 16));
  bench->add_option("--nrhs", options->nrhs, "Columns of the right-hand side")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 16));
  bench->add_option("--concurrency", arguments->concurrency, "Workers; several runs: 1,4,16")
      ->capture_default_str()
      ->delimiter(',')
      ->check(CLI::Range(1, 1024));
  AddDurationOption(
      bench, "--duration", [=](absl::Duration value) { options->duration = value; },
      "Length of each run; 5s unless given");
  bench
      ->add_option("--requests", options->requests,
                   "Length of each run in calls, instead of --duration")
      ->check(CLI::PositiveNumber);
  AddEnumOption(bench, "--dtype", &options->dtype, "Type of the matrix; f64 unless given");
  AddFactorizeOptions(bench, &options->factorize);
}

}  // namespace crout::cli
