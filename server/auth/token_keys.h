// SPDX-License-Identifier: Apache-2.0

// The public keys of an authority, used to verify its signed tokens.
#ifndef CROUT_SERVER_AUTH_TOKEN_KEYS_H_
#define CROUT_SERVER_AUTH_TOKEN_KEYS_H_

#include <openssl/evp.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/auth/token.h"

namespace crout {

// Immutable and thread-safe.
class TokenKeys {
 public:
  static constexpr size_t kMaxKeys = 64;
  static constexpr size_t kMaxTokenBytes = 8192;  // also gRPC's limit for a header

  // Parses a JSON Web Key Set (RFC 7517). RSA keys of 2048 to 4096 bits verify RS256, and EC keys
  // of P-256 verify ES256; a token cannot choose another algorithm. Skips keys of other kinds, for
  // other algorithms or for encryption.
  //
  // INVALID_ARGUMENT for malformed text or duplicate member names, for a key with a missing or
  // duplicate "kid", for a private key, and for a set with more than kMaxKeys usable keys or none.
  static absl::StatusOr<TokenKeys> Parse(std::string_view text);

  // Returns the claims of `token`, a compact JWS (RFC 7515), if the key that its header names by
  // "kid" is in the set and signed it. Returns nothing for any other text. Also returns nothing for
  // claims with duplicate names, without "iss", "aud", "sub" or "exp", with one of these or "nbf"
  // of the wrong type, or with more than 32 audiences.
  std::optional<SignedToken> Verify(std::string_view token) const;

  // Returns true if the set contains the key of a SignedToken.
  bool Has(const TokenHash& key) const;

 private:
  struct Key {
    std::string id;  // "kid"
    std::string_view algorithm;
    std::shared_ptr<EVP_PKEY> key;
    TokenHash fingerprint;  // SHA-256 of the SubjectPublicKeyInfo
  };
  friend class TokenKeyParser;

  std::vector<Key> keys_;
};

}  // namespace crout

#endif  // CROUT_SERVER_AUTH_TOKEN_KEYS_H_
