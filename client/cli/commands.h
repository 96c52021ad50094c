// The commands of croutctl by group. Each function adds its commands to `app`; they run in
// `session`. Both must outlive the parsing and running.
#ifndef CROUT_CLIENT_CLI_COMMANDS_H_
#define CROUT_CLIENT_CLI_COMMANDS_H_

#include "client/cli/session.h"

namespace crout::cli {

void AddFactorCommands(CLI::App* app, Session* session);  // factor, refactor
void AddSolveCommands(CLI::App* app, Session* session);   // solve, lu
void AddSchurCommand(CLI::App* app, Session* session);    // schur
void AddGetCommand(CLI::App* app, Session* session);      // get
void AddCacheCommands(CLI::App* app, Session* session);   // list, info, renew, release
void AddServerCommands(CLI::App* app, Session* session);  // algorithms, devices, status, estimate
void AddBenchCommand(CLI::App* app, Session* session);    // bench

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_COMMANDS_H_
