#include "server/config.h"

#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "crout_version.h"
#include "server/config_file.h"
#include "server/http/http_post.h"
#include "server/http/listen_address.h"
#include "server/identity/identity_keeper.h"
#include "server/tls/listener_credentials.h"

namespace crout {
namespace {

constexpr int kUsageError = 2;

// As CLI11 wants it: the mistake, or nothing.
std::string MistakeIn(const absl::Status& status) { return std::string(status.message()); }

std::string EnvironmentName(const std::string& flag) {
  return absl::StrCat("CROUT_", absl::AsciiStrToUpper(absl::StrReplaceAll(flag, {{"-", "_"}})));
}

// Whether the device is there is found out when it is opened.
bool IsDevice(absl::string_view name) {
  if (name == "auto" || name == "host" || name == "cuda") return true;
  absl::ConsumePrefix(&name, "cuda:");  // "cuda:0,1" arrives as "cuda:0" and "1"
  int ordinal = 0;
  return absl::SimpleAtoi(name, &ordinal) && ordinal >= 0;
}

// Adds options that can also come from the environment and the configuration file.
class Options {
 public:
  explicit Options(CLI::App& app) : app_(app) {}

  template <class T>
  CLI::Option* Add(const std::string& flag, T& value, const std::string& help) {
    return app_.add_option("--" + flag, value, help)
        ->envname(EnvironmentName(flag))
        ->capture_default_str();
  }

  CLI::Option* AddList(const std::string& flag, std::vector<std::string>& value,
                       const std::string& help) {
    return Add(flag, value, help)->delimiter(',');
  }

  CLI::Option* AddBytes(const std::string& flag, size_t& value, const std::string& help) {
    const auto parse = [](const std::string& text) {
      std::string bytes = text;
      CLI::AsSizeValue(false)(bytes);  // takes -1, as 2^64 - 1
      int64_t count = 0;
      if (text.find('-') == std::string::npos && absl::SimpleAtoi(bytes, &count)) return bytes;
      throw CLI::ValidationError(text + " is not in [0, 2^63) bytes");
    };
    return Add(flag, value, help)->transform(parse)->type_name("BYTES");
  }

  // One of `words`, in any case.
  template <class E>
  CLI::Option* AddEnum(const std::string& flag, E& value, const std::map<std::string, E>& words,
                       const std::string& help) {
    const auto set = [&value, words](const std::string& word) { value = words.at(word); };
    CLI::Option* option = app_.add_option_function<std::string>("--" + flag, set, help)
                              ->envname(EnvironmentName(flag))
                              ->transform(CLI::IsMember(words, CLI::ignore_case));
    for (const auto& [word, meaning] : words) {
      if (meaning == value) option->default_str(word);
    }
    return option;
  }

  // Durations as "90s", "1h30m".
  CLI::Option* AddDuration(const std::string& flag, absl::Duration& value, const std::string& help,
                           absl::Duration longest = kLongest) {
    return AddDuration(flag, value, help, [flag, longest](const std::string& text) {
      const absl::Duration duration = ParseDuration(flag, text);
      if (duration <= longest) return duration;
      throw CLI::ValidationError("--" + flag,
                                 "'" + text + "' is longer than " + absl::FormatDuration(longest));
    });
  }

  // Durations of which 0 and "inf" are no limit at all: infinite.
  CLI::Option* AddTimeLimit(const std::string& flag, absl::Duration& value,
                            const std::string& help) {
    return AddDuration(flag, value, help + "; 0 or inf: no limit", [flag](const std::string& text) {
      const absl::Duration duration = ParseDuration(flag, text);
      const bool none = duration == absl::ZeroDuration() || duration > kLongest;
      return none ? absl::InfiniteDuration() : duration;
    });
  }

 private:
  // What is added to a clock stays far from its end.
  static constexpr absl::Duration kLongest = absl::Hours(24 * 365 * 100);

  static absl::Duration ParseDuration(const std::string& flag, const std::string& text) {
    absl::Duration duration;
    if (absl::ParseDuration(text, &duration) && duration >= absl::ZeroDuration()) return duration;
    throw CLI::ValidationError("--" + flag,
                               "'" + text + "' is no duration: write it as 500ms, 90s or 1h30m");
  }

  template <class Parse>
  CLI::Option* AddDuration(const std::string& flag, absl::Duration& value, const std::string& help,
                           Parse parse) {
    return app_
        .add_option_function<std::string>(
            "--" + flag, [&value, parse](const std::string& text) { value = parse(text); }, help)
        ->envname(EnvironmentName(flag))
        ->type_name("DURATION")
        ->default_str(absl::FormatDuration(value));
  }

  CLI::App& app_;
};

// Who may connect, and by what they know the server.
void AddTlsOptions(Options& options, CLI::App& app, Config& config) {
  options.Add("tls-cert", config.tls.certificate,
              "PEM file of the server's certificate and those up to a root: TLS for every TCP "
              "address; read anew when it changes");
  options.Add("tls-key", config.tls.key, "PEM file of its private key, of mode 600 or 640");
  options.Add("tls-client-ca", config.tls.client_ca,
              "PEM file of the roots of clients' certificates; none: clients are not asked");
  const std::map<std::string, ClientCertificates> words = {
      {"optional", ClientCertificates::kOptional}, {"required", ClientCertificates::kRequired}};
  options.AddEnum("tls-client-certs", config.tls.client_certificates, words,
                  "With --tls-client-ca: whether a client may come without a certificate");
  options.Add(
      "identities", config.identities_file,
      "File of those who may call, by token or certificate, with their tenants and roles, of "
      "mode 600 or 640; read anew when it changes; none: whoever connects may do everything");
  options.Add("token-keys", config.signed_tokens.keys_file,
              "JWKS file of the public keys of an authority whose signed tokens (JWT, RS256 or "
              "ES256) are taken; read anew when it changes");
  options.Add("token-issuer", config.signed_tokens.issuer, "Issuer that signed tokens must name");
  options.Add("token-audience", config.signed_tokens.audience,
              "Audience that signed tokens must be for");
  app.add_flag("--insecure", config.insecure,
               "Let other machines call without TLS: whoever reaches the port may read along")
      ->envname(EnvironmentName("insecure"));
}

void AddListenerOptions(Options& options, CLI::App& app, Config& config) {
  options
      .AddList("listen", config.listen,
               "Addresses to serve on: host:port (port 0 picks one) or unix:PATH, separated by "
               "commas")
      ->check([](const std::string& text) { return MistakeIn(CheckListenAddress(text)); });
  AddTlsOptions(options, app, config);
  options.Add("unix-mode", config.unix_access.mode, "Mode of Unix sockets, such as 660")
      ->check([](const std::string& text) { return MistakeIn(ParseSocketMode(text).status()); });
  options.Add("unix-group", config.unix_access.group,
              "Group of Unix sockets; without --unix-mode their mode is 660 then");
}

// Of the metrics port, and what is served beside the service itself.
void AddPageOptions(Options& options, Config& config) {
  options.Add("metrics-listen", config.metrics_listen, "host:port of the metrics endpoint")
      ->check([](const std::string& text) { return MistakeIn(ParseHostPort(text).status()); });
  options.Add("metrics-tls", config.pages_tls,
              "The metrics port speaks TLS, with the files of --tls-cert, --tls-key and "
              "--tls-client-ca: on or off");
  const std::map<std::string, Access> access = {
      {"off", Access::kOff}, {"open", Access::kOpen}, {"roles", Access::kRoles}};
  options.AddEnum("health", config.health, access,
                  "Who may use gRPC's health protocol: nobody, whoever connects, or with "
                  "--identities those who have the role metrics");
  options.AddEnum("reflection", config.reflection, access,
                  "Who may use gRPC's reflection, likewise: the role is solve");
  options.AddEnum("metrics-access", config.page_access, access,
                  "Who sees metrics and status page, likewise: the roles are metrics and admin");
}

void AddDeviceOptions(Options& options, Config& config) {
  options
      .AddList("devices", config.devices,
               "auto (GPUs, or the host where there is none), host, cuda, cuda:0, ...")
      ->check([](const std::string& text) {
        return IsDevice(text) ? "" : "'" + text + "' is none of auto, host, cuda, cuda:0, ...";
      });
  options
      .Add("state-dir", config.state_dir,
           "Directory for what is kept between runs, the measured costs of GPUs; none: nothing is")
      ->transform([](const std::string& text) { return text == "none" ? "" : text; });
}

// Logs and traces.
void AddLogOptions(Options& options, Config& config) {
  const std::map<std::string, LogLevel> levels = {{"debug", LogLevel::kDebug},
                                                  {"info", LogLevel::kInfo},
                                                  {"warn", LogLevel::kWarn},
                                                  {"error", LogLevel::kError}};
  const std::map<std::string, LogFormat> formats = {{"text", LogFormat::kText},
                                                    {"json", LogFormat::kJson}};
  const std::map<std::string, LogCalls> calls = {{"none", LogCalls::kNone},
                                                 {"slow", LogCalls::kSlow},
                                                 {"sampled", LogCalls::kSampled},
                                                 {"all", LogCalls::kAll}};
  options.AddEnum("log-level", config.log_level, levels,
                  "Least level of the lines that are logged");
  options.AddEnum("log-format", config.log_format, formats, "How a line looks");
  options.AddEnum("log-calls", config.call_log.calls, calls,
                  "Calls that get a line: none, slow, sampled (up to 10 in a second besides) or "
                  "all; the server's own failures always do");
  options.AddDuration("log-slow-call", config.call_log.slow, "From here on a call is slow");
  options
      .Add(
          "otlp-endpoint", config.otlp_endpoint,
          "Receiver of traces, http://host:port: calls whose traceparent is sampled are sent there "
          "as JSON of OTLP (/v1/traces)")
      ->check([](const std::string& text) {
        return text.empty() ? "" : MistakeIn(ParseHttpUrl(text).status());
      });
}

void AddJobOptions(Options& options, Config& config) {
  options
      .Add("streams", config.pool.scheduler.streams,
           "Jobs side by side on one device; 0: as many as suit it")
      ->check(CLI::Range(0, 256));
  options
      .Add("host-threads", config.host_threads,
           "Cores for the host device and for parsing text; 0: all")
      ->check(CLI::Range(0, 4096));
  options
      .Add("queue-capacity", config.limits.queue_capacity,
           "Jobs that may wait for one device; more are refused. The same holds for matrices that "
           "wait for their analysis, and for calls that wait for memory")
      ->check(CLI::Range(1, 1000000));
  options.Add("gather", config.gather,
              "Let small calls that wait at the same moment run together: on or off");
  options
      .Add("gather-max-order", config.gather_max_order,
           "Matrices of this order or less are factored together")
      ->check(CLI::Range(1, 1024));
  options.Add("gather-jobs", config.gather_jobs, "Most calls that run together")
      ->check(CLI::Range(1, 4096));
  options.AddDuration("gather-window", config.gather_window,
                      "How long a call waits for company while its device works on another job, "
                      "10ms at most; 0: not at all",
                      absl::Milliseconds(10));
}

void AddMemoryOptions(Options& options, Config& config) {
  options.AddBytes("device-budget", config.pool.device_budget_bytes,
                   "Memory of each GPU for jobs and cached factors; 0: by --memory-fraction");
  options
      .Add("memory-fraction", config.pool.memory_fraction,
           "Share of a GPU's memory for jobs and cached factors")
      ->check([](const std::string& text) {
        double share = 0;
        const bool good = absl::SimpleAtod(text, &share) && share >= 0.01 && share <= 1;  // no NaN
        return good ? "" : "'" + text + "' is not in [0.01, 1]";
      });
  options.AddBytes("host-budget", config.pool.host_budget_bytes,
                   "Host memory for jobs, evicted factors, text and replies; 0: half of it");
  options.AddBytes("receive-buffers", config.receive_buffer_bytes,
                   "Memory for messages on their way in and out, of all connections");
  options.AddBytes("call-memory", config.call_memory_bytes,
                   "Memory for open calls themselves, 32 KiB each; more calls are refused");
  options.AddTimeLimit("return-memory-after", config.return_memory_after,
                       "Free host memory goes back to the system when nothing has run for so long");
}

// What one client may have.
void AddLimitOptions(Options& options, Config& config) {
  options
      .AddList("trusted-proxies", config.trusted_proxies,
               "Proxies that carry many clients: addresses, networks (10.0.0.0/8) or unix; one may "
               "hold more than a quarter of --call-memory when others need it")
      ->check([](const std::string& text) {
        return MistakeIn(TrustedProxies::Parse({text}).status());
      });
  options.AddTimeLimit(
      "max-connection-age", config.max_connection_age,
      "After this a client connects anew for its next calls; those that run go on");
  options
      .Add("max-connections", config.max_connections,
           "Connections of each address at a time; a further one is closed at once")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  options
      .Add("abandoned-calls", config.abandon.calls,
           "Closes a connection whose client resets more calls in 10 s before their header was "
           "read, and most of its calls (--abandoned-share); 0: none")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 30));
  options
      .Add("abandoned-share", config.abandon.share,
           "Share of a connection's calls above which --abandoned-calls closes it")
      ->check([](const std::string& text) {
        double share = 0;
        const bool good = absl::SimpleAtod(text, &share) && share >= 0 && share <= 1;  // no NaN
        return good ? "" : "'" + text + "' is not in [0, 1]";
      });
  options.Add("max-n", config.limits.max_n, "Largest dimension of a matrix")
      ->check(CLI::Range(int64_t{1}, int64_t{2147483647}));
  options
      .Add("max-sparse-n", config.limits.max_sparse_n,
           "Largest order of a matrix that stays sparse")
      ->check(CLI::Range(int64_t{1}, int64_t{2147483647}));
  options.AddDuration("default-lease", config.limits.default_lease,
                      "Lease of a factor whose client names none");
  options.AddDuration("max-lease", config.limits.max_lease, "Longest lease that is granted");
  options.AddTimeLimit("max-life", config.limits.max_life,
                       "Longest life of a factor from its creation, however often it is used");
}

// How long transfers, and the end of the daemon, may take.
void AddPatienceOptions(Options& options, Config& config) {
  TransferLimits& transfer = config.limits.transfer;
  options.AddTimeLimit("upload-idle-timeout", transfer.idle_timeout,
                       "Ends an upload, or a reply that is not read, that pauses for longer");
  options.AddBytes("upload-min-rate", transfer.min_rate,
                   "Least bytes per second of an upload or a reply, on average; 0: no "
                   "limit");
  options.AddTimeLimit("upload-max-time", transfer.max_time,
                       "Ends an upload or a reply that takes longer in all");
  options.AddTimeLimit("series-idle-timeout", config.limits.series_idle_timeout,
                       "Ends a series whose next step does not come for longer");
  options.AddDuration("drain-grace", config.drain_grace,
                      "After SIGTERM: not ready, but serving everything");
  options.AddDuration("drain-limit", config.drain_limit,
                      "After the grace: calls in flight may finish, new ones are refused");
}

void AddOptions(CLI::App& app, Config& config) {
  Options options(app);
  AddListenerOptions(options, app, config);
  AddPageOptions(options, config);
  AddDeviceOptions(options, config);
  AddLogOptions(options, config);
  AddJobOptions(options, config);
  AddMemoryOptions(options, config);
  AddLimitOptions(options, config);
  AddPatienceOptions(options, config);
}

// With less gRPC answers nobody.
void CheckReceiveBuffers(size_t bytes) {
  constexpr size_t kLeast = size_t{1} << 20;
  if (bytes < kLeast) throw CLI::ValidationError("--receive-buffers: less than 1MiB");
}

absl::Status CheckSignedTokens(const Config& config) {
  const SignedTokenSettings& given = config.signed_tokens;
  const bool all = !given.keys_file.empty() && !given.issuer.empty() && !given.audience.empty();
  const bool any = !given.keys_file.empty() || !given.issuer.empty() || !given.audience.empty();
  if (any && !all) {
    return absl::FailedPreconditionError(
        "--token-keys, --token-issuer and --token-audience go together: give all of them or none");
  }
  if (any && config.identities_file.empty()) {
    return absl::FailedPreconditionError(
        "--token-keys: give --identities, which says whom a token's subject stands for");
  }
  return absl::OkStatus();
}

void CheckListeners(const Config& config) {
  absl::Status status = CheckTlsFiles(config.tls);
  const bool asks = !config.identities_file.empty();
  if (status.ok()) status = CheckSignedTokens(config);
  if (status.ok() && asks) {
    status = IdentityKeeper::Create(config.identities_file, config.signed_tokens).status();
  }
  // Whoever reads along on an open network would have the tokens.
  if (status.ok() && asks && config.insecure) {
    status = absl::FailedPreconditionError(
        "--insecure and --identities exclude each other: tokens need TLS, a Unix socket or "
        "loopback");
  }
  if (status.ok() && !config.insecure) status = CheckExposure(config.listen, config.tls);
  for (const auto& [flag, access] : {std::pair("--health", config.health),
                                     {"--reflection", config.reflection},
                                     {"--metrics-access", config.page_access}}) {
    if (status.ok() && access == Access::kRoles && !asks) {
      status = absl::FailedPreconditionError(absl::StrCat(flag, "=roles: give --identities"));
    }
  }
  if (status.ok() && config.page_access == Access::kRoles) {
    // Of a plain port tokens could be read along.
    if (!config.pages_tls && !IsLoopbackAddress(config.metrics_listen)) {
      status = absl::FailedPreconditionError(
          "--metrics-access=roles: tokens need --metrics-tls, or an address of loopback for "
          "--metrics-listen");
    }
  }
  if (status.ok() && config.pages_tls && !config.tls.enabled()) {
    status = absl::FailedPreconditionError("--metrics-tls: give --tls-cert and --tls-key");
  }
  if (!status.ok()) throw CLI::ValidationError(MistakeIn(status));
}

void CheckLeases(const Limits& limits) {
  if (absl::ZeroDuration() < limits.default_lease && limits.default_lease <= limits.max_lease)
    return;
  throw CLI::ValidationError(absl::StrCat(
      "--default-lease: ", absl::FormatDuration(limits.default_lease),
      " is not above 0 and at most --max-lease, ", absl::FormatDuration(limits.max_lease)));
}

}  // namespace

std::string DefaultStateDir() {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): at start
    return std::string(value == nullptr ? "" : value);
  };
  const std::string of_service = variable("STATE_DIRECTORY");
  if (!of_service.empty()) return of_service.substr(0, of_service.find(':'));
  if (const std::string state = variable("XDG_STATE_HOME"); !state.empty()) return state + "/crout";
  if (const std::string home = variable("HOME"); !home.empty()) return home + "/.local/state/crout";
  return "";
}

void Config::ApplyGathering() {
  limits.gather_max_order = gather ? gather_max_order : 0;
  pool.scheduler.gather_jobs = gather ? gather_jobs : 1;
  pool.scheduler.gather_window = absl::ToChronoMicroseconds(gather_window);
}

std::variant<Config, int> ParseCommandLine(int argc, char** argv) {
  Config config;
  config.state_dir = DefaultStateDir();
  CLI::App app("croutd: a long-running LU factorization service", "croutd");
  app.set_version_flag("--version", absl::StrCat(CROUT_VERSION, " (", CROUT_COMMIT, ")"));
  // CLI11 reads the file before it looks at the environment.
  const char* const named = std::getenv("CROUT_CONFIG");  // NOLINT(concurrency-mt-unsafe): at start
  const std::string file = named == nullptr ? "" : named;
  app.set_config("--config", file, "TOML or INI file with any of these settings (Env:CROUT_CONFIG)",
                 !file.empty());
  app.allow_config_extras(CLI::config_extras_mode::error);
  const auto config_file = std::make_shared<ConfigFile>();
  app.config_formatter(config_file);
  bool check = false;
  app.add_flag("--check-config", check, "Say whether the settings make sense, and end")
      ->configurable(false);
  AddOptions(app, config);
  try {
    app.parse(argc, argv);
    CheckListeners(config);
    CheckLeases(config.limits);
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
  } catch (const CLI::ParseError& error) {
    // CLI11 reports by exceptions; its own exit() prints the message or the help.
    return app.exit(error) == 0 ? 0 : kUsageError;
  }
  if (check) {
    std::cout << "croutd: the settings make sense\n" << std::flush;
    return 0;
  }
  config.pool.scheduler.queue_capacity = config.limits.queue_capacity;
  config.ApplyGathering();
  return config;
}

}  // namespace crout
