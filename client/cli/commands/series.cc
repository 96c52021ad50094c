// SPDX-License-Identifier: Apache-2.0

// series
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/series_run.h"
#include "client/cli/exit_codes.h"
#include "client/cli/input/matrix_input.h"
#include "client/cli/options/factor_options.h"
#include "client/cli/options/option_values.h"

namespace crout::cli {
namespace {

void AddInputs(CLI::App* series, SeriesArguments* arguments) {
  series
      ->add_option(
          "steps", arguments->paths,
          "Steps: matrix files, directories or tar archives (plain or gzip) of steps; -: a file or "
          "tar on standard input. Steps are ordered by file name. The right-hand side of A_003.mtx "
          "is b_003.npy or rhs_003.mtx; without a matrix it is a step with the previous matrix. "
          "The previous matrix is changed by entries_003.mtx (coordinates of new values), by "
          "U_003.npy and V_003.npy (adds U V^T), or by values_003.npy (a value for each line of "
          "the last coordinate file). x0_003.npy is the initial guess; without it iterations start "
          "at the previous solution")
      ->required()
      ->check(InputPath());
  BeginSection(series, "Input");
  AddEnumOption(series, "--dtype", &arguments->dtype,
                "Type of the matrices and right-hand sides [default: the types of the files]");
  CLI::Option* rhs = series
                         ->add_option("--rhs", arguments->rhs,
                                      "File of the right-hand side of all steps without their own")
                         ->check(InputFile());
  series
      ->add_flag("--ones", arguments->ones,
                 "Use a column of ones as the right-hand side of all steps without their own")
      ->excludes(rhs);
}

void AddSeriesOptions(CLI::App* series, SeriesArguments* arguments) {
  BeginSection(series, "Method");
  SeriesOptions* const options = &arguments->options;
  AddEnumOption<SeriesStrategy>(
      series, "--strategy", [=](SeriesStrategy strategy) { options->strategy = strategy; },
      "reuse: GMRES with the current factor; refactor: a new factor for each matrix; update: "
      "low-rank changes applied to the current factor; auto: the strategy with the least "
      "expected cost [default: auto]");
  BeginSection(series, "Accuracy");
  series->add_option_function<double>(
      "--accuracy", [=](double accuracy) { options->accuracy = accuracy; },
      "Largest backward error of a solution, in [0, 1) [default: sqrt(n) times the unit "
      "roundoff]");
  BeginSection(series, "Method");
  AddOperationFlags(series, [=](Operation op) { options->operation = op; });
}

}  // namespace

void AddSeriesCommand(CLI::App* app, Session* session) {
  const auto arguments = std::make_shared<SeriesArguments>();
  CLI::App* series = session->AddCommand(
      app, "series", "Solve a series of systems whose matrices change little from step to step",
      [=] { return SeriesRun(session, *arguments).Run(); });
  AddInputs(series, arguments.get());
  series->parse_complete_callback([=] {
    std::vector<std::string> paths = arguments->paths;
    paths.push_back(arguments->rhs);
    CheckOneStandardInput(paths);
  });
  AddSeriesOptions(series, arguments.get());
  BeginSection(series, "Cache");
  CLI::Option* start = series->add_option(
      "--start", arguments->start,
      "Handle or name of the factor to start with. New factors of the series replace it, and it "
      "stays cached");
  CLI::Option* keep =
      series->add_flag("--keep", arguments->keep, "Keep the last factor in the cache")
          ->excludes(start);
  AddCacheOptions(series, &arguments->options.cache);
  for (const char* option : {"--lease", "--name"}) series->get_option(option)->needs(keep);
  BeginSection(series, "Output");
  series
      ->add_option("-o,--output", arguments->output,
                   "Write the solutions to this directory: x_000.mtx, x_001.mtx, ... It is created "
                   "if missing. -: write one .npz archive of x_000, x_001, ... to standard output, "
                   "with the reports on standard error [default: one after the other on standard "
                   "output; with --json, nothing is written]")
      ->type_name("DIR|-");
  AddFormatOption(
      series, {FileFormat::kMatrixMarket, FileFormat::kNpy, FileFormat::kNpz, FileFormat::kText},
      [=](FileFormat format) { arguments->format = format; },
      "Format of the solutions: mtx (Matrix Market), npy, npz (one array x) or txt [default: mtx]");
  series->add_flag(
      "--fail-singular", arguments->fail_singular,
      absl::StrCat("Exit with ", kSingular, " after the last step if a matrix was singular"));
  AddFactorizeOptions(series, &arguments->options.factor);
  // SolveSeries refuses these options.
  for (const char* option : {"--no-keep-matrix", "--condition", "--determinant"}) {
    series->remove_option(series->get_option(option));
  }
}

}  // namespace crout::cli
