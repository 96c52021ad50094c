// SPDX-License-Identifier: Apache-2.0

// Options of a client and of its calls: server, credentials, timeouts, retries.
#ifndef CROUT_CROUT_CLIENT_OPTIONS_H_
#define CROUT_CROUT_CLIENT_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "crout/cancellation.h"
#include "crout/results.h"
#include "crout/types.h"

namespace crout {
inline namespace api {

// Policy of retries. A call is retried if the server refused it before any effect
// (RESOURCE_EXHAUSTED or ABORTED with a delay) or, if it is safe to repeat, after UNAVAILABLE. A
// call that reads a pipe is not retried. Retries end at the call's deadline.
//
// A client that has reached its server waits for a restart of the server: a call that is safe to
// repeat is retried beyond max_attempts until `restart` has passed since its first UNAVAILABLE.
//
// The delay before a retry is the server's, if it sent one, limited to max_server_delay; up to 20 %
// of jitter is added. Otherwise it is between 50 % and 100 % of an exponential backoff.
struct RetryPolicy {
  int max_attempts = 4;  // the first one included; 1: no retries
  absl::Duration initial_backoff = absl::Milliseconds(50);
  absl::Duration max_backoff = absl::Seconds(5);
  double multiplier = 2.0;  // growth of the backoff for each attempt
  absl::Duration max_server_delay = absl::Seconds(30);
  absl::Duration restart = absl::Seconds(30);  // without effect if max_attempts is 1
};

// Options of TLS. The server's certificate and name are always verified. Files are PEM and are read
// when the client is made. INVALID_ARGUMENT for a file that cannot be read or is not PEM, for a key
// that others can read, for a key that does not belong to the certificate, and for one of them
// without the other.
struct TlsOptions {
  // Certificate authorities that may sign the server's certificate. Empty: those of the system.
  std::string ca_file = "";
  // Certificate chain and key of this client, if the server requires them.
  std::string cert_file = "";
  std::string key_file = "";
  // Name that the server's certificate must have. Empty: the host of the address.
  std::string server_name = "";
};

// Options of a client.
//
// `server` is an address in a form that CheckAddress() accepts, or the name of a server in
// ServersFile() (see FindServer()).
//
// `token` and `token_file` give a bearer token for a server that requires authentication. At most
// one of them may be set. The file holds only the token and is read when the client is made.
// INVALID_ARGUMENT for a file that cannot be read, holds no valid token, or can be read by others.
// A token is sent only over TLS, Unix sockets and loopback; with another connection it is
// INVALID_ARGUMENT.
struct ClientOptions {
  std::string server = "127.0.0.1:50051";
  std::string tenant = "";  // see CheckTenant(); empty for the server's default tenant
  // Priority of calls without their own.
  Priority priority = Priority::kNormal;
  // Timeout of calls without their own, retries included. The default is long enough for the
  // largest matrices and only ends calls that would otherwise hang. 0 or infinite: no timeout.
  absl::Duration timeout = absl::Hours(2);
  // A call ends with UNAVAILABLE if the server is silent for this long: it sends no message,
  // answers no ping and accepts no new connection. A server that queues, receives or computes
  // answers pings. At least one millisecond.
  absl::Duration silence = absl::Seconds(60);
  RetryPolicy retry = {};
  std::optional<TlsOptions> tls = std::nullopt;  // unset: no encryption
  std::string token = "";
  std::string token_file = "";
};

// Progress of a streaming call.
struct ProgressUpdate {
  int64_t bytes_sent = 0;   // payload bytes passed to gRPC
  int64_t bytes_total = 0;  // -1: unknown (a pipe)
  // Set if the server reported progress; unset if payload was sent.
  std::optional<JobProgress> job;
};

// Options of one call.
struct CallOptions {
  // Timeout of the whole call, retries included. Unset: the client's. 0 or infinite: none.
  std::optional<absl::Duration> timeout = std::nullopt;
  std::optional<Priority> priority = std::nullopt;  // unset: the client's
  // Not owned; null for none.
  Cancellation* cancellation = nullptr;
  // Called on the thread of the call, after each sent message and for each progress report.
  std::function<void(const ProgressUpdate&)> on_progress = nullptr;
  // W3C trace context to send; empty for none.
  std::string traceparent = "";
};

// Returns INVALID_ARGUMENT, with the expected form, unless `address` has one of these forms:
// "host:port" with a port from 1 to 65535 and IPv6 hosts in brackets; "unix:PATH" or
// "unix-abstract:NAME"; a gRPC target that starts with "dns:", "ipv4:" or "ipv6:", which only gRPC
// checks.
absl::Status CheckAddress(absl::string_view address);

// Path of the file of named servers: $CROUT_SERVERS, otherwise crout/servers.toml in
// $XDG_CONFIG_HOME or ~/.config; "" if the environment sets none of these. The file has one TOML
// section for each server, in which only `address` is required. Paths may be relative to the file's
// directory or start with ~/:
//   [lab]
//   address = "solver.example.org:50051"
//   tls = true                        # implied by any of the next four keys
//   ca = "lab-ca.crt"
//   cert = "alice.crt"
//   key = "alice.key"
//   server_name = "crout.example.org"
//   token_file = "alice.token"
//   tenant = "alice"
std::string ServersFile();
// Resolves a server name. If options.server is an address, returns `options`. Otherwise returns
// them with the address of the named server and, for unset fields, the values of its section.
// INVALID_ARGUMENT, with the remedy, for an unknown name, for a file with an error in any section,
// and for a file that others can write.
absl::StatusOr<ClientOptions> FindServer(ClientOptions options);
// Returns `options` with unset fields from croutctl's variables: CROUT_SERVER (if `server` is
// empty), CROUT_TENANT, CROUT_TLS, CROUT_CA, CROUT_CERT, CROUT_KEY, CROUT_TOKEN_FILE.
// INVALID_ARGUMENT if CROUT_TLS is neither true nor false.
absl::StatusOr<ClientOptions> WithEnvironment(ClientOptions options);

// Whether connections to `address` stay on this machine: "localhost:PORT", a loopback address, or a
// Unix socket.
bool IsLocal(absl::string_view address);
// INVALID_ARGUMENT unless `tenant` is 1 to 64 characters of [A-Za-z0-9_.-].
absl::Status CheckTenant(absl::string_view tenant);

// INVALID_ARGUMENT unless `token` is 1 to 4096 printable ASCII characters without spaces. The
// message does not contain the token.
absl::Status CheckToken(absl::string_view token);

}  // namespace api
}  // namespace crout

#endif  // CROUT_CROUT_CLIENT_OPTIONS_H_
