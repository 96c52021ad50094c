// SPDX-License-Identifier: Apache-2.0

// Functions of crout.h for series.
#include "crout/series.h"

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "client/c/error.h"
#include "client/c/handles.h"
#include "client/c/matrices.h"

namespace crout::c {
namespace {

constexpr std::pair<crout_strategy, SeriesStrategy> kStrategies[] = {
    {CROUT_AUTO, SeriesStrategy::kAuto},
    {CROUT_REUSE, SeriesStrategy::kReuse},
    {CROUT_REFACTOR, SeriesStrategy::kRefactor},
    {CROUT_UPDATE, SeriesStrategy::kUpdate},
};

crout_strategy StrategyOf(SeriesStrategy strategy) {
  for (const auto& [ours, theirs] : kStrategies) {
    if (theirs == strategy) return ours;
  }
  return CROUT_AUTO;
}

absl::StatusOr<SeriesOptions> OptionsOf(const crout_series_options& given) {
  SeriesOptions options;
  const auto* const strategy =
      absl::c_find_if(kStrategies, [&](const auto& pair) { return pair.first == given.strategy; });
  if (strategy == std::end(kStrategies)) {
    return absl::InvalidArgumentError(absl::StrCat("no strategy has the number ", given.strategy));
  }
  options.strategy = strategy->second;
  const auto operation = OperationOf(given.transpose);
  if (!operation) {
    return absl::InvalidArgumentError(absl::StrCat("no operation is ", given.transpose));
  }
  options.operation = *operation;
  options.accuracy = given.accuracy;
  if (given.handle != nullptr) options.handle = given.handle;
  if (given.algorithm == nullptr) return options;
  const auto algorithm = AlgorithmOf(given.algorithm);
  if (!algorithm.ok()) return algorithm.status();
  options.factor.algorithm = *algorithm;
  return options;
}

// Copies the n x rank matrix V from column-major to row-major.
template <class T>
std::vector<T> ByRows(const T* v, int64_t n, int64_t rank) {
  std::vector<T> rows(static_cast<size_t>(n * rank));
  for (int64_t k = 0; k < rank; ++k) {
    for (int64_t i = 0; i < n; ++i) rows[i * rank + k] = v[i + k * n];
  }
  return rows;
}

// Converts a change. `last_digest`: the entry digest for new values without one.
absl::StatusOr<MatrixChange> ChangeOf(const crout_change* given, const std::string& last_digest) {
  if (given == nullptr) return absl::InvalidArgumentError("the change is null");
  const auto known = ReadStruct(given);
  if (!known.ok()) return known.status();
  const crout_change& change = *known;
  if (absl::Status status = CheckType(change.dtype); !status.ok()) return status;
  const bool by_entries = change.rows != nullptr && change.cols != nullptr;
  const int kinds = (by_entries ? 1 : 0) + (change.v != nullptr ? 1 : 0) + (change.of_text ? 1 : 0);
  if (kinds != 1 || (change.rows == nullptr) != (change.cols == nullptr)) {
    return absl::InvalidArgumentError("a change has rows and cols, or v, or of_text");
  }
  if (change.values == nullptr) return absl::InvalidArgumentError("the values are null");
  const int64_t columns = change.v == nullptr ? 1 : change.n;
  // The limit keeps products of sizes far below the range of int64_t.
  if (change.count < 1 || columns < 1 ||
      static_cast<__int128>(change.count) * columns > int64_t{1} << 56) {
    return absl::InvalidArgumentError(
        absl::StrCat("a change of ", change.count, " with n = ", change.n, " has no valid size"));
  }
  return WithType<MatrixChange>(change.dtype, change.values, [&](const auto* values) {
    using T = std::remove_const_t<std::remove_pointer_t<decltype(values)>>;
    const auto count = static_cast<size_t>(change.count);
    if (by_entries) {
      return MatrixChange::Entries<T>({change.rows, count}, {change.cols, count}, {values, count});
    }
    if (change.of_text != 0) {
      return MatrixChange::Values<T>(
          {values, count}, change.entry_digest == nullptr ? last_digest : change.entry_digest);
    }
    const std::vector<T> v = ByRows(static_cast<const T*>(change.v), change.n, change.count);
    return MatrixChange::LowRank<T>({values, v.size()}, v, change.n, change.count);
  });
}

crout_series_result Describe(const SeriesStep& step, const FactorDescription& factor) {
  crout_series_result result = {};
  result.backward_error = step.result.backward_error;
  result.accuracy = step.result.accuracy;
  result.amplification = step.result.amplification;
  result.age = step.result.age;
  result.strategy = StrategyOf(step.result.strategy.value_or(SeriesStrategy::kAuto));
  result.old_iterations = step.result.old_iterations;
  result.new_iterations = step.result.new_iterations;
  result.nearly_singular =
      absl::c_linear_search(step.result.warnings, Warning::kNearlySingular) ? 1 : 0;
  factor.handle.copy(result.handle, sizeof result.handle - 1);
  step.result.entry_digest.copy(result.entry_digest, sizeof result.entry_digest - 1);
  return result;
}

// Solves one step of a series. step(rhs, sink, x0) calls the right overload of Series::Step.
template <class Step>
int Solve(crout_series* series, const crout_matrix* b, void* x, int64_t ldx,
          crout_series_result* out, Step step) {
  if (series == nullptr) return Fail(CROUT_INVALID_ARGUMENT, "series is null");
  if (absl::Status status = CheckMatrix(b); !status.ok()) return ToCode(status);
  if (const auto known = ReadStruct(out); !known.ok()) return ToCode(known.status());
  if (absl::Status status = CheckPlace(*b, x, ldx); !status.ok()) return ToCode(status);
  StridedSink sink = SinkLike(*b, x, ldx);
  // The server receives the whole initial guess before it sends X.
  const MatrixSource x0 = SourceOf({.data = x,
                                    .dtype = b->dtype,
                                    .layout = b->layout,
                                    .rows = b->rows,
                                    .cols = b->cols,
                                    .ld = ldx});
  const absl::StatusOr<SeriesStep> solved =
      step(SourceOf(*b), &sink, series->starts_at_x ? &x0 : nullptr);
  if (!solved.ok()) return ToCode(solved.status());
  series->entry_digest = solved->result.entry_digest;
  if (!solved->result.solved) {
    return Fail(CROUT_SINGULAR, "the matrix of the step is singular: there is no X");
  }
  if (out != nullptr) WriteStruct(Describe(*solved, series->series.factor()), out);
  return CROUT_OK;
}

}  // namespace
}  // namespace crout::c

using crout::MatrixSource;
using crout::c::Fail;
using crout::c::Guarded;
using crout::c::ToCode;

int crout_series_open(crout_connection* connection, const crout_series_options* options,
                      crout_series** series) {
  return Guarded([&]() -> int {
    if (series == nullptr) return Fail(CROUT_INVALID_ARGUMENT, "series is null");
    *series = nullptr;
    if (connection == nullptr) return Fail(CROUT_INVALID_ARGUMENT, "connection is null");
    const auto copy = crout::c::ReadStruct(options);
    if (!copy.ok()) return ToCode(copy.status());
    auto made = crout::c::OptionsOf(*copy);
    if (!made.ok()) return ToCode(made.status());
    *series = new crout_series{crout::Series(connection->client, *std::move(made),
                                             crout::c::CallWith(connection->progress)),
                               copy->starts_at_x != 0, ""};
    if (copy->keep_factor != 0) (*series)->series.KeepFactor();
    return CROUT_OK;
  });
}

int crout_series_step(crout_series* series, const crout_matrix* a, const crout_matrix* b, void* x,
                      int64_t ldx, crout_series_result* result) {
  return Guarded([&]() -> int {
    if (a != nullptr) {
      if (absl::Status status = crout::c::CheckMatrix(a); !status.ok()) return ToCode(status);
    }
    return crout::c::Solve(
        series, b, x, ldx, result, [&](const MatrixSource& rhs, auto* sink, auto* x0) {
          return a == nullptr ? series->series.Step(rhs, sink, x0)
                              : series->series.Step(crout::c::SourceOf(*a), rhs, sink, x0);
        });
  });
}

int crout_series_text(crout_series* series, const char* text, size_t length, int32_t dtype,
                      const crout_matrix* b, void* x, int64_t ldx, crout_series_result* result) {
  return Guarded([&]() -> int {
    if (text == nullptr) return Fail(CROUT_INVALID_ARGUMENT, "text is null");
    if (absl::Status status = crout::c::CheckType(dtype); !status.ok()) return ToCode(status);
    // crout_dtype has the numbers of Dtype.
    const auto a = MatrixSource::MatrixMarket({text, length}, static_cast<crout::Dtype>(dtype));
    return crout::c::Solve(series, b, x, ldx, result,
                           [&](const MatrixSource& rhs, auto* sink, auto* x0) {
                             return series->series.Step(a, rhs, sink, x0);
                           });
  });
}

int crout_series_sparse(crout_series* series, const crout_sparse* a, const crout_matrix* b, void* x,
                        int64_t ldx, crout_series_result* result) {
  return Guarded([&]() -> int {
    const auto sparse = crout::c::SourceOf(a);
    if (!sparse.ok()) return ToCode(sparse.status());
    return crout::c::Solve(series, b, x, ldx, result,
                           [&](const MatrixSource& rhs, auto* sink, auto* x0) {
                             return series->series.Step(*sparse, rhs, sink, x0);
                           });
  });
}

int crout_series_change(crout_series* series, const crout_change* change, const crout_matrix* b,
                        void* x, int64_t ldx, crout_series_result* result) {
  return Guarded([&]() -> int {
    if (series == nullptr) return Fail(CROUT_INVALID_ARGUMENT, "series is null");
    const auto changed = crout::c::ChangeOf(change, series->entry_digest);
    if (!changed.ok()) return ToCode(changed.status());
    return crout::c::Solve(series, b, x, ldx, result,
                           [&](const MatrixSource& rhs, auto* sink, auto* x0) {
                             return series->series.Step(*changed, rhs, sink, x0);
                           });
  });
}

int crout_series_close(crout_series* series) {
  return Guarded([&]() -> int {
    const std::unique_ptr<crout_series> owned(series);
    return owned == nullptr ? CROUT_OK : ToCode(owned->series.Close());
  });
}
