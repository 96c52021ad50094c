// SPDX-License-Identifier: Apache-2.0

// Page tokens of lists: positions that only this process can read.
#ifndef CROUT_SERVER_RPC_PAGE_TOKEN_H_
#define CROUT_SERVER_RPC_PAGE_TOKEN_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace crout {

// The token for `position` in the list of `tenant`'s factors of that name: one block of AES-128
// under a key that the process draws at its first use. The block holds the position and a hash of
// the list, so that a token reveals nothing about other tenants, whose factors positions count.
std::string EncodePageToken(std::string_view tenant, std::string_view name, int64_t position);

// The position. INVALID_ARGUMENT for every text that EncodePageToken() has not returned for this
// list: an altered token passes with a probability of 2^-64.
absl::StatusOr<int64_t> DecodePageToken(std::string_view tenant, std::string_view name,
                                        std::string_view token);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_PAGE_TOKEN_H_
