// SPDX-License-Identifier: Apache-2.0

// Runs the shared solve tests on the host.
#include "tests/support/runners/solve_cases.h"

#include "gtest/gtest.h"
#include "kernels/host/device/host_device.h"

namespace crout::testing::solve_cases_test {
namespace {

class SolveCasesTest : public ::testing::Test {
 protected:
  const std::unique_ptr<Device> device_ = host::MakeDevice({});
};

TEST_F(SolveCasesTest, SolutionsScaleWithRightHandSides) {
  ExpectSolutionsScaleWithRightHandSides(*device_);
}

TEST_F(SolveCasesTest, CorrectsSolutionByComponentwiseRefinement) {
  ExpectComponentwiseRefinementCorrectsSolution(*device_);
}

TEST_F(SolveCasesTest, MeasuresErrorsAtTheEndOfTheRange) {
  ExpectErrorsAtTheEndOfTheRange(*device_);
}

}  // namespace
}  // namespace crout::testing::solve_cases_test
