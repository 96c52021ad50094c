// SPDX-License-Identifier: Apache-2.0

// Compares crout_lu with cuSOLVER's getrf, in turn on the same matrices, so that clock changes and
// other load affect both. Prints one JSON object.
//   gpu_lu_bench [N ...]
#include <algorithm>
#include <complex>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/algorithm_registry.h"
#include "kernels/cuda/device/cuda_device.h"
#include "kernels/cuda/device/cuda_status.h"
#include "tests/bench/dense/gpu_lu_gallery.h"
#include "tests/bench/dense/lu_runs.h"
#include "tests/bench/harness/bench_result.h"
#include "tests/bench/harness/gpu_bench.h"

namespace crout {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kOrders[] = {256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 40960};
constexpr int64_t kPortableLargest = 8192;  // larger orders take too long
constexpr int64_t kLargestComplex = 16384;
// From this order on, there is not enough memory to check the factor. cuBLAS's product in float64
// is measured instead.
constexpr int64_t kHuge = 40960;
constexpr LuShape kRectangles[] = {{8192, 256}, {32768, 256}, {65536, 512}, {1024, 8192}};

int Rounds(int64_t n) { return n <= 2048 ? 11 : n <= 8192 ? 7 : n <= 16384 ? 5 : 3; }

// Adds our median milliseconds, and the median, smallest and largest ratio of the vendor's time to
// ours.
void PutRatios(const std::vector<double>& vendor, const std::vector<double>& ours,
               const std::string& name, Json& row) {
  std::vector<double> ratios(vendor.size());
  std::transform(vendor.begin(), vendor.end(), ours.begin(), ratios.begin(), std::divides<>());
  const auto [least, greatest] = std::minmax_element(ratios.begin(), ratios.end());
  row[name + "_ms"] = 1e3 * Median(ours);
  row[name + "_times_faster"] = Median(ratios);
  row[name + "_least"] = *least;
  row[name + "_greatest"] = *greatest;
}

// Returns the TFLOP/s of cuBLAS for the product of the factor with itself.
double ProductTflops(LuInput<double>& input) {
  cuda::Context& context = input.context();
  const MatrixView<double> a = input.a();
  const Buffer product = input.Allocate(a.rows * a.cols * sizeof(double));
  const double one = 1;
  const double zero = 0;
  const double seconds = Time([&] {
    Check(cuda::CublasStatus(
        cublasDgemm_64(context.cublas(), CUBLAS_OP_N, CUBLAS_OP_N, a.rows, a.cols, a.cols, &one,
                       a.data, a.ld, a.data, a.ld, &zero, product.as<double>(), a.rows),
        "cublasDgemm"));
    Check(context.Synchronize());
  });
  const auto n = static_cast<double>(a.rows);
  return 2 * n * n * n / seconds * 1e-12;
}

template <class T>
Json BenchShape(cuda::Context& context, const cuda::LuPanelKernels& kernels,
                const cuda::LuPanelKernels& portable, LuShape shape) {
  LuInput<T> input(context, shape, Uniform<T>(shape.rows * shape.cols));
  Getrf<T> getrf(input);
  CroutLuRun<T> crout_lu(input, kernels);
  CroutLuRun<T> without_clusters(input, portable);
  const int64_t columns = std::min(shape.rows, shape.cols);
  const bool square = shape.rows == shape.cols;
  const bool runs_portable = square && columns <= kPortableLargest;
  const bool checks = square && columns < kHuge;
  std::vector<double> vendor_seconds;
  std::vector<double> seconds;
  std::vector<double> portable_seconds;
  double vendor_ratio = 0;
  double factor_ratio = 0;
  const int rounds = Rounds(columns);
  for (int round = -1; round < rounds; ++round) {  // the first is a warm-up
    const double vendor = input.Factor([&] { getrf(); });
    if (checks && round == -1) vendor_ratio = input.FactorRatio();
    const double own = input.Factor([&] { crout_lu(); });
    if (checks && round == -1) factor_ratio = input.FactorRatio();
    const double plain = runs_portable ? input.Factor([&] { without_clusters(); }) : 0;
    if (round < 0) continue;
    vendor_seconds.push_back(vendor);
    seconds.push_back(own);
    portable_seconds.push_back(plain);
  }
  const auto m = static_cast<double>(std::max(shape.rows, shape.cols));  // m n^2 - n^3 / 3 flops
  const auto n = static_cast<double>(columns);
  Json row = {{"rows", shape.rows},
              {"cols", shape.cols},
              {"dtype", std::string(NameOf(kDTypeOf<T>))},
              {"getrf_ms", 1e3 * Median(vendor_seconds)}};
  PutRatios(vendor_seconds, seconds, "crout_lu", row);
  const double flops = (m * n * n - n * n * n / 3) * (kIsComplex<T> ? 4 : 1);
  row["crout_lu_tflops"] = flops / Median(seconds) * 1e-12;
  if (runs_portable) PutRatios(vendor_seconds, portable_seconds, "portable", row);
  if constexpr (std::is_same_v<T, double>) {
    if (columns >= kHuge) row["dgemm_tflops"] = ProductTflops(input);
  }
  if (checks) {
    row["getrf_factor_ratio"] = vendor_ratio;
    row["crout_lu_factor_ratio"] = factor_ratio;
  }
  return row;
}

int Main(int argc, char** argv) {
  if (cuda::CountCudaDevices() == 0) {
    std::cerr << "no CUDA device on this machine\n";
    return 1;
  }
  std::vector<int64_t> orders(std::begin(kOrders), std::end(kOrders));
  if (argc > 1) orders.clear();
  for (int i = 1; i < argc; ++i) orders.push_back(std::atoll(argv[i]));
  auto device = Check(cuda::MakeDevice(0, cuda::Options()));
  auto owned = Check(device->CreateContext());
  cuda::Context& context = cuda::Context::From(*owned);
  const cuda::LuPanelKernels kernels =
      Check(cuda::LuPanelKernels::Create(Check(cuda::DeviceLimits::ForCurrentDevice())));
  const cuda::LuPanelKernels portable = Check(cuda::LuPanelKernels::Create(
      Check(cuda::DeviceLimits::ForCurrentDevice({.cluster_blocks = 0}))));
  Json result = ResultHeader("gpu_lu", device->info());
  for (const int64_t n : orders) {
    result["square"].push_back(BenchShape<double>(context, kernels, portable, {n, n}));
    if (n >= kHuge) continue;
    result["square"].push_back(BenchShape<float>(context, kernels, portable, {n, n}));
    if (n > kLargestComplex) continue;
    result["square"].push_back(
        BenchShape<std::complex<double>>(context, kernels, portable, {n, n}));
    result["square"].push_back(BenchShape<std::complex<float>>(context, kernels, portable, {n, n}));
  }
  for (const LuShape& shape : kRectangles) {
    result["rectangular"].push_back(BenchShape<double>(context, kernels, portable, shape));
  }
  result["gallery"] = BenchLuGallery(context, kernels);
  std::cout << FormatResult(result);
  return 0;
}

}  // namespace
}  // namespace crout

int main(int argc, char** argv) { return crout::Main(argc, argv); }
