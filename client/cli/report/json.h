// SPDX-License-Identifier: Apache-2.0

// Results of the client library as croutctl's JSON.
#ifndef CROUT_CLIENT_CLI_REPORT_JSON_H_
#define CROUT_CLIENT_CLI_REPORT_JSON_H_

#include <google/protobuf/util/time_util.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "client/cpp/convert.h"
#include "client/cpp/fields.h"
#include "crout/types.h"

namespace crout::cli {

using Json = nlohmann::ordered_json;

// Converts a double. Numbers that JSON lacks are "NaN", "Infinity", "-Infinity".
Json ToJson(double value);

// Converts a struct of crout/results.h. Keys are the names of the fields in proto/crout/v1, in the
// order of the contract. Enumerators are their names, times are RFC 3339 and durations are seconds
// ("3600s"). Optional fields appear only if set; other fields always. T: also std::vector, and the
// types of fields.
template <class T>
Json ToJson(const T& value);
template <class T>
Json ToJson(const std::vector<T>& values);

// Collects the fields of a struct.
class JsonFields {
 public:
  explicit JsonFields(Json* object) : object_(*object) {}

  template <class T>
  void operator()(const char* name, const T& value) {
    object_[name] = ToJson(value);
  }
  template <class T>
  void operator()(const char* name, const std::optional<T>& value) {
    if (value) object_[name] = ToJson(*value);
  }
  template <class T>
  void Or(const char* name, const T& value, const T&) {
    (*this)(name, value);
  }
  template <class E>
  void Implicit(const char* name, const std::optional<E>& value) {
    object_[name] = value ? Name(*value) : "unspecified";
  }

 private:
  Json& object_;
};

template <class T>
Json ToJson(const std::vector<T>& values) {
  Json array = Json::array();
  for (const T& value : values) array.push_back(ToJson(value));
  return array;
}

template <class T>
Json ToJson(const T& value) {
  using google::protobuf::util::TimeUtil;
  if constexpr (std::is_enum_v<T>) {
    return Name(value);
  } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
    return value;
  } else if constexpr (std::is_same_v<T, absl::Time> || std::is_same_v<T, absl::Duration>) {
    return TimeUtil::ToString(internal::ToProto(value));
  } else {
    Json object = Json::object();
    JsonFields fields(&object);
    internal::Fields<T>::Visit(value, fields);
    return object;
  }
}

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_REPORT_JSON_H_
