// SPDX-License-Identifier: Apache-2.0

// Converts messages of the contract to croutctl's JSON.
#ifndef CROUT_CLIENT_CLI_REPORT_JSON_H_
#define CROUT_CLIENT_CLI_REPORT_JSON_H_

#include <google/protobuf/message.h>

#include <nlohmann/json.hpp>

namespace crout::cli {

using Json = nlohmann::ordered_json;

// Keys are the proto field names, in the order of the fields. Integers of any width are numbers.
// Enumerations are short names. Times are RFC 3339, durations "3600s". Doubles that JSON cannot
// express are the strings "NaN", "Infinity" and "-Infinity". Fields with presence appear only if
// set; other fields always.
Json ToJson(const google::protobuf::Message& message);

// Converts a double by the same rules.
Json ToJson(double value);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_REPORT_JSON_H_
