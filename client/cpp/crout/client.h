// SPDX-License-Identifier: Apache-2.0

// The C++ client of a Crout server.
//
// Most programs use the object interfaces: crout/factor.h (a factor or the factors of a batch) and
// crout/series.h (systems that change from step to step). Client has all other operations.
// client/examples has programs.
//
// Errors. Calls return the errors that proto/crout/v1 states, with the server's details (status.h).
// Additional errors: UNAVAILABLE without details if no server answers; INVALID_ARGUMENT or a status
// of errno for unusable sources and sinks; INVALID_ARGUMENT for null pointers and for strings that
// are not UTF-8. Payloads are sent directly from the caller's memory.
//
// Retries. A call is retried, within its timeout, after the server refused it before any effect. A
// call that is safe to repeat is also retried after a lost connection. See RetryPolicy
// (client_options.h).
//
// Batches. A batch is a kind of matrix: pass MatrixSource::Batch where a matrix is expected,
// MatrixSource::BatchRhs where a right-hand side is, and BatchMatrices as the sink (batch.h).
//
// Thread safety: a Client may be used by any number of threads at once; all calls share its one
// connection. Streaming calls run on the calling thread, and so do their callbacks.
#ifndef CROUT_CROUT_CLIENT_H_
#define CROUT_CROUT_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "crout/batch.h"
#include "crout/client_options.h"
#include "crout/matrix_sink.h"
#include "crout/matrix_source.h"
#include "crout/options.h"
#include "crout/results.h"
#include "crout/sparse_factors.h"
#include "crout/status.h"
#include "crout/types.h"

namespace crout {
inline namespace api {

namespace internal {
class Connection;
class HeldFactor;
class LeaseKeeper;
}  // namespace internal

class Client {
 public:
  // Makes a client with its own connection. Does not wait for the server: the first call connects,
  // and later calls connect again after a lost connection. INVALID_ARGUMENT for invalid options.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(ClientOptions options);

  ~Client();
  Client(const Client&) = delete;  // Calls in progress refer to it.
  Client& operator=(const Client&) = delete;

  // Factors a square matrix or a batch. The result has the handle; info > 0 means that the matrix
  // is singular. Safe to repeat only with a request_id in `cache`.
  absl::StatusOr<FactorDescription> Factor(const MatrixSource& matrix,
                                           const FactorOptions& options = {},
                                           const CacheOptions& cache = {},
                                           const CallOptions& call = {});

  // Replaces the factor of `handle` by the factor of a matrix of the same order, or of a batch of
  // the same sizes and type. A singular matrix is FAILED_PRECONDITION (SINGULAR_MATRIX) and the old
  // factor stays, unless options.replace_if_singular is set. Not safe to repeat: after a lost
  // connection the server may already have replaced the factor.
  absl::StatusOr<FactorDescription> Refactor(const std::string& handle, const MatrixSource& matrix,
                                             const RefactorOptions& options = {},
                                             const CallOptions& call = {});

  // Solves op(A) X = B, where `rhs` is B, with as many rows as A. X goes to `x`, in the type and
  // layout of `rhs`, but complex if A is complex. For Matrix Market X is column-major.
  absl::StatusOr<SolveResult> Solve(const std::string& handle, const MatrixSource& rhs,
                                    const SolveOptions& options, MatrixSink* x,
                                    const CallOptions& call = {});

  // Factors and solves in one call. *factor is set as soon as it arrives, even if the call then
  // fails because the matrix is singular. Safe to repeat only without options.cache.
  absl::StatusOr<SolveResult> FactorAndSolve(const MatrixSource& matrix, const MatrixSource& rhs,
                                             const FactorAndSolveOptions& options,
                                             FactorDescription* factor, MatrixSink* x,
                                             const CallOptions& call = {});

  // Computes the Schur complement S = A22 - A21 A11^-1 A12 of the leading block A11. S goes to `s`,
  // in the type and layout of `matrix` (sparse or Matrix Market: column-major). *factor describes
  // the factor of A11; it is set even if the call then fails because A11 is singular. Not safe to
  // repeat.
  absl::StatusOr<ComplementResult> Schur(const MatrixSource& matrix, const SchurOptions& options,
                                         FactorDescription* factor, MatrixSink* s,
                                         const CallOptions& call = {});

  // Computes the reduced row echelon form of a matrix of any shape, with its rank and pivot
  // columns. The form goes to `r`, in the type, shape and layout of `matrix` (sparse or Matrix
  // Market: column-major).
  absl::StatusOr<EchelonFormResult> Rref(const MatrixSource& matrix, const RrefOptions& options,
                                         MatrixSink* r, const CallOptions& call = {});

  // Downloads a dense factor. L and U, packed in one n x n matrix, go to `lu`, column-major.
  // *factors is set before the first call of a method of `lu`; its ipiv is set if `include_ipiv`.
  // FAILED_PRECONDITION for a sparse factor and for a batch.
  absl::Status Download(const std::string& handle, DenseFactors* factors, MatrixSink* lu,
                        bool include_ipiv = false, const CallOptions& call = {});
  // Downloads a sparse factor. FAILED_PRECONDITION for a dense factor, a factor by kCudss or
  // kMumps, and a factor by kKlu of a singular matrix.
  absl::StatusOr<SparseFactors> DownloadSparse(const std::string& handle,
                                               const CallOptions& call = {});
  // Downloads the factors of the members first to first + count - 1 of a batch, 0-based; count 0:
  // all from `first` on. FAILED_PRECONDITION for the handle of a single matrix.
  absl::StatusOr<MemberFactors> DownloadMembers(const std::string& handle, int64_t first = 0,
                                                int64_t count = 0, const CallOptions& call = {});
  // Returns the sizes of a batch's members. Reads only the start of a download, then ends the call.
  absl::StatusOr<std::vector<MemberShape>> MemberShapes(const std::string& handle,
                                                        const CallOptions& call = {});

  // Calls `visit` with the tenant's factors of this name, or with all if `name` is empty. Newest
  // first. Stops when `visit` returns false.
  absl::Status List(const std::string& name,
                    absl::FunctionRef<bool(const FactorDescription&)> visit,
                    const CallOptions& call = {});

  // Returns the current description of a factor.
  absl::StatusOr<FactorDescription> Describe(const std::string& handle,
                                             const CallOptions& call = {});
  // Returns all counts of an iterative method, section by section.
  absl::StatusOr<IterationPage> Iterations(const std::string& handle, const CallOptions& call = {});
  // Sets the length of a lease, counted from now, and returns its new end on the server's clock. A
  // `lease` of zero selects the server's default.
  absl::StatusOr<absl::Time> Renew(const std::string& handle, absl::Duration lease,
                                   const CallOptions& call = {});
  // Pins a factor, or unpins it (CacheOptions::pin), and restarts its lease. RESOURCE_EXHAUSTED
  // (PIN_LIMIT) beyond the limits of pinned memory.
  absl::Status Pin(const std::string& handle, bool pin, const CallOptions& call = {});
  // Releases a factor. Not safe to repeat: the second reply would be NOT_FOUND.
  absl::Status Release(const std::string& handle, const CallOptions& call = {});
  // Predicts the bytes and seconds of a factorization.
  absl::StatusOr<crout::Estimate> Estimate(const EstimateRequest& request,
                                           const CallOptions& call = {});
  // Returns the server's devices, their algorithms, and its limits.
  absl::StatusOr<crout::ServerInfo> ServerInfo(const CallOptions& call = {});

  // Allocates `count` elements of zeros in memory that is shared with the server. Calls send a
  // dense matrix in it without a copy (MatrixSource::Dense). The server must run on this machine,
  // listen on a Unix socket and have memory for clients (--max-shared-memory). Otherwise, and below
  // 256 KiB, the memory is private. It may outlive the client. T: a type without a destructor.
  template <class T>
  std::shared_ptr<T[]> Allocate(size_t count) {
    static_assert(std::is_trivially_destructible_v<T>);
    std::shared_ptr<std::byte[]> bytes = AllocateBytes(count * sizeof(T));
    T* const elements = reinterpret_cast<T*>(bytes.get());
    return {std::move(bytes), elements};
  }

 private:
  friend class internal::HeldFactor;  // its lease is kept here
  friend class Series;                // its stream runs over this connection

  explicit Client(std::unique_ptr<internal::Connection> connection);
  std::shared_ptr<std::byte[]> AllocateBytes(size_t bytes);

  const std::unique_ptr<internal::Connection> connection_;
  const std::unique_ptr<internal::LeaseKeeper> leases_;  // last: its thread makes calls
};

// Whether `text` has the form of a handle: 26 characters of base32.
bool IsHandle(const std::string& text);

}  // namespace api
}  // namespace crout

#endif  // CROUT_CROUT_CLIENT_H_
