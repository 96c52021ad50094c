// SPDX-License-Identifier: Apache-2.0

// A series of systems A_t X_t = B_t whose matrix changes from step to step, over one stream.
//
//   using namespace crout::client;
//   auto client = Client::Connect({.server = "127.0.0.1:50051"});
//   if (!client.ok()) return client.status();
//   crout::Series series(*std::move(client));
//   for (...) {
//     SpanSink x(absl::MakeSpan(solution));
//     auto step = series.Step(MatrixSource::Dense(a, n, n), MatrixSource::Dense(b, n, 1), &x);
//     if (!step.ok()) return step.status();
//     if (!step->result.accurate()) ...
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
#include "crout/v1/factor.pb.h"
#include "crout/v1/factorization_service.pb.h"

namespace crout {

// Result of one step, without X.
struct SeriesStep {
  // Accuracy of X, the strategy and its cost. If `solved` is false, the matrix is singular and
  // there is no X.
  v1::SeriesResult result;
  // The factor that this step made, if any. For a singular matrix it has no handle, and info is the
  // 1-based index of the zero pivot; the previous factor then stays.
  std::optional<v1::Factor> made;
};

// Move-only. The first step opens the stream. A failed step ends the stream, but not the series:
// the next step opens a new stream, which continues with the current factor, if there is one. Steps
// are not resent automatically.
class Series {
 public:
  // `header` gives the strategy, the accuracy, the options of new factors, and lease and name of
  // the factor; its matrix, change, rhs and x0 are ignored. header.handle may name a factor to
  // start with, for instance to resume an interrupted series. call.timeout limits each step
  // (DEADLINE_EXCEEDED). call.cancellation must outlive the series. The first step reports invalid
  // arguments.
  explicit Series(std::shared_ptr<client::Client> client, v1::SolveSeriesHeader header = {},
                  client::CallOptions call = {});

  Series(Series&& other) noexcept;
  Series& operator=(Series&& other) noexcept;  // Closes the series that was held.
  // Calls Close(): waits at most five seconds for the end of the stream, and at most five for the
  // release of the factor.
  ~Series();

  // Solves op(A) X = B, where `matrix` is A and `rhs` is a dense B. X goes to `x` as in
  // Client::Solve. A singular matrix is not an error; nothing is then written to `x`. On return the
  // series no longer refers to the caller's memory. `x0` is an initial guess: dense, with the shape
  // and type of X; null for the solution of the previous step.
  absl::StatusOr<SeriesStep> Step(const client::MatrixSource& matrix,
                                  const client::MatrixSource& rhs, client::MatrixSink* x,
                                  const client::MatrixSource* x0 = nullptr);
  // Solves with the matrix of the previous step or, in the first step, of the factor to start with.
  // FAILED_PRECONDITION (client::Reason: MATRIX_GONE) if the server no longer has that matrix:
  // repeat the step with its matrix. A failed step always loses the matrix.
  absl::StatusOr<SeriesStep> Step(const client::MatrixSource& rhs, client::MatrixSink* x,
                                  const client::MatrixSource* x0 = nullptr);
  // Solves with the matrix of the previous step changed by `change`. Errors as above.
  absl::StatusOr<SeriesStep> Step(const client::MatrixChange& change,
                                  const client::MatrixSource& rhs, client::MatrixSink* x,
                                  const client::MatrixSource* x0 = nullptr);

  // The last factor that the series made. Before the first, only its handle is set: the handle of
  // the factor to start with, or "". Other calls may use the handle, which does not change once it
  // is set.
  const v1::Factor& factor() const { return factor_; }
  // Close then leaves the series' factor on the server until its lease ends.
  void KeepFactor() { keep_ = true; }

  // Ends the stream and drops the factor that the series made; a factor to start with stays.
  // Returns the status of the release; the steps have reported errors of the stream. Even on
  // failure the object is then in the moved-from state: every use is FAILED_PRECONDITION.
  absl::Status Close();

 private:
  struct Stream;

  // Payloads of a step; null if the step has none.
  struct Arriving {
    const client::MatrixSource* matrix = nullptr;
    const v1::MatrixChange* change = nullptr;  // meaning of the bytes, if they are not a matrix
    const client::MatrixSource& rhs;
    const client::MatrixSource* x0 = nullptr;
  };

  absl::StatusOr<SeriesStep> Exchange(const Arriving& arriving, client::MatrixSink* x);
  // Sends the request and reads the reply.
  absl::StatusOr<SeriesStep> Run(const client::StreamRequest& request, client::MatrixSink* x);
  // Makes the header of a step. In the first step of a stream it has the fields for the whole
  // stream.
  v1::SolveSeriesHeader HeaderOf(const Arriving& arriving) const;
  absl::Status CloseWith(const client::CallOptions& release);

  std::shared_ptr<client::Client> client_;  // null: closed or moved from
  v1::SolveSeriesHeader header_;
  client::CallOptions call_;
  v1::Factor factor_;
  bool keep_ = false;
  bool matrix_gone_ = false;  // a stream ended, and its matrix was lost
  std::unique_ptr<Stream> stream_;
};

}  // namespace crout

#endif  // CROUT_CROUT_SERIES_H_
