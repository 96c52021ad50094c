// SPDX-License-Identifier: Apache-2.0

// The cached factors of a batch as an object: leases are renewed while it lives, and the factors
// are released when it is destroyed.
//
//   using namespace crout::client;
//   auto client = Client::Connect({.server = "127.0.0.1:50051"});
//   if (!client.ok()) return client.status();
//   BatchSource matrices, sides;
//   for (const Element& e : elements) matrices.Add(e.a.data(), e.n, e.n);
//   auto batch = crout::Batch::Factorize(*std::move(client), matrices);
//   if (!batch.ok()) return batch.status();
//   sides.AddFor(7, b.data(), n, 1);
//   auto solution = batch->Solve(sides);
//   if (!solution.ok()) return solution.status();
//   const absl::Span<const double> x = solution->x.values<double>(0);
//
// Errors are those of proto/crout/v1 and those of crout/client.h.
//
// Thread safety: const members may be called concurrently; all others require exclusive access.
#ifndef CROUT_CROUT_BATCH_H_
#define CROUT_CROUT_BATCH_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "crout/batch_data.h"
#include "crout/client.h"
#include "crout/options.h"
#include "crout/v1/factor.pb.h"
#include "crout/v1/factorization_service.pb.h"

namespace crout {

// Move-only. The lease is renewed as for Factor (crout/factor.h).
class Batch {
 public:
  // Factors a batch; see Client::Factorize. Singular members are kept too: figures().info marks
  // them. The batch keeps `client` alive. INVALID_ARGUMENT, as in Factor::Factorize, for a
  // request_id without a lease.
  static absl::StatusOr<Batch> Factorize(std::shared_ptr<client::Client> client,
                                         const client::BatchSource& matrices,
                                         const v1::FactorizeOptions& options = {},
                                         const v1::CacheOptions& cache = {},
                                         const client::CallOptions& call = {});

  // Factors a batch and solves with it; see Client::FactorizeAndSolve. Keeps the factors, with
  // the lease and name of `header`. INVALID_ARGUMENT if `solution` is null.
  static absl::StatusOr<Batch> FactorizeAndSolve(std::shared_ptr<client::Client> client,
                                                 const client::BatchSource& matrices,
                                                 const client::BatchSource& sides,
                                                 client::BatchSolution* solution,
                                                 v1::FactorizeAndSolveHeader header = {},
                                                 const client::CallOptions& call = {});

  Batch(Batch&&) noexcept = default;
  Batch& operator=(Batch&& other) noexcept;  // Releases what was held.
  // Calls Release() with a limit of five seconds. If the server does not answer, the factors live
  // until the lease ends.
  ~Batch();

  // Description at the last factorization. Empty after Release.
  const v1::Factor& description() const { return factored_.factor; }
  const std::string& handle() const { return factored_.factor.handle(); }
  int64_t members() const { return factored_.factor.batch().members(); }
  const client::BatchFigures& figures() const { return factored_.figures; }

  // Status of the last renewal; OK before the first.
  absl::Status lease_status() const;

  // Solves with all members, a range or a list of them, as defined by `sides`; see Client::Solve.
  absl::StatusOr<client::BatchSolution> Solve(const client::BatchSource& sides,
                                              const v1::SolveOptions& options = {},
                                              const client::CallOptions& call = {}) const;

  // Atomically replaces the factors by those of other matrices with the same sizes and type.
  // Singular members are accepted. On success description() and figures() describe the new version;
  // on failure nothing changes. FAILED_PRECONDITION for other sizes.
  absl::Status Refactorize(const client::BatchSource& matrices,
                           const v1::FactorizeOptions& options = {},
                           const client::CallOptions& call = {});

  // Downloads L, U and the row interchanges of the members first to first + count - 1, 0-based.
  // count 0 selects all members from `first` on. See Client::GetMembers.
  absl::StatusOr<client::BatchDownload> Download(int64_t first = 0, int64_t count = 0,
                                                 const client::CallOptions& call = {}) const;

  // Current description; see Client::Describe.
  absl::StatusOr<v1::Factor> Describe(const client::CallOptions& call = {}) const;

  // Stops the renewals and drops the factors on the server. Whatever the status, the object is then
  // in the moved-from state: every use is FAILED_PRECONDITION.
  absl::Status Release(const client::CallOptions& call = {});

 private:
  Batch(std::shared_ptr<const client::HeldFactor> hold, client::FactoredBatch factored);
  // Confirms the lease of `hold_`, which is null after Release.
  absl::Status Confirm(const client::CallOptions& call) const;

  std::shared_ptr<const client::HeldFactor> hold_;  // null: released or moved from
  client::FactoredBatch factored_;
};

}  // namespace crout

#endif  // CROUT_CROUT_BATCH_H_
