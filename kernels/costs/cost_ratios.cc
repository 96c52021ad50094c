// SPDX-License-Identifier: Apache-2.0

#include "kernels/costs/cost_ratios.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <iterator>
#include <optional>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "kernels/util/strings.h"

namespace crout {
namespace {

constexpr absl::string_view kFirstLine = "crout cost ratios 1\n";
constexpr absl::string_view kChecksum = "checksum ";
constexpr size_t kMaxMethodLength = 32;
constexpr int64_t kMaxOrder = int64_t{1} << 31;
// A working device gives no ratio beyond this.
constexpr double kMaxRatio = 1e4;

bool IsMethod(absl::string_view name) {
  return !name.empty() && name.size() <= kMaxMethodLength &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '_';
         });
}

bool IsRatio(double ratio) { return ratio >= 1 / kMaxRatio && ratio <= kMaxRatio; }

// FNV-1a. Detects truncated or damaged files; no protection against forgery.
uint64_t Checksum(absl::string_view text) {
  uint64_t sum = 0xcbf29ce484222325;
  for (const char c : text) sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return sum;
}

absl::Status Malformed(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("cost ratios: ", what));
}

// Returns the shortest text that parses to the same number.
std::string ToText(double ratio) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, ratio).ptr};
}

std::optional<DType> DTypeNamed(absl::string_view name) {
  for (const DType dtype : kDTypes) {
    if (name == ToAbsl(NameOf(dtype))) return dtype;
  }
  return std::nullopt;
}

struct Line {
  absl::string_view method;
  DType dtype = DType::kFloat64;
  int64_t n = 0;
  double ratio = 0;
};

std::optional<Line> ParseLine(absl::string_view text) {
  const std::vector<absl::string_view> fields = absl::StrSplit(text, ' ');
  Line line;
  if (fields.size() != 4 || !IsMethod(fields[0])) return std::nullopt;
  line.method = fields[0];
  const std::optional<DType> dtype = DTypeNamed(fields[1]);
  if (!dtype) return std::nullopt;
  line.dtype = *dtype;
  if (!absl::SimpleAtoi(fields[2], &line.n) || line.n < 1 || line.n > kMaxOrder ||
      !absl::SimpleAtod(fields[3], &line.ratio) || !IsRatio(line.ratio)) {
    return std::nullopt;
  }
  return line;
}

}  // namespace

void CostRatios::Set(std::string_view method, DType dtype, int64_t n, double ratio) {
  if (std::isnan(ratio)) return;
  ratios_[{std::string(method), dtype}][n] = std::clamp(ratio, 1 / kMaxRatio, kMaxRatio);
}

double CostRatios::Ratio(std::string_view method, DType dtype, int64_t n) const {
  const auto found = ratios_.find({std::string(method), dtype});
  if (found == ratios_.end()) return 1;
  const ByOrder& by_order = found->second;
  const auto above = by_order.lower_bound(n);
  if (above == by_order.begin()) return above->second;
  const auto below = std::prev(above);
  if (above == by_order.end()) return below->second;
  const double share =
      std::log(static_cast<double>(n) / static_cast<double>(below->first)) /
      std::log(static_cast<double>(above->first) / static_cast<double>(below->first));
  return below->second * std::pow(above->second / below->second, share);
}

std::string CostRatios::Serialize(std::string_view key) const {
  std::string text = absl::StrCat(kFirstLine, ToAbsl(key), "\n");
  for (const auto& [place, by_order] : ratios_) {
    for (const auto& [n, ratio] : by_order) {
      absl::StrAppend(&text, place.first, " ", ToAbsl(NameOf(place.second)), " ", n, " ",
                      ToText(ratio), "\n");
    }
  }
  absl::StrAppend(&text, kChecksum, absl::Hex(Checksum(text), absl::kZeroPad16), "\n");
  return text;
}

absl::StatusOr<CostRatios> CostRatios::Parse(std::string_view whole, std::string_view key) {
  absl::string_view text = ToAbsl(whole);
  if (text.size() > kMaxTextBytes)
    return Malformed(absl::StrCat("the file has more than ", kMaxTextBytes, " bytes"));
  const size_t last = text.rfind(kChecksum);
  if (last == absl::string_view::npos) return Malformed("the checksum is missing");
  const absl::string_view sum = text.substr(last);
  text = text.substr(0, last);
  if (sum != absl::StrCat(kChecksum, absl::Hex(Checksum(text), absl::kZeroPad16), "\n")) {
    return Malformed("the checksum does not match");
  }
  if (!absl::ConsumePrefix(&text, kFirstLine)) return Malformed("unknown format version");
  if (!absl::ConsumePrefix(&text, absl::StrCat(ToAbsl(key), "\n"))) {
    return Malformed("measured on another device or with other software versions");
  }
  CostRatios ratios;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::optional<Line> parsed = ParseLine(line);
    if (!parsed) return Malformed("a line is not METHOD TYPE ORDER RATIO");
    ratios.Set({parsed->method.data(), parsed->method.size()}, parsed->dtype, parsed->n,
               parsed->ratio);
  }
  if (ratios.Serialize(key) != whole) return Malformed("the text is not in canonical form");
  return ratios;
}

}  // namespace crout
