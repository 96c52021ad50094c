#include "server/rpc/core.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/scheduling/reason.h"

namespace crout {
namespace {

constexpr double kRetrySeconds = 1;

}  // namespace

absl::StatusOr<Reservation> ServerCore::ChargeCall() {
  auto charge = call_memory.TryReserve(kCallBytes);
  if (charge) return *std::move(charge);
  return WithRetryAfter(
      WithReason(absl::ResourceExhaustedError(absl::StrCat(
                     "the server has ", call_memory.limit() / kCallBytes, " calls open already")),
                 kReasonMemoryExhausted),
      kRetrySeconds);
}

}  // namespace crout
