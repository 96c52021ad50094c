// SPDX-License-Identifier: Apache-2.0

// Which factor a request is about, and how a new one is to be kept.
#ifndef CROUT_SERVER_RPC_CODEC_DECODE_CACHE_H_
#define CROUT_SERVER_RPC_CODEC_DECODE_CACHE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "crout/v1/factorization_service.pb.h"
#include "server/engine/cache/factor_cache.h"
#include "server/rpc/core.h"

namespace crout {

absl::StatusOr<InsertOptions> DecodeCacheOptions(const v1::CacheOptions& options,
                                                 const std::string& tenant, const Limits& limits);
absl::StatusOr<absl::Duration> DecodeLease(const google::protobuf::Duration& lease,
                                           absl::string_view field, const Limits& limits);

// INVALID_ARGUMENT for an empty handle; one that cannot be a handle is NOT_FOUND, as an unknown
// one.
absl::StatusOr<Handle> DecodeHandle(absl::string_view text);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_CODEC_DECODE_CACHE_H_
