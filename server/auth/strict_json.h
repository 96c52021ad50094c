// SPDX-License-Identifier: Apache-2.0

// Strict parsing of JSON from untrusted sources.
#ifndef CROUT_SERVER_AUTH_STRICT_JSON_H_
#define CROUT_SERVER_AUTH_STRICT_JSON_H_

#include <optional>
#include <string>
#include <string_view>

#include "nlohmann/json.hpp"

namespace crout {

// Parses a JSON object. Returns nothing for any other text, and for a text in which an object has
// duplicate member names: two parsers could read it differently (RFC 8259, section 4).
std::optional<nlohmann::json> ParseStrictObject(std::string_view text);

// Returns the member `name` of `object` if it is a string, else nothing.
std::optional<std::string> StringIn(const nlohmann::json& object, const char* name);

// Decodes base64url without padding (RFC 4648, section 5). Returns nothing for any other text,
// including non-canonical encodings of the same bytes.
std::optional<std::string> DecodeBase64Url(std::string_view text);

}  // namespace crout

#endif  // CROUT_SERVER_AUTH_STRICT_JSON_H_
