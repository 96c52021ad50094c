// SPDX-License-Identifier: Apache-2.0

#include "server/s3/xml.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/strings.h"

namespace crout {
namespace {

constexpr size_t kMaxDepth = 8;
constexpr size_t kMaxTextBytes = 8192;
constexpr size_t kMaxNameBytes = 64;
constexpr size_t kMaxReferenceBytes = 10;  // "&#x10ffff;" without "&" and ";" is shorter
constexpr size_t kMaxKeyBytes = 512;
constexpr size_t kMaxErrorCodeBytes = 64;

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

bool IsAlnum(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)); }

bool IsNameChar(char c) { return IsAlnum(c) || c == '_' || c == '-' || c == '.' || c == ':'; }

// Appends a character in UTF-8. Returns false if XML permits no such character.
bool AppendCharacter(uint32_t code, std::string& text) {
  const bool is_control = code < 0x20 && code != '\t' && code != '\n' && code != '\r';
  if (is_control || (code >= 0xd800 && code < 0xe000) || code > 0x10ffff) return false;
  const auto append = [&](uint32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    append(code);
  } else if (code < 0x800) {
    append(0xc0 | (code >> 6));
    append(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    append(0xe0 | (code >> 12));
    append(0x80 | ((code >> 6) & 0x3f));
    append(0x80 | (code & 0x3f));
  } else {
    append(0xf0 | (code >> 18));
    append(0x80 | ((code >> 12) & 0x3f));
    append(0x80 | ((code >> 6) & 0x3f));
    append(0x80 | (code & 0x3f));
  }
  return true;
}

// Appends the character of a reference, the text between "&" and ";".
bool AppendReference(std::string_view reference, std::string& text) {
  constexpr std::pair<std::string_view, char> kNames[] = {
      {"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
  for (const auto& [name, character] : kNames) {
    if (reference != name) continue;
    text.push_back(character);
    return true;
  }
  if (!reference.starts_with('#')) return false;
  reference.remove_prefix(1);
  const bool is_hex = reference.starts_with('x');
  if (is_hex) reference.remove_prefix(1);
  if (reference.empty()) return false;
  uint32_t code = 0;
  for (const char c : reference) {
    const bool is_digit = is_hex ? absl::ascii_isxdigit(static_cast<unsigned char>(c))
                                 : absl::ascii_isdigit(static_cast<unsigned char>(c));
    if (!is_digit || code > 0x10ffff) return false;
    const int digit =
        c <= '9' ? c - '0' : absl::ascii_tolower(static_cast<unsigned char>(c)) - 'a' + 10;
    code = code * (is_hex ? 16 : 10) + static_cast<uint32_t>(digit);
  }
  return AppendCharacter(code, text);
}

class XmlReader {
 public:
  XmlReader(std::string_view document, const XmlVisitor& visit) : rest_(document), visit_(visit) {}

  absl::Status Read() {
    SkipSpace();
    if (Take("<?xml") && !TakeThrough("?>")) return Malformed("a declaration without an end");
    SkipSpace();
    if (!Take("<")) return Malformed("no element");
    CROUT_RETURN_IF_ERROR(ReadStart());
    while (!path_.empty()) {
      if (rest_.empty()) return Malformed("an element without an end");
      if (Take("</")) {
        CROUT_RETURN_IF_ERROR(ReadEnd());
      } else if (Take("<")) {
        CROUT_RETURN_IF_ERROR(ReadStart());
      } else {
        CROUT_RETURN_IF_ERROR(ReadText());
      }
    }
    SkipSpace();
    return rest_.empty() ? absl::OkStatus() : Malformed("more than one element");
  }

 private:
  static absl::Status Malformed(absl::string_view what) {
    return absl::UnavailableError(absl::StrCat("the object store sent XML with ", what,
                                               ". Check that the endpoint is an S3 server"));
  }

  void SkipSpace() {
    while (!rest_.empty() && IsSpace(rest_.front())) rest_.remove_prefix(1);
  }
  bool Take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  bool TakeThrough(std::string_view text) {
    const size_t at = rest_.find(text);
    if (at == std::string_view::npos) return false;
    rest_.remove_prefix(at + text.size());
    return true;
  }
  // Empty if there is no name, or if it is too long.
  std::string_view TakeName() {
    const size_t size =
        static_cast<size_t>(std::ranges::find_if_not(rest_, IsNameChar) - rest_.begin());
    if (size == 0 || size > kMaxNameBytes) return {};
    const std::string_view name = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return name;
  }

  // After "<".
  absl::Status ReadStart() {
    const std::string_view name = TakeName();
    if (name.empty()) return Malformed("markup other than elements");
    if (path_.size() == kMaxDepth) return Malformed("more than 8 nested elements");
    path_.push_back(name);
    texts_.emplace_back();
    while (true) {
      const bool has_space = !rest_.empty() && IsSpace(rest_.front());
      SkipSpace();
      if (Take(">")) return absl::OkStatus();
      if (Take("/>")) return EndElement();
      if (!has_space || !SkipAttribute()) return Malformed("an invalid tag");
    }
  }
  bool SkipAttribute() {
    if (TakeName().empty() || !Take("=") || rest_.empty()) return false;
    const char quote = rest_.front();
    if (quote != '"' && quote != '\'') return false;
    const size_t end = rest_.find(quote, 1);
    if (end == std::string_view::npos || rest_.find('<') < end) return false;
    rest_.remove_prefix(end + 1);
    return true;
  }
  // After "</".
  absl::Status ReadEnd() {
    if (TakeName() != path_.back()) return Malformed("an end of another element");
    SkipSpace();
    if (!Take(">")) return Malformed("an invalid tag");
    return EndElement();
  }
  absl::Status EndElement() {
    CROUT_RETURN_IF_ERROR(visit_(path_, texts_.back()));
    path_.pop_back();
    texts_.pop_back();
    return absl::OkStatus();
  }
  absl::Status ReadText() {
    std::string& text = texts_.back();
    while (!rest_.empty() && rest_.front() != '<') {
      if (text.size() >= kMaxTextBytes) return Malformed("a text of more than 8 KiB");
      if (!Take("&")) {
        const auto c = static_cast<unsigned char>(rest_.front());
        if (c < 0x20 && !IsSpace(rest_.front())) return Malformed("a control character");
        text.push_back(rest_.front());
        rest_.remove_prefix(1);
        continue;
      }
      const size_t end = rest_.substr(0, kMaxReferenceBytes).find(';');
      if (end == std::string_view::npos || !AppendReference(rest_.substr(0, end), text))
        return Malformed("an invalid reference");
      rest_.remove_prefix(end + 1);
    }
    return absl::OkStatus();
  }

  std::string_view rest_;
  const XmlVisitor& visit_;
  std::vector<std::string_view> path_;
  std::vector<std::string> texts_;  // texts of the elements in path_
};

absl::Status BadPage(absl::string_view what) {
  return absl::UnavailableError(absl::StrCat("the object store sent a list with ", what,
                                             ". Check that the endpoint is an S3 server"));
}

// Collects the elements of a list.
class PageReader {
 public:
  explicit PageReader(std::string_view prefix) : prefix_(prefix) {}

  absl::Status Visit(const std::vector<std::string_view>& path, const std::string& text) {
    if (path[0] != "ListBucketResult") return BadPage("another root element");
    if (path.size() == 3 && path[1] == "Contents") return VisitField(path[2], text);
    if (path.size() != 2) return absl::OkStatus();
    if (path[1] == "Contents") return EndEntry();
    if (path[1] == "NextContinuationToken") page_.continuation = text;
    if (path[1] == "IsTruncated") {
      if (text != "true" && text != "false") return BadPage("an invalid IsTruncated");
      is_truncated_ = text == "true";
    }
    return absl::OkStatus();
  }

  absl::StatusOr<S3Page> Finish() {
    if (!is_truncated_.has_value()) return BadPage("no IsTruncated");
    if (*is_truncated_ == page_.continuation.empty()) return BadPage("an invalid end");
    return std::move(page_);
  }

 private:
  absl::Status VisitField(std::string_view name, const std::string& text) {
    if (name == "Key") entry_.key = text;
    if (name == "ETag") entry_.etag = text;
    if (name == "Size") {
      has_size_ = absl::SimpleAtoi(text, &entry_.bytes);
      if (!has_size_) return BadPage("an invalid size");
    }
    return absl::OkStatus();
  }
  absl::Status EndEntry() {
    if (++entries_ > kS3PageEntries) return BadPage("more than 1000 objects");
    if (!has_size_) return BadPage("an object without a size");
    if (!entry_.key.starts_with(prefix_)) return BadPage("an object without the prefix");
    if (IsS3Key(entry_.key)) page_.entries.push_back(std::move(entry_));
    entry_ = {};
    has_size_ = false;
    return absl::OkStatus();
  }

  const std::string_view prefix_;
  S3Page page_;
  std::optional<bool> is_truncated_;
  S3Entry entry_;  // the one that is being read
  bool has_size_ = false;
  size_t entries_ = 0;
};

}  // namespace

absl::Status ReadXml(std::string_view document, const XmlVisitor& visit) {
  return XmlReader(document, visit).Read();
}

absl::StatusOr<S3Page> ParseS3Page(std::string_view document, std::string_view prefix) {
  PageReader reader(prefix);
  CROUT_RETURN_IF_ERROR(ReadXml(document, [&](const auto& path, const std::string& text) {
    return reader.Visit(path, text);
  }));
  return reader.Finish();
}

std::string ParseS3Error(std::string_view document) {
  const auto code = ParseS3Text(document, "Error", "Code");
  if (!code.ok() || code->size() > kMaxErrorCodeBytes || !std::ranges::all_of(*code, IsAlnum))
    return "";
  return *code;
}

absl::StatusOr<std::string> ParseS3Text(std::string_view document, std::string_view root,
                                        std::string_view name) {
  std::string found;
  CROUT_RETURN_IF_ERROR(ReadXml(document, [&](const auto& path, const std::string& text) {
    if (path.size() == 2 && path[0] == root && path[1] == name) found = text;
    return absl::OkStatus();
  }));
  if (found.empty()) {
    return absl::UnavailableError(absl::StrCat("the object store sent a reply without ",
                                               ToAbsl(name),
                                               ". Check that the endpoint is an S3 server"));
  }
  return found;
}

bool IsS3Key(std::string_view key) {
  if (key.empty() || key.size() > kMaxKeyBytes) return false;
  const bool is_plain = std::ranges::all_of(
      key, [](char c) { return IsAlnum(c) || c == '-' || c == '_' || c == '.' || c == '/'; });
  if (!is_plain) return false;
  for (const absl::string_view segment : absl::StrSplit(ToAbsl(key), '/')) {
    if (segment.empty() || segment == "." || segment == "..") return false;
  }
  return true;
}

}  // namespace crout
