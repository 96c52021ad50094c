// A method that only a test registers: what a device needs to offer one more.
#ifndef CROUT_TESTS_SUPPORT_TOY_LU_H_
#define CROUT_TESTS_SUPPORT_TOY_LU_H_

#include "kernels/lu_algorithm.h"

namespace crout::testing {

// Gaussian elimination with partial pivoting by the textbook, in host memory and float64 alone. It
// predicts no time at all, so that "auto" prefers it, and reports itself as an iterative method
// whose only section took one sweep.
class ToyLu final : public LuAlgorithm {
 public:
  explicit ToyLu(std::string_view name)
      : traits_{.name = name,
                .description = "Gaussian elimination by the textbook",
                .types = {DType::kFloat64},
                .iterative = true} {}

  const MethodTraits& traits() const override { return traits_; }
  // The number of interchanges.
  absl::StatusOr<size_t> WorkspaceBytes(DType, int64_t, const LuParameters&) const override {
    return sizeof(int64_t);
  }
  double PredictSeconds(DType, int64_t) const override { return 0; }
  absl::Status Factor(ExecutionContext& context, const AnyMatrix& a, int64_t* ipiv,
                      std::span<std::byte> workspace, const LuParameters& parameters,
                      StopRequested stop) const override;
  absl::Status Finish(ExecutionContext& context, std::span<std::byte> workspace,
                      IterationReport* report) const override;

 private:
  const MethodTraits traits_;
};

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_TOY_LU_H_
