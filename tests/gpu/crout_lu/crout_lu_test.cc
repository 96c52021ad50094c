// SPDX-License-Identifier: Apache-2.0

// Tests the functions of crout_lu directly, without the registered method. Compares them with
// cuSOLVER's getrf for both kinds of panels and many shapes and blockings.
#include "kernels/cuda/crout_lu/crout_lu.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <vector>

#include "kernels/cuda/device/complex.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/scalar.h"
#include "tests/gpu/crout_lu/factored.h"
#include "tests/gpu/harness/gpu_testing.h"
#include "tests/gpu/harness/jobs.h"

namespace crout::cuda::crout_lu_test {
namespace {

const StopRequested kNever = [] { return false; };

using Complex64 = std::complex<float>;
using Complex128 = std::complex<double>;

class CroutLuTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (!IsSkipped()) gpu_ = std::make_unique<Bench>(Gpu());
  }

  Context& context() { return Context::From(gpu_->context()); }

  static DeviceLimits Limits(const CudaLimits& most) {
    return Must(DeviceLimits::ForCurrentDevice(most));
  }

  // `enqueue` factors the given m x n matrix (column-major).
  template <class T, class Enqueue>
  Factored<T> Run(const WideMatrix<T>& a, int64_t m, int64_t n, Enqueue&& enqueue) {
    std::vector<T> values(a.size());
    std::transform(a.begin(), a.end(), values.begin(), ConvertTo<T, Wide<T>>);
    const int64_t columns = std::min(m, n);
    Buffer device = Must(Gpu().memory().Allocate(values.size() * sizeof(T)));
    Buffer ipiv = Must(Gpu().memory().Allocate(columns * sizeof(int64_t)));
    Must(context().ops().CopyToDevice(values.data(), device.data(), values.size() * sizeof(T)));
    Factored<T> factored;
    int info = -1;
    enqueue(MatrixView<DeviceType<T>>{device.as<DeviceType<T>>(), m, n, m}, ipiv.as<int64_t>(),
            &info);
    factored.info = info;
    std::vector<T> lu(values.size());
    factored.ipiv.resize(columns);
    Must(context().ops().CopyToHost(device.data(), lu.data(), lu.size() * sizeof(T)));
    Must(context().ops().CopyToHost(ipiv.data(), factored.ipiv.data(), columns * sizeof(int64_t)));
    Must(context().Synchronize());
    factored.lu.resize(lu.size());
    std::transform(lu.begin(), lu.end(), factored.lu.begin(), ToFloat64<T>);
    return factored;
  }

  // Factors with panels in clusters of at most `clusters` blocks.
  template <class T>
  Factored<T> CroutLu(const WideMatrix<T>& a, int64_t m, int64_t n, int clusters,
                      LuBlocking blocking) {
    return Run<T>(a, m, n, [&](const MatrixView<DeviceType<T>>& view, int64_t* ipiv, int* info) {
      const LuPanelKernels kernels =
          Must(LuPanelKernels::Create(Limits({.cluster_blocks = clusters})));
      const size_t bytes = CroutLuWorkspaceBytes(kernels, blocking, kDTypeOf<T>, m, std::min(m, n));
      Buffer buffer = Must(Gpu().memory().Allocate(bytes));
      const std::span<std::byte> workspace(buffer.data(), bytes);
      Must(EnqueueCroutLu(LuStreams::ForContext(context()), kernels, blocking, view, ipiv,
                          workspace, kNever));
      Must(context().ops().CopyToHost(CroutLuInfo(kDTypeOf<T>, workspace), info, sizeof(int)));
      Must(context().Synchronize());
    });
  }

  template <class T>
  Factored<T> Getrf(const WideMatrix<T>& a, int64_t m, int64_t n) {
    return Run<T>(a, m, n, [&](const MatrixView<DeviceType<T>>& view, int64_t* ipiv, int* info) {
      constexpr cudaDataType kType = CudaTypeOf(kDTypeOf<T>);
      const cusolverDnHandle_t handle = context().cusolver();
      size_t device_bytes = 0;
      size_t host_bytes = 0;
      Must(CusolverStatus(
          cusolverDnXgetrf_bufferSize(handle, context().getrf_params(), m, n, kType, view.data,
                                      view.ld, kType, &device_bytes, &host_bytes),
          "bufferSize"));
      Buffer buffer = Must(Gpu().memory().Allocate(device_bytes));
      std::vector<std::byte> host(host_bytes);
      Must(CusolverStatus(cusolverDnXgetrf(handle, context().getrf_params(), m, n, kType, view.data,
                                           view.ld, ipiv, kType, buffer.data(), device_bytes,
                                           host.data(), host_bytes, context().info()),
                          "getrf"));
      Must(context().ops().CopyToHost(context().info(), info, sizeof(int)));
      Must(context().Synchronize());
    });
  }

  template <class T>
  void PivotsWithoutAReciprocal();
  template <class T>
  void StopsInAnyPanel(const LuBlocking& blocking);

  // Expects the pivots of getrf, and factors that differ by roundoff.
  template <class T>
  void ExpectAsGetrf(int64_t m, int64_t n, int clusters, LuBlocking blocking) {
    SCOPED_TRACE(::testing::Message()
                 << m << " x " << n << " " << NameOf(kDTypeOf<T>) << " clusters " << clusters
                 << " block " << blocking.block << " two blocks left " << blocking.two_blocks_left
                 << " right-looking " << blocking.right_looking << " look-ahead "
                 << blocking.look_ahead << " tf32 " << blocking.tf32 << " overlap left "
                 << blocking.overlap_left);
    const WideMatrix<T> a = Random<T>(m, n, 11);
    const Factored<T> ours = CroutLu<T>(a, m, n, clusters, blocking);
    const Factored<T> theirs = Getrf<T>(a, m, n);
    EXPECT_EQ(ours.info, 0);
    // |Re| + |Im| of a complex pivot is largest, so a modulus in L is at most sqrt(2).
    const double largest = (kIsComplex<T> ? std::sqrt(2.0) : 1) + 4 * kEpsilon<T>;
    for (int64_t j = 0; j < std::min(m, n); ++j) {
      for (int64_t i = j + 1; i < m; ++i) ASSERT_LE(Modulus(ours.lu[i + j * m]), largest);
    }
    ExpectProduct<T>(a, m, n, ours);
    // In single precision, rounding may change which of two close candidates is larger. The factors
    // then differ.
    if (sizeof(RealPart<T>) == 4 && ours.ipiv != theirs.ipiv) return;
    EXPECT_EQ(ours.ipiv, theirs.ipiv);
    // Rounding errors grow from column to column.
    const double tolerance = 100.0 * static_cast<double>(std::max<int64_t>(m, 100)) * kEpsilon<T>;
    for (size_t e = 0; e < ours.lu.size(); ++e) {
      ASSERT_LE(Modulus(ours.lu[e] - theirs.lu[e]), tolerance * (1 + Modulus(theirs.lu[e])))
          << "element " << e;
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

constexpr int64_t kAllRightLooking = int64_t{1} << 30;
constexpr int64_t kSomeRightLooking = int64_t{1} << 18;

// The largest number of blocks in a cluster, and no clusters.
constexpr int kClusters = 16;
constexpr int kGrid = 0;

// Values of two_blocks_left and overlap_left that apply to all panels, or to none.
constexpr int64_t kAll = 0;
constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

LuBlocking OneBlock(int64_t columns) { return {columns, kNone, kAllRightLooking, false, false}; }

TEST_F(CroutLuTest, MatchesGetrfForSquareMatrices) {
  for (const int64_t n : {1, 2, 31, 32, 33, 64, 255, 257, 513, 700}) {
    for (const int clusters : {16, 8, 0}) {
      ExpectAsGetrf<double>(n, n, clusters, OneBlock(n));
      ExpectAsGetrf<float>(n, n, clusters, OneBlock(n));
      ExpectAsGetrf<Complex128>(n, n, clusters, OneBlock(n));
      ExpectAsGetrf<Complex64>(n, n, clusters, OneBlock(n));
    }
  }
}

TEST_F(CroutLuTest, MatchesGetrfForEveryBlocking) {
  for (const int64_t n : {255, 256, 257, 700, 1100}) {
    for (const bool look_ahead : {false, true}) {
      for (const LuBlocking blocking :
           {LuBlocking{32, kNone, kAllRightLooking, look_ahead, false},
            LuBlocking{64, 200, 0, look_ahead, look_ahead},
            LuBlocking{64, kAll, kSomeRightLooking, look_ahead, false},
            LuBlocking{64, kAll, 0, look_ahead, false, kNone},
            LuBlocking{96, kAll, kSomeRightLooking, look_ahead, false},
            LuBlocking{32, 200, 0, look_ahead, look_ahead, 500},
            LuBlocking{160, kAll, 0, look_ahead, look_ahead},
            LuBlocking{256, kNone, kSomeRightLooking, look_ahead, look_ahead},
            LuBlocking{256, kAll, 0, look_ahead, look_ahead},
            LuBlocking{512, kNone, kAllRightLooking, look_ahead, false}}) {
        ExpectAsGetrf<double>(n, n, kClusters, blocking);
        ExpectAsGetrf<float>(n, n, kClusters, blocking);
        ExpectAsGetrf<Complex128>(n, n, kClusters, blocking);
        ExpectAsGetrf<Complex64>(n, n, kClusters, blocking);
        ExpectAsGetrf<double>(n, n, kGrid, blocking);
        ExpectAsGetrf<Complex128>(n, n, kGrid, blocking);
      }
    }
  }
}

TEST_F(CroutLuTest, MatchesGetrfForRectangularMatrices) {
  struct Shape {
    int64_t m;
    int64_t n;
  };
  for (const Shape& shape :
       {Shape{1, 5}, Shape{5, 1}, Shape{33, 32}, Shape{32, 33}, Shape{1000, 7}, Shape{7, 1000},
        Shape{5000, 96}, Shape{96, 5000}, Shape{160, 456}, Shape{456, 160}, Shape{256, 456},
        Shape{456, 256}, Shape{900, 300}, Shape{700, 1100}, Shape{1100, 700}, Shape{300, 3000},
        Shape{20000, 40}, Shape{40000, 24}}) {
    ExpectAsGetrf<double>(shape.m, shape.n, kClusters, OneBlock(std::min(shape.m, shape.n)));
    ExpectAsGetrf<float>(shape.m, shape.n, kClusters, OneBlock(std::min(shape.m, shape.n)));
    ExpectAsGetrf<Complex128>(shape.m, shape.n, kClusters, OneBlock(std::min(shape.m, shape.n)));
    ExpectAsGetrf<Complex64>(shape.m, shape.n, kClusters, {64, 100, 0, true, false});
    ExpectAsGetrf<double>(shape.m, shape.n, kGrid, OneBlock(std::min(shape.m, shape.n)));
    ExpectAsGetrf<double>(shape.m, shape.n, kClusters, {64, 100, 0, true, false});
    ExpectAsGetrf<double>(shape.m, shape.n, kClusters, {32, 100, 0, true, false, 400});
    ExpectAsGetrf<double>(shape.m, shape.n, kGrid, {32, kAll, 0, true, false});
    ExpectAsGetrf<float>(shape.m, shape.n, kClusters, {64, kAll, kAllRightLooking, true, true});
  }
}

// The first panels have more rows than a cluster holds; later panels of the same matrix fit. A GPU
// without clusters uses the grid for all panels.
TEST_F(CroutLuTest, FactorsPanelsOnAGridDuringLookAhead) {
  for (const LuBlocking& blocking : {LuBlocking{64, kAll, 0, true, false},
                                     LuBlocking{64, kAll, kSomeRightLooking, true, false, kNone},
                                     LuBlocking{96, kNone, 0, true, false}}) {
    ExpectAsGetrf<double>(40'000, 400, kClusters, blocking);
    ExpectAsGetrf<double>(32'900, 400, kClusters, blocking);
    ExpectAsGetrf<double>(2'500, 2'500, kGrid, blocking);
    ExpectAsGetrf<Complex128>(17'000, 300, kClusters, blocking);
    ExpectAsGetrf<Complex64>(33'000, 300, kClusters, blocking);
    ExpectAsGetrf<Complex128>(1'300, 1'300, kGrid, blocking);
  }
  for (const bool tf32 : {false, true}) {
    ExpectAsGetrf<float>(66'000, 300, kClusters, {64, kAll, 0, true, tf32});
    ExpectAsGetrf<float>(65'700, 300, kClusters, {64, kNone, 0, true, tf32});
    ExpectAsGetrf<float>(2'500, 2'500, kGrid, {64, kAll, 0, true, tf32});
    ExpectAsGetrf<Complex64>(33'000, 300, kClusters, {64, kAll, 0, true, tf32});
    ExpectAsGetrf<Complex64>(2'500, 2'500, kGrid, {64, kNone, 0, true, tf32});
  }
}

// Zero, tiny and huge pivots have no usable reciprocal.
template <class T>
std::vector<double> Extremes() {
  using Limits = std::numeric_limits<T>;
  return {0.0, double{Limits::denorm_min()}, Limits::min() / 8.0, Limits::max() / 2.0,
          double{Limits::max()}};
}

template <class T>
void CroutLuTest::PivotsWithoutAReciprocal() {
  for (const int64_t n : {100, 600}) {
    for (const double pivot : Extremes<T>()) {
      for (const int64_t at : {int64_t{0}, int64_t{1}, int64_t{40}, n - 1}) {
        for (const int clusters : {16, 8, 0}) {
          SCOPED_TRACE(::testing::Message() << pivot << " at " << at << " of " << n << " float"
                                            << 8 * sizeof(T) << " clusters " << clusters);
          HostMatrix a(n * n, 0.0);
          for (int64_t i = 0; i < n; ++i) a[i + i * n] = 1;
          const double below = -static_cast<T>(pivot / 2);
          a[at + at * n] = pivot;
          if (at + 1 < n) a[at + 1 + at * n] = below;
          const Factored<T> factored = CroutLu<T>(a, n, n, clusters, OneBlock(n));
          EXPECT_EQ(factored.info, pivot == 0 ? at + 1 : 0);
          for (int64_t k = 0; k < n; ++k) ASSERT_EQ(factored.ipiv[k], k + 1);
          EXPECT_EQ(factored.lu[at + at * n], pivot);
          if (at + 1 < n) {
            EXPECT_EQ(factored.lu[at + 1 + at * n], pivot == 0 ? 0 : below / pivot);
          }
        }
      }
    }
  }
}

TEST_F(CroutLuTest, DividesByFloat64PivotsWithoutAReciprocal) {
  PivotsWithoutAReciprocal<double>();
}
TEST_F(CroutLuTest, DividesByFloat32PivotsWithoutAReciprocal) { PivotsWithoutAReciprocal<float>(); }

// The inverse of L is large, so products with it would be inaccurate.
TEST_F(CroutLuTest, SubstitutesIfAnInverseIsLarge) {
  constexpr int64_t kOrder = 200;
  HostMatrix a = testing::RandomMatrix(kOrder, kOrder, 13);
  for (int64_t j = 0; j < 64; ++j) {
    for (int64_t i = 0; i < kOrder; ++i) {
      double& element = a[i + j * kOrder];
      element = i < j ? 0 : i > j ? -1 + 0.001 * element : 1.01;
    }
  }
  const testing::ComplexMatrix complex = testing::AsComplex(a);
  for (const LuBlocking blocking :
       {LuBlocking{64, kAll, 0, true, false}, LuBlocking{96, kNone, 0, true, true}}) {
    ExpectProduct<Complex128>(complex, kOrder, kOrder,
                              CroutLu<Complex128>(complex, kOrder, kOrder, kClusters, blocking));
    ExpectProduct<double>(a, kOrder, kOrder,
                          CroutLu<double>(a, kOrder, kOrder, kClusters, blocking));
    ExpectProduct<float>(a, kOrder, kOrder, CroutLu<float>(a, kOrder, kOrder, kClusters, blocking));
  }
}

template <class T>
void CroutLuTest::StopsInAnyPanel(const LuBlocking& blocking) {
  constexpr int64_t kOrder = 700;
  const LuPanelKernels kernels = Must(LuPanelKernels::Create(Limits({})));
  const size_t bytes = CroutLuWorkspaceBytes(kernels, blocking, kDTypeOf<T>, kOrder, kOrder);
  Buffer buffer = Must(Gpu().memory().Allocate(bytes));
  const WideMatrix<T> a = Random<T>(kOrder, kOrder, 14);
  for (const int leaves : {0, 1, 3, 8, 20}) {
    (void)Run<T>(
        a, kOrder, kOrder, [&](const MatrixView<DeviceType<T>>& view, int64_t* ipiv, int*) {
          int polls = 0;
          const absl::Status status = EnqueueCroutLu(
              LuStreams::ForContext(context()), kernels, blocking, view, ipiv,
              std::span<std::byte>(buffer.data(), bytes), [&] { return polls++ == leaves; });
          EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
          Must(context().Synchronize());
        });
    ExpectAsGetrf<T>(kOrder, kOrder, kClusters, blocking);
  }
}

// Interchanges run concurrently with products in no panel, in some panels, or in all panels.
TEST_F(CroutLuTest, StopsInAnyPanel) {
  for (const int64_t overlap_left : {kNone, int64_t{400}, kAll}) {
    StopsInAnyPanel<double>({64, kAll, 0, true, false, overlap_left});
    StopsInAnyPanel<float>({64, kAll, 0, true, true, overlap_left});
    StopsInAnyPanel<Complex128>({64, kAll, 0, true, false, overlap_left});
  }
}

TEST_F(CroutLuTest, RefusesASmallWorkspace) {
  const LuPanelKernels kernels = Must(LuPanelKernels::Create(Limits({})));
  Buffer buffer = Must(Gpu().memory().Allocate(1024));
  const absl::Status status = EnqueueCroutLu<double>(
      LuStreams::ForContext(context()), kernels, OneBlock(8), {buffer.as<double>(), 8, 8, 8},
      buffer.as<int64_t>(), {buffer.data(), 16}, kNever);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
}

}  // namespace
}  // namespace crout::cuda::crout_lu_test
