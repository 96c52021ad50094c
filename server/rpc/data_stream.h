// SPDX-License-Identifier: Apache-2.0

// A large reply in host memory, and how it goes out: as the `data` of consecutive messages.
#ifndef CROUT_SERVER_RPC_DATA_STREAM_H_
#define CROUT_SERVER_RPC_DATA_STREAM_H_

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>

#include "kernels/memory.h"
#include "server/engine/admission/memory_budget.h"
#include "server/rpc/codec/wire.h"

namespace crout {

// Bytes on their way to a client. Messages share it with gRPC, so that they stay charged until the
// last slice of them has left, however long after the call that is. Members are destroyed from the
// last: memory is free before the budget says so.
struct ReplyData {
  Reservation reservation;
  Buffer bytes;
};

// Passes to `send`, in order, functions that make the messages carrying all of `data`, whose field
// number in Response is `field`: the first message begins with `head`, the last ends with what
// `tail(response)` adds. An empty buffer gives one message. Nothing is copied.
template <class Response, class Tail, class Send>
void StreamData(const Response& head, std::shared_ptr<const ReplyData> data, int field,
                size_t chunk_bytes, Tail tail, Send send) {
  const size_t size = data->bytes.size();
  size_t offset = 0;
  do {
    const size_t count = std::min(chunk_bytes, size - offset);
    const bool last = offset + count == size;
    send([=, response = offset == 0 ? head : Response()]() mutable {
      if (last) tail(response);
      if (count == 0) return Serialize(response);
      return SerializeWithData(response, field, {data->bytes.data() + offset, count}, data);
    });
    offset += count;
  } while (offset < size);
}

}  // namespace crout

#endif  // CROUT_SERVER_RPC_DATA_STREAM_H_
