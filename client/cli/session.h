// SPDX-License-Identifier: Apache-2.0

// State shared by all commands of croutctl: global options, the client, the output.
#ifndef CROUT_CLIENT_CLI_SESSION_H_
#define CROUT_CLIENT_CLI_SESSION_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/report/json.h"
#include "client/cli/report/progress_bar.h"
#include "crout/client.h"

namespace crout::cli {

// Amount of output, set by --show, -v, -q and --json.
enum class Show {
  kSummary,
  kWide,  // all fields
  kName,  // handles alone
  kJson,
};

// A result in the forms of Show.
struct Report {
  Json json = {};
  std::string wide = "";
  std::string summary = "";
  std::vector<std::string> names = {};  // handles, or names of devices
};

// Not thread-safe; its client is.
class Session {
 public:
  // Adds --server, --tenant, --priority, --tls, --ca, --cert, --key, --token-file, --timeout,
  // --traceparent, --show, -v, -q, --json and --progress.
  explicit Session(CLI::App* app);
  Session(const Session&) = delete;  // The parser writes to its members.
  Session& operator=(const Session&) = delete;

  // Adds a subcommand that runs `action`. Its help is `description`, without a period.
  CLI::App* AddCommand(CLI::App* app, const std::string& name, const std::string& description,
                       std::function<absl::Status()> action);
  // Adds a subcommand that calls no server and ignores the variables of the server.
  CLI::App* AddLocalCommand(CLI::App* app, const std::string& name, const std::string& description,
                            std::function<absl::Status()> action);
  // Removes the variables of the connection from the environment, and omits the checks of the
  // connection. Called before the options are parsed.
  void IgnoreConnection();

  // Runs the chosen command and prints its error. Returns the exit code.
  int Run();
  // Sets the exit code of the running command, whether or not it succeeds.
  void ExitWith(int code) { exit_code_ = code; }

  // The client, created by the first call. It does not connect, so it cannot fail without a server.
  Client& client();
  ClientOptions client_options() const;
  CallOptions call() const;
  // Time at which --timeout ends a command that starts now.
  absl::Time deadline() const;

  // Resolves a handle or name: a text in the form of a handle is returned, otherwise the handle of
  // the newest factor with that name. NOT_FOUND if there is none; warns if there are several.
  absl::StatusOr<std::string> Handle(const std::string& factor);

  const std::string& server() const { return server_; }

  Show show() const { return show_; }
  ProgressMode progress() const;

  // Makes Print and PrintLine use standard error, because a matrix is written to standard output.
  void ReportOnStandardError() { report_on_error_ = true; }

  // Prints the form of show(). Names are printed one a line.
  void Print(const Report& report) const;
  // Prints `json` with --json, nothing with -q, otherwise FormatObject(json).
  void PrintFields(const Json& json) const;
  // Prints `json` with --json, otherwise `text`, which is the purpose of the command.
  void PrintText(const Json& json, const std::string& text) const;
  // Prints one of several reports immediately: with --json on one line; with -q nothing.
  void PrintLine(const Json& json, const std::string& text) const;
  // Prints a warning on standard error; with --json as {"warning": text}.
  void Warn(const std::string& text) const;
  // Warns that a call failed after its factor was stored on the server. Does nothing if `factor`
  // has no handle.
  void WarnIfKept(const FactorDescription& factor) const;

 private:
  void AddOutputOptions(CLI::App* app);
  std::ostream& out() const;
  // Checks the options of the connection that the parser cannot check.
  absl::Status CheckClient() const;
  // Adds the option that changes the outcome to an error message of the client library or gRPC.
  std::string WithNextStep(const absl::Status& status, const std::string& message) const;

  CLI::App* const app_;
  std::string server_ = "127.0.0.1:50051";
  bool tls_ = false;
  TlsOptions tls_options_;
  std::string tenant_;
  Priority priority_ = Priority::kNormal;
  std::string token_file_;
  std::string traceparent_;
  std::optional<absl::Duration> timeout_;
  Show show_ = Show::kSummary;
  std::optional<bool> progress_;
  bool report_on_error_ = false;
  bool is_local_ = false;  // calls no server
  std::optional<int> exit_code_;
  std::function<absl::Status()> action_;
  std::unique_ptr<Client> client_;
};

// Prints an error on standard error: a line "croutctl: NAME: message", or with `json` an object
// {"error": {...}}. `name` is "NOT_FOUND", "USAGE", ...
void PrintError(bool json, const std::string& name, const std::string& message, int exit_code,
                const Json& details = Json::object());

// Puts the options that are added to `app` from now on under this heading of the help.
void BeginSection(CLI::App* app, const std::string& heading);

// Adds the positional argument for a factor: its handle or name.
CLI::Option* AddFactorArgument(CLI::App* app, std::string* factor);

// Adds an option for a duration of at least zero, such as "90s", "1h30m" or "7d" (DurationFrom).
CLI::Option* AddDurationOption(CLI::App* app, const std::string& name,
                               std::function<void(absl::Duration)> set,
                               const std::string& description);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_SESSION_H_
