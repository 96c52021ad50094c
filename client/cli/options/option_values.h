// SPDX-License-Identifier: Apache-2.0

// Checks of option values, whose messages name the value and the expectation; options with named
// values.
#ifndef CROUT_CLIENT_CLI_OPTIONS_OPTION_VALUES_H_
#define CROUT_CLIENT_CLI_OPTIONS_OPTION_VALUES_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/help/synonyms.h"
#include "crout/types.h"

namespace crout::cli {

// Accepts one of `names`. The error lists them and suggests one.
inline CLI::Validator OneOf(const std::vector<std::string>& names) {
  return CLI::Validator(
      [names](const std::string& text) {
        for (const std::string& name : names) {
          if (text == name) return std::string();
        }
        return absl::StrCat("'", text, "' is none of ", absl::StrJoin(names, ", "),
                            ValueHint(text, names));
      },
      absl::StrCat("{", absl::StrJoin(names, ","), "}"));
}

enum class LowEnd { kIncluded, kExcluded };

// Accepts numbers from `low` to `high`; kExcluded excludes `low` itself.
template <class T>
CLI::Validator InRange(T low, T high, LowEnd low_end = LowEnd::kIncluded) {
  return CLI::Validator(
      [=](const std::string& text) {
        T value;
        if (!CLI::detail::lexical_cast(text, value)) {
          return absl::StrCat("'", text, "' is not ",
                              std::is_integral_v<T> ? "an integer" : "a number");
        }
        const bool excluded = low_end == LowEnd::kExcluded;
        if ((excluded ? value > low : value >= low) && value <= high) return std::string();
        if (high == std::numeric_limits<T>::max()) {
          return absl::StrCat(text, " is ", excluded ? "not above " : "below ", low);
        }
        return absl::StrCat(text, " is not in the range ", excluded ? "(" : "[", low, ", ", high,
                            "]");
      },
      "");
}

// Accepts 0 and numbers above it.
template <class T>
CLI::Validator NotNegative() {
  return InRange<T>(T{0}, std::numeric_limits<T>::max());
}

// Accepts numbers above 0.
template <class T>
CLI::Validator Positive() {
  return InRange<T>(T{0}, std::numeric_limits<T>::max(), LowEnd::kExcluded);
}

// Adds an option that takes a name of E; passes the value to `set`.
template <class E>
CLI::Option* AddEnumOption(CLI::App* app, const std::string& name, std::function<void(E)> set,
                           const std::string& description) {
  return app
      ->add_option_function<std::string>(
          name, [set = std::move(set)](const std::string& text) { set(*FromName<E>(text)); },
          description)
      ->check(OneOf(Names<E>()));
}
template <class E>
CLI::Option* AddEnumOption(CLI::App* app, const std::string& name, std::optional<E>* value,
                           const std::string& description) {
  return AddEnumOption<E>(
      app, name, [value](E chosen) { *value = chosen; }, description);
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

#endif  // CROUT_CLIENT_CLI_OPTIONS_OPTION_VALUES_H_
