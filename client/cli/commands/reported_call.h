// SPDX-License-Identifier: Apache-2.0

// Progress, results and warnings of a call that may take long.
#ifndef CROUT_CLIENT_CLI_COMMANDS_REPORTED_CALL_H_
#define CROUT_CLIENT_CLI_COMMANDS_REPORTED_CALL_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "client/cli/exit_codes.h"
#include "client/cli/output/array_writer.h"
#include "client/cli/report/json.h"
#include "client/cli/report/progress_bar.h"
#include "client/cli/report/summary.h"
#include "client/cli/report/text.h"
#include "client/cli/session.h"
#include "crout/warnings.h"

namespace crout::cli {

// Calls send(options) with the session's call options and shows the progress bar.
template <class F>
auto WithProgressBar(const Session& session, F&& send) {
  ProgressBar bar(session.progress());
  CallOptions call = session.call();
  call.on_progress = [&](const ProgressUpdate& update) { bar.Update(update); };
  return std::forward<F>(send)(call);
}

// Prints a factor.
inline void PrintFactor(const Session& session, const FactorDescription& factor) {
  const Json json = ToJson(factor);
  session.Print({json, FormatObject(json), SummaryOf(factor), {factor.handle}});
}

// Prints the warnings of a result. An inaccurate result sets the exit code to kNotAccurate.
template <class Result>
void WarnOf(Session* session, const Result& result) {
  for (const std::string& text : WarningTexts(result)) session->Warn(text);
  if constexpr (requires { IsInaccurate(result); }) {
    if (IsInaccurate(result)) session->ExitWith(kNotAccurate);
  }
}

// Prints `result`, with summarize(result) as its summary, and the factor that its call stored in
// the cache. If the call failed, or its result cannot be written to `output`, warns about the
// factor (Session::WarnIfKept).
template <class Result, class F>
absl::Status ReportWithFactor(Session* session, const absl::StatusOr<Result>& result,
                              const FactorDescription& factor, ArrayFileSink* output,
                              F&& summarize) {
  absl::Status status = result.status();
  if (status.ok()) status = output->Close();
  if (!status.ok()) {
    session->WarnIfKept(factor);
    return status;
  }
  Json json = ToJson(*result);
  json["factor"] = ToJson(factor);
  session->Print({json, FormatObject(json), summarize(*result), {factor.handle}});
  WarnOf(session, factor);
  WarnOf(session, *result);
  return absl::OkStatus();
}

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_COMMANDS_REPORTED_CALL_H_
