// SPDX-License-Identifier: Apache-2.0

// Numeric phase: Liu's multifrontal method, with interchanges inside F11 only.
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>
#include <vector>

#include "kernels/host/multifrontal/front_elimination.h"
#include "kernels/host/multifrontal/front_kernels.h"
#include "kernels/host/multifrontal/multifrontal.h"
#include "kernels/host/multifrontal/numeric_workspace.h"
#include "kernels/host/multifrontal/schedule.h"
#include "kernels/host/ops/blas.h"
#include "kernels/sparse/entry_scales.h"
#include "kernels/sparse/front_entries.h"
#include "kernels/sparse/numeric_findings.h"
#include "kernels/util/status_macros.h"

namespace crout::host {
namespace {

// Tile size of large upper fronts. Changing it changes the bits of the result.
constexpr int64_t kTile = 192;

Width WidthOf(const Analysis& analysis) {
  return analysis.flops > 4e6 ? Width::kAllCores : Width::kOneCore;
}

// Limits OpenBLAS to one thread on the calling thread while in scope, as in parallel regions, so
// that the bits do not depend on the number of threads.
class SingleThreadedBlas {
 public:
  SingleThreadedBlas() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~SingleThreadedBlas() { omp_set_num_threads(before_); }
  SingleThreadedBlas(const SingleThreadedBlas&) = delete;  // Bound to one scope.
  SingleThreadedBlas& operator=(const SingleThreadedBlas&) = delete;

 private:
  const int before_;
};

// Results of one thread.
struct Findings {
  PivotCount count;
  double largest = 0;  // largest entry of U
  bool finite = true;
  int64_t info = 0;
};

void Join(const Findings& from, Findings& into) {
  into.count.perturbed += from.count.perturbed;
  into.count.interchanges += from.count.interchanges;
  into.count.negative += from.count.negative;
  into.largest = std::max(into.largest, from.largest);
  into.finite = into.finite && from.finite;
  if (from.info > 0 && (into.info == 0 || from.info < into.info)) into.info = from.info;
}

// T is the type of the factor, Source the type of A.
template <class T, class Source>
class Numeric {
 public:
  Numeric(const Analysis& analysis, const Schedule& schedule, const AnySparse& a,
          std::span<std::byte> factor, std::span<std::byte> workspace, int cores,
          StopRequested stop, DeviceReport* report)
      : analysis_(analysis),
        schedule_(schedule),
        a_(a.As<Source>()),
        factor_(factor.data()),
        layout_(analysis, schedule, kDTypeOf<T>, cores),
        threads_(layout_.ThreadsWithin(workspace.size() - Schedule::Bytes(analysis), cores)),
        workspace_(workspace.data()),
        smallest_(reinterpret_cast<RealPart<T>*>(workspace.data() + layout_.smallest)),
        cores_(cores),
        stop_(stop),
        report_(report) {}

  absl::StatusOr<NumericFindings> Run(std::vector<int32_t>* postponable) {
    const SingleThreadedBlas one_thread;
    auto* const of_row = reinterpret_cast<int32_t*>(workspace_ + layout_.positions);
    positions_ = PlacePositions(analysis_, of_row, of_row + analysis_.n);
    FindSmallestPivots();
    std::vector<Findings> found(cores_);
    DoUnits(found);
    for (const int32_t f : schedule_.upper_fronts()) {
      if (Stopped()) break;
      if (schedule_.is_tiled(f)) {
        DoTiledFront(f, found[0]);
      } else {
        DoFront(f, 0, found[0]);
      }
      ReportDone(f, f + 1);
    }
    if (stopped_) return absl::CancelledError("the job was stopped during the factorization");
    Findings all;
    for (const Findings& one : found) Join(one, all);
    if (postponable != nullptr) *postponable = Postponable();
    return ToNumericFindings(all);
  }

 private:
  using Real = RealPart<T>;

  bool Stopped() {
    if (!stopped_ && stop_()) stopped_ = true;
    return stopped_;
  }

  // Reports the columns of the fronts [begin, end) as final.
  void ReportDone(int32_t begin, int32_t end) {
    if (report_ == nullptr) return;
    report_->ReportColumns(done_ +=
                           analysis_.first_position[end] - analysis_.first_position[begin]);
  }

  T Scaled(int64_t entry, int32_t column) const {
    const Source value = a_.value[entry];
    if (analysis_.row_scale.empty()) return ConvertTo<T>(value);
    const EntryScales by =
        InOrder(LargestPart(ToFloat64(value)), analysis_.row_scale[a_.row[entry]],
                analysis_.column_scale[column]);
    return ConvertTo<T>(ToFloat64(value) * by.first * by.second);
  }

  // Sets smallest_ for every position, and max_abs_ to the largest entry of the scaled matrix.
  void FindSmallestPivots() {
    const int64_t first_kept = analysis_.n - analysis_.kept;
    double largest = 0;
    for (int64_t k = 0; k < analysis_.n; ++k) {
      const int32_t j = analysis_.column_order[k];
      double most = 0;
      for (int64_t e = a_.column_start[j]; e < a_.column_start[j + 1]; ++e) {
        const T value = Scaled(e, j);
        largest = std::max(largest, Modulus(value));
        if (positions_.of_row[a_.row[e]] >= first_kept) continue;
        most = std::max(most, static_cast<double>(Abs1(value)));
      }
      smallest_[k] = static_cast<Real>(most);
    }
    max_abs_ = largest;
    const double unit = largest > 0 ? largest : 1;
    for (int64_t f = 0; f < analysis_.fronts(); ++f) {
      const double factor =
          PivotPerturbation(kDTypeOf<T>, analysis_.bordered(f) > 0 && !analysis_.delayed);
      for (int32_t k = analysis_.first_position[f]; k < analysis_.first_position[f + 1]; ++k) {
        const double most = smallest_[k] > 0 ? static_cast<double>(smallest_[k]) : unit;
        smallest_[k] =
            std::clamp(static_cast<Real>(factor * most), std::numeric_limits<Real>::min() * 4,
                       std::numeric_limits<Real>::max());
      }
    }
  }

  // Returns the positions of pivots that were perturbed or not acceptable and whose front has a
  // parent.
  std::vector<int32_t> Postponable() const {
    std::vector<int32_t> positions;
    for (int64_t f = 0; f < analysis_.fronts(); ++f) {
      if (analysis_.parent[f] == -1) continue;
      for (int32_t k = analysis_.first_position[f]; k < analysis_.first_position[f + 1]; ++k) {
        if (smallest_[k] < 0) positions.push_back(k);
      }
    }
    return positions;
  }

  MatrixView<T> Contribution(int64_t f, int thread) const {
    const int64_t d2 = analysis_.bordered(f);
    std::byte* const base = schedule_.is_shared(f)
                                ? workspace_ + layout_.shared
                                : workspace_ + layout_.stacks + thread * layout_.stack_bytes;
    return {reinterpret_cast<T*>(base) + schedule_.contribution_at(f), d2, d2,
            std::max<int64_t>(1, d2)};
  }

  // Calls f(i, thread) for i in [0, count) on all threads, in any order.
  template <class F>
  void Share(int64_t count, const F& f) {
    ShareAmong(cores_, count, f);
  }
  // Calls f on `threads` threads of the full team. A smaller team would make libgomp end the other
  // threads, and it ends the process if it fails to create them again.
  template <class F>
  void ShareAmong(int threads, int64_t count, const F& f) {
    if (threads == 1 || count <= 1) {
      for (int64_t i = 0; i < count; ++i) f(i, 0);
      return;
    }
    std::atomic<int64_t> next = 0;
#pragma omp parallel num_threads(cores_)
    {
      const int thread = omp_get_thread_num();
      if (thread < threads) {
        for (int64_t i = next++; i < count; i = next++) f(i, thread);
      }
    }
  }

  void DoUnits(std::vector<Findings>& found) {
    const std::vector<Schedule::Unit>& units = schedule_.units();
    ShareAmong(threads_, std::ssize(units), [&](int64_t u, int thread) {
      for (int64_t s = units[u].begin; s < units[u].end; ++s) {
        const Schedule::Subtree subtree = schedule_.subtrees()[s];
        for (int32_t f = subtree.begin; f < subtree.end; ++f) {
          if (stopped_) return;
          DoFront(f, thread, found[thread]);
        }
        ReportDone(subtree.begin, subtree.end);
        if (Stopped()) return;
      }
    });
  }

  // Assembles columns [begin, end) of the front's d1 + d2 columns: entries of A plus the children's
  // contributions.
  void Assemble(int64_t f, const FrontFactor<T>& front, const MatrixView<T>& contribution,
                int64_t begin, int64_t end, int thread) const {
    const int64_t d1 = front.panel.cols;
    const int64_t size = front.panel.rows;
    const int64_t own = std::min(d1, end);
    if (begin < own) std::fill_n(&front.panel(0, begin), (own - begin) * size, T{0});
    const int64_t later = std::max(d1, begin);
    if (later < end) {
      std::fill_n(&front.u12(0, later - d1), (end - later) * d1, T{0});
      std::fill_n(&contribution(0, later - d1), (end - later) * (size - d1), T{0});
    }
    T* const elements = reinterpret_cast<T*>(factor_);
    ForFrontEntries(analysis_, a_, positions_, f, begin, end,
                    [&](int64_t entry, int32_t column, int64_t target) {
                      elements[target] = Scaled(entry, column);
                    });
    for (int32_t c = analysis_.child_start[f]; c < analysis_.child_start[f + 1]; ++c) {
      AddChild(analysis_.child[c], front, contribution, begin, end, thread);
    }
  }

  void AddChild(int64_t child, const FrontFactor<T>& front, const MatrixView<T>& contribution,
                int64_t begin, int64_t end, int thread) const {
    const int64_t count = analysis_.bordered(child);
    if (count == 0) return;
    const int64_t d1 = front.panel.cols;
    const int32_t* const place = analysis_.place_in_parent.data() + analysis_.border_start[child];
    const MatrixView<T> from = Contribution(child, thread);
    const int64_t above = std::lower_bound(place, place + count, d1) - place;
    const int64_t first = std::lower_bound(place, place + count, begin) - place;
    const bool dense = place[count - 1] - place[0] == count - 1;
    for (int64_t j = first; j < count && place[j] < end; ++j) {
      const T* const x = &from(0, j);
      if (place[j] < d1) {
        Add(x, place, 0, count, &front.panel(0, place[j]), dense);
      } else {
        Add(x, place, 0, above, &front.u12(0, place[j] - d1), dense);
        Add(x, place, above, count, &contribution(0, place[j] - d1) - d1, dense);
      }
    }
  }

  // y[place[i]] += x[i] for i in [begin, end). `dense`: the places are consecutive.
  static void Add(const T* x, const int32_t* place, int64_t begin, int64_t end, T* y, bool dense) {
    if (begin == end) return;
    if (dense) {
      T* const at = y + place[begin];
      for (int64_t i = begin; i < end; ++i) at[i - begin] += x[i];
      return;
    }
    for (int64_t i = begin; i < end; ++i) y[place[i]] += x[i];
  }

  void DoFront(int64_t f, int thread, Findings& found) {
    const FrontFactor<T> front = FrontAt<T>(analysis_, factor_, f);
    const MatrixView<T> contribution = Contribution(f, thread);
    const int64_t d1 = front.panel.cols;
    const int64_t d2 = front.u12.cols;
    Assemble(f, front, contribution, 0, d1 + d2, thread);
    if (analysis_.is_kept(f)) return;
    Real* const smallest = smallest_ + analysis_.first_position[f];
    PivotCount count;
    EliminateColumns(front.panel, d1, smallest, front.ipiv, count);
    if (d2 > 0) {
      ExchangeRows(front.ipiv, d1, front.u12);
      const MatrixView<T> l11 = Block(front.panel, 0, 0, d1, d1);
      SolveLower(l11, front.u12);
      Subtract(Block(front.panel, d1, 0, d2, d1), front.u12, contribution);
    }
    Examine(f, front, smallest, count, found);
  }

  // DoFront() on all threads, tile by tile.
  void DoTiledFront(int64_t f, Findings& found) {
    const FrontFactor<T> front = FrontAt<T>(analysis_, factor_, f);
    const MatrixView<T> contribution = Contribution(f, 0);
    const int64_t d1 = front.panel.cols;
    const int64_t d2 = front.u12.cols;
    ForTiles(d1 + d2,
             [&](int64_t begin, int64_t end) { Assemble(f, front, contribution, begin, end, 0); });
    if (analysis_.is_kept(f)) return;
    Real* const smallest = smallest_ + analysis_.first_position[f];
    PivotCount count;
    EliminateByTiles(Block(front.panel, 0, 0, d1, d1), smallest, front.ipiv, count);
    const MatrixView<T> l11 = Block(front.panel, 0, 0, d1, d1);
    // U12 by columns and L21 by rows in one parallel loop.
    const int64_t tiles = (d2 + kTile - 1) / kTile;
    Share(2 * tiles, [&](int64_t i, int) {
      const int64_t begin = i / 2 * kTile;
      const int64_t count_of_tile = std::min(kTile, d2 - begin);
      if (Stopped()) return;
      if (i % 2 == 0) {
        const MatrixView<T> columns = Block(front.u12, 0, begin, d1, count_of_tile);
        ExchangeRows(front.ipiv, d1, columns);
        TriangularSolve(CblasLeft, CblasLower, CblasUnit, l11, columns);
      } else {
        TriangularSolve(CblasRight, CblasUpper, CblasNonUnit, l11,
                        Block(front.panel, d1 + begin, 0, count_of_tile, d1));
      }
    });
    SubtractByTiles(Block(front.panel, d1, 0, d2, d1), front.u12, contribution);
    if (!stopped_) Examine(f, front, smallest, count, found);
  }

  // Factors F11 of a tiled front.
  void EliminateByTiles(const MatrixView<T>& a, Real* smallest, int32_t* ipiv, PivotCount& count) {
    constexpr int64_t kBlock = 96;
    for (int64_t k = 0; k < a.cols && !Stopped(); k += kBlock) {
      const int64_t width = std::min(kBlock, a.cols - k);
      const int64_t below = a.rows - k;
      const MatrixView<T> panel = Block(a, k, k, below, width);
      EliminateColumns(panel, below, smallest + k, ipiv + k, count);
      const int64_t right = a.cols - k - width;
      ExchangeRows(ipiv + k, width, Block(a, k, 0, below, k));
      ForTiles(right, [&](int64_t begin, int64_t end) {
        const MatrixView<T> columns = Block(a, k, k + width + begin, below, end - begin);
        ExchangeRows(ipiv + k, width, columns);
        const MatrixView<T> u = Block(columns, 0, 0, width, end - begin);
        TriangularSolve(CblasLeft, CblasLower, CblasUnit, Block(panel, 0, 0, width, width), u);
        SubtractProduct(Block(panel, width, 0, below - width, width), u,
                        Block(columns, width, 0, below - width, end - begin));
      });
      for (int64_t d = k; d < k + width; ++d) ipiv[d] += static_cast<int32_t>(k);
    }
  }

  template <class F>
  void ForTiles(int64_t count, const F& f) {
    Share((count + kTile - 1) / kTile, [&](int64_t i, int) {
      if (!Stopped()) f(i * kTile, std::min(count, (i + 1) * kTile));
    });
  }

  void SubtractByTiles(const MatrixView<T>& a, const MatrixView<T>& b, const MatrixView<T>& c) {
    const int64_t across = (c.cols + kTile - 1) / kTile;
    constexpr int64_t kHigh = 4 * kTile;
    const int64_t down = (c.rows + kHigh - 1) / kHigh;
    Share(across * down, [&](int64_t i, int) {
      if (Stopped()) return;
      const int64_t row = i % down * kHigh;
      const int64_t col = i / down * kTile;
      const int64_t rows = std::min(kHigh, c.rows - row);
      const int64_t cols = std::min(kTile, c.cols - col);
      SubtractProduct(Block(a, row, 0, rows, a.cols), Block(b, 0, col, b.rows, cols),
                      Block(c, row, col, rows, cols));
    });
  }

  void Examine(int64_t f, const FrontFactor<T>& front, Real* smallest, const PivotCount& count,
               Findings& found) const {
    Findings here;
    here.count = count;
    here.largest =
        std::max(LargestOfUpper(front.panel, here.finite), LargestOf(front.u12, here.finite));
    for (int64_t k = 0; count.zeros > 0 && k < front.panel.cols; ++k) {
      if (!(smallest[k] == -std::numeric_limits<Real>::infinity())) continue;
      const T* const x = &front.panel(0, k);
      const bool empty =
          std::all_of(x + k + 1, x + EliminatedRows(f), [](T v) { return v == T{0}; });
      if (empty && here.info == 0) here.info = analysis_.first_position[f] + k + 1;
    }
    const int64_t d1 = front.panel.cols;
    MarkLargeColumns(Block(front.panel, d1, 0, EliminatedRows(f) - d1, d1),
                     LargestMultiplier(analysis_), smallest);
    Join(here, found);
  }

  // Number of the front's rows that are eliminated, by this front or a later one.
  int64_t EliminatedRows(int64_t f) const {
    const auto begin = analysis_.border.begin() + analysis_.border_start[f];
    const auto end = analysis_.border.begin() + analysis_.border_start[f + 1];
    return analysis_.eliminated(f) +
           (std::lower_bound(begin, end, analysis_.n - analysis_.kept) - begin);
  }

  NumericFindings ToNumericFindings(const Findings& all) const {
    return {.info = all.info,
            .perturbed = all.count.perturbed,
            .interchanges = all.count.interchanges,
            .negative = all.count.negative,
            .max_abs = max_abs_,
            .largest = all.largest,
            .finite = all.finite};
  }

  const Analysis& analysis_;
  const Schedule& schedule_;
  const SparseView<Source> a_;
  std::byte* const factor_;
  const NumericWorkspace layout_;
  const int threads_;  // threads that have a stack
  std::byte* const workspace_;
  Real* const smallest_;
  Positions positions_;
  const int cores_;
  const StopRequested stop_;
  DeviceReport* const report_;
  std::atomic<int64_t> done_ = 0;
  std::atomic<bool> stopped_ = false;
  double max_abs_ = 0;
};

}  // namespace

size_t MultifrontalFactorBytes(const Analysis& analysis, DType dtype) {
  return MultifrontalLayout(analysis, dtype).bytes;
}

size_t MultifrontalWorkspaceBytes(const Executor& executor, const Analysis& analysis, DType dtype,
                                  size_t most) {
  const int all = WidthOf(analysis) == Width::kAllCores ? executor.budget().total() : 1;
  const Schedule schedule(analysis);
  const size_t of_schedule = Schedule::Bytes(analysis);
  const int threads = NumericWorkspace(analysis, schedule, dtype, all)
                          .ThreadsWithin(most - std::min(most, of_schedule), all);
  return NumericWorkspace(analysis, schedule, dtype, threads).bytes + of_schedule;
}

absl::StatusOr<NumericSummary> FactorMultifrontal(
    Executor& executor, const Analysis& analysis, const AnySparse& a, DType dtype,
    std::span<std::byte> factor, std::span<std::byte> workspace, StopRequested stop,
    std::vector<int32_t>* postponable, DeviceReport* report) {
  CROUT_RETURN_IF_ERROR(CheckFits(analysis, a, dtype));
  const Schedule schedule(analysis);
  absl::StatusOr<NumericFindings> found = absl::InternalError("");
  executor.Run(WidthOf(analysis), [&](int cores) {
    DispatchDType(dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      DispatchDType(a.dtype, [&](auto source_tag) {
        using Source = typename decltype(source_tag)::type;
        if constexpr (kIsComplex<T> == kIsComplex<Source>) {
          Numeric<T, Source> numeric(analysis, schedule, a, factor, workspace, cores, stop, report);
          found = numeric.Run(postponable);
        }
      });
    });
  });
  CROUT_RETURN_IF_ERROR(found.status());
  return Summarize(analysis, *found, dtype, [&a] { return IsSymmetric(a); });
}

}  // namespace crout::host
