// SPDX-License-Identifier: Apache-2.0

#include "kernels/util/duration.h"

#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

namespace crout {
namespace {

constexpr absl::Duration kDay = absl::Hours(24);

// Removes the characters from the start of `text` that satisfy `belongs`, and returns them.
template <class F>
absl::string_view Take(absl::string_view* text, F belongs) {
  size_t length = 0;
  while (length < text->size() && belongs((*text)[length])) ++length;
  const absl::string_view taken = text->substr(0, length);
  text->remove_prefix(length);
  return taken;
}

// Formats a number below 1000 with three digits, without trailing zeros.
std::string ThreeDigits(double value) {
  std::string text = absl::StrFormat("%.*f", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value);
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text;
}

}  // namespace

std::optional<absl::Duration> DurationFrom(absl::string_view text) {
  absl::Duration sum;
  // Absl's parser has all units except d. It also accepts "0" and "inf".
  if (absl::ParseDuration(text, &sum)) {
    return sum < absl::ZeroDuration() ? std::nullopt : std::optional(sum);
  }
  sum = absl::ZeroDuration();
  absl::ConsumePrefix(&text, "+");
  if (text.empty()) return std::nullopt;
  while (!text.empty()) {
    const absl::string_view number =
        Take(&text, [](char c) { return absl::ascii_isdigit(c) || c == '.'; });
    const absl::string_view unit =
        Take(&text, [](char c) { return !absl::ascii_isdigit(c) && c != '.'; });
    // Go also writes the Greek letter in µs.
    const absl::string_view known = unit == "µs" ? "us" : unit == "d" ? "h" : unit;
    absl::Duration part;
    if (number.empty() || unit.empty() ||
        !absl::ParseDuration(absl::StrCat(number, known), &part)) {
      return std::nullopt;
    }
    sum += unit == "d" ? part * 24 : part;
  }
  return sum;
}

std::string DurationText(absl::Duration duration) {
  if (duration == absl::InfiniteDuration()) return "inf";
  if (duration < absl::ZeroDuration()) return absl::StrCat("-", DurationText(-duration));
  if (duration == absl::ZeroDuration()) return "0s";
  const struct {
    const char* name;
    double seconds;
    double end;  // larger values get a larger unit
  } units[] = {{"ns", 1e-9, 999.5}, {"us", 1e-6, 999.5}, {"ms", 1e-3, 999.5}, {"s", 1, 59.95}};
  for (const auto& unit : units) {
    const double value = absl::ToDoubleSeconds(duration) / unit.seconds;
    if (value < unit.end) return absl::StrCat(ThreeDigits(value), unit.name);
  }
  absl::Duration rest = absl::Trunc(duration + absl::Milliseconds(500), absl::Seconds(1));
  std::string text;
  for (const auto& [name, unit] :
       {std::pair("d", kDay), std::pair("h", absl::Hours(1)), std::pair("m", absl::Minutes(1)),
        std::pair("s", absl::Seconds(1))}) {
    const int64_t count = absl::IDivDuration(rest, unit, &rest);
    if (count > 0) absl::StrAppend(&text, count, name);
  }
  return text;
}

}  // namespace crout
