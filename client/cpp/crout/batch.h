// The cached factors of many matrices as an object: renewed while it lives, released at its end.
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
// Errors are those of FactorizeBatch and its kin (proto/crout/v1) and of crout/client.h.
//
// Thread safety: const members may be called by any number of threads at once; all others need the
// object to themselves.
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

// Move-only. Its lease is kept as Factor's is (crout/factor.h).
class Batch {
 public:
  // Client::FactorizeBatch. Singular members are members too: figures().info says which. `header`
  // gives all but the matrices. `client` is kept alive as long as the batch. INVALID_ARGUMENT for a
  // handle in `header`, and for a request_id without a lease, as Factor::Factorize.
  static absl::StatusOr<Batch> Factorize(std::shared_ptr<client::Client> client,
                                         const client::BatchSource& matrices,
                                         const v1::FactorizeBatchHeader& header = {},
                                         const client::CallOptions& call = {});

  // Client::FactorizeAndSolveBatch, and keeps the factors, with the lease and name that `header`
  // gives. `solution` must not be null: INVALID_ARGUMENT.
  static absl::StatusOr<Batch> FactorizeAndSolve(std::shared_ptr<client::Client> client,
                                                 const client::BatchSource& matrices,
                                                 const client::BatchSource& sides,
                                                 client::BatchSolution* solution,
                                                 v1::FactorizeAndSolveBatchHeader header = {},
                                                 const client::CallOptions& call = {});

  Batch(Batch&&) noexcept = default;
  Batch& operator=(Batch&& other) noexcept;  // Releases what was held.
  // Release(), for at most five seconds. Where the server does not answer, the lease ends it.
  ~Batch();

  // As of the last factorization. Empty after Release.
  const v1::Factor& description() const { return factored_.factor; }
  const std::string& handle() const { return factored_.factor.handle(); }
  int64_t members() const { return factored_.factor.batch().members(); }
  const client::BatchFigures& figures() const { return factored_.figures; }

  // How the last renewal ended; OK before the first.
  absl::Status lease_status() const;

  // Client::SolveBatch: for all members, a range or a list of them, as `sides` has them. `header`
  // gives the operation and whether to verify.
  absl::StatusOr<client::BatchSolution> Solve(const client::BatchSource& sides,
                                              v1::SolveBatchHeader header = {},
                                              const client::CallOptions& call = {}) const;

  // The factors of other matrices of the same sizes and type take the place of these, atomically,
  // singular ones or not: on success description() and figures() are the new version's, else all
  // stays. FAILED_PRECONDITION for other sizes.
  absl::Status Refactorize(const client::BatchSource& matrices, bool drop_matrix = false,
                           const client::CallOptions& call = {});

  // Client::GetBatchFactors: L, U and the row interchanges of the members first to
  // first + count - 1, counted from 0; count 0: all from `first` on.
  absl::StatusOr<client::BatchDownload> Download(int64_t first = 0, int64_t count = 0,
                                                 const client::CallOptions& call = {}) const;

  // Client::Describe: as of now.
  absl::StatusOr<v1::Factor> Describe(const client::CallOptions& call = {}) const;

  // Ends the renewals and drops the factors on the server. Whatever the status, the object is then
  // as if moved from: every use is FAILED_PRECONDITION.
  absl::Status Release(const client::CallOptions& call = {});

 private:
  Batch(std::shared_ptr<const client::HeldFactor> hold, client::FactoredBatch factored);
  // Of `hold_`, which is null after Release.
  absl::Status Confirm(const client::CallOptions& call) const;

  std::shared_ptr<const client::HeldFactor> hold_;  // null: released or moved from
  client::FactoredBatch factored_;
};

}  // namespace crout

#endif  // CROUT_CROUT_BATCH_H_
