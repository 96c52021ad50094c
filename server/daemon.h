// SPDX-License-Identifier: Apache-2.0

// The daemon: its components and the order in which they start and stop.
#ifndef CROUT_SERVER_DAEMON_H_
#define CROUT_SERVER_DAEMON_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "grpcpp/server.h"
#include "kernels/util/mutex.h"
#include "server/auth/tls_reloader.h"
#include "server/components.h"
#include "server/config.h"
#include "server/net/connection_listener.h"
#include "server/net/http_server.h"
#include "server/net/memory_listener.h"
#include "server/rpc/standard_services.h"

namespace crout {

// Serves on its own threads. Not thread-safe: call its functions from one thread.
class Daemon {
 public:
  // Binds the addresses and starts to serve on `devices`. Errors name the setting to change.
  //
  // Throws std::system_error if the system cannot start another thread. Some components may then
  // never be destroyed. The process must exit without running destructors.
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(
      const Config& config, std::vector<std::shared_ptr<Device>> devices);
  ~Daemon();
  Daemon(const Daemon&) = delete;  // Calls hold pointers to its members.
  Daemon& operator=(const Daemon&) = delete;

  // "croutd ready listen=ADDR[,ADDR...] metrics=ADDR", with the ports that were bound.
  std::string ReadyLine() const;

  // False once every device is fenced. The daemon can then only drain.
  bool any_device_healthy() const { return components_->core().engine.devices.any_healthy(); }

  // Reports not ready and serves all calls for the grace period. Then refuses new calls and lets
  // calls in flight finish. Cancels the remaining calls at the drain limit, or as soon as
  // `cancel_now` returns true. Returns true if no call and no job of a call is left, so that the
  // daemon can be destroyed.
  bool Drain(const std::function<bool()>& cancel_now);

 private:
  explicit Daemon(const Config& config) : config_(config) {}

  absl::Status Bind();
  absl::Status BindTo(const std::string& address);
  absl::Status ServePages();
  // Implements HttpRoute::admit.
  HttpAdmission AdmitHttpCaller(Role role, const HttpCaller& caller);
  // TLS settings of the metrics port; empty if the port is plaintext.
  std::optional<HttpTls> PagesTls() const;
  void SetServing(bool serving);
  // Runs every second: reloads certificates, ends leases, ends calls whose clients stopped sending
  // or reading, and updates the health status.
  void Housekeep();
  void RefreshTls();
  void CountConnections();
  // Binds the memory socket of a Unix socket.
  absl::Status BindMemorySocket(const std::string& path);
  // Closes the connection from `peer`, whose client resets too many calls.
  void Disconnect(const std::string& peer);
  void HousekeepingLoop();

  const Config config_;

  // Declared in construction order; destroyed in reverse.
  std::unique_ptr<ServerComponents> components_;
  std::unique_ptr<StandardServices> standard_;
  std::unique_ptr<TlsReloader> tls_;
  std::unique_ptr<grpc::Server> server_;
  size_t max_connections_ = 0;  // limit of each listener
  std::vector<std::unique_ptr<ConnectionListener>> listeners_;
  std::vector<std::unique_ptr<MemoryListener>> memory_listeners_;
  std::atomic<bool> serving_ = false;  // the reported health status
  std::unique_ptr<HttpServer> pages_;
  std::vector<std::string> addresses_;

  Mutex mutex_;
  CondVar wake_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread housekeeper_;
};

}  // namespace crout

#endif  // CROUT_SERVER_DAEMON_H_
