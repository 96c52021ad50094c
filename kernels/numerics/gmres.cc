// SPDX-License-Identifier: Apache-2.0

#include "kernels/numerics/gmres.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <span>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/numerics/hessenberg.h"
#include "kernels/scalar.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

// Safety factor of the target, because the residual is only estimated.
constexpr double kMargin = 0.5;

// Predicted gain of the remaining iterations, as a power of the gain so far: after the first
// iteration, and later. Observed on random, diagonally dominant and application matrices with the
// factor of an earlier step.
constexpr double kFirstShare = 2;
constexpr double kLaterShare = 1.5;
// Below this gain, the first iteration predicts nothing.
constexpr double kSignificantGain = 1.25;

size_t Aligned(size_t bytes) { return (bytes + 255) / 256 * 256; }

// Returns 0 if the reciprocal is not usable.
double ReciprocalOrZero(double x) {
  const double reciprocal = 1 / x;
  return x > 0 && std::isfinite(reciprocal) ? reciprocal : 0;
}

template <class T>
class Run {
 public:
  Run(ExecutionContext& context, ResidualCheck& check, InverseOperator& inverse,
      const GmresLimits& limits, const GmresMemory& memory, StopRequested stop)
      : context_(context),
        krylov_(*context.krylov_ops()),
        check_(check),
        system_(check.system()),
        inverse_(inverse),
        limits_(limits),
        memory_(memory),
        stop_(stop),
        nrhs_(system_.x.cols),
        rows_(memory.coefficients.ld) {}

  absl::StatusOr<GmresResult> Solve() {
    int vectors = 0;
    while ((vectors = VectorsOfNextCycle()) > 0 && !check_.wide_range() &&
           check_.errors().normwise > limits_.tolerance) {
      const double before = check_.errors().normwise;
      ++result_.cycles;
      CROUT_RETURN_IF_ERROR(StartCycle());
      int64_t used = 0;
      while (used < vectors && AnyActive() && !result_.given_up) {
        CROUT_RETURN_IF_ERROR(Extend(used++));
        result_.given_up =
            result_.iterations >= limits_.min_iterations && Left(used) > limits_.max_remaining;
      }
      if (used == 0 || result_.given_up) break;
      CROUT_RETURN_IF_ERROR(Correct(used));
      if (!(check_.errors().normwise < before)) {
        CROUT_RETURN_IF_ERROR(Copy(memory_.previous, system_.x));
        CROUT_RETURN_IF_ERROR(check_.Measure());
        break;
      }
      if (check_.errors().normwise > before / 2) break;
    }
    return result_;
  }

 private:
  // State of one right-hand side in a cycle.
  struct Column {
    explicit Column(double beta) : least_squares(beta) {}

    HessenbergLeastSquares<T> least_squares;
    double unit = 0;    // largest entry of the residual; the unit of the least-squares problem
    double target = 0;  // goal for the residual's 2-norm, in the same unit
    bool active = false;
    double begin = 0;   // residual's 2-norm at the start of the cycle
    double before = 0;  // residual's 2-norm before the last vector was added
  };

  // Returns the largest number of vectors that the limits allow.
  int VectorsOfNextCycle() const {
    const double cost = limits_.max_cost - (result_.cycles + 1) * limits_.cycle_cost;
    const auto vectors = std::min<double>(limits_.restart, cost - result_.iterations);
    return std::min(static_cast<int>(vectors), limits_.max_iterations - result_.iterations);
  }

  bool AnyActive() const {
    return std::any_of(columns_.begin(), columns_.end(),
                       [](const Column& column) { return column.active; });
  }

  // Returns the estimated number of remaining iterations after `used` iterations of a cycle; 0 if
  // there is no basis for an estimate.
  double Left(int64_t used) const {
    double left = 0;
    for (const Column& column : columns_) {
      if (!column.active) continue;
      const double now = column.least_squares.residual();
      const double mean = std::pow(column.begin / now, 1 / static_cast<double>(used));
      double gain = std::max(mean, column.before / now);
      // The first iteration alone often gains half as much as the next ones, and sometimes nothing.
      if (used == 1 && gain < kSignificantGain) continue;
      gain = std::pow(gain, used == 1 ? kFirstShare : kLaterShare);
      left = std::max(left, IterationsLeft(now, column.target, gain));
    }
    return left;
  }

  MatrixOps& ops() { return context_.ops(); }
  absl::Status Copy(const AnyMatrix& from, const AnyMatrix& to) {
    return ops().CopyOnDevice(from.data, to.data, from.rows * from.cols * SizeOf(from.dtype));
  }
  absl::Status Scale(const std::vector<double>& scales, const AnyMatrix& w) {
    CROUT_RETURN_IF_ERROR(
        ops().CopyToDevice(scales.data(), memory_.scales, nrhs_ * sizeof(double)));
    return krylov_.ScaleColumns(memory_.scales, w);
  }
  // squares := |w(:, c)|_2^2.
  absl::Status Squares(const AnyMatrix& w) { return krylov_.Dots({w, nrhs_}, w, memory_.squares); }

  // Copies the coefficients of both orthogonalizations and the squares, which are contiguous, in
  // one call: each copy to pageable memory waits for the device.
  absl::Status FetchProducts() {
    products_.resize((2 * rows_ + 1) * nrhs_);
    CROUT_RETURN_IF_ERROR(ops().CopyToHost(memory_.coefficients.data, products_.data(),
                                           products_.size() * sizeof(T)));
    return context_.Synchronize();
  }
  // Both coefficient arrays are in products_: column nrhs + c is column c of the second.
  const T& coefficient(int64_t i, int64_t c) const { return products_[i + c * rows_]; }
  const T& square(int64_t c) const { return products_[2 * rows_ * nrhs_ + c]; }

  // Sets the first vectors: the residuals, with norm 1.
  absl::Status StartCycle() {
    CROUT_RETURN_IF_ERROR(krylov_.ColumnMaxAbs(system_.x, memory_.solution_max));
    CROUT_RETURN_IF_ERROR(krylov_.ColumnMaxAbs(system_.b, memory_.rhs_max));
    CROUT_RETURN_IF_ERROR(krylov_.ColumnMaxAbs(system_.r, memory_.residual_max));
    maxima_.resize(3 * nrhs_);
    CROUT_RETURN_IF_ERROR(
        ops().CopyToHost(memory_.solution_max, maxima_.data(), maxima_.size() * sizeof(double)));
    CROUT_RETURN_IF_ERROR(context_.Synchronize());
    const double* const solution = maxima_.data();
    const double* const rhs = solution + nrhs_;
    const double* const residual = rhs + nrhs_;

    // First scales entries to at most 1, so that squares cannot overflow or all underflow.
    const AnyMatrix first = memory_.bases.Block(0);
    CROUT_RETURN_IF_ERROR(Copy(system_.r, first));
    scales_.assign(nrhs_, 0);
    for (int64_t c = 0; c < nrhs_; ++c) scales_[c] = ReciprocalOrZero(residual[c]);
    CROUT_RETURN_IF_ERROR(Scale(scales_, first));
    CROUT_RETURN_IF_ERROR(Squares(first));
    CROUT_RETURN_IF_ERROR(FetchProducts());

    columns_.clear();
    const double norm_a = system_.a->NormInf(system_.op);
    for (int64_t c = 0; c < nrhs_; ++c) {
      const double norm = std::sqrt(Modulus(square(c)));
      const double enough = limits_.tolerance * (norm_a * solution[c] + rhs[c]);
      Column& column = columns_.emplace_back(norm);
      column.unit = residual[c];
      column.begin = norm;
      // Assumes that the ratio of the 2-norm to the largest entry does not change.
      column.target = kMargin * enough / residual[c] * norm;
      column.active = residual[c] > enough && std::isfinite(norm) && norm > 0;
      scales_[c] = ReciprocalOrZero(norm);
    }
    return Scale(scales_, first);
  }

  // Computes vector j + 1 of every space.
  absl::Status Extend(int64_t j) {
    CROUT_RETURN_IF_ERROR(CheckNotStopped(stop_));
    const AnyMatrix v = memory_.bases.Block(j);
    const AnyMatrix w = memory_.bases.Block(j + 1);
    const AnyMatrix image = memory_.images.Block(j);
    CROUT_RETURN_IF_ERROR(inverse_.Apply(system_.op, v, image));
    CROUT_RETURN_IF_ERROR(system_.a->Residual(context_, system_.op, image, v, w));
    const KrylovBases before = memory_.bases.Blocks(0, j + 1);
    for (AnyMatrix h : {memory_.coefficients, memory_.again}) {
      h.rows = j + 1;
      CROUT_RETURN_IF_ERROR(krylov_.Dots(before, w, h));
      CROUT_RETURN_IF_ERROR(krylov_.AddCombination(-1, before, h, w));
    }
    CROUT_RETURN_IF_ERROR(Squares(w));
    CROUT_RETURN_IF_ERROR(FetchProducts());
    ++result_.iterations;
    for (int64_t c = 0; c < nrhs_; ++c) {
      const double norm = std::sqrt(Modulus(square(c)));
      scales_[c] = ReciprocalOrZero(norm);
      if (columns_[c].active) Append(c, j, norm);
    }
    return Scale(scales_, w);
  }

  void Append(int64_t c, int64_t j, double norm) {
    // With E = I - A M: E v_j = sum of h_i v_i, so A M has the coefficients e_j - h.
    std::vector<T> h(j + 2);
    double sum = norm;
    for (int64_t i = 0; i <= j; ++i) {
      const T of_e = coefficient(i, c) + coefficient(i, nrhs_ + c);
      h[i] = T(i == j ? 1 : 0) - of_e;
      sum += Modulus(of_e);
    }
    h[j + 1] = -norm;
    Column& column = columns_[c];
    column.active = std::isfinite(sum);
    if (!column.active) return;  // overflow: continue without this vector
    column.before = column.least_squares.residual();
    column.least_squares.Append(h);
    column.active = column.least_squares.residual() > column.target && norm > 0;
  }

  // X := X + Z y, where Z are the images.
  absl::Status Correct(int64_t used) {
    products_.assign(rows_ * nrhs_, T{});
    for (int64_t c = 0; c < nrhs_; ++c) {
      const std::vector<T> y = columns_[c].least_squares.Solve();
      for (size_t i = 0; i < y.size(); ++i) products_[i + c * rows_] = y[i] * columns_[c].unit;
    }
    AnyMatrix y = memory_.coefficients;
    CROUT_RETURN_IF_ERROR(
        ops().CopyToDevice(products_.data(), y.data, products_.size() * sizeof(T)));
    y.rows = used;
    CROUT_RETURN_IF_ERROR(Copy(system_.x, memory_.previous));
    CROUT_RETURN_IF_ERROR(krylov_.AddCombination(1, memory_.images.Blocks(0, used), y, system_.x));
    return check_.Measure();
  }

  ExecutionContext& context_;
  KrylovOps& krylov_;
  ResidualCheck& check_;
  const CheckedSystem& system_;
  InverseOperator& inverse_;
  const GmresLimits& limits_;
  const GmresMemory& memory_;
  const StopRequested stop_;
  const int64_t nrhs_;
  const int64_t rows_;  // rows of the coefficient arrays
  std::vector<Column> columns_;
  std::vector<double> scales_;  // scales that were last enqueued
  std::vector<double> maxima_;
  std::vector<T> products_;  // products that were last fetched or enqueued
  GmresResult result_;
};

}  // namespace

double IterationsLeft(double error, double enough, double gain) {
  if (!(error > enough)) return 0;
  if (!(gain > 1)) return std::numeric_limits<double>::infinity();
  return std::log(error / enough) / std::log(gain);
}

int RestartFor(int64_t n, int64_t nrhs) {
  constexpr int kMax = 30;
  return static_cast<int>(std::clamp<int64_t>(n / nrhs / 2, 4, kMax));
}

absl::StatusOr<size_t> GmresMemory::Bytes(int64_t n, int64_t nrhs, DType vector_type, int restart) {
  if (nrhs < 1 || restart < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "GMRES needs at least one right-hand side and a restart length of at least 1, got ", nrhs,
        " and ", restart));
  }
  CROUT_ASSIGN_OR_RETURN(const size_t vector, MatrixBytes(n, nrhs, vector_type));
  CROUT_ASSIGN_OR_RETURN(const size_t small, MatrixBytes(restart + 1, nrhs, vector_type));
  ByteSum sum;
  for (int block = 0; block < 2 * restart + 1; ++block) sum.Add(vector);
  // Alignment adds less than 256 bytes to each of seven arrays.
  sum.Add(7 * 256).Add(vector).Add(small).Add(small);
  sum.Add(nrhs * SizeOf(vector_type)).Add(4 * nrhs * SizeOf(vector_type));
  return sum.total();
}

GmresMemory::GmresMemory(std::byte* block, int64_t n, int64_t nrhs, DType vector_type,
                         int restart) {
  const auto take = [&](int64_t rows, int64_t cols) {
    const AnyMatrix matrix{block, vector_type, rows, cols, std::max<int64_t>(1, rows)};
    block += Aligned(rows * cols * SizeOf(vector_type));
    return matrix;
  };
  bases = {take(n, nrhs * (restart + 1)), nrhs};
  images = {take(n, nrhs * restart), nrhs};
  previous = take(n, nrhs);
  const int64_t rows = restart + 1;
  const int64_t small = rows * nrhs * static_cast<int64_t>(SizeOf(vector_type));
  coefficients = take(2 * rows + 1, nrhs);
  coefficients.rows = coefficients.ld = rows;
  again = coefficients;
  again.data += small;
  squares = {again.data + small, vector_type, 1, nrhs, 1};
  scales = reinterpret_cast<double*>(take(4, nrhs).data);
  solution_max = scales + nrhs;
  rhs_max = solution_max + nrhs;
  residual_max = rhs_max + nrhs;
}

absl::StatusOr<GmresResult> Gmres(ExecutionContext& context, ResidualCheck& check,
                                  InverseOperator& inverse, const GmresLimits& limits,
                                  const GmresMemory& memory, StopRequested stop) {
  if (IsComplex(check.system().x.dtype)) {
    return Run<std::complex<double>>(context, check, inverse, limits, memory, stop).Solve();
  }
  return Run<double>(context, check, inverse, limits, memory, stop).Solve();
}

}  // namespace crout
