// SPDX-License-Identifier: Apache-2.0

// Text output: aligned columns, sizes and times in readable units, files.
#ifndef CROUT_CLIENT_CLI_REPORT_TEXT_H_
#define CROUT_CLIENT_CLI_REPORT_TEXT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/cli/report/json.h"

namespace crout::cli {

// Formats the value of `key`: "..._bytes" as "512.0 MiB", "..._seconds" as "1.23ms", other numbers
// with six digits, "..._time" to the second, durations such as "..._lease" as "1h30m", everything
// else unchanged.
std::string FormatValue(const std::string& key, const Json& value);

// Escapes characters that control a terminal, as \\x1b, in text from other users such as a factor's
// name.
std::string Printable(absl::string_view text);

// Escapes the characters that have a meaning in XML and HTML.
std::string EscapeXml(absl::string_view text);

std::string FormatBytes(double bytes);
std::string FormatSeconds(double seconds);

// One "key  value" line for each member, with aligned keys. Members of nested objects are indented
// below their key; times of zero in them, and empty lists, are omitted.
std::string FormatObject(const Json& object);

// Rows under `header`, columns aligned; the last column is not padded.
std::string FormatTable(const std::vector<std::string>& header,
                        const std::vector<std::vector<std::string>>& rows);

// A table of the members `keys` of each object; a missing member is "-".
std::string FormatObjects(const std::vector<std::string>& keys, const Json& objects);

// Replaces the file. FileError on failure.
absl::Status WriteTextFile(const std::string& path, const std::string& text);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_REPORT_TEXT_H_
