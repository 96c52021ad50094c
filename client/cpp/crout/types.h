// SPDX-License-Identifier: Apache-2.0

// Enumerations and matrix formats of the C++ client.
//
// Each enumerator but those of Priority has the number that proto/crout/v1 gives it, so that a
// value from a newer server keeps its meaning.
#ifndef CROUT_CROUT_TYPES_H_
#define CROUT_CROUT_TYPES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace crout {
// The inline namespace keeps the symbols of the client apart from the symbols of the server's
// components. Write crout::Client, without `api`.
inline namespace api {

// Element type. The types of matrix and right-hand side may differ.
enum class Dtype {
  kFloat32 = 1,
  kFloat64 = 2,
  kComplex64 = 3,   // two float32: real part, imaginary part
  kComplex128 = 4,  // two float64: real part, imaginary part
};

// Order of the elements of a dense matrix.
enum class StorageOrder {
  kColumnMajor = 1,  // element (i, j), 0-based, at index i + j * rows
  kRowMajor = 2,     // element (i, j), 0-based, at index i * cols + j
};

// LU methods. Client::ServerInfo lists the methods of each device. proto/crout/v1/factor.proto
// documents them.
enum class Algorithm {
  kAuto = 1,  // the device's method with the smallest predicted time
  kGetrf = 2,
  kCroutLu = 3,
  kGem = 4,
  kCm = 5,
  kCmpp = 6,
  kPcm = 7,
  kPcmpp = 8,
  kIcm = 9,
  kIcmpp = 10,
  kBlockLu = 11,
  kGaussJordan = 12,  // solves without factors; only FactorAndSolve accepts it
  kIrrLu = 13,        // batches
  kMultifrontal = 14,
  kKlu = 15,
  kCudss = 16,
  kScalapack = 17,   // on a group of processes
  kMumps = 18,       // same, for sparse matrices
  kCusolvermp = 19,  // on a group of GPUs
};

enum class Variant {
  kFast = 1,       // Crout's own order of operations
  kPublished = 2,  // the method exactly as published
};

// Triangular solvers.
enum class Solver {
  kAuto = 1,  // the solver with the smallest predicted time that can use the factor
  kSs = 2,
  kIs = 3,
  kTrsm = 4,
  kGetrs = 5,
  kCroutSolve = 6,
  kMultifrontal = 7,
  kKlu = 8,
  kCudss = 9,
  kScalapack = 10,
  kMumps = 11,
  kCusolvermp = 12,
};

// Reason why another solver replaced Solver::kCroutSolve.
enum class SolverFallback {
  kNone = 1,  // no replacement
  kCondition = 2,
  kBackwardError = 3,
};

// Scaling of rows and columns by powers of two.
enum class Equilibrate {
  kAuto = 1,  // only if the matrix needs it, by the criteria of LAPACK's laqge
  kOn = 2,
  kOff = 3,
};

// op(A) in op(A) X = B.
enum class Operation {
  kNone = 1,
  kTranspose = 2,
  kConjugateTranspose = 3,  // for a real A the same as kTranspose
};

// Precision in which a float64 or complex128 matrix is factored while solves keep the accuracy of
// its type.
enum class Precision {
  kAuto = 1,    // the precision with the smallest predicted time
  kSingle = 2,  // float32 or complex64
  kTf32 = 3,    // like kSingle, with large products in TF32; kCroutLu on a GPU only
};

// Reason why a factor is in float64 or complex128 although a lower precision was requested.
enum class PrecisionFallback {
  kUnusable = 1,    // a pivot was zero or an entry overflowed
  kCondition = 2,   // the condition estimate is too large
  kStagnation = 3,  // FactorAndSolve: the solve did not reach its accuracy
};

// Rule that decides whether a diagonal element is bad.
enum class Pivoting {
  kPartial = 1,
  kInterval = 2,   // magnitude outside (interval_low, interval_high]
  kThreshold = 3,  // magnitude below `threshold` times the column's largest candidate
};

// Triangular factor with the unit diagonal, which is not stored.
enum class UnitTriangle { kL = 1, kU = 2 };

// Reason why a matrix is singular or, with a method without pivoting, why its factor is unusable.
enum class SingularReason {
  kZeroPivot = 1,
  kEmptyRow = 2,
  kEmptyColumn = 3,
  kStructure = 4,  // structurally singular
};

// Memory that holds a factor.
enum class Tier {
  kDevice = 1,
  kHost = 2,   // host memory; copied back to its device at the next use
  kStore = 3,  // a file of the server's store; read back at the next use
};

// Reason to check a result before relying on it. WarningTexts (crout/warnings.h) explains it.
enum class Warning {
  kPoorFactor = 1,
  kPoorComplement = 2,
  kNotAccurate = 3,
  kNearlySingular = 4,
  kPerturbedRcond = 5,
  kPoorEchelonForm = 6,
};

// Strategy of the steps of a series.
enum class SeriesStrategy {
  kAuto = 1,
  kReuse = 2,     // GMRES, preconditioned by the current factor
  kRefactor = 3,  // a new factor in each step that sends a matrix
  kUpdate = 4,    // Woodbury's formula applies the low-rank changes since the factor was made
};

// Phases of a job.
enum class Phase {
  kReceive = 1,
  kQueue = 2,
  kFactor = 3,
  kSolve = 4,
  kAnalyze = 5,  // before kQueue, for a sparse matrix whose pattern was not analyzed before
};

// Priority of a call among the calls of its tenant (docs/surfaces.md).
enum class Priority { kInteractive = 1, kNormal = 2, kBatch = 3 };

// Names, as in croutctl and Python: Name(Algorithm::kCroutLu) is "crout_lu", Name(Dtype::kFloat64)
// is "f64". A number without a name is its decimal text. E: an enumeration of this file.
template <class E>
std::string Name(E value);
// The enumerator with this name; nullopt if there is none.
template <class E>
std::optional<E> FromName(absl::string_view name);
// All names, in the order of the numbers.
template <class E>
std::vector<std::string> Names();

// Bytes of one element; 0 for an unknown type.
size_t ElementSize(Dtype dtype);

// A dense matrix of rows * cols elements without gaps.
struct DenseSpec {
  Dtype dtype = Dtype::kFloat64;
  StorageOrder layout = StorageOrder::kColumnMajor;
  int64_t rows = 0;
  int64_t cols = 0;
};

}  // namespace api
}  // namespace crout

#endif  // CROUT_CROUT_TYPES_H_
