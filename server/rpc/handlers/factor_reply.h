// SPDX-License-Identifier: Apache-2.0

// Replies of the calls that make factors.
#ifndef CROUT_SERVER_RPC_HANDLERS_FACTOR_REPLY_H_
#define CROUT_SERVER_RPC_HANDLERS_FACTOR_REPLY_H_

#include <memory>
#include <utility>

#include "server/rpc/codec/encode.h"
#include "server/rpc/stream/stream_call.h"

namespace crout {

// Adds the timings of the call to a factor that its job made, and reports a poor factor.
inline void ObserveFactor(StreamCall& call, NewFactor& factor)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(call.mutex()) {
  factor.timings = call.ReplyTimings();
  call.core().observer.Quality(call.observed(), factor.factorization.summary);
}

// Returns the description of a factor for the reply. Records its method and, if it is cached, its
// handle and bytes.
inline v1::Factor EncodeFactor(StreamCall& call, const FactorInfo& info)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(call.mutex()) {
  call.observed().algorithm = info.summary.algorithm;
  if (info.handle != Handle()) {
    call.observed().SetHandle(info.handle.ToString());
    call.observed().factor_bytes = info.bytes;
  }
  return EncodeWithCounts(info);
}

// Sends the factor and, unless `figures` is null, the figures of the members of a batch. Ends the
// call.
template <class Response>
void EndWithFactor(StreamCall& call, const FactorInfo& info,
                   std::shared_ptr<const ReplyData> figures)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(call.mutex()) {
  Response response;
  *response.mutable_factor() = EncodeFactor(call, info);
  if (figures == nullptr) return call.SendAndEnd(std::move(response), absl::OkStatus());
  call.EndWithData(
      Response(), std::move(figures), [response](Response& last) { last.MergeFrom(response); },
      Response::kMemberDataFieldNumber);
}

}  // namespace crout

#endif  // CROUT_SERVER_RPC_HANDLERS_FACTOR_REPLY_H_
