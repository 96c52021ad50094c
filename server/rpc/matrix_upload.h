// One matrix on its way from the wire into the memory of a device.
#ifndef CROUT_SERVER_RPC_MATRIX_UPLOAD_H_
#define CROUT_SERVER_RPC_MATRIX_UPLOAD_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "kernels/io/matrix_market_reader.h"
#include "server/rpc/codec.h"

namespace crout {

// Dense: Open, Append..., Close, Take. Its bytes go straight to the device.
// Text:  Append..., Close, Parse, Open, Assemble, Take. It is parsed while it arrives; the dense
//        form is made only when its size is known and reserved.
// One thread at a time. Parse, Assemble and the destructor may block: not for RPC reactions.
class MatrixUpload {
 public:
  // `field`: the payload's path in the request, for messages.
  MatrixUpload(ServerCore& core, const PayloadSpec& spec, std::string field);

  bool text() const { return reader_ != nullptr; }
  // Complete from the start (dense) or after Parse (text).
  const PackedMatrix& shape() const { return shape_; }
  const std::string& field() const { return field_; }
  size_t bytes_received() const { return received_; }
  // Stored positions of a coordinate text; after Parse.
  std::optional<int64_t> nnz() const { return nnz_; }

  // Allocates the destination on `slot`'s device, whose bytes the caller has reserved.
  absl::Status Open(DeviceSlot& slot);

  // Charges what `bytes` more bytes of text may take; nothing to do for dense payloads.
  // TryReserve is false where memory must be made free first: then Reserve, which may block.
  bool TryReserve(size_t bytes);
  absl::Status Reserve(size_t bytes);

  // Takes bytes; fewer than given when the device's staging blocks are all in flight: then
  // `on_ready` is called once when the rest can be given again. INVALID_ARGUMENT for more bytes
  // than declared or malformed text. Text was reserved before.
  absl::StatusOr<size_t> Append(std::span<const std::byte> bytes,
                                const std::function<void()>& on_ready);

  // Nothing more is at hand for now.
  absl::Status Pause();

  // No more bytes come: INVALID_ARGUMENT if a dense payload is short.
  absl::Status Close();

  absl::Status Parse();
  // `stop` is asked while staging memory is awaited; true ends with CANCELLED.
  absl::Status Assemble(StopRequested stop);

  // The packed matrix in device memory, for work enqueued on `context` from now on.
  absl::StatusOr<Buffer> Take(ExecutionContext& context);

 private:
  absl::StatusOr<size_t> AppendDense(std::span<const std::byte> bytes,
                                     const std::function<void()>& on_ready);
  absl::Status AppendText(std::span<const std::byte> bytes);
  absl::Status NamingField(const absl::Status& status) const;
  absl::Status HoldText(size_t wanted);
  // Bytes to be held once `bytes` more have come.
  size_t TextBytes(size_t bytes) const;
  template <class T>
  absl::Status AssembleSparse(StopRequested stop);
  template <class T>
  absl::Status AssembleDense(StopRequested stop);
  // Fills the whole destination, block by block: fill(offset in elements, block).
  template <class T, class Fill>
  absl::Status Write(StopRequested stop, Fill fill);

  ServerCore& core_;
  const std::string field_;
  PackedMatrix shape_;
  size_t received_ = 0;

  Buffer destination_;
  std::unique_ptr<Uploader> uploader_;  // null while closed, and for an empty matrix

  std::unique_ptr<MatrixMarketReader> reader_;
  Reservation text_reservation_;
  SparseMatrix sparse_;
  std::vector<double> dense_values_;
  std::optional<int64_t> nnz_;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_MATRIX_UPLOAD_H_
