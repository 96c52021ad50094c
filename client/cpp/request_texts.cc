// SPDX-License-Identifier: Apache-2.0

#include "client/cpp/request_texts.h"

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace crout::client {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Bytes of the first character of `text`, which must not be empty; 0 if it is not valid UTF-8 (RFC
// 3629: shortest form, no surrogates, at most U+10FFFF).
size_t CharacterBytes(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  const size_t length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (text.size() < length) return 0;
  // The range of the second byte excludes overlong forms, surrogates and values above U+10FFFF.
  unsigned char low = 0x80, high = 0xbf;
  if (first == 0xe0) low = 0xa0;
  if (first == 0xed) high = 0x9f;
  if (first == 0xf0) low = 0x90;
  if (first == 0xf4) high = 0x8f;
  if (byte(1) < low || byte(1) > high) return 0;
  for (size_t i = 2; i < length; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xbf) return 0;
  }
  return length;
}

bool IsUtf8(absl::string_view text) {
  while (!text.empty()) {
    const size_t bytes = CharacterBytes(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

}  // namespace

absl::Status CheckTexts(const Message& request) {
  const google::protobuf::Reflection* reflection = request.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(request, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->is_repeated()) continue;  // No request has repeated strings.
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      absl::Status status = CheckTexts(reflection->GetMessage(request, field));
      if (!status.ok()) return status;
    } else if (field->type() == FieldDescriptor::TYPE_STRING) {
      std::string scratch;
      if (!IsUtf8(reflection->GetStringReference(request, field, &scratch))) {
        return absl::InvalidArgumentError(
            absl::StrCat("the ", field->name(), " is not valid UTF-8: encode it as UTF-8"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace crout::client
