// SPDX-License-Identifier: Apache-2.0

// Decodes the declarations of matrices before their payloads arrive.
#ifndef CROUT_SERVER_RPC_CODEC_DECODE_MATRIX_H_
#define CROUT_SERVER_RPC_CODEC_DECODE_MATRIX_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "crout/v1/factorization_service.pb.h"
#include "kernels/factorization.h"
#include "kernels/io/entry_reader.h"
#include "server/rpc/core.h"

namespace crout {

// A payload that is about to arrive.
struct PayloadSpec {
  bool text = false;                   // Matrix Market text
  std::optional<EntryFormat> entries;  // sparse matrix in binary form
  // Values for known positions. `shape` is then a column of them.
  bool values = false;
  // Shape without data. For a payload that must be parsed, it is 0 x 0 until then.
  PackedMatrix shape;
  // Whether the upload of a coordinate text or of entries also builds the map from them to the
  // elements of the matrix (ValueMap).
  bool map_lines = false;
  int64_t max_order = 0;  // largest dimension of a parsed payload

  // Whether the payload is text or entries. The host then builds the matrix for the device after
  // all bytes have arrived. Other payloads are copied to the device unchanged.
  bool needs_parsing() const { return text || entries.has_value(); }
};

// Decodes `spec`. `field` is its path in the request, for messages. Returns UNIMPLEMENTED if the
// device does not support the type.
//
// The order is limited to max_n. On a device with sparse methods, the limit is max_sparse_n, if
// larger, for a right-hand side, and for a matrix with a role that allows a sparse factorization if
// it is not sent as dense. kNextMatrix, the next matrix of a factor, also allows values alone.
enum class PayloadRole : uint8_t { kMatrix, kMatrixAllowingSparse, kNextMatrix, kRightHandSide };
absl::StatusOr<PayloadSpec> DecodePayload(const v1::MatrixSpec& spec, absl::string_view field,
                                          const Limits& limits, const Device& device,
                                          PayloadRole role = PayloadRole::kMatrix);

// Checks a dimension of a matrix for dense methods. Returns INVALID_ARGUMENT above max_n.
absl::Status CheckDimension(int64_t value, absl::string_view field, const Limits& limits);

// CheckSquare checks that a matrix to factor is square. CheckRows checks that a right-hand side has
// n rows. `mismatch` is the code of its error: FAILED_PRECONDITION if a handle determines n,
// INVALID_ARGUMENT within one request.
absl::Status CheckSquare(const PackedMatrix& shape, absl::string_view field);
absl::Status CheckRows(const PackedMatrix& shape, int64_t n, absl::string_view field,
                       absl::StatusCode mismatch);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_CODEC_DECODE_MATRIX_H_
