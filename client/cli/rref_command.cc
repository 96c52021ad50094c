// SPDX-License-Identifier: Apache-2.0

// rref
#include <memory>

#include "client/cli/array_writer.h"
#include "client/cli/commands.h"
#include "client/cli/factor_options.h"
#include "client/cli/reported_call.h"

namespace crout::cli {
namespace {

struct RrefArguments {
  MatrixArgument matrix;
  v1::ReduceToEchelonFormHeader header;
  OutputArgument output;
};

absl::Status RunRref(Session* session, const RrefArguments& arguments) {
  const auto matrix = MatrixInput::OpenByColumns(arguments.matrix.path, arguments.matrix.dtype,
                                                 session->deadline());
  if (!matrix.ok()) return matrix.status();
  ArrayFileSink r = arguments.output.Open(session);
  const auto result = WithProgressBar(*session, [&](const client::CallOptions& call) {
    return session->client().ReduceToEchelonForm(matrix->Source(), arguments.header, &r, call);
  });
  if (!result.ok()) return result.status();
  if (absl::Status closed = r.Close(); !closed.ok()) return closed;
  session->Print(ToJson(*result));
  return absl::OkStatus();
}

}  // namespace

void AddRrefCommand(CLI::App* app, Session* session) {
  const auto arguments = std::make_shared<RrefArguments>();
  v1::ReduceToEchelonFormHeader* header = &arguments->header;
  CLI::App* rref = session->AddCommand(
      app, "rref", "Reduced row echelon form of a matrix of any shape: rank and pivot columns",
      [=] { return RunRref(session, *arguments); });
  AddMatrixArgument(rref, &arguments->matrix)->required();
  rref->add_option_function<int64_t>(
          "--augmented", [=](int64_t columns) { header->set_augmented_columns(columns); },
          "The last so many columns are right-hand sides, without pivots")
      ->check(CLI::NonNegativeNumber);
  rref->add_option_function<double>(
          "--tolerance", [=](double tolerance) { header->set_tolerance(tolerance); },
          "Absolute: what is no larger is no pivot; max(m, n) eps ||A||_inf unless given")
      ->check(CLI::NonNegativeNumber);
  rref->add_option_function<std::string>(
      "--device", [=](const std::string& name) { header->set_device(name); },
      "host, cuda:0 ...; where it is done first unless given");
  AddOutputOptions(rref, "the form", &arguments->output);
}

}  // namespace crout::cli
