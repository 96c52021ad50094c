// What the calls that answer with a solution share.
#ifndef CROUT_SERVER_RPC_SOLVING_CALL_H_
#define CROUT_SERVER_RPC_SOLVING_CALL_H_

#include <memory>
#include <utility>

#include "server/rpc/data_stream.h"
#include "server/rpc/solve_step.h"
#include "server/rpc/upload_call.h"

namespace crout {

class SolvingCall : public UploadCall {
 protected:
  using UploadCall::UploadCall;

  // Answers with the shape, X and the result, and ends the call. `first` goes before them. Response
  // is SolveResponse or FactorizeAndSolveResponse.
  template <class Response>
  void SendSolution(const Solution& solution, v1::SolveResult result, Response first)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    *first.mutable_header()->mutable_solution() = EncodeDense(solution.shape);
    const auto tail = [this, result = std::move(result)](Response& response) {
      mutex_.AssertHeld();  // Messages are made where they are sent.
      *response.mutable_result() = result;
      *response.mutable_result()->mutable_timings() = crout::Encode(ReplyTimings());
    };
    StreamData(first, InFlight(solution.x), Response::kDataFieldNumber,
               core_.limits.ReplyChunkBytes(), tail, [this](Message message) {
                 mutex_.AssertHeld();
                 Send(std::move(message));
               });
    End(absl::OkStatus());
  }
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_SOLVING_CALL_H_
