// SPDX-License-Identifier: Apache-2.0

// JSON from those who may be strangers.
#ifndef CROUT_SERVER_AUTH_STRICT_JSON_H_
#define CROUT_SERVER_AUTH_STRICT_JSON_H_

#include <optional>
#include <string>
#include <string_view>

#include "nlohmann/json.hpp"

namespace crout {

// The object that `text` is; none if it is something else, or if an object in it has two members
// of one name: two readers would disagree about what it says (RFC 8259, section 4).
std::optional<nlohmann::json> ParseStrictObject(std::string_view text);

// That member of `object`, if it is a string.
std::optional<std::string> StringIn(const nlohmann::json& object, const char* name);

// What base64url without padding (RFC 4648, section 5) stands for; none for another text, and for
// one of several that would stand for the same bytes.
std::optional<std::string> DecodeBase64Url(std::string_view text);

}  // namespace crout

#endif  // CROUT_SERVER_AUTH_STRICT_JSON_H_
