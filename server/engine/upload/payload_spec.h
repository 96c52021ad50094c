// SPDX-License-Identifier: Apache-2.0

// Checks matrices against the limits of the engine and a device before their bytes arrive.
#ifndef CROUT_SERVER_ENGINE_UPLOAD_PAYLOAD_SPEC_H_
#define CROUT_SERVER_ENGINE_UPLOAD_PAYLOAD_SPEC_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/device.h"
#include "kernels/matrix.h"
#include "server/engine/engine.h"
#include "server/engine/request.h"

namespace crout {

// A payload that is about to arrive.
struct PayloadSpec : MatrixSpec {
  // If set, the upload of a coordinate text or of entries also builds the map from them to the
  // elements of the matrix (ValueMap).
  bool build_value_map = false;
  int64_t max_order = 0;  // largest number of rows or columns of a parsed payload
};

// Describes a payload that only the job interprets. Its shape is a column of 4-byte words, because
// an upload requires a shape.
PayloadSpec OpaquePayload(size_t bytes);

// Checks `matrix` for `device`. `field` is its path in the request, for messages. Returns
// INVALID_ARGUMENT for a dimension beyond the limit and UNIMPLEMENTED if the device does not
// support the type.
//
// The limit is max_n. It is the larger of max_n and max_sparse_n if the device has sparse methods
// and one of these holds: the matrix is a right-hand side; or it is not sent as dense and has a
// role other than kMatrix.
//
// kNextMatrix is the next matrix of a factor. Only this role allows values without positions.
enum class PayloadRole : uint8_t { kMatrix, kMatrixAllowingSparse, kNextMatrix, kRightHandSide };
absl::StatusOr<PayloadSpec> CheckPayload(const MatrixSpec& matrix, absl::string_view field,
                                         const EngineLimits& limits, const Device& device,
                                         PayloadRole role = PayloadRole::kMatrix);

// Returns UNIMPLEMENTED if the device does not support the type.
absl::Status CheckSupported(const Device& device, DType dtype, absl::string_view field);

// Checks a dimension of a matrix for dense methods. Returns INVALID_ARGUMENT above max_n.
absl::Status CheckDimension(int64_t value, absl::string_view field, const EngineLimits& limits);

// CheckSquare checks that a matrix to factor is square. CheckRows checks that a right-hand side has
// n rows. `mismatch` is the code of its error: FAILED_PRECONDITION if a handle determines n,
// INVALID_ARGUMENT within one request.
absl::Status CheckSquare(const PackedMatrix& shape, absl::string_view field);
absl::Status CheckRows(const PackedMatrix& shape, int64_t n, absl::string_view field,
                       absl::StatusCode mismatch);

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_UPLOAD_PAYLOAD_SPEC_H_
