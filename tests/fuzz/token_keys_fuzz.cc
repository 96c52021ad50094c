// SPDX-License-Identifier: Apache-2.0

// Fuzzes the readers of key sets (JWKS) and tokens with any bytes. A signature must never be
// accepted.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "server/auth/token_keys.h"

namespace {

// The key set of RFC 7515, A.3.
constexpr char kKeys[] = R"({"keys":[{"kty":"EC","crv":"P-256","kid":"a3",
"x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
"y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]})";

void Require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static const crout::TokenKeys keys = crout::TokenKeys::Parse(kKeys).value();
  Require(!keys.Verify(text));
  const auto parsed = crout::TokenKeys::Parse(text);
  if (parsed.ok()) {
    Require(!parsed->Verify(text));
  } else {
    Require(parsed.status().message().size() < 500);
  }
  return 0;
}
