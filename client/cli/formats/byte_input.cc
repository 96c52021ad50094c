// SPDX-License-Identifier: Apache-2.0

#include "client/cli/formats/byte_input.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/exit_codes.h"

namespace crout::cli {
namespace {

class FileInput : public ByteInput {
 public:
  FileInput(int fd, std::string path, std::function<absl::Time()> deadline)
      : fd_(fd), path_(std::move(path)), deadline_(std::move(deadline)) {}
  ~FileInput() override {
    if (fd_ != STDIN_FILENO) close(fd_);
  }

  absl::StatusOr<size_t> Read(absl::Span<std::byte> to) override {
    const absl::Time deadline = deadline_();
    for (;;) {
      if (absl::Status status = AwaitInput(fd_, deadline); !status.ok()) return status;
      const ssize_t got = read(fd_, to.data(), to.size());
      if (got >= 0) return static_cast<size_t>(got);
      if (errno != EINTR) return FileErrnoError(errno, absl::StrCat("cannot read ", path_));
    }
  }

 private:
  const int fd_;
  const std::string path_;
  const std::function<absl::Time()> deadline_;
};

class JoinedInput : public ByteInput {
 public:
  JoinedInput(std::vector<std::byte> head, std::unique_ptr<ByteInput> rest)
      : head_(std::move(head)), rest_(std::move(rest)) {}

  absl::StatusOr<size_t> Read(absl::Span<std::byte> to) override {
    if (at_ == head_.size()) return rest_->Read(to);
    const size_t size = std::min(to.size(), head_.size() - at_);
    std::copy_n(head_.data() + at_, size, to.data());
    at_ += size;
    return size;
  }

 private:
  const std::vector<std::byte> head_;
  size_t at_ = 0;
  const std::unique_ptr<ByteInput> rest_;
};

}  // namespace

absl::Status AwaitInput(int fd, absl::Time deadline) {
  for (;;) {
    // At most an hour at a time, because poll counts in an int.
    const absl::Duration left = std::min(deadline - absl::Now(), absl::Hours(1));
    pollfd input{fd, POLLIN, 0};
    const int ready =
        poll(&input, 1,
             static_cast<int>(std::max<int64_t>(
                 0, absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1))))));
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) return FileErrnoError(errno, "cannot wait for the input");
    if (absl::Now() >= deadline) {
      return absl::DeadlineExceededError(
          "the input sent nothing more before --timeout. Raise --timeout");
    }
  }
}

absl::StatusOr<std::unique_ptr<ByteInput>> OpenInput(const std::string& path, absl::Time deadline) {
  if (path == "-") return StandardInput([deadline] { return deadline; });
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return FileErrnoError(errno, absl::StrCat("cannot open ", path));
  return std::make_unique<FileInput>(fd, path, [deadline] { return deadline; });
}

std::unique_ptr<ByteInput> StandardInput(std::function<absl::Time()> deadline) {
  return std::make_unique<FileInput>(STDIN_FILENO, "standard input", std::move(deadline));
}

std::unique_ptr<ByteInput> Joined(std::vector<std::byte> head, std::unique_ptr<ByteInput> rest) {
  return std::make_unique<JoinedInput>(std::move(head), std::move(rest));
}

absl::StatusOr<std::vector<std::byte>> ReadUpTo(ByteInput* input, int64_t size) {
  constexpr size_t kStep = size_t{1} << 20;
  const auto wanted = static_cast<size_t>(size);
  std::vector<std::byte> bytes;
  size_t filled = 0;
  while (filled < wanted) {
    if (filled == bytes.size()) bytes.resize(std::min(wanted, std::max(2 * filled, kStep)));
    const auto got = input->Read(absl::MakeSpan(bytes).subspan(filled));
    if (!got.ok()) return got.status();
    if (*got == 0) break;
    filled += *got;
  }
  bytes.resize(filled);
  return bytes;
}

}  // namespace crout::cli
