// SPDX-License-Identifier: Apache-2.0

#include "server/auth/identities.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "kernels/util/status_macros.h"
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

constexpr size_t kMaxCertificateName = 2048;  // limit of the SPIFFE standard
constexpr size_t kMaxSubject = 255;           // limit of OpenID Connect

absl::Status Bad(absl::string_view what) { return absl::InvalidArgumentError(what); }

// Shortens and escapes text from a file, which can contain any bytes.
std::string Quote(absl::string_view text) {
  constexpr size_t kShown = 64;
  return absl::StrCat("'", absl::CEscape(text.substr(0, kShown)),
                      text.size() > kShown ? "...'" : "'");
}

std::vector<std::string> SplitList(absl::string_view value) {
  std::vector<std::string> words;
  for (const absl::string_view word : absl::StrSplit(value, ',')) {
    words.emplace_back(absl::StripAsciiWhitespace(word));
  }
  return words;
}

// Parses the file line by line.
class Parser {
 public:
  absl::Status ParseLine(absl::string_view line) {
    line = absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
    if (line.empty()) return absl::OkStatus();
    if (line.front() == '[') return Begin(line);
    const size_t sign = line.find('=');
    if (sign == absl::string_view::npos) {
      return Bad(absl::StrCat(Quote(line), " is neither [NAME] nor KEY = VALUE"));
    }
    if (!current_)
      return Bad("this line comes before the first [NAME]; put it under the name of its identity");
    return ParseValue(absl::StripAsciiWhitespace(line.substr(0, sign)),
                      absl::StripAsciiWhitespace(line.substr(sign + 1)));
  }

  // Checks the current section. Call it before each new section and after the last line.
  absl::Status Finish() {
    if (!current_) return absl::OkStatus();
    const Identity& identity = identities_.at(*current_);
    if (identity.roles.none()) {
      return Bad(absl::StrCat("[", identity.name, "] has no line roles = ...: add its roles"));
    }
    if (identity.Has(Role::kSolve) && !identity.any_tenant && identity.tenants.empty()) {
      return Bad(absl::StrCat("[", identity.name, "] has no line tenants = ...: add its tenants"));
    }
    return absl::OkStatus();
  }

  Identities Release() { return std::move(identities_); }

 private:
  absl::Status Begin(absl::string_view line) {
    CROUT_RETURN_IF_ERROR(Finish());
    absl::string_view name = line;
    absl::ConsumePrefix(&name, "[");
    if (!absl::ConsumeSuffix(&name, "]") || !IsPrincipalName({name.data(), name.size()})) {
      return Bad(absl::StrCat(
          Quote(line), " is not [NAME] with a name of 1 to 64 characters of [A-Za-z0-9_.-]"));
    }
    current_ = identities_.AddIdentity(std::string(name));
    return current_ ? absl::OkStatus() : Bad(absl::StrCat("duplicate section ", line));
  }

  absl::Status ParseValue(absl::string_view key, absl::string_view value) {
    if (key == "token") return ParseToken(value);
    if (key == "subject") return ParseSubject(value);
    if (key == "certificate") return ParseCertificate(value);
    if (key == "socket") return ParseSocket(value);
    if (key == "tenants") return ParseTenants(value);
    if (key == "roles") return ParseRoles(value);
    return Bad(
        absl::StrCat(Quote(key), " is not token, subject, certificate, socket, tenants or roles"));
  }

  absl::Status ParseToken(absl::string_view value) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(value, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    absl::Time end = absl::InfiniteFuture();
    const bool timed = words.size() == 3 && words[1] == "until";
    // The error quotes no part of the line, which may contain the token itself.
    const auto hash =
        words.empty() ? std::nullopt : ParseTokenHash({words[0].data(), words[0].size()});
    if (!hash || (words.size() != 1 && !timed)) {
      return Bad(
          "token is not sha256:HASH or sha256:HASH until TIME (croutd token create prints the "
          "line)");
    }
    if (timed && (!absl::ParseTime(absl::RFC3339_full, words[2], &end, nullptr) ||
                  end == absl::InfiniteFuture() || end == absl::InfinitePast())) {
      return Bad(
          absl::StrCat(Quote(words[2]), " is not a time; write it like 2027-01-31T00:00:00Z"));
    }
    if (identities_.AddToken(*current_, *hash, end)) return absl::OkStatus();
    return Bad(absl::StrCat("duplicate token, or more than ", Identities::kMaxTokens, " tokens"));
  }

  absl::Status ParseSubject(absl::string_view value) {
    if (value.empty() || value.size() > kMaxSubject ||
        !std::all_of(value.begin(), value.end(), absl::ascii_isgraph)) {
      return Bad(absl::StrCat(Quote(value), " is not a subject: 1 to ", kMaxSubject,
                              " ASCII characters without spaces"));
    }
    if (identities_.AddSubject(*current_, std::string(value))) return absl::OkStatus();
    return Bad(absl::StrCat("duplicate subject ", Quote(value)));
  }

  absl::Status ParseCertificate(absl::string_view value) {
    const bool plain = !value.empty() && value.size() <= kMaxCertificateName &&
                       std::all_of(value.begin(), value.end(), absl::ascii_isgraph) &&
                       !absl::StrContains(value, '*');
    if (!plain) {
      return Bad(absl::StrCat(Quote(value), " is neither a SPIFFE ID nor a DNS name without *"));
    }
    if (identities_.AddCertificate(*current_, std::string(value))) return absl::OkStatus();
    return Bad(absl::StrCat("duplicate certificate ", Quote(value)));
  }

  absl::Status ParseSocket(absl::string_view value) {
    if (value != "unix")
      return Bad(absl::StrCat(Quote(value), " is not a socket; the only value is unix"));
    if (identities_.AddUnixSocket(*current_)) return absl::OkStatus();
    return Bad("duplicate socket = unix; only one identity can have it");
  }

  absl::Status ParseTenants(absl::string_view value) {
    Identity& identity = identities_.at(*current_);
    if (identity.any_tenant || !identity.tenants.empty())
      return Bad("duplicate tenants; write one list");
    if (value == "*") {
      identity.any_tenant = true;
      return absl::OkStatus();
    }
    for (std::string& tenant : SplitList(value)) {
      if (!IsPrincipalName(tenant)) {
        return Bad(absl::StrCat(Quote(tenant),
                                " is not a tenant: a name of 1 to 64 characters of [A-Za-z0-9_.-], "
                                "or * alone for all tenants"));
      }
      identity.tenants.push_back(std::move(tenant));
    }
    return absl::OkStatus();
  }

  absl::Status ParseRoles(absl::string_view value) {
    Identity& identity = identities_.at(*current_);
    if (identity.roles.any()) return Bad("duplicate roles; write one list");
    for (const std::string& word : SplitList(value)) {
      const auto* const found = std::find(kRoleNames.begin(), kRoleNames.end(), word);
      if (found == kRoleNames.end()) {
        return Bad(absl::StrCat(
            Quote(word), " is not a role; the roles are solve, factor, metrics, rank and admin"));
      }
      identity.roles.set(static_cast<size_t>(found - kRoleNames.begin()));
    }
    if (identity.Has(Role::kAdmin)) identity.roles.set();
    if (identity.Has(Role::kFactor)) identity.roles.set(static_cast<size_t>(Role::kSolve));
    return absl::OkStatus();
  }

  Identities identities_;
  std::optional<size_t> current_;
};

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

absl::StatusOr<Identities> ParseIdentities(std::string_view text) {
  Parser parser;
  int number = 0;
  absl::Status status;
  for (const absl::string_view line : absl::StrSplit(ToAbsl(text), '\n')) {
    ++number;
    status = parser.ParseLine(line);
    if (!status.ok()) break;
  }
  if (status.ok()) status = parser.Finish();
  if (!status.ok()) return Bad(absl::StrCat("line ", number, ": ", status.message()));
  return parser.Release();
}

std::string Explain(CredentialError error, const Credentials& credentials) {
  const std::string names = absl::CEscape(absl::StrJoin(credentials.certificate_names, ", "));
  switch (error) {
    case CredentialError::kUnknownToken:
      return "the token is unknown: it was withdrawn, it belongs to another server, or it was "
             "signed by an unknown key; ask the operator for a new token";
    case CredentialError::kExpiredToken:
      return "the token has expired: ask the operator for a new token";
    case CredentialError::kEarlyToken:
      return "the token is not valid yet: wait, or correct the clock of this machine or of the "
             "token's issuer";
    case CredentialError::kForeignToken:
      return "the token has another issuer or audience than this server requires: request a token "
             "for this server";
    case CredentialError::kUnknownSubject:
      return "the token is valid, but no identity has its subject: ask the operator to add the "
             "line subject = NAME";
    case CredentialError::kUnknownCertificate:
      return absl::StrCat("no identity has a name of the client's certificate (", names,
                          "): ask the operator for a line certificate = NAME, or send a token");
    case CredentialError::kAmbiguousCertificate:
      return absl::StrCat("the names of the client's certificate (", names,
                          ") belong to several identities: send a token as well");
    case CredentialError::kNoCredentials:
      break;
  }
  return "the call has no credentials: send a token (metadata 'authorization: Bearer TOKEN', "
         "croutctl --token-file), or present a client certificate of an identity";
}

}  // namespace crout
