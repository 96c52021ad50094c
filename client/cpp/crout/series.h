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
// Thread safety: a series is of one thread at a time. Another ends a step by call.cancellation.
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

// What came back for one step, beside X.
struct SeriesStep {
  // How good X is, what solved it and what that took. Without `solved` the matrix is singular, and
  // there is no X.
  v1::SeriesResult result;
  // The factor that this step made, if it made one. Of a singular matrix it has no handle, and info
  // says where a pivot is zero; the factor that was there stays then.
  std::optional<v1::Factor> made;
};

// Move-only. The first step opens the stream. A step that fails ends the stream, not the series:
// the next one opens another, which goes on from the factor that is there, if one is. Nothing is
// sent again by itself.
class Series {
 public:
  // `header` gives the strategy, the accuracy, how factors are made and kept, and in `handle` a
  // factor to begin with, such as that of a series that was cut off; its matrix, rhs and x0 are
  // filled in by the steps. call.timeout is of each step, and when it passes the step ends with
  // DEADLINE_EXCEEDED; call.cancellation has to outlive the series. What is wrong with any of it
  // the first step tells.
  explicit Series(std::shared_ptr<client::Client> client, v1::SolveSeriesHeader header = {},
                  client::CallOptions call = {});

  Series(Series&& other) noexcept;
  Series& operator=(Series&& other) noexcept;  // Closes what was there.
  ~Series();  // Close(), for at most five seconds for each of what it waits for.

  // Solves op(A) X = B. X goes to `x` as in Client::Solve; of a singular matrix, which is not an
  // error, nothing does. The memory of all is free again when this returns. B is dense. `x0`: where
  // iterations start, dense, of X's shape and type; null: at the solution of the step before.
  absl::StatusOr<SeriesStep> Step(const client::MatrixSource& matrix,
                                  const client::MatrixSource& rhs, client::MatrixSink* x,
                                  const client::MatrixSource* x0 = nullptr);
  // The same with the matrix of the step before, at first with that of the factor to begin with.
  // FAILED_PRECONDITION (client::Reason: MATRIX_GONE) where the server does not have it any more,
  // which is always so after a step that failed: do the step with its matrix.
  absl::StatusOr<SeriesStep> Step(const client::MatrixSource& rhs, client::MatrixSink* x,
                                  const client::MatrixSource* x0 = nullptr);
  // The same with that matrix changed, as client::MatrixChange says.
  absl::StatusOr<SeriesStep> Step(const client::MatrixChange& change,
                                  const client::MatrixSource& rhs, client::MatrixSink* x,
                                  const client::MatrixSource* x0 = nullptr);

  // The factor that is there: what began the series, of which only the handle is known, or what its
  // last factorization made. Any call may use it by its handle, which stays the same. The handle is
  // empty where there is none yet.
  const v1::Factor& factor() const { return factor_; }
  // Close leaves the factor that the series made to its lease.
  void KeepFactor() { keep_ = true; }

  // Ends the stream, and drops the factor that the series made; one to begin with stays. How the
  // stream ends is not told: all its steps were. Whatever the status, the object is then as if
  // moved from: every use is FAILED_PRECONDITION.
  absl::Status Close();

 private:
  struct Stream;

  // What travels; null: it does not.
  struct Arriving {
    const client::MatrixSource* matrix = nullptr;
    const v1::MatrixChange* change = nullptr;  // what its bytes mean, where they are no matrix
    const client::MatrixSource& rhs;
    const client::MatrixSource* x0 = nullptr;
  };

  absl::StatusOr<SeriesStep> Exchange(const Arriving& arriving, client::MatrixSink* x);
  // Sends it and takes the reply.
  absl::StatusOr<SeriesStep> Run(const client::StreamRequest& request, client::MatrixSink* x);
  // With what is of all steps, if it is the first of a stream.
  v1::SolveSeriesHeader HeaderOf(const Arriving& arriving) const;
  absl::Status CloseWith(const client::CallOptions& release);

  std::shared_ptr<client::Client> client_;  // null: closed or moved from
  v1::SolveSeriesHeader header_;
  client::CallOptions call_;
  v1::Factor factor_;
  bool keep_ = false;
  bool matrix_gone_ = false;  // with a stream that ended
  std::unique_ptr<Stream> stream_;
};

}  // namespace crout

#endif  // CROUT_CROUT_SERIES_H_
