// SPDX-License-Identifier: Apache-2.0

// Short names of the contract's enumerations: "getrf", "f64", "transpose".
#ifndef CROUT_CLIENT_CLI_REPORT_ENUM_NAMES_H_
#define CROUT_CLIENT_CLI_REPORT_ENUM_NAMES_H_

#include <google/protobuf/descriptor.h>

#include <string>
#include <vector>

namespace crout::cli {

// ALGORITHM_CROUT_LU -> "crout_lu"; DTYPE_FLOAT64 -> "f64".
std::string ShortName(const google::protobuf::EnumValueDescriptor& value);

// The short names of `type` without UNSPECIFIED.
std::vector<std::string> ShortNames(const google::protobuf::EnumDescriptor& type);

// The number of `name`; -1 if there is none.
int ParseShortName(const google::protobuf::EnumDescriptor& type, const std::string& name);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_REPORT_ENUM_NAMES_H_
