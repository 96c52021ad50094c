// SPDX-License-Identifier: Apache-2.0

// Page tokens: encrypted positions in a tenant's list, which only this process can read. They are
// encrypted because positions also count the factors of other tenants.
#ifndef CROUT_SERVER_AUTH_PAGE_TOKEN_H_
#define CROUT_SERVER_AUTH_PAGE_TOKEN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace crout {

// Returns the token for `position`, above 0, in the list of the factors of `tenant` with the name
// `name`. The token is one AES-128 block under a random key that the process draws at first use.
// The block holds the position and a hash of tenant and name. Both functions are thread-safe.
std::string EncodePageToken(std::string_view tenant, std::string_view name, int64_t position);

// Returns the position in `token`, or nullopt if EncodePageToken() did not create the token for
// this list. An altered token passes with probability 2^-64.
std::optional<int64_t> DecodePageToken(std::string_view tenant, std::string_view name,
                                       std::string_view token);

}  // namespace crout

#endif  // CROUT_SERVER_AUTH_PAGE_TOKEN_H_
