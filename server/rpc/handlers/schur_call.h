// SPDX-License-Identifier: Apache-2.0

// ComputeSchurComplement: factors the leading block A11, caches its factor if A is dense, and sends
// the Schur complement.
#ifndef CROUT_SERVER_RPC_HANDLERS_SCHUR_CALL_H_
#define CROUT_SERVER_RPC_HANDLERS_SCHUR_CALL_H_

#include <memory>

#include "server/engine/plan/schur_step.h"
#include "server/rpc/stream/job_call.h"

namespace crout {

class SchurCall final : public JobCall<FactorAndComplement> {
 public:
  SchurCall(ServerCore& core, grpc::CallbackServerContext* context)
      : JobCall(core, context, Method::kComputeSchurComplement,
                ProgressEvent<v1::ComputeSchurComplementResponse>) {}

 private:
  absl::StatusOr<std::unique_ptr<Plan>> MakePlan(const StreamMessage& first) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Reply(FactorAndComplement answer) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Inserts the factor into the cache and returns its description. Unless `keep` is set, the factor
  // is dropped, and only described.
  v1::ComputeSchurComplementResponse Store(NewFactor factor, bool keep)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  InsertOptions insert_;  // constant after MakePlan()
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_HANDLERS_SCHUR_CALL_H_
