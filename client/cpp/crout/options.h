// SPDX-License-Identifier: Apache-2.0

// Options of the operations. The defaults are the server's; an unset std::optional lets the server
// decide. proto/crout/v1 documents limits, and the errors for values outside them.
#ifndef CROUT_CROUT_OPTIONS_H_
#define CROUT_CROUT_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "crout/types.h"

namespace crout {
inline namespace api {

// Parameters of an LU method. 0 and unset select the method's default.
struct MethodParameters {
  std::optional<Pivoting> pivot_rule = std::nullopt;
  double interval_low = 0;  // lower end for kInterval; the default interval is (1e-5, 1e5]
  double interval_high = 0;
  double threshold = 0;  // threshold for kThreshold, in (0, 1]; default 0.1
  // Iterative methods: an element x has converged when it changes by at most
  // absolute_tolerance + tolerance |x|.
  double tolerance = 0;
  int64_t section_size = 0;  // iterative methods: rows and columns of a section
  int32_t block_size = 0;    // a power of two
  int64_t sweep_limit = 0;   // iterative methods: largest number of sweeps of one section
  double absolute_tolerance = 0;
  std::optional<Variant> variant = std::nullopt;  // unset: kFast
};

// Options of a factorization.
struct FactorOptions {
  Algorithm algorithm = Algorithm::kAuto;
  // Device of Client::ServerInfo. Empty: the device with the earliest expected completion.
  std::string device = "";
  // Type of L and U. Unset: the matrix's type; for kKlu that type in double precision.
  std::optional<Dtype> factor_dtype = std::nullopt;
  Equilibrate equilibrate = Equilibrate::kAuto;
  // Whether A is kept, as verification, refinement and error bounds require.
  bool keep_matrix = true;
  bool condition = false;    // report the reciprocal condition estimate
  bool determinant = false;  // report the determinant
  MethodParameters parameters = {};
  // Factors in this precision and corrects every solve. Unset: the factor's type.
  std::optional<Precision> precision = std::nullopt;
  // kMultifrontal: smallest pivot as a fraction of the largest entry of its column in the front, in
  // (0, 1]. 0: the default, 0.01.
  double pivot_threshold = 0;
};

// Options of a replacement.
struct RefactorOptions {
  FactorOptions factor = {};
  // Whether a singular factor, with which no system can be solved, may replace the old one. Without
  // effect for a batch, whose members may be singular.
  bool replace_if_singular = false;
};

// Lease, name and idempotency of a cached factor.
struct CacheOptions {
  // Length of the lease. Zero: the server's default, 1 h unless configured.
  absl::Duration lease = absl::ZeroDuration();
  std::string name = "";  // for Client::List; at most 128 bytes of UTF-8
  // Makes Factor idempotent: a repeated call with the id returns the existing factor. At most 128
  // bytes.
  std::string request_id = "";
  // Pins the factor: the server neither evicts it nor moves it to host memory until it is unpinned
  // or released, or its lease ends. RESOURCE_EXHAUSTED beyond Limits::max_pinned_bytes.
  bool pin = false;
  // Writes the factor to the server's disk before the call returns. It then survives a restart of
  // the server and is not evicted, until it is released or its lease ends. FAILED_PRECONDITION if
  // the server has no store; UNAVAILABLE or RESOURCE_EXHAUSTED if the factor cannot be written. Not
  // for a Series.
  bool durable = false;
};

// Options of a solve.
struct SolveOptions {
  Operation operation = Operation::kNone;
  Solver solver = Solver::kAuto;
  bool verify = true;        // compute the backward error
  bool error_bound = false;  // report an estimated bound of the forward error
  // Largest number of refinement steps, up to 100.
  int32_t max_refinement_steps = 0;
  // Solver::kIs: relative change at which an unknown has converged, in [0, 1). 0: nothing changes.
  double solver_tolerance = 0;
  bool componentwise_error = false;   // report the componentwise backward error
  bool refine_componentwise = false;  // refine by the componentwise backward error
};

// Options of FactorAndSolve.
struct FactorAndSolveOptions {
  FactorOptions factor = {};
  SolveOptions solve = {};
  // Set: the factor is cached. Unset: it is dropped after the solve.
  std::optional<CacheOptions> cache = std::nullopt;
};

// Options of a Schur complement.
struct SchurOptions {
  // Order of the leading block A11.
  int64_t leading_order = 0;
  // Sparse matrices only, instead of leading_order: the 0-based, distinct unknowns of A22, in the
  // order of the rows and columns of S.
  std::vector<int32_t> keep = {};
  FactorOptions factor = {};      // factorization of A11
  CacheOptions cache = {};        // caching of the factor of A11
  Solver solver = Solver::kAuto;  // solver of A11 X = A12
};

// Options of the reduced row echelon form.
struct RrefOptions {
  // Number of trailing columns that are right-hand sides: they contain no pivots.
  int64_t augmented_columns = 0;
  // Absolute threshold for a pivot. Unset: max(m, k) eps ||A||_inf, adjusted for growth.
  std::optional<double> tolerance = std::nullopt;
  std::string device = "";  // defined as in FactorOptions
};

// Options of a series, for all its steps.
struct SeriesOptions {
  // Factor to start with, for instance to resume an interrupted series. Empty: the first step sends
  // a matrix.
  std::string handle = "";
  FactorOptions factor = {};  // options of new factors
  CacheOptions cache = {};    // caching of the series' factor; not together with `handle`
  SeriesStrategy strategy = SeriesStrategy::kAuto;
  // Backward error that every right-hand side must reach, in [0, 1). 0: sqrt(n) u with u the unit
  // roundoff of B's type.
  double accuracy = 0;
  Operation operation = Operation::kNone;
};

// Matrix whose factorization Client::Estimate predicts.
struct EstimateRequest {
  int64_t n = 0;                              // order of A
  std::optional<Dtype> dtype = std::nullopt;  // type of A; unset: float64
  FactorOptions factor = {};
  // Sparse matrices: number of distinct stored positions, after symmetry is expanded.
  std::optional<int64_t> nnz = std::nullopt;
  // Sparse factor whose matrix has A's pattern; `n` and `nnz` must then be unset.
  std::string handle = "";
};

}  // namespace api
}  // namespace crout

#endif  // CROUT_CROUT_OPTIONS_H_
