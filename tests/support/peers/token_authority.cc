// SPDX-License-Identifier: Apache-2.0

#include "tests/support/peers/token_authority.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "kernels/util/strings.h"

namespace crout::testing {
namespace {

constexpr int kCoordinateBytes = 32;

void Require(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "OpenSSL: %s\n", what);
  std::abort();
}

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

// Returns a number in big-endian bytes, padded to at least `size` bytes.
std::string ToBytes(const BIGNUM* number, int size = 0) {
  std::string bytes(static_cast<size_t>(std::max(size, BN_num_bytes(number))), 0);
  BN_bn2binpad(number, reinterpret_cast<unsigned char*>(bytes.data()),
               static_cast<int>(bytes.size()));
  return bytes;
}

std::string Parameter(EVP_PKEY* key, const char* name, int size = 0) {
  BIGNUM* number = nullptr;
  Require(EVP_PKEY_get_bn_param(key, name, &number) == 1, name);
  std::string text = EncodeBase64Url(ToBytes(number, size));
  BN_free(number);
  return text;
}

// Returns the two numbers of a signature, concatenated (RFC 7518, 3.4).
std::string ToNumbers(const std::string& der) {
  const unsigned char* begin = Bytes(der);
  ECDSA_SIG* signature = d2i_ECDSA_SIG(nullptr, &begin, static_cast<long>(der.size()));
  Require(signature != nullptr, "d2i_ECDSA_SIG");
  std::string numbers = ToBytes(ECDSA_SIG_get0_r(signature), kCoordinateBytes) +
                        ToBytes(ECDSA_SIG_get0_s(signature), kCoordinateBytes);
  ECDSA_SIG_free(signature);
  return numbers;
}

std::string Join(std::string_view header, std::string_view claims) {
  return absl::StrCat(EncodeBase64Url(header), ".", EncodeBase64Url(claims));
}

}  // namespace

std::string EncodeBase64Url(std::string_view bytes) {
  return absl::WebSafeBase64Escape(ToAbsl(bytes));
}

TokenAuthority::TokenAuthority(std::string id, std::string algorithm, unsigned bits)
    : id_(std::move(id)),
      algorithm_(std::move(algorithm)),
      key_(algorithm_ == "RS256" ? EVP_RSA_gen(bits) : EVP_EC_gen("P-256"), EVP_PKEY_free) {
  Require(key_ != nullptr, "no key");
}

std::string TokenAuthority::Jwk() const {
  const std::string members =
      algorithm_ == "RS256"
          ? absl::StrCat("\"kty\":\"RSA\",\"n\":\"", Parameter(key_.get(), OSSL_PKEY_PARAM_RSA_N),
                         "\",\"e\":\"", Parameter(key_.get(), OSSL_PKEY_PARAM_RSA_E), "\"")
          : absl::StrCat("\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"",
                         Parameter(key_.get(), OSSL_PKEY_PARAM_EC_PUB_X, kCoordinateBytes),
                         "\",\"y\":\"",
                         Parameter(key_.get(), OSSL_PKEY_PARAM_EC_PUB_Y, kCoordinateBytes), "\"");
  return absl::StrCat("{\"kid\":\"", id_, "\",\"use\":\"sig\",", members, "}");
}

std::string TokenAuthority::Header() const {
  return absl::StrCat("{\"alg\":\"", algorithm_, "\",\"kid\":\"", id_, "\"}");
}

std::string TokenAuthority::Sign(std::string_view header, std::string_view claims) const {
  const std::string text = Join(header, claims);
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  size_t size = 0;
  Require(EVP_DigestSignInit(context, nullptr, EVP_sha256(), nullptr, key_.get()) == 1 &&
              EVP_DigestSign(context, nullptr, &size, Bytes(text), text.size()) == 1,
          "EVP_DigestSign");
  std::string signature(size, 0);
  Require(EVP_DigestSign(context, reinterpret_cast<unsigned char*>(signature.data()), &size,
                         Bytes(text), text.size()) == 1,
          "EVP_DigestSign");
  EVP_MD_CTX_free(context);
  signature.resize(size);
  if (algorithm_ == "ES256") signature = ToNumbers(signature);
  return absl::StrCat(text, ".", EncodeBase64Url(signature));
}

std::string TokenAuthority::Pem() const {
  BIO* memory = BIO_new(BIO_s_mem());
  Require(PEM_write_bio_PUBKEY(memory, key_.get()) == 1, "PEM_write_bio_PUBKEY");
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory, &data);
  std::string pem(data, static_cast<size_t>(size));
  BIO_free(memory);
  return pem;
}

std::string SignByHmac(std::string_view header, std::string_view claims, std::string_view secret) {
  const std::string text = Join(header, claims);
  std::string code(EVP_MAX_MD_SIZE, 0);
  unsigned size = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()), Bytes(text), text.size(),
       reinterpret_cast<unsigned char*>(code.data()), &size);
  code.resize(size);
  return absl::StrCat(text, ".", EncodeBase64Url(code));
}

}  // namespace crout::testing
