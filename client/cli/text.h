// Output for people: aligned columns, sizes and times in readable units.
#ifndef CROUT_CLIENT_CLI_TEXT_H_
#define CROUT_CLIENT_CLI_TEXT_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/cli/json.h"

namespace crout::cli {

// The value of `key`: "..._bytes" as "512.0 MiB", "..._seconds" as "1.23 ms", other numbers in six
// digits, everything else as it is.
std::string FormatValue(const std::string& key, const Json& value);

// What others chose, such as a factor's name, without what would move a terminal: escaped as \\x1b.
std::string Printable(absl::string_view text);

std::string FormatBytes(double bytes);
std::string FormatSeconds(double seconds);

// One "key  value" line for each member, keys aligned; members of objects are indented below their
// key, and of those, times of zero are left out; so are empty lists.
std::string FormatObject(const Json& object);

// Rows under `header`, columns aligned; the last column is not padded.
std::string FormatTable(const std::vector<std::string>& header,
                        const std::vector<std::vector<std::string>>& rows);

// A table of the members `keys` of each object; absent members are "-".
std::string FormatObjects(const std::vector<std::string>& keys, const Json& objects);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_TEXT_H_
