// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/core.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/util/strings.h"
#include "server/engine/error.h"

namespace crout {
namespace {

absl::Status Exhausted(std::string_view message) {
  constexpr double kRetrySeconds = 1;
  return WithRetryAfter(
      WithReason(absl::ResourceExhaustedError(ToAbsl(message)), kReasonMemoryExhausted),
      kRetrySeconds);
}

}  // namespace

size_t Limits::ReplyChunkBytes() const {
  constexpr size_t kMinMessageBytes = size_t{4}
                                      << 10;  // a smaller message costs more than its payload
  return std::min(reply_chunk_bytes, std::max(kMinMessageBytes, LargestMessage(transfer) / 2));
}

absl::StatusOr<PeerShares::Charge> ServerCore::ChargeCall(std::string_view peer, size_t bytes,
                                                          std::weak_ptr<PeerShares::Holder> call) {
  auto charge = call_shares.TryCharge(peer, bytes, std::move(call));
  if (charge) return *std::move(charge);
  return Exhausted(absl::StrCat("open calls use all ", call_memory.limit() >> 10,
                                " KiB of the server's memory for calls: retry when some have "
                                "ended"));
}

absl::Status ServerCore::PreemptedStatus() {
  return Exhausted(
      "the call was ended to admit a call of another client: this client's open calls used more "
      "than a quarter of the memory for calls. Keep fewer calls open, and retry");
}

}  // namespace crout
