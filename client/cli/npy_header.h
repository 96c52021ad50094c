// The header of an .npy file.
#ifndef CROUT_CLIENT_CLI_NPY_HEADER_H_
#define CROUT_CLIENT_CLI_NPY_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cli/byte_input.h"

namespace crout::cli {

inline constexpr absl::string_view kNpyMagic("\x93NUMPY", 6);

// The type of an element in the file.
struct NpyDescr {
  char kind = 0;  // 'f', 'c', 'i', 'u', 'b'; 'S', 'U' of texts
  size_t size = 0;
  bool big_endian = false;
  std::string text = "";  // as the header has it

  bool IsText() const { return kind == 'S' || kind == 'U'; }
};

struct NpyHeaderFields {
  std::optional<NpyDescr> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<int64_t>> shape;
};

absl::Status MalformedNpy(absl::string_view why);
// The elements are no numbers, but of this type.
absl::Status NoNumbers(absl::string_view type);

// All three fields are set. INVALID_ARGUMENT for what is no header of numbers or of short texts.
absl::StatusOr<NpyHeaderFields> ReadNpyHeader(ByteInput* input);

// The next `size` bytes; INVALID_ARGUMENT where the input ends before.
absl::StatusOr<std::vector<std::byte>> ReadNpyBytes(ByteInput* input, int64_t size);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_NPY_HEADER_H_
