// SPDX-License-Identifier: Apache-2.0

// Tests residuals and errors on a GPU against the host.
#include <cmath>
#include <utility>
#include <vector>

#include "kernels/scalar.h"
#include "tests/gpu/ops/ops_testing.h"

namespace crout::ops_residual_test {
namespace {

template <class T>
struct ResidualCase {
  std::vector<WideType<T>> r;
  std::vector<double> w;
  double backward_error;
};

template <class T>
ResidualCase<T> Residuals(Bench& bench, const std::vector<T>& a, Shape shape, Op op,
                          const std::vector<WideType<T>>& x, const std::vector<WideType<T>>& b,
                          int64_t nrhs) {
  using V = WideType<T>;
  const int64_t x_rows = op == Op::kNone ? shape.cols : shape.rows;
  const int64_t b_rows = op == Op::kNone ? shape.rows : shape.cols;
  const Buffer a_buffer = bench.Put(a);
  const Buffer x_buffer = bench.Put(x);
  const Buffer b_buffer = bench.Put(b);
  const Buffer r_buffer = bench.Put(std::vector<V>(b.size(), kNan));
  const Buffer w_buffer = bench.Put(std::vector<double>(b.size(), kNan));
  const AnyMatrix a_view{a_buffer.data(), kDTypeOf<T>, shape.rows, shape.cols, shape.rows};
  const MatrixView<V> x_view{x_buffer.as<V>(), x_rows, nrhs, x_rows};
  const MatrixView<V> b_view{b_buffer.as<V>(), b_rows, nrhs, b_rows};
  const MatrixView<V> r_view{r_buffer.as<V>(), b_rows, nrhs, b_rows};
  const MatrixView<double> w_view{w_buffer.as<double>(), b_rows, nrhs, b_rows};
  EXPECT_TRUE(bench.ops().Residual(a_view, op, 3.0, x_view, b_view, r_view).ok());
  EXPECT_TRUE(bench.ops().AbsProduct(a_view, op, x_view, b_view, w_view).ok());
  const double backward_error = bench.Wait().residual.backward_error;
  return {bench.Get<V>(r_buffer), bench.Get<double>(w_buffer), backward_error};
}

template <class T>
void CheckResiduals(Bench& gpu, Bench& host) {
  for (const Shape shape : kShapes) {
    for (const Op op : {Op::kNone, Op::kTranspose, Op::kConjugateTranspose}) {
      for (const int64_t nrhs : {1, 4, 7, 15}) {
        SCOPED_TRACE(::testing::Message() << shape.rows << " x " << shape.cols << " op "
                                          << static_cast<int>(op) << " nrhs " << nrhs);
        const int64_t x_rows = op == Op::kNone ? shape.cols : shape.rows;
        const int64_t b_rows = op == Op::kNone ? shape.rows : shape.cols;
        const auto a = RandomVector<T>(shape.rows * shape.cols, 13);
        const auto x = RandomVector<WideType<T>>(x_rows * nrhs, 14);
        const auto b = RandomVector<WideType<T>>(b_rows * nrhs, 15);
        const ResidualCase<T> on_gpu = Residuals(gpu, a, shape, op, x, b, nrhs);
        const ResidualCase<T> on_host = Residuals(host, a, shape, op, x, b, nrhs);
        const double tolerance = 1e-15 * static_cast<double>(x_rows);
        for (size_t k = 0; k < b.size(); ++k) {
          // w is the scale of the roundoff in r.
          ASSERT_LE(std::abs(on_gpu.r[k] - on_host.r[k]), tolerance * on_host.w[k]) << k;
          ASSERT_THAT(on_gpu.w[k], Near(on_host.w[k])) << k;
        }
        EXPECT_THAT(on_gpu.backward_error, Near(on_host.backward_error, 1e-12));
      }
    }
  }
}

TEST_F(OpsTest, MatchesTheHostsResiduals) {
  CheckResiduals<double>(*gpu_, *host_);
  CheckResiduals<float>(*gpu_, *host_);
  CheckResiduals<Complex128>(*gpu_, *host_);
  CheckResiduals<Complex64>(*gpu_, *host_);
}

TEST_F(OpsTest, BackwardErrorKeepsNan) {
  const auto a = RandomVector<double>(40 * 40, 16);
  const auto b = RandomVector<double>(40 * 3, 17);
  for (const double bad : {kNan, kInf}) {
    auto x = RandomVector<double>(40 * 3, 18);
    x[41] = bad;
    EXPECT_TRUE(std::isnan(Residuals(*gpu_, a, {40, 40}, Op::kNone, x, b, 3).backward_error));
  }
  const std::vector<double> zeros(40, 0.0);
  EXPECT_EQ(Residuals(*gpu_, a, {40, 40}, Op::kNone, zeros, zeros, 1).backward_error, 0);
}

template <class T>
void CheckComponentwiseErrors(Bench& gpu, Bench& host) {
  constexpr int64_t kRows = 700;
  auto r = RandomVector<T>(kRows * 3, 23);
  auto w = RandomVector<double>(kRows * 3, 24);
  for (double& v : w) v = std::abs(v) + 1;
  r[0] = 0;
  w[0] = 0;
  const auto error = [&](Bench& bench) {
    const Buffer r_buffer = bench.Put(r);
    const Buffer w_buffer = bench.Put(w);
    EXPECT_TRUE(bench.ops()
                    .ComponentwiseError(MatrixView<T>{r_buffer.as<T>(), kRows, 3, kRows},
                                        {w_buffer.as<double>(), kRows, 3, kRows})
                    .ok());
    return bench.Wait().residual.componentwise_error;
  };
  EXPECT_EQ(error(gpu), error(host));
  w[1000] = 1e-310;  // needs the guard against underflow
  EXPECT_EQ(error(gpu), error(host));
  const auto expect_nan = [&](auto& values) {
    for (const double value : {kNan, kInf}) {
      const auto kept = std::exchange(values[1500], value);
      EXPECT_TRUE(std::isnan(error(gpu)));
      values[1500] = kept;
    }
  };
  expect_nan(r);
  expect_nan(w);
}

TEST_F(OpsTest, MatchesTheHostsComponentwiseErrors) {
  CheckComponentwiseErrors<double>(*gpu_, *host_);
  CheckComponentwiseErrors<Complex128>(*gpu_, *host_);
}

}  // namespace
}  // namespace crout::ops_residual_test
