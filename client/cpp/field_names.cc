// SPDX-License-Identifier: Apache-2.0

#include "client/cpp/field_names.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/cpp/grpc_status.h"

namespace crout {
inline namespace api {
namespace internal {
namespace {

constexpr absl::string_view kHeader = "header.";

bool IsPart(char c) { return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '_'; }

// Length of the field path at the start of `text`, without final periods, which end a sentence.
size_t PathLength(absl::string_view text) {
  size_t length = 0;
  while (length < text.size() && (IsPart(text[length]) || text[length] == '.')) ++length;
  while (length > 0 && text[length - 1] == '.') --length;
  return length;
}

// Translates a field path such as "matrix.dense.rows", without "header.".
std::string ArgumentOf(absl::string_view path) {
  const std::vector<absl::string_view> parts = absl::StrSplit(path, '.');
  if (absl::StartsWith(path, "matrix.batch")) return "matrices";
  for (const absl::string_view argument : {"matrix", "rhs", "x0", "change"}) {
    if (parts[0] == argument) return std::string(argument);
  }
  for (const absl::string_view argument : {"options", "cache"}) {
    if (parts[0] == argument) return absl::StrJoin(parts, ".");
  }
  return absl::StrCat(kHeader, path);
}

}  // namespace

std::string WithArgumentNames(absl::string_view message) {
  std::string result;
  while (!message.empty()) {
    const bool begins_word = result.empty() || !(IsPart(result.back()) || result.back() == '.');
    absl::string_view rest = message;
    const size_t length = begins_word && absl::ConsumePrefix(&rest, kHeader) ? PathLength(rest) : 0;
    if (length > 0) {
      absl::StrAppend(&result, ArgumentOf(rest.substr(0, length)));
      message = rest.substr(length);
    } else {
      result.push_back(message[0]);
      message.remove_prefix(1);
    }
  }
  return result;
}

absl::Status ServerStatus(const grpc::Status& status) {
  const absl::Status as_sent = ToAbslStatus(status);
  if (as_sent.ok()) return as_sent;
  absl::Status named(as_sent.code(), WithArgumentNames(as_sent.message()));
  as_sent.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { named.SetPayload(url, payload); });
  return named;
}

}  // namespace internal
}  // namespace api
}  // namespace crout
