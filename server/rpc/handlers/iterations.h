// SPDX-License-Identifier: Apache-2.0

// Adds a page of iteration counts to the reply of DescribeFactor.
#ifndef CROUT_SERVER_RPC_HANDLERS_ITERATIONS_H_
#define CROUT_SERVER_RPC_HANDLERS_ITERATIONS_H_

#include <string>

#include "absl/status/status.h"
#include "crout/v1/factorization_service.pb.h"
#include "server/engine/cache/factor_cache.h"

namespace crout {

// Fills `page` with counts of the factor. FAILED_PRECONDITION if the factor has none.
absl::Status AddIterations(const FactorInfo& info, const v1::IterationPageRequest& request,
                           v1::IterationPage* page);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_HANDLERS_ITERATIONS_H_
