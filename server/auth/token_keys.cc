// SPDX-License-Identifier: Apache-2.0

#include "server/auth/token_keys.h"

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/param_build.h>
#include <openssl/x509.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/strings.h"
#include "nlohmann/json.hpp"
#include "server/auth/openssl.h"

namespace crout {
namespace {

using Json = nlohmann::json;

bool IsBase64UrlChar(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
}

// Parses a JSON object. Returns nothing for any other text, and for a text in which an object has
// duplicate member names: two parsers could read it differently (RFC 8259, section 4).
std::optional<Json> ParseStrictObject(std::string_view text) {
  std::vector<std::set<std::string>> names;  // member names of the open objects, outermost first
  bool has_duplicate = false;
  const auto check_name = [&](int /*depth*/, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) names.emplace_back();
    if (event == Json::parse_event_t::object_end) names.pop_back();
    if (event == Json::parse_event_t::key && !names.back().insert(parsed.get<std::string>()).second)
      has_duplicate = true;
    return true;
  };
  Json parsed = Json::parse(text.begin(), text.end(), check_name, /*allow_exceptions=*/false);
  if (!parsed.is_object() || has_duplicate) return std::nullopt;
  return parsed;
}

// Returns the member `name` of `object` if it is a string, else nothing.
std::optional<std::string> StringIn(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

// Decodes base64url without padding (RFC 4648, section 5). Returns nothing for any other text,
// including non-canonical encodings of the same bytes.
std::optional<std::string> DecodeBase64Url(std::string_view text) {
  std::string bytes;
  if (!std::all_of(text.begin(), text.end(), IsBase64UrlChar) ||
      !absl::WebSafeBase64Unescape(ToAbsl(text), &bytes) ||
      absl::WebSafeBase64Escape(bytes) != ToAbsl(text)) {
    return std::nullopt;
  }
  return bytes;
}

constexpr std::string_view kRs256 = "RS256";
constexpr std::string_view kEs256 = "ES256";
constexpr size_t kMinModulusBytes = 2048 / 8;
constexpr size_t kMaxModulusBytes = 4096 / 8;
constexpr size_t kMaxExponentBytes = 4;  // a longer exponent would slow down each verification
constexpr size_t kMaxAudiences = 32;     // bounds the memory of a call, which stores them
constexpr size_t kCoordinateBytes = 32;  // for P-256

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

openssl::Number ToNumber(std::string_view bytes) {
  return openssl::Number(BN_bin2bn(Bytes(bytes), static_cast<int>(bytes.size()), nullptr));
}

// Returns null if the parameters form no valid key, for example a point that is not on its curve.
std::shared_ptr<EVP_PKEY> MakeKey(const char* kind, OSSL_PARAM_BLD* builder) {
  const openssl::Params params(OSSL_PARAM_BLD_to_param(builder));
  const openssl::KeyContext maker(EVP_PKEY_CTX_new_from_name(nullptr, kind, nullptr));
  EVP_PKEY* made = nullptr;
  if (params == nullptr || maker == nullptr || EVP_PKEY_fromdata_init(maker.get()) != 1 ||
      EVP_PKEY_fromdata(maker.get(), &made, EVP_PKEY_PUBLIC_KEY, params.get()) != 1) {
    return nullptr;
  }
  std::shared_ptr<EVP_PKEY> key(made, EVP_PKEY_free);
  const openssl::KeyContext checker(EVP_PKEY_CTX_new_from_pkey(nullptr, made, nullptr));
  if (checker == nullptr || EVP_PKEY_public_check(checker.get()) != 1) return nullptr;
  return key;
}

std::shared_ptr<EVP_PKEY> MakeRsaKey(const Json& jwk) {
  const auto modulus = DecodeBase64Url(StringIn(jwk, "n").value_or(""));
  const auto exponent = DecodeBase64Url(StringIn(jwk, "e").value_or(""));
  if (!modulus || modulus->size() < kMinModulusBytes || modulus->size() > kMaxModulusBytes ||
      !exponent || exponent->empty() || exponent->size() > kMaxExponentBytes) {
    return nullptr;
  }
  const openssl::Number n = ToNumber(*modulus);
  const openssl::Number e = ToNumber(*exponent);
  // RFC 7518, 6.3.1.1 forbids leading zeros, which would make a short modulus look long.
  if (n == nullptr || e == nullptr || static_cast<size_t>(BN_num_bytes(n.get())) != modulus->size())
    return nullptr;
  const openssl::ParamBuilder builder(OSSL_PARAM_BLD_new());
  if (builder == nullptr ||
      OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, n.get()) != 1 ||
      OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, e.get()) != 1) {
    return nullptr;
  }
  return MakeKey("RSA", builder.get());
}

std::shared_ptr<EVP_PKEY> MakeEcKey(const Json& jwk) {
  const auto x = DecodeBase64Url(StringIn(jwk, "x").value_or(""));
  const auto y = DecodeBase64Url(StringIn(jwk, "y").value_or(""));
  if (!x || x->size() != kCoordinateBytes || !y || y->size() != kCoordinateBytes) return nullptr;
  const std::string point = absl::StrCat("\x04", *x, *y);  // uncompressed: SEC 1, 2.3.3
  const openssl::ParamBuilder builder(OSSL_PARAM_BLD_new());
  if (builder == nullptr ||
      OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0) !=
          1 ||
      OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(),
                                       point.size()) != 1) {
    return nullptr;
  }
  return MakeKey("EC", builder.get());
}

std::optional<TokenHash> FingerprintOf(EVP_PKEY* key) {
  unsigned char* der = nullptr;
  const int size = i2d_PUBKEY(key, &der);
  if (size <= 0) return std::nullopt;
  const std::unique_ptr<unsigned char, void (*)(unsigned char*)> owned(
      der, [](unsigned char* bytes) { OPENSSL_free(bytes); });
  return HashToken({reinterpret_cast<const char*>(der), static_cast<size_t>(size)});
}

// Converts a JWS signature, two concatenated numbers (RFC 7518, 3.4), to the DER sequence that
// OpenSSL expects. Returns "" if the length is wrong.
std::string ToEcSignature(std::string_view numbers) {
  if (numbers.size() != 2 * kCoordinateBytes) return "";
  const openssl::EcSignature signature(ECDSA_SIG_new());
  openssl::Number r = ToNumber(numbers.substr(0, kCoordinateBytes));
  openssl::Number s = ToNumber(numbers.substr(kCoordinateBytes));
  if (signature == nullptr || r == nullptr || s == nullptr ||
      ECDSA_SIG_set0(signature.get(), r.get(), s.get()) != 1) {
    return "";
  }
  static_cast<void>(r.release());  // `signature` owns both now
  static_cast<void>(s.release());
  unsigned char* der = nullptr;
  const int size = i2d_ECDSA_SIG(signature.get(), &der);
  if (size <= 0) return "";
  std::string text(reinterpret_cast<const char*>(der), static_cast<size_t>(size));
  OPENSSL_free(der);
  return text;
}

bool IsSignature(EVP_PKEY* key, std::string_view signature, std::string_view text) {
  const openssl::DigestContext context(EVP_MD_CTX_new());
  return context != nullptr &&
         EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, key) == 1 &&
         EVP_DigestVerify(context.get(), Bytes(signature), signature.size(), Bytes(text),
                          text.size()) == 1;
}

// Reads a NumericDate (RFC 7519, 2) in the range from 1970 to 9999.
std::optional<absl::Time> TimeIn(const Json& claims, const char* name) {
  constexpr double kMaxSeconds = 253402300799;  // the end of the year 9999
  const auto found = claims.find(name);
  if (found == claims.end() || !found->is_number()) return std::nullopt;
  const double seconds = found->get<double>();
  if (!(seconds >= 0 && seconds <= kMaxSeconds)) return std::nullopt;
  return absl::UnixEpoch() + absl::Seconds(seconds);
}

// Reads "aud": one string, or an array of at most kMaxAudiences strings. Returns an empty list for
// any other value.
std::vector<std::string> AudiencesIn(const Json& claims) {
  const auto found = claims.find("aud");
  if (found == claims.end()) return {};
  if (found->is_string()) return {found->get<std::string>()};
  if (!found->is_array() || found->size() > kMaxAudiences) return {};
  std::vector<std::string> audiences;
  for (const Json& audience : *found) {
    if (!audience.is_string()) return {};
    audiences.push_back(audience.get<std::string>());
  }
  return audiences;
}

std::optional<SignedToken> ReadClaims(std::string_view encoded, const TokenHash& key) {
  const auto bytes = DecodeBase64Url(encoded);
  const auto claims = bytes ? ParseStrictObject(*bytes) : std::nullopt;
  if (!claims) return std::nullopt;
  const auto issuer = StringIn(*claims, "iss");
  const auto subject = StringIn(*claims, "sub");
  const auto end = TimeIn(*claims, "exp");
  const auto begin =
      claims->contains("nbf") ? TimeIn(*claims, "nbf") : std::optional(absl::InfinitePast());
  std::vector<std::string> audiences = AudiencesIn(*claims);
  if (!issuer || !subject || !end || !begin || audiences.empty()) return std::nullopt;
  return SignedToken{key, *issuer, std::move(audiences), *subject, *begin, *end};
}

absl::Status BadKeys(absl::string_view what) { return absl::InvalidArgumentError(what); }

}  // namespace

// Parses a key set key by key.
class TokenKeyParser {
 public:
  absl::Status ParseKey(const Json& jwk) {
    if (!jwk.is_object()) return BadKeys(absl::StrCat(KeyLabel(), " is not an object"));
    const bool rsa = StringIn(jwk, "kty") == "RSA";
    const bool ec = StringIn(jwk, "kty") == "EC" && StringIn(jwk, "crv") == "P-256";
    const std::string_view algorithm = rsa ? kRs256 : kEs256;
    if (jwk.contains("d") || jwk.contains("k")) {
      return BadKeys(
          absl::StrCat(KeyLabel(), " is a private key; the file must contain only public keys"));
    }
    // RFC 7517, 4.2: a key with the "use" "enc" is for encryption and verifies no signature.
    const bool is_usable = (rsa || ec) && StringIn(jwk, "use").value_or("sig") == "sig" &&
                           StringIn(jwk, "alg").value_or(std::string(algorithm)) == algorithm;
    if (is_usable) {
      CROUT_RETURN_IF_ERROR(Add(StringIn(jwk, "kid").value_or(""), algorithm,
                                rsa ? MakeRsaKey(jwk) : MakeEcKey(jwk)));
    }
    ++number_;
    return absl::OkStatus();
  }

  absl::StatusOr<TokenKeys> Release() {
    if (keys_.keys_.empty()) return BadKeys("has no key for RS256 or ES256");
    return std::move(keys_);
  }

 private:
  std::string KeyLabel() const { return absl::StrCat("key ", number_, " of \"keys\""); }

  absl::Status Add(std::string id, std::string_view algorithm, std::shared_ptr<EVP_PKEY> key) {
    if (id.empty())
      return BadKeys(
          absl::StrCat(KeyLabel(), " has no \"kid\", which tokens need to refer to the key"));
    if (key == nullptr) {
      return BadKeys(
          absl::StrCat(KeyLabel(), " is not an RSA key of 2048 to 4096 bits or a P-256 EC key"));
    }
    const bool known = std::any_of(keys_.keys_.begin(), keys_.keys_.end(),
                                   [&](const TokenKeys::Key& other) { return other.id == id; });
    if (known) return BadKeys(absl::StrCat(KeyLabel(), " has the same \"kid\" as another key"));
    if (keys_.keys_.size() == TokenKeys::kMaxKeys) {
      return BadKeys(absl::StrCat("has more than ", TokenKeys::kMaxKeys, " keys"));
    }
    const auto fingerprint = FingerprintOf(key.get());
    if (!fingerprint) return BadKeys(absl::StrCat(KeyLabel(), " cannot be encoded"));
    keys_.keys_.push_back({std::move(id), algorithm, std::move(key), *fingerprint});
    return absl::OkStatus();
  }

  TokenKeys keys_;
  int number_ = 1;  // 1-based position of the next key, for messages
};

absl::StatusOr<TokenKeys> TokenKeys::Parse(std::string_view text) {
  const auto set = ParseStrictObject(text);
  const auto keys = set ? set->find("keys") : Json::const_iterator();
  if (!set || keys == set->end() || !keys->is_array()) {
    return BadKeys(
        "is not a JSON object with an array \"keys\" and without duplicate member names");
  }
  TokenKeyParser parser;
  for (const Json& key : *keys) CROUT_RETURN_IF_ERROR(parser.ParseKey(key));
  return parser.Release();
}

std::optional<SignedToken> TokenKeys::Verify(std::string_view token) const {
  if (token.size() > kMaxTokenBytes) return std::nullopt;
  const std::vector<absl::string_view> parts = absl::StrSplit(ToAbsl(token), '.');
  if (parts.size() != 3) return std::nullopt;
  const auto header_bytes = DecodeBase64Url({parts[0].data(), parts[0].size()});
  const auto header = header_bytes ? ParseStrictObject(*header_bytes) : std::nullopt;
  const auto signature = DecodeBase64Url({parts[2].data(), parts[2].size()});
  // "crit" lists required extensions. None is supported (RFC 7515, 4.1.11).
  if (!header || !signature || header->contains("crit")) return std::nullopt;
  const auto id = StringIn(*header, "kid");
  const auto algorithm = StringIn(*header, "alg");
  // The key determines the algorithm. A token with "none", or with HS256 and the public key as its
  // secret, therefore matches no key.
  const auto found = std::find_if(keys_.begin(), keys_.end(), [&](const Key& key) {
    return key.id == id && key.algorithm == algorithm;
  });
  if (found == keys_.end()) return std::nullopt;
  const std::string_view signed_text = token.substr(0, parts[0].size() + 1 + parts[1].size());
  const std::string checked = found->algorithm == kEs256 ? ToEcSignature(*signature) : *signature;
  if (checked.empty() || !IsSignature(found->key.get(), checked, signed_text)) return std::nullopt;
  return ReadClaims({parts[1].data(), parts[1].size()}, found->fingerprint);
}

bool TokenKeys::Has(const TokenHash& key) const {
  return std::any_of(keys_.begin(), keys_.end(),
                     [&](const Key& other) { return other.fingerprint == key; });
}

}  // namespace crout
