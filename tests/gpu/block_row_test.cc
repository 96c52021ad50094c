// A block row of U by one kernel: against substitution on the host. Small enough for
// compute-sanitizer's racecheck, which does not follow the clusters of a whole factorization.
#include "kernels/cuda/block_row.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/cuda/cuda_context.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/interchange_rows.h"
#include "tests/gpu/gpu_testing.h"
#include "tests/gpu/jobs.h"

namespace crout {
namespace {

constexpr int64_t kAbove = 5;  // rows above the block

class BlockRowTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (!IsSkipped()) gpu_ = std::make_unique<Bench>(Gpu());
  }

  CudaContext& context() { return CudaContext::From(gpu_->context()); }

  template <class V>
  Buffer Send(const std::vector<V>& values) {
    Buffer buffer = Must(Gpu().memory().Allocate(std::max<size_t>(1, values.size()) * sizeof(V)));
    Must(context().ops().CopyToDevice(values.data(), buffer.data(), values.size() * sizeof(V)));
    return buffer;
  }

  // A triangle of `order` with elements up to `size` below its diagonal, and `columns` columns of
  // `rows` rows.
  template <class T>
  void ExpectAsSubstitution(int64_t rows, int64_t order, int64_t columns, double size,
                            bool interchanges) {
    SCOPED_TRACE(::testing::Message()
                 << rows << " rows, order " << order << ", " << columns << " columns, float"
                 << 8 * sizeof(T) << ", elements to " << size << ", interchanges " << interchanges);
    const HostMatrix uniform = testing::RandomMatrix(rows, order + columns, 21);
    std::vector<T> a(uniform.begin(), uniform.end());
    for (int64_t k = 0; k < order; ++k) {
      for (int64_t i = 0; i < rows; ++i) a[i + k * rows] *= static_cast<T>(size);
    }
    std::mt19937 random(22);
    std::vector<int64_t> ipiv(order);
    for (int64_t k = 0; k < order; ++k) {
      ipiv[k] = kAbove + k + 1 + std::uniform_int_distribution<int64_t>(0, rows - 1 - k)(random);
    }

    Buffer matrix = Send(a);
    Buffer pivots = Send(ipiv);
    Buffer control = Send(std::vector<LuControl<T>>{{T{-1}, T{1}, 0, 0}});
    Buffer plan = Must(Gpu().memory().Allocate(sizeof(BlockRowPlan<T>)));
    const MatrixView<T> block = {matrix.as<T>(), order, order, rows};
    const MatrixView<T> b = {matrix.as<T>() + order * rows, rows, columns, rows};
    const cudaStream_t stream = context().stream();
    Must(CudaStatus(
        LaunchPlanBlockRow(block, interchanges ? pivots.as<int64_t>() : nullptr, kAbove,
                           plan.as<BlockRowPlan<T>>(), control.as<LuControl<T>>(), false, stream),
        "plan"));
    Must(CudaStatus(LaunchBlockRow<T>(block, plan.as<BlockRowPlan<T>>(), b,
                                      control.as<LuControl<T>>(), false, stream),
                    "row"));
    std::vector<T> got(a.size());
    Must(context().ops().CopyToHost(matrix.data(), got.data(), got.size() * sizeof(T)));
    Must(context().Synchronize());

    ASSERT_TRUE(std::equal(a.begin(), a.begin() + order * rows, got.begin()));
    for (int64_t j = 0; j < columns; ++j) {
      std::vector<double> x(a.begin() + (order + j) * rows, a.begin() + (order + j + 1) * rows);
      if (interchanges) {
        for (int64_t k = 0; k < order; ++k) std::swap(x[k], x[ipiv[k] - 1 - kAbove]);
      }
      for (int64_t i = 0; i < rows; ++i) {
        const double solved = got[i + (order + j) * rows];
        if (i >= order) {
          ASSERT_EQ(solved, x[i]) << "row " << i << " of column " << j;
          continue;
        }
        // L x again: what a row's terms leave of it.
        double product = solved;
        double terms = std::abs(solved) + std::abs(x[i]);
        for (int64_t k = 0; k < i; ++k) {
          const double term = double{a[i + k * rows]} * got[k + (order + j) * rows];
          product += term;
          terms += std::abs(term);
        }
        ASSERT_NEAR(product, x[i], 50 * std::numeric_limits<T>::epsilon() * terms)
            << "row " << i << " of column " << j;
      }
    }
  }

  template <class T>
  static T Must(absl::StatusOr<T> value) {
    Must(value.status());
    return *std::move(value);
  }
  static void Must(const absl::Status& status) { ASSERT_TRUE(status.ok()) << status; }

  std::unique_ptr<Bench> gpu_;
};

struct Shape {
  int64_t rows;
  int64_t order;
  int64_t columns;
};

TEST_F(BlockRowTest, SmallShapes) {
  for (const Shape& shape : {Shape{1, 1, 1}, Shape{3, 2, 5}, Shape{40, 31, 8}, Shape{32, 32, 9},
                             Shape{100, 33, 1}, Shape{110, 100, 17}}) {
    for (const bool interchanges : {false, true}) {
      ExpectAsSubstitution<double>(shape.rows, shape.order, shape.columns, 0.3, interchanges);
      ExpectAsSubstitution<float>(shape.rows, shape.order, shape.columns, 0.3, interchanges);
    }
  }
}

// All of a block of threads, and many columns, which others take.
TEST_F(BlockRowTest, LargeShapes) {
  for (const Shape& shape : {Shape{300, 300, 17}, Shape{700, 512, 40}, Shape{512, 512, 8},
                             Shape{90, 64, 1100}, Shape{600, 512, 1057}}) {
    ExpectAsSubstitution<double>(shape.rows, shape.order, shape.columns, 0.3, true);
    ExpectAsSubstitution<float>(shape.rows, shape.order, shape.columns, 0.3, true);
  }
}

// Elements of one size and sign make the inverse large.
TEST_F(BlockRowTest, SubstitutesWhereAnInverseIsLarge) {
  for (const int64_t columns : {3, 1100}) {
    ExpectAsSubstitution<double>(100, 90, columns, 1, true);
    ExpectAsSubstitution<float>(100, 90, columns, 1, true);
  }
}

TEST_F(BlockRowTest, InterchangesOfRowsAreThoseOfLaswp) {
  constexpr int64_t kRows = 1000;
  for (const int64_t count : {1, 31, 65, 512, 600, 1000}) {
    const HostMatrix a = testing::RandomMatrix(kRows, 11, 23);
    std::mt19937 random(24);
    std::vector<int64_t> ipiv(kRows);
    // Rows near and far, some of them often.
    for (int64_t k = 0; k < kRows; ++k) {
      const int64_t span = k % 3 == 0 ? std::min<int64_t>(kRows - k, 7) : kRows - k;
      ipiv[k] = k % 5 == 0 ? kRows : k + 1 + static_cast<int64_t>(random() % span);
    }
    Buffer matrix = Send(a);
    Buffer pivots = Send(ipiv);
    Buffer control = Send(std::vector<LuControl<double>>{{-1, 1, 0, 0}});
    Buffer plan = Must(Gpu().memory().Allocate(sizeof(InterchangePlan)));
    const MatrixView<double> view = {matrix.as<double>(), kRows, 11, kRows};
    Must(CudaStatus(
        LaunchInterchangeRows(view, pivots.as<int64_t>(), 0, count, plan.as<InterchangePlan>(),
                              control.as<LuControl<double>>(), context().stream()),
        "interchanges"));
    HostMatrix got(a.size());
    Must(context().ops().CopyToHost(matrix.data(), got.data(), got.size() * sizeof(double)));
    Must(context().Synchronize());
    HostMatrix expected = a;
    for (int64_t j = 0; j < 11; ++j) {
      for (int64_t k = 0; k < count; ++k) {
        std::swap(expected[k + j * kRows], expected[ipiv[k] - 1 + j * kRows]);
      }
    }
    EXPECT_EQ(got, expected) << count << " interchanges";
  }
}

}  // namespace
}  // namespace crout
