// SPDX-License-Identifier: Apache-2.0

// One run of the iterative Crout method on the host.
#ifndef CROUT_KERNELS_HOST_ICM_ICM_RUN_H_
#define CROUT_KERNELS_HOST_ICM_ICM_RUN_H_

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/execution_context.h"
#include "kernels/host/crout/elimination_panel.h"
#include "kernels/host/icm/section_run.h"
#include "kernels/host/icm/section_sweeps.h"
#include "kernels/icm/run_record.h"
#include "kernels/scalar.h"
#include "kernels/stop_requested.h"

namespace crout::host {

template <class T>
struct IcmOptions {
  PivotCriterion criterion;
  Tolerances<RealPart<T>> tolerances;
  int64_t sweep_limit = 0;
  int cores = 1;
};

// Memory for a run.
template <class T>
struct IcmBuffers {
  MatrixView<T> lu;     // n x n: on entry the estimate, on exit L and U
  MatrixView<T> a;      // n x n: on entry A in the estimate's row order; overwritten
  T* next = nullptr;    // size * size elements
  T* strips = nullptr;  // size * kSweepTile elements per core
};

template <class T>
class IcmRun {
 public:
  // `permutation` is the row permutation of A: on entry the estimate's; pivots are composed with
  // it. `record` has its grid set and its counts zero.
  IcmRun(const IcmBuffers<T>& buffers, std::vector<int64_t>& permutation,
         const IcmOptions<T>& options, DeviceReport& report, StopRequested stop, RunRecord& record)
      : lu_(buffers.lu),
        a_(buffers.a),
        buffers_(buffers),
        permutation_(permutation),
        options_(options),
        report_(report),
        record_(record),
        grid_(record.grid),
        run_(record, options.sweep_limit, options.cores, stop) {}

  // Returns LAPACK's info. If info = k > 0, columns after k are unfinished: without l_kk there is
  // no row k of U with the unit diagonal.
  int64_t Run() {
    return run_.Run([this](int64_t d) { return RunSection(d); });
  }

 private:
  using Ending = SectionRun::Ending;

  // Processes diagonal section d and the sections below and right of it, then subtracts their
  // products from the rest of A.
  int64_t RunSection(int64_t d) {
    const int64_t begin = grid_.begin(d);
    const int64_t end = grid_.end(d);
    report_.ReportColumns(begin);
    int64_t final = begin;      // rows of U and columns of L before this are final
    int64_t undecided = begin;  // no pivot before this is bad
    while (true) {
      int64_t bad = FirstBad(undecided, end);
      if (const int64_t info = SweepDiagonal(d, final, undecided, bad)) return info;
      if (!run_.going()) return 0;
      SweepSectionsBelow(d, final, std::min(bad + 1, end));
      if (!run_.going()) return 0;
      bad = FirstBadOfAllRows(undecided, std::min(bad, end), bad);
      if (bad == end) break;
      if (!Pivot(d, bad)) return bad + 1;
      Advance(final, bad, end);
      final = bad;
      undecided = bad + 1;
    }
    for (int64_t j = begin; j < end; ++j) {
      if (lu_(j, j) == T{0}) return j + 1;
    }
    SweepSectionsRight(d);
    if (run_.going()) SubtractFrom(end, begin, end, end, lu_.cols);
    return 0;
  }

  // Sweeps until nothing changes. On exit `bad` is the mask of the last sweep. Returns k + 1 if a
  // final l_kk is zero and a u_kj was divided by it; otherwise 0.
  int64_t SweepDiagonal(int64_t d, int64_t final, int64_t undecided, int64_t& bad) {
    const int64_t end = grid_.end(d);
    const int64_t order = end - final;
    DiagonalSweep<T> sweep(Block(a_, final, final, order, order),
                           Block(lu_, final, final, order, order), buffers_.next,
                           options_.tolerances, options_.cores);
    Ending ending;
    int64_t first = 0;
    while (run_.CountSweep(d, d, ending)) {
      const SweepResult result = sweep.Run(bad - final, first);
      if (result.not_finite <= first) {
        const int64_t row = final + result.row;
        if (result.row < result.column && lu_(row, row) == T{0}) return row + 1;
        ending = {RunOutcome::kNotFinite, row, final + result.column};
        break;
      }
      const int64_t swept_with = std::exchange(bad, FirstBad(undecided, end));
      if (result.converged() && bad == swept_with) break;
      // Elements the mask hid must still be swept.
      first = std::min(result.first_change, 2 * (swept_with - final) + 1);
    }
    run_.Conclude(ending);
    return 0;
  }

  // Sweeps columns [left, right) of the sections below section (d, d).
  void SweepSectionsBelow(int64_t d, int64_t left, int64_t right) {
    const int64_t width = right - left;
    const MatrixView<T> u = Block(lu_, left, left, width, width);
    run_.ForSectionsAfter(d, [&](int64_t i, int64_t core) {
      const int64_t row = grid_.begin(i);
      const int64_t rows = grid_.end(i) - row;
      return Iterate(i, d, row, left, [&](int64_t first) {
        return SweepBelow(Block(a_, row, left, rows, width), u, Block(lu_, row, left, rows, width),
                          Strip(core), options_.tolerances, first);
      });
    });
  }

  void SweepSectionsRight(int64_t d) {
    const int64_t row = grid_.begin(d);
    const int64_t rows = grid_.end(d) - row;
    const MatrixView<T> l = Block(lu_, row, row, rows, rows);
    run_.ForSectionsAfter(d, [&](int64_t j, int64_t core) {
      const int64_t left = grid_.begin(j);
      const int64_t width = grid_.end(j) - left;
      return Iterate(d, j, row, left, [&](int64_t first) {
        return SweepRight(Block(a_, row, left, rows, width), l, Block(lu_, row, left, rows, width),
                          Strip(core), options_.tolerances, first);
      });
    });
  }

  T* Strip(int64_t core) const { return buffers_.strips + core * grid_.size * kSweepTile; }

  // Sweeps section (i, j) from element (row, column) on until nothing changes.
  template <class Sweep>
  Ending Iterate(int64_t i, int64_t j, int64_t row, int64_t column, const Sweep& sweep) {
    Ending ending;
    int64_t first = 0;
    while (run_.CountSweep(i, j, ending)) {
      const SweepResult result = sweep(first);
      if (result.converged()) break;
      if (result.not_finite <= first) {
        return {RunOutcome::kNotFinite, row + result.row, column + result.column};
      }
      first = result.first_change;
    }
    return ending;
  }

  // Largest |l_ij| (Abs1) over i in [j, bottom). Ignores NaN.
  RealPart<T> LargestInColumn(int64_t j, int64_t bottom) const {
    RealPart<T> largest = 0;
    for (int64_t i = j; i < bottom; ++i) {
      if (Abs1(lu_(i, j)) > largest) largest = Abs1(lu_(i, j));
    }
    return largest;
  }

  bool Bad(int64_t j, int64_t bottom) const {
    const bool compares = options_.criterion.rule == PivotRule::kThreshold;
    return IsBad(options_.criterion, Abs1(lu_(j, j)), compares ? LargestInColumn(j, bottom) : 0);
  }

  // First bad pivot in [from, end), judged by the candidates within the section; `end` if none.
  int64_t FirstBad(int64_t from, int64_t end) const {
    for (int64_t j = from; j < end; ++j) {
      if (Bad(j, end)) return j;
    }
    return end;
  }

  // First bad pivot in [from, to), judged by all candidates, which are final; `otherwise` if none.
  int64_t FirstBadOfAllRows(int64_t from, int64_t to, int64_t otherwise) const {
    for (int64_t j = from; j < to; ++j) {
      if (Bad(j, lu_.rows)) return j;
    }
    return otherwise;
  }

  // Exchanges row k with the row of the largest candidate in column k. Returns false if all
  // candidates are zero.
  bool Pivot(int64_t d, int64_t k) {
    const int64_t p = LargestRow(&lu_(0, k), k, lu_.rows);
    if (lu_(p, k) == T{0}) return false;
    ++record_.bad_elements()[d];
    if (p == k) return true;
    for (int64_t j = 0; j < lu_.cols; ++j) {
      std::swap(lu_(k, j), lu_(p, j));
      std::swap(a_(k, j), a_(p, j));
    }
    std::swap(permutation_[k], permutation_[p]);
    ++record_.pivots()[d];
    return true;
  }

  // Subtracts the products of steps [from, to) from the rest of the section's columns. Column `to`
  // of L is final and is copied bit by bit, so that later sweeps do not change it.
  void Advance(int64_t from, int64_t to, int64_t end) {
    SubtractFrom(to, from, to, to, end);
    std::copy(&lu_(to, to), &lu_(0, to) + lu_.rows, &a_(to, to));
  }

  // a[top:, left:right] -= L[top:, from:to] U[from:to, left:right]
  void SubtractFrom(int64_t top, int64_t from, int64_t to, int64_t left, int64_t right) {
    SubtractProduct(Block(lu_, top, from, lu_.rows - top, to - from),
                    Block(lu_, from, left, to - from, right - left),
                    Block(a_, top, left, lu_.rows - top, right - left));
  }

  const MatrixView<T> lu_;
  const MatrixView<T> a_;
  const IcmBuffers<T> buffers_;
  std::vector<int64_t>& permutation_;
  const IcmOptions<T> options_;
  DeviceReport& report_;
  RunRecord& record_;
  const SectionGrid grid_;
  SectionRun run_;
};

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_ICM_ICM_RUN_H_
