// SPDX-License-Identifier: Apache-2.0

// Matrices as plain text: one row a line, as in numpy.loadtxt and spreadsheets.
#ifndef CROUT_CLIENT_CLI_FORMATS_TEXT_MATRIX_H_
#define CROUT_CLIENT_CLI_FORMATS_TEXT_MATRIX_H_

#include "absl/status/statusor.h"
#include "client/cli/formats/array.h"
#include "client/cli/formats/byte_input.h"

namespace crout::cli {

// Numbers are separated by blanks, commas or semicolons. Text after # is a comment; lines without
// numbers are ignored. Complex numbers are (1.5-2j) or 1.5-2j. The type is complex128 if any number
// is complex, otherwise float64. INVALID_ARGUMENT, with the line, for an invalid number and for
// rows of different lengths.
absl::StatusOr<Array> ReadTextMatrix(ByteInput* input);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_FORMATS_TEXT_MATRIX_H_
