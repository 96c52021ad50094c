// SPDX-License-Identifier: Apache-2.0

// Fuzzes the reader of a client's servers file with any bytes. Accepted values must be consistent.
// A refusal must have a short, printable message with the line number.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "client/cpp/servers.h"

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const char* name : {"a", "lab"}) {
    const auto server = crout::internal::ReadServer({text.data(), text.size()}, "/d/servers", name);
    if (!server.ok()) {
      const absl::string_view message = server.status().message();
      Require(absl::IsNotFound(server.status()) || absl::StartsWith(message, "/d/servers line "));
      Require(message.size() < 1000 &&
              std::all_of(message.begin(), message.end(), absl::ascii_isprint));
      continue;
    }
    Require(crout::CheckAddress(server->server).ok());
    Require(server->tenant.empty() || crout::CheckTenant(server->tenant).ok());
    Require(server->token.empty());
    if (!server->token_file.empty()) Require(absl::StrContains(server->token_file, "/"));
  }
  return 0;
}
