// SPDX-License-Identifier: Apache-2.0

// Functions of crout.h for factors, except crout_?getrf and crout_?getrs.
#include "crout/factor.h"

#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/c/error.h"
#include "client/c/handles.h"
#include "client/c/matrices.h"

namespace crout::c {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

absl::Status ReadOptions(const crout_factorize_options& given, FactorOptions* options,
                         CacheOptions* cache) {
  if (given.name != nullptr) cache->name = given.name;
  if (given.algorithm != nullptr) {
    const auto algorithm = AlgorithmOf(given.algorithm);
    if (!algorithm.ok()) return algorithm.status();
    options->algorithm = *algorithm;
  }
  if (!(given.lease >= 0) || std::isinf(given.lease)) {
    return absl::InvalidArgumentError("the lease is negative or not a number of seconds");
  }
  cache->lease = absl::Seconds(given.lease);
  cache->pin = given.pin != 0;
  cache->durable = given.durable != 0;
  options->condition = given.condition != 0;
  options->pivot_threshold = given.pivot_threshold;
  if (given.precision == nullptr) return absl::OkStatus();
  options->precision = FromName<Precision>(absl::AsciiStrToLower(given.precision));
  if (!options->precision) {
    return absl::InvalidArgumentError(absl::StrCat(
        "no precision is '", given.precision, "': choose single, tf32 or auto, or leave it null"));
  }
  return absl::OkStatus();
}

// The function that a call's own options name, otherwise the connection's.
ProgressFunction Chosen(crout_progress_function call, void* context,
                        const ProgressFunction& connection) {
  return call != nullptr ? ProgressFunction{call, context} : connection;
}

crout_description Describe(const FactorDescription& factor) {
  crout_description description = {};
  description.n = factor.n;
  description.version = factor.version;
  description.info = factor.info;
  description.rcond = factor.rcond.value_or(kNan);
  description.pivot_growth = factor.pivot_growth;
  description.quality = factor.quality.value_or(kNan);
  description.norm_one = factor.norm_one;
  factor.handle.copy(description.handle, sizeof description.handle - 1);
  description.warnings = BitsOf(factor.warnings);
  description.lu_entries = factor.sparse ? factor.sparse->lu_entries : 0;
  return description;
}

// `a`: the source of the matrix, or the error of its conversion.
int Factorize(crout_connection* connection, const absl::StatusOr<MatrixSource>& a,
              const crout_factorize_options* options, crout_factor** factor) {
  if (factor == nullptr) return Fail(CROUT_INVALID_ARGUMENT, "factor is null");
  *factor = nullptr;
  if (connection == nullptr) return Fail(CROUT_INVALID_ARGUMENT, "connection is null");
  if (!a.ok()) return ToCode(a.status());
  const auto copy = ReadStruct(options);
  if (!copy.ok()) return ToCode(copy.status());
  FactorOptions how;
  CacheOptions cache;
  if (absl::Status status = ReadOptions(*copy, &how, &cache); !status.ok()) return ToCode(status);
  return ToCode(MakeFactor(*connection, *a, how, cache, {copy->progress, copy->progress_context},
                           copy->refactor_if_lost != 0 ? OnLost::kRefactor : OnLost::kFail,
                           factor));
}

int Refactorize(crout_factor* factor, const absl::StatusOr<MatrixSource>& a) {
  if (factor == nullptr) return Fail(CROUT_INVALID_ARGUMENT, "factor is null");
  if (!a.ok()) return ToCode(a.status());
  return ToCode(
      factor->factor.Refactor(*a, {.factor = factor->options}, CallWith(factor->progress)));
}

absl::Status Solve(const crout_factor& factor, const crout_matrix& b,
                   const crout_solve_options* given, void* x, int64_t ldx,
                   crout_solve_result* out) {
  const auto copy = ReadStruct(given);
  if (!copy.ok()) return copy.status();
  if (const auto known = ReadStruct(out); !known.ok()) return known.status();
  if (absl::Status place = CheckPlace(b, x, ldx); !place.ok()) return place;
  SolveOptions options;
  const auto operation = OperationOf(copy->transpose);
  if (!operation) {
    return absl::InvalidArgumentError(absl::StrCat("no operation is ", copy->transpose));
  }
  options.operation = *operation;
  options.max_refinement_steps = copy->max_refinement_steps;
  options.error_bound = copy->error_bound != 0;
  options.verify = copy->skip_verification == 0;
  StridedSink sink = SinkLike(b, x, ldx);
  const auto solved = factor.factor.Solve(
      SourceOf(b), options, &sink,
      CallWith(Chosen(copy->progress, copy->progress_context, factor.progress)));
  if (!solved.ok()) return solved.status();
  crout_solve_result result = {};
  result.backward_error = solved->backward_error.value_or(kNan);
  result.forward_error_bound = solved->forward_error_bound.value_or(kNan);
  result.factor_version = solved->factor_version;
  result.refinement_steps = solved->refinement_steps;
  result.warnings = BitsOf(solved->warnings);
  if (out != nullptr) WriteStruct(result, out);
  return absl::OkStatus();
}

}  // namespace

// Bit k of crout_warning is number k of Warning.
int32_t BitsOf(const std::vector<Warning>& warnings) {
  constexpr uint32_t kKnown = CROUT_WARNING_POOR_FACTOR | CROUT_WARNING_NOT_ACCURATE |
                              CROUT_WARNING_NEARLY_SINGULAR | CROUT_WARNING_PERTURBED_RCOND;
  uint32_t bits = 0;
  for (const Warning warning : warnings) {
    const int number = static_cast<int>(warning);
    if (number > 0 && number < 31) bits |= uint32_t{1} << number;
  }
  return static_cast<int32_t>(bits & kKnown);
}

CallOptions CallWith(const ProgressFunction& progress) {
  CallOptions call;
  if (progress.call == nullptr) return call;
  call.on_progress = [progress](const ProgressUpdate& update) {
    crout_progress report = {};
    report.bytes_sent = update.bytes_sent;
    report.bytes_total = update.bytes_total;
    if (update.job) {
      // crout_phase has the numbers of Phase.
      report.phase = update.job->phase ? static_cast<int32_t>(*update.job->phase) : 0;
      report.jobs_ahead = update.job->jobs_ahead;
      report.predicted_seconds = update.job->predicted_seconds;
      report.columns_done = update.job->columns_done;
      report.columns = update.job->columns;
      report.steps_done = update.job->steps_done;
      report.steps = update.job->steps;
    }
    progress.call(&report, progress.context);
  };
  return call;
}

absl::Status MakeFactor(const crout_connection& connection, const MatrixSource& a,
                        const FactorOptions& options, const CacheOptions& cache,
                        const ProgressFunction& progress, OnLost on_lost, crout_factor** handle) {
  auto factor =
      Factor::Make(connection.client, a, options, cache,
                   CallWith(Chosen(progress.call, progress.context, connection.progress)), on_lost);
  if (!factor.ok()) return factor.status();
  *handle = new crout_factor{*std::move(factor), options, connection.progress};
  return absl::OkStatus();
}

}  // namespace crout::c

using crout::c::Fail;
using crout::c::Guarded;
using crout::c::ToCode;

int crout_factorize(crout_connection* connection, const crout_matrix* a,
                    const crout_factorize_options* options, crout_factor** factor) {
  return Guarded(
      [&] { return crout::c::Factorize(connection, crout::c::SourceOf(a), options, factor); });
}

int crout_factorize_sparse(crout_connection* connection, const crout_sparse* a,
                           const crout_factorize_options* options, crout_factor** factor) {
  return Guarded(
      [&] { return crout::c::Factorize(connection, crout::c::SourceOf(a), options, factor); });
}

int crout_attach(crout_connection* connection, const char* handle_or_name, crout_factor** factor) {
  return Guarded([&]() -> int {
    if (factor == nullptr) return Fail(CROUT_INVALID_ARGUMENT, "factor is null");
    *factor = nullptr;
    if (connection == nullptr) return Fail(CROUT_INVALID_ARGUMENT, "connection is null");
    if (handle_or_name == nullptr) return Fail(CROUT_INVALID_ARGUMENT, "handle_or_name is null");
    auto attached = crout::Factor::Attach(connection->client, handle_or_name);
    if (!attached.ok()) return ToCode(attached.status());
    *factor = new crout_factor{*std::move(attached), {}, connection->progress};
    return CROUT_OK;
  });
}

int crout_refactorize(crout_factor* factor, const crout_matrix* a) {
  return Guarded([&] { return crout::c::Refactorize(factor, crout::c::SourceOf(a)); });
}

int crout_refactorize_sparse(crout_factor* factor, const crout_sparse* a) {
  return Guarded([&] { return crout::c::Refactorize(factor, crout::c::SourceOf(a)); });
}

int crout_refactorize_values(crout_factor* factor, int32_t dtype, const void* values,
                             int64_t count) {
  return Guarded([&]() -> int {
    if (factor == nullptr) return Fail(CROUT_INVALID_ARGUMENT, "factor is null");
    return crout::c::Refactorize(
        factor, crout::c::ValuesOf(dtype, values, count, factor->factor.description()));
  });
}

int crout_solve(const crout_factor* factor, const crout_matrix* b,
                const crout_solve_options* options, void* x, int64_t ldx,
                crout_solve_result* result) {
  return Guarded([&]() -> int {
    if (factor == nullptr) return Fail(CROUT_INVALID_ARGUMENT, "factor is null");
    if (absl::Status status = crout::c::CheckMatrix(b); !status.ok()) return ToCode(status);
    return ToCode(crout::c::Solve(*factor, *b, options, x, ldx, result));
  });
}

int crout_describe(const crout_factor* factor, crout_description* description) {
  return Guarded([&]() -> int {
    if (factor == nullptr) return Fail(CROUT_INVALID_ARGUMENT, "factor is null");
    if (description == nullptr) return Fail(CROUT_INVALID_ARGUMENT, "description is null");
    const auto known = crout::c::ReadStruct(description);
    if (!known.ok()) return ToCode(known.status());
    crout::c::WriteStruct(crout::c::Describe(factor->factor.description()), description);
    return CROUT_OK;
  });
}

int crout_release(crout_factor* factor) {
  return Guarded([&]() -> int {
    const std::unique_ptr<crout_factor> owned(factor);
    if (owned == nullptr || owned->factor.attached()) return CROUT_OK;
    return ToCode(owned->factor.Release());
  });
}
