// SPDX-License-Identifier: Apache-2.0

#include "client/cli/formats/temporary_file.h"

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "client/cli/exit_codes.h"

namespace crout::cli {
namespace {

constexpr size_t kPiece = size_t{64} << 10;

}  // namespace

absl::StatusOr<TemporaryFile> NewTemporaryFile() {
  TemporaryFile file(std::tmpfile(), std::fclose);
  if (file == nullptr) return FileErrnoError(errno, "cannot create a temporary file");
  return file;
}

absl::Status Write(const TemporaryFile& file, absl::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), file.get()) != text.size() ||
      std::fflush(file.get()) != 0) {
    return FileErrnoError(errno, "cannot write a temporary file");
  }
  return absl::OkStatus();
}

std::string PathOf(const TemporaryFile& file) {
  return absl::StrCat("/dev/fd/", fileno(file.get()));
}

absl::StatusOr<TemporaryFile> CopyOfStandardInput(absl::Time deadline) {
  return CopyOf(StandardInput([deadline] { return deadline; }).get());
}

absl::StatusOr<TemporaryFile> CopyOf(ByteInput* input) {
  auto file = NewTemporaryFile();
  if (!file.ok()) return file.status();
  std::vector<std::byte> buffer(kPiece);
  for (;;) {
    const auto got = input->Read(absl::MakeSpan(buffer));
    if (!got.ok()) return got.status();
    if (*got == 0) return file;
    absl::Status written = Write(*file, {reinterpret_cast<const char*>(buffer.data()), *got});
    if (!written.ok()) return written;
  }
}

absl::Status ReadAll(const TemporaryFile& file,
                     absl::FunctionRef<absl::Status(absl::string_view)> take) {
  std::rewind(file.get());
  std::vector<char> buffer(kPiece);
  while (const size_t got = std::fread(buffer.data(), 1, buffer.size(), file.get())) {
    if (absl::Status status = take({buffer.data(), got}); !status.ok()) return status;
  }
  if (std::ferror(file.get()) != 0) return FileErrnoError(errno, "cannot read a temporary file");
  return absl::OkStatus();
}

absl::StatusOr<TemporaryDirectory> TemporaryDirectory::Make() {
  std::error_code error;
  const auto parent = std::filesystem::temp_directory_path(error);
  if (error) return FileErrnoError(error.value(), "no directory for temporary files");
  std::string path = (parent / "croutctl-XXXXXX").string();
  if (mkdtemp(path.data()) == nullptr)
    return FileErrnoError(errno, "cannot create a temporary directory");
  return TemporaryDirectory(std::move(path));
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code error;
  if (path_ != nullptr) std::filesystem::remove_all(*path_, error);
}

}  // namespace crout::cli
