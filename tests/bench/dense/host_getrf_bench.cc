// SPDX-License-Identifier: Apache-2.0

// Compares the host's getrf, which works by panels, with one call of OpenBLAS's xGETRF, in turn on
// the same matrices. Then measures how long a factorization continues after a stop request. Elapsed
// seconds are meaningful only on an idle machine, processor seconds on any machine.
//   host_getrf_bench [ROUNDS [N ...]]
#include <lapacke.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/host/device/executor.h"
#include "kernels/host/device/host_device.h"
#include "kernels/host/device/host_info.h"
#include "kernels/host/methods.h"
#include "tests/bench/harness/bench_result.h"

namespace crout {
namespace {

double ProcessorSeconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Spent {
  double elapsed;
  double processor;
};

lapack_int CallGetrf(std::vector<float>& a, lapack_int n, lapack_int* ipiv) {
  return LAPACKE_sgetrf_work(LAPACK_COL_MAJOR, n, n, a.data(), n, ipiv);
}
lapack_int CallGetrf(std::vector<double>& a, lapack_int n, lapack_int* ipiv) {
  return LAPACKE_dgetrf_work(LAPACK_COL_MAJOR, n, n, a.data(), n, ipiv);
}

// Both variants run on the threads of one executor.
template <class T>
class Subject {
 public:
  Subject(host::Executor& executor, ExecutionContext& context, int64_t n)
      : executor_(executor),
        context_(context),
        n_(n),
        getrf_(host::MakeGetrf(executor)),
        original_(n * n),
        a_(n * n),
        ipiv_(n),
        workspace_(Check(getrf_->WorkspaceBytes(kDTypeOf<T>, n, {}))) {
    std::mt19937_64 random(n);
    std::uniform_real_distribution<T> uniform(-1, 1);
    std::generate(original_.begin(), original_.end(), [&] { return uniform(random); });
  }

  absl::Status ByPanels(StopRequested stop) {
    return getrf_->Factor(context_,
                          {reinterpret_cast<std::byte*>(a_.data()), kDTypeOf<T>, n_, n_, n_},
                          ipiv_.data(), workspace_, {}, stop);
  }
  void AtOnce() {
    executor_.Run(host::WidthFor(n_ * n_), [&](int) {
      CallGetrf(a_, static_cast<lapack_int>(n_), reinterpret_cast<lapack_int*>(workspace_.data()));
    });
  }

  // Returns the time of `factor` for a new copy of the matrix.
  Spent Measure(const std::function<void()>& factor) {
    a_ = original_;
    const double processor = ProcessorSeconds();
    const double elapsed = Time(factor);
    return {elapsed, ProcessorSeconds() - processor};
  }

 private:
  host::Executor& executor_;
  ExecutionContext& context_;
  const int64_t n_;
  const std::unique_ptr<LuAlgorithm> getrf_;
  std::vector<T> original_;
  std::vector<T> a_;
  std::vector<int64_t> ipiv_;
  std::vector<std::byte> workspace_;
};

std::string Range(const std::vector<double>& values) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  char text[64];
  std::snprintf(text, sizeof text, "%.3f [%.3f, %.3f]", Median(values), *least, *most);
  return text;
}

void Print(const char* what, const std::vector<Spent>& panels, const std::vector<Spent>& at_once,
           double Spent::*seconds) {
  std::vector<double> ours;
  std::vector<double> theirs;
  std::vector<double> ratios;  // one per round
  for (size_t i = 0; i < panels.size(); ++i) {
    ours.push_back(panels[i].*seconds);
    theirs.push_back(at_once[i].*seconds);
    ratios.push_back(ours.back() / theirs.back());
  }
  std::printf("  %s s: panels %s, one call %s; ratio %s, of the least %.3f\n", what,
              Range(ours).c_str(), Range(theirs).c_str(), Range(ratios).c_str(),
              *std::min_element(ours.begin(), ours.end()) /
                  *std::min_element(theirs.begin(), theirs.end()));
}

template <class T>
void Compare(host::Executor& executor, ExecutionContext& context, int64_t n, int rounds) {
  Subject<T> subject(executor, context, n);
  const auto by_panels = [&] { Check(subject.ByPanels([] { return false; })); };
  const auto at_once = [&] { subject.AtOnce(); };
  std::vector<Spent> panels;
  std::vector<Spent> whole;
  for (int round = -1; round < rounds; ++round) {  // the first is a warm-up
    // The first of the two alternates between rounds.
    std::vector<std::pair<std::function<void()>, std::vector<Spent>*>> turn = {{by_panels, &panels},
                                                                               {at_once, &whole}};
    if (round % 2 != 0) std::swap(turn[0], turn[1]);
    for (const auto& [factor, spent] : turn) {
      const Spent measured = subject.Measure(factor);
      if (round >= 0) spent->push_back(measured);
    }
  }
  std::printf("n=%lld %s, %d rounds, median [range]\n", static_cast<long long>(n),
              NameOf(kDTypeOf<T>).data(), rounds);
  Print("elapsed", panels, whole, &Spent::elapsed);
  Print("processor", panels, whole, &Spent::processor);
  std::fflush(stdout);
}

// Measures the time from a stop request to the end, for requests at several times of a
// factorization.
template <class T>
void Cancel(host::Executor& executor, ExecutionContext& context, int64_t n) {
  Subject<T> subject(executor, context, n);
  const double whole =
      subject.Measure([&] { Check(subject.ByPanels([] { return false; })); }).elapsed;
  std::vector<double> until_stopped;
  for (int share = 1; share < 20; ++share) {
    std::atomic<bool> stop = false;
    absl::Status status;
    std::chrono::steady_clock::time_point ended;
    subject.Measure([&] {
      std::thread job([&] {
        status = subject.ByPanels([&] { return stop.load(); });
        ended = std::chrono::steady_clock::now();
      });
      std::this_thread::sleep_for(std::chrono::duration<double>(whole * share / 20));
      const auto requested = std::chrono::steady_clock::now();
      stop = true;
      job.join();
      if (absl::IsCancelled(status)) {
        until_stopped.push_back(std::chrono::duration<double>(ended - requested).count());
      }
    });
  }
  if (until_stopped.empty()) Check(absl::InternalError("nothing was stopped"));
  std::printf("n=%lld %s: the whole takes %.2f s; stops %s s after the request (%zu of 19 times)\n",
              static_cast<long long>(n), NameOf(kDTypeOf<T>).data(), whole,
              Range(until_stopped).c_str(), until_stopped.size());
  std::fflush(stdout);
}

int Main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 7;
  std::vector<int64_t> orders = {4096, 6000, 9000};
  if (argc > 2) orders.clear();
  for (int i = 2; i < argc; ++i) orders.push_back(std::atoll(argv[i]));
  host::Executor executor(host::AvailableCores());
  const std::unique_ptr<Device> device = host::MakeDevice({});  // creates the context
  const auto context = Check(device->CreateContext());
  std::printf("%s, %d cores, Crout %s (%s)\n", host::ProcessorName().c_str(),
              host::AvailableCores(), CROUT_VERSION, CROUT_COMMIT);
  for (const int64_t n : orders) {
    Compare<double>(executor, *context, n, rounds);
    Compare<float>(executor, *context, n, rounds);
  }
  Cancel<double>(executor, *context, orders.back());
  Cancel<float>(executor, *context, orders.back());
  return 0;
}

}  // namespace
}  // namespace crout

int main(int argc, char** argv) { return crout::Main(argc, argv); }
