// SPDX-License-Identifier: Apache-2.0

// Small requests of many clients to one croutd. Functions exit if a call fails.
#ifndef CROUT_TESTS_BENCH_SERVICE_SMALL_REQUESTS_H_
#define CROUT_TESTS_BENCH_SERVICE_SMALL_REQUESTS_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "crout/client.h"
#include "tests/e2e/harness/daemon.h"

namespace crout {

// A system A x = b of order n. `a` is n x n, column-major.
struct SmallProblem {
  // `a` has random numbers, which are the same each time; `b` is ones.
  explicit SmallProblem(int64_t n);

  int64_t n;
  std::vector<double> a;
  std::vector<double> b;
};

// A phase of a call: its name in results, and its seconds in the server's timings.
struct ServerPhase {
  const char* name;
  double (*seconds)(const Timings& timings);
};
inline constexpr ServerPhase kServerPhases[] = {
    {"receive_us", [](const Timings& t) { return t.receive_seconds; }},
    {"queue_us", [](const Timings& t) { return t.queue_seconds; }},
    {"work_us",
     [](const Timings& t) {
       return t.host_to_device_seconds + t.factor_seconds + t.solve_seconds +
              t.device_to_host_seconds;
     }},
    {"server_us", [](const Timings& t) { return t.total_seconds; }},
};

// A daemon, with or without dynamic batching, and its clients, each with a connection.
class SmallRequests {
 public:
  using Call = std::function<void(Client&)>;

  // Starts the daemon, with dynamic batching if `batching`. Each client makes one call, and the
  // daemon keeps a factor of `problem`, which must outlive the object.
  SmallRequests(const std::string& device, bool batching, int clients, const SmallProblem& problem);

  bool batching() const { return batching_; }
  const SmallProblem& problem() const { return problem_; }
  size_t clients() const { return clients_.size(); }
  Client& first() { return *clients_.front(); }
  pid_t daemon() { return daemon_.process().pid(); }

  // Make one call: a description of the kept factor, which computes nothing, a solve with the kept
  // factor, and a factorization with a solve. Thread-safe for different clients.
  void DescribeKept(Client& client) const;
  Timings Solve(Client& client) const;
  static Timings FactorAndSolve(Client& client, const SmallProblem& problem);

  // Returns the calls per second of all clients together. Each client runs on a thread and makes
  // its next call after the previous reply.
  double Throughput(const Call& call);

 private:
  const bool batching_;
  const SmallProblem& problem_;
  e2e::Daemon daemon_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::string kept_;  // handle of the kept factor
};

}  // namespace crout

#endif  // CROUT_TESTS_BENCH_SERVICE_SMALL_REQUESTS_H_
