// SPDX-License-Identifier: Apache-2.0

#include "server/auth/strict_json.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "kernels/util/strings.h"

namespace crout {
namespace {

using Json = nlohmann::json;

bool IsBase64UrlChar(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
}

}  // namespace

std::optional<Json> ParseStrictObject(std::string_view text) {
  std::vector<std::set<std::string>> names;  // of the objects that are open, from the outermost
  bool twice = false;
  const auto watch = [&](int /*depth*/, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) names.emplace_back();
    if (event == Json::parse_event_t::object_end) names.pop_back();
    if (event == Json::parse_event_t::key && !names.back().insert(parsed.get<std::string>()).second)
      twice = true;
    return true;
  };
  Json parsed = Json::parse(text.begin(), text.end(), watch, /*allow_exceptions=*/false);
  if (!parsed.is_object() || twice) return std::nullopt;
  return parsed;
}

std::optional<std::string> StringIn(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

std::optional<std::string> DecodeBase64Url(std::string_view text) {
  std::string bytes;
  if (!std::all_of(text.begin(), text.end(), IsBase64UrlChar) ||
      !absl::WebSafeBase64Unescape(ToAbsl(text), &bytes) ||
      absl::WebSafeBase64Escape(bytes) != ToAbsl(text)) {
    return std::nullopt;
  }
  return bytes;
}

}  // namespace crout
