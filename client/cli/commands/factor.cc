// SPDX-License-Identifier: Apache-2.0

// factor, refactor
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/reported_call.h"
#include "client/cli/exit_codes.h"
#include "client/cli/formats/array.h"
#include "client/cli/input/local_matrix.h"
#include "client/cli/input/packed_matrix.h"
#include "client/cli/options/factor_options.h"

namespace crout::cli {
namespace {

struct FactorArguments {
  MatrixArgument matrix;
  FactorOptions options;
  CacheOptions cache;
  std::string factor;  // if not empty: handle or name of the factor to replace
  bool values_only = false;
  bool replace_if_singular = false;
  bool fail_singular = false;
};

// The values of a file in the order and type of the server's matrix, and the digest of their
// pattern.
struct SparseValues {
  Array values;
  std::string pattern_digest;
};
absl::StatusOr<SparseValues> ReadSparseValues(Session* session, const std::string& path,
                                              const std::string& handle) {
  const auto matrix = LocalMatrix::Load(path);
  if (!matrix.ok()) return matrix.status();
  if (matrix->dense() != nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": --values-only requires a Matrix Market file in coordinate format"));
  }
  const auto packed = PackedMatrix::Pack(*matrix);
  if (!packed.ok()) return packed.status();
  const auto factor = session->client().Describe(handle, session->call());
  if (!factor.ok()) return factor.status();
  auto values = packed->Values().As(factor->matrix_dtype.value_or(Dtype::kFloat64));
  if (values.ok()) return SparseValues{*std::move(values), packed->PatternDigest()};
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": the file is complex, the factor's matrix is real. Omit --values-only"));
}

absl::StatusOr<FactorDescription> SendValues(Session* session, const FactorArguments& arguments,
                                             const std::string& handle,
                                             const RefactorOptions& options) {
  const auto read = ReadSparseValues(session, arguments.matrix.path, handle);
  if (!read.ok()) return read.status();
  const MatrixSource source = WithType(read->values.dtype, [&](auto type) {
    return MatrixSource::SparseValues(ElementsOf<decltype(type)>(read->values),
                                      read->pattern_digest);
  });
  return WithProgressBar(*session, [&](const CallOptions& call) {
    return session->client().Refactor(handle, source, options, call);
  });
}

absl::StatusOr<FactorDescription> Send(Session* session, const FactorArguments& arguments) {
  const RefactorOptions options{arguments.options, arguments.replace_if_singular};
  std::string replaced;
  if (!arguments.factor.empty()) {
    auto handle = session->Handle(arguments.factor);
    if (!handle.ok()) return handle.status();
    replaced = *std::move(handle);
  }
  if (arguments.values_only) return SendValues(session, arguments, replaced, options);
  const auto matrix =
      MatrixInput::Open(arguments.matrix.path, arguments.matrix.dtype, session->deadline());
  if (!matrix.ok()) return matrix.status();
  return WithProgressBar(*session, [&](const CallOptions& call) {
    return arguments.factor.empty()
               ? session->client().Factor(matrix->Source(), arguments.options, arguments.cache,
                                          call)
               : session->client().Refactor(replaced, matrix->Source(), options, call);
  });
}

absl::Status RunFactor(Session* session, const FactorArguments& arguments) {
  const absl::StatusOr<FactorDescription> factor = Send(session, arguments);
  const bool singular =
      factor.ok() ? factor->info > 0 : Reason(factor.status()) == "SINGULAR_MATRIX";
  if (singular && arguments.fail_singular) session->ExitWith(kSingular);
  if (!factor.ok()) return factor.status();
  PrintFactor(*session, *factor);
  if (singular) {
    session->Warn(absl::StrCat("the factor is singular (info ", factor->info,
                               "): no system can be solved with this factor"));
  }
  WarnOf(session, *factor);
  return absl::OkStatus();
}

void AddFailSingular(CLI::App* command, FactorArguments* arguments) {
  BeginSection(command, "Output");
  command->add_flag("--fail-singular", arguments->fail_singular,
                    absl::StrCat("Exit with ", kSingular, " if the factor is singular"));
}

CLI::Option* AddReplaceIfSingular(CLI::App* command, FactorArguments* arguments) {
  BeginSection(command, "Cache");
  return command->add_flag("--replace-if-singular", arguments->replace_if_singular,
                           "Replace the factor even if the new one is singular");
}

}  // namespace

void AddFactorCommands(CLI::App* app, Session* session) {
  const auto arguments = std::make_shared<FactorArguments>();
  const auto run = [=] { return RunFactor(session, *arguments); };

  CLI::App* factor =
      session->AddCommand(app, "factor", "Factor a matrix and keep the factor in the cache", run);
  AddMatrixArgument(factor, &arguments->matrix)->required();
  AddFactorizeOptions(factor, &arguments->options);
  AddCacheOptions(factor, &arguments->cache);
  AddRequestIdOption(factor, &arguments->cache);
  CLI::Option* from = factor->add_option("--from", arguments->factor,
                                         "Handle or name of a factor to replace, as refactor does");
  for (const char* kept : {"--lease", "--name", "--request-id"}) {
    from->excludes(factor->get_option(kept));  // these stay unchanged
  }
  AddReplaceIfSingular(factor, arguments.get())->needs(from);
  AddFailSingular(factor, arguments.get());

  CLI::App* refactor = session->AddCommand(
      app, "refactor", "Replace a cached factor by the factor of another matrix", run);
  AddFactorArgument(refactor, &arguments->factor);
  AddMatrixArgument(refactor, &arguments->matrix)->required();
  AddFactorizeOptions(refactor, &arguments->options);
  BeginSection(refactor, "Input");
  refactor
      ->add_flag("--values-only", arguments->values_only,
                 "Send only the values of the file, which must have the pattern of the factor's "
                 "sparse matrix, in the type of that matrix")
      ->excludes(refactor->get_option("--dtype"));
  AddReplaceIfSingular(refactor, arguments.get());
  AddFailSingular(refactor, arguments.get());
}

}  // namespace crout::cli
