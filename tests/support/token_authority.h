// An authority that signs tokens, as a test wants them: also such as nobody should take.
#ifndef CROUT_TESTS_SUPPORT_TOKEN_AUTHORITY_H_
#define CROUT_TESTS_SUPPORT_TOKEN_AUTHORITY_H_

#include <openssl/evp.h>

#include <memory>
#include <string>
#include <string_view>

namespace crout::testing {

class TokenAuthority {
 public:
  // With a new key `id` for `algorithm`, RS256 or ES256; `bits` of an RSA key.
  explicit TokenAuthority(std::string id, std::string algorithm = "ES256", unsigned bits = 2048);

  // The public key, one of "keys" in a JWKS.
  std::string Jwk() const;
  // A JWKS of this key alone.
  std::string Jwks() const { return "{\"keys\":[" + Jwk() + "]}"; }

  // {"alg": ALGORITHM, "kid": ID}
  std::string Header() const;
  // A token of the two JSON texts, signed.
  std::string Sign(std::string_view header, std::string_view claims) const;
  std::string Sign(std::string_view claims) const { return Sign(Header(), claims); }
  // SubjectPublicKeyInfo in PEM: what a confused reader would take for the secret of HS256.
  std::string Pem() const;

 private:
  std::string id_;
  std::string algorithm_;
  std::shared_ptr<EVP_PKEY> key_;
};

// A token whose signature is an HMAC with SHA-256 by `secret`.
std::string SignByHmac(std::string_view header, std::string_view claims, std::string_view secret);

std::string EncodeBase64Url(std::string_view bytes);

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_TOKEN_AUTHORITY_H_
