// SPDX-License-Identifier: Apache-2.0

// Reports calls to the metrics, the log, the audit and the traces.
#ifndef CROUT_SERVER_OBSERVABILITY_CALLS_CALL_OBSERVER_H_
#define CROUT_SERVER_OBSERVABILITY_CALLS_CALL_OBSERVER_H_

#include <string_view>

#include "kernels/echelon_reducer.h"
#include "kernels/factorization.h"
#include "kernels/jobs/schur.h"
#include "server/observability/calls/call_log.h"
#include "server/observability/calls/observed_call.h"
#include "server/observability/metrics/metrics.h"
#include "server/observability/status/recent_work.h"
#include "server/observability/trace/trace_exporter.h"

namespace crout {

// Thread-safe.
class CallObserver {
 public:
  // The references outlive the observer, and so does `traces`; null if spans are not exported.
  CallObserver(const CallLogOptions& log, Metrics& metrics, RecentWork& recent_work,
               TraceExporter* traces)
      : log_(log), metrics_(metrics), recent_work_(recent_work), traces_(traces) {}

  // Count and log a factor or a Schur complement about which the reply warns. Have no effect on
  // others.
  void Quality(const ObservedCall& call, const FactorSummary& factor);
  void Complement(const ObservedCall& call, const FactorSummary& leading,
                  const SchurSummary& complement);
  // Logs an echelon form with a doubtful rank.
  void PoorEchelonForm(const ObservedCall& call, const EchelonForm& form);
  // Logs a job that has run for `seconds`, far longer than predicted, and runs on.
  void OverdueJob(const ObservedCall& call, std::string_view device, double seconds,
                  double predicted_seconds);

  // Ends the current step: reports its duration and phases, and logs it if it was slow.
  void EndStep(ObservedCall& call);
  // Reports a call that has ended. Counts the request and any rejection; reports the duration,
  // phases and spans, except those of steps that have ended; writes the call log and the audit.
  // Spans are recorded only if the server exports them and the caller samples this trace.
  void End(const ObservedCall& call);

  // Whether to log another event that any client can cause (CallLog).
  bool AdmitEvent() { return log_.AdmitEvent(); }
  const RecentWork& recent_work() const { return recent_work_; }

 private:
  void ObserveWork(const ObservedCall& call, double seconds);

  CallLog log_;
  Metrics& metrics_;
  RecentWork& recent_work_;
  TraceExporter* const traces_;
};

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_CALLS_CALL_OBSERVER_H_
