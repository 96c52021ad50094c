// SPDX-License-Identifier: Apache-2.0

#include "server/engine/upload/matrix_upload.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <semaphore>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "kernels/execution_context.h"
#include "kernels/io/entry_reader.h"
#include "kernels/io/matrix_market_reader.h"
#include "kernels/io/sparse_block.h"
#include "kernels/scalar.h"
#include "kernels/sparse_view.h"
#include "kernels/util/clock.h"
#include "kernels/util/failpoint.h"
#include "kernels/util/size_class.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/stopwatch.h"
#include "kernels/util/strings.h"
#include "server/engine/error.h"

namespace crout {
namespace {

// Interval at which a wait for staging memory checks `stop`.
constexpr auto kStopPoll = std::chrono::milliseconds(50);
// Maximum number of bytes written between two checks of `stop`: about 1 ms of copying.
constexpr size_t kWrittenBetweenStops = size_t{4} << 20;

MatrixMarketLimits TextLimits(const Engine& engine, const PayloadSpec& spec) {
  MatrixMarketLimits limits;
  limits.max_rows = spec.max_order;
  limits.max_columns = spec.max_order;
  limits.complex = IsComplex(spec.shape.dtype);
  limits.build_value_map = spec.build_value_map;
  limits.max_peak_bytes = static_cast<int64_t>(engine.devices.host_budget().limit());
  return limits;
}

template <class T>
absl::Status Overflow(const std::string& field, int64_t row, int64_t col) {
  return BadField(field, absl::StrCat("the value at row ", row, ", column ", col,
                                      " (0-based) overflows ", ToAbsl(NameOf(kDTypeOf<T>))));
}

}  // namespace

absl::Status StagingTimeout() {
  return WithReason(absl::ResourceExhaustedError(
                        "the device's staging memory stayed in use for longer than the upload idle "
                        "timeout: try again later"),
                    kReasonMemoryExhausted);
}

MatrixUpload::MatrixUpload(Engine& engine, const PayloadSpec& spec, std::string field)
    : engine_(engine), field_(std::move(field)), shape_(spec.shape) {
  if (!spec.needs_parsing()) return;
  grant_ = std::make_shared<UploadGrant>(engine.cache, engine.devices.host_budget());
  if (spec.text) {
    reader_ =
        std::make_unique<MatrixMarketReader>(TextLimits(engine, spec), &engine.parsers, grant_);
  } else {
    reader_ = std::make_unique<EntryReader>(*spec.entries, spec.build_value_map, grant_);
  }
}

void MatrixUpload::SetTenant(std::string_view tenant) {
  tenant_ = std::string(tenant);
  if (!needs_parsing()) return;
  grant_->SetTenant(tenant);
  reader_->SetAccount(tenant);
}

absl::Status MatrixUpload::Open(DeviceSlot& slot) {
  const size_t bytes = DestinationBytes();
  if (bytes + extra_bytes_ == 0) return absl::OkStatus();
  if (keep_on_host_) {
    CROUT_ASSIGN_OR_RETURN(destination_, engine_.host_memory.Allocate(bytes));
    return absl::OkStatus();
  }
  if (keep_sparse_ && packed_ && slot.on_host()) {
    destination_ = std::move(packed_);  // The block is already in the memory of the host device.
  } else {
    CROUT_ASSIGN_OR_RETURN(destination_, slot.device->memory().Allocate(bytes + extra_bytes_));
    if (bytes == 0) return absl::OkStatus();
    CROUT_ASSIGN_OR_RETURN(uploader_,
                           slot.device->StartUpload({destination_.data() + offset_, bytes}));
  }
  const std::optional<ValueMapShape> map = map_shape();
  if (!map) return absl::OkStatus();
  CROUT_ASSIGN_OR_RETURN(map_destination_, slot.device->memory().Allocate(map->bytes()));
  CROUT_ASSIGN_OR_RETURN(map_uploader_,
                         slot.device->StartUpload({map_destination_.data(), map->bytes()}));
  return absl::OkStatus();
}

std::optional<ValueMapShape> MatrixUpload::map_shape() const {
  if (map_.empty()) return std::nullopt;
  ValueMapShape shape = map_.shape;
  if (!keep_sparse_) shape.elements = shape_.rows * shape_.cols;
  return shape;
}

size_t MatrixUpload::DestinationBytes() const {
  return keep_sparse_ ? SparseLayout(shape_.rows, *nnz_, shape_.dtype).bytes : shape_.bytes();
}

absl::StatusOr<size_t> MatrixUpload::Append(std::span<const std::byte> bytes,
                                            const std::function<void()>& on_ready,
                                            const SharedRegions::Region& region) {
  if (!needs_parsing()) return AppendDense(bytes, on_ready, region);
  if (region == nullptr) {
    CROUT_RETURN_IF_ERROR(AppendToReader(bytes));
    return bytes.size();
  }
  // The client may change the bytes between two reads of a parser.
  std::array<std::byte, kParsedPiece> copy;
  const size_t count = std::min(bytes.size(), copy.size());
  std::memcpy(copy.data(), bytes.data(), count);
  CROUT_RETURN_IF_ERROR(AppendToReader({copy.data(), count}));
  return count;
}

absl::StatusOr<size_t> MatrixUpload::AppendDense(std::span<const std::byte> bytes,
                                                 const std::function<void()>& on_ready,
                                                 const SharedRegions::Region& region) {
  if (bytes.size() > shape_.bytes() - received_) {
    return BadField(field_, absl::StrCat("more bytes than the ", shape_.bytes(),
                                         " that the header declares: send rows x cols elements"));
  }
  if (keep_on_host_) {
    std::memcpy(destination_.data() + received_, bytes.data(), bytes.size());
    received_ += bytes.size();
    return bytes.size();
  }
  CROUT_ASSIGN_OR_RETURN(const bool sent, Send(bytes, region));
  size_t taken = sent ? bytes.size() : 0;
  while (taken < bytes.size()) {
    const std::span<std::byte> block = uploader_->Reserve(on_ready);
    if (block.empty()) break;
    staging_awaited_since_.reset();
    const size_t count = std::min(block.size(), bytes.size() - taken);
    std::memcpy(block.data(), bytes.data() + taken, count);
    CROUT_RETURN_IF_ERROR(uploader_->Commit(count));
    taken += count;
  }
  if (taken < bytes.size() && !staging_awaited_since_) {
    staging_awaited_since_ = SteadyNow();
  }
  received_ += taken;
  return taken;
}

absl::StatusOr<bool> MatrixUpload::Send(std::span<const std::byte> bytes,
                                        const SharedRegions::Region& region) {
  if (bytes.empty() || region == nullptr || !region->is_registered()) return false;
  if (std::find(regions_.begin(), regions_.end(), region) == regions_.end()) {
    regions_.push_back(region);
  }
  return uploader_->Send(bytes);
}

absl::Status MatrixUpload::AppendToReader(std::span<const std::byte> bytes) {
  received_ += bytes.size();
  return WithField(reader_->Append({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
}

bool MatrixUpload::TryReserve(size_t bytes) {
  return !needs_parsing() || reader_->TryReserve(bytes);
}

absl::Status MatrixUpload::Reserve(size_t bytes) { return WithField(reader_->Reserve(bytes)); }

absl::Status MatrixUpload::WithField(const absl::Status& status) const {
  if (status.ok()) return status;
  absl::Status named = FieldError(status.code(), field_, status.message());
  status.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { named.SetPayload(url, payload); });
  return named;
}

absl::Status MatrixUpload::Pause() {
  return uploader_ == nullptr ? absl::OkStatus() : uploader_->Pause();
}

absl::Status MatrixUpload::Close() {
  if (needs_parsing() || received_ == shape_.bytes()) return absl::OkStatus();
  return BadField(field_, absl::StrCat(received_, " bytes arrived of the ", shape_.bytes(),
                                       " that the header declares: send rows x cols elements"));
}

absl::Status MatrixUpload::Parse(StopRequested stop) {
  CROUT_RETURN_IF_ERROR(Failpoint("upload.parse"));
  CROUT_RETURN_IF_ERROR(WithField(reader_->Finish(stop)));
  const MatrixMarketHeader header = *reader_->header();
  shape_.rows = header.rows;
  shape_.cols = header.columns;
  if (header.coordinate) {
    sparse_ = reader_->TakeSparse();
    map_ = reader_->TakeValueMap();
    entry_digest_ = map_.digest;
    nnz_ = sparse_.nonzeros();
  } else {
    dense_values_ = reader_->TakeDense();
    dense_imaginary_ = reader_->TakeDenseImaginary();
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<LeadingBlock>> MatrixUpload::InspectLeadingBlock(int64_t n) {
  if (!nnz_) return std::optional<LeadingBlock>();
  const size_t scratch = static_cast<size_t>(n) * sizeof(double);
  CROUT_RETURN_IF_ERROR(WithField(grant_->Take(scratch)));
  const LeadingBlock block = packed_ ? crout::InspectLeadingBlock(packed(), n)
                                     : crout::InspectLeadingBlock(sparse_, n, shape_.dtype);
  grant_->Give(scratch);
  if (!std::isfinite(block.norm_inf)) return std::optional<LeadingBlock>();
  return std::optional(block);
}

absl::Status MatrixUpload::Assemble(StopRequested stop) {
  absl::Status status;
  if (uploader_ == nullptr) {
    // Open() found nothing to send.
  } else if (keep_sparse_) {
    status = SendSparse(stop);
  } else {
    const bool coordinate = nnz_.has_value();
    status = DispatchDType(shape_.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      return coordinate ? AssembleSparse<T>(stop) : AssembleDense<T>(stop);
    });
  }
  if (status.ok() && map_uploader_ != nullptr) status = SendMap(stop);
  FreeParsed();
  return status;
}

absl::StatusOr<AnySparse> MatrixUpload::PackSparse(StopRequested stop) {
  if (packed_) return packed();
  if (!nnz_ || shape_.rows != shape_.cols) {
    return WithField(absl::InvalidArgumentError("the matrix must be sparse and square"));
  }
  CROUT_ASSIGN_OR_RETURN(const size_t bytes, SparseBytes(shape_.rows, *nnz_, shape_.dtype));
  CROUT_RETURN_IF_ERROR(WithField(grant_->Take(BlockBytes(bytes))));
  CROUT_ASSIGN_OR_RETURN(packed_, engine_.host_memory.Allocate(bytes));
  const size_t read = ResultBytes(sparse_, ValueMapData());
  absl::StatusOr<std::optional<EntryPlace>> beyond =
      WriteSparseBlock(std::exchange(sparse_, SparseMatrix()), shape_.dtype, packed_.data(), stop);
  grant_->Give(read);
  if (!beyond.ok() || beyond->has_value()) packed_.reset();  // It may be partly written.
  CROUT_RETURN_IF_ERROR(beyond.status());
  if (const std::optional<EntryPlace> place = *beyond) {
    return DispatchDType(shape_.dtype, [&](auto tag) {
      return Overflow<typename decltype(tag)::type>(field_, place->row, place->column);
    });
  }
  return packed();
}

MatrixUpload::EntryPositions MatrixUpload::entry_positions() const {
  if (!packed_) return {sparse_.column_start.data(), sparse_.row.data()};
  const auto view = packed().As<float>();  // The indices do not depend on the value type.
  return {view.column_start, view.row};
}

absl::Status MatrixUpload::SendMap(StopRequested stop) {
  CROUT_RETURN_IF_ERROR(keep_sparse_ ? CopyTo<int32_t>(*map_uploader_, map_.start, stop)
                                     : SendDenseStarts(stop));
  return CopyTo<uint32_t>(*map_uploader_, map_.source, stop);
}

absl::Status MatrixUpload::SendDenseStarts(StopRequested stop) {
  const EntryPositions at = entry_positions();
  int64_t column = 0;
  int64_t next = 0;  // entry
  const int64_t count = shape_.rows * shape_.cols + 1;
  return WriteTo<int32_t>(*map_uploader_, count, stop,
                          [&](int64_t offset, std::span<int32_t> block) {
                            for (size_t i = 0; i < block.size(); ++i) {
                              const int64_t element = offset + static_cast<int64_t>(i);
                              for (; next < *nnz_; ++next) {
                                while (next == at.column_start[column + 1]) ++column;
                                if (column * shape_.rows + at.row[next] >= element) break;
                              }
                              block[i] = map_.start[next];
                            }
                            return absl::OkStatus();
                          });
}

void MatrixUpload::FreeParsed() {
  sparse_ = {};
  packed_.reset();
  map_ = {};
  std::vector<double>().swap(dense_values_);  // an assignment would keep the memory
  std::vector<double>().swap(dense_imaginary_);
  grant_->Release();
}

template <class T, class Fill>
absl::Status MatrixUpload::WriteTo(Uploader& uploader, int64_t count, StopRequested stop,
                                   Fill fill) {
  for (int64_t done = 0; done < count;) {
    // Shared, because the callback may run after this function has stopped waiting.
    const auto ready = std::make_shared<std::binary_semaphore>(0);
    const std::span<std::byte> block = uploader.Reserve([ready] { ready->release(); });
    if (block.empty()) {
      Stopwatch watch;
      double awaited = 0;
      while (!ready->try_acquire_for(kStopPoll)) {
        CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
        awaited += watch.Lap();
        if (absl::Seconds(awaited) > engine_.limits.staging_timeout) return StagingTimeout();
      }
      continue;
    }
    CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
    const size_t most = std::min(block.size(), kWrittenBetweenStops) / sizeof(T);
    const size_t fit = std::min<size_t>(most, count - done);
    const std::span<T> elements(reinterpret_cast<T*>(block.data()), fit);
    CROUT_RETURN_IF_ERROR(fill(done, elements));
    CROUT_RETURN_IF_ERROR(uploader.Commit(elements.size_bytes()));
    done += static_cast<int64_t>(elements.size());
  }
  return absl::OkStatus();
}

template <class T>
absl::Status MatrixUpload::CopyTo(Uploader& uploader, std::span<const T> from, StopRequested stop) {
  return WriteTo<T>(uploader, std::ssize(from), stop, [&](int64_t offset, std::span<T> block) {
    std::copy_n(from.begin() + offset, block.size(), block.begin());
    return absl::OkStatus();
  });
}

absl::Status MatrixUpload::SendSparse(StopRequested stop) {
  CROUT_RETURN_IF_ERROR(PackSparse(stop).status());
  return CopyTo<std::byte>(*uploader_, {packed_.data(), packed_.size()}, stop);
}

template <class T>
absl::Status MatrixUpload::AssembleSparse(StopRequested stop) {
  const EntryPositions at = entry_positions();
  const T* const packed_values = packed_ ? packed().As<T>().value : nullptr;
  int64_t column = 0;
  int64_t next = 0;  // entry
  const int64_t count = shape_.rows * shape_.cols;
  return Write<T>(count, stop, [&](int64_t offset, std::span<T> block) -> absl::Status {
    std::fill(block.begin(), block.end(), T{0});
    const int64_t end = offset + static_cast<int64_t>(block.size());
    for (; next < *nnz_; ++next) {
      while (next == at.column_start[column + 1]) ++column;
      const int64_t position = column * shape_.rows + at.row[next];
      if (position >= end) break;
      const T value = packed_values != nullptr ? packed_values[next]
                                               : ConvertTo<T>(sparse_.Value<WideType<T>>(next));
      if (!IsFinite(value)) return Overflow<T>(field_, at.row[next], column);
      block[position - offset] = value;
    }
    return absl::OkStatus();
  });
}

template <class T>
absl::Status MatrixUpload::AssembleDense(StopRequested stop) {
  const int64_t count = shape_.rows * shape_.cols;
  return Write<T>(count, stop, [&](int64_t offset, std::span<T> block) -> absl::Status {
    for (size_t i = 0; i < block.size(); ++i) {
      const int64_t position = offset + static_cast<int64_t>(i);
      WideType<T> value = dense_values_[position];
      if constexpr (kIsComplex<T>) {
        if (!dense_imaginary_.empty()) value.imag(dense_imaginary_[position]);
      }
      block[i] = ConvertTo<T>(value);
      if (!IsFinite(block[i])) {
        return Overflow<T>(field_, position % shape_.rows, position / shape_.rows);
      }
    }
    return absl::OkStatus();
  });
}

absl::Status MatrixUpload::MoveToDevice(ExecutionContext& context) {
  keep_on_host_ = false;
  CROUT_ASSIGN_OR_RETURN(Buffer moved, context.device().memory().Allocate(destination_.size()));
  SyncOnExit sync(context);
  CROUT_RETURN_IF_ERROR(
      context.ops().CopyToDevice(destination_.data(), moved.data(), destination_.size()));
  CROUT_RETURN_IF_ERROR(context.Synchronize());
  sync.Dismiss();
  destination_ = std::move(moved);
  return absl::OkStatus();
}

absl::StatusOr<Buffer> MatrixUpload::Take(ExecutionContext& context, CallTimings& timings) {
  Stopwatch watch;
  if (keep_on_host_) CROUT_RETURN_IF_ERROR(MoveToDevice(context));
  if (uploader_ != nullptr) CROUT_RETURN_IF_ERROR(uploader_->Join(context));
  timings.host_to_device += watch.Lap();
  return std::move(destination_);
}

absl::StatusOr<Buffer> MatrixUpload::TakeMap(ExecutionContext& context, CallTimings& timings) {
  Stopwatch watch;
  if (map_uploader_ != nullptr) CROUT_RETURN_IF_ERROR(map_uploader_->Join(context));
  timings.host_to_device += watch.Lap();
  return std::move(map_destination_);
}

}  // namespace crout
