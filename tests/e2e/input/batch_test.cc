// SPDX-License-Identifier: Apache-2.0

// Tests batches with crout::Factor and crout::Client against a real daemon.
#include "crout/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "crout/factor.h"
#include "tests/e2e/harness/daemon.h"
#include "tests/support/matrices/gallery.h"
#include "tests/support/ratios.h"
#include "tests/support/status_matchers.h"

namespace crout::e2e::batch_test {
namespace {

using crout::testing::BackwardError;
using crout::testing::HostMatrix;
using crout::testing::RandomMatrix;
using ::testing::HasSubstr;

struct Matrix {
  int64_t rows = 0;
  int64_t cols = 0;
  HostMatrix values;
};

Matrix Random(int64_t rows, int64_t cols, uint64_t seed) {
  return {rows, cols, RandomMatrix(rows, cols, seed)};
}

void Add(const Matrix& matrix, BatchSource& source) {
  source.Add(matrix.values.data(), matrix.rows, matrix.cols);
}

BatchSource SourceOf(const std::vector<Matrix>& matrices) {
  BatchSource source;
  for (const Matrix& matrix : matrices) Add(matrix, source);
  return source;
}

class BatchTest : public ::testing::Test {
 protected:
  // The solutions of systems, and their figures.
  struct Solution {
    SolveResult result;
    BatchMatrices x;
  };

  absl::StatusOr<crout::Factor> Make(const std::vector<Matrix>& matrices,
                                     const CacheOptions& cache = {}) {
    return Make(SourceOf(matrices), cache);
  }
  absl::StatusOr<crout::Factor> Make(const BatchSource& source, const CacheOptions& cache = {}) {
    return crout::Factor::Make(client_, MatrixSource::Batch(source), {}, cache);
  }

  static absl::StatusOr<Solution> Solve(const crout::Factor& factor, const BatchSource& sides,
                                        const SolveOptions& options = {}) {
    Solution solution;
    auto result = factor.Solve(MatrixSource::BatchRhs(sides), options, &solution.x);
    if (!result.ok()) return result.status();
    solution.result = *std::move(result);
    return solution;
  }

  static absl::Status Refactor(crout::Factor& factor, const BatchSource& source) {
    return factor.Refactor(MatrixSource::Batch(source));
  }

  double Error(const Matrix& a, const Matrix& b, const Solution& solution, int64_t k,
               Op op = Op::kNone) {
    const auto x = solution.x.values<double>(k);
    return BackwardError(a.values, a.rows, op, HostMatrix(x.begin(), x.end()), b.values, b.cols);
  }

  const std::vector<Matrix> matrices_ = {Random(5, 5, 1),   Random(1, 1, 2), Random(0, 0, 3),
                                         Random(40, 40, 4), Random(7, 3, 5), Random(3, 3, 6)};
  Daemon daemon_;
  std::shared_ptr<Client> client_ = daemon_.NewClient();
};

TEST_F(BatchTest, SolvesWithAllWithARangeAndWithAList) {
  const std::vector<Matrix> square = {matrices_[0], matrices_[1], matrices_[2], matrices_[3]};
  auto batch = Make(square);
  ASSERT_OK(batch.status());
  EXPECT_EQ(batch->description().batch->members, 4);
  EXPECT_EQ(batch->description().algorithm, Algorithm::kIrrLu);
  EXPECT_EQ(batch->description().members.info, (std::vector<int32_t>{0, 0, 0, 0}));
  EXPECT_EQ(batch->description().members.pivot_growth[1], 1);
  EXPECT_LT(*std::max_element(batch->description().members.quality.begin(),
                              batch->description().members.quality.end()),
            30);

  const std::vector<Matrix> sides = {Random(5, 1, 11), Random(1, 3, 12), Random(0, 2, 13),
                                     Random(40, 2, 14)};
  const auto all = Solve(*batch, SourceOf(sides));
  ASSERT_OK(all.status());
  ASSERT_EQ(all->x.size(), 4);
  for (const int64_t k : {0, 1, 3}) {
    const auto at = static_cast<size_t>(k);
    EXPECT_LT(Error(square[at], sides[at], *all, k), 1e-14);
    EXPECT_LT(all->result.systems.backward_error[at], 1e-14);
    EXPECT_EQ(all->x.cols(k), sides[at].cols);
  }
  EXPECT_EQ(all->result.factor_version, 1);

  // Solves for all members except the first, then for all except the last.
  for (const int64_t first : {1, 0}) {
    SCOPED_TRACE(first);
    BatchSource range;
    for (int64_t k = first; k < first + 3; ++k) {
      const Matrix& side = sides[static_cast<size_t>(k)];
      range.AddFor(k, side.values.data(), side.rows, side.cols);
    }
    const auto part = Solve(*batch, range);
    ASSERT_OK(part.status());
    ASSERT_EQ(part->x.size(), 3);
    for (int64_t k = 0; k < 3; ++k) {
      EXPECT_EQ(part->x.cols(k), all->x.cols(first + k));
      EXPECT_EQ(part->x.values<double>(k), all->x.values<double>(first + k));
      EXPECT_EQ(part->result.systems.backward_error[static_cast<size_t>(k)],
                all->result.systems.backward_error[static_cast<size_t>(first + k)]);
    }
  }

  // Members are requested in another order. The solutions have the order of the request, and the
  // bits of the solutions for the whole batch.
  BatchSource list;
  list.AddFor(3, sides[3].values.data(), 40, 2);
  list.AddFor(0, sides[0].values.data(), 5, 1);
  const auto some = Solve(*batch, list);
  ASSERT_OK(some.status());
  EXPECT_EQ(some->x.values<double>(0), all->x.values<double>(3));
  EXPECT_EQ(some->x.values<double>(1), all->x.values<double>(0));
  EXPECT_EQ(some->result.systems.backward_error[1], all->result.systems.backward_error[0]);

  const auto transposed =
      Solve(*batch, list, {.operation = Operation::kTranspose, .verify = false});
  ASSERT_OK(transposed.status());
  EXPECT_LT(Error(square[3], sides[3], *transposed, 0, Op::kTranspose), 1e-14);
  EXPECT_GT(Error(square[3], sides[3], *transposed, 0), 1e-8);
  EXPECT_TRUE(std::isnan(transposed->result.systems.backward_error[0]));
}

TEST_F(BatchTest, ColumnsMayBeApart) {
  const Matrix& a = matrices_[0];
  std::vector<double> apart(8 * 5, 777);
  for (size_t j = 0; j < 5; ++j) {
    std::copy_n(&a.values[5 * j], 5, &apart[8 * j]);
  }
  BatchSource source;
  source.Add(apart.data(), 5, 5, 8);
  auto strided = Make(source);
  auto packed = Make(std::vector<Matrix>{a});
  ASSERT_OK(strided.status());
  ASSERT_OK(packed.status());
  EXPECT_EQ(client_->DownloadMembers(strided->handle())->lu.values<double>(0),
            client_->DownloadMembers(packed->handle())->lu.values<double>(0));
}

TEST_F(BatchTest, RefactorizesWithNewValuesOfTheSameSizes) {
  auto batch = Make(matrices_);
  ASSERT_OK(batch.status());
  std::vector<Matrix> next = matrices_;
  next[3] = Random(40, 40, 77);
  next[1].values[0] = 0;
  const std::string handle = batch->handle();
  ASSERT_OK(Refactor(*batch, SourceOf(next)));
  EXPECT_EQ(batch->handle(), handle);
  EXPECT_EQ(batch->description().version, 2);
  EXPECT_EQ(batch->description().members.info[1], 1);
  EXPECT_EQ(batch->description().batch->singular, 1);
  const Matrix b = Random(40, 1, 3);
  BatchSource side;
  side.AddFor(3, b.values.data(), 40, 1);
  const auto solution = Solve(*batch, side);
  ASSERT_OK(solution.status());
  EXPECT_LT(Error(next[3], b, *solution, 0), 1e-14);
  EXPECT_EQ(solution->result.factor_version, 2);

  next.pop_back();
  const absl::Status other = Refactor(*batch, SourceOf(next));
  EXPECT_EQ(other.code(), absl::StatusCode::kFailedPrecondition) << other;
  EXPECT_EQ(batch->description().version, 2);
}

TEST_F(BatchTest, DownloadsMembers) {
  auto batch = Make(matrices_);
  ASSERT_OK(batch.status());
  const auto all = client_->DownloadMembers(batch->handle());
  ASSERT_OK(all.status());
  ASSERT_EQ(all->lu.size(), 6);
  EXPECT_EQ(all->factor.handle, batch->handle());
  const auto range = client_->DownloadMembers(batch->handle(), 3, 2);
  ASSERT_OK(range.status());
  ASSERT_EQ(range->lu.size(), 2);
  EXPECT_EQ(range->lu.rows(1), 7);
  EXPECT_EQ(range->lu.cols(1), 3);
  EXPECT_EQ(range->ipiv(1).size(), 3u);
  EXPECT_EQ(range->lu.values<double>(0), all->lu.values<double>(3));
  EXPECT_EQ(range->ipiv(0), all->ipiv(3));
  // The matrix is L U with the interchanges undone.
  const auto lu = all->lu.values<double>(3);
  std::vector<double> product(1600);
  for (size_t i = 0; i < 40; ++i) {
    for (size_t j = 0; j < 40; ++j) {
      for (size_t k = 0; k <= std::min(i, j); ++k) {
        product[i + 40 * j] += (k == i ? 1.0 : lu[i + 40 * k]) * lu[k + 40 * j];
      }
    }
  }
  for (size_t i = 40; i-- > 0;) {
    const auto other = static_cast<size_t>(all->ipiv(3)[i]) - 1;
    for (size_t j = 0; j < 40; ++j) std::swap(product[i + 40 * j], product[other + 40 * j]);
  }
  for (size_t e = 0; e < product.size(); ++e) {
    EXPECT_NEAR(product[e], matrices_[3].values[e], 1e-13);
  }
  EXPECT_EQ(client_->DownloadMembers(batch->handle(), 6).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(BatchTest, FactorsAndSolvesInOneCall) {
  const Matrix b = Random(40, 2, 3), c = Random(3, 1, 4);
  BatchSource sides;
  sides.AddFor(5, c.values.data(), 3, 1);
  sides.AddFor(3, b.values.data(), 40, 2);
  FactorDescription dropped;
  Solution once;
  auto result = client_->FactorAndSolve(MatrixSource::Batch(SourceOf(matrices_)),
                                        MatrixSource::BatchRhs(sides), {}, &dropped, &once.x);
  ASSERT_OK(result.status());
  once.result = *std::move(result);
  EXPECT_EQ(dropped.handle, "");
  EXPECT_EQ(dropped.members.info.size(), 6u);
  EXPECT_LT(Error(matrices_[5], c, once, 0), 1e-14);
  EXPECT_LT(Error(matrices_[3], b, once, 1), 1e-14);

  auto batch = Make(matrices_);
  ASSERT_OK(batch.status());
  EXPECT_EQ(batch->description().members.quality, dropped.members.quality);
  const auto twice = Solve(*batch, sides);
  ASSERT_OK(twice.status());
  EXPECT_EQ(twice->x.values<double>(1), once.x.values<double>(1));
}

TEST_F(BatchTest, TakesEveryType) {
  const std::vector<std::complex<float>> a = {{4, 1}, {1, 0}, {0, 1}, {3, 0}};
  const std::vector<std::complex<float>> b = {{4, 2}, {4, 0}};  // A (1, 1)
  BatchSource source, sides;
  source.Add(a.data(), 2, 2);
  sides.Add(b.data(), 2, 1);
  auto batch = Make(source);
  ASSERT_OK(batch.status());
  EXPECT_EQ(batch->description().factor_dtype, Dtype::kComplex64);
  const auto solution = Solve(*batch, sides);
  ASSERT_OK(solution.status());
  for (const std::complex<float> x : solution->x.values<std::complex<float>>(0)) {
    EXPECT_LT(std::abs(x - 1.0F), 1e-6F);
  }
}

TEST_F(BatchTest, AnEmptyBatchIsSolved) {
  auto batch = Make(BatchSource());
  ASSERT_OK(batch.status());
  EXPECT_EQ(batch->description().batch->members, 0);
  EXPECT_EQ(Solve(*batch, BatchSource())->x.size(), 0);
  EXPECT_EQ(client_->DownloadMembers(batch->handle())->lu.size(), 0);
}

TEST_F(BatchTest, IsReleasedAtItsEnd) {
  std::string handle;
  {
    auto batch = Make(matrices_);
    ASSERT_OK(batch.status());
    handle = batch->handle();
    EXPECT_EQ(batch->Describe()->batch->members, 6);
    EXPECT_OK(batch->lease_status());
  }
  EXPECT_EQ(client_->Describe(handle).status().code(), absl::StatusCode::kNotFound);
  auto batch = Make(matrices_);
  ASSERT_OK(batch.status());
  ASSERT_OK(batch->Release());
  EXPECT_EQ(batch->handle(), "");
  EXPECT_EQ(Solve(*batch, BatchSource()).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Refactor(*batch, BatchSource()).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(batch->Release().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(BatchTest, ARequestIdFindsTheFactorsAgain) {
  CacheOptions cache{.request_id = "elements"};
  EXPECT_EQ(Make(matrices_, cache).status().code(), absl::StatusCode::kInvalidArgument);
  cache.lease = absl::Minutes(1);
  auto first = Make(matrices_, cache);
  ASSERT_OK(first.status());
  const auto again = client_->Factor(MatrixSource::Batch(SourceOf(matrices_)), {}, cache);
  ASSERT_OK(again.status());
  EXPECT_EQ(again->handle, first->handle());
  EXPECT_EQ(again->members.quality, first->description().members.quality);
  const auto other = client_->Factor(MatrixSource::Batch(SourceOf({matrices_[0]})), {}, cache);
  EXPECT_EQ(other.status().code(), absl::StatusCode::kInternal) << other.status();
}

TEST_F(BatchTest, UnsupportedMembersAreReportedWithTheirIndex) {
  const std::vector<double> values(25, 1.0);
  const std::vector<float> singles(25, 1.0F);
  const auto refused = [&](const BatchSource& source, const char* text) {
    const absl::Status status = client_->Factor(MatrixSource::Batch(source)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(status.message(), HasSubstr(text));
  };
  BatchSource negative;
  negative.Add(values.data(), 5, 5);
  negative.Add(values.data(), -5, 5);
  refused(negative, "matrix 1, which is -5 x 5");
  BatchSource null;
  null.Add(static_cast<const double*>(nullptr), 2, 2);
  refused(null, "null pointer");
  BatchSource shorter;
  shorter.Add(values.data(), 5, 5, 4);
  refused(shorter, "stride of 4");
  BatchSource types;
  types.Add(values.data(), 5, 5);
  types.Add(singles.data(), 5, 5);
  refused(types, "two element types");
  BatchSource huge;
  for (int k = 0; k < 4; ++k) huge.Add(values.data(), INT32_MAX, INT32_MAX);
  refused(huge, "2^63 - 1 bytes");

  auto batch = Make(matrices_);
  ASSERT_OK(batch.status());
  BatchSource twice;
  twice.AddFor(0, values.data(), 5, 1);
  twice.AddFor(0, values.data(), 5, 1);
  EXPECT_THAT(Solve(*batch, twice).status().message(), HasSubstr("two right-hand sides"));
  BatchSource beyond;
  beyond.AddFor(6, values.data(), 5, 1);
  EXPECT_EQ(Solve(*batch, beyond).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace crout::e2e::batch_test
