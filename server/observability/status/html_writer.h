// SPDX-License-Identifier: Apache-2.0

// Writes well-formed markup for any input.
#ifndef CROUT_SERVER_OBSERVABILITY_STATUS_HTML_WRITER_H_
#define CROUT_SERVER_OBSERVABILITY_STATUS_HTML_WRITER_H_

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace crout {

// Escapes untrusted text for content and attribute values. Replaces markup characters by entities
// and bytes that are not printable ASCII by "?". Truncates after kMaxTextBytes with "...".
std::string EscapeHtml(std::string_view text);
inline constexpr size_t kMaxTextBytes = 128;

// Tags, attribute names and the input of Raw() must be trusted. Text() and attribute values escape
// untrusted text. Writes HTML in XML syntax, so that a strict parser can check a page.
class HtmlWriter {
 public:
  using Attributes = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  // Opens an element. Close() closes the innermost open element.
  void Open(std::string_view tag, Attributes attributes = {});
  void Close();
  // Writes an element without content.
  void Empty(std::string_view tag, Attributes attributes = {});
  // Writes an element that contains `text`, escaped.
  void Element(std::string_view tag, std::string_view text, Attributes attributes = {});
  // Writes an element that contains trusted markup.
  void RawElement(std::string_view tag, std::string_view markup, Attributes attributes = {});
  void Text(std::string_view text);
  void Raw(std::string_view markup) { page_.append(markup); }

  // Returns the page. Every element must be closed.
  std::string Take() { return std::move(page_); }

 private:
  void BeginTag(std::string_view tag, Attributes attributes);

  std::string page_;
  std::vector<std::string> open_;
};

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_STATUS_HTML_WRITER_H_
