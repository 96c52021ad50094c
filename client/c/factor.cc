// The functions of crout.h that take a crout_matrix, and what is done with factors besides.
#include "crout/factor.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/c/error.h"
#include "client/c/handles.h"

namespace crout::c {
namespace {

using client::MatrixSource;
using client::StridedSink;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Fills the fields of `out` that its caller knows.
template <class Struct>
void Give(Struct values, Struct* out) {
  values.struct_size = out->struct_size;
  std::memcpy(out, &values, std::min(out->struct_size, sizeof values));
}

v1::Layout LayoutOf(const crout_matrix& matrix) {
  return matrix.layout == CROUT_ROW_MAJOR ? v1::LAYOUT_ROW_MAJOR : v1::LAYOUT_COLUMN_MAJOR;
}

// Calls `typed` with `data` as a pointer to the matrix's type.
template <class Result, class Data, class Typed>
Result WithType(const crout_matrix& matrix, Data* data, Typed typed) {
  const auto as = [&](auto zero) {
    using T = decltype(zero);
    return typed(static_cast<std::conditional_t<std::is_const_v<Data>, const T, T>*>(data));
  };
  switch (matrix.dtype) {
    case CROUT_FLOAT32:
      return as(float{});
    case CROUT_COMPLEX64:
      return as(crout_complex_float{});
    case CROUT_COMPLEX128:
      return as(crout_complex_double{});
    default:
      return as(double{});
  }
}

// What is wrong with a matrix in itself; its sizes are MatrixSource's to check.
absl::Status Check(const crout_matrix* matrix) {
  if (matrix == nullptr) return absl::InvalidArgumentError("the matrix is null");
  if (matrix->dtype < CROUT_FLOAT32 || matrix->dtype > CROUT_COMPLEX128) {
    return absl::InvalidArgumentError(absl::StrCat("no dtype has the number ", matrix->dtype));
  }
  if (matrix->layout != CROUT_COLUMN_MAJOR && matrix->layout != CROUT_ROW_MAJOR) {
    return absl::InvalidArgumentError(absl::StrCat("no layout has the number ", matrix->layout));
  }
  return absl::OkStatus();
}

MatrixSource SourceOf(const crout_matrix& m) {
  return WithType<MatrixSource>(m, m.data, [&](const auto* data) {
    return MatrixSource::Strided(data, m.rows, m.cols, m.ld, LayoutOf(m));
  });
}

StridedSink SinkLike(const crout_matrix& m, void* x, int64_t ldx) {
  return WithType<StridedSink>(
      m, x, [&](auto* data) { return StridedSink(data, m.rows, m.cols, ldx, LayoutOf(m)); });
}

// Bytes from the first element of a matrix like `m`, with leading dimension `ld`, to behind its
// last.
__int128 Extent(const crout_matrix& m, int64_t ld) {
  if (m.rows <= 0 || m.cols <= 0) return 0;
  const bool by_rows = m.layout == CROUT_ROW_MAJOR;
  const int64_t count = by_rows ? m.rows : m.cols;
  const int64_t length = by_rows ? m.cols : m.rows;
  const auto element = WithType<size_t>(m, m.data, [](const auto* p) { return sizeof *p; });
  return (static_cast<__int128>(count - 1) * ld + length) * static_cast<__int128>(element);
}

// Whether X would be written to where B is read.
bool Overlap(const crout_matrix& b, const void* x, int64_t ldx) {
  const __int128 from = reinterpret_cast<uintptr_t>(b.data);
  const __int128 to = reinterpret_cast<uintptr_t>(x);
  return from < to + Extent(b, ldx) && to < from + Extent(b, b.ld);
}

absl::Status ReadOptions(const crout_factorize_options& given, v1::FactorizeOptions* options,
                         v1::CacheOptions* cache) {
  if (given.name != nullptr) cache->set_name(given.name);
  if (given.algorithm != nullptr) {
    v1::Algorithm algorithm;
    const std::string name = absl::StrCat("ALGORITHM_", absl::AsciiStrToUpper(given.algorithm));
    if (!v1::Algorithm_Parse(name, &algorithm)) {
      return absl::InvalidArgumentError(absl::StrCat("no algorithm is called ", given.algorithm));
    }
    options->set_algorithm(algorithm);
  }
  if (!(given.lease >= 0) || std::isinf(given.lease)) {
    return absl::InvalidArgumentError("the lease is negative or not a number of seconds");
  }
  if (given.lease > 0)
    *cache->mutable_lease() = client::ToProtoDuration(absl::Seconds(given.lease));
  options->set_condition(given.condition != 0);
  return absl::OkStatus();
}

crout_description Describe(const v1::Factor& factor) {
  crout_description description = {};
  description.n = factor.n();
  description.version = factor.version();
  description.info = factor.info();
  description.rcond = factor.has_rcond() ? factor.rcond() : kNan;
  description.pivot_growth = factor.pivot_growth();
  description.quality = factor.has_quality() ? factor.quality() : kNan;
  description.norm_one = factor.norm_one();
  factor.handle().copy(description.handle, sizeof description.handle - 1);
  return description;
}

// OPERATION_UNSPECIFIED where there is none of that number.
v1::Operation OperationOf(int32_t transpose) {
  switch (transpose) {
    case CROUT_NO_TRANSPOSE:
      return v1::OPERATION_NONE;
    case CROUT_TRANSPOSE:
      return v1::OPERATION_TRANSPOSE;
    case CROUT_CONJUGATE_TRANSPOSE:
      return v1::OPERATION_CONJUGATE_TRANSPOSE;
    default:
      return v1::OPERATION_UNSPECIFIED;
  }
}

absl::Status Solve(const crout_factor& factor, const crout_matrix& b,
                   const crout_solve_options* given, void* x, int64_t ldx,
                   crout_solve_result* out) {
  const auto wanted = Known(given);
  if (!wanted.ok()) return wanted.status();
  if (const auto known = Known(out); !known.ok()) return known.status();
  if (x == nullptr && b.rows > 0 && b.cols > 0) return absl::InvalidArgumentError("x is null");
  if (Overlap(b, x, ldx)) return absl::InvalidArgumentError("x overlaps b");
  v1::SolveOptions options;
  options.set_operation(OperationOf(wanted->transpose));
  if (options.operation() == v1::OPERATION_UNSPECIFIED) {
    return absl::InvalidArgumentError(absl::StrCat("no operation is ", wanted->transpose));
  }
  options.set_max_refinement_steps(wanted->max_refinement_steps);
  options.set_error_bound(wanted->error_bound != 0);
  StridedSink sink = SinkLike(b, x, ldx);
  const auto solved = factor.factor.Solve(SourceOf(b), options, &sink);
  if (!solved.ok()) return solved.status();
  crout_solve_result result = {};
  result.backward_error = solved->has_backward_error() ? solved->backward_error() : kNan;
  result.forward_error_bound =
      solved->has_forward_error_bound() ? solved->forward_error_bound() : kNan;
  result.factor_version = solved->factor_version();
  result.refinement_steps = solved->refinement_steps();
  if (out != nullptr) Give(result, out);
  return absl::OkStatus();
}

}  // namespace

absl::Status MakeFactor(const crout_connection& connection, const MatrixSource& a,
                        const v1::FactorizeOptions& options, const v1::CacheOptions& cache,
                        crout_factor** handle) {
  auto factor = Factor::Factorize(connection.client, a, options, cache);
  if (!factor.ok()) return factor.status();
  *handle = new crout_factor{*std::move(factor), options};
  return absl::OkStatus();
}

}  // namespace crout::c

using crout::c::Fail;
using crout::c::Guarded;
using crout::c::ToCode;

int crout_factorize(crout_connection* connection, const crout_matrix* a,
                    const crout_factorize_options* options, crout_factor** factor) {
  return Guarded([&]() -> int {
    if (factor == nullptr) return Fail(CROUT_INVALID_ARGUMENT, "factor is null");
    *factor = nullptr;
    if (connection == nullptr) return Fail(CROUT_INVALID_ARGUMENT, "connection is null");
    if (absl::Status status = crout::c::Check(a); !status.ok()) return ToCode(status);
    const auto wanted = crout::c::Known(options);
    if (!wanted.ok()) return ToCode(wanted.status());
    crout::v1::FactorizeOptions how;
    crout::v1::CacheOptions cache;
    absl::Status status = crout::c::ReadOptions(*wanted, &how, &cache);
    if (!status.ok()) return ToCode(status);
    return ToCode(crout::c::MakeFactor(*connection, crout::c::SourceOf(*a), how, cache, factor));
  });
}

int crout_refactorize(crout_factor* factor, const crout_matrix* a) {
  return Guarded([&]() -> int {
    if (factor == nullptr) return Fail(CROUT_INVALID_ARGUMENT, "factor is null");
    if (absl::Status status = crout::c::Check(a); !status.ok()) return ToCode(status);
    return ToCode(factor->factor.Refactorize(crout::c::SourceOf(*a), factor->options));
  });
}

int crout_solve(const crout_factor* factor, const crout_matrix* b,
                const crout_solve_options* options, void* x, int64_t ldx,
                crout_solve_result* result) {
  return Guarded([&]() -> int {
    if (factor == nullptr) return Fail(CROUT_INVALID_ARGUMENT, "factor is null");
    if (absl::Status status = crout::c::Check(b); !status.ok()) return ToCode(status);
    return ToCode(crout::c::Solve(*factor, *b, options, x, ldx, result));
  });
}

int crout_describe(const crout_factor* factor, crout_description* description) {
  return Guarded([&]() -> int {
    if (factor == nullptr) return Fail(CROUT_INVALID_ARGUMENT, "factor is null");
    if (description == nullptr) return Fail(CROUT_INVALID_ARGUMENT, "description is null");
    const auto known = crout::c::Known(description);
    if (!known.ok()) return ToCode(known.status());
    crout::c::Give(crout::c::Describe(factor->factor.description()), description);
    return CROUT_OK;
  });
}

int crout_release(crout_factor* factor) {
  return Guarded([&]() -> int {
    const std::unique_ptr<crout_factor> owned(factor);
    return owned == nullptr ? CROUT_OK : ToCode(owned->factor.Release());
  });
}
