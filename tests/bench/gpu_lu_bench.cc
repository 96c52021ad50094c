// crout_lu beside cuSOLVER's getrf on the same matrices, in turn, so that clocks and neighbours
// touch both alike. Prints one JSON object: gpu_lu_bench [N ...]
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "kernels/algorithm_registry.h"
#include "kernels/cuda/crout_lu.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/cuda_status.h"
#include "tests/bench/bench_result.h"
#include "tests/bench/factor_residual.h"
#include "tests/bench/gpu_bench.h"

namespace crout {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kOrders[] = {256, 512, 1024, 2048, 4096, 8192, 16384, 32768};
constexpr int64_t kPortableLargest = 8192;  // it is far behind by then
constexpr int64_t kHuge = 40960;            // and beyond: no room to check the factor
struct Shape {
  int64_t rows;
  int64_t cols;
};
constexpr Shape kRectangles[] = {{8192, 256}, {32768, 256}, {65536, 512}, {1024, 8192}};

const StopRequested kNever = [] { return false; };

int Rounds(int64_t n) { return n <= 2048 ? 11 : n <= 8192 ? 7 : n <= 16384 ? 5 : 3; }

// One input and what factors it.
template <class T>
class LuBench {
 public:
  LuBench(CudaContext& context, Shape shape)
      : context_(context),
        shape_(shape),
        bytes_(static_cast<size_t>(shape.rows * shape.cols) * sizeof(T)),
        original_(Allocate(bytes_)),
        a_(Allocate(bytes_)),
        ipiv_(Allocate(std::min(shape.rows, shape.cols) * sizeof(int64_t))) {
    const std::vector<T> host = Uniform<T>(shape.rows * shape.cols);
    Check(context.ops().CopyToDevice(host.data(), original_.data(), bytes_));
    Check(context.Synchronize());
  }

  Buffer Allocate(size_t bytes) { return Check(context_.device().memory().Allocate(bytes)); }
  MatrixView<T> a() { return {a_.as<T>(), shape_.rows, shape_.cols, shape_.rows}; }
  int64_t* ipiv() { return ipiv_.as<int64_t>(); }

  // Seconds of `enqueue` on a fresh copy until the device is done.
  double Factor(const std::function<void()>& enqueue) {
    Check(context_.ops().CopyOnDevice(original_.data(), a_.data(), bytes_));
    Check(context_.Synchronize());
    return Time([&] {
      enqueue();
      Check(context_.Synchronize());
    });
  }

  // Of the last factor.
  double FactorRatio() {
    const AnyMatrix original = {original_.data(), kDTypeOf<T>, shape_.rows, shape_.cols,
                                shape_.rows};
    const AnyMatrix lu = {a_.data(), kDTypeOf<T>, shape_.rows, shape_.cols, shape_.rows};
    return FactorRatioOnDevice(context_, original, {lu, ipiv(), UnitDiagonal::kL});
  }

 private:
  CudaContext& context_;
  const Shape shape_;
  const size_t bytes_;
  Buffer original_;
  Buffer a_;
  Buffer ipiv_;
};

// cusolverDnXgetrf for any shape.
template <class T>
class Getrf {
 public:
  Getrf(LuBench<T>& bench, CudaContext& context) : bench_(bench), context_(context) {
    const MatrixView<T> a = bench.a();
    size_t host = 0;
    Check(CusolverStatus(
        cusolverDnXgetrf_bufferSize(context.cusolver(), context.getrf_params(), a.rows, a.cols,
                                    kType, a.data, a.ld, kType, &bytes_, &host),
        "cusolverDnXgetrf_bufferSize"));
    workspace_ = bench.Allocate(bytes_);
    host_workspace_.resize(host);
  }

  void operator()() {
    const MatrixView<T> a = bench_.a();
    Check(CusolverStatus(
        cusolverDnXgetrf(context_.cusolver(), context_.getrf_params(), a.rows, a.cols, kType,
                         a.data, a.ld, bench_.ipiv(), kType, workspace_.data(), bytes_,
                         host_workspace_.data(), host_workspace_.size(), context_.info()),
        "cusolverDnXgetrf"));
  }

 private:
  static constexpr cudaDataType kType = CudaTypeOf(kDTypeOf<T>);

  LuBench<T>& bench_;
  CudaContext& context_;
  size_t bytes_ = 0;
  Buffer workspace_;
  std::vector<std::byte> host_workspace_;
};

template <class T>
class CroutLuRun {
 public:
  CroutLuRun(LuBench<T>& bench, CudaContext& context, const LuPanelKernels& kernels)
      : bench_(bench),
        context_(context),
        kernels_(kernels),
        blocking_(LuBlocking::For(std::min(bench.a().rows, bench.a().cols))),
        bytes_(CroutLuWorkspaceBytes(kernels, blocking_, kDTypeOf<T>, bench.a().rows)),
        workspace_(bench.Allocate(bytes_)) {}

  void operator()() {
    Check(EnqueueCroutLu(context_, kernels_, blocking_, bench_.a(), bench_.ipiv(),
                         {workspace_.data(), bytes_}, kNever));
  }

 private:
  LuBench<T>& bench_;
  CudaContext& context_;
  const LuPanelKernels& kernels_;
  const LuBlocking blocking_;
  const size_t bytes_;
  const Buffer workspace_;
};

// The vendor's time over ours, round by round: median, least and greatest.
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

template <class T>
Json BenchShape(CudaContext& context, const LuPanelKernels& kernels, const LuPanelKernels& portable,
                Shape shape) {
  LuBench<T> bench(context, shape);
  Getrf<T> getrf(bench, context);
  CroutLuRun<T> crout_lu(bench, context, kernels);
  CroutLuRun<T> without_clusters(bench, context, portable);
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
  for (int round = -1; round < rounds; ++round) {  // the first warms up
    const double vendor = bench.Factor([&] { getrf(); });
    if (checks && round == -1) vendor_ratio = bench.FactorRatio();
    const double own = bench.Factor([&] { crout_lu(); });
    if (checks && round == -1) factor_ratio = bench.FactorRatio();
    const double plain = runs_portable ? bench.Factor([&] { without_clusters(); }) : 0;
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
  row["crout_lu_tflops"] = (m * n * n - n * n * n / 3) / Median(seconds) * 1e-12;
  if (runs_portable) PutRatios(vendor_seconds, portable_seconds, "portable", row);
  if (checks) {
    row["getrf_factor_ratio"] = vendor_ratio;
    row["crout_lu_factor_ratio"] = factor_ratio;
  }
  return row;
}

int Main(int argc, char** argv) {
  if (CountCudaDevices() == 0) {
    std::cerr << "no CUDA device on this machine\n";
    return 1;
  }
  std::vector<int64_t> orders(std::begin(kOrders), std::end(kOrders));
  if (argc > 1) orders.clear();
  for (int i = 1; i < argc; ++i) orders.push_back(std::atoll(argv[i]));
  auto device = Check(MakeCudaDevice(0, CudaOptions()));
  auto owned = Check(device->CreateContext());
  CudaContext& context = CudaContext::From(*owned);
  const LuPanelKernels kernels = Check(LuPanelKernels::Create());
  const LuPanelKernels portable = Check(LuPanelKernels::Create(/*clusters=*/false));
  Json result = ResultHeader("gpu_lu", device->info());
  for (const int64_t n : orders) {
    result["square"].push_back(BenchShape<double>(context, kernels, portable, {n, n}));
    result["square"].push_back(BenchShape<float>(context, kernels, portable, {n, n}));
  }
  for (const Shape& shape : kRectangles) {
    result["rectangular"].push_back(BenchShape<double>(context, kernels, portable, shape));
  }
  std::cout << result.dump(2) << "\n";
  return 0;
}

}  // namespace
}  // namespace crout

int main(int argc, char** argv) { return crout::Main(argc, argv); }
