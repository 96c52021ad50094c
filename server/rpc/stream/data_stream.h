// SPDX-License-Identifier: Apache-2.0

// A large reply in host memory, sent as the `data` field of consecutive messages.
#ifndef CROUT_SERVER_RPC_STREAM_DATA_STREAM_H_
#define CROUT_SERVER_RPC_STREAM_DATA_STREAM_H_

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>

#include "server/engine/admission/job_memory.h"
#include "server/rpc/codec/wire.h"

namespace crout {

// Splits `data` into messages, and passes functions that build the messages to `send`, in order.
// The messages and gRPC share ownership of the data until gRPC has released the last slice. `field`
// is the number of the data field in Response. The first message starts with `head`;
// `tail(response)` completes the last one. An empty buffer gives one message. The data is not
// copied.
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

#endif  // CROUT_SERVER_RPC_STREAM_DATA_STREAM_H_
