// SPDX-License-Identifier: Apache-2.0

// series
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/enum_names.h"
#include "client/cli/exit_codes.h"
#include "client/cli/factor_options.h"
#include "client/cli/matrix_input.h"
#include "client/cli/series_run.h"

namespace crout::cli {
namespace {

void AddInputs(CLI::App* series, SeriesArguments* arguments) {
  series
      ->add_option(
          "steps", arguments->paths,
          "Matrices, each a step, or directories or tars (plain or gzip) of steps, or -, a file or "
          "a tar on standard input: files go by name, and b_003.npy "
          "or rhs_003.mtx is the right-hand side to A_003.mtx; alone it is a step with the "
          "matrix of the one before. That matrix changes by entries_003.mtx (coordinates of new "
          "values), by U_003.npy and V_003.npy (U times V transposed is added), or by "
          "values_003.npy (a value for each line of the last coordinate text). Iterations start at "
          "x0_003.npy, if there is one, else at the last solution")
      ->required()
      ->check(InputPath());
  AddEnumOption(series, "--dtype", &arguments->dtype,
                "Type of the matrices and right-hand sides; as their files say unless given");
  CLI::Option* rhs =
      series->add_option("--rhs", arguments->rhs, "B of all steps that have none of their own")
          ->check(InputFile());
  series
      ->add_flag("--ones", arguments->ones,
                 "B is a column of ones in all steps that have none of their own")
      ->excludes(rhs);
}

void AddSeriesOptions(CLI::App* series, SeriesArguments* arguments) {
  v1::SolveSeriesHeader* header = &arguments->header;
  const auto* strategy = v1::SeriesStrategy_descriptor();
  series
      ->add_option_function<std::string>(
          "--strategy",
          [=](const std::string& name) {
            header->set_strategy(static_cast<v1::SeriesStrategy>(ParseShortName(*strategy, name)));
          },
          "reuse: the factor that is there, as long as it serves; refactor: a new one in each "
          "step; "
          "auto, unless given: what is expected to cost less")
      ->check(CLI::IsMember(ShortNames(*strategy)));
  series->add_option_function<double>(
      "--accuracy", [=](double accuracy) { header->set_accuracy(accuracy); },
      "Backward error that X is to have, in [0, 1); sqrt(n) times the unit roundoff unless given");
  AddOperationFlags(series, [=](v1::Operation op) { header->set_operation(op); });
}

}  // namespace

void AddSeriesCommand(CLI::App* app, Session* session) {
  const auto arguments = std::make_shared<SeriesArguments>();
  CLI::App* series = session->AddCommand(
      app, "series", "Solve with one matrix after another, each near the one before",
      [=] { return SeriesRun(session, *arguments).Run(); });
  AddInputs(series, arguments.get());
  series->parse_complete_callback([=] {
    std::vector<std::string> paths = arguments->paths;
    paths.push_back(arguments->rhs);
    CheckOneStandardInput(paths);
  });
  AddSeriesOptions(series, arguments.get());
  CLI::Option* start = series->add_option(
      "--start", arguments->start,
      "Handle or name of a factor to begin with; it takes the series' new factors, and stays");
  CLI::Option* keep =
      series->add_flag("--keep", arguments->keep, "Keep the last factor")->excludes(start);
  AddCacheOptions(series, arguments->header.mutable_cache());
  for (const char* option : {"--lease", "--name"}) series->get_option(option)->needs(keep);
  series
      ->add_option("-o,--output", arguments->output,
                   "Write each X to this directory, made if need be: x_000.mtx, x_001.mtx ... -: "
                   "one .npz archive of x_000, x_001 ... on standard output; the reports go to "
                   "standard error then")
      ->type_name("DIR|-");
  AddFormatOption(
      series, {FileFormat::kMatrixMarket, FileFormat::kNpy, FileFormat::kNpz, FileFormat::kText},
      [=](FileFormat format) { arguments->format = format; },
      "Of the output: mtx (Matrix Market), unless given, npy, npz (an array x) or txt");
  series->add_flag(
      "--fail-singular", arguments->fail_singular,
      absl::StrCat("Exit with ", kSingular, ", after the last step, if one was singular"));
  AddFactorizeOptions(series, arguments->header.mutable_options());
  // SolveSeries refuses these options.
  for (const char* option : {"--drop-matrix", "--condition", "--determinant"}) {
    series->remove_option(series->get_option(option));
  }
}

}  // namespace crout::cli
