// SPDX-License-Identifier: Apache-2.0

// Identities of callers: their credentials and their rights.
#ifndef CROUT_SERVER_AUTH_IDENTITIES_H_
#define CROUT_SERVER_AUTH_IDENTITIES_H_

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/auth/token.h"

namespace crout {

// Access to the operators' interfaces: health, reflection, metrics and the status page.
enum class Access : uint8_t {
  kOff,    // disabled
  kOpen,   // any client that can connect
  kRoles,  // identities with a role
};

class TokenKeys;

// Roles of an identity. docs/operations/security.md lists the calls and pages that each permits.
enum class Role : uint8_t {
  kSolve,    // use existing factors
  kFactor,   // make, replace and release factors; includes kSolve
  kMetrics,  // read the metrics
  kRank,     // join a group of ranks
  kAdmin,    // everything, including the status page
};
inline constexpr std::array<std::string_view, 5> kRoleNames = {"solve", "factor", "metrics", "rank",
                                                               "admin"};
using Roles = std::bitset<kRoleNames.size()>;

// Returns true if `text` is a valid name of a tenant or identity: 1 to 64 characters of
// [A-Za-z0-9_.-].
bool IsPrincipalName(std::string_view text);

// An authenticated caller and its rights.
struct Identity {
  std::string name;
  std::vector<std::string> tenants;  // the first is the default for calls that name no tenant
  bool any_tenant = false;  // every tenant; `tenants` is then empty, and the default is "default"
  Roles roles;              // including implied roles

  bool Has(Role role) const { return roles[static_cast<size_t>(role)]; }
  bool MayUse(std::string_view tenant) const;
};

// The credentials that a caller presents. A token takes precedence over a certificate and a socket.
struct Credentials {
  std::optional<TokenHash> token = std::nullopt;
  // Names in a verified certificate: its SPIFFE ID if it has one, else its DNS names.
  std::vector<std::string> certificate_names = {};
  // Set instead of `token` if a key of the Identities signed the token.
  std::optional<SignedToken> signed_token = std::nullopt;
  bool on_unix_socket = false;  // used only if there is no token and no certificate
};

// Reasons for the rejection of credentials.
enum class CredentialError : uint8_t {
  kNoCredentials,
  kUnknownToken,  // unknown, or signed by an unknown key
  kExpiredToken,
  kEarlyToken,      // not valid yet
  kForeignToken,    // from another issuer, or for another audience
  kUnknownSubject,  // a valid signed token of an unknown subject
  kUnknownCertificate,
  kAmbiguousCertificate,  // its names belong to several identities
};

// Explains why `credentials` identify no caller, and what to do. The text contains no token.
std::string Explain(CredentialError error, const Credentials& credentials);

// The identity that credentials belong to, or the reason why there is none.
struct IdentityMatch {
  const Identity* identity = nullptr;  // null: no identity; points into the Identities
  CredentialError error = CredentialError::kNoCredentials;
  absl::Time end = absl::InfiniteFuture();  // the credentials are invalid from this time on
};

// The identities that may call. Const functions are thread-safe while no other function is called.
class Identities {
 public:
  // Bounds the time of a lookup, which compares a token with all known tokens.
  static constexpr size_t kMaxTokens = 1024;

  // Each function adds one entry. AddIdentity() returns the `identity` that the other functions and
  // at() accept. A duplicate is not added, and neither is a token beyond kMaxTokens: AddIdentity()
  // then returns nothing, and the others return false.
  std::optional<size_t> AddIdentity(std::string name);
  bool AddCertificate(size_t identity, std::string name);
  bool AddToken(size_t identity, const TokenHash& hash, absl::Time end);
  bool AddSubject(size_t identity, std::string subject);
  // Sets the identity of calls on a Unix socket without other credentials. Returns false if it is
  // already set.
  bool AddUnixSocket(size_t identity);
  // Accepts tokens signed by `keys`, if they have the issuer and the audience of `settings`.
  void SetSigned(std::shared_ptr<const TokenKeys> keys, SignedTokenSettings settings);
  Identity& at(size_t identity) { return identities_[identity]; }

  // Returns the credentials in `token`: the claims of a signed token with a valid signature, else
  // the hash of the token.
  Credentials Read(std::string_view token) const;
  // Returns the identity of `credentials` at the time `now`, or the reason for their rejection.
  IdentityMatch Match(const Credentials& credentials, absl::Time now) const;

  const std::vector<Identity>& all() const { return identities_; }

 private:
  struct Token {
    TokenHash hash;
    absl::Time end;  // the token is invalid from this time on
    size_t identity;
  };
  IdentityMatch MatchToken(const TokenHash& hash, absl::Time now) const;
  IdentityMatch MatchSignedToken(const SignedToken& token, absl::Time now) const;
  IdentityMatch MatchCertificate(const std::vector<std::string>& names) const;

  std::vector<Identity> identities_;
  std::vector<Token> tokens_;
  absl::flat_hash_map<std::string, size_t> certificates_;
  absl::flat_hash_map<std::string, size_t> subjects_;
  std::optional<size_t> unix_socket_;
  std::shared_ptr<const TokenKeys> keys_;  // null: signed tokens are not accepted
  SignedTokenSettings signed_;
};

// The file of --identities.
//
//   # The callers of Crout. Blank lines and text after # are ignored.
//   [alice]
//   token = sha256:6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b
//   token = sha256:d473... until 2027-01-31T00:00:00Z
//   certificate = spiffe://example.org/alice
//   tenants = alice, shared
//   roles = factor
//
// Parses the text of such a file. INVALID_ARGUMENT, "line N: ...", for malformed text, for
// duplicate entries, for an identity without roles, and for an identity without tenants that has a
// role other than kMetrics and kRank.
absl::StatusOr<Identities> ParseIdentities(std::string_view text);

}  // namespace crout

#endif  // CROUT_SERVER_AUTH_IDENTITIES_H_
