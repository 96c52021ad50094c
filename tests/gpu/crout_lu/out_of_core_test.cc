// SPDX-License-Identifier: Apache-2.0

// Compares LU out of core with crout_lu on matrices that fit, in narrow block columns.
#include "kernels/cuda/crout_lu/out_of_core.h"

#include <algorithm>
#include <complex>
#include <memory>
#include <span>
#include <vector>

#include "kernels/cuda/crout_lu/crout_lu.h"
#include "kernels/cuda/device/complex.h"
#include "tests/gpu/crout_lu/factored.h"
#include "tests/gpu/harness/gpu_testing.h"

namespace crout::cuda::out_of_core_test {
namespace {

using Complex64 = std::complex<float>;
using Complex128 = std::complex<double>;

const StopRequested kNever = [] { return false; };

class OutOfCoreTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    gpu_ = std::make_unique<Bench>(Gpu());
    kernels_ = std::make_unique<LuPanelKernels>(
        Must(LuPanelKernels::Create(Must(DeviceLimits::ForCurrentDevice()))));
  }

  Context& context() { return Context::From(gpu_->context()); }

  // Factors `a` in pinned memory whose columns are `gap` elements apart.
  template <class T>
  absl::StatusOr<Factored<T>> OutOfCore(const WideMatrix<T>& a, int64_t n,
                                        const OutOfCoreBlocking& blocking,
                                        const StopRequested& stop = kNever, int64_t gap = 0) {
    const int64_t ld = n + gap;
    Buffer pinned = Must(Gpu().staging_memory().Allocate(ld * n * sizeof(T)));
    T* const values = pinned.as<T>();
    std::fill_n(values, ld * n, kUntouched<T>);
    for (int64_t j = 0; j < n; ++j) {
      std::transform(a.begin() + j * n, a.begin() + (j + 1) * n, values + j * ld,
                     ConvertTo<T, Wide<T>>);
    }
    const size_t bytes = OutOfCoreBytes(*kernels_, blocking, kDTypeOf<T>, n);
    Buffer workspace = Must(Gpu().memory().Allocate(bytes));
    Factored<T> factored;
    factored.ipiv.resize(n);
    using D = DeviceType<T>;
    const absl::StatusOr<int64_t> info =
        FactorOutOfCore<D>(context(), *kernels_, blocking, {reinterpret_cast<D*>(values), n, n, ld},
                           factored.ipiv.data(), {workspace.data(), bytes}, stop);
    if (!info.ok()) return info.status();
    factored.info = *info;
    factored.lu.resize(n * n);
    for (int64_t j = 0; j < n; ++j) {
      std::transform(values + j * ld, values + j * ld + n, factored.lu.begin() + j * n,
                     ToFloat64<T>);
      for (int64_t i = n; i < ld; ++i) EXPECT_EQ(values[i + j * ld], kUntouched<T>);
    }
    return factored;
  }

  template <class T>
  Factored<T> InCore(const WideMatrix<T>& a, int64_t n) {
    std::vector<T> values(a.size());
    std::transform(a.begin(), a.end(), values.begin(), ConvertTo<T, Wide<T>>);
    Buffer device = gpu_->Put(values);
    Buffer ipiv = gpu_->Allocate(n * sizeof(int64_t));
    const LuBlocking blocking = LuBlocking::For(kDTypeOf<T>, n);
    const size_t bytes = CroutLuWorkspaceBytes(*kernels_, blocking, kDTypeOf<T>, n, n);
    Buffer workspace = gpu_->Allocate(bytes);
    using D = DeviceType<T>;
    Must(EnqueueCroutLu<D>(LuStreams::ForContext(context()), *kernels_, blocking,
                           {device.as<D>(), n, n, n}, ipiv.as<int64_t>(), {workspace.data(), bytes},
                           kNever));
    int info = -1;
    Must(context().ops().CopyToHost(CroutLuInfo(kDTypeOf<T>, {workspace.data(), bytes}), &info,
                                    sizeof(info)));
    Factored<T> factored;
    factored.ipiv = gpu_->Get<int64_t>(ipiv);
    const std::vector<T> lu = gpu_->Get<T>(device);
    factored.info = info;
    factored.lu.resize(lu.size());
    std::transform(lu.begin(), lu.end(), factored.lu.begin(), ToFloat64<T>);
    return factored;
  }

  // Expects the pivots and info of crout_lu, and factors that differ by roundoff.
  template <class T>
  void ExpectAsInCore(const WideMatrix<T>& a, int64_t n, const OutOfCoreBlocking& blocking,
                      int64_t gap = 0) {
    SCOPED_TRACE(::testing::Message()
                 << n << " " << NameOf(kDTypeOf<T>) << " width " << blocking.width << " piece "
                 << blocking.piece << " look-ahead " << blocking.panel.look_ahead << " tf32 "
                 << blocking.panel.tf32);
    const Factored<T> ours = Must(OutOfCore<T>(a, n, blocking, kNever, gap));
    const Factored<T> theirs = InCore<T>(a, n);
    EXPECT_EQ(ours.info, theirs.info);
    ExpectProduct<T>(a, n, n, ours);
    // In single precision, rounding may change which of two close candidates is larger. The factors
    // then differ.
    if (sizeof(RealPart<T>) == 4 && ours.ipiv != theirs.ipiv) return;
    EXPECT_EQ(ours.ipiv, theirs.ipiv);
    const double tolerance = 100.0 * static_cast<double>(std::max<int64_t>(n, 100)) * kEpsilon<T>;
    for (size_t e = 0; e < ours.lu.size(); ++e) {
      ASSERT_LE(Modulus(ours.lu[e] - theirs.lu[e]), tolerance * (1 + Modulus(theirs.lu[e])))
          << "element " << e;
    }
  }
  template <class T>
  void ExpectAsInCore(int64_t n, int64_t width, int64_t piece, int64_t gap = 0) {
    ExpectAsInCore<T>(Random<T>(n, n, 31), n, OutOfCoreBlocking::Of(kDTypeOf<T>, n, width, piece),
                      gap);
  }

  template <class T>
  static constexpr T kUntouched = 77;

  template <class T>
  static T Must(absl::StatusOr<T> value) {
    Must(value.status());
    return *std::move(value);
  }
  static void Must(const absl::Status& status) { ASSERT_TRUE(status.ok()) << status; }

  std::unique_ptr<Bench> gpu_;
  std::unique_ptr<LuPanelKernels> kernels_;
};

// One block column, many, a narrow last one, and pieces that do not divide the width.
TEST_F(OutOfCoreTest, MatchesCroutLu) {
  struct Shape {
    int64_t n;
    int64_t width;
    int64_t piece;
  };
  for (const Shape& shape :
       {Shape{1, 64, 64}, Shape{33, 64, 64}, Shape{257, 64, 64}, Shape{256, 64, 32},
        Shape{700, 96, 40}, Shape{1000, 200, 200}, Shape{1001, 300, 128}, Shape{1537, 1536, 512}}) {
    ExpectAsInCore<double>(shape.n, shape.width, shape.piece);
    ExpectAsInCore<float>(shape.n, shape.width, shape.piece);
    ExpectAsInCore<Complex128>(shape.n, shape.width, shape.piece);
    ExpectAsInCore<Complex64>(shape.n, shape.width, shape.piece);
  }
}

// Block columns are wide enough for look-ahead, and float32 products use TF32.
TEST_F(OutOfCoreTest, MatchesCroutLuWithLookAhead) {
  ExpectAsInCore<double>(3333, 1100, 300);
  ExpectAsInCore<Complex128>(2501, 600, 300);
  ExpectAsInCore<float>(4501, 1280, 512);
  ExpectAsInCore<Complex64>(4200, 1280, 512);
}

TEST_F(OutOfCoreTest, LeavesTheGapsBetweenColumns) {
  ExpectAsInCore<double>(500, 128, 64, 3);
  ExpectAsInCore<Complex64>(500, 128, 64, 13);
}

TEST_F(OutOfCoreTest, ReportsTheFirstZeroPivot) {
  constexpr int64_t kOrder = 600;
  for (const int64_t zero : {int64_t{0}, int64_t{127}, int64_t{128}, int64_t{300}, kOrder - 1}) {
    WideMatrix<double> a = Random<double>(kOrder, kOrder, 32);
    // A second zero column, whose pivot comes later.
    for (const int64_t column : {zero, (zero + kOrder) / 2}) {
      std::fill_n(a.begin() + column * kOrder, kOrder, 0.0);
    }
    const auto blocking = OutOfCoreBlocking::Of(DType::kFloat64, kOrder, 128, 64);
    const Factored<double> factored = Must(OutOfCore<double>(a, kOrder, blocking));
    EXPECT_EQ(factored.info, zero + 1);
    EXPECT_EQ(InCore<double>(a, kOrder).info, zero + 1);
    ExpectProduct<double>(a, kOrder, kOrder, factored);
  }
}

// With single TF32 products, factors are less accurate.
TEST_F(OutOfCoreTest, UsesSingleTf32Products) {
  constexpr int64_t kOrder = 4500;
  const auto blocking = OutOfCoreBlocking::Of(DType::kFloat32, kOrder, 1280, 512, true);
  ASSERT_TRUE(blocking.panel.one_tf32_product);
  const WideMatrix<float> a = Random<float>(kOrder, kOrder, 33);
  const Factored<float> factored = Must(OutOfCore<float>(a, kOrder, blocking));
  EXPECT_EQ(factored.info, 0);
  ExpectProduct<float>(a, kOrder, kOrder, factored, 0x1p-11);
}

TEST_F(OutOfCoreTest, StopsAtAnyPoll) {
  constexpr int64_t kOrder = 1200;
  const auto blocking = OutOfCoreBlocking::Of(DType::kFloat64, kOrder, 256, 128);
  const WideMatrix<double> a = Random<double>(kOrder, kOrder, 34);
  for (const int after : {0, 1, 2, 9, 30}) {
    int polls = 0;
    const auto stopped = OutOfCore<double>(a, kOrder, blocking, [&] { return polls++ >= after; });
    EXPECT_EQ(stopped.status().code(), absl::StatusCode::kCancelled) << stopped.status();
    ExpectAsInCore<double>(a, kOrder, blocking);
  }
}

TEST_F(OutOfCoreTest, ChoosesTheWidestBlockColumnsThatFit) {
  constexpr int64_t kOrder = 100'000;
  const auto bytes_of = [&](const OutOfCoreBlocking& blocking) {
    return OutOfCoreBytes(*kernels_, blocking, DType::kFloat64, kOrder);
  };
  const auto widest =
      Must(OutOfCoreBlocking::For(*kernels_, DType::kFloat64, kOrder, size_t{1} << 40));
  const size_t most = bytes_of(widest);
  const auto narrower = Must(OutOfCoreBlocking::For(*kernels_, DType::kFloat64, kOrder, most - 1));
  EXPECT_LT(narrower.width, widest.width);
  EXPECT_LT(bytes_of(narrower), most);
  EXPECT_GE(bytes_of(OutOfCoreBlocking::Of(DType::kFloat64, kOrder, narrower.width + 512,
                                           narrower.piece)),
            most);
  EXPECT_EQ(OutOfCoreBlocking::For(*kernels_, DType::kFloat64, kOrder, 1 << 20).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(OutOfCoreTest, RefusesASmallWorkspace) {
  double a = 1;
  int64_t pivot = 0;
  std::byte workspace[16];
  const auto blocking = OutOfCoreBlocking::Of(DType::kFloat64, 1, 64, 64);
  EXPECT_EQ(FactorOutOfCore<double>(context(), *kernels_, blocking, {&a, 1, 1, 1}, &pivot,
                                    workspace, kNever)
                .status()
                .code(),
            absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace crout::cuda::out_of_core_test
