// SPDX-License-Identifier: Apache-2.0

// Requests in native types: what a transport decodes once and passes to the engine.
#ifndef CROUT_SERVER_ENGINE_REQUEST_H_
#define CROUT_SERVER_ENGINE_REQUEST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/factorization.h"
#include "kernels/io/entry_reader.h"
#include "kernels/jobs/series/series_step.h"
#include "kernels/jobs/solve.h"
#include "kernels/lu_parameters.h"

namespace crout {

// A matrix whose bytes follow the request.
struct MatrixSpec {
  bool text = false;                   // Matrix Market text
  std::optional<EntryFormat> entries;  // sparse matrix in binary form
  // Values for the positions of a cached matrix, whose pattern has the digest `pattern_digest`.
  // `shape` is then a column of them.
  bool values = false;
  std::string pattern_digest;
  // Shape without data. For a matrix that must be parsed, it is 0 x 0 until then.
  PackedMatrix shape;

  // Whether the payload is text or entries. The host then builds the matrix for the device after
  // all bytes have arrived. Other payloads are copied to the device unchanged.
  bool needs_parsing() const { return text || entries.has_value(); }
};

// Precision of the factor of a float64 or complex128 matrix.
enum class RequestedPrecision : uint8_t {
  kFactorType,  // that of FactorRequest::factor_dtype
  kAuto,        // the fastest for an accurate solve
  kSingle,
  kTf32,
};

struct FactorRequest {
  std::string device;  // empty: the engine chooses the device
  std::string algorithm = "auto";
  std::optional<DType> factor_dtype;  // unset: the type of the matrix
  RequestedPrecision precision = RequestedPrecision::kFactorType;
  EquilibrateMode equilibrate = EquilibrateMode::kAuto;
  std::optional<LuParameters> parameters;  // unset: the request sets none
  double pivot_threshold = 0;              // of multifrontal; 0: kPivotThreshold
  bool keep_matrix = true;
  bool condition = false;
  bool determinant = false;

  bool names_algorithm() const { return algorithm != "auto"; }
};

struct SolveRequest {
  std::string solver = "auto";
  SolveOptions options;  // without the solver, which depends on the factor

  bool names_solver() const { return solver != "auto"; }
};

// Factors and solves, with a method that leaves factors or with a direct one.
struct FactorAndSolveRequest {
  MatrixSpec matrix;
  MatrixSpec rhs;
  FactorRequest factor;
  SolveRequest solve;
  bool sets_cache = false;  // the request has options of the cache
};

struct SchurRequest {
  MatrixSpec matrix;
  FactorRequest factor;
  std::string solver = "auto";
  int64_t leading_order = 0;
  std::vector<int32_t> keep;  // unknowns of the complement of a sparse matrix
  bool sets_cache = false;    // the request has options of the cache
};

enum class SeriesStrategy : uint8_t { kAuto, kReuse, kUpdate, kRefactor };

// Options shared by all steps of a series.
struct SeriesRequest {
  FactorRequest factor;
  SeriesStrategy strategy = SeriesStrategy::kAuto;
  double accuracy = 0;
  Op op = Op::kNone;
};

// A change of the last matrix of a series.
struct ChangeRequest {
  MatrixChange::Kind kind = MatrixChange::Kind::kEntries;
  int64_t count = 0;         // entries, rank or values
  std::string entry_digest;  // kValues: of the entries that the values belong to
};

struct SeriesStepRequest {
  std::optional<MatrixSpec> matrix;
  std::optional<ChangeRequest> change;
  MatrixSpec rhs;
  std::optional<MatrixSpec> x0;
};

struct EchelonRequest {
  MatrixSpec matrix;
  int64_t augmented_columns = 0;
  std::optional<double> tolerance;
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_REQUEST_H_
