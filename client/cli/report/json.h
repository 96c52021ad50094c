// SPDX-License-Identifier: Apache-2.0

// The contract's messages as croutctl's JSON, and short names of its enumerations: "getrf", "f64",
// "transpose".
#ifndef CROUT_CLIENT_CLI_REPORT_JSON_H_
#define CROUT_CLIENT_CLI_REPORT_JSON_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace crout::cli {

using Json = nlohmann::ordered_json;

// Keys are the proto field names, in the order of the fields. Integers of any width are numbers.
// Enumerations are short names. Times are RFC 3339, durations "3600s". Doubles that JSON cannot
// express are the strings "NaN", "Infinity" and "-Infinity". Fields with presence appear only if
// set; other fields always.
Json ToJson(const google::protobuf::Message& message);

// Converts a double by the same rules.
Json ToJson(double value);

// ALGORITHM_CROUT_LU -> "crout_lu"; DTYPE_FLOAT64 -> "f64".
std::string ShortName(const google::protobuf::EnumValueDescriptor& value);

// The short names of `type` without UNSPECIFIED.
std::vector<std::string> ShortNames(const google::protobuf::EnumDescriptor& type);

// The number of `name`; -1 if there is none.
int ParseShortName(const google::protobuf::EnumDescriptor& type, const std::string& name);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_REPORT_JSON_H_
