// SPDX-License-Identifier: Apache-2.0

#include "client/cli/report/json.h"

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>
#include <google/protobuf/util/time_util.h>

#include <cmath>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace crout::cli {
namespace {

using google::protobuf::Duration;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Timestamp;
using google::protobuf::util::TimeUtil;

// Reads one field of a message: the field itself, or element `index` of a repeated one.
class FieldReader {
 public:
  FieldReader(const Message& message, const FieldDescriptor* field)
      : message_(message), reflection_(*message.GetReflection()), field_(field) {}

  Json Value(int index) const {
    switch (field_->cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return ToJson(Pick<const Message&>(
            index,
            [&](int i) -> auto& { return reflection_.GetRepeatedMessage(message_, field_, i); },
            [&]() -> auto& { return reflection_.GetMessage(message_, field_); }));
      case FieldDescriptor::CPPTYPE_ENUM:
        return ShortName(*Pick<const google::protobuf::EnumValueDescriptor*>(
            index, [&](int i) { return reflection_.GetRepeatedEnum(message_, field_, i); },
            [&] { return reflection_.GetEnum(message_, field_); }));
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return ToJson(Pick<double>(
            index, [&](int i) { return reflection_.GetRepeatedDouble(message_, field_, i); },
            [&] { return reflection_.GetDouble(message_, field_); }));
      case FieldDescriptor::CPPTYPE_BOOL:
        return Pick<bool>(
            index, [&](int i) { return reflection_.GetRepeatedBool(message_, field_, i); },
            [&] { return reflection_.GetBool(message_, field_); });
      case FieldDescriptor::CPPTYPE_STRING:
        return Pick<std::string>(
            index, [&](int i) { return reflection_.GetRepeatedString(message_, field_, i); },
            [&] { return reflection_.GetString(message_, field_); });
      case FieldDescriptor::CPPTYPE_INT32:
        return Pick<int32_t>(
            index, [&](int i) { return reflection_.GetRepeatedInt32(message_, field_, i); },
            [&] { return reflection_.GetInt32(message_, field_); });
      default:  // The contract's other integers are all int64.
        return Pick<int64_t>(
            index, [&](int i) { return reflection_.GetRepeatedInt64(message_, field_, i); },
            [&] { return reflection_.GetInt64(message_, field_); });
    }
  }

 private:
  template <class T, class Repeated, class Single>
  T Pick(int index, Repeated repeated, Single single) const {
    return field_->is_repeated() ? repeated(index) : single();
  }

  const Message& message_;
  const google::protobuf::Reflection& reflection_;
  const FieldDescriptor* const field_;
};

Json FieldToJson(const Message& message, const FieldDescriptor* field) {
  const FieldReader reader(message, field);
  if (!field->is_repeated()) return reader.Value(0);
  Json array = Json::array();
  for (int i = 0; i < message.GetReflection()->FieldSize(message, field); ++i) {
    array.push_back(reader.Value(i));
  }
  return array;
}

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

Json ToJson(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

Json ToJson(const Message& message) {
  if (const auto* time = dynamic_cast<const Timestamp*>(&message)) {
    return TimeUtil::ToString(*time);
  }
  if (const auto* duration = dynamic_cast<const Duration*>(&message)) {
    return TimeUtil::ToString(*duration);
  }
  Json object = Json::object();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message.GetDescriptor()->field(i);
    if (field->has_presence() && !message.GetReflection()->HasField(message, field)) continue;
    object[field->name()] = FieldToJson(message, field);
  }
  return object;
}

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
