// SPDX-License-Identifier: Apache-2.0

// The daemon's settings: flags, CROUT_* environment variables and a configuration file.
#ifndef CROUT_SERVER_CONFIG_H_
#define CROUT_SERVER_CONFIG_H_

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "server/auth/access.h"
#include "server/auth/signed_token.h"
#include "server/auth/tls_files.h"
#include "server/engine/scheduling/device_pool.h"
#include "server/net/unix_socket.h"
#include "server/observability/log/log.h"
#include "server/rpc/core.h"

namespace crout {

struct Config {
  std::vector<std::string> listen = {"127.0.0.1:50051"};
  TlsFiles tls;                 // of every address of `listen` but Unix sockets
  SocketAccess unix_access;     // of every Unix socket of `listen`
  bool insecure = false;        // other machines may call without TLS
  std::string identities_file;  // who may call, and for what; "": everybody, for everything
  // Who signs tokens that are taken besides those which the file lists.
  SignedTokenSettings signed_tokens;
  Access health = Access::kOpen;  // gRPC's health protocol
  Access reflection = Access::kOpen;
  Access page_access = Access::kOpen;  // metrics and the status page
  bool pages_tls = false;              // the metrics port has the TLS of `tls`
  std::string metrics_listen = "127.0.0.1:9464";
  // "auto" (every GPU, or the host where there is none), "host", "cuda", or "cuda:0", "cuda:1", ...
  std::vector<std::string> devices = {"auto"};
  LogLevel log_level = LogLevel::kInfo;
  LogFormat log_format = LogFormat::kText;
  CallLogOptions call_log;
  std::string otlp_endpoint;  // where spans of calls go, a base URL; "": nowhere
  // What is kept between runs, the measured costs of GPUs, goes there; "": nothing is kept.
  std::string state_dir;
  int host_threads = 0;  // cores for the host device and text parsing; 0: all
  size_t receive_buffer_bytes = size_t{1} << 30;
  size_t call_memory_bytes = size_t{128} << 20;  // for calls themselves, beside what they move
  // Free host memory goes back to the system when nothing has run for so long; infinite: never.
  absl::Duration return_memory_after = absl::Seconds(10);
  // Addresses, networks and "unix", whose calls have no share of the memory for calls.
  std::vector<std::string> trusted_proxies;
  absl::Duration max_connection_age = absl::Hours(1);
  int64_t max_connections = 4096;  // of TCP, to each address of `listen`
  AbandonLimits abandon;           // of calls that a connection's client resets
  // Small calls that run together (decision 0032).
  bool gather = true;
  int64_t gather_max_order = 128;
  size_t gather_jobs = 128;
  absl::Duration gather_window = absl::Microseconds(200);
  Limits limits;
  DevicePoolOptions pool;
  absl::Duration drain_grace = absl::Seconds(2);
  absl::Duration drain_limit = absl::Seconds(30);

  // Tells limits and schedulers of the four settings about gathering.
  void ApplyGathering();
};

// Where a daemon that is not told keeps its state: the first that the environment names of
// $STATE_DIRECTORY (systemd's), $XDG_STATE_HOME/crout and $HOME/.local/state/crout; "" for none.
std::string DefaultStateDir();

// What the command line came to: settings, or an exit code after --help, --version or a mistake
// (2), whose message has been printed.
std::variant<Config, int> ParseCommandLine(int argc, char** argv);

}  // namespace crout

#endif  // CROUT_SERVER_CONFIG_H_
