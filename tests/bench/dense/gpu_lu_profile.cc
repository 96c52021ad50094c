// SPDX-License-Identifier: Apache-2.0

// Profiles crout_lu with CUPTI: the kernels of one factorization by name and stream. Prints one
// JSON object.
//   gpu_lu_profile [N ...]
#include <cupti.h>
#include <cxxabi.h>

#include <algorithm>
#include <complex>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/algorithm_registry.h"
#include "kernels/cuda/device/cuda_device.h"
#include "tests/bench/dense/lu_runs.h"
#include "tests/bench/harness/gpu_bench.h"

namespace crout {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMinShare = 0.01;  // least share of the time of a listed kernel
constexpr int64_t kOrders[] = {512, 1024, 2048, 4096, 8192, 16384};

void CheckCupti(CUptiResult result) {
  if (result == CUPTI_SUCCESS) return;
  const char* text = "";
  (void)cuptiGetResultString(result, &text);
  std::cerr << "CUPTI: " << text << "\n";
  std::exit(1);
}

struct Kernel {
  std::string name;
  uint32_t stream;
  double begin;  // seconds
  double end;
};

// Returns the name of one of our kernels, such as "LuPanelKernel", for its mangled name. The
// vendor's kernels have one name, because their names depend on the shape.
std::string ShortName(const char* mangled) {
  const std::unique_ptr<char, decltype(&std::free)> demangled(
      abi::__cxa_demangle(mangled, nullptr, nullptr, nullptr), &std::free);
  const std::string_view name = demangled ? demangled.get() : mangled;
  constexpr std::string_view kOurs = "crout::";
  constexpr std::string_view kEnd = "Kernel";
  const size_t end = name.find(kEnd);
  if (name.find(kOurs) == name.npos || end == name.npos) return "matrix product";
  return std::string(name.substr(0, end + kEnd.size())).substr(name.rfind(':', end) + 1);
}

std::vector<Kernel>& Seen() {
  static std::vector<Kernel> kernels;
  return kernels;
}

void CUPTIAPI GiveBuffer(uint8_t** buffer, size_t* size, size_t* max_records) {
  *size = size_t{4} << 20;
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, *size));
  *max_records = 0;
}

void CUPTIAPI TakeBuffer(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) continue;
    const auto& kernel = *reinterpret_cast<const CUpti_ActivityKernel10*>(record);
    Seen().push_back({ShortName(kernel.name), kernel.streamId,
                      1e-9 * static_cast<double>(kernel.start),
                      1e-9 * static_cast<double>(kernel.end)});
  }
  std::free(buffer);
}

// Profiles a factorization of order n. If a kernel starts before the end of the previous kernel in
// its stream, only the time after this end counts.
template <class T>
Json Profile(cuda::Context& context, const cuda::LuPanelKernels& kernels, int64_t n) {
  LuInput<T> input(context, {n, n}, Uniform<T>(n * n));
  CroutLuRun<T> crout_lu(input, kernels);
  for (int i = 0; i < 2; ++i) input.Factor([&] { crout_lu(); });
  CheckCupti(cuptiActivityFlushAll(0));
  Seen().clear();
  CheckCupti(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  const double seconds = input.Factor([&] { crout_lu(); });
  CheckCupti(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  CheckCupti(cuptiActivityFlushAll(0));
  std::vector<Kernel> all = std::move(Seen());
  std::sort(all.begin(), all.end(),
            [](const Kernel& a, const Kernel& b) { return a.begin < b.begin; });

  struct Cost {
    int64_t launches = 0;
    double seconds = 0;
  };
  struct StreamActivity {
    double until = 0;
    double busy = 0;
    std::map<std::string, Cost> kernels;
  };
  std::map<uint32_t, StreamActivity> lanes;
  for (const Kernel& kernel : all) {
    StreamActivity& lane = lanes[kernel.stream];
    const double own = std::max(0.0, kernel.end - std::max(kernel.begin, lane.until));
    lane.until = std::max(lane.until, kernel.end);
    lane.busy += own;
    Cost& cost = lane.kernels[kernel.name];
    ++cost.launches;
    cost.seconds += own;
  }
  Json rows = Json::array();
  for (const auto& [stream, lane] : lanes) {
    const bool panels = lane.kernels.contains("LuPanelKernel");
    const auto add = [&](const std::string& kernel, int64_t launches, double busy) {
      rows.push_back({{"dtype", std::string(NameOf(kDTypeOf<T>))},
                      {"n", n},
                      {"lane", panels ? "panels" : "rest"},
                      {"kernel", kernel},
                      {"launches", launches},
                      {"each_us", 1e6 * busy / static_cast<double>(std::max<int64_t>(1, launches))},
                      {"ms", 1e3 * busy},
                      {"of_all", busy / seconds}});
    };
    for (const auto& [name, cost] : lane.kernels) {
      if (cost.seconds >= kMinShare * seconds) add(name, cost.launches, cost.seconds);
    }
    add("all", static_cast<int64_t>(0), lane.busy);
  }
  return rows;
}

int Main(int argc, char** argv) {
  if (cuda::CountCudaDevices() == 0) {
    std::cerr << "no CUDA device on this machine\n";
    return 1;
  }
  CheckCupti(cuptiActivityRegisterCallbacks(GiveBuffer, TakeBuffer));
  std::vector<int64_t> orders(std::begin(kOrders), std::end(kOrders));
  if (argc > 1) orders.clear();
  for (int i = 1; i < argc; ++i) orders.push_back(std::atoll(argv[i]));
  auto device = Check(cuda::MakeDevice(0, cuda::Options()));
  auto owned = Check(device->CreateContext());
  const cuda::LuPanelKernels kernels =
      Check(cuda::LuPanelKernels::Create(Check(cuda::DeviceLimits::ForCurrentDevice())));
  Json result = ResultHeader("gpu_lu_profile", device->info());
  result["kernels"] = Json::array();
  const auto add = [&](Json rows) {
    for (Json& row : rows) result["kernels"].push_back(std::move(row));
  };
  for (const int64_t n : orders) {
    add(Profile<double>(cuda::Context::From(*owned), kernels, n));
    add(Profile<float>(cuda::Context::From(*owned), kernels, n));
    add(Profile<std::complex<float>>(cuda::Context::From(*owned), kernels, n));
    add(Profile<std::complex<double>>(cuda::Context::From(*owned), kernels, n));
  }
  std::cout << FormatResult(result);
  return 0;
}

}  // namespace
}  // namespace crout

int main(int argc, char** argv) { return crout::Main(argc, argv); }
