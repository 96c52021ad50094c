// A cached factor as an object: renewed while it lives, released at its end.
//
//   using namespace crout::client;
//   auto client = Client::Connect({.server = "127.0.0.1:50051"});
//   if (!client.ok()) return client.status();
//   auto factor = crout::Factor::Factorize(*std::move(client), MatrixSource::Dense(a, n, n));
//   if (!factor.ok()) return factor.status();
//   SpanSink x(absl::MakeSpan(solution));
//   auto result = factor->Solve(MatrixSource::Dense(b, n, 1), {}, &x);
//
// Errors are those of crout/client.h.
//
// Thread safety: const members may be called by any number of threads at once; all others need the
// object to themselves.
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
#include "crout/v1/factor.pb.h"
#include "crout/v1/factorization_service.pb.h"

namespace crout {

// Move-only. While it lives, the client's one background thread renews the lease after half of its
// length. A renewal that failed is tried again in the background, and is never silent: the next use
// of the factor first renews on its own thread, and returns the renewal's error if that fails too.
// NOT_FOUND is final: the server has no such factor (any more).
class Factor {
 public:
  // Client::Factorize. A singular matrix is a factor too: description().info() > 0. `client` is
  // kept alive as long as the factor. INVALID_ARGUMENT for a request_id without a lease: a factor
  // that is there already does not tell how long its lease is.
  static absl::StatusOr<Factor> Factorize(std::shared_ptr<client::Client> client,
                                          const client::MatrixSource& matrix,
                                          const v1::FactorizeOptions& options = {},
                                          const v1::CacheOptions& cache = {},
                                          const client::CallOptions& call = {});

  Factor(Factor&&) noexcept = default;
  Factor& operator=(Factor&& other) noexcept;  // Releases what was held.
  // Release(), for at most five seconds. Where the server does not answer, the lease ends it.
  ~Factor();

  // As of the last factorization. Empty after Release.
  const v1::Factor& description() const { return description_; }
  const std::string& handle() const { return description_.handle(); }

  // How the last renewal ended; OK before the first.
  absl::Status lease_status() const;

  // Client::Solve.
  absl::StatusOr<v1::SolveResult> Solve(const client::MatrixSource& rhs,
                                        const v1::SolveOptions& options, client::MatrixSink* x,
                                        const client::CallOptions& call = {}) const;

  // The same on a thread of its own, on which `x` and call.on_progress are called too. The memory
  // of `rhs`, `x` and call.cancellation must stay until the future is ready. The future's
  // destructor waits for that: end a solve early by call.cancellation. The factor may be moved
  // meanwhile; one that is released meanwhile may end the solve with NOT_FOUND. RESOURCE_EXHAUSTED
  // where no thread can be started.
  std::future<absl::StatusOr<v1::SolveResult>> SolveAsync(
      const client::MatrixSource& rhs, const v1::SolveOptions& options, client::MatrixSink* x,
      const client::CallOptions& call = {}) const;

  // Client::Refactorize: on success description() is the new version's, else all stays.
  absl::Status Refactorize(const client::MatrixSource& matrix,
                           const v1::FactorizeOptions& options = {},
                           const client::CallOptions& call = {});

  // Client::Describe: as of now.
  absl::StatusOr<v1::Factor> Describe(const client::CallOptions& call = {}) const;

  // Ends the renewals and drops the factor on the server. Whatever the status, the object is then
  // as if moved from: every use is FAILED_PRECONDITION.
  absl::Status Release(const client::CallOptions& call = {});

 private:
  Factor(std::shared_ptr<const client::HeldFactor> hold, v1::Factor description);

  // With a `hold` that a solve in the background shares; null after Release.
  static absl::StatusOr<v1::SolveResult> SolveWith(const client::HeldFactor* hold,
                                                   const client::MatrixSource& rhs,
                                                   const v1::SolveOptions& options,
                                                   client::MatrixSink* x,
                                                   const client::CallOptions& call);

  std::shared_ptr<const client::HeldFactor> hold_;  // null: released or moved from
  v1::Factor description_;
};

}  // namespace crout

#endif  // CROUT_CROUT_FACTOR_H_
