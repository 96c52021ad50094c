// The HTTP endpoint that Prometheus scrapes.
#ifndef CROUT_SERVER_METRICS_EXPOSITION_H_
#define CROUT_SERVER_METRICS_EXPOSITION_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/metrics/metrics.h"

namespace prometheus {
class Exposer;
}  // namespace prometheus

namespace crout {

// Serves GET /metrics until destroyed. Owns its threads.
class MetricsEndpoint {
 public:
  // Binds `address`, "host:port", where port 0 picks a free one and an IPv6 host stands in
  // brackets. `metrics` outlives the endpoint. INVALID_ARGUMENT for an address without a port,
  // UNAVAILABLE if it cannot be bound.
  static absl::StatusOr<std::unique_ptr<MetricsEndpoint>> Start(const std::string& address,
                                                                const Metrics& metrics);
  ~MetricsEndpoint();
  MetricsEndpoint(const MetricsEndpoint&) = delete;  // It owns a listening socket.
  MetricsEndpoint& operator=(const MetricsEndpoint&) = delete;

  // As given to Start, with the port that was bound.
  const std::string& address() const { return address_; }

 private:
  MetricsEndpoint(std::unique_ptr<prometheus::Exposer> exposer, std::string address);

  std::unique_ptr<prometheus::Exposer> exposer_;
  const std::string address_;
};

}  // namespace crout

#endif  // CROUT_SERVER_METRICS_EXPOSITION_H_
