// SPDX-License-Identifier: Apache-2.0

// Tokens that an authority outside of the daemon has signed (JSON Web Tokens, RFC 7519).
#ifndef CROUT_SERVER_AUTH_SIGNED_TOKEN_H_
#define CROUT_SERVER_AUTH_SIGNED_TOKEN_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/auth/token.h"

namespace crout {

// Whose signed tokens are taken. Either all are empty, and none is, or none.
struct SignedTokenSettings {
  std::string keys_file;  // JWKS of the authority's public keys
  std::string issuer;     // that a token has to name: its "iss"
  std::string audience;   // that has to be among those a token is for: its "aud"
};

// The clocks of authority and daemon may differ by so much.
inline constexpr absl::Duration kClockSkew = absl::Seconds(30);

// What a token says whose signature is good. Whether that is enough, Identities know.
struct SignedToken {
  TokenHash key;                       // of the key that signed it: TokenKeys::Has()
  std::string issuer;                  // "iss"
  std::vector<std::string> audiences;  // "aud"
  std::string subject;                 // "sub"
  absl::Time begin;                    // "nbf"; else in the infinite past
  absl::Time end;                      // "exp"
};

}  // namespace crout

#endif  // CROUT_SERVER_AUTH_SIGNED_TOKEN_H_
