// What every command of croutctl shares: the options before the command, the client, the output.
#ifndef CROUT_CLIENT_CLI_SESSION_H_
#define CROUT_CLIENT_CLI_SESSION_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/json.h"
#include "crout/client.h"

namespace crout::cli {

// Not thread-safe; the client it makes is.
class Session {
 public:
  // Adds --server, --tenant, --tls, --ca, --cert, --key, --token-file, --timeout,
  // --traceparent and --json.
  explicit Session(CLI::App* app);
  Session(const Session&) = delete;  // The parser writes to its members.
  Session& operator=(const Session&) = delete;

  // A subcommand that runs `action` when it is chosen.
  CLI::App* AddCommand(CLI::App* app, const std::string& name, const std::string& description,
                       std::function<absl::Status()> action);

  // Runs the chosen command; prints its error. Returns the exit code.
  int Run();
  // The exit code of the command that runs, whether it succeeds or is refused.
  void ExitWith(int code) { exit_code_ = code; }

  // Made at the first call; the client is lazy too, so it cannot fail for lack of a server.
  client::Client& client();
  client::ClientOptions client_options() const;
  client::CallOptions call() const;
  // When a command that starts now ends by --timeout.
  absl::Time deadline() const;

  // The handle that `factor` stands for: itself where it has a handle's form, else that of the
  // newest factor of that name. NOT_FOUND where there is none; warns where there are several.
  absl::StatusOr<std::string> Handle(const std::string& factor);

  const std::string& server() const { return server_; }

  // From here on Print and PrintLine go to standard error: standard output gets a matrix.
  void ReportOnStandardError() { report_on_error_ = true; }

  // Prints `json` with --json, and otherwise `text`.
  void Print(const Json& json, const std::string& text) const;
  // The same with FormatObject(json) as text.
  void Print(const Json& json) const;
  // One report of many, while the command goes on: at once, and with --json in one line.
  void PrintLine(const Json& json, const std::string& text) const;
  // A line on standard error; {"warning": text} with --json.
  void Warn(const std::string& text) const;
  // Names a factor that a call left behind, though it failed later; it may have left none.
  void WarnIfKept(const v1::Factor& factor) const;

 private:
  // Why no client can be made of the options; the parser has checked the others.
  absl::Status CheckClient() const;

  CLI::App* const app_;
  std::string server_ = "127.0.0.1:50051";
  bool tls_ = false;
  client::TlsOptions tls_options_;
  std::string tenant_;
  std::string token_file_;
  std::string traceparent_;
  std::optional<absl::Duration> timeout_;
  bool json_ = false;
  bool report_on_error_ = false;
  std::optional<int> exit_code_;
  std::function<absl::Status()> action_;
  std::unique_ptr<client::Client> client_;
};

// Says on standard error why croutctl ends with `exit_code`: a line "croutctl: NAME: message", or
// with `json` one object {"error": {...}}. `name`: "NOT_FOUND", "USAGE".
void PrintError(bool json, const std::string& name, const std::string& message, int exit_code,
                const Json& details = Json::object());

// Adds the positional argument of a command that works on a factor: its handle or name.
CLI::Option* AddFactorArgument(CLI::App* app, std::string* factor);

// Adds an option that takes a duration such as "90s", "1h30m", and not less than zero.
CLI::Option* AddDurationOption(CLI::App* app, const std::string& name,
                               std::function<void(absl::Duration)> set,
                               const std::string& description);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_SESSION_H_
