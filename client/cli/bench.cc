#include "client/cli/bench.h"

#include <atomic>
#include <complex>
#include <memory>
#include <random>
#include <thread>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/time/clock.h"
#include "crout/matrix_sink.h"

namespace crout::cli {
namespace {

// Elements of one of the four types.
using Elements = std::variant<std::vector<double>, std::vector<float>,
                              std::vector<std::complex<double>>, std::vector<std::complex<float>>>;

// `count` random elements, whose parts are uniform in (-1, 1).
template <class T>
std::vector<T> RandomElements(size_t count, std::mt19937_64* random) {
  using Part = decltype(std::real(T()));
  std::uniform_real_distribution<double> uniform(-1, 1);
  const auto draw = [&] { return static_cast<Part>(uniform(*random)); };
  std::vector<T> elements(count);
  for (T& element : elements) {
    element = draw();
    if constexpr (!std::is_same_v<T, Part>) element.imag(draw());
  }
  return elements;
}

// The data of all workers: read only.
class Problem {
 public:
  explicit Problem(const BenchOptions& options) : options_(options) { Make(); }

  client::MatrixSource Matrix() const { return Source(a_, options_.n); }
  client::MatrixSource Rhs() const { return Source(b_, options_.nrhs); }

 private:
  void Make() {
    switch (options_.dtype) {
      case v1::DTYPE_FLOAT32:
        return Make<float>();
      case v1::DTYPE_COMPLEX64:
        return Make<std::complex<float>>();
      case v1::DTYPE_COMPLEX128:
        return Make<std::complex<double>>();
      default:
        return Make<double>();
    }
  }

  template <class T>
  void Make() {
    std::mt19937_64 random(1);
    const auto n = static_cast<size_t>(options_.n);
    std::vector<T> a = RandomElements<T>(n * n, &random);
    for (size_t i = 0; i < n; ++i) a[i * (n + 1)] += static_cast<T>(options_.n);
    a_ = std::move(a);
    b_ = RandomElements<T>(n * static_cast<size_t>(options_.nrhs), &random);
  }

  client::MatrixSource Source(const Elements& elements, int64_t cols) const {
    return std::visit(
        [&](const auto& values) {
          return client::MatrixSource::Dense(absl::MakeConstSpan(values), options_.n, cols);
        },
        elements);
  }

  const BenchOptions& options_;
  Elements a_, b_;
};

// When to stop: by time, or by the number of calls that all workers have begun.
class Budget {
 public:
  explicit Budget(const BenchOptions& options)
      : requests_(options.requests), end_(absl::Now() + options.duration) {}
  bool Take() { return requests_ > 0 ? taken_++ < requests_ : absl::Now() < end_; }

 private:
  const int64_t requests_;
  const absl::Time end_;
  std::atomic<int64_t> taken_ = 0;
};

class Worker {
 public:
  Worker(const client::ClientOptions& client, const BenchOptions& options, const Problem& problem)
      : client_(*client::Client::Connect(client)), options_(options), problem_(problem) {}

  // `handle` is that of the prepared factor, in mode solve.
  void Run(const std::string& handle, Budget* budget) {
    while (budget->Take()) {
      if (options_.mode == BenchMode::kSolve) {
        Solve(handle);
        continue;
      }
      const auto factor = Factorize();
      if (!factor.ok()) continue;
      for (int i = 0; options_.mode == BenchMode::kMixed && i < 10 && budget->Take(); ++i) {
        Solve(factor->handle());
      }
      client_->Release(factor->handle()).IgnoreError();  // Its lease is short.
    }
  }

  absl::StatusOr<v1::Factor> Factorize() {
    v1::CacheOptions cache;
    *cache.mutable_lease() = client::ToProtoDuration(options_.duration + absl::Minutes(10));
    const absl::Time begin = absl::Now();
    auto factor = client_->Factorize(problem_.Matrix(), options_.factorize, cache);
    Count("factorize", begin, factor.status());
    return factor;
  }

  const absl::Status& last_error() const { return last_error_; }
  std::map<std::string, BenchCounts>& calls() { return calls_; }
  client::Client& client() { return *client_; }

 private:
  void Solve(const std::string& handle) {
    client::BufferSink x;
    const absl::Time begin = absl::Now();
    Count("solve", begin, client_->Solve(handle, problem_.Rhs(), {}, &x).status());
  }

  void Count(const char* call, absl::Time begin, const absl::Status& status) {
    BenchCounts& counts = calls_[call];
    if (status.ok()) return counts.latencies.Record(absl::Now() - begin);
    ++counts.errors[absl::StatusCodeToString(status.code())];
    last_error_ = status;
  }

  const std::unique_ptr<client::Client> client_;
  const BenchOptions& options_;
  const Problem& problem_;
  std::map<std::string, BenchCounts> calls_;
  absl::Status last_error_;
};

BenchResult Merge(absl::Duration elapsed, const std::vector<std::unique_ptr<Worker>>& workers) {
  BenchResult result{elapsed, {}};
  for (const auto& worker : workers) {
    for (const auto& [call, counts] : worker->calls()) {
      result.calls[call].latencies.Merge(counts.latencies);
      for (const auto& [error, count] : counts.errors) result.calls[call].errors[error] += count;
    }
  }
  return result;
}

}  // namespace

absl::StatusOr<BenchResult> RunBench(const client::ClientOptions& client,
                                     const BenchOptions& options, int concurrency) {
  const Problem problem(options);
  client::ClientOptions once = client;
  once.retry.max_attempts = 1;
  std::string handle;
  Worker preparation(client, options, problem);
  if (options.mode == BenchMode::kSolve) {
    const auto factor = preparation.Factorize();
    if (!factor.ok()) return factor.status();
    handle = factor->handle();
  }
  std::vector<std::unique_ptr<Worker>> workers;
  workers.reserve(static_cast<size_t>(concurrency));
  for (int i = 0; i < concurrency; ++i) {
    workers.push_back(std::make_unique<Worker>(once, options, problem));
  }
  Budget budget(options);
  const absl::Time begin = absl::Now();
  std::vector<std::thread> threads;
  threads.reserve(workers.size());
  for (const auto& worker : workers) {
    threads.emplace_back([&handle, &budget, w = worker.get()] { w->Run(handle, &budget); });
  }
  for (std::thread& thread : threads) thread.join();
  BenchResult result = Merge(absl::Now() - begin, workers);
  if (!handle.empty()) preparation.client().Release(handle).IgnoreError();
  int64_t succeeded = 0;
  for (const auto& [call, counts] : result.calls) succeeded += counts.latencies.count();
  if (succeeded == 0) return workers.front()->last_error();
  return result;
}

}  // namespace crout::cli
