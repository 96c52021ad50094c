// SPDX-License-Identifier: Apache-2.0

// list, describe, iterations, renew, release
#include <unistd.h>

#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/reported_call.h"
#include "client/cli/exit_codes.h"
#include "client/cli/options/factor_options.h"
#include "client/cli/report/summary.h"
#include "client/cli/report/text.h"

namespace crout::cli {
namespace {

std::vector<std::string> KeysOf(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

CLI::Option* AddFactorsArgument(CLI::App* command, std::vector<std::string>* factors) {
  return command->add_option("factors", *factors,
                             "Handles or names of factors; a name selects the newest factor with "
                             "that name");
}

absl::Status RunList(Session* session, const std::string& name) {
  Json factors = Json::array();
  std::vector<std::string> handles;
  const absl::Status status = session->client().List(
      name,
      [&](const FactorDescription& factor) {
        factors.push_back(ToJson(factor));
        handles.push_back(factor.handle);
        return true;
      },
      session->call());
  if (!status.ok()) return status;
  session->Print(
      {Json{{"factors", factors}},
       FormatObjects({"handle", "name", "n", "factor_dtype", "algorithm", "device", "tier",
                      "version", "bytes", "lease_expire_time"},
                     factors),
       FormatObjects({"handle", "name", "n", "algorithm", "device", "bytes", "lease_expire_time"},
                     factors),
       handles});
  return absl::OkStatus();
}

absl::Status RunDescribe(Session* session, const std::string& name) {
  const auto handle = session->Handle(name);
  if (!handle.ok()) return handle.status();
  const auto factor = session->client().Describe(*handle, session->call());
  if (!factor.ok()) return factor.status();
  PrintFactor(*session, *factor);
  return absl::OkStatus();
}

absl::Status RunIterations(Session* session, const std::string& name) {
  const auto handle = session->Handle(name);
  if (!handle.ok()) return handle.status();
  const auto iterations = session->client().Iterations(*handle, session->call());
  if (!iterations.ok()) return iterations.status();
  session->PrintFields(ToJson(*iterations));
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
  if (done.empty()) return first_error;
  std::vector<std::string> handles;
  for (const Json& object : done) handles.push_back(object["handle"]);
  const bool is_single = factors.size() == 1;
  const std::string text = is_single ? FormatObject(done[0]) : FormatObjects(KeysOf(done[0]), done);
  session->Print({is_single ? done[0] : Json{{"factors", done}}, text, text, handles});
  return first_error;
}

struct RenewArguments {
  std::vector<std::string> factors;
  absl::Duration lease;
  bool pin = false;
  bool unpin = false;
};

absl::Status RunRenew(Session* session, const RenewArguments& arguments) {
  return ForEachFactor(
      session, arguments.factors, [&](const std::string& handle) -> absl::StatusOr<Json> {
        if (arguments.pin || arguments.unpin) {
          const absl::Status status = session->client().Pin(handle, arguments.pin, session->call());
          if (!status.ok()) return status;
        }
        const auto expiry = session->client().Renew(handle, arguments.lease, session->call());
        if (!expiry.ok()) return expiry.status();
        return Json{{"handle", handle},
                    {"lease_expire_time",
                     absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", *expiry, absl::UTCTimeZone())}};
      });
}

absl::Status ReleaseEach(Session* session, const std::vector<std::string>& factors) {
  return ForEachFactor(session, factors, [&](const std::string& handle) -> absl::StatusOr<Json> {
    const absl::Status status = session->client().Release(handle, session->call());
    if (!status.ok()) return status;
    return Json{{"handle", handle}, {"released", true}};
  });
}

struct ReleaseArguments {
  std::vector<std::string> factors;
  bool all = false;
  bool yes = false;
};

// Asks on the terminal. True without a terminal, because a script cannot answer.
bool Confirm(const std::string& question) {
  if (isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1) return true;
  std::cerr << question << " [y/N] " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  answer = absl::AsciiStrToLower(absl::StripAsciiWhitespace(answer));
  return answer == "y" || answer == "yes";
}

// Releases every factor of the tenant.
absl::Status ReleaseAll(Session* session, bool confirmed) {
  std::vector<std::string> handles;
  absl::Status status = session->client().List(
      "",
      [&](const FactorDescription& factor) {
        handles.push_back(factor.handle);
        return true;
      },
      session->call());
  if (!status.ok()) return status;
  const std::string factors =
      absl::StrCat(handles.size(), handles.size() == 1 ? " factor" : " factors");
  if (!handles.empty() && !confirmed &&
      !Confirm(absl::StrCat("Release ", factors, " on ", Printable(session->server()), "?"))) {
    return absl::CancelledError("no factor was released");
  }
  Json done = Json::array();
  std::vector<std::string> released;
  for (const std::string& handle : handles) {
    const absl::Status one = session->client().Release(handle, session->call());
    if (absl::IsNotFound(one)) continue;  // its lease ended, or another client released it
    status.Update(one);
    if (!one.ok()) break;
    done.push_back({{"handle", handle}, {"released", true}});
    released.push_back(handle);
  }
  session->Print({Json{{"factors", done}}, FormatObjects({"handle", "released"}, done),
                  FormatLines({{"released", absl::StrCat(released.size(), " of ", factors)}}),
                  released});
  return status;
}

absl::Status RunRelease(Session* session, const ReleaseArguments& arguments) {
  return arguments.all ? ReleaseAll(session, arguments.yes)
                       : ReleaseEach(session, arguments.factors);
}

}  // namespace

void AddCacheCommands(CLI::App* app, Session* session) {
  const auto factor = std::make_shared<std::string>();
  const auto name = std::make_shared<std::string>();

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
  const auto renewing = std::make_shared<RenewArguments>();
  CLI::App* renew = session->AddCommand(app, "renew", "Renew the leases of factors",
                                        [=] { return RunRenew(session, *renewing); });
  AddFactorsArgument(renew, &renewing->factors)->required();
  BeginSection(renew, "Cache");
  AddLeaseOption(
      renew, [=](absl::Duration value) { renewing->lease = value; },
      "Length of the new lease, from now");
  CLI::Option* pin = renew->add_flag("--pin", renewing->pin,
                                     "Pin the factors: the server neither evicts them nor moves "
                                     "them to host memory");
  renew->add_flag("--unpin", renewing->unpin, "Permit eviction again")->excludes(pin);
  const auto releasing = std::make_shared<ReleaseArguments>();
  CLI::App* release = session->AddCommand(app, "release", "Remove factors from the cache",
                                          [=] { return RunRelease(session, *releasing); });
  CLI::Option* named = AddFactorsArgument(release, &releasing->factors);
  BeginSection(release, "Cache");
  CLI::Option* all = release->add_flag("--all", releasing->all, "Release all factors of the tenant")
                         ->excludes(named);
  release
      ->add_flag("-y,--yes", releasing->yes,
                 "Release without confirmation, which is asked for only on a terminal")
      ->needs(all);
  release->parse_complete_callback([=] {
    if (named->count() + all->count() == 0) throw CLI::RequiredError("factors or --all");
  });
}

}  // namespace crout::cli
