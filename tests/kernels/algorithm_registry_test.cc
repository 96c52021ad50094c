#include "kernels/algorithm_registry.h"

#include "kernels/host/device/host_device.h"
#include "tests/support/fake_device.h"
#include "tests/support/status_matchers.h"

namespace crout {
namespace {

using testing::FailsWith;
using testing::FakeDevice;

class RegistryTest : public ::testing::Test {
 protected:
  const std::unique_ptr<Device> device_ = host::MakeDevice({.threads = 1});
};

TEST_F(RegistryTest, FindsByName) {
  for (const char* name : {"getrf", "block_lu", "gem", "cmpp", "cm", "icmpp", "icm"}) {
    ASSERT_OK_AND_ASSIGN(const LuAlgorithm* algorithm,
                         FindAlgorithm(*device_, name, DType::kFloat64, 10));
    EXPECT_EQ(algorithm->traits().name, name);
    EXPECT_FALSE(algorithm->traits().description.empty());
  }
}

TEST_F(RegistryTest, AutoTakesTheFastest) {
  for (const int64_t n : {1000, 10000}) {
    ASSERT_OK_AND_ASSIGN(const LuAlgorithm* algorithm,
                         FindAlgorithm(*device_, "auto", DType::kFloat32, n));
    EXPECT_EQ(algorithm->traits().name, "getrf");
  }
  ASSERT_OK_AND_ASSIGN(const TriangularSolver* for_l,
                       FindSolver(*device_, "auto", UnitDiagonal::kL, DType::kFloat64, 100, 1));
  EXPECT_EQ(for_l->name(), "getrs");
  ASSERT_OK_AND_ASSIGN(const TriangularSolver* for_u,
                       FindSolver(*device_, "auto", UnitDiagonal::kU, DType::kFloat64, 100, 1));
  EXPECT_EQ(for_u->name(), "trsm");
}

// Of small ones it was measured when the device was made, and which it is depends on the machine.
TEST_F(RegistryTest, AutoTakesWhatIsPredictedToBeTheFastestThatPivots) {
  for (const int64_t n : {0, 1, 10, 40, 100, 1000, 10000}) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
      ASSERT_OK_AND_ASSIGN(const LuAlgorithm* chosen, FindAlgorithm(*device_, "auto", dtype, n));
      EXPECT_NE(chosen->traits().pivoting, PivotRule::kNone);
      for (const auto& algorithm : device_->algorithms()) {
        if (algorithm->traits().pivoting == PivotRule::kNone) continue;
        EXPECT_LE(chosen->PredictSeconds(dtype, n), algorithm->PredictSeconds(dtype, n));
      }
    }
  }
}

TEST_F(RegistryTest, UnknownNamesListWhatThereIs) {
  EXPECT_THAT(
      FindAlgorithm(*device_, "crout_lu", DType::kFloat64, 10),
      FailsWith(absl::StatusCode::kUnimplemented,
                "'crout_lu' is not available on device host; it has: getrf, block_lu, gem, cmpp, "
                "cm, icmpp, icm"));
  EXPECT_THAT(FindSolver(*device_, "crout_solve", UnitDiagonal::kL, DType::kFloat64, 10, 1),
              FailsWith(absl::StatusCode::kUnimplemented, "it has: getrs, trsm, ss, is"));
  EXPECT_THAT(FindAlgorithm(*device_, "", DType::kFloat64, 10),
              FailsWith(absl::StatusCode::kUnimplemented, "''"));
}

TEST_F(RegistryTest, DirectSolversAreApart) {
  const FakeDevice fake;
  ASSERT_OK_AND_ASSIGN(const DirectSolver* solver, FindDirectSolver(fake, "gauss_jordan"));
  EXPECT_EQ(solver->name(), "gauss_jordan");
  EXPECT_THAT(FindDirectSolver(fake, "none"),
              FailsWith(absl::StatusCode::kUnimplemented, ", gauss_jordan"));
  EXPECT_THAT(FindAlgorithm(fake, "gauss_jordan", DType::kFloat64, 10),
              FailsWith(absl::StatusCode::kUnimplemented, "'gauss_jordan' is not available"));
}

TEST_F(RegistryTest, IncompatibleSolverListsCompatibleOnes) {
  EXPECT_THAT(FindSolver(*device_, "getrs", UnitDiagonal::kU, DType::kFloat64, 10, 1),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        "unit diagonal in U; compatible: trsm, ss, is"));
}

TEST_F(RegistryTest, PredictionsGrow) {
  for (const auto& algorithm : device_->algorithms()) {
    EXPECT_GT(algorithm->PredictSeconds(DType::kFloat64, 0), 0);
    EXPECT_LT(algorithm->PredictSeconds(DType::kFloat64, 100),
              algorithm->PredictSeconds(DType::kFloat64, 1000));
    EXPECT_LT(algorithm->PredictSeconds(DType::kFloat32, 1000),
              algorithm->PredictSeconds(DType::kFloat64, 1000));
  }
}

}  // namespace
}  // namespace crout
