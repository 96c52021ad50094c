// Messages of the contract as JSON, the way croutctl prints them.
#ifndef CROUT_CLIENT_CLI_JSON_H_
#define CROUT_CLIENT_CLI_JSON_H_

#include <google/protobuf/message.h>

#include <nlohmann/json.hpp>

namespace crout::cli {

using Json = nlohmann::ordered_json;

// Keys are the proto field names, in the order of the fields. Integers are numbers, whatever their
// width; enumerations are short names; times are RFC 3339 and durations "3600s"; doubles that JSON
// cannot express are the strings "NaN", "Infinity" and "-Infinity". Fields with presence appear
// only when set, all others always.
Json ToJson(const google::protobuf::Message& message);

// A double as ToJson would have it.
Json ToJson(double value);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_JSON_H_
