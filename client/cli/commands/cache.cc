// SPDX-License-Identifier: Apache-2.0

// list, info, iterations, renew, release
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/cli/commands/commands.h"
#include "client/cli/exit_codes.h"
#include "client/cli/options/factor_options.h"
#include "client/cli/report/text.h"

namespace crout::cli {
namespace {

std::vector<std::string> KeysOf(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

void AddFactorsArgument(CLI::App* command, std::vector<std::string>* factors) {
  command
      ->add_option("factors", *factors,
                   "Handles or names of factors; a name selects the newest factor with that "
                   "name")
      ->required();
}

absl::Status RunList(Session* session, const std::string& name) {
  Json factors = Json::array();
  const absl::Status status = session->client().List(
      name,
      [&](const FactorDescription& factor) {
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

absl::Status RunDescribe(Session* session, const std::string& name) {
  const auto handle = session->Handle(name);
  if (!handle.ok()) return handle.status();
  const auto factor = session->client().Describe(*handle, session->call());
  if (!factor.ok()) return factor.status();
  session->Print(ToJson(*factor));
  return absl::OkStatus();
}

absl::Status RunIterations(Session* session, const std::string& name) {
  const auto handle = session->Handle(name);
  if (!handle.ok()) return handle.status();
  const auto iterations = session->client().Iterations(*handle, session->call());
  if (!iterations.ok()) return iterations.status();
  session->Print(ToJson(*iterations));
  return absl::OkStatus();
}

// Calls `one` for each of `factors` and prints the results: one object, or a list of several. An
// error does not stop the other calls. Returns the first error, and prints the others.
absl::Status ForEachFactor(Session* session, const std::vector<std::string>& factors,
                           absl::FunctionRef<absl::StatusOr<Json>(const std::string& handle)> one) {
  Json done = Json::array();
  absl::Status first_error;
  for (const std::string& factor : factors) {
    const auto handle = session->Handle(factor);
    auto result = handle.ok() ? one(*handle) : handle.status();
    if (result.ok()) {
      done.push_back(*std::move(result));
    } else if (first_error.ok()) {
      first_error = result.status();
    } else {
      session->Warn(
          absl::StrCat(factor, ": ", ErrorName(result.status()), ": ", result.status().message()));
    }
  }
  if (factors.size() == 1 && !done.empty()) {
    session->Print(done[0]);
  } else if (!done.empty()) {
    session->Print(Json{{"factors", done}}, FormatObjects(KeysOf(done[0]), done));
  }
  return first_error;
}

absl::Status RunRenew(Session* session, const std::vector<std::string>& factors,
                      absl::Duration lease) {
  return ForEachFactor(session, factors, [&](const std::string& handle) -> absl::StatusOr<Json> {
    const auto expiry = session->client().Renew(handle, lease, session->call());
    if (!expiry.ok()) return expiry.status();
    return Json{{"handle", handle},
                {"lease_expire_time",
                 absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", *expiry, absl::UTCTimeZone())}};
  });
}

absl::Status RunRelease(Session* session, const std::vector<std::string>& factors) {
  return ForEachFactor(session, factors, [&](const std::string& handle) -> absl::StatusOr<Json> {
    const absl::Status status = session->client().Release(handle, session->call());
    if (!status.ok()) return status;
    return Json{{"handle", handle}, {"released", true}};
  });
}

}  // namespace

void AddCacheCommands(CLI::App* app, Session* session) {
  const auto factor = std::make_shared<std::string>();
  const auto factors = std::make_shared<std::vector<std::string>>();
  const auto name = std::make_shared<std::string>();
  const auto lease = std::make_shared<absl::Duration>();

  CLI::App* list = session->AddCommand(app, "list", "List the cached factors, newest first",
                                       [=] { return RunList(session, *name); });
  BeginSection(list, "Filter");
  list->add_option("--name", *name, "List only the factors with this name")->type_name("NAME");
  CLI::App* describe = session->AddCommand(app, "describe", "Show the properties of a factor",
                                           [=] { return RunDescribe(session, *factor); });
  AddFactorArgument(describe, factor.get());
  CLI::App* iterations = session->AddCommand(
      app, "iterations", "Show the sweeps of an iterative method for each section",
      [=] { return RunIterations(session, *factor); });
  AddFactorArgument(iterations, factor.get());
  CLI::App* renew = session->AddCommand(app, "renew", "Renew the leases of factors",
                                        [=] { return RunRenew(session, *factors, *lease); });
  AddFactorsArgument(renew, factors.get());
  BeginSection(renew, "Cache");
  AddLeaseOption(
      renew, [=](absl::Duration value) { *lease = value; }, "Length of the new lease, from now");
  CLI::App* release = session->AddCommand(app, "release", "Remove factors from the cache",
                                          [=] { return RunRelease(session, *factors); });
  AddFactorsArgument(release, factors.get());
}

}  // namespace crout::cli
