! SPDX-License-Identifier: Apache-2.0

!> Crout from Fortran 2008: LU factorizations on a server. Binds the functions of libcrout (crout.h).
!>
!>   call crout_connect("127.0.0.1:50051", server, info)
!>   call crout_getrf(server, n, a, lda, lu, info)         ! A = P L U, on the server
!>   call crout_getrs(lu, "N", n, nrhs, b, ldb, info)      ! op(A) X = B; B is X on exit
!>   call crout_refactor(lu, n, a, lda, info)              ! another A of the same order
!>   call crout_factorize_sparse(server, n, nnz, rows, cols, values, lu, info)
!>   call crout_refactor_values(lu, nnz, values, info)     ! new values in the same positions
!>   call crout_release(lu, info)
!>   call crout_disconnect(server)
!>
!> Arguments are as in LAPACK, with real or complex arrays of kind real32 or real64. Matrices are
!> column-major. `info` is 0 on success, and positive if A is singular. It is -i if the i-th argument of the
!> function in crout.h is illegal; other negative values are the codes below. crout_last_error() returns the
!> message of a negative code. The rules of crout.h for threads apply.
!>
!> Compile this file with the program's own compiler, because module files are not portable, and link
!> libcrout:
!>   gfortran $(pkg-config --variable=fortran_module crout) app.f90 $(pkg-config --libs crout)
module crout
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: real32, real64
  implicit none
  private

  public :: crout_connection, crout_factor, crout_description
  public :: crout_progress, crout_progress_procedure
  public :: crout_connect, crout_disconnect, crout_getrf, crout_getrs, crout_refactor
  public :: crout_factorize_sparse, crout_refactor_values
  public :: crout_describe, crout_release, crout_last_error, crout_last_warnings, crout_version

  !> Bits of description%warnings and of crout_last_warnings(), as crout_warning of crout.h.
  enum, bind(C)
    enumerator :: crout_warning_poor_factor = 2
    enumerator :: crout_warning_not_accurate = 8
    enumerator :: crout_warning_nearly_singular = 16
    enumerator :: crout_warning_perturbed_rcond = 32
  end enum

  !> Error codes of crout.h.
  enum, bind(C)
    enumerator :: crout_ok = 0
    enumerator :: crout_invalid_argument = -101
    enumerator :: crout_not_found = -102
    enumerator :: crout_singular = -103
    enumerator :: crout_failed_precondition = -104
    enumerator :: crout_unreachable = -105
    enumerator :: crout_unavailable = -106
    enumerator :: crout_resource_exhausted = -107
    enumerator :: crout_deadline_exceeded = -108
    enumerator :: crout_cancelled = -109
    enumerator :: crout_unimplemented = -110
    enumerator :: crout_out_of_memory = -111
    enumerator :: crout_internal = -112
    enumerator :: crout_aborted = -113
    enumerator :: crout_unauthenticated = -114
    enumerator :: crout_permission_denied = -115
  end enum
  public :: crout_warning_poor_factor, crout_warning_not_accurate
  public :: crout_warning_nearly_singular, crout_warning_perturbed_rcond
  public :: crout_ok, crout_invalid_argument, crout_not_found, crout_singular
  public :: crout_failed_precondition, crout_unreachable, crout_unavailable
  public :: crout_resource_exhausted, crout_deadline_exceeded, crout_cancelled
  public :: crout_unimplemented, crout_out_of_memory, crout_internal, crout_aborted
  public :: crout_unauthenticated, crout_permission_denied

  !> Phases of a call, as crout_phase of crout.h.
  enum, bind(C)
    enumerator :: crout_phase_receive = 1
    enumerator :: crout_phase_queue = 2
    enumerator :: crout_phase_factor = 3
    enumerator :: crout_phase_solve = 4
    enumerator :: crout_phase_analyze = 5
  end enum
  public :: crout_phase_receive, crout_phase_queue, crout_phase_factor, crout_phase_solve
  public :: crout_phase_analyze

  !> Progress of a call, with the fields of crout_progress in crout.h. `phase`: crout_phase_*, or 0 for a
  !> report of sent bytes.
  type, bind(C) :: crout_progress
    integer(c_int32_t) :: phase
    integer(c_int32_t) :: jobs_ahead
    integer(c_int64_t) :: bytes_sent
    integer(c_int64_t) :: bytes_total
    real(c_double) :: predicted_seconds
    integer(c_int64_t) :: columns_done
    integer(c_int64_t) :: columns
    integer(c_int32_t) :: steps_done
    integer(c_int32_t) :: steps
  end type

  abstract interface
    !> Receives the progress of calls, on the thread of the call: after each sent message, and for each report
    !> of the server. Must be a module or external procedure, and must not call procedures of this module.
    !> `context` is c_null_ptr.
    subroutine crout_progress_procedure(progress, context) bind(C)
      import
      type(crout_progress), intent(in) :: progress
      type(c_ptr), value :: context
    end subroutine
  end interface

  !> A connection to a server. Do not copy it while it is open.
  type :: crout_connection
    private
    type(c_ptr) :: ptr = c_null_ptr
  end type

  !> A factor on a server. Do not copy it while it holds a factor.
  type :: crout_factor
    private
    type(c_ptr) :: ptr = c_null_ptr
  end type

  !> Description of a factor, with the fields of crout_description in crout.h.
  type, bind(C) :: crout_description
    integer(c_size_t) :: struct_size
    integer(c_int64_t) :: n
    integer(c_int64_t) :: version
    integer(c_int64_t) :: info
    real(c_double) :: rcond
    real(c_double) :: pivot_growth
    real(c_double) :: quality
    real(c_double) :: norm_one
    character(kind=c_char) :: handle(32)
    !> Sum of crout_warning_poor_factor (2), crout_warning_nearly_singular (16) and
    !> crout_warning_perturbed_rcond (32), where they apply; 0: none.
    integer(c_int32_t) :: warnings
    !> Entries of a sparse L and U, without the unit diagonal; 0 if they are dense.
    integer(c_int64_t) :: lu_entries
  end type

  ! crout_options, crout_matrix, crout_sparse and crout_factorize_options of crout.h.
  type, bind(C) :: connect_options
    integer(c_size_t) :: struct_size
    type(c_ptr) :: server
    type(c_ptr) :: tenant
    real(c_double) :: timeout
    integer(c_int) :: tls
    type(c_ptr) :: ca_file
    type(c_ptr) :: cert_file
    type(c_ptr) :: key_file
    type(c_ptr) :: server_name
    type(c_ptr) :: token_file
    type(c_funptr) :: progress
    type(c_ptr) :: progress_context
    type(c_ptr) :: priority
  end type
  type, bind(C) :: matrix_view
    type(c_ptr) :: data
    integer(c_int32_t) :: dtype
    integer(c_int32_t) :: layout
    integer(c_int64_t) :: rows
    integer(c_int64_t) :: cols
    integer(c_int64_t) :: ld
  end type
  type, bind(C) :: sparse_view
    integer(c_size_t) :: struct_size
    integer(c_int32_t) :: dtype
    integer(c_int32_t) :: index_bytes
    integer(c_int64_t) :: n
    integer(c_int64_t) :: count
    type(c_ptr) :: values
    type(c_ptr) :: rows
    type(c_ptr) :: cols
    type(c_ptr) :: row_start
  end type
  type, bind(C) :: factorize_options
    integer(c_size_t) :: struct_size
    type(c_ptr) :: name
    type(c_ptr) :: algorithm
    real(c_double) :: lease
    integer(c_int32_t) :: condition
    real(c_double) :: pivot_threshold
    type(c_ptr) :: precision
    type(c_funptr) :: progress
    type(c_ptr) :: progress_context
    integer(c_int32_t) :: pin
    integer(c_int32_t) :: refactor_if_lost
  end type
  ! Values of crout_dtype and crout_layout.
  integer(c_int32_t), parameter :: float32 = 1, float64 = 2, complex64 = 3, complex128 = 4
  integer(c_int32_t), parameter :: column_major = 1

  !> call crout_getrf(connection, n, a, lda, factor, info, pin, refactor_if_lost)
  !>
  !> Factors the n x n matrix A in a(lda, *), lda >= max(1, n). A is not changed. First releases the factor
  !> that `factor` holds, if any. On exit `factor` holds the new factor if info >= 0. If info > 0, U(info,
  !> info) is exactly zero and solves with the factor fail.
  !>
  !> Optional logicals: with `pin` the server neither evicts the factor nor moves it to host memory. With
  !> `refactor_if_lost` the factor keeps a copy of A, and the next use factors the copy again if the server has
  !> lost the factor.
  interface crout_getrf
    module procedure getrf_real32, getrf_real64, getrf_complex32, getrf_complex64
  end interface

  !> call crout_getrs(factor, trans, n, nrhs, b, ldb, info)
  !>
  !> Solves op(A) X = B, where op(A) is A for trans "N", the transpose for "T" and the conjugate transpose for
  !> "C". B is n x nrhs in b(ldb, *), or concatenated columns in a vector b(*); ldb >= max(1, n). On exit B is
  !> X; it is unchanged if info is not 0. B must be complex if A is complex, and may be complex if A is real.
  interface crout_getrs
    module procedure getrs_real32, getrs_real64, getrs_vector_real32, getrs_vector_real64
    module procedure getrs_complex32, getrs_complex64
    module procedure getrs_vector_complex32, getrs_vector_complex64
  end interface

  !> call crout_refactor(factor, n, a, lda, info)
  !>
  !> Replaces the factor by the factor of another matrix of the same order, n x n in a(lda, *). The old factor
  !> stays if info is not 0; after a lost connection it may have been replaced.
  interface crout_refactor
    module procedure refactor_real32, refactor_real64, refactor_complex32, refactor_complex64
  end interface

  !> call crout_factorize_sparse(connection, n, nnz, rows, cols, values, factor, info, algorithm, &
  !>                             pivot_threshold, pin, refactor_if_lost)
  !>
  !> Factors a sparse n x n matrix with nnz entries: values(k) in row rows(k) and column cols(k). Indices are
  !> 1-based, in any order; duplicates are summed. The server factors the matrix as sparse if it predicts that
  !> this is cheaper, or if `algorithm` names a sparse method, such as "multifrontal". If `algorithm` is
  !> absent, the server chooses. `pivot_threshold`, for multifrontal, is the smallest ratio of a pivot to the
  !> largest entry of its column in the front, in (0, 1]; default 0.01. Otherwise as crout_getrf.
  interface crout_factorize_sparse
    module procedure sparse_real32, sparse_real64, sparse_complex32, sparse_complex64
  end interface

  !> call crout_refactor_values(factor, nnz, values, info)
  !>
  !> Like crout_refactor, with new values for the nnz positions of the factor's sparse matrix, which must have
  !> been factored as sparse. Values are ordered by column, and by row within a column; each position occurs
  !> once.
  interface crout_refactor_values
    module procedure values_real32, values_real64, values_complex32, values_complex64
  end interface

  interface
    function crout_sgetrf(connection, n, a, lda, factor) result(info) bind(C)
      import
      type(c_ptr), value :: connection
      integer(c_int64_t), value :: n, lda
      real(c_float), intent(in) :: a(*)
      type(c_ptr), intent(out) :: factor
      integer(c_int64_t) :: info
    end function
    function crout_dgetrf(connection, n, a, lda, factor) result(info) bind(C)
      import
      type(c_ptr), value :: connection
      integer(c_int64_t), value :: n, lda
      real(c_double), intent(in) :: a(*)
      type(c_ptr), intent(out) :: factor
      integer(c_int64_t) :: info
    end function
    function crout_sgetrs(factor, trans, n, nrhs, b, ldb) result(info) bind(C)
      import
      type(c_ptr), value :: factor
      integer(c_signed_char), value :: trans  ! gfortran 12 passes characters by value incorrectly
      integer(c_int64_t), value :: n, nrhs, ldb
      real(c_float), intent(inout) :: b(*)
      integer(c_int64_t) :: info
    end function
    function crout_dgetrs(factor, trans, n, nrhs, b, ldb) result(info) bind(C)
      import
      type(c_ptr), value :: factor
      integer(c_signed_char), value :: trans  ! gfortran 12 passes characters by value incorrectly
      integer(c_int64_t), value :: n, nrhs, ldb
      real(c_double), intent(inout) :: b(*)
      integer(c_int64_t) :: info
    end function
    function crout_cgetrf(connection, n, a, lda, factor) result(info) bind(C)
      import
      type(c_ptr), value :: connection
      integer(c_int64_t), value :: n, lda
      complex(c_float_complex), intent(in) :: a(*)
      type(c_ptr), intent(out) :: factor
      integer(c_int64_t) :: info
    end function
    function crout_zgetrf(connection, n, a, lda, factor) result(info) bind(C)
      import
      type(c_ptr), value :: connection
      integer(c_int64_t), value :: n, lda
      complex(c_double_complex), intent(in) :: a(*)
      type(c_ptr), intent(out) :: factor
      integer(c_int64_t) :: info
    end function
    function crout_cgetrs(factor, trans, n, nrhs, b, ldb) result(info) bind(C)
      import
      type(c_ptr), value :: factor
      integer(c_signed_char), value :: trans  ! gfortran 12 passes characters by value incorrectly
      integer(c_int64_t), value :: n, nrhs, ldb
      complex(c_float_complex), intent(inout) :: b(*)
      integer(c_int64_t) :: info
    end function
    function crout_zgetrs(factor, trans, n, nrhs, b, ldb) result(info) bind(C)
      import
      type(c_ptr), value :: factor
      integer(c_signed_char), value :: trans  ! gfortran 12 passes characters by value incorrectly
      integer(c_int64_t), value :: n, nrhs, ldb
      complex(c_double_complex), intent(inout) :: b(*)
      integer(c_int64_t) :: info
    end function
    function c_connect(options, connection) result(code) bind(C, name="crout_connect_with")
      import
      type(connect_options), intent(in) :: options
      type(c_ptr), intent(out) :: connection
      integer(c_int) :: code
    end function
    subroutine c_disconnect(connection) bind(C, name="crout_disconnect")
      import
      type(c_ptr), value :: connection
    end subroutine
    function c_refactorize(factor, a) result(code) bind(C, name="crout_refactorize")
      import
      type(c_ptr), value :: factor
      type(matrix_view), intent(in) :: a
      integer(c_int) :: code
    end function
    function c_factorize(connection, a, options, factor) result(code) bind(C, name="crout_factorize")
      import
      type(c_ptr), value :: connection
      type(matrix_view), intent(in) :: a
      type(factorize_options), intent(in) :: options
      type(c_ptr), intent(out) :: factor
      integer(c_int) :: code
    end function
    function c_factorize_sparse(connection, a, options, factor) result(code) &
        bind(C, name="crout_factorize_sparse")
      import
      type(c_ptr), value :: connection
      type(sparse_view), intent(in) :: a
      type(factorize_options), intent(in) :: options
      type(c_ptr), intent(out) :: factor
      integer(c_int) :: code
    end function
    function c_refactorize_values(factor, dtype, values, count) result(code) &
        bind(C, name="crout_refactorize_values")
      import
      type(c_ptr), value :: factor
      integer(c_int32_t), value :: dtype
      type(c_ptr), value :: values
      integer(c_int64_t), value :: count
      integer(c_int) :: code
    end function
    function c_describe(factor, description) result(code) bind(C, name="crout_describe")
      import
      type(c_ptr), value :: factor
      type(crout_description), intent(inout) :: description
      integer(c_int) :: code
    end function
    function c_release(factor) result(code) bind(C, name="crout_release")
      import
      type(c_ptr), value :: factor
      integer(c_int) :: code
    end function
    function c_last_error() result(text) bind(C, name="crout_last_error")
      import
      type(c_ptr) :: text
    end function
    !> Warnings about the thread's last successful crout_getrf or crout_getrs: a sum of the crout_warning_*
    !> values above; 0: none.
    function crout_last_warnings() result(bits) bind(C, name="crout_last_warnings")
      import
      integer(c_int32_t) :: bits
    end function
    function c_version() result(text) bind(C, name="crout_version")
      import
      type(c_ptr) :: text
    end function
    function c_strlen(text) result(length) bind(C, name="strlen")
      import
      type(c_ptr), value :: text
      integer(c_size_t) :: length
    end function
  end interface

contains

  !> Connects to a server. First disconnects `connection`. Does not wait for the server: the first call that
  !> needs it reports an unreachable server. `server`: "host:port", "unix:PATH" or a server name, as in
  !> crout.h; trailing blanks are ignored; blank for $CROUT_SERVER, otherwise 127.0.0.1:50051. `tenant`:
  !> default the server's. `timeout`: seconds for each call; default two hours. `progress`: receives the
  !> progress of all calls with this connection and its factors; default none. `priority`: "interactive",
  !> "normal" or "batch" among the calls of the tenant; default "normal".
  subroutine crout_connect(server, connection, info, tenant, timeout, progress, priority)
    character(len=*), intent(in) :: server
    type(crout_connection), intent(inout) :: connection
    integer, intent(out) :: info
    character(len=*), intent(in), optional :: tenant
    real(real64), intent(in), optional :: timeout
    procedure(crout_progress_procedure), optional :: progress
    character(len=*), intent(in), optional :: priority
    character(len=:, kind=c_char), allocatable, target :: address, owner, urgency
    type(connect_options) :: options

    address = trim(server)//c_null_char
    owner = c_null_char
    if (present(tenant)) owner = trim(tenant)//c_null_char
    urgency = c_null_char
    if (present(priority)) urgency = trim(priority)//c_null_char
    options = connect_options(c_sizeof(options), c_loc(address), c_loc(owner), 0, 0, c_null_ptr, c_null_ptr, &
                              c_null_ptr, c_null_ptr, c_null_ptr, c_null_funptr, c_null_ptr, c_loc(urgency))
    if (present(timeout)) options%timeout = timeout
    if (present(progress)) options%progress = c_funloc(progress)
    call crout_disconnect(connection)
    info = c_connect(options, connection%ptr)
  end subroutine

  !> Closes a connection. Does nothing if it is not open.
  subroutine crout_disconnect(connection)
    type(crout_connection), intent(inout) :: connection

    call c_disconnect(connection%ptr)
    connection%ptr = c_null_ptr
  end subroutine

  subroutine getrf_real32(connection, n, a, lda, factor, info, pin, refactor_if_lost)
    type(crout_connection), intent(in) :: connection
    integer, intent(in) :: n, lda
    real(real32), intent(in), target :: a(lda, *)
    type(crout_factor), intent(inout) :: factor
    integer, intent(out) :: info
    logical, intent(in), optional :: pin, refactor_if_lost

    call crout_release(factor, info)
    if (present(pin) .or. present(refactor_if_lost)) then
      call factorize(connection, square(c_loc(a), float32, n, lda), options_with(pin, refactor_if_lost), factor, info)
    else
      info = int(crout_sgetrf(connection%ptr, int(n, c_int64_t), a, int(lda, c_int64_t), factor%ptr))
    end if
  end subroutine

  subroutine getrf_real64(connection, n, a, lda, factor, info, pin, refactor_if_lost)
    type(crout_connection), intent(in) :: connection
    integer, intent(in) :: n, lda
    real(real64), intent(in), target :: a(lda, *)
    type(crout_factor), intent(inout) :: factor
    integer, intent(out) :: info
    logical, intent(in), optional :: pin, refactor_if_lost

    call crout_release(factor, info)
    if (present(pin) .or. present(refactor_if_lost)) then
      call factorize(connection, square(c_loc(a), float64, n, lda), options_with(pin, refactor_if_lost), factor, info)
    else
      info = int(crout_dgetrf(connection%ptr, int(n, c_int64_t), a, int(lda, c_int64_t), factor%ptr))
    end if
  end subroutine

  subroutine getrf_complex32(connection, n, a, lda, factor, info, pin, refactor_if_lost)
    type(crout_connection), intent(in) :: connection
    integer, intent(in) :: n, lda
    complex(real32), intent(in), target :: a(lda, *)
    type(crout_factor), intent(inout) :: factor
    integer, intent(out) :: info
    logical, intent(in), optional :: pin, refactor_if_lost

    call crout_release(factor, info)
    if (present(pin) .or. present(refactor_if_lost)) then
      call factorize(connection, square(c_loc(a), complex64, n, lda), options_with(pin, refactor_if_lost), factor, info)
    else
      info = int(crout_cgetrf(connection%ptr, int(n, c_int64_t), a, int(lda, c_int64_t), factor%ptr))
    end if
  end subroutine

  subroutine getrf_complex64(connection, n, a, lda, factor, info, pin, refactor_if_lost)
    type(crout_connection), intent(in) :: connection
    integer, intent(in) :: n, lda
    complex(real64), intent(in), target :: a(lda, *)
    type(crout_factor), intent(inout) :: factor
    integer, intent(out) :: info
    logical, intent(in), optional :: pin, refactor_if_lost

    call crout_release(factor, info)
    if (present(pin) .or. present(refactor_if_lost)) then
      call factorize(connection, square(c_loc(a), complex128, n, lda), options_with(pin, refactor_if_lost), factor, info)
    else
      info = int(crout_zgetrf(connection%ptr, int(n, c_int64_t), a, int(lda, c_int64_t), factor%ptr))
    end if
  end subroutine

  !> Options with optional choices.
  function options_with(pin, refactor_if_lost) result(options)
    logical, intent(in), optional :: pin, refactor_if_lost
    type(factorize_options) :: options

    options = factorize_options(c_sizeof(options), c_null_ptr, c_null_ptr, 0, 0, 0, c_null_ptr, c_null_funptr, &
                                c_null_ptr, 0, 0)
    if (present(pin)) options%pin = merge(1, 0, pin)
    if (present(refactor_if_lost)) options%refactor_if_lost = merge(1, 0, refactor_if_lost)
  end function

  subroutine factorize(connection, a, options, factor, info)
    type(crout_connection), intent(in) :: connection
    type(matrix_view), intent(in) :: a
    type(factorize_options), intent(in) :: options
    type(crout_factor), intent(inout) :: factor
    integer, intent(out) :: info
    type(crout_description) :: description

    info = c_factorize(connection%ptr, a, options, factor%ptr)
    if (info /= crout_ok) return
    call crout_describe(factor, description, info)
    if (info == crout_ok) info = int(description%info)
  end subroutine

  subroutine getrs_real32(factor, trans, n, nrhs, b, ldb, info)
    type(crout_factor), intent(in) :: factor
    character, intent(in) :: trans
    integer, intent(in) :: n, nrhs, ldb
    real(real32), intent(inout) :: b(ldb, *)
    integer, intent(out) :: info

    info = int(crout_sgetrs(factor%ptr, code_of(trans), int(n, c_int64_t), int(nrhs, c_int64_t), b, &
                            int(ldb, c_int64_t)))
  end subroutine

  subroutine getrs_real64(factor, trans, n, nrhs, b, ldb, info)
    type(crout_factor), intent(in) :: factor
    character, intent(in) :: trans
    integer, intent(in) :: n, nrhs, ldb
    real(real64), intent(inout) :: b(ldb, *)
    integer, intent(out) :: info

    info = int(crout_dgetrs(factor%ptr, code_of(trans), int(n, c_int64_t), int(nrhs, c_int64_t), b, &
                            int(ldb, c_int64_t)))
  end subroutine

  subroutine getrs_complex32(factor, trans, n, nrhs, b, ldb, info)
    type(crout_factor), intent(in) :: factor
    character, intent(in) :: trans
    integer, intent(in) :: n, nrhs, ldb
    complex(real32), intent(inout) :: b(ldb, *)
    integer, intent(out) :: info

    info = int(crout_cgetrs(factor%ptr, code_of(trans), int(n, c_int64_t), int(nrhs, c_int64_t), b, &
                            int(ldb, c_int64_t)))
  end subroutine

  subroutine getrs_complex64(factor, trans, n, nrhs, b, ldb, info)
    type(crout_factor), intent(in) :: factor
    character, intent(in) :: trans
    integer, intent(in) :: n, nrhs, ldb
    complex(real64), intent(inout) :: b(ldb, *)
    integer, intent(out) :: info

    info = int(crout_zgetrs(factor%ptr, code_of(trans), int(n, c_int64_t), int(nrhs, c_int64_t), b, &
                            int(ldb, c_int64_t)))
  end subroutine

  ! The right-hand sides as a vector: one, or several concatenated.
  subroutine getrs_vector_real32(factor, trans, n, nrhs, b, ldb, info)
    type(crout_factor), intent(in) :: factor
    character, intent(in) :: trans
    integer, intent(in) :: n, nrhs, ldb
    real(real32), intent(inout) :: b(*)
    integer, intent(out) :: info

    info = int(crout_sgetrs(factor%ptr, code_of(trans), int(n, c_int64_t), int(nrhs, c_int64_t), b, &
                            int(ldb, c_int64_t)))
  end subroutine

  subroutine getrs_vector_real64(factor, trans, n, nrhs, b, ldb, info)
    type(crout_factor), intent(in) :: factor
    character, intent(in) :: trans
    integer, intent(in) :: n, nrhs, ldb
    real(real64), intent(inout) :: b(*)
    integer, intent(out) :: info

    info = int(crout_dgetrs(factor%ptr, code_of(trans), int(n, c_int64_t), int(nrhs, c_int64_t), b, &
                            int(ldb, c_int64_t)))
  end subroutine

  subroutine getrs_vector_complex32(factor, trans, n, nrhs, b, ldb, info)
    type(crout_factor), intent(in) :: factor
    character, intent(in) :: trans
    integer, intent(in) :: n, nrhs, ldb
    complex(real32), intent(inout) :: b(*)
    integer, intent(out) :: info

    info = int(crout_cgetrs(factor%ptr, code_of(trans), int(n, c_int64_t), int(nrhs, c_int64_t), b, &
                            int(ldb, c_int64_t)))
  end subroutine

  subroutine getrs_vector_complex64(factor, trans, n, nrhs, b, ldb, info)
    type(crout_factor), intent(in) :: factor
    character, intent(in) :: trans
    integer, intent(in) :: n, nrhs, ldb
    complex(real64), intent(inout) :: b(*)
    integer, intent(out) :: info

    info = int(crout_zgetrs(factor%ptr, code_of(trans), int(n, c_int64_t), int(nrhs, c_int64_t), b, &
                            int(ldb, c_int64_t)))
  end subroutine

  function code_of(trans) result(code)
    character, intent(in) :: trans
    integer(c_signed_char) :: code

    code = int(iachar(trans), c_signed_char)
  end function

  subroutine refactor_real32(factor, n, a, lda, info)
    type(crout_factor), intent(in) :: factor
    integer, intent(in) :: n, lda
    real(real32), intent(in), target :: a(lda, *)
    integer, intent(out) :: info

    info = c_refactorize(factor%ptr, square(c_loc(a), float32, n, lda))
  end subroutine

  subroutine refactor_real64(factor, n, a, lda, info)
    type(crout_factor), intent(in) :: factor
    integer, intent(in) :: n, lda
    real(real64), intent(in), target :: a(lda, *)
    integer, intent(out) :: info

    info = c_refactorize(factor%ptr, square(c_loc(a), float64, n, lda))
  end subroutine

  subroutine refactor_complex32(factor, n, a, lda, info)
    type(crout_factor), intent(in) :: factor
    integer, intent(in) :: n, lda
    complex(real32), intent(in), target :: a(lda, *)
    integer, intent(out) :: info

    info = c_refactorize(factor%ptr, square(c_loc(a), complex64, n, lda))
  end subroutine

  subroutine refactor_complex64(factor, n, a, lda, info)
    type(crout_factor), intent(in) :: factor
    integer, intent(in) :: n, lda
    complex(real64), intent(in), target :: a(lda, *)
    integer, intent(out) :: info

    info = c_refactorize(factor%ptr, square(c_loc(a), complex128, n, lda))
  end subroutine

  function square(data, dtype, n, lda) result(view)
    type(c_ptr), intent(in) :: data
    integer(c_int32_t), intent(in) :: dtype
    integer, intent(in) :: n, lda
    type(matrix_view) :: view

    view = matrix_view(data, dtype, column_major, int(n, c_int64_t), int(n, c_int64_t), &
                       int(lda, c_int64_t))
  end function

  subroutine sparse_real32(connection, n, nnz, rows, cols, values, factor, info, algorithm, &
                              pivot_threshold, pin, refactor_if_lost)
    type(crout_connection), intent(in) :: connection
    integer, intent(in) :: n, nnz, rows(*), cols(*)
    real(real32), intent(in), target :: values(*)
    type(crout_factor), intent(inout) :: factor
    integer, intent(out) :: info
    character(len=*), intent(in), optional :: algorithm
    real(real64), intent(in), optional :: pivot_threshold
    logical, intent(in), optional :: pin, refactor_if_lost

    call factorize_sparse(connection, n, nnz, rows, cols, c_loc(values), float32, factor, info, &
                          algorithm, pivot_threshold, pin, refactor_if_lost)
  end subroutine

  subroutine sparse_real64(connection, n, nnz, rows, cols, values, factor, info, algorithm, &
                              pivot_threshold, pin, refactor_if_lost)
    type(crout_connection), intent(in) :: connection
    integer, intent(in) :: n, nnz, rows(*), cols(*)
    real(real64), intent(in), target :: values(*)
    type(crout_factor), intent(inout) :: factor
    integer, intent(out) :: info
    character(len=*), intent(in), optional :: algorithm
    real(real64), intent(in), optional :: pivot_threshold
    logical, intent(in), optional :: pin, refactor_if_lost

    call factorize_sparse(connection, n, nnz, rows, cols, c_loc(values), float64, factor, info, &
                          algorithm, pivot_threshold, pin, refactor_if_lost)
  end subroutine

  subroutine sparse_complex32(connection, n, nnz, rows, cols, values, factor, info, algorithm, &
                              pivot_threshold, pin, refactor_if_lost)
    type(crout_connection), intent(in) :: connection
    integer, intent(in) :: n, nnz, rows(*), cols(*)
    complex(real32), intent(in), target :: values(*)
    type(crout_factor), intent(inout) :: factor
    integer, intent(out) :: info
    character(len=*), intent(in), optional :: algorithm
    real(real64), intent(in), optional :: pivot_threshold
    logical, intent(in), optional :: pin, refactor_if_lost

    call factorize_sparse(connection, n, nnz, rows, cols, c_loc(values), complex64, factor, info, &
                          algorithm, pivot_threshold, pin, refactor_if_lost)
  end subroutine

  subroutine sparse_complex64(connection, n, nnz, rows, cols, values, factor, info, algorithm, &
                              pivot_threshold, pin, refactor_if_lost)
    type(crout_connection), intent(in) :: connection
    integer, intent(in) :: n, nnz, rows(*), cols(*)
    complex(real64), intent(in), target :: values(*)
    type(crout_factor), intent(inout) :: factor
    integer, intent(out) :: info
    character(len=*), intent(in), optional :: algorithm
    real(real64), intent(in), optional :: pivot_threshold
    logical, intent(in), optional :: pin, refactor_if_lost

    call factorize_sparse(connection, n, nnz, rows, cols, c_loc(values), complex128, factor, info, &
                          algorithm, pivot_threshold, pin, refactor_if_lost)
  end subroutine

  subroutine factorize_sparse(connection, n, nnz, rows, cols, values, dtype, factor, info, algorithm, &
                              pivot_threshold, pin, refactor_if_lost)
    type(crout_connection), intent(in) :: connection
    integer, intent(in) :: n, nnz, rows(*), cols(*)
    type(c_ptr), intent(in) :: values
    integer(c_int32_t), intent(in) :: dtype
    type(crout_factor), intent(inout) :: factor
    integer, intent(out) :: info
    character(len=*), intent(in), optional :: algorithm
    real(real64), intent(in), optional :: pivot_threshold
    logical, intent(in), optional :: pin, refactor_if_lost
    character(len=:, kind=c_char), allocatable, target :: method
    type(factorize_options) :: options
    integer(c_int64_t), allocatable, target :: row(:), col(:)
    type(crout_description) :: description
    type(sparse_view) :: a

    call crout_release(factor, info)
    allocate (row(max(nnz, 1)), col(max(nnz, 1)))
    row(:nnz) = int(rows(:nnz), c_int64_t) - 1
    col(:nnz) = int(cols(:nnz), c_int64_t) - 1
    a = sparse_view(c_sizeof(a), dtype, 8_c_int32_t, int(n, c_int64_t), int(nnz, c_int64_t), &
                    values, c_loc(row), c_loc(col), c_null_ptr)
    options = options_with(pin, refactor_if_lost)
    if (present(pivot_threshold)) options%pivot_threshold = pivot_threshold
    if (present(algorithm)) then
      method = trim(algorithm)//c_null_char
      options%algorithm = c_loc(method)
    end if
    info = c_factorize_sparse(connection%ptr, a, options, factor%ptr)
    if (info /= crout_ok) return
    call crout_describe(factor, description, info)
    if (info == crout_ok) info = int(description%info)
  end subroutine

  subroutine values_real32(factor, nnz, values, info)
    type(crout_factor), intent(in) :: factor
    integer, intent(in) :: nnz
    real(real32), intent(in), target :: values(*)
    integer, intent(out) :: info

    info = c_refactorize_values(factor%ptr, float32, c_loc(values), int(nnz, c_int64_t))
  end subroutine

  subroutine values_real64(factor, nnz, values, info)
    type(crout_factor), intent(in) :: factor
    integer, intent(in) :: nnz
    real(real64), intent(in), target :: values(*)
    integer, intent(out) :: info

    info = c_refactorize_values(factor%ptr, float64, c_loc(values), int(nnz, c_int64_t))
  end subroutine

  subroutine values_complex32(factor, nnz, values, info)
    type(crout_factor), intent(in) :: factor
    integer, intent(in) :: nnz
    complex(real32), intent(in), target :: values(*)
    integer, intent(out) :: info

    info = c_refactorize_values(factor%ptr, complex64, c_loc(values), int(nnz, c_int64_t))
  end subroutine

  subroutine values_complex64(factor, nnz, values, info)
    type(crout_factor), intent(in) :: factor
    integer, intent(in) :: nnz
    complex(real64), intent(in), target :: values(*)
    integer, intent(out) :: info

    info = c_refactorize_values(factor%ptr, complex128, c_loc(values), int(nnz, c_int64_t))
  end subroutine

  !> Describes the last factorization; does not call the server.
  subroutine crout_describe(factor, description, info)
    type(crout_factor), intent(in) :: factor
    type(crout_description), intent(out) :: description
    integer, intent(out) :: info

    description%struct_size = c_sizeof(description)
    info = c_describe(factor%ptr, description)
  end subroutine

  !> Drops the factor, if there is one. `factor` is then empty, even if info is not 0.
  subroutine crout_release(factor, info)
    type(crout_factor), intent(inout) :: factor
    integer, intent(out) :: info

    info = c_release(factor%ptr)
    factor%ptr = c_null_ptr
  end subroutine

  !> Returns the message of the calling thread's last failed call; empty before the first failure.
  function crout_last_error() result(text)
    character(len=:), allocatable :: text

    text = to_fortran(c_last_error())
  end function

  !> Returns the version of libcrout, such as "0.1.0".
  function crout_version() result(text)
    character(len=:), allocatable :: text

    text = to_fortran(c_version())
  end function

  function to_fortran(chars) result(text)
    type(c_ptr), intent(in) :: chars
    character(len=:), allocatable :: text
    character(kind=c_char), pointer :: letters(:)
    integer :: i

    call c_f_pointer(chars, letters, [c_strlen(chars)])
    allocate (character(len=size(letters)) :: text)
    do i = 1, size(letters)
      text(i:i) = letters(i)
    end do
  end function
end module
