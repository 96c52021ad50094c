// Matrices as plain text: a row a line, as numpy.loadtxt and spreadsheets have them.
#ifndef CROUT_CLIENT_CLI_TEXT_MATRIX_H_
#define CROUT_CLIENT_CLI_TEXT_MATRIX_H_

#include "absl/status/statusor.h"
#include "client/cli/array.h"
#include "client/cli/byte_input.h"

namespace crout::cli {

// Numbers lie apart by blanks, commas or semicolons; what follows # is a comment, and lines without
// numbers do not count. Complex numbers are (1.5-2j) or 1.5-2j; one makes all complex128, else they
// are float64. INVALID_ARGUMENT with the line for what is no number and for rows of unlike length.
absl::StatusOr<Array> ReadTextMatrix(ByteInput* input);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_TEXT_MATRIX_H_
