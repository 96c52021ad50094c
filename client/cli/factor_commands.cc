// factor, refactor
#include <memory>

#include "client/cli/commands.h"
#include "client/cli/factor_options.h"
#include "client/cli/progress_bar.h"

namespace crout::cli {
namespace {

struct FactorArguments {
  MatrixArgument matrix;
  v1::FactorizeOptions options;
  v1::CacheOptions cache;
  std::string handle;  // not empty: the factor to replace
};

absl::Status RunFactor(Session* session, const FactorArguments& arguments) {
  absl::StatusOr<v1::Factor> factor;
  {
    ProgressBar bar;
    client::CallOptions call = session->call();
    call.on_progress = [&](const client::ProgressUpdate& update) { bar.Update(update); };
    const client::MatrixSource matrix = arguments.matrix.Source();
    factor = arguments.handle.empty()
                 ? session->client().Factorize(matrix, arguments.options, arguments.cache, call)
                 : session->client().Refactorize(arguments.handle, matrix, arguments.options, call);
  }
  if (!factor.ok()) return factor.status();
  session->Print(ToJson(*factor));
  return absl::OkStatus();
}

}  // namespace

void AddFactorCommands(CLI::App* app, Session* session) {
  const auto arguments = std::make_shared<FactorArguments>();
  const auto run = [=] { return RunFactor(session, *arguments); };

  CLI::App* factor =
      session->AddCommand(app, "factor", "Factor a matrix and keep the factors", run);
  AddMatrixArgument(factor, &arguments->matrix)->required();
  AddFactorizeOptions(factor, &arguments->options);
  AddCacheOptions(factor, &arguments->cache);
  AddRequestIdOption(factor, &arguments->cache);
  CLI::Option* from = factor->add_option("--from", arguments->handle,
                                         "Replace the factor of this handle, as refactor does");
  for (const char* kept : {"--lease", "--name", "--request-id"}) {
    from->excludes(factor->get_option(kept));  // They stay as they are.
  }

  CLI::App* refactor = session->AddCommand(
      app, "refactor", "Replace the factor behind a handle by that of another matrix", run);
  refactor->add_option("handle", arguments->handle)->required();
  AddMatrixArgument(refactor, &arguments->matrix)->required();
  AddFactorizeOptions(refactor, &arguments->options);
}

}  // namespace crout::cli
