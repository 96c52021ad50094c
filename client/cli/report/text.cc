// SPDX-License-Identifier: Apache-2.0

#include "client/cli/report/text.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/cli/exit_codes.h"
#include "kernels/util/duration.h"

namespace crout::cli {
namespace {

bool IsZero(const Json& value) { return value.is_number() && value.get<double>() == 0; }

bool IsEmptyText(const Json& object, const char* key) {
  return object.contains(key) && object[key] == "";
}

// Removes the fields of a factor that the server did not compute: they would show as 0. Affects
// factors that are not cached, and batches.
void RemoveUnset(Json* object) {
  if (object->contains("factor") && (*object)["factor"].is_object())
    RemoveUnset(&(*object)["factor"]);
  if (IsEmptyText(*object, "handle")) {
    for (const char* key : {"handle", "name", "version", "tier", "bytes"}) object->erase(key);
  } else if (IsEmptyText(*object, "name")) {
    object->erase("name");
  }
  if (!object->contains("batch")) return;
  for (const char* key : {"norm_one", "norm_inf", "quality"}) object->erase(key);
  Json& batch = (*object)["batch"];
  for (const char* count : {"poor", "nearly_singular"}) {
    if (batch.is_object() && batch.contains(count) && IsZero(batch[count])) {
      batch.erase(std::string("first_") + count);
    }
  }
}

std::vector<std::vector<std::string>> Rows(const Json& object, const std::string& indent) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [key, value] : object.items()) {
    if (!indent.empty() && absl::EndsWith(key, "_seconds") && IsZero(value)) continue;
    if (value.is_array() && value.empty()) continue;
    rows.push_back({indent + key, value.is_object() ? "" : FormatValue(key, value)});
    if (!value.is_object()) continue;
    for (auto& row : Rows(value, indent + "  ")) rows.push_back(std::move(row));
  }
  return rows;
}

// Formats times to the second, and durations of the contract, such as "5400s", in croutctl's
// notation. Both are recognized by the key, because other texts come from users.
std::string FormatText(absl::string_view key, const std::string& text) {
  constexpr size_t kToSeconds = 19;  // characters of 2026-11-28T14:15:13
  const bool is_time = absl::EndsWith(key, "_time");
  if (is_time && text.size() > kToSeconds && text[kToSeconds] == '.' && text.back() == 'Z') {
    return Printable(absl::StrCat(text.substr(0, kToSeconds), "Z"));
  }
  double seconds = 0;
  if ((is_time || absl::EndsWith(key, "_lease") || absl::EndsWith(key, "_life") ||
       absl::EndsWith(key, "_timeout")) &&
      absl::EndsWith(text, "s") && absl::SimpleAtod(text.substr(0, text.size() - 1), &seconds)) {
    return FormatSeconds(seconds);
  }
  return Printable(text);
}

std::string FormatRow(const std::vector<std::string>& row, const std::vector<size_t>& widths) {
  std::string line;
  for (size_t i = 0; i < row.size(); ++i) {
    absl::StrAppend(&line, i > 0 ? "  " : "", row[i]);
    if (i + 1 < row.size()) line.append(widths[i] - row[i].size(), ' ');
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

// Bytes of the first UTF-8 character of `text` if it controls a terminal or the layout: C0, DEL,
// C1, line and paragraph separators, and changes of direction; otherwise 0.
size_t ControlBytes(absl::string_view text) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  if (byte(0) < 0x20 || byte(0) == 0x7f) return 1;
  if (byte(0) == 0xc2 && byte(1) >= 0x80 && byte(1) < 0xa0) return 2;
  if (byte(0) != 0xe2) return 0;
  if (byte(1) == 0x80 && byte(2) >= 0xa8 && byte(2) <= 0xae) return 3;
  return byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9 ? 3 : 0;
}

}  // namespace

std::string Printable(absl::string_view text) {
  std::string printable;
  while (!text.empty()) {
    const size_t bytes = ControlBytes(text);
    const absl::string_view next = text.substr(0, std::max<size_t>(bytes, 1));
    absl::StrAppend(&printable, bytes > 0 ? absl::CHexEscape(next) : std::string(next));
    text.remove_prefix(next.size());
  }
  return printable;
}

std::string EscapeXml(absl::string_view text) {
  return absl::StrReplaceAll(text,
                             {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

std::string FormatBytes(double bytes) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(units); ++unit) bytes /= 1024;
  return absl::StrFormat("%.*f %s", unit == 0 ? 0 : 1, bytes, units[unit]);
}

std::string FormatSeconds(double seconds) {
  // A duration has no NaN.
  return std::isnan(seconds) ? "NaN" : DurationText(absl::Seconds(seconds));
}

std::string FormatValue(const std::string& key, const Json& value) {
  if (value.is_string()) return FormatText(key, value.get<std::string>());
  if (value.is_number()) {
    if (key == "bytes" || absl::EndsWith(key, "_bytes")) return FormatBytes(value.get<double>());
    if (absl::EndsWith(key, "_seconds")) return FormatSeconds(value.get<double>());
  }
  if (value.is_number_float()) return absl::StrFormat("%.6g", value.get<double>());
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  // Longer lists, such as the scales of a matrix, are printed only with --json.
  constexpr size_t kMaxListLength = 16;
  if (value.is_array() && value.size() > kMaxListLength) {
    return absl::StrCat(value.size(), " values (see --json)");
  }
  if (value.is_array()) {
    return absl::StrJoin(value, " ", [&](std::string* out, const Json& element) {
      absl::StrAppend(out, FormatValue(key, element));
    });
  }
  return value.dump();
}

std::string FormatObject(const Json& object) {
  Json shown = object;
  RemoveUnset(&shown);
  const auto rows = Rows(shown, "");
  size_t width = 0;
  for (const auto& row : rows) width = std::max(width, row[0].size());
  std::string text;
  for (const auto& row : rows) text += FormatRow(row, {width});
  return text;
}

std::string FormatTable(const std::vector<std::string>& header,
                        const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (size_t i = 0; i < header.size(); ++i) {
    widths.push_back(header[i].size());
    for (const auto& row : rows) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text = FormatRow(header, widths);
  for (const auto& row : rows) text += FormatRow(row, widths);
  return text;
}

std::string FormatObjects(const std::vector<std::string>& keys, const Json& objects) {
  std::vector<std::vector<std::string>> rows;
  for (const Json& object : objects) {
    auto& row = rows.emplace_back();
    for (const std::string& key : keys) {
      row.push_back(object.contains(key) ? FormatValue(key, object[key]) : "-");
    }
  }
  return FormatTable(keys, rows);
}

absl::Status WriteTextFile(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  if (!file) return FileErrnoError(errno, absl::StrCat("cannot write ", path));
  if (!(file << text).flush()) return FileError(absl::StrCat("cannot write all of ", path));
  return absl::OkStatus();
}

}  // namespace crout::cli
