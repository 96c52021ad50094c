// SPDX-License-Identifier: Apache-2.0

// ListFactors: lists the factors of a tenant, page by page.
#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/strings/str_cat.h"
#include "server/auth/page_token.h"
#include "server/engine/error.h"
#include "server/rpc/codec/encode.h"
#include "server/rpc/handlers/handlers.h"

namespace crout {

absl::Status ListFactors(ServerCore& core, const Scope& scope,
                         const v1::ListFactorsRequest& request, v1::ListFactorsResponse* response) {
  constexpr int kDefaultPageSize = 100;
  constexpr int kMaxFactors = 1000;
  if (request.page_size() < 0)
    return BadField("page_size", absl::StrCat(request.page_size(), " is negative: send 0 or more"));
  const int limit =
      request.page_size() == 0 ? kDefaultPageSize : std::min(request.page_size(), kMaxFactors);
  int64_t before = 0;
  if (!request.page_token().empty()) {
    const auto position = DecodePageToken(scope.tenant, request.name(), request.page_token());
    if (!position) {
      return BadField("page_token",
                      "not a token that this server returned for the same tenant and name: begin "
                      "with the first page");
    }
    before = *position;
  }
  int64_t next = 0;
  for (const FactorInfo& info :
       core.engine.cache.List(scope.tenant, request.name(), before, limit, &next)) {
    *response->add_factors() = Encode(info);
  }
  if (next != 0) response->set_next_page_token(EncodePageToken(scope.tenant, request.name(), next));
  return absl::OkStatus();
}

}  // namespace crout
