// SPDX-License-Identifier: Apache-2.0

// Receives one matrix and writes it to the memory of a device.
#ifndef CROUT_SERVER_ENGINE_UPLOAD_MATRIX_UPLOAD_H_
#define CROUT_SERVER_ENGINE_UPLOAD_MATRIX_UPLOAD_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "kernels/io/leading_block.h"
#include "kernels/io/matrix_reader.h"
#include "kernels/sparse_view.h"
#include "kernels/util/clock.h"
#include "server/engine/request.h"
#include "server/engine/upload/payload_spec.h"
#include "server/engine/upload/shared_region.h"
#include "server/engine/upload/upload_grant.h"

namespace crout {

// The RESOURCE_EXHAUSTED status of an upload that waited too long for a free staging block.
absl::Status StagingTimeout();

// Order of calls:
// - Dense payload: Open, Append..., Close, Take. The bytes go straight to the device.
// - Parsed payload (text, or a sparse matrix in binary): Append..., Close, Parse, [KeepSparse],
//   Open, Assemble, Take. It is parsed while it arrives. The device data is assembled after its
//   size is known and reserved.
//
// Not thread-safe. Parse, Assemble and the destructor may block: do not call them on a
// thread of the transport.
class MatrixUpload {
 public:
  // `field` is the payload's path in the request, for error messages.
  MatrixUpload(Engine& engine, const PayloadSpec& spec, std::string field);

  // Sets the tenant for which the call evicts factors and parses. Call it before the first byte
  // arrives.
  void SetTenant(std::string_view tenant);
  const std::string& tenant() const { return tenant_; }

  // Returns true if the payload is parsed (PayloadSpec::needs_parsing()). Constant.
  bool needs_parsing() const { return reader_ != nullptr; }
  // The shape is complete from the start for a dense payload, and after Parse() for a parsed one.
  const PackedMatrix& shape() const { return shape_; }
  const std::string& field() const { return field_; }
  size_t bytes_received() const { return received_; }
  // Returns true if all bytes of a dense payload have arrived. Always false for a parsed payload.
  bool full() const { return !needs_parsing() && received_ == shape_.bytes(); }
  // Returns the size that a parsed payload declares, or nullopt until enough of it has been read.
  // Requires needs_parsing(). Call it before Parse().
  std::optional<MatrixMarketHeader> declared() const { return reader_->header(); }
  // Returns the number of stored entries of a sparse matrix after Parse(); else nullopt.
  std::optional<int64_t> nnz() const { return nnz_; }

  // Keeps a dense payload in host memory until Take(). The caller must have reserved that memory,
  // and host_matrix() gives access to it. Call it before Open().
  void KeepOnHost() { keep_on_host_ = true; }
  PackedMatrix host_matrix() const {
    PackedMatrix matrix = shape_;
    matrix.data = destination_.data();
    return matrix;
  }

  void FreeHostMatrix() { destination_.reset(); }

  // Places a dense payload at byte `offset` of a block of `bytes` bytes, which Take() returns. The
  // other bytes are undefined. Call it before Open().
  void PlaceInBlock(size_t bytes, size_t offset) {
    extra_bytes_ = bytes - shape_.bytes();
    offset_ = offset;
  }

  // Returns the shape of the map from the lines of the text, or the entries, to the elements on the
  // device. Call it after Parse(), and after KeepSparse() if that is called. Returns nullopt if no
  // map was requested, the matrix is not sparse, or it exceeds the size limit of a map.
  std::optional<ValueMapShape> map_shape() const;
  // Returns the value for SeriesResult.entry_digest after Parse(); 0 without a map.
  uint64_t entry_digest() const { return entry_digest_; }

  // Allocates the destinations of the matrix and the map on the device of `slot`. The caller must
  // have reserved their bytes.
  absl::Status Open(DeviceSlot& slot);

  // Charges the host memory that appending `bytes` bytes may need. Inflating and parsing are
  // charged as they proceed. TryReserve() returns false if memory must be freed first. Then call
  // Reserve(), which may block and returns RESOURCE_EXHAUSTED if there is too little memory. A
  // dense payload needs no charge: TryReserve() returns true.
  bool TryReserve(size_t bytes);
  absl::Status Reserve(size_t bytes);

  // Largest number of bytes in shared memory for one TryReserve() and Append().
  size_t max_shared_bytes() const { return needs_parsing() ? kParsedPiece : kDensePiece; }

  // Appends bytes, which are in `region` if it is not null, and returns how many it accepted. It
  // accepts fewer than given if all staging blocks of the device are in flight. `on_ready` is then
  // called once, from any thread, when more can be appended. Returns INVALID_ARGUMENT for malformed
  // bytes or more bytes than declared. For a parsed payload, reserve the bytes first.
  absl::StatusOr<size_t> Append(std::span<const std::byte> bytes,
                                const std::function<void()>& on_ready,
                                const SharedRegions::Region& region = nullptr);

  // Returns the time at which the current wait of Append() for staging memory began; nullopt if it
  // does not wait.
  std::optional<std::chrono::steady_clock::time_point> staging_awaited_since() const {
    return staging_awaited_since_;
  }

  // Releases staging blocks that the device needs for other uploads. Call it when no more bytes are
  // available for now.
  absl::Status Pause();

  // Ends the payload. Returns INVALID_ARGUMENT if a dense payload is too short.
  absl::Status Close();

  // Completes the parsing. Every method with a `stop` parameter returns CANCELLED when `stop`
  // returns true.
  absl::Status Parse(StopRequested stop);
  // Inspects the leading block of order n of a sparse matrix, after Parse(). Returns nullopt for
  // other payloads, and if a value overflows the type: Assemble() reports that error.
  absl::StatusOr<std::optional<LeadingBlock>> InspectLeadingBlock(int64_t n);
  // Sends a sparse matrix to the device as the block of an AnySparse, not as a dense matrix. It
  // must have fewer than 2^31 entries. Call it between Parse() and Open().
  void KeepSparse() { keep_sparse_ = true; }
  // Builds the block of the AnySparse in charged host memory, in place of the parsed entries. Call
  // it between Parse() and Assemble(); Assemble() calls it if necessary. The result is valid until
  // Open(). Returns INVALID_ARGUMENT if a value overflows the type or the matrix is not a square
  // sparse one.
  absl::StatusOr<AnySparse> PackSparse(StopRequested stop);

  // Progress of the analysis of this matrix, as reported by the owner of the upload: the start
  // time, and how many of kAnalysisSteps have ended. nullopt before an analysis begins.
  struct AnalysisProgress {
    std::chrono::steady_clock::time_point since;
    int steps = 0;
  };
  const std::optional<AnalysisProgress>& analysis() const { return analysis_; }
  void BeginAnalysis() { analysis_ = {SteadyNow(), 0}; }
  void ReportAnalysis(int steps) { analysis_->steps = steps; }

  // Writes the parsed matrix and the map to the device, then frees the parsed data. Checks `stop`
  // also while it waits for staging memory. Returns StagingTimeout() if the wait exceeds
  // EngineLimits::staging_timeout.
  absl::Status Assemble(StopRequested stop);

  // Returns the packed or sparse matrix in device memory, for work enqueued on `context` from now
  // on. Waits for the rest of the copy and adds the waiting time to `timings`.
  absl::StatusOr<Buffer> Take(ExecutionContext& context, CallTimings& timings);
  // Returns the block of the ValueMap in the same way. It is empty without a map.
  absl::StatusOr<Buffer> TakeMap(ExecutionContext& context, CallTimings& timings);

 private:
  // Parsed bytes of shared memory are copied to the stack first.
  static constexpr size_t kParsedPiece = size_t{64} << 10;
  static constexpr size_t kDensePiece = size_t{8} << 20;

  absl::StatusOr<size_t> AppendDense(std::span<const std::byte> bytes,
                                     const std::function<void()>& on_ready,
                                     const SharedRegions::Region& region);
  // Enqueues the copy of the bytes from registered memory. Returns false, without an effect, if
  // they must be staged.
  absl::StatusOr<bool> Send(std::span<const std::byte> bytes, const SharedRegions::Region& region);
  absl::Status AppendToReader(std::span<const std::byte> bytes);
  absl::Status MoveToDevice(ExecutionContext& context);
  // Adds the field of the payload to an error.
  absl::Status WithField(const absl::Status& status) const;
  // Returns the bytes of the matrix on the device.
  size_t DestinationBytes() const;
  void FreeParsed();
  AnySparse packed() const { return {packed_.data(), shape_.dtype, shape_.rows, *nnz_}; }
  // Positions of the entries of a sparse matrix, by columns.
  struct EntryPositions {
    const int64_t* column_start;
    const int32_t* row;
  };
  EntryPositions entry_positions() const;
  // Write the parsed matrix: as a sparse block, as dense from a sparse matrix, and as dense from an
  // array.
  absl::Status SendSparse(StopRequested stop);
  template <class T>
  absl::Status AssembleSparse(StopRequested stop);
  template <class T>
  absl::Status AssembleDense(StopRequested stop);
  absl::Status SendMap(StopRequested stop);
  // Writes the map's start offsets when the sparse matrix becomes dense: one offset per dense
  // element.
  absl::Status SendDenseStarts(StopRequested stop);
  // Writes the next `count` elements of a destination block by block with fill(offset, block),
  // where `offset` counts from the first of these elements.
  template <class T, class Fill>
  absl::Status WriteTo(Uploader& uploader, int64_t count, StopRequested stop, Fill fill);
  template <class T>
  absl::Status CopyTo(Uploader& uploader, std::span<const T> from, StopRequested stop);
  template <class T, class Fill>
  absl::Status Write(int64_t count, StopRequested stop, Fill fill) {
    return WriteTo<T>(*uploader_, count, stop, fill);
  }

  Engine& engine_;
  const std::string field_;
  std::string tenant_;
  PackedMatrix shape_;
  size_t received_ = 0;
  std::optional<std::chrono::steady_clock::time_point> staging_awaited_since_;

  Buffer destination_;
  std::vector<SharedRegions::Region> regions_;  // the sources of copies by uploader_
  std::unique_ptr<Uploader> uploader_;  // null before Open() and if Open() had nothing to upload
  Buffer map_destination_;
  std::unique_ptr<Uploader> map_uploader_;  // null without a map

  // Members of a parsed payload. The grant is charged for the reader and its results and must
  // outlive them.
  std::shared_ptr<UploadGrant> grant_;
  std::unique_ptr<MatrixReader> reader_;
  SparseMatrix sparse_;  // empty once `packed_` is set
  Buffer packed_;
  ValueMapData map_;
  uint64_t entry_digest_ = 0;
  std::vector<double> dense_values_;
  std::vector<double> dense_imaginary_;  // imaginary parts of complex values, else empty
  std::optional<int64_t> nnz_;
  std::optional<AnalysisProgress> analysis_;
  bool keep_sparse_ = false;
  bool keep_on_host_ = false;
  size_t extra_bytes_ = 0;  // bytes of the destination outside the payload
  size_t offset_ = 0;
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_UPLOAD_MATRIX_UPLOAD_H_
