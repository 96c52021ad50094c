// Where the bytes of a file come from: a file, standard input, a member of an archive.
#ifndef CROUT_CLIENT_CLI_BYTE_INPUT_H_
#define CROUT_CLIENT_CLI_BYTE_INPUT_H_

#include <cstddef>
#include <cstdint>
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
  // Fills the front of `to`, and returns how much; 0 at the end alone. FileError where it cannot.
  virtual absl::StatusOr<size_t> Read(absl::Span<std::byte> to) = 0;
};

// "-" is standard input. FileError where it cannot be opened. A Read that got nothing by `deadline`
// is DEADLINE_EXCEEDED.
absl::StatusOr<std::unique_ptr<ByteInput>> OpenInput(const std::string& path, absl::Time deadline);

// Until `fd` has something to read, or is at its end. DEADLINE_EXCEEDED where that does not come.
absl::Status AwaitInput(int fd, absl::Time deadline);

// The next `size` bytes, or fewer where the input ends. Memory grows as they arrive: `size` may be
// what a hostile file claims.
absl::StatusOr<std::vector<std::byte>> ReadUpTo(ByteInput* input, int64_t size);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_BYTE_INPUT_H_
