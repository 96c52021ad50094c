// croutctl, the command-line client.
#include <CLI/CLI.hpp>

#include "client/cli/commands.h"
#include "crout_version.h"

int main(int argc, char** argv) {
  CLI::App app("Factors matrices on a Crout daemon and solves with the factors.", "croutctl");
  app.set_version_flag("--version", "croutctl " CROUT_VERSION " (" CROUT_COMMIT ")");
  app.require_subcommand(1);
  crout::cli::Session session(&app);
  crout::cli::AddFactorCommands(&app, &session);
  crout::cli::AddSolveCommands(&app, &session);
  crout::cli::AddSchurCommand(&app, &session);
  crout::cli::AddGetCommand(&app, &session);
  crout::cli::AddCacheCommands(&app, &session);
  crout::cli::AddServerCommands(&app, &session);
  crout::cli::AddBenchCommand(&app, &session);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : crout::cli::kBadUsage;
  }
  return session.Run();
}
