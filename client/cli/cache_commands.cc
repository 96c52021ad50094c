// list, info, iterations, renew, release
#include <memory>

#include "absl/time/time.h"
#include "client/cli/commands.h"
#include "client/cli/text.h"

namespace crout::cli {
namespace {

absl::Status RunList(Session* session, const std::string& name) {
  Json factors = Json::array();
  const absl::Status status = session->client().List(
      name,
      [&](const v1::Factor& factor) {
        factors.push_back(ToJson(factor));
        return true;
      },
      session->call());
  if (!status.ok()) return status;
  session->Print(Json{{"factors", factors}},
                 FormatObjects({"handle", "name", "n", "factor_dtype", "algorithm", "device",
                                "tier", "version", "bytes", "lease_expire_time"},
                               factors));
  return absl::OkStatus();
}

absl::Status RunInfo(Session* session, const std::string& handle) {
  const auto factor = session->client().Describe(handle, session->call());
  if (!factor.ok()) return factor.status();
  session->Print(ToJson(*factor));
  return absl::OkStatus();
}

absl::Status RunIterations(Session* session, const std::string& handle) {
  const auto iterations = session->client().Iterations(handle, session->call());
  if (!iterations.ok()) return iterations.status();
  Json json = ToJson(*iterations);
  json.erase("next_page_token");
  session->Print(json);
  return absl::OkStatus();
}

absl::Status RunRenew(Session* session, const std::string& handle, absl::Duration lease) {
  const auto expiry = session->client().Renew(handle, lease, session->call());
  if (!expiry.ok()) return expiry.status();
  session->Print(Json{{"handle", handle},
                      {"lease_expire_time",
                       absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", *expiry, absl::UTCTimeZone())}});
  return absl::OkStatus();
}

absl::Status RunRelease(Session* session, const std::string& handle) {
  const absl::Status status = session->client().Release(handle, session->call());
  if (!status.ok()) return status;
  session->Print(Json{{"handle", handle}, {"released", true}});
  return absl::OkStatus();
}

}  // namespace

void AddCacheCommands(CLI::App* app, Session* session) {
  const auto handle = std::make_shared<std::string>();
  const auto name = std::make_shared<std::string>();
  const auto lease = std::make_shared<absl::Duration>();

  session
      ->AddCommand(app, "list", "List the tenant's factors, newest first",
                   [=] { return RunList(session, *name); })
      ->add_option("--name", *name, "Only factors of this name");
  session->AddCommand(app, "info", "Describe a factor", [=] { return RunInfo(session, *handle); })
      ->add_option("handle", *handle)
      ->required();
  session
      ->AddCommand(app, "iterations", "What an iterative method did, section by section",
                   [=] { return RunIterations(session, *handle); })
      ->add_option("handle", *handle)
      ->required();
  CLI::App* renew = session->AddCommand(app, "renew", "Set a new end of a factor's lease",
                                        [=] { return RunRenew(session, *handle, *lease); });
  renew->add_option("handle", *handle)->required();
  AddDurationOption(
      renew, "--lease", [=](absl::Duration value) { *lease = value; },
      "From now; the server's default unless given");
  session->AddCommand(app, "release", "Drop a factor", [=] { return RunRelease(session, *handle); })
      ->add_option("handle", *handle)
      ->required();
}

}  // namespace crout::cli
