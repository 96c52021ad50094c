// SPDX-License-Identifier: Apache-2.0

// bench
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "client/cli/bench.h"
#include "client/cli/bench_report.h"
#include "client/cli/commands.h"
#include "client/cli/enum_names.h"
#include "client/cli/factor_options.h"
#include "client/cli/text.h"

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
  for (const v1::DeviceStatus& device : info->devices()) devices.push_back(device.description());
  const BenchOptions& options = arguments.options;
  return Json{{"server", session->server()},
              {"version", info->version()},
              {"devices", devices},
              {"date", absl::FormatTime("%Y-%m-%d %H:%M", absl::Now(), absl::UTCTimeZone())},
              {"n", options.n},
              {"nrhs", options.nrhs},
              {"dtype", ShortName(*v1::Dtype_descriptor()->FindValueByNumber(options.dtype))},
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
  session->Print(*run, FormatObjects(keys, rows));
  if (arguments.report.empty()) return absl::OkStatus();
  return WriteReport(arguments.report, BenchHtml(*run, baseline ? &*baseline : nullptr));
}

// Options for the rate and duration.
void AddPaceOptions(CLI::App* bench, BenchArguments* arguments) {
  PaceOptions* pace = &arguments->options.pace;
  bench
      ->add_option("--rate", arguments->rates,
                   "Calls a second, begun on time whether or not others have ended, and measured "
                   "from then; several runs: 100,200. 0: each worker's next call after its last")
      ->capture_default_str()
      ->delimiter(',')
      ->check(CLI::Range(0.0, 1e6));
  AddDurationOption(
      bench, "--duration", [=](absl::Duration value) { pace->duration = value; },
      "Length of each run; 5s unless given");
  AddDurationOption(
      bench, "--warm-up", [=](absl::Duration value) { pace->warm_up = value; },
      "Time before that, whose calls do not count; none unless given");
  bench
      ->add_option("--requests", pace->requests,
                   "Length of each run in calls, instead of --duration")
      ->check(CLI::PositiveNumber);
}

}  // namespace

void AddBenchCommand(CLI::App* app, Session* session) {
  const auto arguments = std::make_shared<BenchArguments>();
  BenchOptions* options = &arguments->options;
  CLI::App* bench = session->AddCommand(app, "bench", "Load the server; percentiles and throughput",
                                        [=] { return Run(session, *arguments); });
  CLI::Option* mode = AddChoiceOption<BenchMode>(
      bench, "--mode",
      {{"solve", BenchMode::kSolve}, {"factor", BenchMode::kFactor}, {"mixed", BenchMode::kMixed}},
      [=](BenchMode chosen) { options->mode = chosen; },
      "mixed: a factor and ten solves with it, in turn; solve unless given");
  bench
      ->add_option_function<double>(
          "--factor-share",
          [=](double share) {
            options->mode = BenchMode::kMix;
            options->factor_share = share;
          },
          "A mix at random: so many of the calls factor, from 0 to 1, the others solve")
      ->check(CLI::Range(0.0, 1.0))
      ->excludes(mode);
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
  AddPaceOptions(bench, arguments.get());
  bench
      ->add_option("--baseline", arguments->baseline,
                   "What --json printed of an earlier run: the rows have ratios to it")
      ->type_name("FILE");
  bench->add_option("--report", arguments->report, "Page of HTML with curves, besides")
      ->type_name("FILE");
  AddEnumOption(bench, "--dtype", &options->dtype, "Type of the matrix; f64 unless given");
  AddFactorizeOptions(bench, &options->factorize);
}

}  // namespace crout::cli
