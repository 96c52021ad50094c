// SPDX-License-Identifier: Apache-2.0

// Bearer tokens, and the hashes by which the daemon knows them.
#ifndef CROUT_SERVER_AUTH_TOKEN_H_
#define CROUT_SERVER_AUTH_TOKEN_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace crout {

// SHA-256 of a token's text. A token has 256 random bits: there is nothing to guess that salt or a
// slow hash would have to protect.
using TokenHash = std::array<uint8_t, 32>;

// "crout_" and 43 characters of base64url. INTERNAL where the system has no randomness.
absl::StatusOr<std::string> MakeToken();

TokenHash HashToken(std::string_view token);

// The token in the value of an authorization header or metadata, "Bearer TOKEN" (RFC 6750); none
// for another scheme. Points into `authorization`.
std::optional<std::string_view> TokenOf(std::string_view authorization);

// In a time that does not depend on where they differ.
bool SameHash(const TokenHash& a, const TokenHash& b);

// "sha256:" and 64 hexadecimal digits; Parse takes these in either case, and nothing else.
std::string FormatTokenHash(const TokenHash& hash);
std::optional<TokenHash> ParseTokenHash(std::string_view text);

}  // namespace crout

#endif  // CROUT_SERVER_AUTH_TOKEN_H_
