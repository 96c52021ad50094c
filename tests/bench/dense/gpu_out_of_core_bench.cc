// SPDX-License-Identifier: Apache-2.0

// Compares LU of a matrix in pinned host memory with crout_lu on the GPU, of the same matrix if it
// fits or of its leading block. Prints one JSON object with a record.
//   gpu_out_of_core_bench DTYPE N [IN_CORE_N [WIDTH PIECE]]
// DTYPE: f32, f64, c64 or c128. IN_CORE_N: order of the matrix on the GPU; N by default, 0 for
// none. WIDTH and PIECE: columns of block columns and of pieces; 0 for the default.
#include <sys/mman.h>

#include <complex>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/cuda/crout_lu/crout_lu.h"
#include "kernels/cuda/crout_lu/out_of_core.h"
#include "kernels/cuda/device/complex.h"
#include "kernels/cuda/device/cuda_context.h"
#include "kernels/cuda/device/cuda_device.h"
#include "kernels/cuda/device/cuda_status.h"
#include "tests/bench/dense/generated_matrix.h"
#include "tests/bench/harness/bench_result.h"

namespace crout {
namespace {

using Json = nlohmann::ordered_json;

const StopRequested kNever = [] { return false; };

struct Case {
  int64_t n;
  int64_t in_core_n;
  int64_t width;
  int64_t piece;
};

// Zeroed pages that the process touches first in Fill(), on all cores.
class Pages {
 public:
  explicit Pages(size_t bytes)
      : memory_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)),
        bytes_(bytes) {
    if (memory_ == MAP_FAILED) {
      Check(absl::ResourceExhaustedError(absl::StrCat("mmap of ", bytes, " bytes failed")));
    }
    // Fewer pages to pin. A refusal only makes the registration slower.
    (void)madvise(memory_, bytes, MADV_HUGEPAGE);
  }
  ~Pages() { (void)munmap(memory_, bytes_); }
  Pages(const Pages&) = delete;  // owns the mapping
  Pages& operator=(const Pages&) = delete;

  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(memory_), bytes_}; }

 private:
  void* const memory_;
  const size_t bytes_;
};

// Operations of LU of order n, as real operations.
template <class T>
double Flops(int64_t order) {
  const auto n = static_cast<double>(order);
  return 2.0 / 3.0 * n * n * n * (kIsComplex<T> ? 4 : 1);
}

double Mib(size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

struct Factor {
  double seconds = 0;
  double copied_in = 0;  // seconds of the copy to the GPU, if it is separate
  int64_t info = 0;
  std::vector<int64_t> ipiv;
};

// Copies the leading block of order n to the GPU, factors it there, and copies it back.
template <class T>
Factor FactorInCore(cuda::Context& context, const cuda::LuPanelKernels& kernels,
                    const MatrixView<T>& host, int64_t n) {
  using D = cuda::DeviceType<T>;
  MemoryResource& memory = context.device().memory();
  const auto blocking = cuda::LuBlocking::For(kDTypeOf<T>, n);
  const size_t bytes = cuda::CroutLuWorkspaceBytes(kernels, blocking, kDTypeOf<T>, n, n);
  Factor factor;
  factor.ipiv.resize(n);
  {
    const Buffer a = Check(memory.Allocate(n * n * sizeof(T)));
    const Buffer ipiv = Check(memory.Allocate(n * sizeof(int64_t)));
    const Buffer workspace = Check(memory.Allocate(bytes));
    const std::span<std::byte> work(workspace.data(), bytes);
    const auto copy = [&](void* to, int64_t to_ld, const void* from, int64_t from_ld) {
      Check(
          cuda::CudaStatus(cudaMemcpy2DAsync(to, to_ld * sizeof(T), from, from_ld * sizeof(T),
                                             n * sizeof(T), n, cudaMemcpyDefault, context.stream()),
                           "cudaMemcpy2DAsync"));
      Check(context.Synchronize());
    };
    factor.copied_in = Time([&] { copy(a.data(), n, host.data, host.ld); });
    factor.seconds = Time([&] {
      Check(cuda::EnqueueCroutLu<D>(cuda::LuStreams::ForContext(context), kernels, blocking,
                                    {a.as<D>(), n, n, n}, ipiv.as<int64_t>(), work, kNever));
      Check(context.Synchronize());
    });
    copy(host.data, host.ld, a.data(), n);
    int info = 0;
    Check(context.ops().CopyToHost(ipiv.data(), factor.ipiv.data(), n * sizeof(int64_t)));
    Check(context.ops().CopyToHost(cuda::CroutLuInfo(kDTypeOf<T>, work), &info, sizeof(info)));
    Check(context.Synchronize());
    factor.info = info;
  }
  memory.TrimTo(0);
  return factor;
}

template <class T>
Factor FactorOutOfCore(cuda::Context& context, const cuda::LuPanelKernels& kernels,
                       const cuda::OutOfCoreBlocking& blocking, const MatrixView<T>& host) {
  using D = cuda::DeviceType<T>;
  const size_t bytes = cuda::OutOfCoreBytes(kernels, blocking, kDTypeOf<T>, host.rows);
  const Buffer workspace = Check(context.device().memory().Allocate(bytes));
  Factor factor;
  factor.ipiv.resize(host.rows);
  factor.seconds = Time([&] {
    factor.info = Check(
        cuda::FactorOutOfCore<D>(context, kernels, blocking,
                                 {reinterpret_cast<D*>(host.data), host.rows, host.cols, host.ld},
                                 factor.ipiv.data(), {workspace.data(), bytes}, kNever));
  });
  return factor;
}

template <class T>
void Bench(cuda::Context& context, const Case& c, Json& record) {
  const int64_t n = c.n;
  const cuda::LuPanelKernels kernels =
      Check(cuda::LuPanelKernels::Create(Check(cuda::DeviceLimits::ForCurrentDevice())));
  auto blocking = Check(cuda::OutOfCoreBlocking::For(kernels, kDTypeOf<T>, n,
                                                     context.device().info().memory_bytes / 2));
  if (c.width > 0) blocking = cuda::OutOfCoreBlocking::Of(kDTypeOf<T>, n, c.width, c.piece);
  record["dtype"] = std::string(NameOf(kDTypeOf<T>));
  record["n"] = n;
  record["width"] = blocking.width;
  record["piece"] = blocking.piece;
  record["matrix_mib"] = Mib(n * n * sizeof(T));
  record["device_mib"] = Mib(cuda::OutOfCoreBytes(kernels, blocking, kDTypeOf<T>, n));
  const Pages pages(n * n * sizeof(T));
  const MatrixView<T> a = {reinterpret_cast<T*>(pages.bytes().data()), n, n, n};
  const GeneratedMatrix<T> matrix(n);
  record["fill_s"] = Time([&] { matrix.Fill(a); });
  std::unique_ptr<HostRegistration> registration;
  record["register_s"] =
      Time([&] { registration = Check(context.device().Register(pages.bytes())); });
  std::cerr << FormatResult(record);  // shows the progress of a large matrix
  std::optional<Factor> in_core;
  if (c.in_core_n > 0) {
    in_core = FactorInCore<T>(context, kernels, a, c.in_core_n);
    record["in_core_n"] = c.in_core_n;
    record["in_core_s"] = in_core->seconds;
    record["in_core_tflops"] = Flops<T>(c.in_core_n) / in_core->seconds * 1e-12;
    const auto order = static_cast<double>(c.in_core_n);
    record["copy_to_device_gb_per_s"] = order * order * sizeof(T) / in_core->copied_in * 1e-9;
    if (c.in_core_n == n) record["in_core_error"] = matrix.FactorError(a, in_core->ipiv);
    matrix.Fill(a);
    std::cerr << FormatResult(record);
  }
  const Factor factor = FactorOutOfCore<T>(context, kernels, blocking, a);
  const double tflops = Flops<T>(n) / factor.seconds * 1e-12;
  record["factor_s"] = factor.seconds;
  record["tflops"] = tflops;
  record["info"] = factor.info;
  if (in_core) {
    record["share_of_in_core_rate"] = tflops / record["in_core_tflops"].template get<double>();
    if (c.in_core_n == n) record["same_pivots"] = factor.ipiv == in_core->ipiv;
  }
  std::cerr << FormatResult(record);
  record["error"] = matrix.FactorError(a, factor.ipiv);
}

// Loads the kernels that the benchmark uses, so that its first factorization does not.
template <class T>
void WarmUp(cuda::Context& context) {
  constexpr int64_t kOrder = 6000;
  Json unused;
  Bench<T>(context, {kOrder, kOrder, 2048, 512}, unused);
}

int Main(int argc, char** argv) {
  if (argc < 3 || argc > 6 || argc == 5) {
    std::cerr << "usage: gpu_out_of_core_bench DTYPE N [IN_CORE_N [WIDTH PIECE]]\n";
    return 2;
  }
  const std::string dtype = argv[1];
  const auto number = [&](int i, int64_t otherwise) {
    return i < argc ? std::atoll(argv[i]) : otherwise;
  };
  const int64_t n = number(2, 0);
  const Case c = {n, number(3, n), number(4, 0), number(5, 0)};
  if (n <= 0 || c.in_core_n < 0 || c.in_core_n > n || (c.width > 0) != (c.piece > 0)) {
    std::cerr << "N is positive and IN_CORE_N is at most N; WIDTH needs PIECE\n";
    return 2;
  }
  if (cuda::CountCudaDevices() == 0) {
    std::cerr << "no CUDA device on this machine\n";
    return 1;
  }
  auto device = Check(cuda::MakeDevice(0, cuda::Options()));
  auto context = Check(device->CreateContext());
  Json result = ResultHeader("gpu_out_of_core", device->info());
  Json record;
  const auto run = [&](auto zero) {
    using T = decltype(zero);
    WarmUp<T>(cuda::Context::From(*context));
    Bench<T>(cuda::Context::From(*context), c, record);
  };
  if (dtype == "f64") {
    run(double{});
  } else if (dtype == "f32") {
    run(float{});
  } else if (dtype == "c128") {
    run(std::complex<double>{});
  } else if (dtype == "c64") {
    run(std::complex<float>{});
  } else {
    std::cerr << "DTYPE is f32, f64, c64 or c128\n";
    return 2;
  }
  result["out_of_core"] = Json::array({record});
  std::cout << FormatResult(result);
  return 0;
}

}  // namespace
}  // namespace crout

int main(int argc, char** argv) { return crout::Main(argc, argv); }
