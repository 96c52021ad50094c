// SPDX-License-Identifier: Apache-2.0

// Fuzzes the message parser with one streamed request in slices of any size, and the matrix
// assembler with its payloads in chunks of any size. The parsed header and data must equal those of
// protobuf. The device must receive the bits of accepted data. A refusal must have a reason. All
// memory must be released at the end.
//
// The input is a FactorizeAndSolveRequest, followed by a few bytes that determine the slices and
// chunks.
#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "crout/v1/factorization_service.pb.h"
#include "google/protobuf/empty.pb.h"
#include "google/protobuf/unknown_field_set.h"
#include "kernels/io/entry_reader.h"
#include "kernels/io/matrix_market_reader.h"
#include "kernels/scalar.h"
#include "kernels/util/status_macros.h"
#include "server/components.h"
#include "server/engine/upload/matrix_upload.h"
#include "server/rpc/codec/decode_matrix.h"
#include "server/rpc/codec/stream_message.h"
#include "tests/support/fakes/fake_device.h"
#include "tests/support/timing/eventually.h"

namespace crout {
namespace {

using google::protobuf::UnknownField;
using google::protobuf::UnknownFieldSet;

constexpr int64_t kMaxN = 40;
constexpr int kDataField = 2;
constexpr int kRhsDataField = 3;
constexpr int kStartDataField = 4;

void Require(bool condition) {
  if (!condition) std::abort();
}

void CheckRefusal(const absl::Status& status) {
  Require(!status.message().empty() && status.message().size() < 500);
  Require(status.code() == absl::StatusCode::kInvalidArgument ||
          status.code() == absl::StatusCode::kUnimplemented ||
          status.code() == absl::StatusCode::kResourceExhausted);
}

// The delivery of the input: whether the device holds uploads, and the bytes of slices and chunks,
// which repeat cyclically.
struct Steering {
  size_t NextSlice() { return slices[next_slice++ % slices.size()]; }
  size_t NextChunk() { return chunks[next_chunk++ % chunks.size()]; }

  bool hold_uploads = false;
  std::vector<size_t> slices;
  std::vector<size_t> chunks;
  size_t next_slice = 0;
  size_t next_chunk = 0;
};

grpc::ByteBuffer Sliced(const std::string& bytes, Steering* steering) {
  std::vector<grpc::Slice> slices;
  for (size_t at = 0; at < bytes.size(); at += slices.back().size()) {
    slices.emplace_back(bytes.substr(at, steering->NextSlice()));
  }
  return {slices.data(), slices.size()};
}

std::string DataOf(const StreamMessage& message, int field) {
  std::string data;
  for (const DataSegment& segment : message.segments()) {
    Require(segment.field >= kDataField && segment.field <= kStartDataField);
    if (segment.field != field) continue;
    data.append(reinterpret_cast<const char*>(segment.bytes.data()), segment.bytes.size());
  }
  return data;
}

// Returns all occurrences of a field, concatenated. All fields of a message type without fields are
// unknown fields.
std::string AllOf(const UnknownFieldSet& fields, int number) {
  std::string data;
  for (int i = 0; i < fields.field_count(); ++i) {
    const UnknownField& field = fields.field(i);
    if (field.number() != number || field.type() != UnknownField::TYPE_LENGTH_DELIMITED) continue;
    data += field.length_delimited();
  }
  return data;
}

// Aborts unless protobuf and the parser interpret accepted bytes alike. `header` is null if the
// parser refused it.
void CheckAgainstProtobuf(const std::string& bytes, const StreamMessage& message,
                          const v1::FactorizeAndSolveHeader* header) {
  google::protobuf::Empty any;
  if (!any.ParseFromString(bytes)) return;  // CodedInputStream accepts tags of more than 32 bits
  const UnknownFieldSet& fields = any.GetReflection()->GetUnknownFields(any);
  for (const int field : {kDataField, kRhsDataField, kStartDataField}) {
    Require(DataOf(message, field) == AllOf(fields, field));
  }
  v1::FactorizeAndSolveRequest request;
  if (!request.ParseFromString(bytes)) return;
  Require(header != nullptr && message.has_header() == request.has_header());
  Require(header->SerializeAsString() == request.header().SerializeAsString());
  // protobuf stores the last of several occurrences.
  Require(DataOf(message, kDataField).ends_with(request.data()));
  Require(DataOf(message, kRhsDataField).ends_with(request.rhs_data()));
}

// Returns the server's parser for the payload, without memory limits.
std::unique_ptr<MatrixReader> ReaderOf(const PayloadSpec& spec) {
  if (spec.entries)
    return std::make_unique<EntryReader>(*spec.entries, /*build_value_map=*/false, nullptr);
  MatrixMarketLimits limits;
  limits.max_rows = limits.max_columns = kMaxN;
  limits.complex = IsComplex(spec.shape.dtype);
  return std::make_unique<MatrixMarketReader>(limits, nullptr);
}

// Returns the bytes of the parsed matrix in type T, column-major, or nullopt if the reader refuses
// it.
template <class T>
std::optional<std::string> Expand(MatrixReader& reader, const std::string& bytes) {
  if (!reader.Append(bytes).ok() || !reader.Finish().ok()) return std::nullopt;
  const MatrixMarketHeader header = *reader.header();
  std::vector<T> values(header.rows * header.columns);
  if (header.coordinate) {
    const SparseMatrix sparse = reader.TakeSparse();
    for (int64_t j = 0; j < sparse.columns; ++j) {
      for (int64_t i = sparse.column_start[j]; i < sparse.column_start[j + 1]; ++i) {
        values[sparse.row[i] + j * sparse.rows] = ConvertTo<T>(sparse.Value<WideType<T>>(i));
      }
    }
  } else {
    const std::vector<double> dense = reader.TakeDense();
    const std::vector<double> imaginary = reader.TakeDenseImaginary();
    for (size_t i = 0; i < values.size(); ++i) {
      WideType<T> value = dense[i];
      if constexpr (kIsComplex<T>) value.imag(imaginary.empty() ? 0 : imaginary[i]);
      values[i] = ConvertTo<T>(value);
    }
  }
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

// Has the components of a server, which exist for all inputs, and assembles matrices with them.
class Assembler {
 public:
  Assembler() {
    testing::FakeDeviceOptions options;
    options.staging_block_bytes = 64;  // a matrix needs many blocks
    auto fake = std::make_unique<testing::FakeDevice>(options);
    device_ = fake.get();
    std::vector<std::shared_ptr<Device>> devices;
    devices.push_back(std::move(fake));
    Config config;
    config.host_threads = 2;
    config.pool.device_budget_bytes = 12 << 10;  // less than the largest matrix (12,800 bytes)
    config.pool.host_budget_bytes = size_t{16} << 20;
    config.pool.scheduler.streams = 1;
    config.limits.max_n = kMaxN;
    components_ = *ServerComponents::Create(std::move(devices), config);
    slot_ = components_->core().engine.devices.slots()[0].get();
    context_ = *device_->CreateContext();
  }

  // Assembles the payload in `field` as a matrix with `spec`, if `spec` is valid.
  void Assemble(const v1::MatrixSpec& spec, const StreamMessage& message, int field,
                Steering* steering) {
    const absl::StatusOr<PayloadSpec> payload = Check(spec);
    const absl::Status status =
        payload.ok() ? Assemble(*payload, message, field, steering) : payload.status();
    if (!status.ok()) CheckRefusal(status);
    Require(slot_->budget->reserved() == 0);
    // The memory of a refused text is reserved until the parsers release its segments.
    Require(testing::Eventually(
        [this] { return components_->core().engine.devices.host_budget().reserved() == 0; }));
    Require(device_->counting_memory().live_bytes() == 0);
    Require(device_->counting_staging_memory().live_bytes() == 0);
    Require(device_->live_uploaders() == 0);
  }

 private:
  absl::StatusOr<PayloadSpec> Check(const v1::MatrixSpec& spec) {
    CROUT_ASSIGN_OR_RETURN(const MatrixSpec matrix, DecodeMatrix(spec, "header.matrix"));
    return CheckPayload(matrix, "header.matrix", components_->core().limits, *device_);
  }
  absl::Status Assemble(const PayloadSpec& spec, const StreamMessage& message, int field,
                        Steering* steering) {
    Reservation reservation;
    MatrixUpload upload(components_->core().engine, spec, "header.matrix");
    if (!spec.needs_parsing()) CROUT_RETURN_IF_ERROR(Open(&upload, &reservation));
    for (const DataSegment& segment : message.segments()) {
      if (segment.field != field) continue;
      CROUT_RETURN_IF_ERROR(Append(&upload, segment.bytes, steering));
    }
    CROUT_RETURN_IF_ERROR(upload.Close());
    if (spec.needs_parsing()) {
      CROUT_RETURN_IF_ERROR(upload.Parse([] { return false; }));
      Require(upload.shape().rows <= kMaxN && upload.shape().cols <= kMaxN);
      CROUT_RETURN_IF_ERROR(Open(&upload, &reservation));
      CROUT_RETURN_IF_ERROR(upload.Assemble([] { return false; }));
    }
    CheckArrived(&upload, spec, DataOf(message, field));
    return absl::OkStatus();
  }

  absl::Status Open(MatrixUpload* upload, Reservation* reservation) {
    CROUT_ASSIGN_OR_RETURN(*reservation, components_->core().engine.cache.ReserveOnDevice(
                                             *slot_, upload->shape().bytes()));
    return upload->Open(*slot_);
  }

  absl::Status Append(MatrixUpload* upload, std::span<const std::byte> bytes, Steering* steering) {
    while (!bytes.empty()) {
      const auto view = bytes.first(std::min(steering->NextChunk(), bytes.size()));
      const std::vector<std::byte> chunk(view.begin(), view.end());  // exact size, for ASan
      CROUT_ASSIGN_OR_RETURN(const size_t taken, AppendChunk(upload, chunk, steering));
      bytes = bytes.subspan(taken);
      Require(upload->needs_parsing() || upload->bytes_received() <= upload->shape().bytes());
    }
    return absl::OkStatus();
  }

  // Returns the number of accepted bytes. If the device holds uploads, it accepts only a part of
  // the chunk, and must call back exactly once when it is ready.
  absl::StatusOr<size_t> AppendChunk(MatrixUpload* upload, std::span<const std::byte> chunk,
                                     const Steering* steering) {
    int calls = 0;
    const size_t before = upload->bytes_received();
    if (steering->hold_uploads) device_->HoldUploads();
    absl::StatusOr<size_t> taken = upload->Append(chunk, [&calls] { ++calls; });
    device_->ReleaseUploads();
    if (!taken.ok()) return taken;
    Require(*taken <= chunk.size() && upload->bytes_received() == before + *taken);
    Require(calls == (*taken < chunk.size() ? 1 : 0));
    Require(steering->hold_uploads || *taken == chunk.size());
    if (*taken > 0 || chunk.empty()) return taken;
    return upload->Append(chunk, nullptr);
  }

  // Aborts unless the device has the matrix of the complete payload `data`.
  void CheckArrived(MatrixUpload* upload, const PayloadSpec& spec, const std::string& data) {
    Require(upload->bytes_received() == data.size());
    std::optional<std::string> expected = data;
    if (upload->needs_parsing()) {
      const std::unique_ptr<MatrixReader> reader = ReaderOf(spec);
      expected = DispatchDType(upload->shape().dtype, [&](auto tag) {
        return Expand<typename decltype(tag)::type>(*reader, data);
      });
    }
    Require(expected.has_value() && expected->size() == upload->shape().bytes());
    CallTimings timings;
    const absl::StatusOr<Buffer> buffer = upload->Take(*context_, timings);
    Require(buffer.ok());
    if (!expected->empty()) {
      Require(std::memcmp(buffer->data(), expected->data(), expected->size()) == 0);
    }
  }

  testing::FakeDevice* device_ = nullptr;  // components_ owns the device
  std::unique_ptr<ServerComponents> components_;
  DeviceSlot* slot_ = nullptr;
  std::unique_ptr<ExecutionContext> context_;
};

// protobuf logs each string that is not UTF-8, and most inputs of this target contain such strings.
bool SilenceProtobuf() {
#if GOOGLE_PROTOBUF_VERSION < 4022000  // later versions have no log handler
  google::protobuf::SetLogHandler(nullptr);
#endif
  return true;
}

void ParseAndAssemble(const std::string& bytes, Steering* steering) {
  static auto* const assembler = new Assembler();
  static const bool silent = SilenceProtobuf();
  (void)silent;
  const auto message = StreamMessage::Parse(Sliced(bytes, steering));
  if (!message.ok()) return CheckRefusal(message.status());
  v1::FactorizeAndSolveHeader header;
  const absl::Status parsed = message->ParseHeader(&header);
  CheckAgainstProtobuf(bytes, *message, parsed.ok() ? &header : nullptr);
  if (!parsed.ok()) return CheckRefusal(parsed);
  assembler->Assemble(header.matrix(), *message, kDataField, steering);
  assembler->Assemble(header.rhs(), *message, kRhsDataField, steering);
}

}  // namespace
}  // namespace crout

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzedDataProvider provider(data, size);
  crout::Steering steering;  // consumes the end of the input
  steering.hold_uploads = provider.ConsumeBool();
  for (std::vector<size_t>* lengths : {&steering.slices, &steering.chunks}) {
    lengths->resize(3);
    for (size_t& length : *lengths) length = provider.ConsumeIntegralInRange<size_t>(1, 256);
  }
  crout::ParseAndAssemble(provider.ConsumeRemainingBytesAsString(), &steering);
  return 0;
}
