// Small calls of many clients of one croutd.
#ifndef CROUT_TESTS_BENCH_SMALL_CALLS_H_
#define CROUT_TESTS_BENCH_SMALL_CALLS_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "crout/client.h"
#include "tests/e2e/daemon.h"

namespace crout {

struct SmallProblem {
  // Of random numbers, always the same ones.
  explicit SmallProblem(int64_t n);

  int64_t n;
  std::vector<double> a;
  std::vector<double> b;
};

// What the server says that phases of a call took, in seconds.
struct ServerPhase {
  const char* name;
  double (*seconds)(const v1::Timings& timings);
};
inline constexpr ServerPhase kServerPhases[] = {
    {"receive_us", [](const v1::Timings& t) { return t.receive_seconds(); }},
    {"queue_us", [](const v1::Timings& t) { return t.queue_seconds(); }},
    {"work_us",
     [](const v1::Timings& t) {
       return t.host_to_device_seconds() + t.factor_seconds() + t.solve_seconds() +
              t.device_to_host_seconds();
     }},
    {"server_us", [](const v1::Timings& t) { return t.total_seconds(); }},
};

// A daemon, with calls gathered or not, and its clients, each with a connection of its own. A
// failed call ends the program.
class SmallCalls {
 public:
  using Call = std::function<void(client::Client&)>;

  // Every client has called once, and the daemon keeps a factor of the problem.
  SmallCalls(const std::string& device, bool gather, int clients, const SmallProblem& problem);

  bool gather() const { return gather_; }
  const SmallProblem& problem() const { return problem_; }
  size_t clients() const { return clients_.size(); }
  client::Client& first() { return *clients_.front(); }
  pid_t daemon() { return daemon_.process().pid(); }

  // The calls, by one client: of nothing, of a solve with the factor, of both.
  void DescribeKept(client::Client& client) const;
  v1::Timings Solve(client::Client& client) const;
  static v1::Timings FactorAndSolve(client::Client& client, const SmallProblem& problem);

  // Calls a second of all clients together, each with the next as soon as the last is answered.
  double Throughput(const Call& call);

 private:
  const bool gather_;
  const SmallProblem& problem_;
  e2e::Daemon daemon_;
  std::vector<std::unique_ptr<client::Client>> clients_;
  std::string kept_;  // a factor
};

}  // namespace crout

#endif  // CROUT_TESTS_BENCH_SMALL_CALLS_H_
