// SPDX-License-Identifier: Apache-2.0

#include "server/auth/token.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "kernels/util/strings.h"

namespace crout {
namespace {

constexpr size_t kRandomBytes = 32;
// By it a token is recognised where it should not be: in a log, in a repository.
constexpr absl::string_view kTokenPrefix = "crout_";
constexpr absl::string_view kHashPrefix = "sha256:";

}  // namespace

absl::StatusOr<std::string> MakeToken() {
  std::string random(kRandomBytes, 0);
  if (RAND_bytes(reinterpret_cast<unsigned char*>(random.data()), kRandomBytes) != 1) {
    return absl::InternalError("cannot read random bytes from the system for a token");
  }
  const std::string text = absl::WebSafeBase64Escape(random);
  OPENSSL_cleanse(random.data(), random.size());
  return absl::StrCat(kTokenPrefix, text);
}

TokenHash HashToken(std::string_view token) {
  TokenHash hash;
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), hash.data());
  return hash;
}

std::optional<std::string_view> TokenOf(std::string_view authorization) {
  constexpr absl::string_view kScheme = "Bearer ";  // of any case
  absl::string_view token = ToAbsl(authorization);
  if (!absl::StartsWithIgnoreCase(token, kScheme)) return std::nullopt;
  token = absl::StripAsciiWhitespace(token.substr(kScheme.size()));
  return std::string_view(token.data(), token.size());
}

bool SameHash(const TokenHash& a, const TokenHash& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string FormatTokenHash(const TokenHash& hash) {
  const absl::string_view bytes(reinterpret_cast<const char*>(hash.data()), hash.size());
  return absl::StrCat(kHashPrefix, absl::BytesToHexString(bytes));
}

std::optional<TokenHash> ParseTokenHash(std::string_view text) {
  absl::string_view digits = ToAbsl(text);
  TokenHash hash;
  if (!absl::ConsumePrefix(&digits, kHashPrefix) || digits.size() != 2 * hash.size() ||
      !std::all_of(digits.begin(), digits.end(), absl::ascii_isxdigit)) {
    return std::nullopt;
  }
  const std::string bytes = absl::HexStringToBytes(digits);
  std::copy(bytes.begin(), bytes.end(), hash.begin());
  return hash;
}

}  // namespace crout
