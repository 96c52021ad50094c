// SPDX-License-Identifier: Apache-2.0

#include "kernels/algorithm_registry.h"

#include <cmath>

#include "gmock/gmock.h"
#include "kernels/host/device/host_device.h"
#include "tests/support/fakes/fake_device.h"
#include "tests/support/fakes/plain_direct_solver.h"
#include "tests/support/fakes/toy_lu.h"
#include "tests/support/status_matchers.h"

namespace crout::algorithm_registry_test {
namespace {

using testing::FailsWith;
using testing::FakeDevice;
using ::testing::IsEmpty;
using testing::PlainDirectSolver;
using ::testing::SizeIs;
using testing::ToyLu;

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

TEST_F(RegistryTest, AutoChoosesTheFastestMethod) {
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

// Expects no particular method: for small orders the choice depends on times that are measured when
// the device is created.
TEST_F(RegistryTest, AutoChoosesThePredictedFastestMethodWithPivoting) {
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

TEST_F(RegistryTest, ListsAvailableMethodsForAnUnknownName) {
  EXPECT_THAT(
      FindAlgorithm(*device_, "crout_lu", DType::kFloat64, 10),
      FailsWith(
          absl::StatusCode::kUnimplemented,
          "'crout_lu' is not available on device host; available: getrf, block_lu, gem, cmpp, "
          "cm, icmpp, icm, multifrontal"));
  EXPECT_THAT(FindSolver(*device_, "crout_solve", UnitDiagonal::kL, DType::kFloat64, 10, 1),
              FailsWith(absl::StatusCode::kUnimplemented, "available: getrs, trsm, ss, is"));
  EXPECT_THAT(FindAlgorithm(*device_, "", DType::kFloat64, 10),
              FailsWith(absl::StatusCode::kUnimplemented, "''"));
}

TEST_F(RegistryTest, FindsDirectSolversSeparately) {
  const FakeDevice fake;
  ASSERT_OK_AND_ASSIGN(const DirectSolver* solver,
                       FindDirectSolver(fake, "gauss_jordan", DType::kFloat64));
  EXPECT_EQ(solver->name(), "gauss_jordan");
  EXPECT_THAT(FindDirectSolver(fake, "none", DType::kFloat64),
              FailsWith(absl::StatusCode::kUnimplemented, ", gauss_jordan"));
  EXPECT_THAT(FindAlgorithm(fake, "gauss_jordan", DType::kFloat64, 10),
              FailsWith(absl::StatusCode::kUnimplemented, "'gauss_jordan' is not available"));
  EXPECT_TRUE(SolvesDirectly(fake, "gauss_jordan"));
  EXPECT_FALSE(SolvesDirectly(fake, "getrf"));
}

TEST_F(RegistryTest, EveryMethodHasADescription) {
  const Catalogue& catalogue = device_->catalogue();
  std::vector<std::string> names;
  for (const auto& list : {catalogue.algorithm_traits(), catalogue.solver_traits()}) {
    for (const MethodTraits& traits : list) {
      EXPECT_FALSE(traits.description.empty()) << traits.name;
      names.emplace_back(traits.name);
    }
  }
  EXPECT_THAT(names, ::testing::ElementsAre("getrf", "block_lu", "gem", "cmpp", "cm", "icmpp",
                                            "icm", "gauss_jordan", "irr_lu", "multifrontal", "klu",
                                            "getrs", "trsm", "ss", "is", "multifrontal", "klu"));
}

TEST_F(RegistryTest, FindsTheSolverOfSparseFactors) {
  EXPECT_THAT(FindSparseLus(*device_, "getrf", DType::kFloat64), IsEmpty());
  ASSERT_THAT(FindSparseLus(*device_, "auto", DType::kComplex64), SizeIs(2));
  const auto found = FindSparseLus(*device_, "multifrontal", DType::kComplex64);
  ASSERT_THAT(found, SizeIs(1));
  const SparseLu* const method = found.front();
  EXPECT_EQ(method->FactorType(DType::kComplex64), DType::kComplex64);
  FactorSummary factor;
  factor.algorithm = std::string(method->name());
  factor.n = 10;
  factor.sparse.emplace();
  ASSERT_OK_AND_ASSIGN(const TriangularSolver* solver, FindSolver(*device_, "auto", factor, 1));
  EXPECT_EQ(solver->name(), method->name());
  EXPECT_THAT(FindSolver(*device_, "getrs", factor, 1),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        "a factor of a sparse matrix; compatible solvers: multifrontal"));
  factor.algorithm = "another";
  EXPECT_THAT(FindSolver(*device_, "auto", factor, 1),
              FailsWith(absl::StatusCode::kFailedPrecondition, "cannot use a factor"));
}

// An analysis that has only the costs of a matrix: with one front, or with as many fronts as
// columns.
Analysis WithFronts(int64_t n, int64_t fronts) {
  Analysis analysis;
  analysis.n = n;
  analysis.nonzeros = 3 * n;
  analysis.parent.assign(fronts, -1);
  analysis.factor_start = {0, fronts == 1 ? n * n : 3 * n};
  analysis.flops = fronts == 1 ? 2. / 3 * std::pow(n, 3) : 6. * n;
  return analysis;
}

TEST_F(RegistryTest, ChoosesTheSparseMethodByTheAnalysis) {
  for (const DType dtype : kDTypes) {
    const auto methods = FindSparseLus(*device_, "auto", dtype);
    EXPECT_EQ(CheapestSparseLu(methods, WithFronts(10000, 10000), dtype)->name(), "klu");
    EXPECT_EQ(CheapestSparseLu(methods, WithFronts(2000, 1), dtype)->name(), "multifrontal");
  }
  const SparseLu* const klu = FindSparseLus(*device_, "klu", DType::kFloat32).front();
  EXPECT_EQ(klu->FactorType(DType::kFloat32), DType::kFloat64);
  EXPECT_EQ(klu->FactorType(DType::kComplex64), DType::kComplex128);
}

TEST_F(RegistryTest, ReportsWhyAMethodIsAbsent) {
  const FakeDevice fake({.register_more = [](Catalogue& catalogue) {
    catalogue.absent.push_back({"cudss", "install it"});
  }});
  EXPECT_THAT(FindAlgorithm(fake, "cudss", DType::kFloat64, 10),
              FailsWith(absl::StatusCode::kUnimplemented, "'cudss' is not available"));
  EXPECT_THAT(FindAlgorithm(fake, "cudss", DType::kFloat64, 10),
              FailsWith(absl::StatusCode::kUnimplemented, "; install it"));
  EXPECT_THAT(FindSolver(fake, "cudss", UnitDiagonal::kL, DType::kFloat64, 10, 1),
              FailsWith(absl::StatusCode::kUnimplemented, "; install it"));
  const absl::Status other = FindAlgorithm(fake, "magma", DType::kFloat64, 10).status();
  EXPECT_THAT(other.message(), ::testing::Not(::testing::HasSubstr("install")));
}

TEST_F(RegistryTest, ChoosesMethodsThatSupportTheMatrix) {
  const FakeDevice fake({.register_more = [](Catalogue& catalogue) {
    // ToyLu predicts less time than any other method, but supports only float64.
    catalogue.algorithms.push_back(std::make_unique<ToyLu>("doubles"));
    catalogue.direct_solvers.push_back(std::make_unique<PlainDirectSolver>(
        MethodTraits{.name = "floats", .description = "", .types = {DType::kFloat32}}));
    catalogue.direct_solvers.push_back(std::make_unique<PlainDirectSolver>(
        MethodTraits{.name = "nothing", .description = "", .operands = {}}));
  }});
  for (const char* name : {"auto", "doubles"}) {
    ASSERT_OK_AND_ASSIGN(const LuAlgorithm* chosen, FindAlgorithm(fake, name, DType::kFloat64, 10));
    EXPECT_EQ(chosen->name(), "doubles");
  }
  ASSERT_OK_AND_ASSIGN(const LuAlgorithm* other, FindAlgorithm(fake, "auto", DType::kFloat32, 10));
  EXPECT_NE(other->name(), "doubles");
  EXPECT_THAT(FindAlgorithm(fake, "doubles", DType::kFloat32, 10),
              FailsWith(absl::StatusCode::kUnimplemented, "'doubles' is not available in f32"));
  EXPECT_OK(FindDirectSolver(fake, "floats", DType::kFloat32));
  for (const char* name : {"floats", "nothing"}) {
    EXPECT_THAT(FindDirectSolver(fake, name, DType::kFloat64),
                FailsWith(absl::StatusCode::kUnimplemented, "is not available in f64"));
  }
}

TEST_F(RegistryTest, ListsCompatibleSolversForAnIncompatibleOne) {
  EXPECT_THAT(FindSolver(*device_, "getrs", UnitDiagonal::kU, DType::kFloat64, 10, 1),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        "unit diagonal in U; compatible solvers: trsm, ss, is"));
}

TEST_F(RegistryTest, PredictedTimesGrowWithTheWork) {
  for (const auto& algorithm : device_->algorithms()) {
    EXPECT_GT(algorithm->PredictSeconds(DType::kFloat64, 0), 0);
    EXPECT_LT(algorithm->PredictSeconds(DType::kFloat64, 100),
              algorithm->PredictSeconds(DType::kFloat64, 1000));
    EXPECT_LT(algorithm->PredictSeconds(DType::kFloat32, 1000),
              algorithm->PredictSeconds(DType::kFloat64, 1000));
  }
}

}  // namespace
}  // namespace crout::algorithm_registry_test
