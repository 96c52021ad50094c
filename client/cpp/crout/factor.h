// SPDX-License-Identifier: Apache-2.0

// A cached factor, or the factors of a batch, as an object, which renews the lease while it exists
// and releases the factor when it is destroyed.
//
//   auto client = crout::Client::Connect({.server = "127.0.0.1:50051"});
//   if (!client.ok()) return client.status();
//   auto factor = crout::Factor::Make(*std::move(client), crout::MatrixSource::Dense(a, n, n));
//   if (!factor.ok()) return factor.status();
//   crout::SpanSink x(absl::MakeSpan(solution));
//   auto result = factor->Solve(crout::MatrixSource::Dense(b, n, 1), {}, &x);
//
// Errors are those of crout/client.h.
//
// Thread safety: const members may be called concurrently; all others require exclusive access.
#ifndef CROUT_CROUT_FACTOR_H_
#define CROUT_CROUT_FACTOR_H_

#include <future>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "crout/client.h"
#include "crout/matrix_sink.h"
#include "crout/matrix_source.h"
#include "crout/options.h"
#include "crout/results.h"

namespace crout {
inline namespace api {

// Reaction of a Factor if the server has lost its factor: after a restart, an eviction, the end of
// the lease, the loss of a device, or corruption of a copy. A factor that was released is not lost.
enum class OnLost : int {
  kFail,  // uses return NOT_FOUND
  // The next use factors the matrix again and then continues. The factor gets a new handle; its
  // version is 1 again.
  kRefactor,
};

// Move-only. A background thread of the client renews the lease after half of its length and
// retries a failed renewal. After a failed renewal the next use of the factor first renews on the
// calling thread, and returns the error if this fails too. NOT_FOUND is final: the server no longer
// has the factor.
class Factor {
 public:
  // Factors a matrix or a batch; see Client::Factor. A singular matrix is not an error:
  // description().info is then above 0, or description().members.info of a member. The object keeps
  // `client` alive. INVALID_ARGUMENT for a request_id without a lease, because the server does not
  // report the lease of an existing factor.
  //
  // With OnLost::kRefactor the object keeps a copy of `matrix`, and later of the matrix of the last
  // successful Refactor. A file is not copied and must stay unchanged. INVALID_ARGUMENT for a
  // matrix that cannot be sent twice (a pipe), and in Refactor for values alone.
  static absl::StatusOr<Factor> Make(std::shared_ptr<Client> client, const MatrixSource& matrix,
                                     const FactorOptions& options = {},
                                     const CacheOptions& cache = {}, const CallOptions& call = {},
                                     OnLost on_lost = OnLost::kFail);

  // Attaches to an existing factor of the client's tenant: by its handle or, for any other text, to
  // the newest factor of this name. The object renews no lease (each use restarts it) and does not
  // release the factor when it is destroyed; Release() still does. NOT_FOUND if there is none.
  static absl::StatusOr<Factor> Attach(std::shared_ptr<Client> client,
                                       const std::string& handle_or_name,
                                       const CallOptions& call = {});

  Factor(Factor&&) noexcept = default;
  Factor& operator=(Factor&& other) noexcept;  // Releases the factor that was held.
  // Calls Release() with a limit of five seconds, unless the factor is attached. If the server does
  // not answer, the factor lives until its lease ends.
  ~Factor();

  // Description from Make, Attach or the last Refactor. Empty after Release.
  const FactorDescription& description() const { return description_; }
  // The handle, which changes only if a lost factor is made again (OnLost). Empty after Release.
  std::string handle() const;

  // Whether Attach() made the object.
  bool attached() const;

  // Status of the last renewal; OK before the first, and if the factor is attached.
  absl::Status lease_status() const;

  // Solves op(A) X = B; see Client::Solve.
  absl::StatusOr<SolveResult> Solve(const MatrixSource& rhs, const SolveOptions& options,
                                    MatrixSink* x, const CallOptions& call = {}) const;

  // Solves on a separate thread, which also calls `x` and call.on_progress. The memory of `rhs`,
  // `x` and call.cancellation must stay valid until the future is ready. The future's destructor
  // waits for the solve; use call.cancellation to end it early. During the solve the factor may be
  // moved; if it is released, the solve may end with NOT_FOUND. RESOURCE_EXHAUSTED if no thread can
  // be started.
  std::future<absl::StatusOr<SolveResult>> SolveAsync(const MatrixSource& rhs,
                                                      const SolveOptions& options, MatrixSink* x,
                                                      const CallOptions& call = {}) const;

  // Replaces the factor; see Client::Refactor. On success description() describes the new
  // version; on failure it stays.
  absl::Status Refactor(const MatrixSource& matrix, const RefactorOptions& options = {},
                        const CallOptions& call = {});

  // Current description; see Client::Describe.
  absl::StatusOr<FactorDescription> Describe(const CallOptions& call = {}) const;

  // Stops the renewals and drops the factor on the server. Whatever the status, the object is then
  // in the moved-from state: every use is FAILED_PRECONDITION.
  absl::Status Release(const CallOptions& call = {});

 private:
  Factor(std::shared_ptr<internal::HeldFactor> hold, FactorDescription description);

  // Solves with `hold`, which a solve in the background may share. Null after Release:
  // FAILED_PRECONDITION.
  static absl::StatusOr<SolveResult> SolveWith(internal::HeldFactor* hold, const MatrixSource& rhs,
                                               const SolveOptions& options, MatrixSink* x,
                                               const CallOptions& call);

  std::shared_ptr<internal::HeldFactor> hold_;  // null: released or moved from
  FactorDescription description_;
};

}  // namespace api
}  // namespace crout

#endif  // CROUT_CROUT_FACTOR_H_
