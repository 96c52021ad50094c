// SPDX-License-Identifier: Apache-2.0

// Reads the XML of an object store, which may be hostile.
#ifndef CROUT_SERVER_S3_XML_H_
#define CROUT_SERVER_S3_XML_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace crout {

// Receives each element at its end: the names from the root to the element, and its own text.
using XmlVisitor =
    std::function<absl::Status(const std::vector<std::string_view>& path, const std::string& text)>;

// Reads a document of elements, attributes (which are ignored), text and character references.
// UNAVAILABLE for a malformed document, for document types, entities, CDATA sections, comments and
// other instructions, for more than 8 nested elements, and for a text of more than 8 KiB. Such a
// reply comes from a proxy or a broken store, and does not prove that an object is damaged. Errors
// of `visit` end the reading.
absl::Status ReadXml(std::string_view document, const XmlVisitor& visit);

// An object in a list.
struct S3Entry {
  std::string key;
  uint64_t bytes = 0;
  std::string etag;
};

// A part of a list, in the order of the keys.
struct S3Page {
  std::vector<S3Entry> entries;
  std::string continuation;  // requests the next page; empty after the last one
};

// Most objects in a page.
inline constexpr size_t kS3PageEntries = 1000;

// Decodes the reply to a list request. Drops keys that S3Client does not write. UNAVAILABLE if the
// reply is malformed, has more than kS3PageEntries objects, or has an object without the prefix.
absl::StatusOr<S3Page> ParseS3Page(std::string_view document, std::string_view prefix);

// Returns the code of an error, such as "NoSuchKey", or an empty text if the document has none.
std::string ParseS3Error(std::string_view document);

// Returns the text of the child `name` of the root `root`. UNAVAILABLE if it is missing or empty.
absl::StatusOr<std::string> ParseS3Text(std::string_view document, std::string_view root,
                                        std::string_view name);

// True if `key` is one that S3Client writes: at most 512 letters, digits and the characters - _ .
// in segments that "/" separates. No segment is empty, "." or "..".
bool IsS3Key(std::string_view key);

}  // namespace crout

#endif  // CROUT_SERVER_S3_XML_H_
