// What a client and each of its calls can be told.
#ifndef CROUT_CROUT_OPTIONS_H_
#define CROUT_CROUT_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "crout/cancellation.h"
#include "crout/v1/factorization_service.pb.h"

namespace crout::client {

// How refused calls are tried again; retry.h says which. The server's delay, up to
// `max_server_delay`, goes before the exponential one; both end where the call's deadline does.
struct RetryPolicy {
  int max_attempts = 4;  // 1: never try again
  absl::Duration initial_backoff = absl::Milliseconds(50);
  absl::Duration max_backoff = absl::Seconds(5);
  double multiplier = 2.0;
  absl::Duration max_server_delay = absl::Seconds(30);
};

// How to speak with a server that speaks TLS. Its certificate and its name are always checked.
// Files are PEM, read when the client is made: INVALID_ARGUMENT for one that cannot be read or is
// none, for a key that others can read, and for one of certificate and key without the other.
struct TlsOptions {
  // Whose signature the server's certificate has to have; empty: the system's authorities.
  std::string ca_file = "";
  // This client's, where the server wants one: its chain, and its key.
  std::string cert_file = "";
  std::string key_file = "";
  // The name that the server's certificate has to have; empty: the address's.
  std::string server_name = "";
};

// `server`: an address, as CheckAddress() says, or the name of a server in ServersFile(), as
// FindServer() has it.
//
// `token` and `token_file`: a bearer token, by which a server that asks knows who calls; at most
// one of them. The file has nothing but the token; it is read when the client is made:
// INVALID_ARGUMENT for one that cannot be read or is none, or that others can read. A token goes to
// servers with TLS, on Unix sockets and on loopback alone: INVALID_ARGUMENT for another.
struct ClientOptions {
  std::string server = "127.0.0.1:50051";
  std::string tenant = "";  // as CheckTenant() says; empty for the server's default tenant
  // Of calls that set none, retries included. Long enough for the largest matrices, so that it only
  // ends what would hang for ever: callers who know better set their own. 0 or infinite: none.
  absl::Duration timeout = absl::Hours(2);
  // A call ends with UNAVAILABLE when the server has been silent for this long: no message, no
  // answer to pings and no new connection. Queueing, uploads and computations are not silence.
  // At least one millisecond.
  absl::Duration silence = absl::Seconds(60);
  RetryPolicy retry = {};
  std::optional<TlsOptions> tls = std::nullopt;  // unset: as it is, without encryption
  std::string token = "";
  std::string token_file = "";
};

// How far a streaming call is.
struct ProgressUpdate {
  int64_t bytes_sent = 0;   // of the payload, handed to the transport
  int64_t bytes_total = 0;  // -1: not known (a pipe)
  // The server's last report: a phase that started, or how far a factorization is.
  std::optional<v1::Progress> phase;
};

struct CallOptions {
  // Of the whole call, retries included; unset for the client's. 0 or infinite: none.
  std::optional<absl::Duration> timeout = std::nullopt;
  // Not owned; null for none.
  Cancellation* cancellation = nullptr;
  // Called on the calling thread, after each message sent and for each report of the server.
  std::function<void(const ProgressUpdate&)> on_progress = nullptr;
  // W3C trace context to send along; empty for none.
  std::string traceparent = "";
};

// INVALID_ARGUMENT, with the form that is meant, unless `address` has one of these: "host:port"
// with a port from 1 to 65535 and an IPv6 host in brackets; "unix:PATH" or "unix-abstract:NAME"; a
// target of gRPC that starts with "dns:", "ipv4:" or "ipv6:", of which only gRPC knows whether it
// is right.
absl::Status CheckAddress(absl::string_view address);

// The file of named servers: $CROUT_SERVERS, else crout/servers.toml below $XDG_CONFIG_HOME or
// ~/.config; "" where the environment has none of these. It has sections of TOML, of which
// `address` alone must be there; paths begin in the directory of the file, or with ~/:
//   [lab]
//   address = "solver.example.org:50051"
//   tls = true                        # where none of the next four says so already
//   ca = "lab-ca.crt"
//   cert = "alice.crt"
//   key = "alice.key"
//   server_name = "crout.example.org"
//   token_file = "alice.token"
//   tenant = "alice"
std::string ServersFile();
// `options`, where their server is a name, with its address, and with what the file says of it and
// they do not. INVALID_ARGUMENT, with what to write, for a name that the file has not, for a file
// with a mistake anywhere, and for one that others can write.
absl::StatusOr<ClientOptions> FindServer(ClientOptions options);
// `options`, and what they do not say by croutctl's variables: CROUT_SERVER (for an empty one),
// CROUT_TENANT, CROUT_TLS, CROUT_CA, CROUT_CERT, CROUT_KEY, CROUT_TOKEN_FILE. INVALID_ARGUMENT
// where CROUT_TLS is neither true nor false.
absl::StatusOr<ClientOptions> WithEnvironment(ClientOptions options);

// Whether nobody on a network can read along with a connection to `address`: "localhost:PORT", an
// address of loopback, a Unix socket.
bool IsLocal(absl::string_view address);
// INVALID_ARGUMENT unless `tenant` is what a server takes: 1 to 64 of [A-Za-z0-9_.-].
absl::Status CheckTenant(absl::string_view tenant);

// INVALID_ARGUMENT, without the token, unless `token` can be one: 1 to 4096 printable ASCII
// characters, no space among them.
absl::Status CheckToken(absl::string_view token);

// As the contract's lease fields want it.
google::protobuf::Duration ToProtoDuration(absl::Duration duration);

}  // namespace crout::client

#endif  // CROUT_CROUT_OPTIONS_H_
