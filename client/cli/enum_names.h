// The design's short names of the contract's enumerations: "getrf", "f64", "transpose".
#ifndef CROUT_CLIENT_CLI_ENUM_NAMES_H_
#define CROUT_CLIENT_CLI_ENUM_NAMES_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/generated_enum_reflection.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace crout::cli {

// ALGORITHM_CROUT_LU -> "crout_lu"; DTYPE_FLOAT64 -> "f64".
std::string ShortName(const google::protobuf::EnumValueDescriptor& value);

// The short names of `type`, without UNSPECIFIED.
std::vector<std::string> ShortNames(const google::protobuf::EnumDescriptor& type);

// The number that `name` stands for; -1 if none does.
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
      ->check(CLI::IsMember(ShortNames(*type)));
}

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_ENUM_NAMES_H_
