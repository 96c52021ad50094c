// SPDX-License-Identifier: Apache-2.0

// Tests factorizations of the gallery on the GPU with LAPACK's ratios.
#include <cmath>
#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "kernels/jobs/factorize.h"
#include "kernels/numerics/accuracy_warnings.h"
#include "tests/gpu/harness/jobs.h"
#include "tests/support/ratios.h"

namespace crout::factorize_test {
namespace {

using ::crout::testing::Gallery;
using ::crout::testing::GalleryKind;
using ::crout::testing::GalleryNamed;
using ::crout::testing::kThreshold;
using ::crout::testing::Rounded;

class GpuFactorizeTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (!IsSkipped()) gpu_ = std::make_unique<Bench>(Gpu());
  }

  std::unique_ptr<Bench> gpu_;
};

// Entries of U reach 2^(n-1) for Wilkinson's matrix, and smaller terms are lost. Elimination with
// partial pivoting then has no small ratio, and the reported growth must be large.
bool GrowsBeyondPrecision(const GalleryKind& kind, int64_t n, DType dtype) {
  return kind.name == "gfpp" && std::ldexp(UnitRoundoff(dtype), static_cast<int>(n)) > 1e10;
}

void CheckFactor(Bench& gpu, const GalleryKind& kind, int64_t n, DType dtype, Layout layout,
                 EquilibrateMode equilibrate) {
  SCOPED_TRACE(::testing::Message()
               << kind.name << " n=" << n << " " << NameOf(dtype) << " layout "
               << static_cast<int>(layout) << " equilibrate " << static_cast<int>(equilibrate));
  const HostMatrix a = Rounded(kind.make(n), dtype);
  FactorizeOptions options = OptionsOf(gpu.device(), dtype);
  options.equilibrate = equilibrate;
  auto factor = gpu.jobs().Factor(a, n, dtype, layout, options);
  ASSERT_TRUE(factor.ok()) << factor.status();
  // The last pivot of an ill-conditioned matrix may round to zero although the matrix is
  // nonsingular in exact arithmetic.
  const bool may_cancel = kind.singular_at(n) == 0 && !kind.well_conditioned;
  if (!may_cancel || factor->summary.info != n) {
    EXPECT_EQ(factor->summary.info, kind.singular_at(n));
  }
  EXPECT_NEAR(factor->summary.norm_one, testing::NormOne(a, n), 1e-13 * factor->summary.norm_one);
  EXPECT_NEAR(factor->summary.norm_inf, testing::NormInf(a, n), 1e-13 * factor->summary.norm_inf);
  if (GrowsBeyondPrecision(kind, n, dtype)) {
    EXPECT_GT(factor->summary.pivot_growth, 0x1p100);
    return;
  }
  const double ratio = FactorRatioOf(gpu, *factor, a);
  EXPECT_LT(ratio, kThreshold);
  EXPECT_EQ(factor->summary.is_poor(), IsGrowthHarmful(factor->summary.pivot_growth, dtype))
      << *factor->summary.quality;
  if (factor->summary.info == 0 && n > 1) {
    // The quality is at most sqrt(n) times the ratio, apart from the roundoff of its products.
    EXPECT_LT(*factor->summary.quality, 1 + 2 * std::sqrt(static_cast<double>(n)) * ratio);
  }
  EXPECT_TRUE(std::isfinite(factor->summary.pivot_growth));
}

TEST_F(GpuFactorizeTest, GalleryPassesLapacksRatio) {
  for (const GalleryKind& kind : Gallery()) {
    for (const int64_t n : testing::GallerySizes()) {
      for (const Layout layout : {Layout::kColumnMajor, Layout::kRowMajor}) {
        CheckFactor(*gpu_, kind, n, DType::kFloat64, layout, EquilibrateMode::kOff);
        CheckFactor(*gpu_, kind, n, DType::kFloat64, layout, EquilibrateMode::kAuto);
        if (!testing::FitsType(kind.name, DType::kFloat32)) continue;
        CheckFactor(*gpu_, kind, n, DType::kFloat32, layout, EquilibrateMode::kOff);
        CheckFactor(*gpu_, kind, n, DType::kFloat32, layout, EquilibrateMode::kOn);
      }
    }
  }
}

TEST_F(GpuFactorizeTest, FactorsLargerOrders) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    CheckFactor(*gpu_, GalleryNamed("random"), 1000, dtype, Layout::kRowMajor,
                EquilibrateMode::kAuto);
    CheckFactor(*gpu_, GalleryNamed("graded"), 1000, dtype, Layout::kColumnMajor,
                EquilibrateMode::kOn);
    CheckFactor(*gpu_, GalleryNamed("random"), 513, dtype, Layout::kColumnMajor,
                EquilibrateMode::kOff);
  }
}

TEST_F(GpuFactorizeTest, RatioRejectsAPerturbedFactor) {
  constexpr int64_t kN = 100;
  const HostMatrix a = GalleryNamed("random").make(kN);
  auto factor = gpu_->jobs().Factor(a, kN, DType::kFloat64, Layout::kColumnMajor,
                                    OptionsOf(Gpu(), DType::kFloat64));
  ASSERT_TRUE(factor.ok());
  HostMatrix other = a;
  other[kN / 2] += 1e-10;
  EXPECT_GT(FactorRatioOf(*gpu_, *factor, other), kThreshold);
}

TEST_F(GpuFactorizeTest, ConvertsBetweenTypes) {
  constexpr int64_t kN = 129;
  const HostMatrix a = GalleryNamed("diagonally_dominant").make(kN);
  auto narrow = gpu_->jobs().Factor(a, kN, DType::kFloat64, Layout::kRowMajor,
                                    OptionsOf(Gpu(), DType::kFloat32));
  ASSERT_TRUE(narrow.ok()) << narrow.status();
  EXPECT_LT(FactorRatioOf(*gpu_, *narrow, a), kThreshold);
  auto wide = gpu_->jobs().Factor(a, kN, DType::kFloat32, Layout::kColumnMajor,
                                  OptionsOf(Gpu(), DType::kFloat64));
  ASSERT_TRUE(wide.ok()) << wide.status();
  EXPECT_LT(FactorRatioOf(*gpu_, *wide, Rounded(a, DType::kFloat32)), kThreshold);
}

TEST_F(GpuFactorizeTest, RefusesNanAndInfWithTheirPosition) {
  constexpr int64_t kN = 200;
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    for (const Layout layout : {Layout::kColumnMajor, Layout::kRowMajor}) {
      HostMatrix a = GalleryNamed("random").make(kN);
      a[17 + 150 * kN] = bad;
      a[190 + 30 * kN] = bad;
      const bool row_major = layout == Layout::kRowMajor;
      auto factor =
          gpu_->jobs().Factor(a, kN, DType::kFloat64, layout, OptionsOf(Gpu(), DType::kFloat64));
      ASSERT_EQ(factor.status().code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(factor.status().message()),
                  ::testing::HasSubstr(row_major ? "row 17, column 150" : "row 190, column 30"));
    }
  }
}

TEST_F(GpuFactorizeTest, RefusesAConversionThatOverflows) {
  constexpr int64_t kN = 50;
  HostMatrix a = GalleryNamed("random").make(kN);
  a[3 + 4 * kN] = 1e300;
  FactorizeOptions options = OptionsOf(Gpu(), DType::kFloat32);
  options.equilibrate = EquilibrateMode::kOff;
  auto factor = gpu_->jobs().Factor(a, kN, DType::kFloat64, Layout::kColumnMajor, options);
  EXPECT_EQ(factor.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(factor.status().message()), ::testing::HasSubstr("row 3, column 4"));
}

TEST_F(GpuFactorizeTest, MatchesTheHostsDeterminantAndCondition) {
  Bench host(Host());
  for (const char* name : {"random", "graded", "diagonally_dominant", "condition_sqrt", "shift"}) {
    SCOPED_TRACE(name);
    constexpr int64_t kN = 129;
    const HostMatrix a = GalleryNamed(name).make(kN);
    FactorizeOptions options = OptionsOf(Gpu(), DType::kFloat64);
    options.determinant = true;
    options.condition_solver = SolverOf(Gpu(), "getrs");
    auto on_gpu = gpu_->jobs().Factor(a, kN, DType::kFloat64, Layout::kColumnMajor, options);
    options = OptionsOf(Host(), DType::kFloat64);
    options.determinant = true;
    options.condition_solver = SolverOf(Host(), "getrs");
    auto on_host = host.jobs().Factor(a, kN, DType::kFloat64, Layout::kColumnMajor, options);
    ASSERT_TRUE(on_gpu.ok() && on_host.ok()) << on_gpu.status() << on_host.status();
    EXPECT_EQ(on_gpu->summary.det_sign, on_host->summary.det_sign);
    EXPECT_NEAR(*on_gpu->summary.det_log_abs, *on_host->summary.det_log_abs, 1e-6);
    EXPECT_NEAR(*on_gpu->summary.rcond / *on_host->summary.rcond, 1, 0.1);
    EXPECT_NEAR(on_gpu->summary.pivot_growth / on_host->summary.pivot_growth, 1, 1e-6);
  }
}

TEST_F(GpuFactorizeTest, StoresLessWithoutTheMatrix) {
  constexpr int64_t kN = 129;
  const HostMatrix a = GalleryNamed("random").make(kN);
  FactorizeOptions options = OptionsOf(Gpu(), DType::kFloat64);
  options.keep_matrix = false;
  for (const Layout layout : {Layout::kColumnMajor, Layout::kRowMajor}) {
    auto factor = gpu_->jobs().Factor(a, kN, DType::kFloat64, layout, options);
    ASSERT_TRUE(factor.ok()) << factor.status();
    EXPECT_FALSE(factor->matrix());
    EXPECT_LT(FactorRatioOf(*gpu_, *factor, a), kThreshold);
  }
}

}  // namespace
}  // namespace crout::factorize_test
