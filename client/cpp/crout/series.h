// SPDX-License-Identifier: Apache-2.0

// Systems A_t x_t = b_t whose matrix changes from step to step, over one stream.
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
// Thread safety: one thread at a time may use a series. Another thread can end a step through
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
  // Accuracy of X, the strategy and its cost. If `solved` is false the matrix is singular and there
  // is no X.
  v1::SeriesResult result;
  // The factor that this step made, if any. For a singular matrix it has no handle, and info is the
  // index of the zero pivot; the previous factor then stays.
  std::optional<v1::Factor> made;
};

// Move-only. The first step opens the stream. A failed step ends the stream, but not the series:
// the next step opens a new stream, which continues with the current factor, if there is one. Steps
// are not resent automatically.
class Series {
 public:
  // `header` gives the strategy, the accuracy, and the options of new factors and their cache.
  // `handle` may name a factor to start with, for instance to resume an interrupted series. Steps
  // fill in matrix, rhs and x0. call.timeout applies to each step, which then ends with
  // DEADLINE_EXCEEDED. call.cancellation must outlive the series. Invalid arguments are reported by
  // the first step.
  explicit Series(std::shared_ptr<client::Client> client, v1::SolveSeriesHeader header = {},
                  client::CallOptions call = {});

  Series(Series&& other) noexcept;
  Series& operator=(Series&& other) noexcept;  // Closes what was there.
  ~Series();  // Calls Close(), with a limit of five seconds for each of its waits.

  // Solves op(A) X = B for a dense B. X goes to `x` as in Client::Solve. A singular matrix is not
  // an error; nothing is then written to `x`. On return the call no longer refers to the caller's
  // memory. `x0` is an initial guess: dense, of X's shape and type; null for the solution of the
  // previous step.
  absl::StatusOr<SeriesStep> Step(const client::MatrixSource& matrix,
                                  const client::MatrixSource& rhs, client::MatrixSink* x,
                                  const client::MatrixSource* x0 = nullptr);
  // Solves with the matrix of the previous step, or of the factor to start with.
  // FAILED_PRECONDITION (client::Reason: MATRIX_GONE) if the server no longer has that matrix,
  // which is always so after a failed step: repeat the step with its matrix.
  absl::StatusOr<SeriesStep> Step(const client::MatrixSource& rhs, client::MatrixSink* x,
                                  const client::MatrixSource* x0 = nullptr);
  // Solves with that matrix after `change`.
  absl::StatusOr<SeriesStep> Step(const client::MatrixChange& change,
                                  const client::MatrixSource& rhs, client::MatrixSink* x,
                                  const client::MatrixSource* x0 = nullptr);

  // The current factor: the factor to start with, of which only the handle is set, or the last new
  // one. Other calls may use its handle, which does not change. The handle is empty if there is no
  // factor yet.
  const v1::Factor& factor() const { return factor_; }
  // Makes Close leave the series' factor on the server until its lease ends.
  void KeepFactor() { keep_ = true; }

  // Ends the stream and drops the factor that the series made; a factor to start with stays. Does
  // not report the stream's status, because every step reported its own. Whatever the status, the
  // object is then in the moved-from state: every use is FAILED_PRECONDITION.
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
  // The header of a step. Has the fields for the whole stream in the first step of a stream.
  v1::SolveSeriesHeader HeaderOf(const Arriving& arriving) const;
  absl::Status CloseWith(const client::CallOptions& release);

  std::shared_ptr<client::Client> client_;  // null: closed or moved from
  v1::SolveSeriesHeader header_;
  client::CallOptions call_;
  v1::Factor factor_;
  bool keep_ = false;
  bool matrix_gone_ = false;  // the matrix was lost with a stream that ended
  std::unique_ptr<Stream> stream_;
};

}  // namespace crout

#endif  // CROUT_CROUT_SERIES_H_
