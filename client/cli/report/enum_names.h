// SPDX-License-Identifier: Apache-2.0

// Options with named values, and short names of the contract's enumerations: "getrf", "f64",
// "transpose".
#ifndef CROUT_CLIENT_CLI_REPORT_ENUM_NAMES_H_
#define CROUT_CLIENT_CLI_REPORT_ENUM_NAMES_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/generated_enum_reflection.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/options/option_values.h"

namespace crout::cli {

// ALGORITHM_CROUT_LU -> "crout_lu"; DTYPE_FLOAT64 -> "f64".
std::string ShortName(const google::protobuf::EnumValueDescriptor& value);

// The short names of `type` without UNSPECIFIED.
std::vector<std::string> ShortNames(const google::protobuf::EnumDescriptor& type);

// The number of `name`; -1 if there is none.
int ParseShortName(const google::protobuf::EnumDescriptor& type, const std::string& name);

// Adds an option that takes a short name of E.
template <class E>
CLI::Option* AddEnumOption(CLI::App* app, const std::string& name, E* value,
                           const std::string& description) {
  const auto* type = google::protobuf::GetEnumDescriptor<E>();
  return app
      ->add_option_function<std::string>(
          name,
          [value, type](const std::string& text) {
            *value = static_cast<E>(ParseShortName(*type, text));
          },
          description)
      ->check(OneOf(ShortNames(*type)));
}

// Adds an option with named values; passes the value of the given name to `set`.
template <class T>
CLI::Option* AddChoiceOption(CLI::App* app, const std::string& name,
                             const std::vector<std::pair<std::string, T>>& choices,
                             std::function<void(T)> set, const std::string& description) {
  std::vector<std::string> names;
  for (const auto& [choice, value] : choices) names.push_back(choice);
  return app
      ->add_option_function<std::string>(
          name,
          [choices, set = std::move(set)](const std::string& text) {
            for (const auto& [choice, value] : choices) {
              if (choice == text) set(value);
            }
          },
          description)
      ->check(OneOf(names));
}

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_REPORT_ENUM_NAMES_H_
