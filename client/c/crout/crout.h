/* Crout from C: LU factorizations on a server, and solves with them by handle.
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
 * Matrices are column-major with a leading dimension, as LAPACK has them, unless a crout_matrix
 * says otherwise. A matrix with gaps between its columns is sent without a copy of the whole.
 *
 * Errors. Functions return 0 (CROUT_OK), or a negative code: one of crout_code, and, from
 * crout_?getrf and crout_?getrs, -i where argument i (from 1) is illegal, as LAPACK has it. A
 * positive value is LAPACK's info > 0: the matrix is singular. crout_last_error() says more of
 * negative ones. Where a function fails, what it was to write is unchanged, unless said otherwise.
 * Calls that the server refused before any effect, or that are safe to repeat, are tried again
 * until the connection's timeout.
 *
 * Leases. The server drops a factor whose lease ends. While a crout_factor lives, a background
 * thread renews its lease. If that fails, the next function that uses the factor tries it again and
 * returns its error: CROUT_NOT_FOUND means that the server has lost the factor.
 *
 * Thread safety. A connection may be used by any number of threads at once, and so may a factor by
 * crout_?getrs, crout_solve and crout_describe. crout_refactorize and crout_release need the factor
 * to themselves. A series is of one thread at a time. Factors and series may outlive
 * crout_disconnect. The last error is each thread's own.
 *
 * No function throws or ends the process, whatever the server does; only gRPC itself gives up where
 * it gets no memory. But a program cannot load libcrout beside crout::client, or another library
 * with protocol types of google.rpc: libprotobuf ends programs that register a type twice.
 */
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

/* Complex elements: the real part, then the imaginary one, as C, C++ and Fortran have them. */
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

/* Of this header. */
#define CROUT_VERSION_MAJOR 0
#define CROUT_VERSION_MINOR 1
#define CROUT_VERSION_PATCH 0
#define CROUT_VERSION "0.1.0"

/* Of the library that runs, as "0.1.0". One of the same SONAME and a newer version has all that
 * this header declares. */
CROUT_API const char* crout_version(void);

/* Below what LAPACK's -i can be. Values are never given another meaning; more may come. */
typedef enum crout_code {
  CROUT_OK = 0,
  CROUT_INVALID_ARGUMENT = -101,    /* refused here or by the server: the text says what to do */
  CROUT_NOT_FOUND = -102,           /* the server has no such factor any more: factor again */
  CROUT_SINGULAR = -103,            /* no solve with a singular factor; none replaced by one */
  CROUT_FAILED_PRECONDITION = -104, /* not in this state: another order, a released factor */
  CROUT_UNREACHABLE = -105,         /* no server answered, or the connection was lost */
  CROUT_UNAVAILABLE = -106,         /* the server answered that it cannot serve now */
  CROUT_RESOURCE_EXHAUSTED = -107,  /* the server's queue or memory is full: later again */
  CROUT_DEADLINE_EXCEEDED = -108,   /* the connection's timeout, or the server's for uploads */
  CROUT_CANCELLED = -109,           /* the server cut the call off */
  CROUT_UNIMPLEMENTED = -110,       /* this server does not offer that */
  CROUT_OUT_OF_MEMORY = -111,       /* in this process */
  CROUT_INTERNAL = -112,            /* a defect, of the server or of this library */
  CROUT_ABORTED = -113,             /* an iterative method came to its limit of sweeps */
  CROUT_UNAUTHENTICATED = -114,     /* the server does not know who calls: see crout_options */
  CROUT_PERMISSION_DENIED = -115    /* who calls may not do that, or not as this tenant */
} crout_code;

/* Of the calling thread's last function that returned a negative code. CROUT_OK and "" before the
 * first. An illegal argument -i is CROUT_INVALID_ARGUMENT here. The text, in English and without a
 * newline, is valid until the thread's next failure. */
CROUT_API crout_code crout_last_error_code(void);
CROUT_API const char* crout_last_error(void);

typedef struct crout_connection crout_connection;
typedef struct crout_factor crout_factor;
typedef struct crout_series crout_series;

/* Makes a connection to `server` ("host:port" or "unix:PATH", or the name of a server in the file
 * that croutctl reads: $CROUT_SERVERS, or ~/.config/crout/servers.toml). Does not wait for the
 * server: the first call that needs one finds out. What is not said comes from the environment, as
 * for croutctl (CROUT_TENANT, CROUT_TLS, CROUT_CA, CROUT_CERT, CROUT_KEY, CROUT_TOKEN_FILE), and
 * then from that file. `tenant`: null or empty for the server's default.
 * `timeout`: seconds for each call, retries included; 0 for two hours, INFINITY for none. On exit
 * *connection is the caller's, to be given to crout_disconnect; null on failure. */
CROUT_API int crout_connect(const char* server, const char* tenant, double timeout,
                            crout_connection** connection);

/* What a connection can be told; initialise it with {.struct_size = sizeof s}. Files are
 * PEM, and read when the connection is made; a key and a token's file are refused where others can
 * read them, and a token goes to servers with TLS, on Unix sockets and on loopback alone
 * (CROUT_INVALID_ARGUMENT). */
typedef struct crout_options {
  size_t struct_size;
  const char* server;  /* as in crout_connect; null or empty: $CROUT_SERVER, else 127.0.0.1:50051 */
  const char* tenant;  /* as in crout_connect */
  double timeout;      /* likewise */
  int tls;             /* not 0: the server speaks TLS, as it does where one of the next is set */
  const char* ca_file; /* who signs servers' certificates; null: the system's authorities */
  const char* cert_file;   /* a certificate to show the server, */
  const char* key_file;    /* and its key */
  const char* server_name; /* that the server's certificate has; null: the address's */
  const char* token_file;  /* has a bearer token, by which the server knows who calls */
} crout_options;

/* As crout_connect. `options`: null for the defaults. */
CROUT_API int crout_connect_with(const crout_options* options, crout_connection** connection);

/* Null is allowed. */
CROUT_API void crout_disconnect(crout_connection* connection);

/* LAPACK's getrf on the server: A = P L U, A n x n, column-major, lda >= max(1, n). A is not
 * overwritten. On exit *factor holds P, L and U, and is the caller's, to be given to crout_release;
 * null where the code is negative. info > 0: U(info, info) is exactly zero; the factor can be
 * described, but not solved with.
 * Arguments for -i: 1 connection, 2 n, 3 a, 4 lda, 5 factor. */
CROUT_API int64_t crout_sgetrf(crout_connection* connection, int64_t n, const float* a, int64_t lda,
                               crout_factor** factor);
CROUT_API int64_t crout_dgetrf(crout_connection* connection, int64_t n, const double* a,
                               int64_t lda, crout_factor** factor);
CROUT_API int64_t crout_cgetrf(crout_connection* connection, int64_t n,
                               const crout_complex_float* a, int64_t lda, crout_factor** factor);
CROUT_API int64_t crout_zgetrf(crout_connection* connection, int64_t n,
                               const crout_complex_double* a, int64_t lda, crout_factor** factor);

/* LAPACK's getrs on the server: op(A) X = B, with op(A) = A for trans 'N', A^T for 'T', and A^H for
 * 'C', which is A^T for real matrices; small letters too. `n` is the order of A. B is n x nrhs,
 * column-major, ldb >= max(1, n); on exit X, and unchanged on failure. A real A solves for a
 * complex B too; of a complex A and a real B, X would be complex: CROUT_INVALID_ARGUMENT. Memory
 * for X is taken besides. The server measures the backward error, and replaces what a fast solver
 * got wrong; crout_solve says how large it is.
 * Arguments for -i: 1 factor, 2 trans, 3 n, 4 nrhs, 5 b, 6 ldb. */
CROUT_API int64_t crout_sgetrs(const crout_factor* factor, char trans, int64_t n, int64_t nrhs,
                               float* b, int64_t ldb);
CROUT_API int64_t crout_dgetrs(const crout_factor* factor, char trans, int64_t n, int64_t nrhs,
                               double* b, int64_t ldb);
CROUT_API int64_t crout_cgetrs(const crout_factor* factor, char trans, int64_t n, int64_t nrhs,
                               crout_complex_float* b, int64_t ldb);
CROUT_API int64_t crout_zgetrs(const crout_factor* factor, char trans, int64_t n, int64_t nrhs,
                               crout_complex_double* b, int64_t ldb);

typedef enum crout_dtype {
  CROUT_FLOAT32 = 1,
  CROUT_FLOAT64 = 2,
  CROUT_COMPLEX64 = 3, /* crout_complex_float */
  CROUT_COMPLEX128 = 4 /* crout_complex_double */
} crout_dtype;
typedef enum crout_layout { CROUT_COLUMN_MAJOR = 1, CROUT_ROW_MAJOR = 2 } crout_layout;

/* A dense matrix in the caller's memory. Column (row) j starts at data + j * ld elements; ld is at
 * least the length of a column (row). `data` may be null where the matrix is empty. */
typedef struct crout_matrix {
  const void* data;
  int32_t dtype;  /* crout_dtype */
  int32_t layout; /* crout_layout */
  int64_t rows;
  int64_t cols;
  int64_t ld;
} crout_matrix;

/* Structures below begin with their size, which the caller sets: initialise them with
 * {.struct_size = sizeof s}. Zeros are the defaults. Newer versions may add fields at the end. */

typedef struct crout_factorize_options {
  size_t struct_size;
  const char* name;      /* to find the factor by; at most 128 bytes of UTF-8; null: none */
  const char* algorithm; /* as croutctl names it: "getrf"; null: the server's choice */
  double lease;          /* seconds; 0: the server's default */
  int32_t condition;     /* not 0: estimate the reciprocal condition, at the cost of a few solves */
  /* Of "multifrontal": the part of the largest entry of its column in a front that a pivot has at
   * least, in (0, 1]; 0: 0.01. */
  double pivot_threshold;
} crout_factorize_options;

/* Factors a square matrix. `options`: null for the defaults. Returns 0 also where the matrix is
 * singular: crout_describe has info. On exit as crout_dgetrf. */
CROUT_API int crout_factorize(crout_connection* connection, const crout_matrix* a,
                              const crout_factorize_options* options, crout_factor** factor);

/* Replaces the factor by that of another matrix of the same order, with the options it was made
 * with; solves that run meanwhile use one or the other. CROUT_SINGULAR where the new matrix is
 * singular. On failure the factor stays as it was, unless the connection was lost: then either. */
CROUT_API int crout_refactorize(crout_factor* factor, const crout_matrix* a);

/* A sparse square matrix in the caller's memory; initialise it with {.struct_size = sizeof s}.
 * Entry k, of `count`, is values[k] in column cols[k] and row rows[k]; or, where `rows` is null, of
 * compressed rows: those of row i are row_start[i] to row_start[i + 1] - 1, and row_start has n + 1
 * elements. Indices are from 0, in any order; entries of one place are added up. Null pointers are
 * allowed to arrays without elements. */
typedef struct crout_sparse {
  size_t struct_size;
  int32_t dtype;       /* crout_dtype */
  int32_t index_bytes; /* of an index: 4 for int32_t, 8 for int64_t */
  int64_t n;
  int64_t count; /* at most 2^31 - 1 */
  const void* values;
  const void* rows;
  const void* cols;
  const void* row_start; /* read where `rows` is null */
} crout_sparse;

/* As crout_factorize and crout_refactorize. The server keeps the matrix and its factor sparse where
 * that is expected to cost less, or where the options name a sparse method ("multifrontal"); it
 * analyses a pattern once, as long as a factor of it lives. */
CROUT_API int crout_factorize_sparse(crout_connection* connection, const crout_sparse* a,
                                     const crout_factorize_options* options, crout_factor** factor);
CROUT_API int crout_refactorize_sparse(crout_factor* factor, const crout_sparse* a);

/* As crout_refactorize, of a matrix that has its entries where the factor's sparse matrix has them:
 * values[k], of the factor's type `dtype`, for the k-th of its `count` places, by columns, and by
 * rows within a column, as compressed columns have them; each place once. Nothing is analysed
 * again. CROUT_FAILED_PRECONDITION where that matrix has not `count` places, is not sparse, or was
 * replaced on the server by one of another pattern: send this one in full. */
CROUT_API int crout_refactorize_values(crout_factor* factor, int32_t dtype, const void* values,
                                       int64_t count);

/* op(A), in the order of LAPACK's 'N', 'T' and 'C'. */
typedef enum crout_operation {
  CROUT_NO_TRANSPOSE = 0,
  CROUT_TRANSPOSE = 1,          /* A^T */
  CROUT_CONJUGATE_TRANSPOSE = 2 /* A^H; A^T where A is real */
} crout_operation;

/* Bits of `warnings`: why a result should not be relied on without a look at it. */
typedef enum crout_warning {
  CROUT_WARNING_POOR_FACTOR = 2,      /* quality above 30, or entries that grew too much, where the
                                       * backward error was not measured */
  CROUT_WARNING_NOT_ACCURATE = 8,     /* the backward error is not accepted, or X is not finite */
  CROUT_WARNING_NEARLY_SINGULAR = 16, /* X may have no correct digit */
  CROUT_WARNING_PERTURBED_RCOND = 32  /* rcond is that of a matrix nearby */
} crout_warning;

typedef struct crout_solve_options {
  size_t struct_size;
  int32_t transpose;            /* crout_operation */
  int32_t max_refinement_steps; /* of iterative refinement, at most 100 */
  int32_t error_bound;          /* not 0: estimate the forward error, at the cost of a few solves */
} crout_solve_options;

typedef struct crout_solve_result {
  size_t struct_size;
  double backward_error; /* max over columns of |b - op(A) x| / (|op(A)| |x| + |b|), inf-norms */
  double forward_error_bound; /* NaN unless asked for */
  int64_t factor_version;     /* which factor was used: 1, or more after crout_refactorize */
  int32_t refinement_steps;   /* whose corrections X holds */
  int32_t warnings;           /* crout_warning bits; 0: nothing to warn of */
} crout_solve_result;

/* Solves op(A) X = B. X goes to `x`, in the type, shape and layout of B, with leading dimension
 * ldx; CROUT_INVALID_ARGUMENT where that overlaps B, and where A is complex and B is not. Its
 * contents are undefined on failure. `options` and `result` may be null. */
CROUT_API int crout_solve(const crout_factor* factor, const crout_matrix* b,
                          const crout_solve_options* options, void* x, int64_t ldx,
                          crout_solve_result* result);

typedef struct crout_description {
  size_t struct_size;
  int64_t n;           /* order of A */
  int64_t version;     /* 1, and one more for each crout_refactorize */
  int64_t info;        /* LAPACK's: 0, or the first pivot that is exactly zero, from 1 */
  double rcond;        /* reciprocal condition estimate in the 1-norm; NaN unless asked for */
  double pivot_growth; /* largest |entry| of U over largest |entry| of A; 0: not told */
  double quality;      /* |P A - L U| / (n |A| eps): around 1 is good, 30 poor; NaN: not known */
  double norm_one;     /* 1-norm of A */
  char handle[32];     /* names the factor to other clients of the tenant */
  int32_t warnings;    /* crout_warning bits; 0: nothing to warn of */
} crout_description;

/* As of the last factorization; does not ask the server. */
CROUT_API int crout_describe(const crout_factor* factor, crout_description* description);

/* Drops the factor on the server, and its object here whatever the code. Null is allowed. */
CROUT_API int crout_release(crout_factor* factor);

/* Systems A_t X_t = B_t, one after the other, each matrix near the one before. A step is solved
 * with the factor that is there, by iterations from the last solution, or with a new factor,
 * whichever is expected to cost less, to the accuracy asked. How a step is solved (docs/series.md):
 */
typedef enum crout_strategy {
  CROUT_AUTO = 0,     /* what is expected to cost least over the time to come */
  CROUT_REUSE = 1,    /* the factor that is there, as long as it gets X to the accuracy */
  CROUT_REFACTOR = 2, /* a new factor in each step that brings a matrix */
  CROUT_UPDATE = 3    /* as CROUT_REUSE, brought up to changes of low rank */
} crout_strategy;

typedef struct crout_series_options {
  size_t struct_size;
  double accuracy;   /* backward error to reach, in [0, 1); 0: sqrt(n) times B's unit roundoff */
  int32_t strategy;  /* crout_strategy */
  int32_t transpose; /* crout_operation: which systems, of all steps */
  const char* algorithm; /* of new factors, as croutctl names it; null: the server's choice */
  const char* handle;    /* of a factor to begin with (crout_description has one), which stays when
                          * the series is closed; null: the first step brings a matrix */
  int32_t keep_factor;   /* not 0: the series' own factor is left to its lease, too */
  int32_t starts_at_x; /* not 0: iterations of each step start at what `x` holds on entry, which is
                        * finite, else at the last solution; zeros are as if there were none */
} crout_series_options;

typedef struct crout_series_result {
  size_t struct_size;
  double backward_error; /* as crout_solve_result has it, of X as it was delivered */
  double accuracy;       /* that was asked; X may be less accurate: then backward_error is larger */
  double amplification;  /* max over columns of |op(A)| |x| / |b|: A's condition is at least that */
  int64_t age;           /* steps since the factor that is there was made; 0: in this one */
  int32_t strategy;      /* what solved it: CROUT_REUSE, CROUT_REFACTOR or CROUT_UPDATE */
  int32_t old_iterations;  /* applications of the factor that was there, */
  int32_t new_iterations;  /* and of a new one */
  int32_t nearly_singular; /* not 0: X may have no correct digit */
  char handle[32];         /* of the factor that is there, for any other call */
  /* Digest of the entries of the last crout_series_text or crout_series_sparse: crout_change. Empty
   * where a dense matrix came since. */
  char entry_digest[24];
} crout_series_result;

/* Begins a series; what needs the server is told by the first step. `options`: null for the
 * defaults. On exit *series is the caller's, to be given to crout_series_close; null on failure. */
CROUT_API int crout_series_open(crout_connection* connection, const crout_series_options* options,
                                crout_series** series);

/* Solves op(A) X = B. `a`: null for the matrix of the step before, at first that of the factor to
 * begin with. X goes to `x` as in crout_solve, in B's type. `result` may be null. A step that fails
 * leaves the series and its factor as they are, but the next one has to bring its matrix.
 * CROUT_SINGULAR: A is singular, x is unchanged; the next step may be one of this matrix, or of a
 * change of it. CROUT_FAILED_PRECONDITION: the server has no such matrix any more, or A is of
 * another order than the factor. */
CROUT_API int crout_series_step(crout_series* series, const crout_matrix* a, const crout_matrix* b,
                                void* x, int64_t ldx, crout_series_result* result);

/* The same with A in Matrix Market format: `length` bytes at `text`, plain or compressed by gzip,
 * of real numbers or complex ones, which the server keeps in the type `dtype` (crout_dtype). Where
 * it lists entries, the steps that follow may bring those entries' values alone: crout_change. */
CROUT_API int crout_series_text(crout_series* series, const char* text, size_t length,
                                int32_t dtype, const crout_matrix* b, void* x, int64_t ldx,
                                crout_series_result* result);

/* The same with a sparse A; the steps that follow may bring its values alone, in the order of its
 * entries here: crout_change. */
CROUT_API int crout_series_sparse(crout_series* series, const crout_sparse* a,
                                  const crout_matrix* b, void* x, int64_t ldx,
                                  crout_series_result* result);

/* How A follows from the matrix of the step before; initialise it with {.struct_size = sizeof s}.
 * The elements are of that matrix's type, and `dtype` says which that is. Either `rows` and `cols`
 * are set: entry (rows[k], cols[k]), from 0, becomes values[k], k < count, each entry once. Or `v`
 * is: U V^T is added, U in `values`, both n x count, column-major, without gaps. Or `of_text` is: A
 * is the matrix of the last crout_series_text or crout_series_sparse with values[k] in the k-th of
 * its `count` entries, in their order; duplicates are summed, and symmetry is expanded, as there.
 * With `entry_digest`, from the result of the step that brought the matrix whose entries these are,
 * CROUT_FAILED_PRECONDITION (PATTERN_MISMATCH) where another one came last. */
typedef struct crout_change {
  size_t struct_size;
  int32_t dtype; /* crout_dtype */
  int64_t count; /* entries; the rank */
  const void* values;
  const int32_t* rows;
  const int32_t* cols;
  const void* v;
  int64_t n;                /* read where `v` is set */
  int32_t of_text;          /* not 0: without `rows`, `cols` and `v` */
  const char* entry_digest; /* read where `of_text` is set; null: the last matrix's digest */
} crout_change;

/* As crout_series_step without a matrix, of the matrix that `change` makes. */
CROUT_API int crout_series_change(crout_series* series, const crout_change* change,
                                  const crout_matrix* b, void* x, int64_t ldx,
                                  crout_series_result* result);

/* Ends the series, whatever the code, and drops the factor that it made. Null is allowed. */
CROUT_API int crout_series_close(crout_series* series);

#ifdef __cplusplus
}
#endif

#endif /* CROUT_CROUT_H_ */
