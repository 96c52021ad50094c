// SPDX-License-Identifier: Apache-2.0

// The daemon: its parts, their order of construction and of shutdown.
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
#include "server/auth/tls_keeper.h"
#include "server/config.h"
#include "server/net/http_server.h"
#include "server/net/tcp_listener.h"
#include "server/rpc/standard_services.h"
#include "server/stack.h"

namespace crout {

class Daemon {
 public:
  // Binds the addresses and serves on `devices`. Errors name the setting to change.
  // std::system_error: the system starts no more threads. Parts of the daemon may be left then: the
  // process is to end, without destructors.
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(
      const Config& config, std::vector<std::unique_ptr<Device>> devices);
  ~Daemon();
  Daemon(const Daemon&) = delete;  // Calls point to its parts.
  Daemon& operator=(const Daemon&) = delete;

  // "croutd ready listen=ADDR[,ADDR...] metrics=ADDR", with the ports that were bound.
  std::string ReadyLine() const;

  // False once every device is fenced: the daemon can only drain.
  bool any_device_healthy() const { return stack_->core().devices.any_healthy(); }

  // Readiness off; everything is served for the grace period; then new calls are refused and those
  // in flight finish; at the drain limit, or as soon as `hurry` returns true, the rest ends.
  // Returns whether no call is left, and no job of one: the daemon can be destroyed.
  bool Drain(const std::function<bool()>& hurry);

 private:
  explicit Daemon(const Config& config) : config_(config) {}

  absl::Status Bind();
  absl::Status BindTo(const std::string& address);
  absl::Status ServePages();
  // As HttpRoute::admit.
  HttpAdmission AdmitReader(Role role, const HttpCaller& caller);
  // Of the metrics port; nothing where it is plain.
  std::optional<HttpTls> PagesTls() const;
  void SetServing(bool serving);
  // Every second: certificates, leases, clients that stopped sending or reading, health.
  void Housekeep();
  void RefreshTls();
  void CountConnections();
  // Closes a peer's connection, whose client resets its calls.
  void Disconnect(const std::string& peer);
  void HousekeepingLoop();

  const Config config_;

  // In the order of construction; destroyed in reverse.
  std::unique_ptr<Stack> stack_;
  std::unique_ptr<StandardServices> standard_;
  std::unique_ptr<TlsKeeper> tls_;
  std::unique_ptr<grpc::Server> server_;
  size_t max_connections_ = 0;  // of one of the next
  std::vector<std::unique_ptr<TcpListener>> listeners_;
  std::atomic<bool> serving_ = false;  // what health says
  std::unique_ptr<HttpServer> pages_;
  std::vector<std::string> addresses_;

  Mutex mutex_;
  CondVar wake_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread housekeeper_;
};

}  // namespace crout

#endif  // CROUT_SERVER_DAEMON_H_
