// SPDX-License-Identifier: Apache-2.0

// Compares irr_lu on the host with a serial loop of LAPACK's getrf, and its solves with a loop of
// getrs, in turn on the same matrices in each round. A batch has 1000 square members with orders
// uniform in [1, N]. On a busy machine, the ratios of a round are more reliable than its seconds.
//   host_irr_bench [ROUNDS [N ...]] > RESULT.json
#include <omp.h>

#include <algorithm>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "kernels/host/device/host_device.h"
#include "kernels/host/device/host_info.h"
#include "kernels/host/irr_lu/irr_lu.h"
#include "kernels/host/ops/lapack.h"
#include "tests/bench/harness/bench_result.h"

namespace crout {
namespace {

constexpr int64_t kMembers = 1000;
constexpr auto kNeverStop = [] { return false; };

// Packed members with random values.
template <class T>
class Batch {
 public:
  explicit Batch(const std::vector<MatrixShape>& shapes, uint64_t seed)
      : members_(shapes.size()), extent_(Check(PackMembers(kDTypeOf<T>, shapes, members_))) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<RealPart<T>> uniform(-1, 1);
    original_.resize(extent_.bytes / sizeof(T));
    for (T& x : original_) {
      if constexpr (kIsComplex<T>) {
        x = T(uniform(random), uniform(random));
      } else {
        x = uniform(random);
      }
    }
    Reset();
  }

  void Reset() { elements_ = original_; }
  IrregularBatch view() {
    return {reinterpret_cast<std::byte*>(elements_.data()), extent_, members_.data()};
  }
  const BatchExtent& extent() const { return extent_; }

 private:
  std::vector<BatchMember> members_;
  BatchExtent extent_;
  std::vector<T> original_;
  std::vector<T> elements_;
};

// Seconds of each round.
struct RoundTimes {
  std::vector<double> ours;      // irr_lu on all cores
  std::vector<double> one_core;  // irr_lu on one core
  std::vector<double> loop;      // the loop of LAPACK's routine
};

template <class T>
class Subject {
 public:
  Subject(host::Executor& all, int64_t largest)
      : all_(all), shapes_(RandomShapes(largest)), a_(shapes_, 1) {
    const BatchExtent& extent = a_.extent();
    ipiv_.resize(extent.diagonals);
    pivots_.resize(extent.diagonals);
    info_.resize(extent.members);
    growth_.resize(extent.members);
    quality_.resize(extent.members);
    workspace_.resize(std::max(host::IrrGetrfWorkspaceBytes(all_, extent),
                               host::IrrGetrsWorkspaceBytes(all_, extent)));
  }

  RoundTimes Factorizations(int rounds) {
    const auto ours = [this](host::Executor& executor) {
      Check(host::IrrGetrf(executor, a_.view(), factors(), workspace_, kNeverStop));
    };
    return TimeRounds(rounds, a_, ours, [this](int64_t i) {
      host::Getrf(a_.view().template Member<T>(i), PivotsOf(i));
    });
  }

  // Measures solves with the factors of Factorizations().
  RoundTimes Solves(int rounds, int64_t nrhs) {
    std::vector<MatrixShape> shapes = shapes_;
    for (MatrixShape& shape : shapes) shape.cols = nrhs;
    Batch<T> b(shapes, 2);
    const auto ours = [&](host::Executor& executor) {
      Check(host::IrrGetrs(executor, Op::kNone, a_.view(), factors(), b.view(), workspace_,
                           kNeverStop));
    };
    return TimeRounds(rounds, b, ours, [&](int64_t i) {
      host::Getrs(Op::kNone, a_.view().template Member<T>(i), PivotsOf(i),
                  b.view().template Member<T>(i));
    });
  }

 private:
  static std::vector<MatrixShape> RandomShapes(int64_t largest) {
    std::mt19937_64 random(largest);
    std::uniform_int_distribution<int64_t> uniform(1, largest);
    std::vector<MatrixShape> shapes(kMembers);
    for (MatrixShape& shape : shapes) shape.rows = shape.cols = uniform(random);
    return shapes;
  }

  BatchFactors factors() { return {ipiv_.data(), info_.data(), growth_.data(), quality_.data()}; }
  lapack_int* PivotsOf(int64_t i) { return pivots_.data() + a_.view().members[i].first_diagonal; }

  RoundTimes TimeRounds(int rounds, Batch<T>& batch,
                        const std::function<void(host::Executor&)>& ours,
                        const std::function<void(int64_t)>& lapack) {
    RoundTimes round_times;
    omp_set_num_threads(1);                          // for LAPACK on this thread
    for (int round = -1; round < rounds; ++round) {  // the first is a warm-up
      const auto take = [&](std::vector<double>& seconds, const std::function<void()>& run) {
        batch.Reset();
        const double spent = Time(run);
        if (round >= 0) seconds.push_back(spent);
      };
      take(round_times.loop, [&] {
        for (int64_t i = 0; i < kMembers; ++i) lapack(i);
      });
      take(round_times.one_core, [&] { ours(one_); });
      take(round_times.ours, [&] { ours(all_); });
    }
    return round_times;
  }

  host::Executor& all_;
  host::Executor one_{1};
  const std::vector<MatrixShape> shapes_;
  Batch<T> a_;
  std::vector<int64_t> ipiv_;
  std::vector<lapack_int> pivots_;
  std::vector<int32_t> info_;
  std::vector<double> growth_;
  std::vector<double> quality_;
  std::vector<std::byte> workspace_;
};

std::vector<double> Ratios(const std::vector<double>& of, const std::vector<double>& over) {
  std::vector<double> ratios;
  for (size_t i = 0; i < of.size(); ++i) ratios.push_back(of[i] / over[i]);
  return ratios;
}

nlohmann::ordered_json Describe(const char* what, DType dtype, int64_t largest, int64_t nrhs,
                                const RoundTimes& round_times) {
  const std::vector<double> gain = Ratios(round_times.loop, round_times.ours);
  const auto [least, most] = std::minmax_element(gain.begin(), gain.end());
  const double one_core = Median(Ratios(round_times.loop, round_times.one_core));
  std::fprintf(stderr,
               "%s %4s N=%4lld nrhs=%2lld: loop %8.3f ms, ours %8.3f ms; %.2f [%.2f, %.2f] times "
               "as fast, %.2f on one core\n",
               what, NameOf(dtype).data(), static_cast<long long>(largest),
               static_cast<long long>(nrhs), 1e3 * Median(round_times.loop),
               1e3 * Median(round_times.ours), Median(gain), *least, *most, one_core);
  return {{"operation", what},
          {"dtype", NameOf(dtype)},
          {"members", kMembers},
          {"largest", largest},
          {"nrhs", nrhs},
          {"loop_ms", 1e3 * Median(round_times.loop)},
          {"irr_ms", 1e3 * Median(round_times.ours)},
          {"irr_one_core_ms", 1e3 * Median(round_times.one_core)},
          {"gain", Median(gain)},
          {"least_gain", *least},
          {"most_gain", *most},
          {"gain_on_one_core", one_core}};
}

int Main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 9;
  std::vector<int64_t> largest = {32, 64, 128, 256};
  if (argc > 2) largest.clear();
  for (int i = 2; i < argc; ++i) largest.push_back(std::max(1, std::atoi(argv[i])));
  const std::unique_ptr<Device> device = host::MakeDevice({});
  host::Executor executor(host::AvailableCores());
  nlohmann::ordered_json result = ResultHeader("host_irr", device->info());
  result["cores"] = host::AvailableCores();
  result["rounds"] = rounds;
  for (const DType dtype : kDTypes) {
    DispatchDType(dtype, [&](auto tag) {
      for (const int64_t n : largest) {
        Subject<typename decltype(tag)::type> subject(executor, n);
        result["cases"].push_back(Describe("getrf", dtype, n, 0, subject.Factorizations(rounds)));
        for (const int64_t nrhs : {1, 16}) {
          result["cases"].push_back(
              Describe("getrs", dtype, n, nrhs, subject.Solves(rounds, nrhs)));
        }
      }
    });
  }
  std::fputs(FormatResult(result).c_str(), stdout);
  return 0;
}

}  // namespace
}  // namespace crout

int main(int argc, char** argv) { return crout::Main(argc, argv); }
