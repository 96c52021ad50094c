// SPDX-License-Identifier: Apache-2.0

// Tests the published variant of the iterative Crout method: the sweeps of each section must equal
// the published ones.
#include <cmath>
#include <iostream>
#include <numeric>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "kernels/host/device/host_device.h"
#include "kernels/util/sanitizers.h"
#include "tests/support/matrices/matrices.h"
#include "tests/support/ratios.h"
#include "tests/support/runners/job_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::published_icm_test {
namespace {

using ::testing::ElementsAre;

// The result of a run in L. M. Cejka's public data (thesis, CTU in Prague, 2023; ICM_32PP in double
// precision, tolerance 0).
struct PublishedMap {
  std::string file;
  int64_t sections = 1;
  std::vector<int64_t> rows;          // sweeps of the sections, row by row
  std::vector<int64_t> bad_elements;  // in each diagonal section; empty if not published
};

const PublishedMap kMaps[] = {
    {"hb/bcsstk01.mtx", 1, {130}, {43}},
    {"hb/bcsstk02.mtx.gz", 1, {103}, {}},
    {"hb/bcsstk03.mtx.gz", 1, {276}, {110}},
    {"nist/lns_131.mtx.gz", 1, {89}, {15}},
    {"suitesparse/west0067.mtx", 1, {164}, {}},
    {"suitesparse/west0156.mtx", 1, {285}, {148}},
    {"hb/685_bus.mtx.gz", 3, {110, 34, 35, 31, 112, 44, 33, 44, 89}, {0, 0, 0}},
    {"hb/bp_0.mtx.gz",
     4,
     {255, 1, 1, 1, 255, 312, 2, 2, 255, 255, 308, 2, 255, 255, 252, 59},
     {255, 255, 252, 50}},
    {"hb/bp_1400.mtx.gz",
     4,
     {395, 8, 7, 7, 318, 460, 16, 15, 309, 415, 571, 106, 281, 348, 449, 123},
     {254, 251, 211, 31}},
    {"suitesparse/orani678.mtx.gz",
     10,
     {274, 116, 104, 75,  48,  116, 1,   118, 7,   114, 176, 624, 26,  25,  25,  28,  25,
      26,  26,  25,  176, 436, 746, 53,  53,  54,  52,  52,  55,  51,  176, 436, 494, 719,
      45,  45,  44,  45,  44,  43,  176, 436, 494, 495, 697, 44,  41,  43,  41,  41,  39,
      367, 494, 495, 478, 614, 94,  100, 95,  95,  39,  367, 494, 495, 478, 416, 615, 109,
      110, 109, 39,  367, 494, 495, 478, 416, 433, 554, 196, 195, 164, 436, 494, 495, 478,
      416, 434, 325, 532, 105, 176, 436, 494, 495, 478, 416, 433, 323, 345, 503},
     {39, 241, 245, 239, 234, 186, 199, 97, 192, 69}},
};

class PublishedIcmTest : public ::testing::Test {
 protected:
  static FactorRequest Request(const char* algorithm = "icmpp") {
    FactorRequest request;
    request.algorithm = algorithm;
    request.parameters.variant = MethodVariant::kPublished;
    return request;
  }

  // Returns null if the matrix is not among the shared matrices.
  static const RealMatrix* Find(const std::string& file) {
    static const std::vector<RealMatrix> index = RealMatrixIndex();
    for (const RealMatrix& real : index) {
      if (real.file == file) return &real;
    }
    return nullptr;
  }

  // Runs the method on a shared matrix and returns its report.
  absl::StatusOr<FactorSummary> Run(const std::string& file, const FactorRequest& request) {
    const RealMatrix* const real = Find(file);
    if (real == nullptr) return absl::NotFoundError(file);
    const absl::StatusOr<HostMatrix> a = ReadRealMatrix(*real);
    if (!a.ok()) return a.status();
    auto factor = runner_.Factor(*a, real->n, request);
    if (!factor.ok()) return factor.status();
    return factor->summary;
  }

  const std::unique_ptr<Device> device_ = host::MakeDevice({});
  JobRunner runner_{*device_};
};

std::vector<int64_t> ByRows(const IterationReport& report) {
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < report.sections; ++i) {
    for (int64_t j = 0; j < report.sections; ++j) {
      rows.push_back(report.sweeps[i + j * report.sections]);
    }
  }
  return rows;
}

TEST_F(PublishedIcmTest, MatchesPublishedSweepsOfEachSection) {
  if (!MatricesDirectory()) GTEST_SKIP() << "no shared matrices: set CROUT_MATRICES";
  for (const PublishedMap& map : kMaps) {
    if (kSanitized && map.sections > 1) continue;
    SCOPED_TRACE(map.file);
    ASSERT_OK_AND_ASSIGN(const FactorSummary summary, Run(map.file, Request()));
    ASSERT_TRUE(summary.iterations.has_value());
    const IterationReport& report = *summary.iterations;
    EXPECT_EQ(report.variant, MethodVariant::kPublished);
    EXPECT_EQ(report.sections, map.sections);
    EXPECT_EQ(ByRows(report), map.rows);
    EXPECT_EQ(report.total_sweeps, std::accumulate(map.rows.begin(), map.rows.end(), int64_t{0}));
    if (!map.bad_elements.empty()) {
      EXPECT_EQ(report.bad_elements, map.bad_elements);
    }
  }
}

// These matrices were recreated from their definition and differ from the published ones in the
// last bits. Roundoff determines when their sweeps end.
TEST_F(PublishedIcmTest, MatchesPublishedSweepsOfDomainDecompositionWithinThree) {
  if (!MatricesDirectory()) GTEST_SKIP() << "no shared matrices: set CROUT_MATRICES";
  for (const PublishedMap& map : {PublishedMap{"poc/poc-8_4_2_corner.mtx.gz", 1, {47}, {0}},
                                  {"poc/poc-8_4_2_edge.mtx.gz", 2, {39, 29, 28, 30}, {0, 0}}}) {
    SCOPED_TRACE(map.file);
    ASSERT_OK_AND_ASSIGN(const FactorSummary summary, Run(map.file, Request()));
    const std::vector<int64_t> rows = ByRows(*summary.iterations);
    ASSERT_EQ(rows.size(), map.rows.size());
    for (size_t i = 0; i < rows.size(); ++i) EXPECT_NEAR(rows[i], map.rows[i], 3) << i;
    EXPECT_EQ(summary.iterations->bad_elements, map.bad_elements);
  }
}

TEST_F(PublishedIcmTest, CountsBadElementsThatMoveNoRow) {
  if (!MatricesDirectory()) GTEST_SKIP() << "no shared matrices: set CROUT_MATRICES";
  struct Counts {
    const char* file;
    int64_t moved;
    int64_t bad;
  };
  for (const Counts& counts : {Counts{"hb/bcsstk01.mtx", 17, 43},
                               {"hb/bcsstk03.mtx.gz", 91, 110},
                               {"nist/lns_131.mtx.gz", 6, 15}}) {
    SCOPED_TRACE(counts.file);
    ASSERT_OK_AND_ASSIGN(const FactorSummary summary, Run(counts.file, Request()));
    EXPECT_EQ(summary.iterations->total_pivots, counts.moved);
    EXPECT_EQ(summary.iterations->total_bad_elements, counts.bad);
  }
}

// The upper bound of the interval rejects elements only because of their scale.
TEST_F(PublishedIcmTest, NeedsFewerSweepsWithoutTheUpperBound) {
  if (!MatricesDirectory()) GTEST_SKIP() << "no shared matrices: set CROUT_MATRICES";
  FactorRequest request = Request();
  request.parameters.pivoting = PivotCriterion{.rule = PivotRule::kInterval, .high = INFINITY};
  for (const auto& [file, sweeps] : {std::pair{"hb/bcsstk01.mtx", 41},
                                     {"hb/bcsstk03.mtx.gz", 82},
                                     {"nist/lns_131.mtx.gz", 40}}) {
    SCOPED_TRACE(file);
    ASSERT_OK_AND_ASSIGN(const FactorSummary summary, Run(file, request));
    EXPECT_EQ(summary.iterations->total_sweeps, sweeps);
  }
}

// Published results for the processing tolerance, which is absolute.
TEST_F(PublishedIcmTest, West0156FailsAtLargeTolerances) {
  if (!MatricesDirectory()) GTEST_SKIP() << "no shared matrices: set CROUT_MATRICES";
  for (const double tolerance : {0.0, 1e-10, 1e-5, 1e-2, 1e-1}) {
    SCOPED_TRACE(tolerance);
    FactorRequest request = Request();
    request.parameters.absolute_tolerance = tolerance;
    ASSERT_OK_AND_ASSIGN(const FactorSummary summary, Run("suitesparse/west0156.mtx", request));
    EXPECT_EQ(summary.info, tolerance < 1e-2 ? 0 : 154);
  }
}

// The published data contain no single-precision results for this matrix. Intermediate values
// overflow, and the published method fails because it treats NaN as converged.
TEST_F(PublishedIcmTest, Orani678FailsInSinglePrecision) {
  if (!MatricesDirectory()) GTEST_SKIP() << "no shared matrices: set CROUT_MATRICES";
  if (kSanitized) GTEST_SKIP() << "takes minutes in an instrumented build";
  FactorRequest request = Request();
  request.factor_dtype = DType::kFloat32;
  const auto summary = Run("suitesparse/orani678.mtx.gz", request);
  EXPECT_THAT(summary, FailsWith(absl::StatusCode::kInvalidArgument, "is not finite"));
}

// Entries, and zeros on the diagonal, are distributed as in the published dense matrices.
HostMatrix Dense(int64_t n, uint64_t seed) {
  HostMatrix a = RandomMatrix(n, n, seed);
  const HostMatrix coin = RandomMatrix(n, 1, seed + 1);
  for (double& x : a) x *= 1000;
  for (int64_t i = 0; i + 1 < n; ++i) {
    if (coin[i] < 0) a[i + i * n] = 0;
  }
  return a;
}

TEST_F(PublishedIcmTest, NeedsPredictedSweepsForDenseMatrices) {
  struct Size {
    int64_t n;
    int64_t section;  // 0: as published
    int64_t used;
  };
  int64_t bad = 0;
  for (const Size& size : {Size{100, 30, 30}, Size{129, 32, 32}, Size{90, 0, 90},
                           Size{kSanitized ? 60 : 558, 0, kSanitized ? 60 : 256}}) {
    SCOPED_TRACE(size.n);
    const HostMatrix a = Dense(size.n, 5);
    FactorRequest request = Request();
    request.parameters.section_size = size.section;
    ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_.Factor(a, size.n, request));
    ASSERT_OK_AND_ASSIGN(const HostFactor parts, runner_.Download(factor));
    const IterationReport& report = *factor.summary.iterations;
    EXPECT_EQ(report.section_size, size.used);
    bad += *report.total_bad_elements;
    for (int64_t d = 0; d < report.sections; ++d) {
      const int64_t s = std::min(size.used, size.n - d * size.used);
      const int64_t p = report.bad_elements[d];
      const int64_t first = d == 0 ? 1 : 0;  // A is the initial estimate and contains column 0 of L
      // A bad element at the end of a section needs no additional sweep.
      const int64_t k = d * size.used + s - 1;
      const double last = std::abs(parts.lu[k + k * size.n]);
      const int64_t saved = last > 1e-5 && last <= 1e5 ? 0 : 1;
      const auto sweeps = [&](int64_t i, int64_t j) {
        return report.sweeps[i + j * report.sections];
      };
      EXPECT_EQ(sweeps(d, d), 2 * s + p - first - saved) << d;
      for (int64_t i = d + 1; i < report.sections; ++i) {
        EXPECT_EQ(sweeps(i, d), s + p + 1 - first - saved) << i << ", " << d;
        EXPECT_EQ(sweeps(d, i), s + 1) << d << ", " << i;
      }
    }
    EXPECT_LT(FactorRatio(a, size.n, parts.lu, parts.ipiv, UnitDiagonal::kU, DType::kFloat64),
              1e5 * kThreshold);  // conditional pivoting permits growth
  }
  EXPECT_GT(bad, 10);
}

// Follows the definition literally: each sweep computes the full sum of every element.
struct Literal {
  HostMatrix lu;
  int64_t diagonal_sweeps = 0;
};

Literal SweepOneSection(const HostMatrix& a, int64_t n) {
  Literal run{a, 0};
  for (bool changed = true; changed;) {
    changed = false;
    HostMatrix next = run.lu;
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i < n; ++i) {
        double sum = 0;
        for (int64_t k = 0; k < std::min(i, j); ++k) {
          sum = std::fma(run.lu[i + k * n], run.lu[k + j * n], sum);
        }
        next[i + j * n] = a[i + j * n] - sum;
        if (i < j) next[i + j * n] /= run.lu[i + i * n];
        changed = changed || next[i + j * n] != run.lu[i + j * n];
      }
    }
    run.lu = next;
    ++run.diagonal_sweeps;
  }
  return run;
}

TEST_F(PublishedIcmTest, MatchesItsDefinitionBitForBit) {
  for (const int64_t n : {1, 2, 5, 33, 70}) {
    const HostMatrix a = GalleryNamed("diagonally_dominant").make(n);
    const Literal literal = SweepOneSection(a, n);
    for (const char* algorithm : {"icm", "icmpp"}) {
      SCOPED_TRACE(std::string(algorithm) + " " + std::to_string(n));
      ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_.Factor(a, n, Request(algorithm)));
      ASSERT_OK_AND_ASSIGN(const HostFactor parts, runner_.Download(factor));
      EXPECT_EQ(parts.lu, literal.lu);
      EXPECT_THAT(factor.summary.iterations->sweeps, ElementsAre(literal.diagonal_sweeps));
    }
  }
}

TEST_F(PublishedIcmTest, FactorsOtherTypesAndFromStarts) {
  const int64_t n = 129;
  const HostMatrix a = Dense(n, 8);
  FactorRequest request = Request();
  request.parameters.section_size = 40;
  request.parameters.pivoting = PivotCriterion{.rule = PivotRule::kPartial};
  for (const DType dtype : {DType::kFloat64, DType::kFloat32}) {
    request.factor_dtype = dtype;
    ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_.Factor(a, n, request));
    ASSERT_OK_AND_ASSIGN(const HostFactor parts, runner_.Download(factor));
    EXPECT_LT(FactorRatio(a, n, parts.lu, parts.ipiv, UnitDiagonal::kU, dtype), kThreshold);
    // The rule of partial pivoting counts every diagonal element as bad.
    EXPECT_EQ(*factor.summary.iterations->total_bad_elements, n);
    EXPECT_LT(factor.summary.iterations->total_pivots, n);
    // A start from the factor itself needs one sweep per section, plus one per bad element.
    FactorRequest warm = request;
    warm.parameters.pivoting = PivotCriterion{.rule = PivotRule::kInterval, .low = 0, .high = 1e30};
    warm.parameters.start = FactorView{
        {factor.lu().data(), dtype, n, n, n}, factor.ipiv().as<int64_t>(), UnitDiagonal::kU};
    ASSERT_OK_AND_ASSIGN(const Factorization again, runner_.Factor(a, n, warm));
    EXPECT_TRUE(again.summary.iterations->warm);
    EXPECT_EQ(again.summary.iterations->total_sweeps, 16);
  }
}

TEST_F(PublishedIcmTest, FactorsComplexMatrices) {
  const int64_t n = 60;
  const HostMatrix parts = Dense(n, 3);
  ComplexMatrix a(parts.begin(), parts.end());
  for (int64_t i = 0; i < n * n; ++i) a[i] += std::complex<double>(0, parts[n * n - 1 - i]);
  FactorRequest request = Request();
  request.matrix_dtype = request.factor_dtype = DType::kComplex128;
  request.parameters.section_size = 25;
  ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_.FactorComplex(a, n, request));
  EXPECT_EQ(factor.summary.info, 0);
  EXPECT_EQ(factor.summary.iterations->sweeps[0], 49 + factor.summary.iterations->bad_elements[0]);
  EXPECT_LT(*factor.summary.quality, 1e5);
}

TEST_F(PublishedIcmTest, ReportsSingularAndNonFiniteMatrices) {
  for (const char* name : {"zero", "zero_first_column", "zero_half_columns", "zero_last_column"}) {
    const GalleryKind& kind = GalleryNamed(name);
    for (const char* algorithm : {"icm", "icmpp"}) {
      for (const int64_t n : {1, 2, 10, 33}) {
        SCOPED_TRACE(std::string(algorithm) + " " + name + " " + std::to_string(n));
        FactorRequest request = Request(algorithm);
        request.parameters.section_size = 8;
        ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_.Factor(kind.make(n), n, request));
        EXPECT_EQ(factor.summary.info, kind.singular_at(n));
      }
    }
  }
  constexpr int64_t kOrder = 200;
  HostMatrix a = GalleryNamed("gfpp").make(kOrder);
  for (int64_t i = 0; i < kOrder; ++i) a[i + (kOrder - 1) * kOrder] *= 1.5;
  for (const int64_t size : {0, 30}) {
    FactorRequest request = Request();
    request.factor_dtype = DType::kFloat32;
    request.parameters.section_size = size;
    EXPECT_THAT(runner_.Factor(a, kOrder, request),
                FailsWith(absl::StatusCode::kInvalidArgument, "element (128, 199), 0-based"));
  }
}

TEST_F(PublishedIcmTest, AppliesAbsoluteToleranceInFastVariant) {
  const int64_t n = 129;
  const HostMatrix a = GalleryNamed("diagonally_dominant").make(n);
  FactorRequest request = Request("icm");
  request.parameters.variant = MethodVariant::kFast;
  ASSERT_OK_AND_ASSIGN(const Factorization exact, runner_.Factor(a, n, request));
  request.parameters.absolute_tolerance = 0.1;
  ASSERT_OK_AND_ASSIGN(const Factorization loose, runner_.Factor(a, n, request));
  EXPECT_LT(loose.summary.iterations->total_sweeps, exact.summary.iterations->total_sweeps / 2);
  EXPECT_EQ(loose.summary.iterations->variant, MethodVariant::kFast);
}

TEST_F(PublishedIcmTest, StopsBetweenSweepsAndAtSweepLimit) {
  const HostMatrix a = Dense(100, 1);
  FactorRequest request = Request();
  request.parameters.section_size = 30;
  int polls = 0;
  EXPECT_THAT(runner_.Factor(a, 100, request, [&] { return ++polls > 50; }),
              FailsWith(absl::StatusCode::kCancelled, "stopped"));
  request.parameters.sweep_limit = 3;
  EXPECT_THAT(runner_.Factor(a, 100, request),
              FailsWith(absl::StatusCode::kAborted,
                        "section (0, 0) of 4 x 4 did not converge within 3 sweeps"));
}

TEST_F(PublishedIcmTest, ReportsBlockSizeAndRefusesItForOtherMethods) {
  const HostMatrix a = RandomMatrix(4, 4, 1);
  FactorRequest request = Request();
  for (const auto& [requested, used] : {std::pair{0, 32}, {8, 8}, {16, 16}, {32, 32}}) {
    request.parameters.block_size = requested;
    ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_.Factor(a, 4, request));
    EXPECT_EQ(factor.summary.iterations->block_size, used);
  }
  request.parameters.variant = MethodVariant::kFast;
  EXPECT_THAT(runner_.Factor(a, 4, request),
              FailsWith(absl::StatusCode::kInvalidArgument, "except in variant 'published'"));
}

TEST_F(PublishedIcmTest, RefusesUnsupportedParameters) {
  const HostMatrix a = RandomMatrix(4, 4, 1);
  FactorRequest request = Request();
  request.parameters.pivoting = PivotCriterion{.rule = PivotRule::kThreshold};
  EXPECT_THAT(runner_.Factor(a, 4, request),
              FailsWith(absl::StatusCode::kInvalidArgument, "partial or interval"));
  EXPECT_THAT(runner_.Factor(a, 4, Request("getrf")),
              FailsWith(absl::StatusCode::kInvalidArgument, "takes no variant"));
  for (const double wrong : {-1e-300, double{INFINITY}, double{NAN}}) {
    request = Request();
    request.parameters.absolute_tolerance = wrong;
    EXPECT_THAT(runner_.Factor(a, 4, request),
                FailsWith(absl::StatusCode::kInvalidArgument, "absolute tolerance"));
  }
}

}  // namespace
}  // namespace crout::testing::published_icm_test
