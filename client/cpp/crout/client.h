// SPDX-License-Identifier: Apache-2.0

// The C++ client of a Crout daemon.
//
// Most programs use the object interfaces: crout/factor.h (one factor), crout/batch.h (the factors
// of a batch) and crout/series.h (systems that change from step to step, SolveSeries). Client has
// all other calls of the contract. client/examples has programs.
//
// Errors. Calls return the errors that proto/crout/v1 states, with the server's details (status.h).
// Additional errors: UNAVAILABLE without details if no server answers; INVALID_ARGUMENT or a status
// of errno for unusable sources and sinks; INVALID_ARGUMENT for null pointers and for strings that
// are not UTF-8. Payloads are sent directly from the caller's memory.
//
// Retries. A call is retried, within its timeout, after the server refused it before any effect. A
// call that is safe to repeat is also retried after a lost connection. See RetryPolicy (options.h).
//
// Thread safety: a Client may be used by any number of threads at once; all calls share its one
// connection. Streaming calls run on the calling thread, and so do their callbacks.
#ifndef CROUT_CROUT_CLIENT_H_
#define CROUT_CROUT_CLIENT_H_

#include <grpcpp/channel.h>
#include <grpcpp/generic/generic_stub.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
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
  // Makes a client with its own connection. Does not wait for the server: the first call connects,
  // and later calls connect again after a lost connection. INVALID_ARGUMENT for invalid options.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(ClientOptions options);

  ~Client();
  Client(const Client&) = delete;  // Calls in progress refer to it.
  Client& operator=(const Client&) = delete;

  // Factors a square matrix. The result has the handle; info > 0 means that the matrix is singular.
  // Safe to repeat only with a request_id in `cache`.
  absl::StatusOr<v1::Factor> Factorize(const MatrixSource& matrix,
                                       const v1::FactorizeOptions& options,
                                       const v1::CacheOptions& cache, const CallOptions& call = {});

  // Replaces the factor of `handle` by the factor of a matrix of the same order. A singular matrix
  // is FAILED_PRECONDITION (SINGULAR_MATRIX) and the old factor stays, unless
  // header.replace_if_singular is set. Not safe to repeat: after a lost connection the server may
  // already have replaced the factor.
  absl::StatusOr<v1::Factor> Refactorize(const std::string& handle, const MatrixSource& matrix,
                                         const v1::FactorizeOptions& options,
                                         const CallOptions& call = {});
  // `header` gives everything but the matrix.
  absl::StatusOr<v1::Factor> Refactorize(const MatrixSource& matrix, v1::RefactorizeHeader header,
                                         const CallOptions& call = {});

  // Solves op(A) X = B, where `rhs` is B, with as many rows as A. X goes to `x`, in the type and
  // layout of `rhs`, but complex if A is complex. For Matrix Market X is column-major.
  absl::StatusOr<v1::SolveResult> Solve(const std::string& handle, const MatrixSource& rhs,
                                        const v1::SolveOptions& options, MatrixSink* x,
                                        const CallOptions& call = {});

  // Factors and solves in one call. `header` gives everything but matrix and rhs. *factor is set as
  // soon as it arrives, even if the call then fails because the matrix is singular. Safe to repeat
  // only without header.cache.
  absl::StatusOr<v1::SolveResult> FactorizeAndSolve(const MatrixSource& matrix,
                                                    const MatrixSource& rhs,
                                                    v1::FactorizeAndSolveHeader header,
                                                    v1::Factor* factor, MatrixSink* x,
                                                    const CallOptions& call = {});

  // Computes the Schur complement S = A22 - A21 A11^-1 A12 of the leading block A11. `header` gives
  // the order of A11 and everything else but the matrix. S goes to `s`, in the type and layout of
  // `matrix` (sparse or Matrix Market: column-major). *factor describes the factor of A11; it is
  // set even if the call then fails because A11 is singular. Not safe to repeat.
  absl::StatusOr<v1::ComplementResult> ComputeSchurComplement(
      const MatrixSource& matrix, v1::ComputeSchurComplementHeader header, v1::Factor* factor,
      MatrixSink* s, const CallOptions& call = {});

  // Computes the reduced row echelon form of a matrix of any shape, with its rank and pivot
  // columns. `header` gives everything but the matrix. The form goes to `r`, in the type, shape and
  // layout of `matrix` (sparse or Matrix Market: column-major).
  absl::StatusOr<v1::EchelonFormResult> ReduceToEchelonForm(const MatrixSource& matrix,
                                                            v1::ReduceToEchelonFormHeader header,
                                                            MatrixSink* r,
                                                            const CallOptions& call = {});

  // Downloads a dense factor. L and U, packed in one n x n matrix, go to `lu`, column-major.
  // *header is set before the first call of a method of `lu`. FAILED_PRECONDITION for a batch: call
  // GetMembers.
  absl::Status GetFactors(const v1::GetFactorsRequest& request, v1::GetFactorsHeader* header,
                          MatrixSink* lu, const CallOptions& call = {});

  // Downloads a sparse factor into memory. FAILED_PRECONDITION for a dense factor, a factor by
  // CUDSS, and a factor by KLU of a singular matrix.
  absl::StatusOr<SparseFactors> GetSparseFactors(const std::string& handle,
                                                 const CallOptions& call = {});

  // Factors a batch of matrices of different sizes. The result has the handle. Retried as
  // Factorize of one matrix.
  absl::StatusOr<FactoredBatch> Factorize(const BatchSource& matrices,
                                          const v1::FactorizeOptions& options,
                                          const v1::CacheOptions& cache,
                                          const CallOptions& call = {});

  // Replaces the batch of `handle` by one of the same sizes and type, even if members are singular.
  // Retried as Refactorize of one matrix.
  absl::StatusOr<FactoredBatch> Refactorize(const std::string& handle, const BatchSource& matrices,
                                            const v1::FactorizeOptions& options,
                                            const CallOptions& call = {});

  // Solves op(A_i) X_i = B_i with members of the batch of `handle`.
  absl::StatusOr<BatchSolution> Solve(const std::string& handle, const BatchSource& sides,
                                      const v1::SolveOptions& options,
                                      const CallOptions& call = {});

  // Factors a batch and solves in one call. `header` gives the options; its matrix and rhs are set
  // here. `factored` is set if the call succeeds; its handle is empty if `header` has no cache.
  absl::StatusOr<BatchSolution> FactorizeAndSolve(const BatchSource& matrices,
                                                  const BatchSource& sides,
                                                  v1::FactorizeAndSolveHeader header,
                                                  FactoredBatch* factored,
                                                  const CallOptions& call = {});

  // Downloads the factors of the members first to first + count - 1 of a batch into memory,
  // 0-based; count 0: all from `first` on. FAILED_PRECONDITION for the handle of a single matrix.
  absl::StatusOr<BatchDownload> GetMembers(const std::string& handle, int64_t first, int64_t count,
                                           const CallOptions& call = {});

  // Returns the rows and columns of a batch's members. Reads only the sizes of a GetFactors reply,
  // then ends the call. Errors as GetMembers.
  absl::StatusOr<std::vector<BatchShape>> GetShapes(const std::string& handle,
                                                    const CallOptions& call = {});

  // Returns one page of the tenant's factors, newest first.
  absl::StatusOr<v1::ListFactorsResponse> ListPage(const v1::ListFactorsRequest& request,
                                                   const CallOptions& call = {});
  // Calls `visit` with the tenant's factors of this name, or with all if `name` is empty. Newest
  // first. Stops when `visit` returns false.
  absl::Status List(const std::string& name, absl::FunctionRef<bool(const v1::Factor&)> visit,
                    const CallOptions& call = {});

  // Returns the current description of a factor.
  absl::StatusOr<v1::Factor> Describe(const std::string& handle, const CallOptions& call = {});
  // Returns the counts of an iterative method, section by section, from all pages.
  absl::StatusOr<v1::IterationPage> Iterations(const std::string& handle,
                                               const CallOptions& call = {});
  // Sets the length of a lease, counted from now, and returns its new end on the server's clock. A
  // `lease` of zero selects the server's default.
  absl::StatusOr<absl::Time> Renew(const std::string& handle, absl::Duration lease,
                                   const CallOptions& call = {});
  // Releases a factor. Not safe to repeat: the second reply would be NOT_FOUND.
  absl::Status Release(const std::string& handle, const CallOptions& call = {});
  // Predicts the bytes and seconds of a factorization.
  absl::StatusOr<v1::EstimateFactorizeResponse> Estimate(
      const v1::EstimateFactorizeRequest& request, const CallOptions& call = {});
  // Returns the server's devices, their algorithms, and its limits.
  absl::StatusOr<v1::GetServerInfoResponse> ServerInfo(const CallOptions& call = {});

 private:
  friend class HeldFactor;     // its lease is kept here
  friend class crout::Series;  // its stream runs over this connection

  Client(ClientOptions options, std::shared_ptr<grpc::Channel> channel);

  // Runs `attempt`, each time with a new context, and retries it until the call's deadline.
  absl::Status RunWithRetries(RetryClass retry_class, const CallOptions& call,
                              absl::FunctionRef<absl::Status(CallScope*)> attempt);

  template <class Request, class Response>
  absl::StatusOr<Response> Unary(grpc::Status (v1::FactorizationService::Stub::*method)(
                                     grpc::ClientContext*, const Request&, Response*),
                                 RetryClass retry_class, const Request& request,
                                 const CallOptions& call);

  // Factorize, Refactorize and FactorizeAndSolve of a matrix or a batch. A matrix has no figures.
  absl::StatusOr<FactoredBatch> FactorizeAny(const MatrixSource& matrix,
                                             const v1::FactorizeOptions& options,
                                             const v1::CacheOptions& cache,
                                             const CallOptions& call);
  absl::StatusOr<FactoredBatch> RefactorizeAny(const MatrixSource& matrix,
                                               v1::RefactorizeHeader header,
                                               const CallOptions& call);
  absl::StatusOr<v1::SolveResult> FactorizeAndSolveAny(const MatrixSource& matrix,
                                                       const MatrixSource& rhs,
                                                       v1::FactorizeAndSolveHeader header,
                                                       v1::Factor* factor, BatchFigures* figures,
                                                       MatrixSink* x, const CallOptions& call);

  template <class Response>
  absl::StatusOr<FactoredBatch> FactorStream(const absl::StatusOr<StreamRequest>& request,
                                             RetryClass retry_class, const CallOptions& call);
  // `member_data` receives the figures of members; null if Response has none.
  template <class Response, class Result>
  absl::StatusOr<Result> MatrixStream(const absl::StatusOr<StreamRequest>& request,
                                      RetryClass retry_class, v1::Factor* factor, MatrixSink* x,
                                      const CallOptions& call, std::string* member_data = nullptr);
  // Runs GetFactors: calls `on_header`, then `on_data` with the pieces of the data. An error of
  // either ends the call and is returned. If the call is retried, `on_header` is called again.
  absl::Status Download(const v1::GetFactorsRequest& request, const CallOptions& call,
                        absl::FunctionRef<absl::Status(v1::GetFactorsHeader*)> on_header,
                        absl::FunctionRef<absl::Status(absl::Span<const std::byte>)> on_data);

  // Rearranges the data of a Solve reply into the order of `sides`.
  static BatchSolution SolutionIn(const BatchSource& sides, v1::SolveResult result,
                                  std::vector<std::byte> bytes);
  // Reads the reply of GetMembers. INTERNAL if the bytes disagree with `spec`.
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
