// SPDX-License-Identifier: Apache-2.0

#include "tests/bench/crout_bench/loop_lu.h"

#include "kernels/matrix.h"

namespace crout::bench {
namespace {

template <class T>
int64_t Factor(const MatrixView<T>& a) {
  for (int64_t k = 0; k < a.rows; ++k) {
    if (a(k, k) == T{0}) return k + 1;
    for (int64_t i = k + 1; i < a.rows; ++i) a(i, k) /= a(k, k);
    for (int64_t j = k + 1; j < a.cols; ++j) {
      for (int64_t i = k + 1; i < a.rows; ++i) a(i, j) -= a(i, k) * a(k, j);
    }
  }
  return 0;
}

class LoopLuAlgorithm final : public LuAlgorithm {
 public:
  const MethodTraits& traits() const override {
    static constexpr MethodTraits kTraits = {
        .name = "lu_loop",
        .description = "LU by plain loops, no pivoting (Rodrigues and Estevao 2023)",
        .types = kAllTypes,
        .pivoting = PivotRule::kNone};
    return kTraits;
  }
  absl::StatusOr<size_t> WorkspaceBytes(DType, int64_t, const LuParameters&) const override {
    return 0;
  }
  double PredictSeconds(DType, int64_t) const override { return 0; }
  absl::Status Factor(ExecutionContext& context, const AnyMatrix& a, int64_t* ipiv,
                      std::span<std::byte>, const LuParameters&, StopRequested) const override {
    for (int64_t k = 0; k < a.rows; ++k) ipiv[k] = k + 1;
    DispatchDType(a.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      context.report().info = static_cast<int32_t>(bench::Factor(a.As<T>()));
    });
    return absl::OkStatus();
  }
};

}  // namespace

const LuAlgorithm& LoopLu() {
  static const LoopLuAlgorithm algorithm;
  return algorithm;
}

}  // namespace crout::bench
