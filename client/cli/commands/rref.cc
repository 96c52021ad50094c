// SPDX-License-Identifier: Apache-2.0

// rref
#include <memory>

#include "client/cli/commands/commands.h"
#include "client/cli/commands/reported_call.h"
#include "client/cli/options/factor_options.h"
#include "client/cli/options/option_values.h"
#include "client/cli/output/array_writer.h"

namespace crout::cli {
namespace {

struct RrefArguments {
  MatrixArgument matrix;
  RrefOptions options;
  OutputArgument output;
};

absl::Status RunRref(Session* session, const RrefArguments& arguments) {
  const auto matrix = MatrixInput::OpenByColumns(arguments.matrix.path, arguments.matrix.dtype,
                                                 session->deadline());
  if (!matrix.ok()) return matrix.status();
  ArrayFileSink r = arguments.output.Open(session);
  const auto result = WithProgressBar(*session, [&](const CallOptions& call) {
    return session->client().Rref(matrix->Source(), arguments.options, &r, call);
  });
  if (!result.ok()) return result.status();
  if (absl::Status closed = r.Close(); !closed.ok()) return closed;
  const Json json = ToJson(*result);
  session->Print(
      {json, FormatObject(json), SummaryOf(*result, arguments.output.Destination(*session))});
  WarnOf(session, *result);
  return absl::OkStatus();
}

}  // namespace

void AddRrefCommand(CLI::App* app, Session* session) {
  const auto arguments = std::make_shared<RrefArguments>();
  RrefOptions* const options = &arguments->options;
  CLI::App* rref = session->AddCommand(
      app, "rref", "Compute the reduced row echelon form, rank and pivot columns of a matrix",
      [=] { return RunRref(session, *arguments); });
  AddMatrixArgument(rref, &arguments->matrix)->required();
  BeginSection(rref, "Method");
  rref->add_option_function<int64_t>(
          "--augmented", [=](int64_t columns) { options->augmented_columns = columns; },
          "Number of trailing columns that are right-hand sides; they contain no pivots [default: "
          "0]")
      ->check(NotNegative<int64_t>());
  rref->add_option_function<double>(
          "--tolerance", [=](double tolerance) { options->tolerance = tolerance; },
          "Largest magnitude that is treated as zero, absolute [default: max(m, n) eps ||A||_inf, "
          "adjusted for growth]")
      ->check(NotNegative<double>());
  rref->add_option_function<std::string>(
          "--device", [=](const std::string& name) { options->device = name; }, kDeviceHelp)
      ->type_name("DEVICE");
  AddOutputOptions(rref, "the echelon form", &arguments->output);
}

}  // namespace crout::cli
