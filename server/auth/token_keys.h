// SPDX-License-Identifier: Apache-2.0

// The public keys of an authority that signs tokens, and what it has signed.
#ifndef CROUT_SERVER_AUTH_TOKEN_KEYS_H_
#define CROUT_SERVER_AUTH_TOKEN_KEYS_H_

#include <openssl/evp.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/auth/signed_token.h"

namespace crout {

// Constant, and thread-safe.
class TokenKeys {
 public:
  static constexpr size_t kMaxKeys = 64;
  static constexpr size_t kMaxTokenBytes = 8192;  // which gRPC's limit of a header is, too

  // Of a JSON Web Key Set (RFC 7517). RSA keys of 2048 to 4096 bits are for RS256, EC keys of P-256
  // for ES256, and for nothing else, whatever a token says. Keys of other kinds, for other
  // algorithms or for encryption are passed over. INVALID_ARGUMENT for a text that is not of this
  // form or names a member twice, for a key without a "kid" or with another's, for a private key
  // and for a set without a key that is of use.
  static absl::StatusOr<TokenKeys> Parse(std::string_view text);

  // What `token` says, a JWS of the compact form (RFC 7515), if one of these keys, the one that its
  // header names by "kid", has signed it. None for any other text, and for claims without "iss",
  // "aud", "sub" or "exp", of another type, for more than 32 audiences, or named twice.
  std::optional<SignedToken> Verify(std::string_view token) const;

  // Whether the key of a SignedToken is one of these.
  bool Has(const TokenHash& key) const;

 private:
  struct Key {
    std::string id;  // "kid"
    std::string_view algorithm;
    std::shared_ptr<EVP_PKEY> key;
    TokenHash print;  // SHA-256 of its SubjectPublicKeyInfo
  };
  friend class TokenKeyParser;

  std::vector<Key> keys_;
};

}  // namespace crout

#endif  // CROUT_SERVER_AUTH_TOKEN_KEYS_H_
