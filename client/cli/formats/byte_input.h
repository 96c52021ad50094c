// SPDX-License-Identifier: Apache-2.0

// Byte streams: a file, standard input, a member of an archive.
#ifndef CROUT_CLIENT_CLI_FORMATS_BYTE_INPUT_H_
#define CROUT_CLIENT_CLI_FORMATS_BYTE_INPUT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace crout::cli {

class ByteInput {
 public:
  virtual ~ByteInput() = default;
  // Fills the front of `to` and returns the number of bytes; 0 only at the end. FileError on
  // failure.
  virtual absl::StatusOr<size_t> Read(absl::Span<std::byte> to) = 0;
};

// Opens a file; "-" is standard input. FileError if it cannot be opened. A Read without data by
// `deadline` is DEADLINE_EXCEEDED.
absl::StatusOr<std::unique_ptr<ByteInput>> OpenInput(const std::string& path, absl::Time deadline);
// Opens standard input. A Read without data by deadline(), which each Read calls, is
// DEADLINE_EXCEEDED.
std::unique_ptr<ByteInput> StandardInput(std::function<absl::Time()> deadline);

// The bytes of `head`, then those of `rest`.
std::unique_ptr<ByteInput> Joined(std::vector<std::byte> head, std::unique_ptr<ByteInput> rest);

// Waits until `fd` has data or is at its end. DEADLINE_EXCEEDED after `deadline`.
absl::Status AwaitInput(int fd, absl::Time deadline);

// Reads the next `size` bytes, or fewer at the end of the input. Memory grows with the data,
// because a hostile file may declare any `size`.
absl::StatusOr<std::vector<std::byte>> ReadUpTo(ByteInput* input, int64_t size);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_FORMATS_BYTE_INPUT_H_
