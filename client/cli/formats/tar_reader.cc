// SPDX-License-Identifier: Apache-2.0

#include "client/cli/formats/tar_reader.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
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

absl::string_view Magic() { return {GzipInflater::kMagic.data(), GzipInflater::kMagic.size()}; }

}  // namespace

std::optional<bool> IsTarThatBegins(absl::Span<const std::byte> bytes) {
  absl::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.size() < GzipInflater::kMagic.size()) return std::nullopt;
  Block block{};
  size_t size = std::min(text.size(), block.size());
  if (absl::StartsWith(text, Magic())) {
    std::string_view packed(text.data(), text.size());
    GzipInflater inflater(std::numeric_limits<double>::infinity());
    if (!inflater.Inflate(&packed, block, &size).ok()) return false;
  } else {
    std::copy_n(text.begin(), size, block.begin());
  }
  if (size < kMagic.begin + kMagic.size) return std::nullopt;
  return TextOf(block, kMagic) == "ustar";
}

bool IsTar(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  const auto input = OpenInput(path, absl::InfiniteFuture());
  if (!input.ok()) return false;
  // Enough for the first block of a gzip with a long file name in its header.
  const auto bytes = ReadUpTo(input->get(), int64_t{64} << 10);
  return bytes.ok() && IsTarThatBegins(*bytes).value_or(false);
}

absl::StatusOr<TarReader> TarReader::Open(const std::string& path) {
  auto input = OpenInput(path, absl::InfiniteFuture());
  if (!input.ok()) return input.status();
  return TarReader(path, *std::move(input));
}

absl::Status TarReader::Malformed(const std::string& why) const {
  return absl::InvalidArgumentError(absl::StrCat(path_, ": ", why));
}

absl::Status TarReader::Refill() {
  const bool is_first = bytes_in_ == 0;
  size_t filled = 0;
  // The first bytes show whether the archive is gzip.
  do {
    const auto got = input_->Read(absl::MakeSpan(buffer_).subspan(filled));
    if (!got.ok()) return got.status();
    if (*got == 0) break;
    filled += *got;
  } while (is_first && filled < GzipInflater::kMagic.size());
  bytes_in_ += static_cast<int64_t>(filled);
  packed_ = {reinterpret_cast<const char*>(buffer_.data()), filled};
  if (is_first && absl::StartsWith(packed_, Magic())) {
    inflater_ = std::make_unique<GzipInflater>(std::numeric_limits<double>::infinity());
    text_.resize(buffer_.size());
  }
  return absl::OkStatus();
}

absl::StatusOr<absl::string_view> TarReader::ReadPiece(int64_t max_bytes) {
  if (max_bytes == 0) return absl::string_view();
  if (packed_.empty() && bytes_in_ == 0) {
    if (absl::Status status = Refill(); !status.ok()) return status;
  }
  if (inflater_ == nullptr) {
    if (packed_.empty()) {
      if (absl::Status status = Refill(); !status.ok()) return status;
    }
    const absl::string_view piece = packed_.substr(0, static_cast<size_t>(max_bytes));
    packed_.remove_prefix(piece.size());
    return piece;
  }
  for (;;) {
    // Text may be pending in the inflater, so the input is only read if there is none.
    std::string_view packed(packed_.data(), packed_.size());
    size_t written = 0;
    const size_t room = std::min(text_.size(), static_cast<size_t>(max_bytes));
    if (!inflater_->Inflate(&packed, {text_.data(), room}, &written).ok()) {
      return Malformed("the archive is damaged: gzip cannot unpack it");
    }
    packed_ = {packed.data(), packed.size()};
    bytes_out_ += static_cast<int64_t>(written);
    if (bytes_out_ > kMaxRatio * (bytes_in_ + kSmallArchive)) {
      return absl::ResourceExhaustedError(
          absl::StrCat(path_, ": the archive unpacks to more than ", kMaxRatio,
                       " times its size. Unpack it and give the directory"));
    }
    if (written > 0) return absl::string_view(text_.data(), written);
    if (absl::Status status = Refill(); !status.ok()) return status;
    if (packed_.empty()) return absl::string_view();
  }
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
  for (int64_t padding = (kBlock - size % kBlock) % kBlock; padding > 0;) {
    const auto piece = ReadPiece(padding);
    if (!piece.ok()) return piece.status();
    if (piece->empty()) break;
    padding -= std::ssize(*piece);
  }
  return absl::OkStatus();
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
      // The end of gzip has a checksum.
      for (;;) {
        const auto piece = ReadPiece(std::ssize(buffer_));
        if (!piece.ok()) return piece.status();
        if (piece->empty()) return std::optional<std::string>();
      }
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
