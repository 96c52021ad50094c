// SPDX-License-Identifier: Apache-2.0

#include "tests/bench/series/series_families.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>
#include <span>
#include <thread>
#include <utility>

#include "tests/bench/series/series_files.h"

namespace crout {
namespace {

// Changes the drifting matrix of one step only. `a` is a copy of it: n x n, column-major, real.
// Steps count from 0.
using Event = void (*)(int step, int64_t n, std::vector<double>& a);

struct DriftKind {
  double change = 0;
  bool dominant = false;  // n is added to the diagonal
  DType dtype = DType::kFloat64;
  Event event = nullptr;
};

// A random matrix in which all entries drift, and a right-hand side that changes slowly.
class Drift final : public Sequence {
 public:
  Drift(const DriftKind& kind, int64_t n, int steps) : Sequence(n, steps, kind.dtype), kind_(kind) {
    for (double& x : a_) x = uniform_(random_);
    for (double& x : b_) x = uniform_(random_);
    if (!kind.dominant) return;
    const int64_t parts = IsComplex(dtype_) ? 2 : 1;
    for (int64_t i = 0; i < n; ++i) a_[(i + i * n) * parts] += static_cast<double>(n);
  }

  void Next() override {
    if (step_ >= 0) Change();
    ++step_;
    if (kind_.event == nullptr) return;
    shown_ = a_;
    kind_.event(step_, n_, shown_);
  }

  const std::vector<double>& a() const override { return kind_.event == nullptr ? a_ : shown_; }

 private:
  void Change() {
    // Each column has a generator, so that numbers do not depend on the number of threads.
    const int64_t threads = std::max(1U, std::thread::hardware_concurrency());
    {
      std::vector<std::jthread> pool;
      for (int64_t t = 0; t < threads; ++t) {
        pool.emplace_back([this, t, threads] {
          for (int64_t j = t; j < n_; j += threads) ChangeColumn(j);
        });
      }
    }
    for (double& x : b_) x += 0.01 * uniform_(random_);
  }

  void ChangeColumn(int64_t j) {
    std::minstd_rand random(static_cast<uint32_t>((step_ + 1) * n_ + j + 1));
    random.discard(2);  // the first numbers of adjacent seeds are similar
    std::uniform_real_distribution<double> uniform(-1, 1);
    const int64_t parts = static_cast<int64_t>(a_.size()) / n_;  // number per column
    for (int64_t i = 0; i < parts; ++i) a_[i + j * parts] += kind_.change * uniform(random);
  }

  const DriftKind kind_;
  int step_ = -1;
  std::vector<double> shown_;
  std::minstd_rand random_;
  std::uniform_real_distribution<double> uniform_{-1, 1};
};

// Permutes the rows every ten steps, which makes earlier factors useless.
void Jump(int step, int64_t n, std::vector<double>& a) {
  const int64_t shift = step / 10 * 37 % n;
  for (int64_t j = 0; j < n; ++j) {
    const auto column = a.begin() + j * n;
    std::rotate(column, column + shift, column + n);
  }
}

// Sets a column to zero in one step.
void BecomeSingular(int step, int64_t n, std::vector<double>& a) {
  constexpr int kWhen = 10;
  if (step == kWhen) std::fill_n(a.begin(), n, 0.0);
}

// Adds n to the diagonal, changes this to -n in forty steps, and back in forty steps.
void ChangeSigns(int step, int64_t n, std::vector<double>& a) {
  const double diagonal = static_cast<double>(n) * std::cos(std::numbers::pi * step / 40);
  for (int64_t i = 0; i < n; ++i) a[i + i * n] += diagonal;
}

// Sets diagonal blocks of order two. Their diagonal is n for four steps and 1e-12 n for the next
// four. With the pivots of the first step, entries would grow by a factor of 1e12 in the fifth
// step.
void ExchangePivots(int step, int64_t n, std::vector<double>& a) {
  const double large = static_cast<double>(n);
  const double on = step % 8 < 4 ? large : 1e-12 * large;
  const double off = large - on;
  for (int64_t i = 0; i + 1 < n; i += 2) {
    a[i + i * n] = a[i + 1 + (i + 1) * n] = on;
    a[i + (i + 1) * n] = a[i + 1 + i * n] = off;
  }
}

// Mean curvature flow of a graph over the square [-1, 1]^2, by semi-implicit finite differences. A
// has five diagonals. The right-hand side is u of the previous step; u is 0 on the boundary.
class CurvatureFlow final : public Sequence {
 public:
  CurvatureFlow(int64_t grid, int steps)
      : Sequence(grid * grid, steps, DType::kFloat64),
        grid_(grid),
        width_(2.0 / static_cast<double>(grid - 1)) {
    constexpr double kAlpha = 5;
    constexpr double kBeta = 10;
    u_.assign(n_, 0.0);
    for (int64_t j = 1; j + 1 < grid; ++j) {
      for (int64_t i = 1; i + 1 < grid; ++i) {
        const double x = -1 + width_ * static_cast<double>(i);
        const double y = -1 + width_ * static_cast<double>(j);
        const double square = x * x + y * y;
        u_[i + j * grid] = std::exp(-kAlpha * square) * std::sin(kBeta * std::sqrt(square));
      }
    }
  }

  void Next() override {
    if (begun_) u_ = Solved();
    begun_ = true;
    b_ = u_;
    std::fill(a_.begin(), a_.end(), 0.0);
    for (int64_t j = 0; j < grid_; ++j) {
      for (int64_t i = 0; i < grid_; ++i) Row(i, j);
    }
  }

 private:
  static constexpr double kStep = 0.1;  // time step over the square of the grid spacing

  bool Inside(int64_t i, int64_t j) const {
    return i > 0 && j > 0 && i + 1 < grid_ && j + 1 < grid_;
  }
  double Slope(int64_t to, int64_t from) const { return (u_[to] - u_[from]) / width_; }
  // Returns sqrt(1 + |grad u|^2) from forward differences, which are zero at the last points.
  double Area(int64_t i, int64_t j) const {
    const int64_t k = i + j * grid_;
    const double x = i + 1 < grid_ ? Slope(k + 1, k) : 0;
    const double y = j + 1 < grid_ ? Slope(k + grid_, k) : 0;
    return std::sqrt(1 + x * x + y * y);
  }
  // Returns sqrt(1 + |grad u|^2) from the mean square of forward and backward differences.
  double MeanArea(int64_t k) const {
    double sum = 0;
    for (const int64_t to : {k + 1, k - 1, k + grid_, k - grid_}) {
      sum += Slope(to, k) * Slope(to, k);
    }
    return std::sqrt(1 + sum / 2);
  }
  void Row(int64_t i, int64_t j) {
    const int64_t k = i + j * grid_;
    double diagonal = 1;
    if (Inside(i, j)) {
      const double scale = kStep * MeanArea(k);
      const std::pair<int64_t, double> neighbours[] = {{k - 1, scale / Area(i - 1, j)},
                                                       {k + 1, scale / Area(i, j)},
                                                       {k - grid_, scale / Area(i, j - 1)},
                                                       {k + grid_, scale / Area(i, j)}};
      for (const auto& [neighbour, weight] : neighbours) {
        a_[k + neighbour * n_] = -weight;
        diagonal += weight;
      }
    }
    a_[k + k * n_] = diagonal;
  }

  // Returns A^-1 u by Gauss-Seidel iteration, which converges because the diagonal is large.
  std::vector<double> Solved() const {
    constexpr int kSweeps = 60;
    std::vector<double> x = u_;
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      for (int64_t j = 1; j + 1 < grid_; ++j) {
        for (int64_t i = 1; i + 1 < grid_; ++i) {
          const int64_t k = i + j * grid_;
          double sum = u_[k];
          for (const int64_t from : {k - 1, k + 1, k - grid_, k + grid_}) {
            sum -= a_[k + from * n_] * x[from];
          }
          x[k] = sum / a_[k + k * n_];
        }
      }
    }
    return x;
  }

  const int64_t grid_;
  const double width_;
  bool begun_ = false;
  std::vector<double> u_;
};

// A random matrix. Each step connects a pair of unknowns by a rank-one change. The change is as
// large as the matrix, so that it makes the previous factor useless.
class Switches final : public Sequence {
 public:
  Switches(int64_t n, int steps) : Sequence(n, steps, DType::kFloat64) {
    changes_by_rank_ = true;
    for (double& x : a_) x = uniform_(random_);
    for (double& x : b_) x = uniform_(random_);
  }

  void Next() override {
    if (begun_) Switch();
    begun_ = true;
  }

 private:
  void Switch() {
    change_rank_ = 1;
    change_.assign(2 * n_, 0.0);
    const std::span<double> u(change_.data(), n_);
    const std::span<double> v(change_.data() + n_, n_);
    const int64_t one = element_(random_);
    const int64_t other = (one + 1 + element_(random_) / 2) % n_;
    const auto size = static_cast<double>(n_);
    u[one] = size;
    v[one] += 1;
    u[other] -= size;
    v[other] -= 1;
    for (const int64_t j : {one, other}) {
      for (const int64_t i : {one, other}) a_[i + j * n_] += u[i] * v[j];
    }
    for (double& x : b_) x += 0.01 * uniform_(random_);
  }

  bool begun_ = false;
  std::minstd_rand random_;
  std::uniform_real_distribution<double> uniform_{-1, 1};
  std::uniform_int_distribution<int64_t> element_{0, n_ - 2};
};

SeriesFamily DriftFamily(std::string name, const DriftKind& kind) {
  return {std::move(name), kind.change,
          [kind](int64_t n, int steps) { return std::make_unique<Drift>(kind, n, steps); }};
}

}  // namespace

Sequence::Sequence(int64_t n, int steps, DType dtype) : n_(n), steps_(steps), dtype_(dtype) {
  const int64_t parts = IsComplex(dtype) ? 2 : 1;
  a_.resize(n * n * parts);
  b_.resize(n * parts);
}

std::vector<SeriesFamily> AllSeriesFamilies(const std::string& matrices) {
  std::vector<SeriesFamily> families;
  for (const double change : {1e-2, 1e-3, 1e-4, 1e-6, 1e-8}) {
    families.push_back(DriftFamily("random", {.change = change}));
  }
  for (const double change : {1e-2, 1e-3, 1e-4, 1e-6}) {
    families.push_back(DriftFamily("dominant", {.change = change, .dominant = true}));
  }
  for (const double change : {1e-2, 1e-4}) {
    families.push_back(
        DriftFamily("complex random", {.change = change, .dtype = DType::kComplex128}));
  }
  families.push_back(DriftFamily("jumps", {.change = 1e-4, .event = Jump}));
  families.push_back(DriftFamily("singular once", {.change = 1e-4, .event = BecomeSingular}));
  families.push_back(DriftFamily("signs", {.change = 1e-4, .event = ChangeSigns}));
  families.push_back(DriftFamily("pivots", {.change = 1e-4, .event = ExchangePivots}));
  families.push_back(
      {"switches", 0, [](int64_t n, int steps) { return std::make_unique<Switches>(n, steps); }});
  families.push_back({"curvature flow", 0, [](int64_t n, int steps) {
                        const auto grid = static_cast<int64_t>(std::sqrt(static_cast<double>(n)));
                        return std::make_unique<CurvatureFlow>(grid, steps);
                      }});
  if (matrices.empty()) return families;
  for (const FileSeries& files : FileSeriesIn(matrices)) {
    families.push_back(
        {files.name, 0,
         [files](int64_t, int) -> std::unique_ptr<Sequence> { return OpenFileSeries(files); },
         true});
  }
  return families;
}

}  // namespace crout
