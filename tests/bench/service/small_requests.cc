// SPDX-License-Identifier: Apache-2.0

#include "tests/bench/service/small_requests.h"

#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "tests/bench/harness/bench_result.h"

namespace crout {
namespace {

constexpr double kRoundSeconds = 1.5;

std::unique_ptr<Client> ClientOf(const e2e::Daemon& daemon) {
  ClientOptions options;
  options.server = daemon.address();
  return Check(Client::Connect(options));
}

}  // namespace

SmallProblem::SmallProblem(int64_t n) : n(n), a(n * n), b(n, 1.0) {
  std::mt19937_64 generator(1);
  for (double& v : a) v = static_cast<double>(generator() >> 11) * 0x1p-52 - 1;
}

SmallRequests::SmallRequests(const std::string& device, bool batching, int clients,
                             const SmallProblem& problem)
    : batching_(batching),
      problem_(problem),
      daemon_({"--devices=" + device, std::string("--batching=") + (batching ? "on" : "off"),
               "--log-calls=none"}) {
  for (int i = 0; i < clients; ++i) clients_.push_back(ClientOf(daemon_));
  kept_ = Check(clients_[0]->Factor(MatrixSource::Dense(problem.a, problem.n, problem.n), {}, {}))
              .handle;
  for (const auto& client : clients_) FactorAndSolve(*client, problem_);
}

void SmallRequests::DescribeKept(Client& client) const { Check(client.Describe(kept_).status()); }

Timings SmallRequests::Solve(Client& client) const {
  std::vector<double> x(problem_.n);
  SpanSink sink(absl::MakeSpan(x));
  return Check(client.Solve(kept_, MatrixSource::Dense(problem_.b, problem_.n, 1), {}, &sink))
      .timings;
}

Timings SmallRequests::FactorAndSolve(Client& client, const SmallProblem& problem) {
  std::vector<double> x(problem.n);
  SpanSink sink(absl::MakeSpan(x));
  FactorDescription factor;
  return Check(client.FactorAndSolve(MatrixSource::Dense(problem.a, problem.n, problem.n),
                                     MatrixSource::Dense(problem.b, problem.n, 1), {}, &factor,
                                     &sink))
      .timings;
}

double SmallRequests::Throughput(const Call& call) {
  std::atomic<bool> over = false;
  std::atomic<int64_t> calls = 0;
  const double seconds = Time([&] {
    std::vector<std::jthread> threads;
    threads.reserve(clients_.size());
    for (const auto& client : clients_) {
      threads.emplace_back([&, client = client.get()] {
        while (!over) {
          call(*client);
          ++calls;
        }
      });
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(kRoundSeconds));
    over = true;
  });
  return static_cast<double>(calls) / seconds;
}

}  // namespace crout
