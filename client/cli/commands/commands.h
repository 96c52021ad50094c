// SPDX-License-Identifier: Apache-2.0

// The commands of croutctl by group. Each function adds its commands to `app`; they run in
// `session`. Both must outlive parsing and running.
#ifndef CROUT_CLIENT_CLI_COMMANDS_COMMANDS_H_
#define CROUT_CLIENT_CLI_COMMANDS_COMMANDS_H_

#include "client/cli/session.h"

namespace crout::cli {

void AddFactorCommands(CLI::App* app, Session* session);   // factor, refactor
void AddSolveCommands(CLI::App* app, Session* session);    // solve, lu
void AddBatchCommands(CLI::App* app, Session* session);    // factor-batch, solve-batch
void AddSchurCommand(CLI::App* app, Session* session);     // schur
void AddRrefCommand(CLI::App* app, Session* session);      // rref
void AddSeriesCommand(CLI::App* app, Session* session);    // series
void AddDownloadCommand(CLI::App* app, Session* session);  // download
void AddVerifyCommand(CLI::App* app, Session* session);    // verify
void AddAnalyzeCommand(CLI::App* app, Session* session);   // analyze
void AddCacheCommands(CLI::App* app, Session* session);    // list, describe, renew, release
void AddServerCommands(CLI::App* app, Session* session);   // algorithms, devices, status, estimate
void AddTopCommand(CLI::App* app, Session* session);       // top
void AddBenchCommand(CLI::App* app, Session* session);     // bench
void AddManualCommands(CLI::App* app, Session* session);   // help, completion, man, version

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_COMMANDS_COMMANDS_H_
