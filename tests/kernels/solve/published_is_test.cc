// SPDX-License-Identifier: Apache-2.0

// Tests why the published iterative solver fails for some matrices that Crout's solver solves.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "kernels/host/device/host_device.h"
#include "kernels/util/sanitizers.h"
#include "tests/support/matrices/matrices.h"
#include "tests/support/runners/job_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::published_is_test {
namespace {

template <class T>
struct Swept {
  std::vector<T> x;
  double largest = 0;  // largest finite modulus of any iterate
};

// Computes T^-1 b by sweeps over the whole triangle until nothing changes. Each sweep uses only the
// previous iterate. A change to NaN does not count as a change. If `lower`, T is L with its
// diagonal; otherwise T is the unit upper triangular U.
template <class T>
Swept<T> SweepWhole(const std::vector<T>& lu, int64_t n, bool lower, const std::vector<T>& b) {
  Swept<T> swept{b, 0};
  std::vector<T> next(n);
  for (bool changed = true; changed;) {
    next = b;
    for (int64_t j = 0; j < n; ++j) {
      const T* const column = lu.data() + j * n;
      const T x = swept.x[j];
      for (int64_t i = lower ? j + 1 : 0; i < (lower ? n : j); ++i) next[i] -= column[i] * x;
    }
    changed = false;
    for (int64_t i = 0; i < n; ++i) {
      if (lower) next[i] /= lu[i + i * n];
      changed = changed || std::abs(next[i] - swept.x[i]) > 0;
      const auto size = static_cast<double>(std::abs(next[i]));
      if (std::isfinite(size)) swept.largest = std::max(swept.largest, size);
    }
    swept.x.swap(next);
  }
  return swept;
}

class PublishedIsTest : public ::testing::Test {
 protected:
  template <class T>
  void Check(const std::string& file, bool valid, double least, double most);

  const std::unique_ptr<Device> device_ = host::MakeDevice({});
  JobRunner runner_{*device_};
};

// Expects that the result of the published solver is finite if `valid`, and that its largest
// iterate is from `least` to `most`. The factors use conditional pivoting, as in the publication.
template <class T>
void PublishedIsTest::Check(const std::string& file, bool valid, double least, double most) {
  SCOPED_TRACE(file + " in " + std::string(NameOf(kDTypeOf<T>)));
  const std::vector<RealMatrix> index = RealMatrixIndex();
  const auto real = std::find_if(index.begin(), index.end(),
                                 [&](const RealMatrix& one) { return one.file == file; });
  ASSERT_NE(real, index.end());
  ASSERT_OK_AND_ASSIGN(const HostMatrix a, ReadRealMatrix(*real));
  const int64_t n = real->n;
  FactorRequest request;
  request.algorithm = "cmpp";
  request.factor_dtype = kDTypeOf<T>;
  request.parameters.pivoting = PivotCriterion{.rule = PivotRule::kInterval, .high = INFINITY};
  ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_.Factor(a, n, request));
  ASSERT_OK_AND_ASSIGN(const HostFactor parts, runner_.Download(factor));
  const std::vector<T> lu(parts.lu.begin(), parts.lu.end());
  const Swept<T> y = SweepWhole(lu, n, true, std::vector<T>(n, T{1}));
  const Swept<T> x = SweepWhole(lu, n, false, y.x);
  const auto finite = [](T element) { return std::isfinite(element); };
  EXPECT_EQ(std::all_of(x.x.begin(), x.x.end(), finite), valid);
  const double largest = std::max(y.largest, x.largest);
  EXPECT_GE(largest, least);
  EXPECT_LE(largest, most);
  // For the same factors and B, Crout's iterative solver gives the result of substitution.
  SolveRequest solve;
  solve.dtype = kDTypeOf<T>;
  solve.solver = "is";
  ASSERT_OK_AND_ASSIGN(const Solution is, runner_.Solve(factor, HostMatrix(n, 1.0), 1, solve));
  solve.solver = "ss";
  ASSERT_OK_AND_ASSIGN(const Solution ss, runner_.Solve(factor, HostMatrix(n, 1.0), 1, solve));
  EXPECT_TRUE(std::all_of(is.x.begin(), is.x.end(), [](double v) { return std::isfinite(v); }));
  EXPECT_EQ(is.x, ss.x);
}

TEST_F(PublishedIsTest, TransientsOverflowIfTheResultIsInvalid) {
  if (!MatricesDirectory()) GTEST_SKIP() << "no shared matrices: set CROUT_MATRICES";
  if (kSanitized) GTEST_SKIP() << "takes minutes in an instrumented build";
  Check<double>("hb/bp_0.mtx.gz", true, 0, 1e6);
  Check<float>("hb/bp_0.mtx.gz", true, 0, 1e6);
  Check<double>("hb/bp_1400.mtx.gz", true, 1e39, 1e100);  // exceeds the range of float32
  Check<float>("hb/bp_1400.mtx.gz", false, 1e30, 1e39);
  Check<double>("suitesparse/orani678.mtx.gz", false, 1e200, INFINITY);
  Check<float>("suitesparse/orani678.mtx.gz", false, 1e30, 1e39);
}

}  // namespace
}  // namespace crout::testing::published_is_test
