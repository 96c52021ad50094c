// SPDX-License-Identifier: Apache-2.0

#include "server/observability/status/html_writer.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace crout {
namespace {

void AppendEscaped(char character, std::string* to) {
  switch (character) {
    case '&':
      to->append("&amp;");
      return;
    case '<':
      to->append("&lt;");
      return;
    case '>':
      to->append("&gt;");
      return;
    case '"':
      to->append("&quot;");
      return;
    case '\'':
      to->append("&#39;");
      return;
    default:
      to->push_back(absl::ascii_isprint(static_cast<unsigned char>(character)) ? character : '?');
  }
}

}  // namespace

std::string EscapeHtml(std::string_view text) {
  std::string escaped;
  for (const char character : text.substr(0, kMaxTextBytes)) AppendEscaped(character, &escaped);
  if (text.size() > kMaxTextBytes) escaped.append("...");
  return escaped;
}

void HtmlWriter::BeginTag(std::string_view tag, Attributes attributes) {
  page_.push_back('<');
  page_.append(tag);
  for (const auto& [name, value] : attributes) {
    page_.push_back(' ');
    page_.append(name);
    page_.append("=\"");
    page_.append(EscapeHtml(value));
    page_.push_back('"');
  }
}

void HtmlWriter::Open(std::string_view tag, Attributes attributes) {
  BeginTag(tag, attributes);
  page_.push_back('>');
  open_.emplace_back(tag);
}

void HtmlWriter::Close() {
  absl::StrAppend(&page_, "</", open_.back(), ">\n");
  open_.pop_back();
}

void HtmlWriter::Empty(std::string_view tag, Attributes attributes) {
  BeginTag(tag, attributes);
  page_.append(" />");
}

void HtmlWriter::Element(std::string_view tag, std::string_view text, Attributes attributes) {
  RawElement(tag, EscapeHtml(text), attributes);
}

void HtmlWriter::RawElement(std::string_view tag, std::string_view markup, Attributes attributes) {
  Open(tag, attributes);
  Raw(markup);
  Close();
}

void HtmlWriter::Text(std::string_view text) { page_.append(EscapeHtml(text)); }

}  // namespace crout
