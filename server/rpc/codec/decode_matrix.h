// SPDX-License-Identifier: Apache-2.0

// What a request declares of its matrices, before their bytes come.
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
  bool text = false;                   // Matrix Market
  std::optional<EntryFormat> entries;  // sparse in binary
  bool values = false;                 // of positions that are known: `shape` is a column of them
  // Without data. Of a payload that is parsed it is 0 x 0 until that was done.
  PackedMatrix shape;
  // Of a coordinate text or entries: the upload's map of these to elements is wanted, too.
  bool map_lines = false;
  int64_t max_order = 0;  // of what is parsed: a larger dimension is refused

  // Whether it arrives as text or as entries: what the device gets is made of them on the host when
  // all bytes have come. The bytes of others go to the device as they are.
  bool needs_parsing() const { return text || entries.has_value(); }
};

// `field` is the path of `spec` in the request, for messages. UNIMPLEMENTED for a type that the
// device does not take. A matrix that may stay sparse, and a right-hand side, may be of order
// max_sparse_n where the device has methods for such matrices; of the next matrix of a factor,
// which may likewise, the values alone may come.
enum class PayloadRole : uint8_t { kMatrix, kMatrixThatMayStaySparse, kNextMatrix, kRightHandSide };
absl::StatusOr<PayloadSpec> DecodePayload(const v1::MatrixSpec& spec, absl::string_view field,
                                          const Limits& limits, const Device& device,
                                          PayloadRole role = PayloadRole::kMatrix);

// A matrix of a dense method: INVALID_ARGUMENT above max_n.
absl::Status CheckDimension(int64_t value, absl::string_view field, const Limits& limits);

// The shape of a matrix to factor: square. Of a right-hand side: n rows; `mismatch` is the code of
// the refusal (FAILED_PRECONDITION against a handle, INVALID_ARGUMENT within one request).
absl::Status CheckSquare(const PackedMatrix& shape, absl::string_view field);
absl::Status CheckRows(const PackedMatrix& shape, int64_t n, absl::string_view field,
                       absl::StatusCode mismatch);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_CODEC_DECODE_MATRIX_H_
