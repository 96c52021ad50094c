// SPDX-License-Identifier: Apache-2.0

// The daemon's settings: flags, CROUT_* environment variables and a configuration file.
#ifndef CROUT_SERVER_CONFIG_H_
#define CROUT_SERVER_CONFIG_H_

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "server/auth/identities.h"
#include "server/auth/tls_files.h"
#include "server/auth/token.h"
#include "server/engine/scheduling/device_pool.h"
#include "server/engine/store/factor_store.h"
#include "server/groups/group_spec.h"
#include "server/net/unix_socket.h"
#include "server/observability/log/log.h"
#include "server/rpc/core.h"
#include "server/s3/settings.h"

namespace crout {

// The values of croutd's options, which `croutd --help` describes. The initializers are the
// defaults, except for state_dir. Sizes are in bytes.
struct Config {
  std::vector<std::string> listen = {"127.0.0.1:50051"};
  TlsFiles tls;                 // for the TCP addresses of `listen`
  SocketAccess unix_access;     // for the Unix sockets of `listen`
  bool insecure = false;        // accept connections from other machines without TLS
  std::string identities_file;  // "": callers are not authenticated and may do everything
  std::string quotas_file;      // "": tenants have no quotas
  // The authority whose signed tokens are accepted in addition to the tokens of identities_file.
  SignedTokenSettings signed_tokens;
  Access health = Access::kOpen;  // gRPC's health protocol
  Access reflection = Access::kOpen;
  Access page_access = Access::kOpen;  // metrics and the status page
  bool pages_tls = false;              // use the TLS files of `tls` on the metrics port
  std::string metrics_listen = "127.0.0.1:9464";
  // "auto" (every GPU, or the host if there is no GPU), "host", "cuda", or "cuda:0", "cuda:1", ...
  std::vector<std::string> devices = {"auto"};
  std::vector<GroupSpec> groups;  // groups of ranks that the daemon starts
  LogLevel log_level = LogLevel::kInfo;
  LogFormat log_format = LogFormat::kText;
  CallLogOptions call_log;
  std::string otlp_endpoint;  // base URL of the receiver of trace spans; "": no export
  // Directory for state that outlives the process: the measured costs of GPUs. "": keep no state.
  std::string state_dir;
  // Directory of the factor store, or s3://BUCKET/PREFIX (ParseS3Location()); "": no store.
  std::string store_location;
  FactorStoreOptions store;
  std::string store_key_file;  // encrypts the files of a directory; "": they are not encrypted
  // Without the bucket and the credentials. An empty endpoint is Amazon's.
  S3Settings s3 = {.region = "us-east-1"};
  std::string replica_name;                        // names this daemon in the bucket
  absl::Duration store_lease = absl::Seconds(15);  // LeaseOptions::duration
  int host_threads = 0;  // cores for the host device and for parsing; 0: host::AvailableCores()
  size_t receive_buffer_bytes = size_t{1} << 30;  // for messages in transit on all connections
  size_t call_memory_bytes = size_t{128} << 20;   // for open calls, without their payloads
  size_t max_shared_memory_bytes = 0;             // that clients share; 0: none
  size_t max_shared_device_memory_bytes = 0;      // the same on each GPU
  size_t max_pinned_bytes = 0;  // limit for one tenant; 0: a quarter of all budgets
  // Idle time after which free host memory is returned to the system; infinite: never.
  absl::Duration return_memory_after = absl::Seconds(10);
  // Addresses, networks and "unix". Calls from these peers are exempt from the per-peer share of
  // call_memory_bytes.
  std::vector<std::string> trusted_proxies;
  // Connections older than this are closed when their calls have ended.
  absl::Duration max_connection_age = absl::Hours(1);
  int64_t max_connections = 4096;  // open connections for each address of `listen`
  AbandonLimits abandon;           // limits on calls that clients reset
  bool batching = true;            // dynamic batching of small requests (decision 0032)
  Limits limits;
  DevicePoolOptions pool;
  // Drain: the server reports not ready but accepts calls for drain_grace. It then refuses new
  // calls, and calls in flight may finish within drain_limit.
  absl::Duration drain_grace = absl::Seconds(2);
  absl::Duration drain_limit = absl::Seconds(30);
  pid_t stop_with_parent = 0;  // drain when this parent process has ended; 0: never

  // Turns dynamic batching off in `limits` and `pool`.
  void DisableBatching();
};

// Default of --replica-name: the name of this machine up to its first period, with hyphens in place
// of other characters than letters and digits.
std::string DefaultReplicaName();

// Default of --state-dir: the first of $STATE_DIRECTORY (set by systemd), $XDG_STATE_HOME/crout and
// $HOME/.local/state/crout whose variable is set; "" if none is.
std::string DefaultStateDir();

// Returns the settings, or an exit code after --help, --version or a usage error (2). The message
// has already been printed.
std::variant<Config, int> ParseCommandLine(int argc, char** argv);

}  // namespace crout

#endif  // CROUT_SERVER_CONFIG_H_
