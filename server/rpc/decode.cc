#include "server/rpc/decode.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "kernels/algorithm_registry.h"
#include "kernels/jobs/factorize.h"
#include "kernels/jobs/input_checks.h"
#include "kernels/jobs/solve.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/strings.h"
#include "server/rpc/names.h"
#include "server/rpc/status.h"
#include "server/scheduling/reason.h"

namespace crout {
namespace {

constexpr size_t kMaxNameBytes = 128;
constexpr int kMaxRefinementSteps = 100;

absl::StatusOr<DType> DecodeDtype(v1::Dtype dtype, DType unspecified, absl::string_view field) {
  switch (dtype) {
    case v1::DTYPE_UNSPECIFIED:
      return unspecified;
    case v1::DTYPE_FLOAT32:
      return DType::kFloat32;
    case v1::DTYPE_FLOAT64:
      return DType::kFloat64;
    case v1::DTYPE_COMPLEX64:
      return DType::kComplex64;
    case v1::DTYPE_COMPLEX128:
      return DType::kComplex128;
    default:
      return BadField(field, absl::StrCat("unknown type ", static_cast<int>(dtype)));
  }
}

absl::Status CheckWithin(int64_t value, absl::string_view field, int64_t most,
                         const Limits& limits) {
  if (value >= 0 && value <= most) return absl::OkStatus();
  return BadField(field, absl::StrCat(value, " is not in [0, ", most, "], this server's ",
                                      most == limits.max_n ? "max_n" : "max_sparse_n"));
}

absl::StatusOr<PackedMatrix> DecodeDense(const v1::DenseSpec& dense, absl::string_view field,
                                         int64_t most, const Limits& limits) {
  PackedMatrix shape;
  CROUT_ASSIGN_OR_RETURN(
      shape.dtype, DecodeDtype(dense.dtype(), DType::kFloat64, absl::StrCat(field, ".dtype")));
  if (dense.layout() < v1::LAYOUT_UNSPECIFIED || dense.layout() > v1::LAYOUT_ROW_MAJOR) {
    return BadField(absl::StrCat(field, ".layout"),
                    absl::StrCat("unknown layout ", static_cast<int>(dense.layout())));
  }
  shape.layout = dense.layout() == v1::LAYOUT_ROW_MAJOR ? Layout::kRowMajor : Layout::kColumnMajor;
  CROUT_RETURN_IF_ERROR(CheckWithin(dense.rows(), absl::StrCat(field, ".rows"), most, limits));
  CROUT_RETURN_IF_ERROR(CheckWithin(dense.cols(), absl::StrCat(field, ".cols"), most, limits));
  shape.rows = dense.rows();
  shape.cols = dense.cols();
  const auto bytes = MatrixBytes(shape.rows, shape.cols, shape.dtype);
  if (!bytes.ok()) return BadField(field, bytes.status().message());
  return shape;
}

absl::Status CheckText(absl::string_view text, absl::string_view field) {
  if (text.size() <= kMaxNameBytes) return absl::OkStatus();
  return BadField(field, absl::StrCat(text.size(), " bytes; at most ", kMaxNameBytes));
}

// A number that nothing goes by is a mistake that would go unnoticed.
absl::Status CheckGoesBy(const v1::MethodParameters& parameters) {
  const bool interval = parameters.interval_low() != 0 || parameters.interval_high() != 0;
  if (interval && parameters.pivot_rule() != v1::PIVOT_RULE_INTERVAL) {
    return BadField("header.options.parameters.interval_low",
                    "only PIVOT_RULE_INTERVAL goes by an interval: set pivot_rule to it");
  }
  if (parameters.threshold() != 0 && parameters.pivot_rule() != v1::PIVOT_RULE_THRESHOLD) {
    return BadField("header.options.parameters.threshold",
                    "only PIVOT_RULE_THRESHOLD goes by a threshold: set pivot_rule to it");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<PivotCriterion>> DecodePivoting(
    const v1::MethodParameters& parameters) {
  CROUT_RETURN_IF_ERROR(CheckGoesBy(parameters));
  PivotCriterion criterion;
  switch (parameters.pivot_rule()) {
    case v1::PIVOT_RULE_UNSPECIFIED:
      return std::optional<PivotCriterion>();
    case v1::PIVOT_RULE_PARTIAL:
      criterion.rule = PivotRule::kPartial;
      return std::optional(criterion);
    case v1::PIVOT_RULE_INTERVAL:
      criterion.rule = PivotRule::kInterval;
      if (parameters.interval_low() != 0 || parameters.interval_high() != 0) {
        criterion.low = parameters.interval_low();
        criterion.high = parameters.interval_high();
      }
      return std::optional(criterion);
    case v1::PIVOT_RULE_THRESHOLD:
      criterion.rule = PivotRule::kThreshold;
      if (parameters.threshold() != 0) criterion.threshold = parameters.threshold();
      return std::optional(criterion);
    default:
      return BadField("header.options.parameters.pivot_rule", "unknown value");
  }
}

absl::StatusOr<MethodVariant> DecodeVariant(v1::MethodVariant variant) {
  switch (variant) {
    case v1::METHOD_VARIANT_UNSPECIFIED:
    case v1::METHOD_VARIANT_FAST:
      return MethodVariant::kFast;
    case v1::METHOD_VARIANT_PUBLISHED:
      return MethodVariant::kPublished;
    default:
      return BadField("header.options.parameters.variant", "unknown value");
  }
}

absl::StatusOr<LuParameters> DecodeParameters(const v1::MethodParameters& parameters) {
  LuParameters decoded;
  CROUT_ASSIGN_OR_RETURN(decoded.pivoting, DecodePivoting(parameters));
  CROUT_ASSIGN_OR_RETURN(decoded.variant, DecodeVariant(parameters.variant()));
  decoded.tolerance = parameters.tolerance();
  decoded.absolute_tolerance = parameters.absolute_tolerance();
  decoded.section_size = parameters.section_size();
  decoded.block_size = parameters.block_size();
  decoded.sweep_limit = parameters.sweep_limit();
  return decoded;
}

absl::Status CheckEntries(int64_t entries, const std::string& field) {
  if (entries >= 0 && entries <= std::numeric_limits<int32_t>::max()) return absl::OkStatus();
  return BadField(absl::StrCat(field, ".entries"),
                  absl::StrCat(entries, " is not within 0 and 2^31 - 1"));
}

absl::StatusOr<PackedMatrix> DecodeValues(const v1::SparseValuesSpec& spec,
                                          const std::string& field) {
  CROUT_RETURN_IF_ERROR(CheckEntries(spec.entries(), field));
  PackedMatrix column{nullptr, DType::kFloat64, Layout::kColumnMajor, spec.entries(), 1};
  CROUT_ASSIGN_OR_RETURN(column.dtype,
                         DecodeDtype(spec.dtype(), DType::kFloat64, absl::StrCat(field, ".dtype")));
  return column;
}

absl::StatusOr<EntryFormat> DecodeSparse(const v1::SparseSpec& spec, const std::string& field,
                                         int64_t most, const Limits& limits) {
  EntryFormat format;
  CROUT_ASSIGN_OR_RETURN(format.dtype,
                         DecodeDtype(spec.dtype(), DType::kFloat64, absl::StrCat(field, ".dtype")));
  switch (spec.format()) {
    case v1::SPARSE_FORMAT_UNSPECIFIED:
    case v1::SPARSE_FORMAT_COORDINATE:
      break;
    case v1::SPARSE_FORMAT_COMPRESSED_ROWS:
      format.compressed_rows = true;
      break;
    default:
      return BadField(absl::StrCat(field, ".format"), "unknown value");
  }
  CROUT_RETURN_IF_ERROR(CheckWithin(spec.rows(), absl::StrCat(field, ".rows"), most, limits));
  CROUT_RETURN_IF_ERROR(CheckWithin(spec.cols(), absl::StrCat(field, ".cols"), most, limits));
  CROUT_RETURN_IF_ERROR(CheckEntries(spec.entries(), field));
  if (spec.index_bytes() != 0 && spec.index_bytes() != 4 && spec.index_bytes() != 8) {
    return BadField(absl::StrCat(field, ".index_bytes"),
                    absl::StrCat(spec.index_bytes(), ": indices have 4 bytes or 8"));
  }
  if (spec.index_bytes() != 0) format.index_bytes = spec.index_bytes();
  format.rows = spec.rows();
  format.columns = spec.cols();
  format.entries = spec.entries();
  return format;
}

absl::Status CheckTakes(const Device& device, DType dtype, absl::string_view field) {
  if (device.info().types.contains(dtype)) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(field, ": device ", device.info().name,
                                               " does not take ", ToAbsl(NameOf(dtype))));
}

absl::StatusOr<Op> DecodeOperation(v1::Operation operation, absl::string_view field) {
  switch (operation) {
    case v1::OPERATION_UNSPECIFIED:
    case v1::OPERATION_NONE:
      return Op::kNone;
    case v1::OPERATION_TRANSPOSE:
      return Op::kTranspose;
    case v1::OPERATION_CONJUGATE_TRANSPOSE:
      return Op::kConjugateTranspose;
    default:
      return BadField(absl::StrCat(field, ".operation"), "unknown value");
  }
}

absl::Status CheckValueBytes(int64_t bytes, DType dtype, absl::string_view field) {
  const auto size = static_cast<int64_t>(SizeOf(dtype));
  if (bytes >= 0 && bytes % size == 0) return absl::OkStatus();
  return BadField(field, absl::StrCat(bytes, " is no number of bytes of elements of ", size));
}

// What two headers say in the same words.
template <class Header>
absl::StatusOr<BatchSystems> DecodeSystemsOf(const Header& header, int64_t value_bytes,
                                             const FactorSummary& factor) {
  const int64_t members = factor.batch->extent.members;
  if (header.systems() < 0 || header.systems() > members) {
    return BadField("header.systems", absl::StrCat("right-hand sides for ", header.systems(),
                                                   " members of a batch of ", members));
  }
  BatchSystems systems;
  systems.rhs = {header.systems(), static_cast<size_t>(value_bytes)};
  CROUT_ASSIGN_OR_RETURN(systems.options.op, DecodeOperation(header.operation(), "header"));
  systems.options.verify = !header.skip_verification();
  return systems;
}

}  // namespace

absl::Status CheckDimension(int64_t value, absl::string_view field, const Limits& limits) {
  return CheckWithin(value, field, limits.max_n, limits);
}

absl::StatusOr<PayloadSpec> DecodePayload(const v1::MatrixSpec& spec, absl::string_view field,
                                          const Limits& limits, const Device& device,
                                          PayloadRole role) {
  PayloadSpec payload;
  const bool sparse =
      role == PayloadRole::kRightHandSide || (role != PayloadRole::kMatrix && !spec.has_dense());
  payload.max_order = sparse && !device.catalogue().sparse_lus.empty()
                          ? std::max(limits.max_n, limits.max_sparse_n)
                          : limits.max_n;
  const int64_t most = payload.max_order;
  switch (spec.format_case()) {
    case v1::MatrixSpec::kDense: {
      CROUT_ASSIGN_OR_RETURN(
          payload.shape, DecodeDense(spec.dense(), absl::StrCat(field, ".dense"), most, limits));
      CROUT_RETURN_IF_ERROR(CheckTakes(device, payload.shape.dtype, field));
      return payload;
    }
    case v1::MatrixSpec::kMatrixMarket: {
      payload.text = true;
      CROUT_ASSIGN_OR_RETURN(payload.shape.dtype,
                             DecodeDtype(spec.matrix_market().dtype(), DType::kFloat64,
                                         absl::StrCat(field, ".matrix_market.dtype")));
      CROUT_RETURN_IF_ERROR(CheckTakes(device, payload.shape.dtype, field));
      return payload;
    }
    case v1::MatrixSpec::kSparse: {
      CROUT_ASSIGN_OR_RETURN(
          payload.entries,
          DecodeSparse(spec.sparse(), absl::StrCat(field, ".sparse"), most, limits));
      payload.shape.dtype = payload.entries->dtype;
      CROUT_RETURN_IF_ERROR(CheckTakes(device, payload.shape.dtype, field));
      return payload;
    }
    case v1::MatrixSpec::kValues: {
      if (role != PayloadRole::kNextMatrix) {
        return BadField(
            absl::StrCat(field, ".values"),
            "values alone need the positions of a handle's matrix: Refactorize takes them");
      }
      payload.values = true;
      CROUT_ASSIGN_OR_RETURN(payload.shape,
                             DecodeValues(spec.values(), absl::StrCat(field, ".values")));
      CROUT_RETURN_IF_ERROR(CheckTakes(device, payload.shape.dtype, field));
      return payload;
    }
    case v1::MatrixSpec::FORMAT_NOT_SET:
      break;
  }
  return BadField(field, "no format: set dense, matrix_market or sparse");
}

absl::StatusOr<DType> DecodeProblem(const v1::EstimateFactorizeRequest& request,
                                    const Limits& limits) {
  Limits most = limits;
  if (request.has_nnz()) most.max_n = std::max(limits.max_n, limits.max_sparse_n);
  CROUT_RETURN_IF_ERROR(CheckDimension(request.n(), "n", most));
  if (request.nnz() < 0 || request.nnz() > request.n() * request.n()) {
    return BadField("nnz", absl::StrCat(request.nnz(), " is not in [0, ", request.n() * request.n(),
                                        "], of a matrix of order ", request.n()));
  }
  return DecodeDtype(request.matrix_dtype(), DType::kFloat64, "matrix_dtype");
}

absl::Status CheckSquare(const PackedMatrix& shape, absl::string_view field) {
  if (shape.rows == shape.cols) return absl::OkStatus();
  return BadField(field, absl::StrCat(shape.rows, " x ", shape.cols,
                                      " is not square: only square matrices are factored"));
}

absl::Status CheckRows(const PackedMatrix& shape, int64_t n, absl::string_view field,
                       absl::StatusCode mismatch) {
  if (shape.rows == n) return absl::OkStatus();
  const std::string message =
      absl::StrCat(field, ": ", shape.rows, " rows, but the factor's matrix has order ", n);
  return WithReason(absl::Status(mismatch, message), kReasonShapeMismatch);
}

absl::StatusOr<FactorizeOptions> DecodeOptions(const v1::FactorizeOptions& options,
                                               DType matrix_dtype) {
  if (options.precision() != v1::FACTOR_PRECISION_UNSPECIFIED) {
    return BadField("header.options.precision",
                    "only Factorize, Refactorize, FactorizeAndSolve and EstimateFactorize take it");
  }
  FactorizeOptions decoded;
  CROUT_ASSIGN_OR_RETURN(decoded.parameters, DecodeParameters(options.parameters()));
  CROUT_ASSIGN_OR_RETURN(decoded.factor_dtype, DecodeDtype(options.factor_dtype(), matrix_dtype,
                                                           "header.options.factor_dtype"));
  const absl::Status field = CheckSameField(matrix_dtype, decoded.factor_dtype);
  if (!field.ok()) return BadField("header.options.factor_dtype", field.message());
  switch (options.equilibrate()) {
    case v1::EQUILIBRATE_UNSPECIFIED:
    case v1::EQUILIBRATE_AUTO:
      decoded.equilibrate = EquilibrateMode::kAuto;
      break;
    case v1::EQUILIBRATE_ON:
      decoded.equilibrate = EquilibrateMode::kOn;
      break;
    case v1::EQUILIBRATE_OFF:
      decoded.equilibrate = EquilibrateMode::kOff;
      break;
    default:
      return BadField("header.options.equilibrate", "unknown value");
  }
  decoded.keep_matrix = !options.drop_matrix();
  decoded.determinant = options.determinant();
  return decoded;
}

absl::Status Resolve(const v1::FactorizeOptions& options, const Device& device, int64_t n,
                     FactorizeOptions* decoded) {
  const std::string name = AlgorithmName(options.algorithm());
  if (SolvesDirectly(device, name)) {
    return absl::FailedPreconditionError(
        absl::StrCat(name, " solves and leaves no factors: use FactorizeAndSolve"));
  }
  CROUT_ASSIGN_OR_RETURN(decoded->algorithm, FindAlgorithm(device, name, decoded->factor_dtype, n));
  const absl::Status taken = CheckParameters(decoded->algorithm->traits(), decoded->parameters);
  if (absl::IsUnimplemented(taken)) return taken;
  if (!taken.ok()) return BadField("header.options.parameters", taken.message());
  if (!options.condition()) return absl::OkStatus();
  CROUT_ASSIGN_OR_RETURN(decoded->condition_solver,
                         FindSolver(device, "auto", decoded->algorithm->traits().unit_diagonal,
                                    decoded->factor_dtype, n, /*nrhs=*/1));
  return absl::OkStatus();
}

absl::StatusOr<SolveOptions> DecodeOptions(const v1::SolveOptions& options,
                                           absl::string_view field) {
  SolveOptions decoded;
  CROUT_ASSIGN_OR_RETURN(decoded.op, DecodeOperation(options.operation(), field));
  const int steps = options.max_refinement_steps();
  if (steps < 0 || steps > kMaxRefinementSteps) {
    return BadField(absl::StrCat(field, ".max_refinement_steps"),
                    absl::StrCat(steps, " is not in [0, ", kMaxRefinementSteps, "]"));
  }
  decoded.solver_tolerance = options.solver_tolerance();
  decoded.verify = !options.skip_verification();
  decoded.componentwise_error = options.componentwise_error();
  decoded.error_bound = options.error_bound();
  decoded.max_refinement_steps = steps;
  decoded.refine_componentwise = options.refine_componentwise();
  return decoded;
}

absl::StatusOr<BatchExtent> DecodeBatch(const v1::BatchSpec& spec, absl::string_view field,
                                        const Limits& limits, const Device& device) {
  const auto path = [&](const char* name) { return absl::StrCat(field, ".", name); };
  BatchExtent extent;
  CROUT_ASSIGN_OR_RETURN(extent.dtype, DecodeDtype(spec.dtype(), DType::kFloat64, path("dtype")));
  if (device.batch_lu() == nullptr) {
    return absl::UnimplementedError(
        absl::StrCat(field, ": device ", device.info().name, " takes no batches"));
  }
  CROUT_RETURN_IF_ERROR(CheckTakes(device, extent.dtype, field));
  const absl::StatusOr<size_t> members = BatchMembersBytes(spec.members());
  if (!members.ok()) return BadField(path("members"), members.status().message());
  CROUT_RETURN_IF_ERROR(CheckDimension(spec.max_rows(), path("max_rows"), limits));
  CROUT_RETURN_IF_ERROR(CheckDimension(spec.max_cols(), path("max_cols"), limits));
  if (std::max(spec.max_rows(), spec.max_cols()) > kMaxMemberOrder) {
    return BadField(path("max_rows"),
                    absl::StrCat("members are of order ", kMaxMemberOrder, " at most"));
  }
  CROUT_RETURN_IF_ERROR(CheckValueBytes(spec.value_bytes(), extent.dtype, path("value_bytes")));
  extent.members = spec.members();
  extent.max_rows = static_cast<int32_t>(spec.max_rows());
  extent.max_cols = static_cast<int32_t>(spec.max_cols());
  extent.total_rows = spec.total_rows();
  extent.total_cols = spec.total_cols();
  extent.bytes = static_cast<size_t>(spec.value_bytes());
  return extent;
}

absl::StatusOr<BatchSystems> DecodeSystems(const v1::SolveBatchHeader& header,
                                           const FactorSummary& factor) {
  CROUT_ASSIGN_OR_RETURN(const DType dtype,
                         DecodeDtype(header.dtype(), DType::kFloat64, "header.dtype"));
  if (dtype != factor.factor_dtype) {
    return BadField("header.dtype",
                    absl::StrCat("the batch is ", ToAbsl(NameOf(factor.factor_dtype)), ", not ",
                                 ToAbsl(NameOf(dtype))));
  }
  CROUT_RETURN_IF_ERROR(CheckValueBytes(header.value_bytes(), dtype, "header.value_bytes"));
  return DecodeSystemsOf(header, header.value_bytes(), factor);
}

absl::StatusOr<BatchSystems> DecodeSystems(const v1::FactorizeAndSolveBatchHeader& header,
                                           const FactorSummary& factor) {
  CROUT_RETURN_IF_ERROR(
      CheckValueBytes(header.rhs_value_bytes(), factor.factor_dtype, "header.rhs_value_bytes"));
  return DecodeSystemsOf(header, header.rhs_value_bytes(), factor);
}

absl::StatusOr<absl::Duration> DecodeLease(const google::protobuf::Duration& lease,
                                           absl::string_view field, const Limits& limits) {
  const absl::Duration duration = absl::Seconds(lease.seconds()) + absl::Nanoseconds(lease.nanos());
  if (duration == absl::ZeroDuration()) return limits.default_lease;
  if (duration < absl::ZeroDuration() || duration > limits.max_lease) {
    return BadField(field, absl::StrCat(absl::FormatDuration(duration), " is not in (0, ",
                                        absl::FormatDuration(limits.max_lease), "]"));
  }
  return duration;
}

absl::StatusOr<InsertOptions> DecodeCacheOptions(const v1::CacheOptions& options,
                                                 const std::string& tenant, const Limits& limits) {
  CROUT_RETURN_IF_ERROR(CheckText(options.name(), "header.cache.name"));
  CROUT_RETURN_IF_ERROR(CheckText(options.request_id(), "header.cache.request_id"));
  InsertOptions decoded{.tenant = tenant,
                        .name = options.name(),
                        .request_id = options.request_id(),
                        .lease = absl::ZeroDuration(),
                        .life = limits.max_life};
  CROUT_ASSIGN_OR_RETURN(decoded.lease, DecodeLease(options.lease(), "header.cache.lease", limits));
  return decoded;
}

absl::StatusOr<Handle> DecodeHandle(absl::string_view text) {
  if (text.empty()) return BadField("handle", "missing");
  if (const std::optional<Handle> handle = Handle::Parse({text.data(), text.size()}))
    return *handle;
  return WithReason(absl::NotFoundError("no factor has this handle: it is not of the form that "
                                        "Factorize returns (26 characters of base32)"),
                    kReasonHandleUnknown);
}

absl::StatusOr<std::optional<std::string>> DecodeTenant(const grpc::ServerContextBase& context) {
  const auto& metadata = context.client_metadata();
  const auto [found, end] = metadata.equal_range("crout-tenant");
  if (found == end) return std::optional<std::string>();
  const std::string tenant(found->second.data(), found->second.size());
  if (std::next(found) != end || !IsPrincipalName(tenant)) {
    return BadField("crout-tenant", "metadata must be one value, of 1 to 64 of [A-Za-z0-9_.-]");
  }
  return std::optional(tenant);
}

}  // namespace crout
