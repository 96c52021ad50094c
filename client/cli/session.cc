#include "client/cli/session.h"

#include <cstdio>
#include <iostream>
#include <utility>

#include "client/cli/text.h"
#include "crout/status.h"

namespace crout::cli {

CLI::Option* AddDurationOption(CLI::App* app, const std::string& name,
                               std::function<void(absl::Duration)> set,
                               const std::string& description) {
  const auto parse = [name, set](const std::string& text) {
    absl::Duration duration;
    if (!absl::ParseDuration(text, &duration) || duration < absl::ZeroDuration()) {
      throw CLI::ValidationError(name, "'" + text + "' is no duration such as 90s or 1h30m");
    }
    set(duration);
  };
  return app->add_option_function<std::string>(name, parse, description)->type_name("DURATION");
}

Session::Session(CLI::App* app) {
  app->add_option("--server", server_, "host:port or unix:PATH")
      ->envname("CROUT_SERVER")
      ->capture_default_str();
  app->add_option("--tenant", tenant_, "Whose handles to use")->envname("CROUT_TENANT");
  AddDurationOption(
      app, "--timeout", [this](absl::Duration timeout) { timeout_ = timeout; },
      "Give up after this long, retries included; 0: never");
  app->add_option("--traceparent", traceparent_, "W3C trace context")->envname("TRACEPARENT");
  app->add_flag("--json", json_, "Print one JSON object on standard output");
}

CLI::App* Session::AddCommand(CLI::App* app, const std::string& name,
                              const std::string& description,
                              std::function<absl::Status()> action) {
  CLI::App* command = app->add_subcommand(name, description);
  command->fallthrough();  // Options of the session may come after the command too.
  command->callback([this, action = std::move(action)] { action_ = action; });
  return command;
}

int Session::Run() {
  const absl::Status status = action_();
  if (status.ok()) {
    if (std::cout.flush()) return exit_code_.value_or(0);
    std::cerr << "croutctl: cannot write standard output\n";
    return kRefused;
  }
  std::cerr << "croutctl: " << absl::StatusCodeToString(status.code()) << ": " << status.message()
            << "\n";
  return client::IsUnreachable(status) ? kUnreachable : exit_code_.value_or(kRefused);
}

client::ClientOptions Session::client_options() const {
  client::ClientOptions options;
  options.server = server_;
  options.tenant = tenant_;
  return options;
}

client::Client& Session::client() {
  if (client_ == nullptr) client_ = *client::Client::Connect(client_options());
  return *client_;
}

client::CallOptions Session::call() const {
  client::CallOptions call;
  call.timeout = timeout_;
  call.traceparent = traceparent_;
  return call;
}

void Session::Print(const Json& json, const std::string& text) const {
  // A handle or a name need not be printable; replace what is no UTF-8.
  std::cout << (json_ ? json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n" : text);
}

void Session::Warn(const std::string& text) const {
  std::cerr << "croutctl: warning: " << text << "\n";
}

void Session::WarnIfKept(const v1::Factor& factor) const {
  if (!factor.handle().empty()) Warn("the factor is kept: " + factor.handle());
}

void Session::Print(const Json& json) const { Print(json, FormatObject(json)); }

}  // namespace crout::cli
