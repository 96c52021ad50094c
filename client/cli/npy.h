// NumPy's .npy format, versions 1 to 3:
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#ifndef CROUT_CLIENT_CLI_NPY_H_
#define CROUT_CLIENT_CLI_NPY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/array.h"
#include "client/cli/byte_input.h"

namespace crout::cli {

// One array of one or two dimensions; one of one is a column. Floats and complex numbers of NumPy
// keep their type, in either byte order; half precision becomes float32, integers and booleans
// float64. INVALID_ARGUMENT with the reason for all else, for what is cut off and what comes after.
// Nothing that the header claims is believed before the bytes are there.
absl::StatusOr<Array> ReadNpy(ByteInput* input);

// One array of one dimension, of integers that an int64_t holds; as ReadNpy otherwise.
absl::StatusOr<std::vector<int64_t>> ReadNpyIntegers(ByteInput* input);

// An array without a dimension: one text, of bytes or of Python's characters, ASCII and of no more
// than 16 characters; as ReadNpy otherwise.
absl::StatusOr<std::string> ReadNpyWord(ByteInput* input);

// What stands before the elements of a matrix in column-major order.
std::string NpyHeader(Element element, int64_t rows, int64_t cols);
// The same of an array of one dimension.
std::string NpyVectorHeader(Element element, int64_t size);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_NPY_H_
