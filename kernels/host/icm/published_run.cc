// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/icm/published_run.h"

#include <algorithm>
#include <complex>
#include <cstring>
#include <limits>
#include <utility>

#include "kernels/host/crout/elimination_panel.h"
#include "kernels/host/device/parallel_for.h"
#include "kernels/host/icm/section_run.h"
#include "kernels/host/ops/blas.h"
#include "kernels/host/ops/vector_clones.h"
#include "kernels/scalar.h"

namespace crout::host {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
constexpr int64_t kStepsAtOnce = 4;

CROUT_PART_OF_CLONES float Fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
CROUT_PART_OF_CLONES double Fused(double a, double b, double c) { return __builtin_fma(a, b, c); }

// c + a b with one rounding; for complex numbers, one rounding per fused multiply-add of the parts.
template <class Part>
CROUT_PART_OF_CLONES std::complex<Part> Fused(const std::complex<Part>& a,
                                              const std::complex<Part>& b,
                                              const std::complex<Part>& c) {
  return {Fused(-a.imag(), b.imag(), Fused(a.real(), b.real(), c.real())),
          Fused(a.imag(), b.real(), Fused(a.real(), b.imag(), c.imag()))};
}

// For rows i in [top, l.rows) and steps k in [first, min(last, i + ahead)), in ascending order of
// k: sum[i] += l(i, k) u[k].
template <class T>
CROUT_VECTOR_CLONES void AddSteps(const MatrixView<T>& l, const T* u, int64_t first, int64_t last,
                                  int64_t top, int64_t ahead, T* sum) {
  const int64_t rows = l.rows;
  int64_t k = first;
  for (; k + kStepsAtOnce <= last; k += kStepsAtOnce) {
    // First row that takes all four steps. Rows before it take some of them.
    const int64_t full = std::min(std::max(top, k + kStepsAtOnce - ahead), rows);
    for (int64_t i = std::max(top, k + 1 - ahead); i < full; ++i) {
      for (int64_t step = k; step < i + ahead; ++step) sum[i] = Fused(l(i, step), u[step], sum[i]);
    }
    const T* const l0 = &l(0, k);
    const T* const l1 = l0 + l.ld;
    const T* const l2 = l1 + l.ld;
    const T* const l3 = l2 + l.ld;
    const T u0 = u[k];
    const T u1 = u[k + 1];
    const T u2 = u[k + 2];
    const T u3 = u[k + 3];
#pragma omp simd
    for (int64_t i = full; i < rows; ++i) {
      sum[i] = Fused(l3[i], u3, Fused(l2[i], u2, Fused(l1[i], u1, Fused(l0[i], u0, sum[i]))));
    }
  }
  for (; k < last; ++k) {
    const T* const column = &l(0, k);
    const T factor = u[k];
#pragma omp simd
    for (int64_t i = std::max(top, k + 1 - ahead); i < rows; ++i) {
      sum[i] = Fused(column[i], factor, sum[i]);
    }
  }
}

// Result of sweeping a section. Each element has a depth and depends only on elements of smaller
// depth.
struct Found {
  bool converged = true;
  int64_t changed = kNever;     // least depth of an element whose bits changed
  int64_t not_finite = kNever;  // least depth of an Inf or NaN
  int64_t row = 0;              // its position in the matrix
  int64_t column = 0;

  // True if a final element is NaN or infinite. Elements no deeper than the first change are final,
  // and so are all elements once the section has converged.
  bool converged_to_nan() const {
    return not_finite != kNever && (converged || not_finite <= changed);
  }

  void Add(const Found& other) {
    converged = converged && other.converged;
    changed = std::min(changed, other.changed);
    if (other.not_finite < not_finite) {
      not_finite = other.not_finite;
      row = other.row;
      column = other.column;
    }
  }
};

template <class T>
class PublishedRun {
 public:
  PublishedRun(const PublishedBuffers<T>& buffers, std::vector<int64_t>& permutation,
               const PublishedOptions<T>& options, DeviceReport& report, StopRequested stop,
               RunRecord& record)
      : lu_(buffers.lu),
        a_(buffers.a),
        sums_(buffers.sums),
        next_(buffers.next),
        strips_(buffers.strips),
        permutation_(permutation),
        options_(options),
        report_(report),
        record_(record),
        grid_(record.grid),
        run_(record, options.sweep_limit, options.cores, stop) {}

  int64_t Run() {
    return run_.Run([this](int64_t d) { return RunSection(d); });
  }

 private:
  using Ending = SectionRun::Ending;

  int64_t RunSection(int64_t d) {
    const int64_t begin = grid_.begin(d);
    const int64_t end = grid_.end(d);
    report_.ReportColumns(begin);
    int64_t final = begin;  // steps before this are in `sums_`
    int64_t start = begin;  // the search for bad elements starts here
    while (true) {
      int64_t bad = end;
      int64_t steps = final;
      if (const int64_t info = SweepDiagonal(d, final, start, bad, steps)) return info;
      if (run_.going()) SweepBelow(d, final, std::min(bad + 1, end), steps);
      if (!run_.going()) return 0;
      if (bad == end) break;
      if (!Pivot(d, bad)) return bad + 1;
      if (bad + 1 == end) break;  // no column left that the pivot could change
      if (IsBadAt(bad)) start = bad + 1;
      AddToSums(steps, final, steps, steps, end);
      final = steps;
    }
    for (int64_t j = begin; j < end; ++j) {
      if (lu_(j, j) == T{0}) return j + 1;
    }
    SweepRight(d);
    if (!run_.going()) return 0;
    // `sums_` has the steps before `final` for this section's columns, and none for later columns.
    AddToSums(end, begin, end, end, lu_.cols);
    return 0;
  }

  // Sweeps until the section has converged. On exit `bad` is its first bad element, or the
  // section's end if there is none, and the steps before `steps` have their final bits. If a final
  // l_kk is zero and a u_kj was divided by it, returns k + 1; otherwise 0.
  int64_t SweepDiagonal(int64_t d, int64_t final, int64_t start, int64_t& bad, int64_t& steps) {
    const int64_t begin = grid_.begin(d);
    const int64_t end = grid_.end(d);
    Ending ending;
    bad = FirstBad(start, end);
    while (run_.CountSweep(d, d, ending)) {
      const Found found = SweepDiagonalOnce(begin, end, final, bad, steps);
      // The elements that the mask leaves out start at depth 2 bad + 1.
      const int64_t depth = std::min(found.changed, 2 * (bad - begin));
      if (found.not_finite <= depth || found.converged_to_nan()) {
        if (found.row < found.column && lu_(found.row, found.row) == T{0}) return found.row + 1;
        ending = {RunOutcome::kNotFinite, found.row, found.column};
        break;
      }
      steps = std::max(steps, begin + (depth + 1) / 2);
      bad = FirstBad(start, end);
      if (found.converged) break;
    }
    run_.Conclude(ending);
    return 0;
  }

  // Runs one sweep, leaving out the steps before `from`, which are final. With 0-based indices
  // within the section, l_ij has depth 2 j and u_ij depth 2 i + 1.
  Found SweepDiagonalOnce(int64_t begin, int64_t end, int64_t final, int64_t bad, int64_t from) {
    const int64_t order = end - begin;
    const MatrixView<T> x = Block(lu_, begin, begin, order, order);
    const auto bottom = [&](int64_t j) { return begin + j > bad ? bad - begin : order; };
    const int64_t top = from - begin;
    ParallelFor(options_.cores, order - top, [&](int64_t column) {
      const int64_t j = top + column;
      const int64_t rows = bottom(j);
      if (rows <= top) return;
      T* const now = &next_(0, j);
      std::copy(&sums_(from, begin + j), &sums_(begin, begin + j) + rows, now + top);
      AddSteps(Block(x, 0, 0, rows, order), &x(0, j), final - begin, std::min(j, rows), top, 0,
               now);
      for (int64_t i = top; i < rows; ++i) {
        now[i] = a_(begin + i, begin + j) - now[i];
        if (i < j) now[i] /= x(i, i);
      }
    });
    std::vector<Found> found(order - top);
    ParallelFor(options_.cores, order - top, [&](int64_t column) {
      const int64_t j = top + column;
      const int64_t rows = bottom(j);
      for (int64_t i = top; i < rows; ++i) {
        Accept(next_(i, j), i < j ? 2 * i + 1 : 2 * j, begin + i, begin + j, found[column]);
      }
    });
    Found all;
    for (const Found& one : found) all.Add(one);
    return all;
  }

  // Sweeps the columns before `right` of the sections below section d. Reduces `steps` to the steps
  // that are final there too.
  void SweepBelow(int64_t d, int64_t final, int64_t right, int64_t& steps) {
    std::vector<int64_t> reached(grid_.count(), kNever);
    run_.ForSectionsAfter(d, [&](int64_t i, int64_t core) {
      T* const strip = Strip(core);
      const int64_t row = grid_.begin(i);
      const int64_t rows = grid_.end(i) - row;
      const MatrixView<T> l = Block(lu_, row, 0, rows, right);
      Ending ending;
      int64_t from = final;
      while (run_.CountSweep(i, d, ending)) {
        Found found;
        // Each column depends only on earlier columns, so sweeping from last to first works in
        // place.
        for (int64_t j = right - 1; j >= from; --j) {
          std::copy_n(&sums_(row, j), rows, strip);
          AddSteps(l, &lu_(0, j), final, j, 0, right, strip);
          for (int64_t r = 0; r < rows; ++r)
            Accept(a_(row + r, j) - strip[r], j, row + r, j, found);
        }
        if (found.converged_to_nan()) {
          return Ending{RunOutcome::kNotFinite, found.row, found.column};
        }
        from = std::max(from, std::min(found.changed, right - 1));
        if (found.converged) {
          reached[i] = found.changed;
          break;
        }
      }
      return ending;
    });
    for (const int64_t column : reached) steps = std::max(final, std::min(steps, column));
  }

  void SweepRight(int64_t d) {
    const int64_t begin = grid_.begin(d);
    const int64_t order = grid_.end(d) - begin;
    const MatrixView<T> l = Block(lu_, begin, begin, order, order);
    run_.ForSectionsAfter(d, [&](int64_t s, int64_t core) {
      T* const strip = Strip(core);
      Ending ending;
      int64_t top = 0;
      while (run_.CountSweep(d, s, ending)) {
        Found found;
        for (int64_t j = grid_.begin(s); j < grid_.end(s); ++j) {
          std::copy(&sums_(begin + top, j), &sums_(begin, j) + order, strip + top);
          AddSteps(l, &lu_(begin, j), 0, order, top, 0, strip);
          for (int64_t i = top; i < order; ++i) {
            Accept((a_(begin + i, j) - strip[i]) / l(i, i), i, begin + i, j, found);
          }
        }
        if (found.converged_to_nan()) {
          return Ending{RunOutcome::kNotFinite, found.row, found.column};
        }
        if (found.converged) break;
        top = std::max(top, std::min(found.changed, order - 1));
      }
      return ending;
    });
  }

  T* Strip(int64_t core) const { return strips_ + core * grid_.size; }

  // lu(i, j) := now; records changes and non-finite values in `found`.
  void Accept(const T now, int64_t depth, int64_t i, int64_t j, Found& found) {
    T& x = lu_(i, j);
    if (std::memcmp(&x, &now, sizeof(T)) != 0) {
      found.changed = std::min(found.changed, depth);
      if (HasChanged(x, now)) found.converged = false;
      x = now;
    }
    if (!IsFinite(now) && depth < found.not_finite) {
      found.not_finite = depth;
      found.row = i;
      found.column = j;
    }
  }

  // A NaN change counts as no change, as published.
  bool HasChanged(const T& before, const T& now) const {
    const auto& [relative, absolute] = options_.tolerances;
    return Abs1(now - before) > (relative == 0 ? absolute : absolute + relative * Abs1(now));
  }

  bool IsBadAt(int64_t j) const {
    return IsBad(options_.criterion, static_cast<double>(Abs1(lu_(j, j))), 0);
  }

  int64_t FirstBad(int64_t from, int64_t end) const {
    for (int64_t j = from; j < end; ++j) {
      if (IsBadAt(j)) return j;
    }
    return end;
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
      std::swap(sums_(k, j), sums_(p, j));
    }
    std::swap(permutation_[k], permutation_[p]);
    ++record_.pivots()[d];
    return true;
  }

  // sums[top:, left:right] += L[top:, from:to] U[from:to, left:right]
  void AddToSums(int64_t top, int64_t from, int64_t to, int64_t left, int64_t right) {
    if (from == to) return;
    ParallelFor(options_.cores, right - left, [&](int64_t column) {
      const int64_t j = left + column;
      AddSteps(lu_, &lu_(0, j), from, to, top, 0, &sums_(0, j));
    });
  }

  const MatrixView<T> lu_;
  const MatrixView<T> a_;
  const MatrixView<T> sums_;
  const MatrixView<T> next_;
  T* const strips_;
  std::vector<int64_t>& permutation_;
  const PublishedOptions<T> options_;
  DeviceReport& report_;
  RunRecord& record_;
  const SectionGrid grid_;
  SectionRun run_;
};

}  // namespace

template <class T>
int64_t RunPublished(const PublishedBuffers<T>& buffers, std::vector<int64_t>& permutation,
                     const PublishedOptions<T>& options, DeviceReport& report, StopRequested stop,
                     RunRecord& record) {
  return PublishedRun<T>(buffers, permutation, options, report, stop, record).Run();
}

template int64_t RunPublished(const PublishedBuffers<float>&, std::vector<int64_t>&,
                              const PublishedOptions<float>&, DeviceReport&, StopRequested,
                              RunRecord&);
template int64_t RunPublished(const PublishedBuffers<double>&, std::vector<int64_t>&,
                              const PublishedOptions<double>&, DeviceReport&, StopRequested,
                              RunRecord&);
template int64_t RunPublished(const PublishedBuffers<std::complex<float>>&, std::vector<int64_t>&,
                              const PublishedOptions<std::complex<float>>&, DeviceReport&,
                              StopRequested, RunRecord&);
template int64_t RunPublished(const PublishedBuffers<std::complex<double>>&, std::vector<int64_t>&,
                              const PublishedOptions<std::complex<double>>&, DeviceReport&,
                              StopRequested, RunRecord&);

}  // namespace crout::host
