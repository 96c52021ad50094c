#include "tests/bench/factor_residual.h"

#include <cmath>
#include <vector>

#include "kernels/cuda/device/cuda_context.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/cuda/ops/convert.h"
#include "kernels/cuda/ops/permute_rows.h"
#include "kernels/cuda/ops/subtract_product.h"
#include "kernels/device.h"
#include "tests/bench/bench_result.h"
#include "tests/bench/factor_residual_kernels.h"

namespace crout {
namespace {

void CheckCuda(cudaError_t error) { Check(cuda::CudaStatus(error, "factor ratio")); }

double NormOne(cuda::Context& context, const MatrixView<double>& a, double* sums) {
  CheckCuda(LaunchColumnSums(a, sums, context.stream()));
  std::vector<double> host(a.cols);
  Check(context.ops().CopyToHost(reinterpret_cast<std::byte*>(sums), host.data(),
                                 host.size() * sizeof(double)));
  Check(context.Synchronize());
  double largest = 0;
  for (const double sum : host) largest = sum > largest || std::isnan(sum) ? sum : largest;
  return largest;
}

}  // namespace

double FactorRatioOnDevice(ExecutionContext& context, const AnyMatrix& a,
                           const FactorView& factor) {
  cuda::Context& cuda = cuda::Context::From(context);
  MemoryResource& memory = context.device().memory();
  const int64_t n = a.rows;
  const Buffer buffers[] = {Check(memory.Allocate(n * n * sizeof(double))),
                            Check(memory.Allocate(n * n * sizeof(double))),
                            Check(memory.Allocate(n * n * sizeof(double))),
                            Check(memory.Allocate(2 * n * sizeof(double)))};
  const auto view = [&](int i) { return MatrixView<double>{buffers[i].as<double>(), n, n, n}; };
  auto* permutation = buffers[3].as<int64_t>();
  double* sums = buffers[3].as<double>() + n;
  CheckCuda(cuda::LaunchCopyScaled(factor.lu, nullptr, nullptr, AsAny(view(0)), cuda.stream()));
  CheckCuda(cuda::LaunchCopyScaled(a, nullptr, nullptr, AsAny(view(1)), cuda.stream()));
  CheckCuda(cuda::LaunchTracePermutation(factor.ipiv, n, permutation, cuda.stream()));
  CheckCuda(
      cuda::LaunchPermuteRows(AsAny(view(1)), permutation, false, AsAny(view(2)), cuda.stream()));
  CheckCuda(LaunchSplit(view(0), view(1), factor.unit_diagonal == UnitDiagonal::kU, cuda.stream()));
  const double norm = NormOne(cuda, view(2), sums);
  const auto constant = [](const MatrixView<double>& v) {
    return MatrixView<const double>{v.data, v.rows, v.cols, v.ld};
  };
  Check(cuda::SubtractProduct<double>(cuda.cublas(), Op::kNone, constant(view(0)),
                                      constant(view(1)), view(2)));
  return NormOne(cuda, view(2), sums) / (static_cast<double>(n) * norm * UnitRoundoff(a.dtype));
}

}  // namespace crout
