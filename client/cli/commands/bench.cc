// SPDX-License-Identifier: Apache-2.0

// bench
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "client/cli/bench/bench.h"
#include "client/cli/bench/bench_report.h"
#include "client/cli/commands/commands.h"
#include "client/cli/options/factor_options.h"
#include "client/cli/options/option_values.h"
#include "client/cli/report/json.h"
#include "client/cli/report/text.h"

namespace crout::cli {
namespace {

struct BenchArguments {
  BenchOptions options;
  std::vector<int> concurrency = {1};
  std::vector<double> rates = {0};
  std::string baseline, report;
};

// Describes the run, with place and time; rows are added later.
absl::StatusOr<Json> Describe(Session* session, const BenchArguments& arguments) {
  const auto info = session->client().ServerInfo(session->call());
  if (!info.ok()) return info.status();
  Json devices = Json::array();
  for (const DeviceStatus& device : info->devices) devices.push_back(device.description);
  const BenchOptions& options = arguments.options;
  return Json{{"server", session->server()},
              {"version", info->version},
              {"devices", devices},
              {"date", absl::FormatTime("%Y-%m-%d %H:%M", absl::Now(), absl::UTCTimeZone())},
              {"n", options.n},
              {"nrhs", options.nrhs},
              {"dtype", Name(options.dtype)},
              {"warm_up_seconds", absl::ToDoubleSeconds(options.pace.warm_up)},
              {"results", Json::array()}};
}

absl::Status Run(Session* session, const BenchArguments& arguments) {
  std::optional<Json> baseline;
  if (!arguments.baseline.empty()) {
    auto read = ReadRun(arguments.baseline);
    if (!read.ok()) return read.status();
    baseline = *std::move(read);
  }
  auto run = Describe(session, arguments);
  if (!run.ok()) return run.status();
  Json& rows = run->at("results");
  BenchOptions options = arguments.options;
  for (const double rate : arguments.rates) {
    options.pace.rate = rate;
    for (const int concurrency : arguments.concurrency) {
      const auto result = RunBench(session->client_options(), options, concurrency);
      if (!result.ok()) return result.status();
      AppendRows(concurrency, rate, *result, &rows);
    }
  }
  std::vector<std::string> keys = {"concurrency", "rate",       "call",        "requests",
                                   "errors",      "per_second", "p50_seconds", "p90_seconds",
                                   "p99_seconds", "max_seconds"};
  if (baseline) {
    CompareRows(*baseline, &rows);
    keys.insert(keys.end(), {"per_second_ratio", "p50_ratio", "p99_ratio"});
  }
  const std::string table = FormatObjects(keys, rows);
  session->Print({*run, table, table});
  if (arguments.report.empty()) return absl::OkStatus();
  return WriteTextFile(arguments.report, BenchHtml(*run, baseline ? &*baseline : nullptr));
}

// Options for the rate and duration.
void AddPaceOptions(CLI::App* bench, BenchArguments* arguments) {
  BeginSection(bench, "Load");
  PaceOptions* pace = &arguments->options.pace;
  bench
      ->add_option(
          "--rate", arguments->rates,
          "Calls per second, started on schedule; latency counts from the scheduled start. "
          "A list makes several runs: 100,200. 0: each worker sends its next call when "
          "the previous one ends")
      ->capture_default_str()
      ->delimiter(',')
      ->check(InRange(0.0, 1e6));
  AddDurationOption(
      bench, "--duration", [=](absl::Duration value) { pace->duration = value; },
      "Length of each run [default: 5s]");
  AddDurationOption(
      bench, "--warm-up", [=](absl::Duration value) { pace->warm_up = value; },
      "Warm-up time before each run; its calls are not counted [default: 0s]");
  bench
      ->add_option("--requests", pace->requests,
                   "Number of calls of each run, instead of --duration")
      ->check(Positive<int64_t>());
}

}  // namespace

void AddBenchCommand(CLI::App* app, Session* session) {
  const auto arguments = std::make_shared<BenchArguments>();
  BenchOptions* options = &arguments->options;
  CLI::App* bench = session->AddCommand(
      app, "bench", "Measure the latency and throughput of the server under load",
      [=] { return Run(session, *arguments); });
  BeginSection(bench, "Load");
  CLI::Option* mode = AddChoiceOption<BenchMode>(
      bench, "--mode",
      {{"solve", BenchMode::kSolve}, {"factor", BenchMode::kFactor}, {"mixed", BenchMode::kMixed}},
      [=](BenchMode chosen) { options->mode = chosen; },
      "Calls to send; mixed: one factorization and ten solves with it, in turn [default: solve]");
  bench
      ->add_option_function<double>(
          "--factor-share",
          [=](double share) {
            options->mode = BenchMode::kMix;
            options->factor_share = share;
          },
          "Fraction of random calls that are factorizations, from 0 to 1; the others are solves")
      ->check(InRange(0.0, 1.0))
      ->excludes(mode);
  BeginSection(bench, "Input");
  bench->add_option("--n", options->n, "Order of the matrix")
      ->capture_default_str()
      ->check(InRange(int64_t{1}, int64_t{1} << 16));
  bench->add_option("--nrhs", options->nrhs, "Columns of the right-hand side")
      ->capture_default_str()
      ->check(InRange(int64_t{1}, int64_t{1} << 16));
  BeginSection(bench, "Load");
  bench
      ->add_option("--concurrency", arguments->concurrency,
                   "Number of workers; a list makes several runs: 1,4,16")
      ->capture_default_str()
      ->delimiter(',')
      ->check(InRange(1, 1024));
  AddPaceOptions(bench, arguments.get());
  BeginSection(bench, "Output");
  bench
      ->add_option("--baseline", arguments->baseline,
                   "File with the --json output of an earlier run; adds ratios to it")
      ->type_name("FILE");
  bench->add_option("--report", arguments->report, "Write an HTML page with curves of the latency")
      ->type_name("FILE");
  BeginSection(bench, "Input");
  AddEnumOption<Dtype>(
      bench, "--dtype", [=](Dtype dtype) { options->dtype = dtype; },
      "Type of the matrix [default: f64]");
  AddFactorizeOptions(bench, &options->factorize);
}

}  // namespace crout::cli
