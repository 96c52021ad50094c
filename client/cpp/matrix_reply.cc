// SPDX-License-Identifier: Apache-2.0

#include "client/cpp/matrix_reply.h"

#include <limits>

namespace crout {
inline namespace api {
namespace internal {

absl::Status SolutionReceiver::OnHeader(const v1::DenseSpec& announced) {
  const auto spec = Read<DenseSpec>(announced);
  const auto element = static_cast<int64_t>(ElementSize(spec.dtype));
  if (spec.rows < 0 || spec.cols < 0 || element == 0 ||
      static_cast<__int128>(spec.rows) * spec.cols >
          std::numeric_limits<int64_t>::max() / element) {
    return absl::InternalError("the server announced an impossible matrix");
  }
  return Begin(spec, spec.rows * spec.cols * element);
}

absl::Status SolutionReceiver::Begin(const DenseSpec& spec, int64_t bytes) {
  if (begun_) return absl::InternalError("the server sent two headers");
  begun_ = true;
  missing_ = bytes;
  return sink_->Begin(spec);
}

absl::Status SolutionReceiver::OnData(absl::Span<const std::byte> bytes) {
  if (!begun_ || static_cast<int64_t>(bytes.size()) > missing_) {
    return absl::InternalError("the server sent more data than it announced");
  }
  missing_ -= static_cast<int64_t>(bytes.size());
  return sink_->Append(bytes);
}

absl::Status SolutionReceiver::Finish() const {
  if (!begun_ || missing_ != 0) {
    return absl::InternalError("the server sent less data than it announced");
  }
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace api
}  // namespace crout
