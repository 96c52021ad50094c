// SPDX-License-Identifier: Apache-2.0

// NumPy's .npy format, versions 1 to 3:
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#ifndef CROUT_CLIENT_CLI_FORMATS_NPY_H_
#define CROUT_CLIENT_CLI_FORMATS_NPY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/formats/array.h"
#include "client/cli/formats/byte_input.h"

namespace crout::cli {

// Reads an array of one or two dimensions; one dimension is a column. NumPy's floats and complex
// numbers keep their type, in either byte order. Half precision becomes float32; integers and
// booleans become float64. INVALID_ARGUMENT, with the reason, for other types, truncated data and
// trailing data. Memory grows with the data, not with the size in the header.
absl::StatusOr<Array> ReadNpy(ByteInput* input);

// Reads an array of one dimension with integers that fit an int64_t. Errors as from ReadNpy.
absl::StatusOr<std::vector<int64_t>> ReadNpyIntegers(ByteInput* input);

// Reads an array of zero dimensions: one text of bytes or Unicode, ASCII only, at most 16
// characters. Errors as from ReadNpy.
absl::StatusOr<std::string> ReadNpyWord(ByteInput* input);

// The header of a column-major matrix.
std::string NpyHeader(Element element, int64_t rows, int64_t cols);
// The header of an array of one dimension.
std::string NpyVectorHeader(Element element, int64_t size);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_FORMATS_NPY_H_
