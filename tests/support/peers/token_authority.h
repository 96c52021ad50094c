// SPDX-License-Identifier: Apache-2.0

// Signs JSON Web Tokens for tests, including tokens that a server must reject. Aborts on an OpenSSL
// error.
#ifndef CROUT_TESTS_SUPPORT_PEERS_TOKEN_AUTHORITY_H_
#define CROUT_TESTS_SUPPORT_PEERS_TOKEN_AUTHORITY_H_

#include <openssl/evp.h>

#include <memory>
#include <string>
#include <string_view>

namespace crout::testing {

class TokenAuthority {
 public:
  // Creates a key with the ID `id` for `algorithm`, RS256 or ES256. `bits` is the size of an RSA
  // key.
  explicit TokenAuthority(std::string id, std::string algorithm = "ES256", unsigned bits = 2048);

  // The public key as an element of "keys" in a JWKS.
  std::string Jwk() const;
  // A JWKS with only this key.
  std::string Jwks() const { return "{\"keys\":[" + Jwk() + "]}"; }

  // The header {"alg": ALGORITHM, "kid": ID}.
  std::string Header() const;
  // Return a signed token of the two JSON texts, by default with Header().
  std::string Sign(std::string_view header, std::string_view claims) const;
  std::string Sign(std::string_view claims) const { return Sign(Header(), claims); }
  // The public key as SubjectPublicKeyInfo in PEM. A vulnerable verifier would use these bytes as
  // the HS256 secret.
  std::string Pem() const;

 private:
  std::string id_;
  std::string algorithm_;
  std::shared_ptr<EVP_PKEY> key_;
};

// Returns a token signed by HMAC-SHA-256 with `secret`.
std::string SignByHmac(std::string_view header, std::string_view claims, std::string_view secret);

std::string EncodeBase64Url(std::string_view bytes);

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_PEERS_TOKEN_AUTHORITY_H_
