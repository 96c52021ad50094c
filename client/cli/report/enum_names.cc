// SPDX-License-Identifier: Apache-2.0

#include "client/cli/report/enum_names.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace crout::cli {
namespace {

// "UnitDiagonal" -> "UNIT_DIAGONAL_", the prefix of its values' names.
std::string ValuePrefix(const std::string& type_name) {
  std::string prefix;
  for (const char c : type_name) {
    if (absl::ascii_isupper(c) && !prefix.empty()) prefix += '_';
    prefix += absl::ascii_toupper(c);
  }
  return prefix + "_";
}

}  // namespace

std::string ShortName(const google::protobuf::EnumValueDescriptor& value) {
  absl::string_view name = value.name();
  absl::ConsumePrefix(&name, ValuePrefix(value.type()->name()));
  std::string result = absl::AsciiStrToLower(name);
  if (value.type()->name() == "Dtype") {
    return absl::StrReplaceAll(result, {{"float", "f"}, {"complex", "c"}});
  }
  return result;
}

std::vector<std::string> ShortNames(const google::protobuf::EnumDescriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.value_count(); ++i) {
    if (type.value(i)->number() != 0) names.push_back(ShortName(*type.value(i)));
  }
  return names;
}

int ParseShortName(const google::protobuf::EnumDescriptor& type, const std::string& name) {
  for (int i = 0; i < type.value_count(); ++i) {
    if (type.value(i)->number() != 0 && ShortName(*type.value(i)) == name) {
      return type.value(i)->number();
    }
  }
  return -1;
}

}  // namespace crout::cli
