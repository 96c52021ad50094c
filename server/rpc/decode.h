// Requests into checked values: what several calls have in their headers, payloads' bytes aside.
// What one call alone has is checked where its steps are made (DecodeSeries in series_steps.h).
#ifndef CROUT_SERVER_RPC_DECODE_H_
#define CROUT_SERVER_RPC_DECODE_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "crout/v1/factorization_service.pb.h"
#include "grpcpp/server_context.h"
#include "kernels/factorization.h"
#include "kernels/io/entry_reader.h"
#include "kernels/jobs/batch_solve.h"
#include "kernels/jobs/factorize.h"
#include "kernels/jobs/solve.h"
#include "server/cache/factor_cache.h"
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

// Checks the order of the matrix to estimate for, and returns its type.
absl::StatusOr<DType> DecodeProblem(const v1::EstimateFactorizeRequest& request,
                                    const Limits& limits);

// The shape of a matrix to factor: square. Of a right-hand side: n rows; `mismatch` is the code of
// the refusal (FAILED_PRECONDITION against a handle, INVALID_ARGUMENT within one request).
absl::Status CheckSquare(const PackedMatrix& shape, absl::string_view field);
absl::Status CheckRows(const PackedMatrix& shape, int64_t n, absl::string_view field,
                       absl::StatusCode mismatch);

// All but what depends on the order and the device: see Resolve().
absl::StatusOr<FactorizeOptions> DecodeOptions(const v1::FactorizeOptions& options,
                                               DType matrix_dtype);
// Finds the algorithm that `options` names, and the solver for a condition estimate if one is asked
// for. UNIMPLEMENTED for an algorithm that the device lacks, FAILED_PRECONDITION for one that
// leaves no factors.
absl::Status Resolve(const v1::FactorizeOptions& options, const Device& device, int64_t n,
                     FactorizeOptions* decoded);
// All but the solver, which needs the factor.
absl::StatusOr<SolveOptions> DecodeOptions(const v1::SolveOptions& options,
                                           absl::string_view field);

// What a header declares of a batch, max_diagonal and diagonals aside. UNIMPLEMENTED for a device
// that takes no batches, or not of this type.
absl::StatusOr<BatchExtent> DecodeBatch(const v1::BatchSpec& spec, absl::string_view field,
                                        const Limits& limits, const Device& device);
// Which systems of a batch a call solves, and how: all but the method. `factor`: of the batch.
struct BatchSystems {
  BatchRightHandSides rhs;
  BatchSolveOptions options;
};
absl::StatusOr<BatchSystems> DecodeSystems(const v1::SolveBatchHeader& header,
                                           const FactorSummary& factor);
absl::StatusOr<BatchSystems> DecodeSystems(const v1::FactorizeAndSolveBatchHeader& header,
                                           const FactorSummary& factor);

absl::StatusOr<InsertOptions> DecodeCacheOptions(const v1::CacheOptions& options,
                                                 const std::string& tenant, const Limits& limits);
absl::StatusOr<absl::Duration> DecodeLease(const google::protobuf::Duration& lease,
                                           absl::string_view field, const Limits& limits);

// INVALID_ARGUMENT for an empty handle; one that cannot be a handle is NOT_FOUND, as an unknown
// one.
absl::StatusOr<Handle> DecodeHandle(absl::string_view text);

// The crout-tenant metadata value, if there is one.
absl::StatusOr<std::optional<std::string>> DecodeTenant(const grpc::ServerContextBase& context);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_DECODE_H_
