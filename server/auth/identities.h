// SPDX-License-Identifier: Apache-2.0

// Those who may call, what shows who they are, and what they may do.
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
#include "server/auth/signed_token.h"
#include "server/auth/token.h"

namespace crout {

class TokenKeys;

// Roles of an identity. docs/operations/security.md lists the calls and pages that each permits.
enum class Role : uint8_t {
  kSolve,    // use the factors that are there
  kFactor,   // make, replace and release factors; includes kSolve
  kMetrics,  // read the metrics
  kAdmin,    // everything, the status page too
};
inline constexpr std::array<std::string_view, 4> kRoleNames = {"solve", "factor", "metrics",
                                                               "admin"};
using Roles = std::bitset<kRoleNames.size()>;

// Whether `text` can name a tenant or an identity: 1 to 64 of [A-Za-z0-9_.-].
bool IsPrincipalName(std::string_view text);

struct Identity {
  std::string name;
  std::vector<std::string> tenants;  // the first: of calls that name none
  bool any_tenant = false;           // then `tenants` is empty, and calls that name none have
                                     // "default"
  Roles roles;                       // with those that they include

  bool Has(Role role) const { return roles[static_cast<size_t>(role)]; }
  bool MayUse(std::string_view tenant) const;
};

// What a caller shows. A token, where there is one, says alone who it is.
struct Credentials {
  std::optional<TokenHash> token = std::nullopt;
  // Of a certificate that was verified: its SPIFFE ID where it has one, else its DNS names.
  std::vector<std::string> certificate_names = {};
  // In place of `token`: one that was signed by a key which the Identities had.
  std::optional<SignedToken> signed_token = std::nullopt;
  bool on_unix_socket = false;  // counts where nothing else is shown
};

// Why credentials are not taken.
enum class Stranger : uint8_t {
  kNoCredentials,
  kUnknownToken,  // also one that is signed by no key that there is
  kExpiredToken,
  kEarlyToken,      // its time has not begun
  kForeignToken,    // of another issuer, or for another audience
  kUnknownSubject,  // a signed token is good, and of nobody who is known
  kUnknownCertificate,
  kAmbiguousCertificate,  // its names are those of several identities
};

// Who `credentials` show, or why they show nobody.
struct Recognition {
  const Identity* identity = nullptr;  // null: a stranger; points into the Identities
  Stranger stranger = Stranger::kNoCredentials;
  absl::Time end = absl::InfiniteFuture();  // from then on the credentials show nobody
};

// Constant after it was filled, and then thread-safe.
class Identities {
 public:
  // A token is compared with all there are, whichever it is.
  static constexpr size_t kMaxTokens = 1024;

  // Each adds to what is there: false where the name, the certificate's name or the token has
  // been added before, or where there are too many tokens. `identity`: what AddIdentity() gave.
  std::optional<size_t> AddIdentity(std::string name);
  bool AddCertificate(size_t identity, std::string name);
  bool AddToken(size_t identity, const TokenHash& hash, absl::Time end);
  bool AddSubject(size_t identity, std::string subject);
  // Whose a call on a Unix socket is that shows nothing.
  bool AddUnixSocket(size_t identity);
  // From now on tokens are taken that these keys have signed, of the issuer and for the audience of
  // `settings`.
  void SetSigned(std::shared_ptr<const TokenKeys> keys, SignedTokenSettings settings);
  Identity& at(size_t identity) { return identities_[identity]; }

  // What `token` shows: a signed token's claims, if the signature is good, and else its hash.
  Credentials Read(std::string_view token) const;
  Recognition Recognise(const Credentials& credentials, absl::Time now) const;

  const std::vector<Identity>& all() const { return identities_; }

 private:
  struct Token {
    TokenHash hash;
    absl::Time end;  // from then on it is no longer good
    size_t identity;
  };
  Recognition RecogniseToken(const TokenHash& hash, absl::Time now) const;
  Recognition RecogniseSigned(const SignedToken& token, absl::Time now) const;
  Recognition RecogniseCertificate(const std::vector<std::string>& names) const;

  std::vector<Identity> identities_;
  std::vector<Token> tokens_;
  absl::flat_hash_map<std::string, size_t> certificates_;
  absl::flat_hash_map<std::string, size_t> subjects_;
  std::optional<size_t> unix_socket_;
  std::shared_ptr<const TokenKeys> keys_;  // null: no signed token is taken
  SignedTokenSettings signed_;
};

}  // namespace crout

#endif  // CROUT_SERVER_AUTH_IDENTITIES_H_
