// SPDX-License-Identifier: Apache-2.0

// Pages of lists: the iteration counts in the reply of DescribeFactor, and page tokens, which are
// encrypted list positions that only this process can read.
#ifndef CROUT_SERVER_RPC_HANDLERS_ITERATIONS_H_
#define CROUT_SERVER_RPC_HANDLERS_ITERATIONS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "crout/v1/factorization_service.pb.h"
#include "server/engine/cache/factor_cache.h"

namespace crout {

// Fills `page` with counts of the factor. FAILED_PRECONDITION if the factor has none.
absl::Status AddIterations(const FactorInfo& info, const v1::IterationPageRequest& request,
                           v1::IterationPage* page);

// Returns the token for `position` in the list of the factors of `tenant` with the name `name`. The
// token is one AES-128 block under a random key that the process draws at first use. The block
// holds the position and a hash of tenant and name. It is encrypted because positions also count
// the factors of other tenants.
std::string EncodePageToken(std::string_view tenant, std::string_view name, int64_t position);

// Returns the position in `token`. Returns INVALID_ARGUMENT if EncodePageToken() did not create the
// token for this list. An altered token passes with probability 2^-64.
absl::StatusOr<int64_t> DecodePageToken(std::string_view tenant, std::string_view name,
                                        std::string_view token);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_HANDLERS_ITERATIONS_H_
