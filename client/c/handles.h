// What the opaque handles of crout.h are.
#ifndef CROUT_CLIENT_C_HANDLES_H_
#define CROUT_CLIENT_C_HANDLES_H_

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "crout/client.h"
#include "crout/crout.h"
#include "crout/factor.h"
#include "crout/matrix_source.h"
#include "crout/series.h"

struct crout_connection {
  std::shared_ptr<crout::client::Client> client;
};

struct crout_factor {
  crout::Factor factor;
  crout::v1::FactorizeOptions options;  // for crout_refactorize
};

struct crout_series {
  crout::Series series;
  bool starts_at_x = false;
  std::string entry_digest;  // of the last matrix, as the last result has it
};

namespace crout::c {

// Factors and makes the handle, which is null unless the status is OK.
absl::Status MakeFactor(const crout_connection& connection, const client::MatrixSource& a,
                        const v1::FactorizeOptions& options, const v1::CacheOptions& cache,
                        crout_factor** handle);

// The fields of a structure that its caller knows; zeros are the others. Empty for a size that no
// version of the structure had.
template <class Struct>
absl::StatusOr<Struct> Known(const Struct* given) {
  Struct known = {};
  if (given == nullptr) return known;
  if (given->struct_size < sizeof given->struct_size) {
    return absl::InvalidArgumentError(
        "struct_size is not set: initialise with {.struct_size = sizeof s}");
  }
  std::memcpy(&known, given, std::min(given->struct_size, sizeof known));
  return known;
}

// Fills the fields of `out` that its caller knows.
template <class Struct>
void Give(Struct values, Struct* out) {
  values.struct_size = out->struct_size;
  std::memcpy(out, &values, std::min(out->struct_size, sizeof values));
}

}  // namespace crout::c

#endif  // CROUT_CLIENT_C_HANDLES_H_
