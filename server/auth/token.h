// SPDX-License-Identifier: Apache-2.0

// Bearer tokens and their hashes. The daemon stores only the hashes.
#ifndef CROUT_SERVER_AUTH_TOKEN_H_
#define CROUT_SERVER_AUTH_TOKEN_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace crout {

// SHA-256 of a token's text. A token has 256 random bits and cannot be guessed, so neither a salt
// nor a slow hash is needed.
using TokenHash = std::array<uint8_t, 32>;

// Returns a new token: "crout_" and 43 characters of base64url. INTERNAL if the system provides no
// random numbers.
absl::StatusOr<std::string> MakeToken();

TokenHash HashToken(std::string_view token);

// Returns the token in an authorization header or metadata value, "Bearer TOKEN" (RFC 6750);
// nothing for another scheme. The result points into `authorization`.
std::optional<std::string_view> TokenOf(std::string_view authorization);

// Compares in constant time.
bool SameHash(const TokenHash& a, const TokenHash& b);

// The text form is "sha256:" and 64 hexadecimal digits. ParseTokenHash() accepts digits in either
// case and no other form.
std::string FormatTokenHash(const TokenHash& hash);
std::optional<TokenHash> ParseTokenHash(std::string_view text);

// The authority whose tokens are accepted. Set all fields, or leave all empty to accept no signed
// token.
struct SignedTokenSettings {
  std::string keys_file;  // JWKS file of the authority's public keys
  std::string issuer;     // required "iss" of a token
  std::string audience;   // required among the "aud" of a token
};

// Allowed difference between the clocks of the authority and the daemon.
inline constexpr absl::Duration kClockSkew = absl::Seconds(30);

// Claims of a token with a valid signature. Identities::Match() checks the claims.
struct SignedToken {
  TokenHash key;                       // identifies the signing key, see TokenKeys::Has()
  std::string issuer;                  // "iss"
  std::vector<std::string> audiences;  // "aud"
  std::string subject;                 // "sub"
  absl::Time begin;                    // "nbf"; the infinite past if absent
  absl::Time end;                      // "exp"
};

}  // namespace crout

#endif  // CROUT_SERVER_AUTH_TOKEN_H_
