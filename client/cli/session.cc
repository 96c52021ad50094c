// SPDX-License-Identifier: Apache-2.0

#include "client/cli/session.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "client/cli/exit_codes.h"
#include "client/cli/options/option_names.h"
#include "client/cli/options/option_values.h"
#include "client/cli/report/text.h"
#include "crout/status.h"
#include "kernels/util/duration.h"

namespace crout::cli {
namespace {

// Invalid UTF-8, which a handle or name may contain, is replaced.
std::string Dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// Result of a parser's check: empty for a valid value, otherwise the usage error.
std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

// The server's details of an error, without its message.
Json DetailsOf(const absl::Status& status) {
  Json details = Json::object();
  if (const std::string reason = Reason(status); !reason.empty()) {
    details["reason"] = reason;
  }
  if (const auto delay = RetryDelay(status)) {
    details["retry_delay_seconds"] = absl::ToDoubleSeconds(*delay);
  }
  return details;
}

}  // namespace

void PrintError(bool json, const std::string& name, const std::string& message, int exit_code,
                const Json& details) {
  if (!json) {
    std::cerr << "croutctl: " << name << ": " << Printable(message) << "\n";
    return;
  }
  Json error = {{"code", name}, {"message", message}, {"exit_code", exit_code}};
  error.update(details);
  std::cerr << Dump(Json{{"error", error}}, -1) << "\n";
}

void BeginSection(CLI::App* app, const std::string& heading) {
  app->option_defaults()->group(heading);
}

CLI::Option* AddFactorArgument(CLI::App* app, std::string* factor) {
  return app
      ->add_option(
          "factor", *factor,
          "Handle of a factor, or its name; a name selects the newest factor with that name")
      ->required();
}

CLI::Option* AddDurationOption(CLI::App* app, const std::string& name,
                               std::function<void(absl::Duration)> set,
                               const std::string& description) {
  const auto parse = [name, set](const std::string& text) {
    const std::optional<absl::Duration> duration = DurationFrom(text);
    if (!duration) {
      throw CLI::ValidationError(name,
                                 "'" + text + "' is not a duration, such as 90s, 15m, 1h30m or 7d");
    }
    set(*duration);
  };
  return app->add_option_function<std::string>(name, parse, description)->type_name("DURATION");
}

Session::Session(CLI::App* app) : app_(app) {
  BeginSection(app, "Connection");
  app->add_option("--server", server_,
                  "Server: host:port, unix:PATH, or a name in ~/.config/crout/servers.toml")
      ->type_name("ADDRESS")
      ->envname("CROUT_SERVER")
      ->check([](const std::string& text) {
        ClientOptions options;
        options.server = text;
        return MessageOf(FindServer(std::move(options)).status());
      })
      ->capture_default_str();
  app->add_option("--tenant", tenant_, "Tenant that owns the factors [default: set by the server]")
      ->type_name("NAME")
      ->envname("CROUT_TENANT")
      ->check([](const std::string& text) { return MessageOf(CheckTenant(text)); });
  AddEnumOption<Priority>(
      app, "--priority", [this](Priority priority) { priority_ = priority; },
      "Priority among the calls of the tenant [default: normal]");
  app->add_flag("--tls", tls_, "Use TLS and verify the server's certificate and name")
      ->envname("CROUT_TLS");
  const auto add_file = [&](const char* name, const char* variable, std::string* file,
                            const char* description) {
    app->add_option(name, *file, description)->envname(variable)->type_name("FILE");
  };
  add_file("--ca", "CROUT_CA", &tls_options_.ca_file,
           "PEM file of the root certificates that verify the server [default: the system's]");
  add_file("--cert", "CROUT_CERT", &tls_options_.cert_file, "PEM file of the client certificate");
  add_file("--token-file", "CROUT_TOKEN_FILE", &token_file_,
           "File with a bearer token, not readable by other users");
  add_file("--key", "CROUT_KEY", &tls_options_.key_file,
           "PEM file of the private key of --cert, not readable by other users");
  AddDurationOption(
      app, "--timeout", [this](absl::Duration timeout) { timeout_ = timeout; },
      "Time limit of a command, retries included, such as 90s, 1h30m or 7d; 0: none [default: 2h]");
  app->add_option("--traceparent", traceparent_, "W3C trace context of the calls")
      ->envname("TRACEPARENT");
  AddOutputOptions(app);
  BeginSection(app, "Options");
}

void Session::AddOutputOptions(CLI::App* app) {
  BeginSection(app, "Output");
  const auto add_flag = [&](const char* name, Show show, const char* description) {
    return app->add_flag_callback(
        name, [this, show] { show_ = show; }, description);
  };
  CLI::Option* const verbose =
      add_flag("-v,--verbose", Show::kWide, "Print all fields of a result, not only a summary");
  CLI::Option* const quiet = add_flag(
      "-q,--quiet", Show::kName, "Print only handles, one a line; nothing if the result has none");
  CLI::Option* const json =
      add_flag("--json", Show::kJson,
               "Print results, warnings and errors as JSON; series prints one object a step");
  CLI::Option* const show = AddChoiceOption<Show>(
      app, "--show", {{"name", Show::kName}, {"json", Show::kJson}, {"wide", Show::kWide}},
      [this](Show chosen) { show_ = chosen; },
      "The same as -q (name), --json or -v (wide) [default: a summary of at most five lines]");
  verbose->excludes(quiet)->excludes(json)->excludes(show);
  quiet->excludes(json)->excludes(show);
  json->excludes(show);
  app->add_flag_function(
      "--progress,!--no-progress", [this](int64_t count) { progress_ = count > 0; },
      "Report progress on standard error: as a line that is redrawn on a terminal, otherwise as a "
      "line for each phase and each second [default: only on a terminal, without -q]");
}

CLI::App* Session::AddCommand(CLI::App* app, const std::string& name,
                              const std::string& description,
                              std::function<absl::Status()> action) {
  CLI::App* command = app->add_subcommand(name, description);
  command->fallthrough();  // global options may also follow the command
  command->callback([this, action = std::move(action)] { action_ = action; });
  return command;
}

CLI::App* Session::AddLocalCommand(CLI::App* app, const std::string& name,
                                   const std::string& description,
                                   std::function<absl::Status()> action) {
  CLI::App* command = AddCommand(app, name, description, std::move(action));
  command->preparse_callback([this](size_t) { IgnoreConnection(); });
  return command;
}

void Session::IgnoreConnection() {
  is_local_ = true;
  for (const CLI::Option* option : app_->get_options()) {
    if (!option->get_envname().empty()) unsetenv(option->get_envname().c_str());
  }
}

int Session::Run() {
  absl::Status status = is_local_ ? absl::OkStatus() : CheckClient();
  if (status.ok()) status = action_();
  if (status.ok() && !std::cout.flush()) status = FileError("cannot write standard output");
  if (status.ok()) return exit_code_.value_or(0);
  const bool ours = IsUnreachable(status) || IsFileError(status);
  const int exit_code = ours ? ExitCodeOf(status) : exit_code_.value_or(ExitCodeOf(status));
  std::string message(status.message());
  if (!IsFileError(status)) {
    message = WithOptionNames(*app_->get_subcommands().front(), WithNextStep(status, message));
  }
  PrintError(show_ == Show::kJson, ErrorName(status), message, exit_code, DetailsOf(status));
  return exit_code;
}

std::string Session::WithNextStep(const absl::Status& status, const std::string& message) const {
  if (IsUnreachable(status)) {
    return absl::StrReplaceAll(message,
                               {{"name another server", "name another server with --server"}});
  }
  // gRPC's own text names no limit.
  if (!absl::IsDeadlineExceeded(status) || message != "Deadline Exceeded") return message;
  if (!timeout_) return "no answer within the time limit of the call. Give a longer --timeout";
  return absl::StrCat("the command took longer than --timeout=", DurationText(*timeout_),
                      ". Give a longer --timeout, or --timeout=0 for no limit");
}

ClientOptions Session::client_options() const {
  ClientOptions options;
  options.server = server_;
  options.tenant = tenant_;
  options.priority = priority_;
  options.token_file = token_file_;
  const bool has_files = !tls_options_.ca_file.empty() || !tls_options_.cert_file.empty() ||
                         !tls_options_.key_file.empty();
  if (tls_ || (has_files && CheckAddress(server_) != absl::OkStatus())) {
    options.tls = tls_options_;  // a named server supplies the rest
  }
  return options;
}

absl::Status Session::CheckClient() const {
  const absl::StatusOr<ClientOptions> named = FindServer(client_options());
  if (!named.ok()) return named.status();
  for (const std::string* file :
       {&tls_options_.ca_file, &tls_options_.cert_file, &tls_options_.key_file}) {
    if (!tls_ && !file->empty() && !named->tls) {
      return absl::InvalidArgumentError("--ca, --cert and --key need --tls. Add --tls");
    }
  }
  if (!named->tls && named->token_file.empty()) return absl::OkStatus();
  return Client::Connect(client_options()).status();
}

Client& Session::client() {
  if (client_ == nullptr) client_ = *Client::Connect(client_options());
  return *client_;
}

CallOptions Session::call() const {
  CallOptions call;
  call.timeout = timeout_;
  call.traceparent = traceparent_;
  return call;
}

absl::Time Session::deadline() const {
  const absl::Duration timeout = timeout_.value_or(client_options().timeout);
  return timeout == absl::ZeroDuration() ? absl::InfiniteFuture() : absl::Now() + timeout;
}

absl::StatusOr<std::string> Session::Handle(const std::string& factor) {
  if (IsHandle(factor)) return factor;
  if (factor.empty())
    return absl::InvalidArgumentError(
        "the handle or name of the factor is empty. `croutctl list` shows both");
  std::string newest;
  int64_t count = 0;
  const absl::Status listed = client().List(
      factor,
      [&](const FactorDescription& listed_factor) {
        if (count++ == 0) newest = listed_factor.handle;
        return true;
      },
      call());
  if (!listed.ok()) return listed;
  if (count == 0) {
    return absl::NotFoundError(
        absl::StrCat("no factor", tenant_.empty() ? "" : absl::StrCat(" of tenant ", tenant_),
                     " is named '", Printable(factor),
                     "': it was never created, was released or evicted, its lease expired, or "
                     "the server was restarted. Factor the matrix again"));
  }
  if (count > 1) {
    Warn(absl::StrCat(count, " factors are named '", Printable(factor), "'; using the newest, ",
                      newest));
  }
  return newest;
}

ProgressMode Session::progress() const {
  const bool terminal = isatty(STDERR_FILENO) == 1;
  if (!progress_.value_or(terminal && show_ != Show::kName)) return ProgressMode::kNone;
  if (terminal) return ProgressMode::kBar;
  return show_ == Show::kJson ? ProgressMode::kJsonLines : ProgressMode::kLines;
}

std::ostream& Session::out() const { return report_on_error_ ? std::cerr : std::cout; }

void Session::Print(const Report& report) const {
  switch (show_) {
    case Show::kSummary:
      out() << report.summary;
      break;
    case Show::kWide:
      out() << report.wide;
      break;
    case Show::kName:
      for (const std::string& name : report.names) {
        if (!name.empty()) out() << Printable(name) << "\n";
      }
      break;
    case Show::kJson:
      out() << Dump(report.json, 2) << "\n";
      break;
  }
}

void Session::PrintFields(const Json& json) const {
  const std::string text = FormatObject(json);
  Print(Report{json, text, text});
}

void Session::PrintText(const Json& json, const std::string& text) const {
  out() << (show_ == Show::kJson ? Dump(json, 2) + "\n" : text);
}

void Session::PrintLine(const Json& json, const std::string& text) const {
  if (show_ == Show::kName) return;
  out() << (show_ == Show::kJson ? Dump(json, -1) + "\n" : text) << std::flush;
}

void Session::Warn(const std::string& text) const {
  if (show_ == Show::kJson) {
    std::cerr << Dump(Json{{"warning", text}}, -1) << "\n";
  } else {
    std::cerr << "croutctl: warning: " << Printable(text) << "\n";
  }
}

void Session::WarnIfKept(const FactorDescription& factor) const {
  if (!factor.handle.empty()) Warn("the factor is kept: " + factor.handle);
}

}  // namespace crout::cli
