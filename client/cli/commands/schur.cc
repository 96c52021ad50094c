// SPDX-License-Identifier: Apache-2.0

// schur
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "client/cli/commands/commands.h"
#include "client/cli/commands/reported_call.h"
#include "client/cli/options/factor_options.h"
#include "client/cli/options/option_values.h"
#include "client/cli/output/array_writer.h"

namespace crout::cli {
namespace {

struct SchurArguments {
  MatrixArgument matrix;
  SchurOptions options;
  OutputArgument output;
};

absl::Status RunSchur(Session* session, const SchurArguments& arguments) {
  const auto matrix = MatrixInput::OpenByColumns(arguments.matrix.path, arguments.matrix.dtype,
                                                 session->deadline());
  if (!matrix.ok()) return matrix.status();
  ArrayFileSink s = arguments.output.Open(session);
  FactorDescription factor;
  const auto result = WithProgressBar(*session, [&](const CallOptions& call) {
    return session->client().Schur(matrix->Source(), arguments.options, &factor, &s, call);
  });
  return ReportWithFactor(session, result, factor, &s, [&](const ComplementResult& complement) {
    return SummaryOf(complement, arguments.output.Destination(*session), factor);
  });
}

}  // namespace

void AddSchurCommand(CLI::App* app, Session* session) {
  const auto arguments = std::make_shared<SchurArguments>();
  SchurOptions* const options = &arguments->options;
  CLI::App* schur = session->AddCommand(
      app, "schur",
      "Compute a Schur complement: of the leading block, whose factor is cached, or of selected "
      "unknowns of a sparse matrix",
      [=] { return RunSchur(session, *arguments); });
  AddMatrixArgument(schur, &arguments->matrix)->required();
  BeginSection(schur, "Input");
  CLI::Option* const leading =
      schur
          ->add_option_function<int64_t>(
              "--leading-order", [=](int64_t order) { options->leading_order = order; },
              "Order of the leading block, which is eliminated")
          ->check(NotNegative<int64_t>());
  CLI::Option* const keep =
      schur
          ->add_option_function<std::vector<int32_t>>(
              "--keep", [=](const std::vector<int32_t>& unknowns) { options->keep = unknowns; },
              "Unknowns of a sparse matrix that are not eliminated, counted from 0: K,L,... in the "
              "order of the rows of the complement")
          ->delimiter(',')
          ->check(InRange<int64_t>(0, std::numeric_limits<int32_t>::max()))
          ->excludes(leading);
  schur->parse_complete_callback([=] {
    if (leading->count() + keep->count() == 0)
      throw CLI::RequiredError("--leading-order or --keep");
  });
  AddOutputOptions(schur, "the Schur complement", &arguments->output);
  BeginSection(schur, "Method");
  AddSolverOption(schur, [=](Solver solver) { options->solver = solver; });
  AddFactorizeOptions(schur, &options->factor);
  AddCacheOptions(schur, &options->cache);
}

}  // namespace crout::cli
