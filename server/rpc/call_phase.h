// SPDX-License-Identifier: Apache-2.0

// How far a call is.
#ifndef CROUT_SERVER_RPC_CALL_PHASE_H_
#define CROUT_SERVER_RPC_CALL_PHASE_H_

#include <array>
#include <cstdint>
#include <string_view>

namespace crout {

// | phase      | what happens                                      | who begins it                |
// | ---------- | ------------------------------------------------- | ---------------------------- |
// | kHeader    | the request is awaited, read and decoded          | gRPC, which opened the call  |
// | kAdmission | memory is made free; a request_id may be awaited  | the reaction to the request  |
// | kPayload   | bytes arrive and go where they belong             | who got the memory           |
// | kQueue     | text is parsed and assembled; the job waits       | who took in the last byte    |
// | kWork      | the job runs                                      | a worker of the device       |
// | kReply     | the answer is known: nothing is done for it, or   | anybody, at any time: the    |
// |            | wanted, any more; what was sent still goes out    | work, the client, the daemon |
// | kEnd       | what the call held was given to a thread that     | who ended the last piece of  |
// |            | frees it; gRPC may still have some of the reply   | work, or came to kReply      |
//
// Only forward, but that a call in rounds goes back to kHeader when one is answered; the next may
// be in kPayload with all of its bytes, until that answer is gone. Calls skip what they do not
// have: a payload, a job. Whether the client is still there is another matter: see
// CallBase::OutlivesClient().
enum class CallPhase : uint8_t { kHeader, kAdmission, kPayload, kQueue, kWork, kReply, kEnd };
inline constexpr std::array<std::string_view, 7> kCallPhaseNames = {
    "header", "admission", "payload", "queue", "work", "reply", "end"};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_CALL_PHASE_H_
