// SPDX-License-Identifier: Apache-2.0

// Tests reduced row echelon forms on the GPU against those of the host.
#include <cmath>
#include <cstring>
#include <vector>

#include "gmock/gmock.h"
#include "kernels/jobs/echelon.h"
#include "kernels/numerics/accuracy_warnings.h"
#include "kernels/util/status_macros.h"
#include "tests/gpu/harness/jobs.h"
#include "tests/support/matrices/gallery.h"
#include "tests/support/matrices/hard_matrices.h"

namespace crout::echelon_test {
namespace {

class GpuEchelonTest : public GpuTest {
 protected:
  struct Reduced {
    EchelonForm form;
    HostMatrix r;
  };

  static absl::StatusOr<Reduced> Reduce(
      Device& device, const HostMatrix& a, int64_t rows, int64_t cols, EchelonOptions options,
      Layout layout = Layout::kColumnMajor, StopRequested stop = [] { return false; }) {
    options.reducer = device.echelon_reducer();
    CROUT_ASSIGN_OR_RETURN(
        const EchelonPlan plan,
        PlanEchelonForm(options, {nullptr, DType::kFloat64, layout, rows, cols}));
    CROUT_ASSIGN_OR_RETURN(auto context, device.CreateContext());
    CROUT_ASSIGN_OR_RETURN(Buffer upload, device.memory().Allocate(a.size() * sizeof(double)));
    CROUT_RETURN_IF_ERROR(context->ops().CopyToDevice(a.data(), upload.data(), upload.size()));
    CROUT_RETURN_IF_ERROR(context->Synchronize());
    Reduced reduced;
    reduced.r.resize(a.size());
    KernelTimings timings;
    CROUT_ASSIGN_OR_RETURN(
        reduced.form,
        ReduceToEchelonForm(*context, plan, std::move(upload),
                            reinterpret_cast<std::byte*>(reduced.r.data()), stop, timings));
    return reduced;
  }
};

TEST_F(GpuEchelonTest, MatchesTheHostsRankPivotsAndForm) {
  struct Shape {
    int64_t rows, cols, rank, augmented;
  };
  for (const Shape& shape :
       {Shape{1, 1, 1, 0}, Shape{5, 9, 5, 0}, Shape{9, 5, 5, 0}, Shape{70, 90, 40, 0},
        Shape{300, 200, 17, 0}, Shape{257, 600, 257, 343}, Shape{1000, 1001, 1000, 1}}) {
    SCOPED_TRACE(::testing::Message() << shape.rows << " x " << shape.cols);
    const int64_t pivots = shape.cols - shape.augmented;
    HostMatrix a = testing::RandomMatrix(shape.rows, shape.cols, 3);
    // Each column of A after the first `rank` columns is the sum of two of them.
    for (int64_t j = shape.rank; j < pivots; ++j) {
      for (int64_t i = 0; i < shape.rows; ++i) {
        a[i + j * shape.rows] =
            a[i + (j % shape.rank) * shape.rows] + a[i + ((j + 1) % shape.rank) * shape.rows];
      }
    }
    EchelonOptions options;
    options.augmented = shape.augmented;
    options.tolerance = 1e-9;
    const auto host = Reduce(Host(), a, shape.rows, shape.cols, options);
    const auto gpu = Reduce(Gpu(), a, shape.rows, shape.cols, options);
    ASSERT_TRUE(host.ok() && gpu.ok()) << gpu.status();
    EXPECT_EQ(gpu->form.rank(), shape.rank);
    EXPECT_EQ(gpu->form.pivot_columns, host->form.pivot_columns);
    EXPECT_NEAR(gpu->form.growth, host->form.growth, 1e-6 * host->form.growth);
    double largest = 1;
    for (const double x : host->r) largest = std::max(largest, std::abs(x));
    for (size_t e = 0; e < a.size(); ++e) {
      ASSERT_NEAR(gpu->r[e], host->r[e], 1e-8 * largest) << e;
    }
  }
}

// The rank of Wright's matrix on the device is 342 or 341, depending on rounding, so it is not
// checked. The host's rank is 341.
TEST_F(GpuEchelonTest, MeasuresGrowth) {
  const auto wright = Reduce(Gpu(), testing::Wright(342), 342, 342, {});
  ASSERT_TRUE(wright.ok()) << wright.status();
  EXPECT_TRUE(IsGrowthHarmful(wright->form.growth, DType::kFloat64)) << wright->form.growth;
  const HostMatrix a = testing::GalleryNamed("gfpp").make(60);
  const auto wilkinson = Reduce(Gpu(), a, 60, 60, {});
  ASSERT_TRUE(wilkinson.ok()) << wilkinson.status();
  EXPECT_EQ(wilkinson->form.growth, 0x1p59);
  EchelonOptions options;
  options.augmented = 1;
  const auto augmented = Reduce(Gpu(), a, 60, 60, options);
  ASSERT_TRUE(augmented.ok()) << augmented.status();
  EXPECT_EQ(augmented->form.growth, 1);
}

TEST_F(GpuEchelonTest, SupportsToleranceRowMajorAndStop) {
  const HostMatrix a{1, 0, 0, 1e-3};
  EchelonOptions options;
  for (const auto& [tolerance, rank] : {std::pair{0.0, 2}, {1e-2, 1}, {1.0, 0}}) {
    options.tolerance = tolerance;
    const auto form = Reduce(Gpu(), a, 2, 2, options, Layout::kRowMajor);
    ASSERT_TRUE(form.ok()) << form.status();
    EXPECT_EQ(form->form.rank(), rank);
  }
  const HostMatrix large = testing::RandomMatrix(500, 500, 1);
  EXPECT_EQ(Reduce(Gpu(), large, 500, 500, options, Layout::kColumnMajor, [] { return true; })
                .status()
                .code(),
            absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace crout::echelon_test
