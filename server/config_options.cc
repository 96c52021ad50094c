// SPDX-License-Identifier: Apache-2.0

#include "server/config_options.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "kernels/util/duration.h"
#include "kernels/util/nearest.h"
#include "server/groups/group_spec.h"
#include "server/net/http_post.h"
#include "server/net/listen_address.h"
#include "server/replicas/lease.h"
#include "server/storage.h"

namespace crout {
namespace {

// Converts `status` to CLI11's form: the error message, or an empty string.
std::string ErrorMessage(const absl::Status& status) { return std::string(status.message()); }

std::string EnvironmentName(const std::string& flag) {
  return absl::StrCat("CROUT_", absl::AsciiStrToUpper(absl::StrReplaceAll(flag, {{"-", "_"}})));
}

// Returns true if the name is well-formed. OpenDevices() checks that the device exists.
bool IsDevice(absl::string_view name) {
  if (name == "auto" || name == "host" || name == "cuda") return true;
  absl::ConsumePrefix(&name, "cuda:");  // "cuda:0,1" arrives as "cuda:0" and "1"
  int ordinal = 0;
  return absl::SimpleAtoi(name, &ordinal) && ordinal >= 0;
}

// Rejoins the ordinals of "big=cuda:0,1", which arrives as "big=cuda:0" and "1".
std::vector<std::string> JoinOrdinals(const std::vector<std::string>& texts) {
  std::vector<std::string> joined;
  for (const std::string& text : texts) {
    if (joined.empty() || absl::StrContains(text, '=')) {
      joined.push_back(text);
    } else {
      absl::StrAppend(&joined.back(), ",", text);
    }
  }
  return joined;
}

// Adds options that can also come from the environment and the configuration file.
class Options {
 public:
  explicit Options(CLI::App& app) : app_(app) {}

  // Lists the options that are added from now on under this heading of the help.
  void BeginSection(const std::string& heading) { app_.option_defaults()->group(heading); }

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
      try {
        CLI::AsSizeValue(false)(bytes);  // accepts -1, as 2^64 - 1
        int64_t count = 0;
        if (text.find('-') == std::string::npos && absl::SimpleAtoi(bytes, &count)) return bytes;
      } catch (const CLI::ValidationError&) {
        // Replaced by the message below, because CLI11 lists the units in lower case.
      }
      throw CLI::ValidationError(text +
                                 " is not a size from 0 to 2^63-1 bytes; write it like 8GiB");
    };
    return Add(flag, value, help)->transform(parse)->type_name("BYTES");
  }

  CLI::Option* AddGroups(std::vector<GroupSpec>& groups) {
    const auto set = [&groups](const std::vector<std::string>& texts) {
      groups.clear();
      for (const std::string& text : JoinOrdinals(texts)) {
        absl::StatusOr<GroupSpec> group = ParseGroup(text);
        if (!group.ok())
          throw CLI::ValidationError("--group", std::string(group.status().message()));
        for (const GroupSpec& other : groups) {
          if (other.name == group->name) {
            throw CLI::ValidationError("--group", "two groups have the name " + other.name);
          }
        }
        groups.push_back(*std::move(group));
      }
    };
    return app_
        .add_option_function<std::vector<std::string>>(
            "--group", set,
            "Groups of processes that factor large matrices together, separated by commas: "
            "NAME=host:RANKS starts RANKS processes on this machine as the device group:NAME. "
            "NAME=cuda:0,1 starts one for each of these GPUs, which are then not available as "
            "separate devices. "
            "NAME=join:RANKS@HOST:PORT listens for crout-rank --join on other machines "
            "[default: none]")
        ->envname(EnvironmentName("group"))
        ->type_name("NAME=KIND:RANKS")
        ->delimiter(',');
  }

  // Adds an option that accepts one of `words`, in any case.
  template <class E>
  CLI::Option* AddEnum(const std::string& flag, E& value, const std::map<std::string, E>& words,
                       const std::string& help) {
    const auto set = [&value, words](const std::string& word) { value = words.at(word); };
    const CLI::IsMember is_member(words, CLI::ignore_case);
    std::vector<std::string> names;
    for (const auto& [word, meaning] : words) names.push_back(word);
    const auto check = [is_member, names](std::string& text) {
      if (is_member(text).empty()) return std::string();
      return absl::StrCat("'", text, "' is none of {", absl::StrJoin(names, ","), "}",
                          NearestHint(text, names));
    };
    CLI::Option* option = app_.add_option_function<std::string>("--" + flag, set, help)
                              ->envname(EnvironmentName(flag))
                              ->transform(CLI::Validator(check, is_member.get_description()));
    for (const auto& [word, meaning] : words) {
      if (meaning == value) option->default_str(word);
    }
    return option;
  }

  // Adds a duration such as "90s" or "1h30m".
  CLI::Option* AddDuration(const std::string& flag, absl::Duration& value, const std::string& help,
                           absl::Duration longest = kLongest) {
    return AddDuration(flag, value, help, [flag, longest](const std::string& text) {
      const absl::Duration duration = ParseDuration(flag, text);
      if (duration <= longest) return duration;
      throw CLI::ValidationError("--" + flag,
                                 "'" + text + "' is longer than " + absl::FormatDuration(longest));
    });
  }

  // Adds a duration for which 0 and "inf" mean no limit.
  CLI::Option* AddTimeLimit(const std::string& flag, absl::Duration& value,
                            const std::string& help) {
    return AddDuration(flag, value, help + "; 0 or inf: no limit", [flag](const std::string& text) {
      const absl::Duration duration = ParseDuration(flag, text);
      const bool none = duration == absl::ZeroDuration() || duration > kLongest;
      return none ? absl::InfiniteDuration() : duration;
    });
  }

 private:
  // Limits durations so that adding one to a clock cannot overflow.
  static constexpr absl::Duration kLongest = absl::Hours(24 * 365 * 100);

  static absl::Duration ParseDuration(const std::string& flag, const std::string& text) {
    if (const auto duration = DurationFrom(text)) return *duration;
    throw CLI::ValidationError(
        "--" + flag, "'" + text + "' is not a duration; write it like 500ms, 90s, 1h30m or 7d");
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

// Adds the options for TLS, identities and signed tokens.
void AddTlsOptions(Options& options, CLI::App& app, Config& config) {
  options.BeginSection("TLS");
  options.Add("tls-cert", config.tls.certificate,
              "PEM file of the server certificate and its chain; enables TLS on every TCP address. "
              "Reloaded when it changes");
  options.Add("tls-key", config.tls.key,
              "PEM file of the private key of --tls-cert; mode 600 or 640");
  options.Add("tls-client-ca", config.tls.client_ca,
              "PEM file of the root certificates that verify client certificates [default: none]");
  const std::map<std::string, ClientCertificates> words = {
      {"optional", ClientCertificates::kOptional}, {"required", ClientCertificates::kRequired}};
  options.AddEnum("tls-client-certs", config.tls.client_certificates, words,
                  "Whether clients must present a certificate; used with --tls-client-ca");
  options.BeginSection("Callers");
  options.Add(
      "identities", config.identities_file,
      "File of the callers (by token, certificate or socket) with their tenants and roles; "
      "mode 600 or 640. Reloaded when it changes [default: every client may do everything]");
  options.Add("quotas", config.quotas_file,
              "TOML file of the limits of tenants. Reloaded when it changes [default: no limits]");
  options.Add("token-keys", config.signed_tokens.keys_file,
              "JWKS file of the public keys that verify signed tokens (JWT, RS256 or ES256). "
              "Reloaded when it changes");
  options.Add("token-issuer", config.signed_tokens.issuer,
              "Issuer (iss) required in signed tokens");
  options.Add("token-audience", config.signed_tokens.audience,
              "Audience (aud) required in signed tokens");
  options.BeginSection("Listen addresses");
  app.add_flag("--insecure", config.insecure,
               "Accept connections from other machines without TLS; anyone on the network can read "
               "the traffic [default: off]")
      ->envname(EnvironmentName("insecure"));
}

void AddListenerOptions(Options& options, CLI::App& app, Config& config) {
  options.BeginSection("Listen addresses");
  options
      .AddList("listen", config.listen,
               "Listen addresses, separated by commas: host:port (port 0 picks a free port) or "
               "unix:PATH")
      ->check([](const std::string& text) { return ErrorMessage(CheckListenAddress(text)); });
  AddTlsOptions(options, app, config);
  options
      .Add(
          "unix-mode", config.unix_access.mode,
          "Mode of Unix sockets, such as 660 [default: set by the umask, or 660 with --unix-group]")
      ->check([](const std::string& text) { return ErrorMessage(ParseSocketMode(text).status()); });
  options.Add("unix-group", config.unix_access.group,
              "Group of Unix sockets [default: the group of the daemon]");
}

// Adds the options of the metrics port and of the health and reflection services.
void AddPageOptions(Options& options, Config& config) {
  options.BeginSection("Metrics, health and reflection");
  options
      .Add("metrics-listen", config.metrics_listen, "host:port of the metrics and the status page")
      ->check([](const std::string& text) { return ErrorMessage(ParseHostPort(text).status()); });
  options.Add("metrics-tls", config.pages_tls,
              "Use TLS on the metrics port, with the files of --tls-cert, --tls-key and "
              "--tls-client-ca: on or off");
  const std::map<std::string, Access> access = {
      {"off", Access::kOff}, {"open", Access::kOpen}, {"roles", Access::kRoles}};
  options.AddEnum("health", config.health, access,
                  "Access to the gRPC health protocol: off (nobody), open (every client) or roles "
                  "(identities with the role metrics)");
  options.AddEnum("reflection", config.reflection, access,
                  "Access to gRPC reflection: off, open or roles (the role solve)");
  options.AddEnum("metrics-access", config.page_access, access,
                  "Access to the metrics and the status page: off, open or roles (metrics for the "
                  "metrics, admin for the page)");
}

void AddDeviceOptions(Options& options, Config& config) {
  options.BeginSection("Devices and jobs");
  options
      .AddList(
          "devices", config.devices,
          "Devices: auto (all GPUs, or the host if there is none), host, cuda (all GPUs) or cuda:N")
      ->check([](const std::string& text) {
        return IsDevice(text) ? "" : "'" + text + "' is not auto, host, cuda or cuda:N";
      });
  options.AddGroups(config.groups);
  options
      .Add("state-dir", config.state_dir,
           "Directory for data kept between runs, such as the measured costs of GPUs; none: keep "
           "nothing")
      ->transform([](const std::string& text) { return text == "none" ? "" : text; });
}

void AddLogOptions(Options& options, Config& config) {
  options.BeginSection("Logs and traces");
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
                  "Lowest level of the lines that are logged");
  options.AddEnum("log-format", config.log_format, formats, "Format of log lines");
  options.AddEnum("log-calls", config.call_log.calls, calls,
                  "Calls that are logged: none, slow, sampled (slow ones and up to 10 others a "
                  "second) or all. Internal failures are always logged");
  options.AddDuration("log-slow-call", config.call_log.slow,
                      "Calls that take at least this long are slow");
  options
      .Add("otlp-endpoint", config.otlp_endpoint,
           "OTLP receiver of traces, http://host:port[/PATH]; gets the sampled calls as JSON at "
           "/v1/traces [default: no traces]")
      ->check([](const std::string& text) {
        return text.empty() ? "" : ErrorMessage(ParseHttpUrl(text).status());
      });
}

void AddJobOptions(Options& options, Config& config) {
  options.BeginSection("Devices and jobs");
  options
      .Add("streams", config.pool.scheduler.streams,
           "Jobs that run concurrently on one device; 0: chosen by the device")
      ->check(CLI::Range(0, 256));
  options
      .Add("host-threads", config.host_threads,
           "CPU cores for the host device and for parsing text; 0: all cores of the process's "
           "affinity mask, within the CPU quota of its control group")
      ->check(CLI::Range(0, 4096));
  options
      .Add("queue-capacity", config.limits.queue_capacity,
           "Jobs that may wait for one device; further jobs are refused. Also limits the matrices "
           "that wait for analysis and the calls that wait for memory")
      ->check(CLI::Range(1, 1000000));
  options.Add(
      "batching", config.batching,
      "Dynamic batching: run small requests that wait at the same time as one batch: on or off");
  options
      .Add("batching-max-order", config.limits.batching_max_order,
           "Largest order of a matrix that auto factors in a dynamic batch")
      ->check(CLI::Range(1, 1024));
  options
      .Add("batching-max-requests", config.pool.scheduler.max_batch_jobs,
           "Largest number of requests in a dynamic batch")
      ->check(CLI::Range(1, 4096));
  options.AddDuration("batching-max-delay", config.pool.scheduler.max_batch_delay,
                      "Longest time that a request waits for a dynamic batch to fill while its "
                      "device is busy; at most 10ms; 0: no wait",
                      absl::Milliseconds(10));
}

void AddMemoryOptions(Options& options, Config& config) {
  options.BeginSection("Memory");
  options.AddBytes("device-budget", config.pool.device_budget_bytes,
                   "Memory of each GPU for jobs and cached factors; 0: set by --memory-fraction");
  options
      .Add("memory-fraction", config.pool.memory_fraction,
           "Fraction of the memory of a GPU for jobs and cached factors, from 0.01 to 1")
      ->check([](const std::string& text) {
        double share = 0;
        // The comparisons are false for NaN.
        const bool good = absl::SimpleAtod(text, &share) && share >= 0.01 && share <= 1;
        return good ? "" : "'" + text + "' is not a number from 0.01 to 1";
      });
  options.AddBytes("out-of-core-memory", config.pool.out_of_core_bytes,
                   "Memory of each GPU for factoring matrices that it cannot hold, taken from its "
                   "budget. Each GPU cuda:N then has a device cuda:N+host, whose matrices are in "
                   "pinned memory of --host-budget; 0: no such devices");
  options.AddBytes(
      "host-budget", config.pool.host_budget_bytes,
      "Host memory for jobs, evicted factors, text and replies; 0: half of the machine's memory, "
      "or half of the control group's limit if that is less");
  options.AddBytes("receive-buffers", config.receive_buffer_bytes,
                   "Memory for messages being received and sent on all connections, at least 1MiB");
  options.AddBytes("call-memory", config.call_memory_bytes,
                   "Memory for open calls, 32 KiB each; further calls are refused");
  options.AddBytes("max-shared-memory", config.max_shared_memory_bytes,
                   "Memory that clients of Unix sockets may share with the server, a quarter for "
                   "each user, charged to --host-budget. Each unix:PATH of --listen then has a "
                   "memory socket PATH.memory; 0: none");
  options.AddTimeLimit("return-memory-after", config.return_memory_after,
                       "Idle time after which free host memory is returned to the system");
}

// Adds the options that limit clients, matrices and leases.
void AddLimitOptions(Options& options, Config& config) {
  options.BeginSection("Limits of clients");
  options
      .AddList("trusted-proxies", config.trusted_proxies,
               "Proxies that carry many clients: addresses, networks (10.0.0.0/8) or unix. A proxy "
               "may use more than a quarter of --call-memory even when other clients need it")
      ->check([](const std::string& text) {
        return ErrorMessage(TrustedProxies::Parse({text}).status());
      });
  options.AddTimeLimit("max-connection-age", config.max_connection_age,
                       "Close connections older than this; calls in flight finish");
  options
      .Add("max-connections", config.max_connections,
           "Open connections for each listen address; further ones are closed on arrival")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  options
      .Add("abandoned-calls", config.abandon.calls,
           "Close a connection whose client resets more than this many calls in 10 s before their "
           "header is read, and more than --abandoned-share of its calls; 0: never")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 30));
  options
      .Add("abandoned-share", config.abandon.share,
           "Fraction of the calls of a connection, from 0 to 1; see --abandoned-calls")
      ->check([](const std::string& text) {
        double share = 0;
        // The comparisons are false for NaN.
        const bool good = absl::SimpleAtod(text, &share) && share >= 0 && share <= 1;
        return good ? "" : "'" + text + "' is not a number from 0 to 1";
      });
  options.BeginSection("Matrices and leases");
  options
      .Add("max-n", config.limits.max_n,
           "Largest number of rows or columns of a matrix that is factored as a dense matrix")
      ->check(CLI::Range(int64_t{1}, int64_t{2147483647}));
  options
      .Add("max-sparse-n", config.limits.max_sparse_n,
           "Largest order of a matrix that is factored as a sparse matrix")
      ->check(CLI::Range(int64_t{1}, int64_t{2147483647}));
  options.AddDuration("default-lease", config.limits.default_lease,
                      "Lease of a factor if the client requests none");
  options.AddDuration("max-lease", config.limits.max_lease, "Longest lease that a client can get");
  options.AddTimeLimit("max-life", config.limits.max_life,
                       "Longest lifetime of a factor since its creation, regardless of use");
  options.AddBytes(
      "max-pinned-bytes", config.max_pinned_bytes,
      "Bytes that the pinned factors of one tenant may have; 0: a quarter of all memory budgets. "
      "Pinned factors of all tenants use at most half of each budget");
}

void AddStoreOptions(Options& options, Config& config) {
  options.BeginSection("Store of factors");
  options
      .Add("store", config.store_location,
           "Directory, or s3://BUCKET/PREFIX, for durable factors and for factors that are evicted "
           "from host memory; empty: no store")
      ->check([](const std::string& text) { return ErrorMessage(ParseS3Location(text).status()); });
  options.AddBytes("max-store-bytes", config.store.max_bytes,
                   "Most bytes of all its files; 0: half of the free space of the disk, or 1TiB");
  options.Add("store-key-file", config.store_key_file,
              "File with a key of 64 hexadecimal digits that encrypts the files of a directory; "
              "empty: they are not encrypted");
  options
      .Add("replica-name", config.replica_name,
           "Name of this daemon among those that share a bucket; clients can see it")
      ->check([](const std::string& text) {
        return IsReplicaName(text) ? "" : "a name has 1 to 63 letters, digits and hyphens";
      });
  options.AddDuration("store-lease", config.store_lease,
                      "Time for which a daemon uses its factors in a bucket without a renewal of "
                      "its lease; other daemons adopt them after 4/3 of this time",
                      absl::Hours(1));
  options.Add("s3-endpoint", config.s3.endpoint,
              "Address of the object store; empty: https://s3.REGION.amazonaws.com");
  options.Add("s3-region", config.s3.region, "Region of the bucket");
  options.Add("s3-path-style", config.s3.path_style,
              "Send the name of the bucket in the path of addresses, not in the host: on or off");
  options.Add("s3-plain-http", config.s3.allow_plain_http,
              "Permit http:// for an object store on another machine, without protection of the "
              "factors on the network: on or off");
  options.Add("s3-ca", config.s3.ca_file,
              "PEM file of the authorities of the object store; empty: those of the system");
}

// Adds the time limits of transfers and of the shutdown.
void AddTimeoutOptions(Options& options, CLI::App& app, Config& config) {
  options.BeginSection("Transfers and shutdown");
  TransferLimits& transfer = config.limits.transfer;
  options.AddTimeLimit(
      "upload-idle-timeout", transfer.idle_timeout,
      "End an upload, or a reply that the client does not read, after a pause of this length");
  options.AddBytes("upload-min-rate", transfer.min_rate,
                   "Lowest average rate of an upload or a reply, in bytes per second; 0: no limit");
  options.AddTimeLimit("upload-max-time", transfer.max_time,
                       "End an upload or a reply that takes longer than this in total");
  options.AddTimeLimit("series-idle-timeout", config.limits.series_idle_timeout,
                       "End a series that receives no step for this long");
  options.AddTimeLimit("stalled-job-timeout", config.limits.stalled_job_timeout,
                       "End a factorization that completes no column for this long, if its method "
                       "reports columns");
  options.AddDuration(
      "drain-grace", config.drain_grace,
      "Time after SIGTERM in which the server reports not ready but accepts all calls");
  options.AddDuration(
      "drain-limit", config.drain_limit,
      "Time after --drain-grace in which calls in flight may finish; new calls are refused");
  // Has no environment variable, because other children of the parent would inherit it.
  app.add_option("--stop-with-parent", config.stop_with_parent,
                 "Drain when the parent process, which must have this PID, has ended")
      ->type_name("PID")
      ->check(CLI::Range(1, 1 << 22))  // the largest PID of Linux
      ->configurable(false);
}

}  // namespace

void AddOptions(CLI::App& app, Config& config) {
  Options options(app);
  AddListenerOptions(options, app, config);
  AddPageOptions(options, config);
  AddDeviceOptions(options, config);
  AddLogOptions(options, config);
  AddJobOptions(options, config);
  AddMemoryOptions(options, config);
  AddLimitOptions(options, config);
  AddStoreOptions(options, config);
  AddTimeoutOptions(options, app, config);
}

}  // namespace crout
