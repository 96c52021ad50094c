// SPDX-License-Identifier: Apache-2.0

// Writes markup that is well-formed whatever it is given.
#ifndef CROUT_SERVER_OBSERVABILITY_STATUS_HTML_WRITER_H_
#define CROUT_SERVER_OBSERVABILITY_STATUS_HTML_WRITER_H_

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace crout {

// `text` from outside, for content and for attribute values: what HTML reads as markup is written
// as entities, any byte that is no printable ASCII as "?", what is beyond kMaxTextBytes as "...".
std::string EscapeHtml(std::string_view text);
inline constexpr size_t kMaxTextBytes = 128;

// Tags, attribute names and what Raw() takes are the page's own; text from outside goes through
// Text() and attribute values, which escape it. HTML in the syntax of XML, so that a strict parser
// can check a page.
class HtmlWriter {
 public:
  using Attributes = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  // Elements end in the reverse order; Close() ends the innermost.
  void Open(std::string_view tag, Attributes attributes = {});
  void Close();
  // An element without content.
  void Empty(std::string_view tag, Attributes attributes = {});
  // An element that holds `text`.
  void Element(std::string_view tag, std::string_view text, Attributes attributes = {});
  // An element that holds markup of the page's own.
  void RawElement(std::string_view tag, std::string_view markup, Attributes attributes = {});
  void Text(std::string_view text);
  void Raw(std::string_view markup) { page_.append(markup); }

  // What was written. Every element was closed.
  std::string Take() { return std::move(page_); }

 private:
  void BeginTag(std::string_view tag, Attributes attributes);

  std::string page_;
  std::vector<std::string> open_;
};

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_STATUS_HTML_WRITER_H_
