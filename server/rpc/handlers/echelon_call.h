// SPDX-License-Identifier: Apache-2.0

// ReduceToEchelonForm: sends the reduced row echelon form of a matrix.
#ifndef CROUT_SERVER_RPC_HANDLERS_ECHELON_CALL_H_
#define CROUT_SERVER_RPC_HANDLERS_ECHELON_CALL_H_

#include <memory>

#include "server/engine/plan/echelon_step.h"
#include "server/rpc/stream/job_call.h"

namespace crout {

class EchelonCall final : public JobCall<ReducedMatrix, v1::PHASE_SOLVE> {
 public:
  EchelonCall(ServerCore& core, grpc::CallbackServerContext* context)
      : JobCall(core, context, Method::kReduceToEchelonForm,
                ProgressEvent<v1::ReduceToEchelonFormResponse>) {}

 private:
  absl::StatusOr<std::unique_ptr<Plan>> MakePlan(const StreamMessage& first) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Reply(ReducedMatrix reduced) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_HANDLERS_ECHELON_CALL_H_
