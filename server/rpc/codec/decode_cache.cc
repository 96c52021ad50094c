// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/codec/decode_cache.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "kernels/util/status_macros.h"
#include "server/engine/error.h"
#include "server/rpc/codec/status.h"

namespace crout {
namespace {

constexpr size_t kMaxNameBytes = 128;

absl::Status CheckText(absl::string_view text, absl::string_view field) {
  if (text.size() <= kMaxNameBytes) return absl::OkStatus();
  return BadField(field, absl::StrCat(text.size(), " bytes; at most ", kMaxNameBytes));
}

}  // namespace

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
  if (text.empty()) return BadField("handle", "missing: set the handle that Factorize returned");
  if (const std::optional<Handle> handle = Handle::Parse({text.data(), text.size()}))
    return *handle;
  return WithReason(absl::NotFoundError("no factor has this handle: it is not of the form that "
                                        "Factorize returns (26 characters of base32)"),
                    kReasonHandleUnknown);
}

}  // namespace crout
