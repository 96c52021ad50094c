#include "server/rpc/core.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/scheduling/reason.h"

namespace crout {
namespace {

constexpr double kRetrySeconds = 1;

}  // namespace

size_t Limits::ReplyChunkBytes() const {
  constexpr size_t kLeast = size_t{4} << 10;  // below it messages cost more than what they carry
  return std::min(reply_chunk_bytes, std::max(kLeast, LargestMessage(transfer) / 2));
}

absl::StatusOr<Reservation> ServerCore::ChargeCall(size_t bytes) {
  auto charge = call_memory.TryReserve(bytes);
  if (charge) return *std::move(charge);
  return WithRetryAfter(
      WithReason(absl::ResourceExhaustedError(absl::StrCat(
                     "open calls hold the ", call_memory.limit() >> 10,
                     " KiB that the server has for them: try again when some have ended")),
                 kReasonMemoryExhausted),
      kRetrySeconds);
}

}  // namespace crout
