// croutctl, the command-line client.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "client/cli/commands.h"
#include "crout_version.h"

namespace {

// Where standard output is closed, a connection would take its number and get what is printed. This
// takes it first, and cannot be written.
void OccupyStandardStreams() {
  int fd;
  do {
    fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd >= 0) close(fd);
}

}  // namespace

int main(int argc, char** argv) {
  OccupyStandardStreams();
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
  } catch (const CLI::RequiredError& error) {
    // A word that is no command is told as such, not as a missing command.
    const bool unknown = app.get_subcommands().empty() && app.remaining_size() > 0;
    unknown ? app.exit(CLI::ExtrasError(app.remaining())) : app.exit(error);
    return crout::cli::kBadUsage;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : crout::cli::kBadUsage;
  }
  return session.Run();
}
