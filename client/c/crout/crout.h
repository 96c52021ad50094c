/* SPDX-License-Identifier: Apache-2.0 */

/* Crout from C: LU factorizations on a server, and solves with the factors by handle.
 *
 *   crout_connection *server = NULL;
 *   crout_factor *lu = NULL;
 *   int64_t info = crout_connect("127.0.0.1:50051", NULL, 0, &server);
 *   if (info == 0) info = crout_dgetrf(server, n, a, lda, &lu);
 *   if (info == 0) info = crout_dgetrs(lu, 'N', n, 1, b, n);    (b now holds x)
 *   if (info < 0) fprintf(stderr, "%s\n", crout_last_error());
 *   crout_release(lu);
 *   crout_disconnect(server);
 *
 * Matrices are column-major with a leading dimension, as in LAPACK, unless a crout_matrix states
 * otherwise. A matrix with gaps between its columns is sent without a full copy.
 *
 * Errors. Functions return 0 (CROUT_OK) or a negative code: a crout_code or, from crout_?getrf and
 * crout_?getrs, -i if argument i (1-based) is illegal, as in LAPACK. A positive value is LAPACK's
 * info > 0: the matrix is singular. crout_last_error() describes negative codes. A function that
 * fails leaves its output arguments unchanged, unless stated otherwise. A call that the server
 * refused before any effect, or that is safe to repeat, is retried up to three times within the
 * connection's timeout.
 *
 * Leases. The server drops a factor when its lease ends. While a crout_factor exists, a background
 * thread renews its lease. If that fails, the next function that uses the factor retries and
 * returns the error. CROUT_NOT_FOUND means that the server no longer has the factor.
 *
 * Thread safety. Any number of threads may use a connection at once; no thread may use it during or
 * after crout_disconnect. Threads may share a factor in crout_?getrs, crout_solve and
 * crout_describe. The crout_refactorize functions and crout_release need exclusive access to the
 * factor. One thread at a time may use a series. Factors and series may outlive crout_disconnect.
 * The last error is per thread.
 *
 * No function throws or ends the process, but gRPC aborts the process if it cannot allocate memory.
 * Do not load libcrout together with crout::client, or with another library that contains the
 * protocol types of google.rpc: libprotobuf aborts programs that register a type twice. */
#ifndef CROUT_CROUT_H_
#define CROUT_CROUT_H_

#ifdef __cplusplus
#include <complex>
#endif
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define CROUT_API __attribute__((visibility("default")))
#else
#define CROUT_API
#endif

/* Complex elements: the real part, then the imaginary part, as in C, C++ and Fortran. */
#ifdef __cplusplus
typedef std::complex<float> crout_complex_float;
typedef std::complex<double> crout_complex_double;
#else
typedef float _Complex crout_complex_float;
typedef double _Complex crout_complex_double;
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this header. */
#define CROUT_VERSION_MAJOR 0
#define CROUT_VERSION_MINOR 1
#define CROUT_VERSION_PATCH 0
#define CROUT_VERSION "0.1.0"

/* Version of the loaded library, such as "0.1.0". A newer library with the same SONAME has
 * everything that this header declares. */
CROUT_API const char* crout_version(void);

/* Error codes; all are smaller than any of LAPACK's -i. The meaning of a value never changes; new
 * values may be added. */
typedef enum crout_code {
  CROUT_OK = 0,
  CROUT_INVALID_ARGUMENT = -101,    /* an illegal value; the message states the remedy */
  CROUT_NOT_FOUND = -102,           /* the server no longer has the factor; factor again */
  CROUT_SINGULAR = -103,            /* the factor to solve with, or the new matrix, is singular */
  CROUT_FAILED_PRECONDITION = -104, /* wrong state, such as a factor of another order */
  CROUT_UNREACHABLE = -105,         /* no server answered, or the connection was lost */
  CROUT_UNAVAILABLE = -106,         /* the server answered that it cannot serve now */
  CROUT_RESOURCE_EXHAUSTED = -107,  /* the server's queue or memory is full; retry later */
  CROUT_DEADLINE_EXCEEDED = -108,   /* the connection's timeout, or the server's upload timeout */
  CROUT_CANCELLED = -109,           /* the server ended the call */
  CROUT_UNIMPLEMENTED = -110,       /* not supported by this server */
  CROUT_OUT_OF_MEMORY = -111,       /* this process is out of memory */
  CROUT_INTERNAL = -112,            /* a defect of the server or of this library */
  CROUT_ABORTED = -113,             /* an iterative method reached its limit of sweeps */
  CROUT_UNAUTHENTICATED = -114,     /* missing or invalid credentials; see crout_options */
  CROUT_PERMISSION_DENIED = -115    /* the caller lacks the role, or may not use this tenant */
} crout_code;

/* Code and message of the calling thread's last failed function; CROUT_OK and "" before the first
 * failure. For an illegal argument -i the code is CROUT_INVALID_ARGUMENT. The message, in English
 * and without a newline, is valid until the thread's next failure. */
CROUT_API crout_code crout_last_error_code(void);
CROUT_API const char* crout_last_error(void);

/* Opaque objects: a connection to a server, a factor on it, a series of systems. */
typedef struct crout_connection crout_connection;
typedef struct crout_factor crout_factor;
typedef struct crout_series crout_series;

/* Makes a connection to `server`: "host:port", "[IPv6]:port", "unix:PATH", or the name of a server
 * in croutctl's file of servers ($CROUT_SERVERS, or ~/.config/crout/servers.toml). Does not wait
 * for the server; the first call that needs it reports an unreachable server.
 *
 * `tenant`: null or empty for the server's default. `timeout`: seconds for each call, retries
 * included; 0 for two hours, INFINITY for none. All other settings come from the environment, as
 * for croutctl (CROUT_TENANT, CROUT_TLS, CROUT_CA, CROUT_CERT, CROUT_KEY, CROUT_TOKEN_FILE), and
 * then from the file of servers.
 *
 * On success the caller owns *connection and passes it to crout_disconnect. On failure *connection
 * is null. */
CROUT_API int crout_connect(const char* server, const char* tenant, double timeout,
                            crout_connection** connection);

/* Progress of a call. `phase`: crout_phase, or 0 for a report of sent bytes. */
typedef enum crout_phase {
  CROUT_PHASE_RECEIVE = 1,
  CROUT_PHASE_QUEUE = 2,
  CROUT_PHASE_FACTOR = 3,
  CROUT_PHASE_SOLVE = 4,
  CROUT_PHASE_ANALYZE = 5
} crout_phase;
typedef struct crout_progress {
  int32_t phase;
  int32_t jobs_ahead; /* in CROUT_PHASE_QUEUE */
  int64_t bytes_sent; /* bytes of the matrix or the right-hand sides */
  int64_t bytes_total;
  double predicted_seconds; /* duration of the phase; 0: no prediction */
  int64_t columns_done;     /* in CROUT_PHASE_FACTOR; 0 if the method reports none */
  int64_t columns;
  int32_t steps_done; /* in CROUT_PHASE_ANALYZE, of a long analysis of a sparse matrix */
  int32_t steps;
} crout_progress;

/* Called on the thread of the call, after each sent message and for each report of the server. Must
 * not call functions of this library. *progress is valid during the call; newer versions may append
 * fields. */
typedef void (*crout_progress_function)(const crout_progress* progress, void* context);

/* Options of a connection; initialise with {.struct_size = sizeof s}. Files are PEM and are read
 * when the connection is made. CROUT_INVALID_ARGUMENT: a key or token file that others can read, or
 * a token for a server without TLS that is not on a Unix socket or loopback. */
typedef struct crout_options {
  size_t struct_size;
  const char* server;    /* see crout_connect; null or empty: $CROUT_SERVER, else 127.0.0.1:50051 */
  const char* tenant;    /* see crout_connect */
  double timeout;        /* see crout_connect */
  int tls;               /* not 0: use TLS; implied by the next four fields */
  const char* ca_file;   /* trusted certificate authorities; null: the system's */
  const char* cert_file; /* certificate of this client */
  const char* key_file;  /* key of that certificate */
  const char* server_name; /* name in the server's certificate; null: the address's host */
  const char* token_file;  /* file with a bearer token for authentication */
  /* Receives the progress of every call with this connection, its factors and its series, unless
   * the call's own options name another function. If several threads use the connection, they may
   * call the function at the same time. Null: none. */
  crout_progress_function progress;
  void* progress_context; /* passed to `progress` */
  /* Priority of the calls among those of the tenant: "interactive", "normal" or "batch"; null or
   * empty: "normal". */
  const char* priority;
} crout_options;

/* Like crout_connect, with more settings. `options`: null for the defaults. */
CROUT_API int crout_connect_with(const crout_options* options, crout_connection** connection);

/* Closes a connection. Null is allowed. */
CROUT_API void crout_disconnect(crout_connection* connection);

/* LAPACK's getrf on the server: A = P L U, with A n x n, column-major, lda >= max(1, n). A is not
 * overwritten. On exit *factor refers to P, L and U on the server; the caller owns it and passes it
 * to crout_release. It is null if the result is negative. A result info > 0 means that
 * U(info, info), 1-based, is exactly zero: the factor can be described, but solves with it fail.
 * Argument numbers for -i: 1 connection, 2 n, 3 a, 4 lda, 5 factor. */
CROUT_API int64_t crout_sgetrf(crout_connection* connection, int64_t n, const float* a, int64_t lda,
                               crout_factor** factor);
CROUT_API int64_t crout_dgetrf(crout_connection* connection, int64_t n, const double* a,
                               int64_t lda, crout_factor** factor);
CROUT_API int64_t crout_cgetrf(crout_connection* connection, int64_t n,
                               const crout_complex_float* a, int64_t lda, crout_factor** factor);
CROUT_API int64_t crout_zgetrf(crout_connection* connection, int64_t n,
                               const crout_complex_double* a, int64_t lda, crout_factor** factor);

/* LAPACK's getrs on the server: op(A) X = B, where op(A) is A for trans 'N', A^T for 'T', and A^H
 * for 'C' (A^T for real matrices); lower-case letters are accepted. `n` is the order of A. B is n x
 * nrhs, column-major, ldb >= max(1, n). On exit B is X; on failure it is unchanged. The function
 * allocates n * nrhs elements for X. B may be complex if A is real. A real B with a complex A is
 * CROUT_INVALID_ARGUMENT, because X would be complex. The server measures the backward error. If
 * its fast solver is not accurate enough, it solves again with another solver.
 * crout_last_warnings() reports an X that may be inaccurate; crout_solve also returns the error.
 * Argument numbers for -i: 1 factor, 2 trans, 3 n, 4 nrhs, 5 b, 6 ldb. */
CROUT_API int64_t crout_sgetrs(const crout_factor* factor, char trans, int64_t n, int64_t nrhs,
                               float* b, int64_t ldb);
CROUT_API int64_t crout_dgetrs(const crout_factor* factor, char trans, int64_t n, int64_t nrhs,
                               double* b, int64_t ldb);
CROUT_API int64_t crout_cgetrs(const crout_factor* factor, char trans, int64_t n, int64_t nrhs,
                               crout_complex_float* b, int64_t ldb);
CROUT_API int64_t crout_zgetrs(const crout_factor* factor, char trans, int64_t n, int64_t nrhs,
                               crout_complex_double* b, int64_t ldb);

/* Bits of crout_warning about the result of the calling thread's last crout_?getrf or crout_?getrs
 * that succeeded; 0: none. */
CROUT_API int32_t crout_last_warnings(void);

/* Element types. */
typedef enum crout_dtype {
  CROUT_FLOAT32 = 1,
  CROUT_FLOAT64 = 2,
  CROUT_COMPLEX64 = 3, /* crout_complex_float */
  CROUT_COMPLEX128 = 4 /* crout_complex_double */
} crout_dtype;
typedef enum crout_layout { CROUT_COLUMN_MAJOR = 1, CROUT_ROW_MAJOR = 2 } crout_layout;

/* A dense rows x cols matrix in the caller's memory. Column j (row-major: row j), 0-based, starts
 * at data + j * ld elements; ld is at least the length of a column (row). `data` may be null if the
 * matrix is empty. */
typedef struct crout_matrix {
  const void* data;
  int32_t dtype;  /* crout_dtype */
  int32_t layout; /* crout_layout */
  int64_t rows;
  int64_t cols;
  int64_t ld;
} crout_matrix;

/* The structures below begin with their size, which the caller sets: initialise them with
 * {.struct_size = sizeof s}. Zero selects a field's default. Newer versions may append fields. */

typedef struct crout_factorize_options {
  size_t struct_size;
  const char* name;      /* name in lists; at most 128 bytes of UTF-8; null: none */
  const char* algorithm; /* croutctl's name, such as "getrf"; null: the server's choice */
  double lease;          /* seconds; 0: the server's default */
  int32_t condition;     /* not 0: estimate the reciprocal condition (costs a few solves) */
  /* For "multifrontal": smallest ratio of a pivot to the largest entry of its column in the front,
   * in (0, 1]; 0: 0.01. */
  double pivot_threshold;
  /* Precision of the factor of a CROUT_FLOAT64 or CROUT_COMPLEX128 matrix: "single", "tf32" or
   * "auto"; solves are corrected to full accuracy. Null: the precision of A. */
  const char* precision;
  crout_progress_function progress; /* null: the connection's */
  void* progress_context;           /* passed to `progress` */
  int32_t pin; /* not 0: the server keeps the factor in memory until its release, within limits */
  /* Not 0: the factor keeps a copy of A. If the server loses the factor (restart, eviction, end of
   * the lease, loss of a device), the next use factors the copy again. The handle then changes. */
  int32_t refactor_if_lost;
  /* Not 0: the server writes the factor to its disk before the call returns; it then survives a
   * restart of the server. CROUT_FAILED_PRECONDITION if the server has no store. */
  int32_t durable;
} crout_factorize_options;

/* Factors a square matrix. `options`: null for the defaults. A singular matrix is not an error:
 * crout_describe then reports info > 0. *factor as in crout_dgetrf. */
CROUT_API int crout_factorize(crout_connection* connection, const crout_matrix* a,
                              const crout_factorize_options* options, crout_factor** factor);

/* Attaches to a factor that another call or client of the tenant made: by its handle or, for any
 * other text, to the newest factor of this name. crout_release then frees the object and leaves the
 * factor on the server. CROUT_NOT_FOUND if there is none. *factor as in crout_dgetrf. */
CROUT_API int crout_attach(crout_connection* connection, const char* handle_or_name,
                           crout_factor** factor);

/* Replaces the factor by the factor of another matrix of the same order, with the original options
 * (of an attached factor: with the defaults). A concurrent solve of another client uses either the
 * old or the new factor. CROUT_SINGULAR if the new matrix is singular. On failure the old factor
 * stays; after a lost connection it may have been replaced. */
CROUT_API int crout_refactorize(crout_factor* factor, const crout_matrix* a);

/* A sparse n x n matrix in the caller's memory; initialise with {.struct_size = sizeof s}. Entry k,
 * 0 <= k < count, is values[k] in row rows[k] and column cols[k]. If `rows` is null, the matrix is
 * in compressed rows: the entries of row i are row_start[i] to row_start[i + 1] - 1, and row_start
 * has n + 1 elements. Indices are 0-based, in any order; duplicates are summed. Pointers to empty
 * arrays may be null. */
typedef struct crout_sparse {
  size_t struct_size;
  int32_t dtype;       /* crout_dtype */
  int32_t index_bytes; /* bytes of an index: 4 for int32_t, 8 for int64_t */
  int64_t n;           /* order */
  int64_t count;       /* number of entries, at most 2^31 - 1 */
  const void* values;
  const void* rows;
  const void* cols;
  const void* row_start; /* read if `rows` is null */
} crout_sparse;

/* Like crout_factorize and crout_refactorize, for a sparse matrix. The server factors it as sparse
 * if it predicts that this is cheaper, or if the options name a sparse method ("multifrontal"). The
 * server analyses a sparsity pattern once and reuses the analysis while a factor with this pattern
 * exists. */
CROUT_API int crout_factorize_sparse(crout_connection* connection, const crout_sparse* a,
                                     const crout_factorize_options* options, crout_factor** factor);
CROUT_API int crout_refactorize_sparse(crout_factor* factor, const crout_sparse* a);

/* Like crout_refactorize, for new values in the positions of the factor's sparse matrix. values[k],
 * 0 <= k < count, has the type `dtype` of that matrix and belongs to position k. Positions are
 * ordered by column, and by row within a column, as in compressed columns; each occurs once. The
 * server reuses the existing analysis. CROUT_FAILED_PRECONDITION if the matrix is not sparse, has
 * another number of positions, or was replaced on the server by a matrix with another pattern: send
 * the matrix in full. CROUT_INVALID_ARGUMENT for a factor with refactor_if_lost. */
CROUT_API int crout_refactorize_values(crout_factor* factor, int32_t dtype, const void* values,
                                       int64_t count);

/* op(A), in the order of LAPACK's 'N', 'T' and 'C'. */
typedef enum crout_operation {
  CROUT_NO_TRANSPOSE = 0,
  CROUT_TRANSPOSE = 1,          /* A^T */
  CROUT_CONJUGATE_TRANSPOSE = 2 /* A^H; A^T if A is real */
} crout_operation;

/* Bits of `warnings` fields and of crout_last_warnings(): reasons to check a result before relying
 * on it. */
typedef enum crout_warning {
  CROUT_WARNING_POOR_FACTOR = 2,      /* quality above 30 or excessive pivot growth; of a solve,
                                       * only if the backward error was not measured */
  CROUT_WARNING_NOT_ACCURATE = 8,     /* backward error not accepted, or X not finite */
  CROUT_WARNING_NEARLY_SINGULAR = 16, /* X may have no correct digit */
  CROUT_WARNING_PERTURBED_RCOND = 32  /* rcond belongs to a perturbed matrix */
} crout_warning;

typedef struct crout_solve_options {
  size_t struct_size;
  int32_t transpose;                /* crout_operation */
  int32_t max_refinement_steps;     /* largest number of refinement steps, 0 to 100 */
  int32_t error_bound;              /* not 0: estimate the forward error (costs a few solves) */
  int32_t skip_verification;        /* not 0: do not measure the backward error */
  crout_progress_function progress; /* null: the connection's */
  void* progress_context;           /* passed to `progress` */
} crout_solve_options;

typedef struct crout_solve_result {
  size_t struct_size;
  double backward_error; /* max over columns of |b - op(A) x| / (|op(A)| |x| + |b|), inf-norms; NaN
                          * if not measured */
  double forward_error_bound; /* relative, inf-norm, estimated; NaN unless requested */
  int64_t factor_version;     /* version of the factor: 1; each crout_refactorize adds 1 */
  int32_t refinement_steps;   /* steps whose corrections are in X */
  int32_t warnings;           /* crout_warning bits; 0: none */
} crout_solve_result;

/* Solves op(A) X = B for a dense B with as many rows as A. X goes to `x`, in the type, shape and
 * layout of B, with leading dimension ldx. CROUT_INVALID_ARGUMENT if x overlaps B, or if A is
 * complex and B is real. On failure the contents of x are undefined. `options` and `result` may be
 * null. */
CROUT_API int crout_solve(const crout_factor* factor, const crout_matrix* b,
                          const crout_solve_options* options, void* x, int64_t ldx,
                          crout_solve_result* result);

/* Description of a factor; initialise with {.struct_size = sizeof s}. */
typedef struct crout_description {
  size_t struct_size;
  int64_t n;           /* order of A */
  int64_t version;     /* 1; each crout_refactorize adds 1 */
  int64_t info;        /* LAPACK's: 0, or the 1-based index of the first zero pivot */
  double rcond;        /* reciprocal condition estimate, 1-norm; NaN unless requested */
  double pivot_growth; /* largest |entry| of U over largest |entry| of A; 0: unknown */
  double quality;      /* |P A - L U| / (n |A| eps): good near 1, poor above 30; NaN: unknown */
  double norm_one;     /* 1-norm of A */
  char handle[32];     /* identifies the factor to other clients of the tenant */
  int32_t warnings;    /* crout_warning bits; 0: none */
  int64_t lu_entries;  /* entries of a sparse L and U, without the unit diagonal; 0: dense */
} crout_description;

/* Describes the factor's last factorization. Does not call the server. */
CROUT_API int crout_describe(const crout_factor* factor, crout_description* description);

/* Drops the factor on the server, unless the object is attached to it, and frees the object, even
 * if it returns an error. Null is allowed. */
CROUT_API int crout_release(crout_factor* factor);

/* Strategy of a series of systems A_t X_t = B_t, in which each matrix is close to the previous one.
 * By default a step either iterates with the current factor from the last solution, or makes a new
 * factor, whichever is predicted to be cheaper. Every strategy solves each step to the requested
 * accuracy. See docs/series.md. */
typedef enum crout_strategy {
  CROUT_AUTO = 0,     /* smallest expected cost per step */
  CROUT_REUSE = 1,    /* the current factor while it reaches the accuracy */
  CROUT_REFACTOR = 2, /* a new factor in each step that sends a matrix */
  CROUT_UPDATE = 3    /* like CROUT_REUSE, with the factor updated for low-rank changes */
} crout_strategy;

typedef struct crout_series_options {
  size_t struct_size;
  double accuracy;   /* backward error to reach, in [0, 1); 0: sqrt(n) times B's unit roundoff */
  int32_t strategy;  /* crout_strategy */
  int32_t transpose; /* crout_operation of all steps */
  const char* algorithm; /* method of new factors; croutctl's name; null: the server's choice */
  const char* handle;    /* factor to start with (see crout_description); stays when the series is
                          * closed. Null: the first step sends a matrix */
  int32_t keep_factor;   /* not 0: crout_series_close leaves the series' own factor on the server
                          * until its lease ends */
  int32_t starts_at_x;   /* 0: the last solution is the initial guess. Not 0: `x` on entry is the
                          * guess; it must be finite. Zeros are the same as no guess */
} crout_series_options;

typedef struct crout_series_result {
  size_t struct_size;
  double backward_error;   /* see crout_solve_result; describes the returned X */
  double accuracy;         /* requested accuracy; not reached if backward_error is larger */
  double amplification;    /* lower bound of A's condition: max over columns of |op(A)| |x| / |b| */
  int64_t age;             /* steps since the current factor was made; 0: made in this step */
  int32_t strategy;        /* strategy used: CROUT_REUSE, CROUT_REFACTOR or CROUT_UPDATE */
  int32_t old_iterations;  /* applications of the old factor */
  int32_t new_iterations;  /* applications of a new factor */
  int32_t nearly_singular; /* not 0: X may have no correct digit */
  char handle[32];         /* handle of the current factor, for other calls */
  /* Digest of the entries of the last crout_series_text or crout_series_sparse, for crout_change.
   * Empty if a dense matrix was sent since. */
  char entry_digest[24];
} crout_series_result;

/* Begins a series. `options`: null for the defaults. Does not call the server: the first step
 * reports errors that the server finds. On success the caller owns *series and passes it to
 * crout_series_close. On failure *series is null. */
CROUT_API int crout_series_open(crout_connection* connection, const crout_series_options* options,
                                crout_series** series);

/* Solves op(A) X = B. `a`: null for the matrix of the previous step or, in the first step, of the
 * factor to start with. X goes to `x` as in crout_solve. `result` may be null. A failed step leaves
 * the series and its factor unchanged, but the next step must send its matrix. CROUT_SINGULAR: A is
 * singular and x is unchanged; the next step may use this matrix or a change of it.
 * CROUT_FAILED_PRECONDITION: the server no longer has the matrix, or the order of A differs from
 * the factor's. */
CROUT_API int crout_series_step(crout_series* series, const crout_matrix* a, const crout_matrix* b,
                                void* x, int64_t ldx, crout_series_result* result);

/* Like crout_series_step, with A in Matrix Market format: `length` bytes at `text`, plain or gzip,
 * real or complex. The server stores the numbers in the type `dtype` (crout_dtype). After a
 * coordinate text, later steps may send only new values of its entries: crout_change. */
CROUT_API int crout_series_text(crout_series* series, const char* text, size_t length,
                                int32_t dtype, const crout_matrix* b, void* x, int64_t ldx,
                                crout_series_result* result);

/* Like crout_series_step, with a sparse A. Later steps may send only new values of its entries, in
 * the same order: crout_change. */
CROUT_API int crout_series_sparse(crout_series* series, const crout_sparse* a,
                                  const crout_matrix* b, void* x, int64_t ldx,
                                  crout_series_result* result);

/* A change of the matrix of the previous step; initialise with {.struct_size = sizeof s}. The
 * elements have the type `dtype` of that matrix. There are three kinds:
 * - `rows` and `cols` set: entry (rows[k], cols[k]), 0-based, becomes values[k] for 0 <= k < count;
 *   each entry at most once.
 * - `v` set: U V^T is added, with U in `values`. Both are n x count, column-major, without gaps.
 * - `of_text` set: the `count` entries of the last crout_series_text or crout_series_sparse get new
 *   values, values[k] for entry k in their order. Duplicates are summed and symmetry is expanded as
 *   in the original. `entry_digest` comes from the result of the step that sent that matrix;
 *   CROUT_FAILED_PRECONDITION (PATTERN_MISMATCH) if another matrix was sent last. */
typedef struct crout_change {
  size_t struct_size;
  int32_t dtype; /* crout_dtype */
  int64_t count; /* number of entries, or the rank */
  const void* values;
  const int32_t* rows;
  const int32_t* cols;
  const void* v;
  int64_t n;                /* read if `v` is set */
  int32_t of_text;          /* not 0: new values; `rows`, `cols` and `v` are null */
  const char* entry_digest; /* read if `of_text` is set; null: digest of the last matrix */
} crout_change;

/* Like crout_series_step, with the matrix of the previous step changed by `change`. */
CROUT_API int crout_series_change(crout_series* series, const crout_change* change,
                                  const crout_matrix* b, void* x, int64_t ldx,
                                  crout_series_result* result);

/* Ends the series and frees the object, even if it returns an error. Drops the factor that the
 * series made, unless keep_factor is set. Null is allowed. */
CROUT_API int crout_series_close(crout_series* series);

#ifdef __cplusplus
}
#endif

#endif /* CROUT_CROUT_H_ */
