// SPDX-License-Identifier: Apache-2.0

// A series of systems A_t X_t = B_t whose matrix changes from step to step, over one stream.
//
//   auto client = crout::Client::Connect({.server = "127.0.0.1:50051"});
//   if (!client.ok()) return client.status();
//   crout::Series series(*std::move(client));
//   for (...) {
//     crout::SpanSink x(absl::MakeSpan(solution));
//     auto step = series.Step(crout::MatrixSource::Dense(a, n, n),
//                             crout::MatrixSource::Dense(b, n, 1), &x);
//     if (!step.ok()) return step.status();
//     if (!step->result.accurate) ...
//   }
//
// Errors are those of SolveSeries (proto/crout/v1) and of crout/client.h.
//
// Thread safety: one thread at a time may use a series. Another thread may cancel a step through
// call.cancellation.
#ifndef CROUT_CROUT_SERIES_H_
#define CROUT_CROUT_SERIES_H_

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "crout/client.h"
#include "crout/matrix_change.h"
#include "crout/matrix_sink.h"
#include "crout/matrix_source.h"
#include "crout/options.h"
#include "crout/results.h"

namespace crout {
inline namespace api {

// Result of one step, without X.
struct SeriesStep {
  // Accuracy of X, the strategy and its cost. If `solved` is false, the matrix is singular and
  // there is no X.
  SeriesResult result;
  // The factor that this step made, if any. For a singular matrix it has no handle, and info is the
  // 1-based index of the zero pivot; the previous factor then stays.
  std::optional<FactorDescription> made;
};

// Move-only. The first step opens the stream. A failed step ends the stream, but not the series:
// the next step opens a new stream, which continues with the current factor, if there is one. Steps
// are not resent automatically.
class Series {
 public:
  // options.handle may name a factor to start with, for instance to resume an interrupted series.
  // call.timeout limits each step (DEADLINE_EXCEEDED). call.cancellation must outlive the series.
  // The first step reports invalid arguments.
  explicit Series(std::shared_ptr<Client> client, SeriesOptions options = {},
                  CallOptions call = {});

  Series(Series&& other) noexcept;
  Series& operator=(Series&& other) noexcept;  // Closes the series that was held.
  // Calls Close(): waits at most five seconds for the end of the stream, and at most five for the
  // release of the factor.
  ~Series();

  // Solves op(A) X = B, where `matrix` is A and `rhs` is a dense B. X goes to `x` as in
  // Client::Solve. A singular matrix is not an error; nothing is then written to `x`. On return the
  // series no longer refers to the caller's memory. `x0` is an initial guess: dense, with the shape
  // and type of X; null for the solution of the previous step.
  absl::StatusOr<SeriesStep> Step(const MatrixSource& matrix, const MatrixSource& rhs,
                                  MatrixSink* x, const MatrixSource* x0 = nullptr);
  // Solves with the matrix of the previous step or, in the first step, of the factor to start with.
  // FAILED_PRECONDITION (Reason: MATRIX_GONE) if the server no longer has that matrix:
  // repeat the step with its matrix. A failed step always loses the matrix.
  absl::StatusOr<SeriesStep> Step(const MatrixSource& rhs, MatrixSink* x,
                                  const MatrixSource* x0 = nullptr);
  // Solves with the matrix of the previous step changed by `change`. Errors as above.
  absl::StatusOr<SeriesStep> Step(const MatrixChange& change, const MatrixSource& rhs,
                                  MatrixSink* x, const MatrixSource* x0 = nullptr);

  // The last factor that the series made. Before the first, only its handle is set: the handle of
  // the factor to start with, or "". Empty after Close. Other calls may use the handle, which does
  // not change once it is set.
  const FactorDescription& factor() const;
  // Close then leaves the series' factor on the server until its lease ends.
  void KeepFactor();

  // Ends the stream and drops the factor that the series made; a factor to start with stays.
  // Returns the status of the release; the steps have reported errors of the stream. Even on
  // failure the object is then in the moved-from state: every use is FAILED_PRECONDITION.
  absl::Status Close();

 private:
  class Run;

  std::unique_ptr<Run> run_;  // null: closed or moved from
};

}  // namespace api
}  // namespace crout

#endif  // CROUT_CROUT_SERIES_H_
