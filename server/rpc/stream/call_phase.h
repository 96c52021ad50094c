// SPDX-License-Identifier: Apache-2.0

// The phases of a call.
#ifndef CROUT_SERVER_RPC_STREAM_CALL_PHASE_H_
#define CROUT_SERVER_RPC_STREAM_CALL_PHASE_H_

#include <array>
#include <cstdint>
#include <string_view>

namespace crout {

// | phase      | work in this phase                               | entered by                    |
// | ---------- | ------------------------------------------------ | ----------------------------- |
// | kHeader    | the request arrives, is read and decoded         | gRPC, which opens the call    |
// | kAdmission | memory is reserved; the call may wait for        | the reaction to the request   |
// |            | another call with the same request_id            |                               |
// | kPayload   | the payload arrives                              | the thread that reserved the  |
// |            |                                                  | memory                        |
// | kQueue     | text is parsed and assembled; the job is queued  | the thread that received the  |
// |            |                                                  | last byte                     |
// | kWork      | the job runs                                     | a worker of the device        |
// | kReply     | the answer is known; no more work is needed;     | the work, the client or the   |
// |            | messages sent before still go out                | daemon, at any time           |
// | kEnd       | a thread releases the call's resources; gRPC may | the thread that ended the     |
// |            | still send the reply                             | last work or entered kReply   |
//
// A call only moves forward, and skips phases that it does not need, such as a payload or a job. A
// call in rounds is the exception: after an answer it returns to kHeader, and the payload of the
// next round may arrive completely before that answer has been sent. The phase does not show
// whether the client is still connected: see CallBase::OutlivesClient().
enum class CallPhase : uint8_t { kHeader, kAdmission, kPayload, kQueue, kWork, kReply, kEnd };
inline constexpr std::array<std::string_view, 7> kCallPhaseNames = {
    "header", "admission", "payload", "queue", "work", "reply", "end"};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_STREAM_CALL_PHASE_H_
