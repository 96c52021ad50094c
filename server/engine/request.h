// SPDX-License-Identifier: Apache-2.0

// Requests in native types, and the durations of their calls. A transport decodes the requests once
// and passes them to the engine.
#ifndef CROUT_SERVER_ENGINE_REQUEST_H_
#define CROUT_SERVER_ENGINE_REQUEST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/factorization.h"
#include "kernels/io/entry_reader.h"
#include "kernels/irregular_batch.h"
#include "kernels/jobs/batch/batch_solve.h"
#include "kernels/jobs/series/series_step.h"
#include "kernels/jobs/solve.h"
#include "kernels/lu_parameters.h"

namespace crout {

// A matrix whose bytes follow the request.
struct MatrixSpec {
  bool text = false;                   // Matrix Market text
  std::optional<EntryFormat> entries;  // sparse matrix in binary form
  // Values for the positions of a cached matrix, whose pattern has the digest `pattern_digest`.
  // `shape` is then a column of the values.
  bool values = false;
  std::string pattern_digest;
  std::optional<BatchExtent> batch;  // a batch; without max_diagonal and diagonals
  // Right-hand sides for members of a batch, of type shape.dtype.
  std::optional<BatchRightHandSides> batch_rhs;
  // Shape without data. 0 x 0 for a batch, and until a payload that needs parsing has been parsed.
  PackedMatrix shape;

  // Returns true if the payload is text or entries. The host then builds the matrix for the device
  // after all bytes have arrived. Other payloads are copied to the device unchanged.
  bool needs_parsing() const { return text || entries.has_value(); }
};

// Precision of the factor of a float64 or complex128 matrix.
enum class RequestedPrecision : uint8_t {
  kFactorType,  // the type FactorRequest::factor_dtype
  kAuto,        // the fastest one with accurate solves
  kSingle,
  kTf32,
};

struct FactorRequest {
  std::string device;  // empty: the engine chooses the device
  std::string near;    // device that has the payload, preferred if `device` is empty
  std::string algorithm = "auto";
  std::optional<DType> factor_dtype;  // unset: the type of the matrix
  RequestedPrecision precision = RequestedPrecision::kFactorType;
  EquilibrateMode equilibrate = EquilibrateMode::kAuto;
  std::optional<LuParameters> parameters;  // unset: the defaults of the method
  double pivot_threshold = 0;              // for the method multifrontal; 0: kPivotThreshold
  bool keep_matrix = true;                 // keep the matrix with the factor
  bool condition = false;                  // estimate the condition number
  bool determinant = false;                // compute the determinant

  bool names_algorithm() const { return algorithm != "auto"; }
};

struct SolveRequest {
  std::string solver = "auto";
  SolveOptions options;  // without the solver, which depends on the factor

  bool names_solver() const { return solver != "auto"; }
};

// A factorization and a solve in one job. The method may solve directly, without factors.
struct FactorAndSolveRequest {
  MatrixSpec matrix;
  MatrixSpec rhs;
  FactorRequest factor;
  SolveRequest solve;
  bool sets_cache = false;  // the request sets cache options
};

struct SchurRequest {
  MatrixSpec matrix;
  FactorRequest factor;
  std::string solver = "auto";
  int64_t leading_order = 0;  // order of A11
  std::vector<int32_t> keep;  // sparse matrix: the unknowns that the complement keeps
  bool sets_cache = false;    // the request sets cache options
};

enum class SeriesStrategy : uint8_t { kAuto, kReuse, kUpdate, kRefactor };

// Options shared by all steps of a series.
struct SeriesRequest {
  FactorRequest factor;
  SeriesStrategy strategy = SeriesStrategy::kAuto;
  double accuracy = 0;  // required normwise backward error; 0: the default
  Op op = Op::kNone;
};

// A change of the last matrix of a series.
struct ChangeRequest {
  MatrixChange::Kind kind = MatrixChange::Kind::kEntries;
  int64_t count = 0;         // number of entries, rank, or number of values
  std::string entry_digest;  // kValues: digest of the entries that the values belong to
};

struct SeriesStepRequest {
  std::optional<MatrixSpec> matrix;
  std::optional<ChangeRequest> change;
  MatrixSpec rhs;
  std::optional<MatrixSpec> x0;
  std::string near;  // see FactorRequest
};

struct EchelonRequest {
  MatrixSpec matrix;
  int64_t augmented_columns = 0;
  std::optional<double> tolerance;
};

// Times in seconds. The Timings message of the protocol has the same fields and defines the phases.
struct CallTimings {
  double receive = 0;
  double queue = 0;
  double analyze = 0;
  double host_to_device = 0;
  double factor = 0;
  double solve = 0;
  double refine = 0;
  double device_to_host = 0;
  double send = 0;
  double total = 0;

  // Adds the timings of a job that the call ran.
  void Add(const KernelTimings& job) {
    factor += job.factor;
    solve += job.solve;
    refine += job.refine;
    device_to_host += job.device_to_host;
  }
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_REQUEST_H_
