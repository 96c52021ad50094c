// The daemon: its parts, their order of construction and of shutdown.
#ifndef CROUT_SERVER_DAEMON_H_
#define CROUT_SERVER_DAEMON_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "grpcpp/server.h"
#include "kernels/caching_resource.h"
#include "kernels/util/mutex.h"
#include "kernels/util/thread_pool.h"
#include "server/cache/factor_cache.h"
#include "server/config.h"
#include "server/metrics/exposition.h"
#include "server/metrics/metrics.h"
#include "server/rpc/call_registry.h"
#include "server/rpc/core.h"
#include "server/rpc/service.h"
#include "server/scheduling/device_pool.h"

namespace crout {

class Daemon {
 public:
  // Opens the devices, binds the addresses and serves. Errors name the setting to change.
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(const Config& config);
  ~Daemon();
  Daemon(const Daemon&) = delete;  // Calls point to its parts.
  Daemon& operator=(const Daemon&) = delete;

  // "croutd ready listen=ADDR[,ADDR...] metrics=ADDR", with the ports that were bound.
  std::string ReadyLine() const;

  // False once every device is fenced: the daemon can only drain.
  bool any_device_healthy() const { return pool_->any_healthy(); }

  // Readiness off; everything is served for the grace period; then new calls are refused and those
  // in flight finish; at the drain limit, or as soon as `hurry` returns true, the rest ends.
  // Returns whether all calls finished by themselves.
  bool Drain(const std::function<bool()>& hurry);

 private:
  explicit Daemon(const Config& config) : config_(config) {}

  absl::Status Build();
  absl::Status Bind();
  void SetServing(bool serving);
  ServerState State() const;
  // Every second: leases, idle uploads, health.
  void Housekeep();
  void HousekeepingLoop();

  const Config config_;

  // In the order of construction; destroyed in reverse.
  std::unique_ptr<DevicePool> pool_;
  std::unique_ptr<CachingResource> host_memory_;
  std::unique_ptr<Metrics> metrics_;
  std::unique_ptr<FactorCache> cache_;
  CallRegistry calls_;
  std::unique_ptr<ThreadPool> parsers_;
  std::unique_ptr<ThreadPool> blocking_;
  std::unique_ptr<ServerCore> core_;
  std::unique_ptr<FactorizationService> service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<MetricsEndpoint> endpoint_;
  std::vector<std::string> addresses_;

  Mutex mutex_;
  CondVar wake_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread housekeeper_;
};

}  // namespace crout

#endif  // CROUT_SERVER_DAEMON_H_
