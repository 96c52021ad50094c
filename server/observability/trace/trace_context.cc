// SPDX-License-Identifier: Apache-2.0

#include "server/observability/trace/trace_context.h"

namespace crout {
namespace {

constexpr size_t kTraceDigits = 32;
constexpr size_t kParentDigits = 16;
constexpr size_t kTrace = 3;  // behind "00-"
constexpr size_t kParent = kTrace + kTraceDigits + 1;
constexpr size_t kFlags = kParent + kParentDigits + 1;
constexpr size_t kLength = kFlags + 2;

bool IsHex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}
bool IsId(std::string_view text) {
  return IsHex(text) && text.find_first_not_of('0') != std::string_view::npos;
}

}  // namespace

std::optional<TraceContext> ParseTraceparent(std::string_view header) {
  if (header.size() != kLength || !header.starts_with("00-") || header[kParent - 1] != '-' ||
      header[kFlags - 1] != '-') {
    return std::nullopt;
  }
  const std::string_view trace = header.substr(kTrace, kTraceDigits);
  const std::string_view parent = header.substr(kParent, kParentDigits);
  const std::string_view flags = header.substr(kFlags);
  if (!IsId(trace) || !IsId(parent) || !IsHex(flags)) return std::nullopt;
  // The flag "sampled" is the lowest bit.
  constexpr std::string_view kOdd = "13579bdf";
  return TraceContext{std::string(trace), std::string(parent),
                      kOdd.find(flags.back()) != std::string_view::npos};
}

}  // namespace crout
