// SPDX-License-Identifier: Apache-2.0

// A small LU method that only tests register. It shows what a method must implement.
#ifndef CROUT_TESTS_SUPPORT_FAKES_TOY_LU_H_
#define CROUT_TESTS_SUPPORT_FAKES_TOY_LU_H_

#include "kernels/lu_algorithm.h"

namespace crout::testing {

// Textbook Gaussian elimination with partial pivoting, in host memory and for float64. Predicts
// zero seconds, so that "auto" selects it. Reports itself as an iterative method with one section
// of one sweep.
class ToyLu final : public LuAlgorithm {
 public:
  explicit ToyLu(std::string_view name)
      : traits_{.name = name,
                .description = "Gaussian elimination by the textbook",
                .types = {DType::kFloat64},
                .iterative = true} {}

  const MethodTraits& traits() const override { return traits_; }
  // The workspace stores the number of interchanges.
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

#endif  // CROUT_TESTS_SUPPORT_FAKES_TOY_LU_H_
