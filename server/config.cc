// SPDX-License-Identifier: Apache-2.0

#include "server/config.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "crout_version.h"
#include "kernels/util/nearest.h"
#include "server/auth/identity_reloader.h"
#include "server/auth/listener_credentials.h"
#include "server/config_file.h"
#include "server/config_options.h"
#include "server/net/listen_address.h"
#include "server/quota_reloader.h"
#include "server/replicas/lease.h"

namespace crout {
namespace {

constexpr int kUsageError = 2;

// Returns the message for an unknown option or argument. Names the most similar option, if any.
std::string ExtrasMessage(const CLI::App& app, const CLI::ExtrasError& error) {
  const std::vector<std::string> extras = app.remaining();
  if (extras.empty()) return error.what();
  const std::string& word = extras.front();
  if (!absl::StartsWith(word, "-")) return absl::StrCat("'", word, "' is not an option");
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  }
  return absl::StrCat("there is no option '", word.substr(0, word.find('=')), "'",
                      NearestOptionHint(word, names));
}

// With smaller buffers gRPC would answer no call.
void CheckReceiveBuffers(size_t bytes) {
  constexpr size_t kMinBytes = size_t{1} << 20;
  if (bytes < kMinBytes)
    throw CLI::ValidationError(
        absl::StrCat("--receive-buffers: ", bytes, " bytes is less than 1MiB: set 1MiB or more"));
}

absl::Status CheckSignedTokens(const Config& config) {
  const SignedTokenSettings& settings = config.signed_tokens;
  const bool all =
      !settings.keys_file.empty() && !settings.issuer.empty() && !settings.audience.empty();
  const bool any =
      !settings.keys_file.empty() || !settings.issuer.empty() || !settings.audience.empty();
  if (any && !all) {
    return absl::FailedPreconditionError(
        "--token-keys, --token-issuer and --token-audience must be given together");
  }
  if (any && config.identities_file.empty()) {
    return absl::FailedPreconditionError(
        "--token-keys needs --identities, which maps the subject of a token to an identity");
  }
  return absl::OkStatus();
}

// A machine that joins a group receives matrices and can execute programs on the others.
absl::Status CheckGroupListener(const std::string& address, const Config& config) {
  absl::Status status = CheckExposure({address}, config.tls, "--group");
  const bool requires_certificates =
      !config.tls.client_ca.empty() &&
      config.tls.client_certificates == ClientCertificates::kRequired;
  if (!status.ok() || IsLoopbackAddress(address) || !config.identities_file.empty() ||
      requires_certificates) {
    return status;
  }
  return absl::FailedPreconditionError(
      absl::StrCat("--group: any machine on the network could join at ", address,
                   ". Set --identities, or --tls-client-ca without --tls-client-certs=optional"));
}

void CheckListeners(const Config& config) {
  absl::Status status = CheckTlsFiles(config.tls);
  const bool has_identities = !config.identities_file.empty();
  if (status.ok()) status = CheckSignedTokens(config);
  if (status.ok() && has_identities) {
    status = IdentityReloader::Create(config.identities_file, config.signed_tokens).status();
  }
  if (status.ok() && !config.quotas_file.empty()) {
    status = ReadQuotas(config.quotas_file).status();
  }
  // An eavesdropper on an unencrypted network could steal the tokens.
  if (status.ok() && has_identities && config.insecure) {
    status = absl::FailedPreconditionError(
        "--insecure and --identities exclude each other: tokens need TLS, a Unix socket or a "
        "loopback address");
  }
  if (status.ok() && !config.insecure) status = CheckExposure(config.listen, config.tls);
  for (const GroupSpec& group : config.groups) {
    if (!status.ok() || config.insecure || group.join.empty()) continue;
    status = CheckGroupListener(group.join, config);
  }
  for (const auto& [flag, access] : {std::pair("--health", config.health),
                                     {"--reflection", config.reflection},
                                     {"--metrics-access", config.page_access}}) {
    if (status.ok() && access == Access::kRoles && !has_identities) {
      status = absl::FailedPreconditionError(absl::StrCat(flag, "=roles needs --identities"));
    }
  }
  if (status.ok() && config.page_access == Access::kRoles) {
    // An eavesdropper on a plaintext port could steal the tokens.
    if (!config.pages_tls && !IsLoopbackAddress(config.metrics_listen)) {
      status = absl::FailedPreconditionError(
          "--metrics-access=roles: tokens need --metrics-tls, or a loopback address in "
          "--metrics-listen");
    }
  }
  if (status.ok() && config.pages_tls && !config.tls.enabled()) {
    status = absl::FailedPreconditionError("--metrics-tls needs --tls-cert and --tls-key");
  }
  if (!status.ok()) throw CLI::ValidationError(std::string(status.message()));
}

// A shorter lease would end whenever the object store is slow.
void CheckStoreLease(absl::Duration lease) {
  constexpr absl::Duration kMin = absl::Milliseconds(300);
  if (lease < kMin) {
    throw CLI::ValidationError(absl::StrCat("--store-lease: ", absl::FormatDuration(lease),
                                            " is shorter than ", absl::FormatDuration(kMin),
                                            ": set a longer time, such as 15s"));
  }
}

void CheckLeases(const Limits& limits) {
  if (absl::ZeroDuration() < limits.default_lease && limits.default_lease <= limits.max_lease)
    return;
  throw CLI::ValidationError(absl::StrCat(
      "--default-lease is ", absl::FormatDuration(limits.default_lease),
      "; it must be above 0 and at most --max-lease, ", absl::FormatDuration(limits.max_lease)));
}

}  // namespace

std::string DefaultReplicaName() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "croutd";
  std::string text(name.data());
  text = text.substr(0, std::min(text.find('.'), kMaxReplicaName));
  for (char& c : text) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c))) c = '-';
  }
  return text.empty() ? "croutd" : text;
}

std::string DefaultStateDir() {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): at start
    return std::string(value == nullptr ? "" : value);
  };
  const std::string service_dir = variable("STATE_DIRECTORY");
  if (!service_dir.empty()) return service_dir.substr(0, service_dir.find(':'));
  if (const std::string state = variable("XDG_STATE_HOME"); !state.empty()) return state + "/crout";
  if (const std::string home = variable("HOME"); !home.empty()) return home + "/.local/state/crout";
  return "";
}

void Config::DisableBatching() {
  batching = false;
  limits.batching_max_order = 0;
  pool.scheduler.max_batch_jobs = 1;
}

std::variant<Config, int> ParseCommandLine(int argc, char** argv) {
  Config config;
  config.state_dir = DefaultStateDir();
  config.replica_name = DefaultReplicaName();
  CLI::App app("Run the Crout server, a long-running LU factorization service.", "croutd");
  app.failure_message([](const CLI::App* failed, const CLI::Error& error) {
    return "croutd: " + CLI::FailureMessage::simple(failed, error);
  });
  app.set_version_flag("--version", absl::StrCat(CROUT_VERSION, " (", CROUT_COMMIT, ")"));
  // CROUT_CONFIG is read here, because CLI11 reads the configuration file before it reads
  // environment variables.
  const char* const named = std::getenv("CROUT_CONFIG");  // NOLINT(concurrency-mt-unsafe): at start
  const std::string file = named == nullptr ? "" : named;
  app.set_config("--config", file, "TOML or INI file with any of these settings (Env:CROUT_CONFIG)",
                 !file.empty());
  app.allow_config_extras(CLI::config_extras_mode::error);
  const auto config_file = std::make_shared<ConfigFile>();
  app.config_formatter(config_file);
  bool check = false;
  app.add_flag("--check-config", check, "Check the settings and exit")->configurable(false);
  AddOptions(app, config);
  app.footer(
      "Examples:\n  croutd --listen=0.0.0.0:50051 --tls-cert=server.crt --tls-key=server.key\n"
      "  croutd --config=/etc/crout/croutd.toml --check-config\n\n"
      "`croutd token create --help` describes tokens that authenticate callers.");
  try {
    app.parse(argc, argv);
    CheckListeners(config);
    CheckLeases(config.limits);
    CheckStoreLease(config.store_lease);
    CheckReceiveBuffers(config.receive_buffer_bytes);
  } catch (const CLI::ConfigError& error) {
    const auto file = app.get_config_ptr()->as<std::string>();
    std::string what = error.what();
    absl::string_view unknown = what;
    if (absl::ConsumePrefix(&unknown, "INI was not able to parse ")) {
      const int line = config_file->LineOf(std::string(unknown));
      what = absl::StrCat("line ", line, ": unknown setting ", unknown);
    }
    app.exit(CLI::ConfigError(absl::StrCat(file, ": ", what)));
    return kUsageError;
  } catch (const CLI::FileError&) {
    const auto path = app.get_config_ptr()->as<std::string>();
    const int reason = access(path.c_str(), R_OK) == 0 ? EISDIR : errno;
    app.exit(CLI::FileError("--config: " + path + " cannot be read: " + std::strerror(reason)));
    return kUsageError;
  } catch (const CLI::ExtrasError& error) {
    app.exit(CLI::ParseError(ExtrasMessage(app, error), CLI::ExitCodes::ExtrasError));
    return kUsageError;
  } catch (const CLI::ParseError& error) {
    // CLI11 reports errors, and --help, by exceptions. exit() prints the message or the help.
    return app.exit(error) == 0 ? 0 : kUsageError;
  }
  if (check) {
    std::cout << "croutd: the settings are valid\n" << std::flush;
    return 0;
  }
  config.pool.scheduler.queue_capacity = config.limits.queue_capacity;
  if (!config.batching) config.DisableBatching();
  return config;
}

}  // namespace crout
