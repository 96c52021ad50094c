// SPDX-License-Identifier: Apache-2.0

#include "client/cli/output/array_files.h"

#include <cerrno>
#include <fstream>
#include <iostream>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/exit_codes.h"
#include "client/cli/formats/npy.h"

namespace crout::cli {

ArrayFiles::ArrayFiles(std::string prefix, FileFormat format)
    : prefix_(prefix.empty() && format == FileFormat::kNpz ? "-" : std::move(prefix)),
      format_(in_archive() ? FileFormat::kNpy : format) {}

absl::StatusOr<std::string> ArrayFiles::Add(const std::string& part) {
  if (prefix_.empty()) {
    if (!names_.empty() && format_ == FileFormat::kText) std::cout << "\n";
    names_.push_back(part);
    return std::string("-");
  }
  if (!in_archive()) {
    names_.push_back(absl::StrCat(prefix_, "_", part, ".", NameOf(format_)));
    return names_.back();
  }
  auto file = NewTemporaryFile();
  if (!file.ok()) return file.status();
  names_.push_back(part);
  parts_.emplace_back(part, *std::move(file));
  return PathOf(parts_.back().second);
}

absl::StatusOr<std::unique_ptr<ArrayWriter>> ArrayFiles::NewWriter(const std::string& part) {
  const auto path = Add(part);
  if (!path.ok()) return path.status();
  return NewArrayWriter(*path, format_);
}

absl::Status ArrayFiles::WriteNpyVector(const std::string& part, Element element,
                                        absl::Span<const std::byte> elements) {
  const auto path = Add(part);
  if (!path.ok()) return path.status();
  errno = 0;
  std::ofstream file(*path, std::ios::trunc | std::ios::binary);
  if (!file) return FileErrnoError(errno, absl::StrCat("cannot write ", *path));
  file << NpyVectorHeader(element, static_cast<int64_t>(elements.size() / SizeOf(element)));
  file.write(reinterpret_cast<const char*>(elements.data()), std::ssize(elements));
  file.close();
  if (!file) return FileError(absl::StrCat("cannot write all of ", *path));
  return absl::OkStatus();
}

absl::Status ArrayFiles::WriteVector(const std::string& part, Element element,
                                     absl::Span<const std::byte> elements) {
  if (format_ == FileFormat::kNpy) return WriteNpyVector(part, element, elements);
  const auto writer = NewWriter(part);
  if (!writer.ok()) return writer.status();
  const auto size = static_cast<int64_t>(elements.size() / SizeOf(element));
  absl::Status status = (*writer)->Begin(element, size, 1);
  if (status.ok()) status = (*writer)->Append(elements);
  return status.ok() ? (*writer)->Close() : status;
}

absl::Status ArrayFiles::Flush() {
  if (!in_archive()) return absl::OkStatus();
  if (archive_ == nullptr) {
    auto archive = NpzWriter::Open(prefix_);
    if (!archive.ok()) return archive.status();
    archive_ = *std::move(archive);
  }
  for (const auto& part : parts_) {
    bool begun = false;
    absl::Status status = ReadAll(part.second, [&](absl::string_view piece) {
      if (!std::exchange(begun, true)) {
        if (absl::Status begin = archive_->BeginArray(part.first); !begin.ok()) return begin;
      }
      return archive_->Write(piece);
    });
    if (!status.ok()) return status;
  }
  parts_.clear();
  return absl::OkStatus();
}

absl::Status ArrayFiles::Close() {
  absl::Status status = Flush();
  return status.ok() && in_archive() ? archive_->Close() : status;
}

}  // namespace crout::cli
