// The C++ client of a Crout daemon.
//
// crout/factor.h has a factor as an object, which most programs want, crout/batch.h those of many
// matrices at once, and crout/series.h systems that change from step to step (SolveSeries); this is
// every other call of the contract.
// client/examples has programs.
//
// Errors are those that proto/crout/v1 states, with the server's details (status.h); besides,
// UNAVAILABLE without details where no server answers, and INVALID_ARGUMENT or a status of errno
// for sources and sinks that cannot be used, and for texts that are not UTF-8. No pointer may be
// null: INVALID_ARGUMENT. Payloads are sent straight from the caller's memory.
//
// Thread safety: a Client may be used by any number of threads at once; calls share its one
// connection. Streaming calls work on the calling thread; callbacks come on it too.
#ifndef CROUT_CROUT_CLIENT_H_
#define CROUT_CROUT_CLIENT_H_

#include <grpcpp/channel.h>
#include <grpcpp/generic/generic_stub.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "crout/batch_data.h"
#include "crout/matrix_sink.h"
#include "crout/matrix_source.h"
#include "crout/options.h"
#include "crout/sparse_factors.h"
#include "crout/status.h"
#include "crout/v1/factorization_service.grpc.pb.h"

namespace crout {
class Series;
}  // namespace crout

namespace crout::client {

class CallScope;
class HeldFactor;
class LeaseKeeper;
enum class RetryClass : int;
struct StreamRequest;

class Client {
 public:
  // INVALID_ARGUMENT for options that make no sense. Connects when the first call is made, and
  // again after a loss; each Client has a connection of its own.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(ClientOptions options);

  ~Client();
  Client(const Client&) = delete;  // Calls in progress refer to it.
  Client& operator=(const Client&) = delete;

  // Factors a square matrix; the handle is in the result, and info > 0 there says that the matrix
  // is singular. Tried again where the server refused it before any effect, and, with a request_id
  // in `cache`, when the connection was lost.
  absl::StatusOr<v1::Factor> Factorize(const MatrixSource& matrix,
                                       const v1::FactorizeOptions& options,
                                       const v1::CacheOptions& cache, const CallOptions& call = {});

  // Replaces the factor behind `handle`; where the matrix is singular that is FAILED_PRECONDITION
  // (SINGULAR_MATRIX) and the old one stays, unless `header` says otherwise. Never tried again
  // after a lost connection: it may have happened.
  absl::StatusOr<v1::Factor> Refactorize(const std::string& handle, const MatrixSource& matrix,
                                         const v1::FactorizeOptions& options,
                                         const CallOptions& call = {});
  // `header` gives all but the matrix, which is filled in here.
  absl::StatusOr<v1::Factor> Refactorize(const MatrixSource& matrix, v1::RefactorizeHeader header,
                                         const CallOptions& call = {});

  // Solves op(A) X = B; X goes to `x`, in the type and layout of `rhs` (column-major for Matrix
  // Market).
  absl::StatusOr<v1::SolveResult> Solve(const std::string& handle, const MatrixSource& rhs,
                                        const v1::SolveOptions& options, MatrixSink* x,
                                        const CallOptions& call = {});

  // Both in one call. `header` gives the options; its matrix and rhs are filled in here. `factor`
  // is set as soon as it is known, also when the call then fails because the matrix is singular.
  absl::StatusOr<v1::SolveResult> FactorizeAndSolve(const MatrixSource& matrix,
                                                    const MatrixSource& rhs,
                                                    v1::FactorizeAndSolveHeader header,
                                                    v1::Factor* factor, MatrixSink* x,
                                                    const CallOptions& call = {});

  // The Schur complement S = A22 - A21 A11^-1 A12 of the leading block A11, whose order, and all
  // else but the matrix, `header` gives; S goes to `s`, in the type and layout of `matrix` as X in
  // Solve. `factor` is that of A11, and is set also when the call then fails because A11 is
  // singular.
  absl::StatusOr<v1::ComplementResult> ComputeSchurComplement(
      const MatrixSource& matrix, v1::ComputeSchurComplementHeader header, v1::Factor* factor,
      MatrixSink* s, const CallOptions& call = {});

  // The reduced row echelon form of a matrix of any shape, with its rank and pivot columns.
  // `header` gives all but the matrix; the form goes to `r`, in the type and layout of `matrix` as
  // X in Solve.
  absl::StatusOr<v1::EchelonFormResult> ReduceToEchelonForm(const MatrixSource& matrix,
                                                            v1::ReduceToEchelonFormHeader header,
                                                            MatrixSink* r,
                                                            const CallOptions& call = {});

  // Downloads the factors: L and U packed in one n x n matrix go to `lu`. `header` is set before
  // `lu` gets its first call.
  absl::Status GetFactors(const v1::GetFactorsRequest& request, v1::GetFactorsHeader* header,
                          MatrixSink* lu, const CallOptions& call = {});

  // The same of a sparse factor by MULTIFRONTAL, in memory. FAILED_PRECONDITION for others.
  absl::StatusOr<SparseFactors> GetSparseFactors(const std::string& handle,
                                                 const CallOptions& call = {});

  // Factors many matrices of different sizes at once; the handle is in the result. `header` gives
  // all but the batch, which is filled in here; with a handle there the batch takes the place of
  // that one. Tried again as Factorize.
  absl::StatusOr<FactoredBatch> FactorizeBatch(const BatchSource& matrices,
                                               v1::FactorizeBatchHeader header,
                                               const CallOptions& call = {});

  // Solves op(A_i) X_i = B_i with members of a batch. `header` gives the handle, the operation and
  // whether to verify; the rest is filled in here.
  absl::StatusOr<BatchSolution> SolveBatch(const BatchSource& sides, v1::SolveBatchHeader header,
                                           const CallOptions& call = {});

  // Both in one call. `header` gives what the two do; `factored` is set where the call succeeds,
  // with an empty handle where `header` has no cache.
  absl::StatusOr<BatchSolution> FactorizeAndSolveBatch(const BatchSource& matrices,
                                                       const BatchSource& sides,
                                                       v1::FactorizeAndSolveBatchHeader header,
                                                       FactoredBatch* factored,
                                                       const CallOptions& call = {});

  // Downloads the factors of a range of a batch's members, into memory.
  absl::StatusOr<BatchDownload> GetBatchFactors(const v1::GetBatchFactorsRequest& request,
                                                const CallOptions& call = {});

  // The rows and columns of a batch's members, in their order. Errors as GetBatchFactors, of which
  // it reads the sizes alone, and then ends the call.
  absl::StatusOr<std::vector<BatchShape>> GetBatchShapes(const std::string& handle,
                                                         const CallOptions& call = {});

  // One page, as the request says.
  absl::StatusOr<v1::ListFactorsResponse> ListPage(const v1::ListFactorsRequest& request,
                                                   const CallOptions& call = {});
  // Every factor, newest first, page by page; `name` empty for all. Ends when `visit` returns
  // false.
  absl::Status List(const std::string& name, absl::FunctionRef<bool(const v1::Factor&)> visit,
                    const CallOptions& call = {});

  absl::StatusOr<v1::Factor> Describe(const std::string& handle, const CallOptions& call = {});
  // What an iterative method did, section by section: every page, put together.
  absl::StatusOr<v1::GetIterationsResponse> Iterations(const std::string& handle,
                                                       const CallOptions& call = {});
  // Zero for the server's default lease. Returns when the lease now ends.
  absl::StatusOr<absl::Time> Renew(const std::string& handle, absl::Duration lease,
                                   const CallOptions& call = {});
  // Not tried again after a lost connection: the second answer would be NOT_FOUND.
  absl::Status Release(const std::string& handle, const CallOptions& call = {});
  absl::StatusOr<v1::EstimateFactorizeResponse> Estimate(
      const v1::EstimateFactorizeRequest& request, const CallOptions& call = {});
  absl::StatusOr<v1::GetServerInfoResponse> ServerInfo(const CallOptions& call = {});

 private:
  friend class HeldFactor;     // whose lease is kept here
  friend class crout::Series;  // whose stream runs over this connection

  Client(ClientOptions options, std::shared_ptr<grpc::Channel> channel);

  // Runs `attempt` with a fresh context each time, under the call's deadline.
  absl::Status RunWithRetries(RetryClass retry_class, const CallOptions& call,
                              absl::FunctionRef<absl::Status(CallScope*)> attempt);

  template <class Request, class Response>
  absl::StatusOr<Response> Unary(grpc::Status (v1::FactorizationService::Stub::*method)(
                                     grpc::ClientContext*, const Request&, Response*),
                                 RetryClass retry_class, const Request& request,
                                 const CallOptions& call);

  template <class Response>
  absl::StatusOr<v1::Factor> FactorStream(const absl::StatusOr<StreamRequest>& request,
                                          RetryClass retry_class, const CallOptions& call);
  template <class Response, class Result>
  absl::StatusOr<Result> MatrixStream(const absl::StatusOr<StreamRequest>& request,
                                      RetryClass retry_class, v1::Factor* factor, MatrixSink* x,
                                      const CallOptions& call);

  // What SolveBatch answers with, put in the order of `sides`, which went in `order`.
  static BatchSolution SolutionIn(const BatchSource& sides, const std::vector<size_t>& order,
                                  std::vector<std::byte> bytes);
  // What GetBatchFactors answers with. INTERNAL where the bytes are not what `spec` says.
  static absl::Status ReadDownload(const v1::BatchSpec& spec, std::vector<std::byte> bytes,
                                   BatchDownload* download);

  // Constant after construction.
  const ClientOptions options_;
  const std::unique_ptr<v1::FactorizationService::Stub> stub_;
  grpc::GenericStub generic_stub_;
  const std::unique_ptr<LeaseKeeper> leases_;  // last: its thread makes calls
};

}  // namespace crout::client

#endif  // CROUT_CROUT_CLIENT_H_
