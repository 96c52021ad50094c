// SPDX-License-Identifier: Apache-2.0

// solve, lu
#include <memory>
#include <optional>
#include <utility>

#include "absl/functional/function_ref.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/reported_call.h"
#include "client/cli/options/factor_options.h"
#include "client/cli/options/option_values.h"
#include "client/cli/output/array_writer.h"

namespace crout::cli {
namespace {

struct SolveArguments {
  std::string factor;          // solve
  std::optional<Dtype> dtype;  // for solve, if given
  MatrixArgument matrix;       // for lu; its dtype, if given, also applies to the right-hand side
  FactorOptions factorize;
  CacheOptions cache;
  bool keep = false;
  std::string rhs_path;
  bool ones = false;
  int64_t nrhs = 1;
  SolveOptions options;
  OutputArgument output;
};

void AddRhsOptions(CLI::App* command, SolveArguments* arguments) {
  BeginSection(command, "Input");
  CLI::Option* file = command
                          ->add_option("rhs", arguments->rhs_path,
                                       "File of the right-hand side: Matrix Market, .npy, .npz "
                                       "(F.npz:NAME) or text; -: standard input")
                          ->check(InputFile());
  CLI::Option* ones = command->add_flag("--ones", arguments->ones, "Use a right-hand side of ones");
  ones->excludes(file);
  command->add_option("--nrhs", arguments->nrhs, "Columns of the right-hand side of ones")
      ->capture_default_str()
      ->needs(ones)
      ->check(InRange(int64_t{0}, int64_t{1} << 24));
  AddOutputOptions(command, "the solution", &arguments->output);
  AddSolveOptions(command, &arguments->options);
  // Exactly one source of B is required. CLI11 counts options only after parsing.
  command->parse_complete_callback([=] {
    if (file->count() + ones->count() == 0) throw CLI::RequiredError("rhs or --ones");
    CheckOneStandardInput({arguments->matrix.path, arguments->rhs_path});
  });
}

// Returns ones if requested, otherwise the matrix of the file, which is stored in `file`.
absl::StatusOr<MatrixSource> Rhs(const Session& session, const SolveArguments& arguments,
                                 std::optional<Dtype> dtype, std::optional<MatrixInput>* file,
                                 absl::FunctionRef<absl::StatusOr<MatrixSource>()> ones) {
  if (arguments.ones) return ones();
  auto input = MatrixInput::OpenByColumns(arguments.rhs_path, dtype, session.deadline());
  if (!input.ok()) return input.status();
  return file->emplace(*std::move(input)).Source();
}

absl::StatusOr<MatrixSource> OnesFor(Session* session, const std::string& handle,
                                     const SolveArguments& arguments) {
  const auto factor = session->client().Describe(handle, session->call());
  if (!factor.ok()) return factor.status();
  return MatrixSource::Ones(
      factor->n, arguments.nrhs,
      arguments.dtype ? *arguments.dtype : factor->matrix_dtype.value_or(Dtype::kFloat64));
}

absl::Status RunSolve(Session* session, const SolveArguments& arguments) {
  const auto handle = session->Handle(arguments.factor);
  if (!handle.ok()) return handle.status();
  std::optional<MatrixInput> file;
  const auto rhs = Rhs(*session, arguments, arguments.dtype, &file,
                       [&] { return OnesFor(session, *handle, arguments); });
  if (!rhs.ok()) return rhs.status();
  ArrayFileSink x = arguments.output.Open(session);
  const auto result = WithProgressBar(*session, [&](const CallOptions& call) {
    return session->client().Solve(*handle, *rhs, arguments.options, &x, call);
  });
  if (!result.ok()) return result.status();
  if (absl::Status status = x.Close(); !status.ok()) return status;
  const Json json = ToJson(*result);
  session->Print({json, FormatObject(json),
                  SummaryOf(*result, arguments.output.Destination(*session), nullptr)});
  WarnOf(session, *result);
  return absl::OkStatus();
}

absl::Status RunLu(Session* session, const SolveArguments& arguments) {
  // A right-hand side of ones needs the order before the matrix is sent.
  const auto open = arguments.ones ? MatrixInput::OpenWithRows : MatrixInput::Open;
  const auto matrix = open(arguments.matrix.path, arguments.matrix.dtype, session->deadline());
  if (!matrix.ok()) return matrix.status();
  std::optional<MatrixInput> file;
  const auto rhs = Rhs(*session, arguments, arguments.matrix.dtype, &file,
                       [&]() -> absl::StatusOr<MatrixSource> {
                         const auto rows = matrix->Rows();
                         if (!rows.ok()) return rows.status();
                         return MatrixSource::Ones(*rows, arguments.nrhs, matrix->dtype());
                       });
  if (!rhs.ok()) return rhs.status();
  FactorAndSolveOptions options{.factor = arguments.factorize, .solve = arguments.options};
  if (arguments.keep) options.cache = arguments.cache;
  ArrayFileSink x = arguments.output.Open(session);
  FactorDescription factor;
  const auto result = WithProgressBar(*session, [&](const CallOptions& call) {
    return session->client().FactorAndSolve(matrix->Source(), *rhs, options, &factor, &x, call);
  });
  return ReportWithFactor(session, result, factor, &x, [&](const SolveResult& solved) {
    return SummaryOf(solved, arguments.output.Destination(*session), &factor);
  });
}

}  // namespace

void AddSolveCommands(CLI::App* app, Session* session) {
  const auto arguments = std::make_shared<SolveArguments>();

  CLI::App* solve = session->AddCommand(app, "solve", "Solve a system with a cached factor",
                                        [=] { return RunSolve(session, *arguments); });
  AddFactorArgument(solve, &arguments->factor);
  BeginSection(solve, "Input");
  AddEnumOption(
      solve, "--dtype", &arguments->dtype,
      "Type of the right-hand side and the solution [default: the file's type; with --ones "
      "the matrix's]");
  AddRhsOptions(solve, arguments.get());

  CLI::App* lu =
      session->AddCommand(app, "lu", "Factor a matrix and solve a system with it in one call",
                          [=] { return RunLu(session, *arguments); });
  AddMatrixArgument(lu, &arguments->matrix)->required();
  AddRhsOptions(lu, arguments.get());
  AddFactorizeOptions(lu, &arguments->factorize);
  BeginSection(lu, "Cache");
  CLI::Option* keep = lu->add_flag("--keep", arguments->keep, "Keep the factor in the cache");
  AddCacheOptions(lu, &arguments->cache);
  for (const char* option : {"--lease", "--name"}) {
    lu->get_option(option)->needs(keep);
  }
}

}  // namespace crout::cli
