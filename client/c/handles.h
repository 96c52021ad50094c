// SPDX-License-Identifier: Apache-2.0

// Definitions of crout.h's opaque handles.
#ifndef CROUT_CLIENT_C_HANDLES_H_
#define CROUT_CLIENT_C_HANDLES_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "crout/client.h"
#include "crout/crout.h"
#include "crout/factor.h"
#include "crout/matrix_source.h"
#include "crout/series.h"

namespace crout::c {

// A function of the caller that receives progress. Null: none.
struct ProgressFunction {
  crout_progress_function call = nullptr;
  void* context = nullptr;
};

}  // namespace crout::c

struct crout_connection {
  std::shared_ptr<crout::Client> client;
  crout::c::ProgressFunction progress;
};

struct crout_factor {
  crout::Factor factor;
  crout::FactorOptions options;         // for crout_refactorize
  crout::c::ProgressFunction progress;  // progress function of the connection
};

struct crout_series {
  crout::Series series;
  bool starts_at_x = false;
  std::string entry_digest;  // entry digest of the last result
};

namespace crout::c {

// Converts warnings to bits of crout_warning. Omits values without a bit.
int32_t BitsOf(const std::vector<Warning>& warnings);

// Options of a call that reports its progress to `progress`.
CallOptions CallWith(const ProgressFunction& progress);

// Factors `a` and sets *handle. Leaves it unchanged on failure. `progress` replaces the function of
// the connection if it is set.
absl::Status MakeFactor(const crout_connection& connection, const MatrixSource& a,
                        const FactorOptions& options, const CacheOptions& cache,
                        const ProgressFunction& progress, OnLost on_lost, crout_factor** handle);

// Copies the fields that the caller's version of a structure has; all others are zero. A null
// structure has no fields. INVALID_ARGUMENT if struct_size is not set.
template <class Struct>
absl::StatusOr<Struct> ReadStruct(const Struct* given) {
  Struct known = {};
  if (given == nullptr) return known;
  if (given->struct_size < sizeof given->struct_size) {
    return absl::InvalidArgumentError(
        "struct_size is not set: initialise with {.struct_size = sizeof s}");
  }
  std::memcpy(&known, given, std::min(given->struct_size, sizeof known));
  return known;
}

// Writes the fields that the caller's version of *out has.
template <class Struct>
void WriteStruct(Struct values, Struct* out) {
  values.struct_size = out->struct_size;
  std::memcpy(out, &values, std::min(out->struct_size, sizeof values));
}

}  // namespace crout::c

#endif  // CROUT_CLIENT_C_HANDLES_H_
