// SPDX-License-Identifier: Apache-2.0

#include "server/auth/identities.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "kernels/util/strings.h"
#include "server/auth/token_keys.h"

namespace crout {
namespace {

constexpr size_t kMaxNameBytes = 64;

bool IsNameChar(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-';
}

// Lowercases DNS names, which are case-insensitive. SPIFFE IDs already have a lowercase scheme and
// trust domain.
std::string Canonical(std::string_view name) {
  constexpr std::string_view kSpiffe = "spiffe://";
  return name.substr(0, kSpiffe.size()) == kSpiffe ? std::string(name)
                                                   : absl::AsciiStrToLower(ToAbsl(name));
}

}  // namespace

bool IsPrincipalName(std::string_view text) {
  return !text.empty() && text.size() <= kMaxNameBytes &&
         std::all_of(text.begin(), text.end(), IsNameChar);
}

bool Identity::MayUse(std::string_view tenant) const {
  return any_tenant || std::find(tenants.begin(), tenants.end(), tenant) != tenants.end();
}

std::optional<size_t> Identities::AddIdentity(std::string name) {
  const bool known = std::any_of(identities_.begin(), identities_.end(),
                                 [&](const Identity& other) { return other.name == name; });
  if (known) return std::nullopt;
  identities_.push_back({.name = std::move(name), .tenants = {}, .any_tenant = false, .roles = {}});
  return identities_.size() - 1;
}

bool Identities::AddCertificate(size_t identity, std::string name) {
  return certificates_.emplace(Canonical(name), identity).second;
}

bool Identities::AddToken(size_t identity, const TokenHash& hash, absl::Time end) {
  const bool known = std::any_of(tokens_.begin(), tokens_.end(),
                                 [&](const Token& other) { return SameHash(other.hash, hash); });
  if (known || tokens_.size() == kMaxTokens) return false;
  tokens_.push_back({hash, end, identity});
  return true;
}

bool Identities::AddSubject(size_t identity, std::string subject) {
  return subjects_.emplace(std::move(subject), identity).second;
}

bool Identities::AddUnixSocket(size_t identity) {
  if (unix_socket_) return false;
  unix_socket_ = identity;
  return true;
}

void Identities::SetSigned(std::shared_ptr<const TokenKeys> keys, SignedTokenSettings settings) {
  keys_ = std::move(keys);
  signed_ = std::move(settings);
}

Credentials Identities::Read(std::string_view token) const {
  Credentials credentials;
  if (keys_ != nullptr) credentials.signed_token = keys_->Verify(token);
  if (!credentials.signed_token) credentials.token = HashToken(token);
  return credentials;
}

IdentityMatch Identities::Match(const Credentials& credentials, absl::Time now) const {
  if (credentials.token) return MatchToken(*credentials.token, now);
  if (credentials.signed_token) return MatchSignedToken(*credentials.signed_token, now);
  if (!credentials.certificate_names.empty())
    return MatchCertificate(credentials.certificate_names);
  if (credentials.on_unix_socket && unix_socket_) return {.identity = &identities_[*unix_socket_]};
  return {.error = CredentialError::kNoCredentials};
}

IdentityMatch Identities::MatchToken(const TokenHash& hash, absl::Time now) const {
  const Token* found = nullptr;
  for (const Token& token : tokens_) {
    // No early exit: the time must not depend on the match.
    if (SameHash(token.hash, hash)) found = &token;
  }
  if (found == nullptr) return {.error = CredentialError::kUnknownToken};
  if (now >= found->end) return {.error = CredentialError::kExpiredToken};
  return {.identity = &identities_[found->identity], .end = found->end};
}

IdentityMatch Identities::MatchSignedToken(const SignedToken& token, absl::Time now) const {
  if (keys_ == nullptr || !keys_->Has(token.key)) return {.error = CredentialError::kUnknownToken};
  const auto& audiences = token.audiences;
  if (token.issuer != signed_.issuer ||
      std::find(audiences.begin(), audiences.end(), signed_.audience) == audiences.end()) {
    return {.error = CredentialError::kForeignToken};
  }
  if (now >= token.end + kClockSkew) return {.error = CredentialError::kExpiredToken};
  if (now < token.begin - kClockSkew) return {.error = CredentialError::kEarlyToken};
  const auto found = subjects_.find(token.subject);
  if (found == subjects_.end()) return {.error = CredentialError::kUnknownSubject};
  return {.identity = &identities_[found->second], .end = token.end + kClockSkew};
}

IdentityMatch Identities::MatchCertificate(const std::vector<std::string>& names) const {
  std::optional<size_t> identity;
  for (const std::string& name : names) {
    const auto found = certificates_.find(Canonical(name));
    if (found == certificates_.end()) continue;
    if (identity && *identity != found->second)
      return {.error = CredentialError::kAmbiguousCertificate};
    identity = found->second;
  }
  if (!identity) return {.error = CredentialError::kUnknownCertificate};
  return {.identity = &identities_[*identity]};
}

}  // namespace crout
