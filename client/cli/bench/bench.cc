// SPDX-License-Identifier: Apache-2.0

#include "client/cli/bench/bench.h"

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

// Elements of any of the four types.
using Elements = std::variant<std::vector<double>, std::vector<float>,
                              std::vector<std::complex<double>>, std::vector<std::complex<float>>>;

// `count` random elements with parts uniform in (-1, 1).
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

// Data shared by all workers; read only.
class Problem {
 public:
  explicit Problem(const BenchOptions& options) : options_(options) { Make(); }

  MatrixSource Matrix() const { return Source(a_, options_.n); }
  MatrixSource Rhs() const { return Source(b_, options_.nrhs); }

 private:
  void Make() {
    switch (options_.dtype) {
      case Dtype::kFloat32:
        return Make<float>();
      case Dtype::kComplex64:
        return Make<std::complex<float>>();
      case Dtype::kComplex128:
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

  MatrixSource Source(const Elements& elements, int64_t cols) const {
    return std::visit(
        [&](const auto& values) {
          return MatrixSource::Dense(absl::MakeConstSpan(values), options_.n, cols);
        },
        elements);
  }

  const BenchOptions& options_;
  Elements a_, b_;
};

class Worker {
 public:
  // `number` distinguishes the workers of one run.
  Worker(const ClientOptions& client, const BenchOptions& options, const Problem& problem,
         uint64_t number)
      : client_(*Client::Connect(client)), options_(options), problem_(problem), random_(number) {}

  // `handle` identifies the prepared factor in the modes solve and mix.
  void Run(const std::string& handle, Pace* pace) {
    while (const auto begin = pace->Next()) {
      const bool counts = pace->Counts(*begin);
      if (options_.mode == BenchMode::kSolve || (options_.mode == BenchMode::kMix && !Draw())) {
        Solve(handle, *begin, counts);
        continue;
      }
      const auto factor = Factorize(*begin, counts);
      if (!factor.ok()) continue;
      for (int i = 0; options_.mode == BenchMode::kMixed && i < 10; ++i) {
        const auto next = pace->Next();
        if (!next) break;
        Solve(factor->handle, *next, pace->Counts(*next));
      }
      client_->Release(factor->handle)
          .IgnoreError();  // the short lease removes a factor that was not released
    }
  }

  // Makes a call that was scheduled at `begin`.
  absl::StatusOr<FactorDescription> Factorize(absl::Time begin, bool counts) {
    CacheOptions cache;
    cache.lease = options_.pace.warm_up + options_.pace.duration + absl::Minutes(10);
    auto factor = client_->Factor(problem_.Matrix(), options_.factorize, cache);
    if (counts) Count("factorize", begin, factor.status());
    return factor;
  }

  const absl::Status& last_error() const { return last_error_; }
  std::map<std::string, BenchCounts>& calls() { return calls_; }
  Client& client() { return *client_; }

 private:
  // Whether the next call of a mix is a factorization.
  bool Draw() { return std::bernoulli_distribution(options_.factor_share)(random_); }

  void Solve(const std::string& handle, absl::Time begin, bool counts) {
    BufferSink x;
    const absl::Status status = client_->Solve(handle, problem_.Rhs(), {}, &x).status();
    if (counts) Count("solve", begin, status);
  }

  void Count(const char* call, absl::Time begin, const absl::Status& status) {
    BenchCounts& counts = calls_[call];
    if (status.ok()) return counts.latencies.Record(absl::Now() - begin);
    ++counts.errors[absl::StatusCodeToString(status.code())];
    last_error_ = status;
  }

  const std::unique_ptr<Client> client_;
  const BenchOptions& options_;
  const Problem& problem_;
  std::mt19937_64 random_;
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

Pace::Pace(const PaceOptions& options, absl::Time begin)
    : options_(options),
      begin_(begin),
      measured_from_(begin + options.warm_up),
      end_(options.requests > 0 ? absl::InfiniteFuture() : measured_from_ + options.duration) {}

std::optional<absl::Time> Pace::Next() {
  absl::Time time = absl::Now();
  if (options_.rate > 0) {
    time = begin_ + absl::Seconds(static_cast<double>(scheduled_++) / options_.rate);
  }
  if (time >= end_) return std::nullopt;
  if (options_.requests > 0 && Counts(time) && counted_++ >= options_.requests) return std::nullopt;
  const absl::Duration early = time - absl::Now();
  if (early > absl::ZeroDuration()) absl::SleepFor(early);
  return time;
}

absl::StatusOr<BenchResult> RunBench(const ClientOptions& client, const BenchOptions& options,
                                     int concurrency) {
  const Problem problem(options);
  ClientOptions once = client;
  once.retry.max_attempts = 1;
  std::string handle;
  Worker preparation(client, options, problem, 0);
  if (options.mode == BenchMode::kSolve || options.mode == BenchMode::kMix) {
    const auto factor = preparation.Factorize(absl::Now(), false);
    if (!factor.ok()) return factor.status();
    handle = factor->handle;
  }
  std::vector<std::unique_ptr<Worker>> workers;
  workers.reserve(static_cast<size_t>(concurrency));
  for (int i = 0; i < concurrency; ++i) {
    workers.push_back(
        std::make_unique<Worker>(once, options, problem, static_cast<uint64_t>(i) + 1));
  }
  Pace pace(options.pace, absl::Now());
  std::vector<std::thread> threads;
  threads.reserve(workers.size());
  for (const auto& worker : workers) {
    threads.emplace_back([&handle, &pace, w = worker.get()] { w->Run(handle, &pace); });
  }
  for (std::thread& thread : threads) thread.join();
  BenchResult result = Merge(absl::Now() - pace.measured_from(), workers);
  if (!handle.empty()) preparation.client().Release(handle).IgnoreError();
  int64_t succeeded = 0;
  for (const auto& [call, counts] : result.calls) succeeded += counts.latencies.count();
  if (succeeded == 0) return workers.front()->last_error();
  return result;
}

}  // namespace crout::cli
