// SPDX-License-Identifier: Apache-2.0

// Base of the calls that solve with a cached factor of one matrix or of a batch.
#ifndef CROUT_SERVER_RPC_HANDLERS_SOLVING_CALL_H_
#define CROUT_SERVER_RPC_HANDLERS_SOLVING_CALL_H_

#include <memory>
#include <optional>

#include "kernels/util/status_macros.h"
#include "kernels/util/stopwatch.h"
#include "server/rpc/stream/job_call.h"

namespace crout {

// Pins the factor, copies it back to its device if it is in host memory, and solves. `Step`
// (SolveStep or BatchSolveStep) receives the right-hand sides and produces a `Solution`. Derived
// calls implement Start() and Reply().
template <class Step, class Solution>
class SolvingCall : public JobCall<Solution, v1::PHASE_SOLVE> {
 protected:
  using JobCall<Solution, v1::PHASE_SOLVE>::JobCall;

  // Copies the factor to its device if necessary. Runs on a worker thread.
  absl::StatusOr<const Factorization*> Promote(ExecutionContext& context, CallTimings& timings) {
    Stopwatch watch;
    CROUT_ASSIGN_OR_RETURN(const Factorization* factor,
                           pin_->OnDevice(context, solve_->TakePromotion(), &promoted_));
    timings.host_to_device += watch.Lap();
    return factor;
  }

  void ReleaseResources() override {
    UploadCall::ReleaseResources();
    solve_.reset();
    pin_.reset();
  }

  // Constant from Start() to ReleaseResources().
  std::optional<FactorCache::Pin> pin_;
  std::unique_ptr<Step> solve_;
  bool promoted_ = false;  // Promote() copied the factor back to its device

 private:
  double PredictSeconds() final { return solve_->PredictSeconds(); }
  absl::StatusOr<Solution> Run(ExecutionContext& context, CallTimings& timings) final {
    CROUT_ASSIGN_OR_RETURN(const Factorization* factor, Promote(context, timings));
    return solve_->Run(
        context, *factor, [this] { return this->stop_requested(); }, timings);
  }
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_HANDLERS_SOLVING_CALL_H_
