// SPDX-License-Identifier: Apache-2.0

// One matrix on its way from the wire into the memory of a device.
#ifndef CROUT_SERVER_RPC_MATRIX_UPLOAD_H_
#define CROUT_SERVER_RPC_MATRIX_UPLOAD_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "kernels/io/leading_block.h"
#include "kernels/io/matrix_reader.h"
#include "kernels/sparse_view.h"
#include "kernels/util/clock.h"
#include "server/engine/call_timings.h"
#include "server/rpc/codec/decode_matrix.h"
#include "server/rpc/text_grant.h"

namespace crout {

// RESOURCE_EXHAUSTED: the end of an upload that no staging block became free for.
absl::Status StagingTimeout();

// Dense: Open, Append..., Close, Take. Its bytes go straight to the device.
// Parsed, as text and sparse matrices in binary are: Append..., Close, Parse, [KeepSparse], Open,
//        Assemble, Take. They are parsed while they arrive; what the device gets is made only when
//        its size is known and reserved.
// One thread at a time. Parse, Assemble and the destructor may block: not for RPC reactions.
class MatrixUpload {
 public:
  // `field`: the payload's path in the request, for messages.
  MatrixUpload(ServerCore& core, const PayloadSpec& spec, std::string field);

  // As PayloadSpec has it: before Parse() and after.
  bool needs_parsing() const { return reader_ != nullptr; }
  // Complete from the start (dense) or after Parse.
  const PackedMatrix& shape() const { return shape_; }
  const std::string& field() const { return field_; }
  size_t bytes_received() const { return received_; }
  // Whether all bytes of a dense payload are here; not known of others.
  bool full() const { return !needs_parsing() && received_ == shape_.bytes(); }
  // Of a payload that is parsed, before Parse(): its size as the sender claims it, where enough of
  // it has been read.
  std::optional<MatrixMarketHeader> declared() const { return reader_->header(); }
  // Stored positions of a sparse matrix; after Parse.
  std::optional<int64_t> nnz() const { return nnz_; }

  // Before Open(), of a dense payload: its bytes wait in host memory, which the caller has
  // reserved, until they are read there, as `held`, or taken.
  void HoldOnHost() { holds_ = true; }
  PackedMatrix held() const {
    PackedMatrix matrix = shape_;
    matrix.data = destination_.data();
    return matrix;
  }

  void FreeHeld() { destination_.reset(); }

  // Before Open(), of a dense payload: what is taken is a block of so many bytes, of which it is
  // the part from byte `offset` on, and the rest is undefined.
  void ArriveWithin(size_t bytes, size_t offset) {
    around_ = bytes - shape_.bytes();
    offset_ = offset;
  }

  // Which lines of the text, or entries, make up which element that the device gets; after Parse(),
  // and after KeepSparse() where that is called. Nothing where it was not asked for, where the
  // matrix is not sparse, and where it has more of them than a map may have.
  std::optional<ValueMapShape> map_shape() const;
  // SeriesResult.entry_digest, where there is a map; after Parse().
  uint64_t entry_digest() const { return entry_digest_; }

  // Allocates the destination, and the map's, on `slot`'s device, whose bytes the caller has
  // reserved.
  absl::Status Open(DeviceSlot& slot);

  // Charges what appending `bytes` bytes may take; nothing to do for dense payloads. What
  // inflating and parsing take is charged as they go. TryReserve is false where memory must be made
  // free first: then Reserve, which may block.
  bool TryReserve(size_t bytes);
  absl::Status Reserve(size_t bytes);

  // Takes bytes; fewer than given when the device's staging blocks are all in flight: then
  // `on_ready` is called once when the rest can be given again. INVALID_ARGUMENT for more bytes
  // than declared or malformed ones. What is parsed was reserved before.
  absl::StatusOr<size_t> Append(std::span<const std::byte> bytes,
                                const std::function<void()>& on_ready);

  // Since when Append has waited for staging memory; nothing while it does not.
  std::optional<std::chrono::steady_clock::time_point> staging_awaited_since() const {
    return staging_awaited_since_;
  }

  // Nothing more is at hand for now.
  absl::Status Pause();

  // No more bytes come: INVALID_ARGUMENT if a dense payload is short.
  absl::Status Close();

  // CANCELLED by `stop`, as every method with this parameter.
  absl::Status Parse(StopRequested stop);
  // Of a sparse matrix, after Parse(): its leading block of order n. None of other payloads, and
  // where a value overflows the type: Assemble() says so.
  absl::StatusOr<std::optional<LeadingBlock>> InspectLeadingBlock(int64_t n);
  // Of a sparse matrix with fewer than 2^31 entries, between Parse() and Open(): the device gets
  // the block of an AnySparse, and not the packed matrix.
  void KeepSparse() { keep_sparse_ = true; }
  // Makes the same block in host memory, which is charged, and out of which the matrix is read from
  // now on: between Parse() and Assemble(), which does it where it must. The block is there until
  // Open(). INVALID_ARGUMENT where a value overflows the type, or for another matrix.
  absl::StatusOr<AnySparse> PackSparse(StopRequested stop);

  // The analysis of it that is being made, as who makes it tells: since when, and how many of
  // kAnalysisSteps have ended. Nothing before one begins.
  struct AnalysisUnderWay {
    std::chrono::steady_clock::time_point since;
    int steps = 0;
  };
  const std::optional<AnalysisUnderWay>& analysis() const { return analysis_; }
  void BeginAnalysis() { analysis_ = {SteadyNow(), 0}; }
  void TellAnalysis(int steps) { analysis_->steps = steps; }

  // `stop` is asked while staging memory is awaited; true ends with CANCELLED. Awaited for longer
  // than Limits::transfer.idle_timeout, it ends with StagingTimeout().
  absl::Status Assemble(StopRequested stop);

  // The packed matrix, or the sparse one, in device memory, for work enqueued on `context` from now
  // on. Waits for what of the copy the receive did not hide, and adds that to `timings`.
  absl::StatusOr<Buffer> Take(ExecutionContext& context, CallTimings& timings);
  // The block of the ValueMap, likewise; empty where there is none.
  absl::StatusOr<Buffer> TakeMap(ExecutionContext& context, CallTimings& timings);

 private:
  absl::StatusOr<size_t> AppendDense(std::span<const std::byte> bytes,
                                     const std::function<void()>& on_ready);
  absl::Status AppendToReader(std::span<const std::byte> bytes);
  absl::Status MoveToDevice(ExecutionContext& context);
  absl::Status NamingField(const absl::Status& status) const;
  // Of what the device gets.
  size_t DestinationBytes() const;
  void FreeParsed();
  AnySparse packed() const { return {packed_.data(), shape_.dtype, shape_.rows, *nnz_}; }
  // Where the entries of a sparse matrix are, by columns.
  struct Places {
    const int64_t* column_start;
    const int32_t* row;
  };
  Places places() const;
  // The parsed matrix: sparse as it is, in full from sparse, and in full from an array.
  absl::Status SendSparse(StopRequested stop);
  template <class T>
  absl::Status AssembleSparse(StopRequested stop);
  template <class T>
  absl::Status AssembleDense(StopRequested stop);
  absl::Status SendMap(StopRequested stop);
  // Of an element in full: how many entries come before it.
  absl::Status SendDenseStarts(StopRequested stop);
  // Writes the next `count` elements of a destination, block by block: fill(offset from the first
  // of them, block).
  template <class T, class Fill>
  absl::Status WriteTo(Uploader& uploader, int64_t count, StopRequested stop, Fill fill);
  template <class T>
  absl::Status CopyTo(Uploader& uploader, std::span<const T> from, StopRequested stop);
  template <class T, class Fill>
  absl::Status Write(int64_t count, StopRequested stop, Fill fill) {
    return WriteTo<T>(*uploader_, count, stop, fill);
  }

  ServerCore& core_;
  const std::string field_;
  PackedMatrix shape_;
  size_t received_ = 0;
  std::optional<std::chrono::steady_clock::time_point> staging_awaited_since_;

  Buffer destination_;
  std::unique_ptr<Uploader> uploader_;  // null while closed, and for an empty matrix
  Buffer map_destination_;
  std::unique_ptr<Uploader> map_uploader_;  // null where there is no map

  // Of what is parsed; the grant is charged for the reader and for what it made, and goes after
  // both.
  std::shared_ptr<TextGrant> grant_;
  std::unique_ptr<MatrixReader> reader_;
  SparseMatrix sparse_;  // until there is `packed_`
  Buffer packed_;
  LineMap map_;
  uint64_t entry_digest_ = 0;
  std::vector<double> dense_values_;
  std::vector<double> dense_imaginary_;  // of complex values, else empty
  std::optional<int64_t> nnz_;
  std::optional<AnalysisUnderWay> analysis_;
  bool keep_sparse_ = false;
  bool holds_ = false;
  size_t around_ = 0;  // bytes of the destination before and behind the payload
  size_t offset_ = 0;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_MATRIX_UPLOAD_H_
