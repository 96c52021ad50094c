// SPDX-License-Identifier: Apache-2.0

#include "tests/bench/dense/factor_residual.h"

#include <cmath>
#include <vector>

#include "kernels/cuda/device/complex.h"
#include "kernels/cuda/device/cuda_context.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/cuda/ops/blas.h"
#include "kernels/cuda/ops/convert.h"
#include "kernels/cuda/ops/permute_rows.h"
#include "kernels/device.h"
#include "tests/bench/dense/factor_residual_kernels.h"
#include "tests/bench/harness/bench_result.h"

namespace crout {
namespace {

void CheckCuda(cudaError_t error) { Check(cuda::CudaStatus(error, "factor ratio")); }

template <class T>
double NormOne(cuda::Context& context, const MatrixView<T>& a, double* sums) {
  CheckCuda(LaunchColumnSums(a, sums, context.stream()));
  std::vector<double> host(a.cols);
  Check(context.ops().CopyToHost(reinterpret_cast<std::byte*>(sums), host.data(),
                                 host.size() * sizeof(double)));
  Check(context.Synchronize());
  double largest = 0;
  for (const double sum : host) largest = sum > largest || std::isnan(sum) ? sum : largest;
  return largest;
}

// T must be double or cuda::Complex<double>.
template <class T>
double Ratio(ExecutionContext& context, const AnyMatrix& a, const FactorView& factor) {
  cuda::Context& cuda = cuda::Context::From(context);
  MemoryResource& memory = context.device().memory();
  const int64_t n = a.rows;
  const Buffer buffers[] = {
      Check(memory.Allocate(n * n * sizeof(T))), Check(memory.Allocate(n * n * sizeof(T))),
      Check(memory.Allocate(n * n * sizeof(T))), Check(memory.Allocate(2 * n * sizeof(double)))};
  const auto view = [&](int i) { return MatrixView<T>{buffers[i].as<T>(), n, n, n}; };
  const auto any = [&](int i) -> AnyMatrix { return view(i); };
  auto* permutation = buffers[3].as<int64_t>();
  double* sums = buffers[3].as<double>() + n;
  CheckCuda(cuda::LaunchCopyScaled(factor.lu, nullptr, nullptr, any(0), cuda.stream()));
  CheckCuda(cuda::LaunchCopyScaled(a, nullptr, nullptr, any(1), cuda.stream()));
  CheckCuda(cuda::LaunchTracePermutation(factor.ipiv, n, permutation, cuda.stream()));
  CheckCuda(cuda::LaunchPermuteRows(any(1), permutation, false, any(2), cuda.stream()));
  CheckCuda(LaunchSplit(view(0), view(1), factor.unit_diagonal == UnitDiagonal::kU, cuda.stream()));
  const double norm = NormOne(cuda, view(2), sums);
  const auto constant = [](const MatrixView<T>& v) {
    return MatrixView<const T>{v.data, v.rows, v.cols, v.ld};
  };
  Check(cuda::SubtractProduct<T>(cuda.cublas(), Op::kNone, constant(view(0)), constant(view(1)),
                                 view(2)));
  return NormOne(cuda, view(2), sums) / (static_cast<double>(n) * norm * UnitRoundoff(a.dtype));
}

}  // namespace

double FactorRatioOnDevice(ExecutionContext& context, const AnyMatrix& a,
                           const FactorView& factor) {
  return cuda::DispatchWide(WideOf(a.dtype), [&](auto tag) {
    return Ratio<typename decltype(tag)::type>(context, a, factor);
  });
}

}  // namespace crout
