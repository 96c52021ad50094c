// SPDX-License-Identifier: Apache-2.0

#include "server/engine/quotas/quota_table.h"

#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "kernels/util/nearest.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/strings.h"

namespace crout {
namespace {

// An integer key of the file. Values are at least `least`.
struct IntegerKey {
  const char* name;
  int64_t QuotaLimits::*member;
  bool is_bytes;
  int64_t least;
};
constexpr std::array<IntegerKey, 9> kIntegerKeys = {
    {{"device_bytes", &QuotaLimits::device_bytes, true, 0},
     {"host_bytes", &QuotaLimits::host_bytes, true, 0},
     {"store_bytes", &QuotaLimits::store_bytes, true, 0},
     {"pinned_bytes", &QuotaLimits::pinned_bytes, true, 0},
     {"factors", &QuotaLimits::factors, false, 0},
     {"bytes_in_flight", &QuotaLimits::bytes_in_flight, true, 1},
     {"queued_jobs", &QuotaLimits::queued_jobs, false, 1},
     {"running_jobs", &QuotaLimits::running_jobs, false, 1},
     {"max_n", &QuotaLimits::max_n, false, 1}}};
constexpr char kSecondsKey[] = "device_seconds_per_minute";
constexpr char kSoftKey[] = "soft";

constexpr std::array<std::pair<const char*, int64_t>, 4> kUnits = {{{"KiB", int64_t{1} << 10},
                                                                    {"MiB", int64_t{1} << 20},
                                                                    {"GiB", int64_t{1} << 30},
                                                                    {"TiB", int64_t{1} << 40}}};

absl::Status Bad(absl::string_view what) { return absl::InvalidArgumentError(what); }

// Shortens and escapes text from the file, which can contain any bytes.
std::string Quote(absl::string_view text) {
  constexpr size_t kShown = 64;
  return absl::StrCat("'", absl::CEscape(text.substr(0, kShown)),
                      text.size() > kShown ? "...'" : "'");
}

// Removes the double quotes around a string. Returns nothing without them.
std::optional<absl::string_view> Unquote(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, "\"") || !absl::ConsumeSuffix(&text, "\"")) return std::nullopt;
  return text;
}

// The line without its comment. No valid string contains #.
absl::string_view WithoutComment(absl::string_view line) {
  return absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
}

bool IsTenantName(absl::string_view name) {
  constexpr size_t kMaxNameBytes = 64;
  if (name.empty() || name.size() > kMaxNameBytes) return false;
  for (const char c : name) {
    const bool valid =
        absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-';
    if (!valid) return false;
  }
  return true;
}

absl::StatusOr<int64_t> ParseInteger(const IntegerKey& key, absl::string_view value) {
  absl::string_view digits = value;
  int64_t unit = 1;
  if (const auto text = Unquote(value)) {
    digits = *text;
    for (const auto& [name, bytes] : kUnits) {
      if (key.is_bytes && absl::ConsumeSuffix(&digits, name)) unit = bytes;
    }
    if (unit == 1) digits = "";  // a string needs a unit
  }
  int64_t number = 0;
  const std::string plain = absl::StrReplaceAll(digits, {{"_", ""}});
  if (!absl::SimpleAtoi(plain, &number) || number < key.least ||
      number > (QuotaLimits::kNoLimit - 1) / unit) {
    return Bad(absl::StrCat(key.name, " = ", Quote(value), " is not ",
                            key.is_bytes ? "a size, such as 1048576 or \"8GiB\"" : "an integer",
                            " of at least ", key.least, ", or \"none\""));
  }
  return number * unit;
}

class Parser {
 public:
  absl::Status ParseLine(absl::string_view line) {
    line = WithoutComment(line);
    if (line.empty()) return absl::OkStatus();
    if (line.front() == '[') return Begin(line);
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits('=', 1));
    if (!absl::StrContains(line, '=')) {
      return Bad(absl::StrCat(Quote(line), " is neither [SECTION] nor KEY = VALUE"));
    }
    if (!section_) return Bad("this line comes before the first section; add [default] above it");
    std::string key(absl::StripAsciiWhitespace(parts.first));
    CROUT_RETURN_IF_ERROR(CheckKey(key));
    QuotaLimits ignored;
    const absl::string_view value = absl::StripAsciiWhitespace(parts.second);
    CROUT_RETURN_IF_ERROR(Set(key, value, ignored));
    lines_.push_back({*section_, std::move(key), std::string(value)});
    return absl::OkStatus();
  }

  // Applies the lines of [default] first, because tenants inherit its values.
  absl::StatusOr<QuotaTable> Finish() const {
    QuotaTable table;
    for (const Line& line : lines_) {
      if (line.section.empty()) CROUT_RETURN_IF_ERROR(Set(line.key, line.value, table.defaults));
    }
    for (const std::string& section : sections_) {
      if (!section.empty()) table.tenants.emplace(section, table.defaults);
    }
    for (const Line& line : lines_) {
      if (line.section.empty()) continue;
      CROUT_RETURN_IF_ERROR(Set(line.key, line.value, table.tenants.at(line.section)));
    }
    return table;
  }

 private:
  struct Line {
    std::string section;  // name of the tenant; "" for [default]
    std::string key;
    std::string value;
  };

  absl::Status Begin(absl::string_view line) {
    absl::string_view name = line;
    const bool closed = absl::ConsumePrefix(&name, "[") && absl::ConsumeSuffix(&name, "]");
    const bool is_default = closed && name == "default";
    if (!is_default) {
      const bool is_tenant = closed && absl::ConsumePrefix(&name, "tenant.");
      if (const auto quoted = Unquote(name)) name = *quoted;
      if (!is_tenant || !IsTenantName(name)) {
        return Bad(absl::StrCat(Quote(line),
                                " is neither [default] nor [tenant.NAME] with a name "
                                "of 1 to 64 characters of [A-Za-z0-9_.-]"));
      }
    }
    section_ = is_default ? "" : std::string(name);
    keys_.clear();
    return sections_.insert(*section_).second ? absl::OkStatus()
                                              : Bad(absl::StrCat("duplicate section ", line));
  }

  absl::Status CheckKey(const std::string& key) {
    std::vector<std::string> known = {kSecondsKey, kSoftKey};
    for (const IntegerKey& integer : kIntegerKeys) known.emplace_back(integer.name);
    for (const std::string& name : known) {
      if (name != key) continue;
      return keys_.insert(key).second ? absl::OkStatus() : Bad(absl::StrCat("duplicate ", key));
    }
    return Bad(absl::StrCat(Quote(key), " is not a quota", NearestHint(key, known)));
  }

  static absl::Status Set(const std::string& key, absl::string_view value, QuotaLimits& limits) {
    const bool is_none = Unquote(value) == "none";
    if (key == kSoftKey) {
      if (value != "true" && value != "false") {
        return Bad(absl::StrCat("soft = ", Quote(value), " is neither true nor false"));
      }
      limits.soft = value == "true";
      return absl::OkStatus();
    }
    if (key == kSecondsKey) {
      double seconds = std::numeric_limits<double>::infinity();
      const bool valid = is_none || (absl::SimpleAtod(value, &seconds) && std::isfinite(seconds));
      if (!valid || seconds <= 0) {
        return Bad(absl::StrCat(key, " = ", Quote(value), " is not a number above 0, or \"none\""));
      }
      limits.device_seconds_per_minute = seconds;
      return absl::OkStatus();
    }
    for (const IntegerKey& integer : kIntegerKeys) {
      if (key != integer.name) continue;
      if (is_none) {
        limits.*integer.member = QuotaLimits::kNoLimit;
      } else {
        CROUT_ASSIGN_OR_RETURN(limits.*integer.member, ParseInteger(integer, value));
      }
    }
    return absl::OkStatus();
  }

  std::vector<Line> lines_;
  std::set<std::string> sections_;
  std::optional<std::string> section_;  // the current one
  std::set<std::string> keys_;          // keys that the current section has set
};

}  // namespace

absl::StatusOr<QuotaTable> ParseQuotas(std::string_view text) {
  Parser parser;
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(ToAbsl(text), '\n')) {
    ++number;
    const absl::Status status = parser.ParseLine(line);
    if (!status.ok()) return Bad(absl::StrCat("line ", number, ": ", status.message()));
  }
  return parser.Finish();
}

}  // namespace crout
