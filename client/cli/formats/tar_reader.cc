// SPDX-License-Identifier: Apache-2.0

#include "client/cli/formats/tar_reader.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/cli/exit_codes.h"
#include "client/cli/report/text.h"

namespace crout::cli {
namespace {

constexpr int64_t kBlock = 512;
// Largest length, in bytes, of a name that has a separate entry.
constexpr int64_t kMaxNameBytes = int64_t{64} << 10;
// Size up to which kMaxRatio does not apply: small archives consist mostly of padding.
constexpr int64_t kSmallArchive = int64_t{64} << 10;

struct Field {
  size_t begin;
  size_t size;
};
constexpr Field kName = {0, 100}, kSize = {124, 12}, kChecksum = {148, 8}, kMagic = {257, 5},
                kPrefix = {345, 155};
constexpr size_t kType = 156;

using Block = std::array<char, kBlock>;

// Text up to the first zero byte.
absl::string_view TextOf(const Block& block, Field field) {
  const absl::string_view whole(block.data() + field.begin, field.size);
  return whole.substr(0, whole.find('\0'));
}

// Octal digits between blanks or, for large numbers in GNU's format, base 256.
std::optional<int64_t> NumberOf(const Block& block, Field field) {
  const auto byte = [&](size_t k) { return static_cast<unsigned char>(block[field.begin + k]); };
  int64_t value = 0;
  if ((byte(0) & 0x80U) != 0) {
    if (byte(0) != 0x80U) return std::nullopt;  // negative, or larger than any file
    for (size_t k = 1; k < field.size; ++k) {
      if (value > (INT64_MAX >> 8)) return std::nullopt;
      value = value * 256 + byte(k);
    }
    return value;
  }
  absl::string_view digits = TextOf(block, field);
  while (!digits.empty() && digits.front() == ' ') digits.remove_prefix(1);
  while (!digits.empty() && digits.back() == ' ') digits.remove_suffix(1);
  if (digits.empty()) return std::nullopt;
  for (const char digit : digits) {
    if (digit < '0' || digit > '7') return std::nullopt;
    value = value * 8 + (digit - '0');
  }
  return value;
}

bool ChecksumHolds(const Block& block) {
  int64_t sum = 0;
  for (size_t k = 0; k < block.size(); ++k) {
    const bool of_itself = k >= kChecksum.begin && k < kChecksum.begin + kChecksum.size;
    sum += of_itself ? ' ' : static_cast<unsigned char>(block[k]);
  }
  return NumberOf(block, kChecksum) == sum;
}

std::string NameOf(const Block& block) {
  const absl::string_view name = TextOf(block, kName);
  const absl::string_view prefix = TextOf(block, kPrefix);
  const bool posix = block[kMagic.begin + kMagic.size] == '\0';
  return prefix.empty() || !posix ? std::string(name) : absl::StrCat(prefix, "/", name);
}

// The value of `key` in a POSIX extended header, whose lines are "LENGTH KEY=VALUE\n".
std::optional<std::string> ExtendedValue(absl::string_view text, absl::string_view key) {
  while (!text.empty()) {
    const size_t blank = text.find(' ');
    size_t length = 0;
    if (blank == absl::string_view::npos || !absl::SimpleAtoi(text.substr(0, blank), &length) ||
        length <= blank + 1 || length > text.size()) {
      return std::nullopt;
    }
    const absl::string_view line = text.substr(blank + 1, length - blank - 2);
    if (line.size() > key.size() && line.substr(0, key.size()) == key && line[key.size()] == '=') {
      return std::string(line.substr(key.size() + 1));
    }
    text.remove_prefix(length);
  }
  return std::nullopt;
}

absl::Status PassOver(absl::string_view) { return absl::OkStatus(); }

}  // namespace

bool IsTar(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  Block block{};
  return file != nullptr && gzread(file.get(), block.data(), kBlock) == kBlock &&
         TextOf(block, kMagic) == "ustar";
}

absl::StatusOr<TarReader> TarReader::Open(const std::string& path) {
  errno = 0;
  File file(gzopen(path.c_str(), "rb"), gzclose);
  if (file == nullptr) return FileErrnoError(errno, absl::StrCat("cannot open ", path));
  return TarReader(path, std::move(file));
}

absl::Status TarReader::Malformed(const std::string& why) const {
  return absl::InvalidArgumentError(absl::StrCat(path_, ": ", why));
}

absl::StatusOr<absl::string_view> TarReader::ReadPiece(int64_t max_bytes) {
  const auto size = static_cast<unsigned>(std::min<int64_t>(max_bytes, std::ssize(buffer_)));
  const int got = gzread(file_.get(), buffer_.data(), size);
  if (got < 0) {
    int error = Z_OK;
    gzerror(file_.get(), &error);
    if (error == Z_ERRNO) return FileErrnoError(errno, absl::StrCat("cannot read ", path_));
    return Malformed("the archive is damaged: gzip cannot unpack it");
  }
  if (gztell(file_.get()) > kMaxRatio * (gzoffset(file_.get()) + kSmallArchive)) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path_, ": the archive unpacks to more than ", kMaxRatio,
                     " times its size. Unpack it and give the directory"));
  }
  return absl::string_view(buffer_.data(), static_cast<size_t>(got));
}

absl::Status TarReader::Read(int64_t size, const std::string& name,
                             absl::FunctionRef<absl::Status(absl::string_view)> take) {
  for (int64_t left = size; left > 0;) {
    const auto piece = ReadPiece(left);
    if (!piece.ok()) return piece.status();
    if (piece->empty()) {
      return Malformed(absl::StrCat("the file is truncated or not a tar archive: '",
                                    Printable(name), "' has ", size, " bytes, of which ",
                                    size - left, " are present"));
    }
    if (absl::Status status = take(*piece); !status.ok()) return status;
    left -= std::ssize(*piece);
  }
  return ReadPiece((kBlock - size % kBlock) % kBlock).status();
}

absl::StatusOr<std::string> TarReader::ReadText(int64_t size, const std::string& name) {
  std::string text;
  absl::Status read = Read(size, name, [&](absl::string_view piece) {
    absl::StrAppend(&text, piece);
    return absl::OkStatus();
  });
  if (!read.ok()) return read;
  return text;
}

absl::Status TarReader::Read(absl::FunctionRef<absl::Status(absl::string_view)> take) {
  return Read(std::exchange(size_, 0), name_, take);
}

absl::StatusOr<std::optional<std::string>> TarReader::Next() {
  if (absl::Status status = Read(PassOver); !status.ok()) return status;
  std::optional<std::string> long_name;
  for (;;) {
    const auto header = ReadText(kBlock, "the next header");
    if (!header.ok()) return header.status();
    Block block;
    std::memcpy(block.data(), header->data(), block.size());
    if (std::all_of(block.begin(), block.end(), [](char c) { return c == '\0'; })) {
      return std::optional<std::string>();
    }
    const auto size = NumberOf(block, kSize);
    if (!ChecksumHolds(block) || !size) return Malformed("a header of the archive is damaged");
    const std::string name = long_name.value_or(NameOf(block));
    const char type = block[kType];
    const bool names = type == 'x' || type == 'L';  // extension of the entry that follows
    if ((names || type == 'g') && *size > kMaxNameBytes) {
      return Malformed(absl::StrCat("a name has ", *size, " bytes; the limit is ", kMaxNameBytes));
    }
    if (type == '0' || type == '\0' || type == '7') {
      name_ = name;
      size_ = *size;
      return name;
    }
    if (!names && type != 'g' && type != '5') {
      return Malformed(absl::StrCat("'", Printable(name), "' is not a regular file"));
    }
    if (type == '5') {
      if (absl::Status read = Read(*size, name, PassOver); !read.ok()) return read;
      long_name.reset();
      continue;
    }
    const auto text = ReadText(*size, name);
    if (!text.ok()) return text.status();
    if (type == 'L') {
      long_name = text->substr(0, text->find('\0'));
    } else if (type == 'x') {
      if (ExtendedValue(*text, "size")) {
        return Malformed(absl::StrCat("'", Printable(name), "' is too large"));
      }
      if (auto path = ExtendedValue(*text, "path")) long_name = *std::move(path);
    }
  }
}

}  // namespace crout::cli
