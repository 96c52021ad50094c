// SPDX-License-Identifier: Apache-2.0

#include "client/cli/formats/matrix_market.h"

#include <sys/stat.h>
#include <zlib.h>

#include <cerrno>
#include <memory>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace crout::cli {

absl::StatusOr<int64_t> MatrixMarketRows(const std::string& path) {
  // zlib reads plain files unchanged.
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (file == nullptr) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  char buffer[4096];
  bool starts = true;  // A line longer than the buffer comes in pieces
  bool comment = false;
  for (; gzgets(file.get(), buffer, sizeof buffer) != nullptr;
       starts = absl::EndsWith(buffer, "\n")) {
    const absl::string_view line = absl::StripAsciiWhitespace(buffer);
    if (starts) comment = absl::StartsWith(line, "%");
    if (comment || line.empty()) continue;
    int64_t rows = 0;
    if (absl::SimpleAtoi(line.substr(0, line.find_first_of(" \t")), &rows) && rows >= 0) {
      return rows;
    }
    break;
  }
  // An empty input, for instance the output of a failed command, unless zlib reported an error.
  int error = Z_OK;
  gzerror(file.get(), &error);
  if (error == Z_OK && gztell(file.get()) == 0) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is empty. Write a Matrix Market file"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      path,
      " has no Matrix Market size line. Write the rows, columns and entries after the banner"));
}

bool MatrixMarketIsComplex(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return false;
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  char buffer[4096];
  if (file == nullptr || gzgets(file.get(), buffer, sizeof buffer) == nullptr) return false;
  const std::vector<std::string> words =
      absl::StrSplit(buffer, absl::ByAnyChar(" \t\r\n"), absl::SkipEmpty());
  return words.size() > 3 && absl::EqualsIgnoreCase(words[3], "complex");
}

}  // namespace crout::cli
