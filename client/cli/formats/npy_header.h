// SPDX-License-Identifier: Apache-2.0

// Headers of .npy files.
#ifndef CROUT_CLIENT_CLI_FORMATS_NPY_HEADER_H_
#define CROUT_CLIENT_CLI_FORMATS_NPY_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cli/formats/byte_input.h"

namespace crout::cli {

inline constexpr absl::string_view kNpyMagic("\x93NUMPY", 6);

// Element type of a file.
struct NpyDescr {
  char kind = 0;  // 'f', 'c', 'i', 'u', 'b'; texts: 'S', 'U'
  size_t size = 0;
  bool big_endian = false;
  std::string text = "";  // the type in the header, such as "<f8"

  bool IsText() const { return kind == 'S' || kind == 'U'; }
};

struct NpyHeaderFields {
  std::optional<NpyDescr> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<int64_t>> shape;
};

absl::Status MalformedNpy(absl::string_view why);
// The error for elements of this type, which is not a number.
absl::Status NoNumbers(absl::string_view type);

// Sets all three fields. INVALID_ARGUMENT for anything but a header of numbers or short texts.
absl::StatusOr<NpyHeaderFields> ReadNpyHeader(ByteInput* input);

// Reads the next `size` bytes; INVALID_ARGUMENT if the input ends earlier.
absl::StatusOr<std::vector<std::byte>> ReadNpyBytes(ByteInput* input, int64_t size);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_FORMATS_NPY_HEADER_H_
