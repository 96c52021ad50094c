! SPDX-License-Identifier: Apache-2.0

! Tests the Fortran module against a real daemon: every generic procedure for every type and rank, and
! its errors.
!
! usage: crout_f90_test HOST:PORT     exits with 1 at the first error
module progress_reports
  use crout
  use, intrinsic :: iso_c_binding, only: c_associated, c_int64_t, c_ptr
  implicit none

  integer :: reports = 0
  integer(c_int64_t) :: bytes_sent = -1, bytes_total = -1
  logical :: has_context = .false.

contains

  subroutine receive(progress, context) bind(C)
    type(crout_progress), intent(in) :: progress
    type(c_ptr), value :: context

    reports = reports + 1
    bytes_sent = progress%bytes_sent
    bytes_total = progress%bytes_total
    has_context = has_context .or. c_associated(context)
  end subroutine
end module

program crout_f90_test
  use crout
  use progress_reports
  use, intrinsic :: iso_fortran_env, only: error_unit, real32, real64
  implicit none

  integer, parameter :: n = 3, lda = 5, nrhs = 2
  integer, parameter :: order = 50, nnz = 3*order - 2  ! nnz of a tridiagonal matrix
  type(crout_connection) :: server
  type(crout_factor) :: lu
  type(crout_description) :: description
  character(len=200) :: address
  integer :: info

  call get_command_argument(1, address)
  call expect("the version", index(crout_version(), "0.1.") == 1)
  call expect("no error", crout_last_error() == "")
  call crout_connect(address, server, info, tenant="fortran", timeout=30.0_real64, priority="batch")
  call expect("connected", info == crout_ok)
  call sparse_real32()
  call sparse_real64()
  call sparse_complex32()
  call sparse_complex64()
  call solve_real32()
  call solve_real64()
  call solve_complex32()
  call solve_complex64()
  call errors()
  call progress()
  call crout_disconnect(server)
  call crout_disconnect(server)

contains

  subroutine solve_real32()
    real(real32) :: a(lda, n), b(lda, nrhs), x(n)

    call fill(a, b, x)
    call crout_getrf(server, n, a, lda, lu, info)
    call expect("getrf of real32", info == 0)
    call crout_getrs(lu, "N", n, nrhs, b, lda, info)
    call expect("getrs of real32", info == 0 .and. all(abs(b(:n, 1) - [1, 2, 3]) < 1e-5))
    call expect("the second column", all(abs(b(:n, 2) - [2, 4, 6]) < 1e-5))
    call expect("what is below stays", all(abs(b(n + 1:, :) + 1) < tiny(b)))
    call crout_refactor(lu, n, 2*a, lda, info)
    call expect("refactor of real32", info == 0)
    call crout_getrs(lu, "T", n, 1, x, n, info)
    call expect("a vector of real32", info == 0 .and. all(abs(x - [0.5, 1.0, 1.5]) < 1e-5))
  end subroutine

  subroutine fill(a, b, x)
    real(real32), intent(out) :: a(lda, n), b(lda, nrhs), x(n)

    a = -1
    a(:n, :) = reshape(real([4, 1, 0, 2, 4, 1, 0, 2, 4], real32), [n, n])
    b = -1
    b(:n, 1) = [8, 15, 14]  ! A (1, 2, 3)
    b(:n, 2) = 2*b(:n, 1)
    x = [6, 13, 16]         ! A^T (1, 2, 3)
  end subroutine

  subroutine solve_real64()
    real(real32) :: a(lda, n), b(lda, nrhs), x(n)
    real(real64) :: a64(lda, n), b64(lda, nrhs), x64(n)

    call fill(a, b, x)
    a64 = a
    b64 = b
    x64 = x
    call crout_getrf(server, n, a64, lda, lu, info)  ! replaces the factor of real32
    call expect("getrf of real64", info == 0)
    call crout_getrf(server, n, a64, lda, lu, info, pin=.true., refactor_if_lost=.true.)
    call expect("getrf with options", info == 0)
    call crout_getrs(lu, "N", n, nrhs, b64, lda, info)
    call expect("getrs of real64", info == 0 .and. all(abs(b64(:n, 1) - [1, 2, 3]) < 1e-14))
    call crout_refactor(lu, n, 2*a64, lda, info)
    call expect("refactor of real64", info == 0)
    call crout_getrs(lu, "T", n, 1, x64, n, info)
    call expect("a vector of real64", info == 0)
    call expect("and right", all(abs(x64 - [0.5_real64, 1.0_real64, 1.5_real64]) < 1e-14))
    call crout_describe(lu, description, info)
    call expect("describe", info == 0 .and. description%n == n .and. description%version == 2)
    call expect("a dense factor", description%lu_entries == 0)
    call expect("a handle", index("abcdefghijklmnopqrstuvwxyz234567", description%handle(26)) > 0)
  end subroutine

  subroutine solve_complex32()
    complex(real32), parameter :: i = (0, 1)
    real(real32) :: a(lda, n), b(lda, nrhs), x(n)
    complex(real32) :: ac(lda, n), bc(lda, nrhs), xc(n)

    call fill(a, b, x)
    ac = (1 + i)*a
    bc = (1 + i)*b
    xc = (1 - i)*x
    call crout_getrf(server, n, ac, lda, lu, info)
    call expect("getrf of complex(real32)", info == 0)
    call crout_getrs(lu, "N", n, nrhs, bc, lda, info)
    call expect("getrs of complex(real32)", info == 0 .and. all(abs(bc(:n, 1) - [1, 2, 3]) < 1e-5))
    call expect("what is below stays", all(abs(bc(n + 1:, :) + (1 + i)) < tiny(a)))
    call crout_refactor(lu, n, 2*ac, lda, info)
    call expect("refactor of complex(real32)", info == 0)
    call crout_getrs(lu, "C", n, 1, xc, n, info)
    call expect("a vector of complex(real32)", info == 0 .and. all(abs(xc - [0.5, 1.0, 1.5]) < 1e-5))
  end subroutine

  subroutine solve_complex64()
    complex(real64), parameter :: i = (0, 1)
    real(real32) :: a(lda, n), b(lda, nrhs), x(n)
    complex(real64) :: ac(lda, n), bc(lda, nrhs), xc(n)

    call fill(a, b, x)
    ac = (1 + i)*a
    bc = (1 + i)*b
    xc = (1 + i)*x
    call crout_getrf(server, n, ac, lda, lu, info)
    call expect("getrf of complex(real64)", info == 0)
    call crout_getrs(lu, "N", n, nrhs, bc, lda, info)
    call expect("getrs of complex(real64)", info == 0 .and. all(abs(bc(:n, 1) - [1, 2, 3]) < 1e-14))
    call crout_refactor(lu, n, 2*ac, lda, info)
    call expect("refactor of complex(real64)", info == 0)
    call crout_getrs(lu, "T", n, 1, xc, n, info)
    call expect("a vector of complex(real64)", info == 0)
    call expect("and right", all(abs(xc - [0.5_real64, 1.0_real64, 1.5_real64]) < 1e-14))
  end subroutine

  subroutine sparse_real32()
    real(real32) :: values(nnz), b(order)

    values = 1
    values(:order) = 4
    call crout_factorize_sparse(server, order, nnz, rows(), cols(), values, lu, info, &
                                "multifrontal")
    call expect("factorize_sparse of real32", info == 0)
    b = 6  ! A (1, 1, ...)
    b(1) = 5
    b(order) = 5
    call crout_getrs(lu, "N", order, 1, b, order, info)
    call expect("sparse getrs of real32", info == 0 .and. all(abs(b - 1) < 1e-5))
    values = 2  ! all equal, except on the diagonal
    values(1::3) = 8
    call crout_refactor_values(lu, nnz, values, info)
    call expect("refactor_values of real32", info == 0)
    b = 6
    b(1) = 5
    b(order) = 5
    call crout_getrs(lu, "N", order, 1, b, order, info)
    call expect("values of real32", info == 0 .and. all(abs(b - 0.5) < 1e-5))
  end subroutine

  subroutine sparse_real64()
    real(real64) :: values(nnz), b(order)

    values = 1
    values(:order) = 4
    call crout_factorize_sparse(server, order, nnz, rows(), cols(), values, lu, info, &
                                "multifrontal")
    call expect("factorize_sparse of real64", info == 0)
    call crout_describe(lu, description, info)
    call expect("entries of L and U", info == 0 .and. description%lu_entries >= nnz)
    b = 6  ! A (1, 1, ...)
    b(1) = 5
    b(order) = 5
    call crout_getrs(lu, "N", order, 1, b, order, info)
    call expect("sparse getrs of real64", info == 0 .and. all(abs(b - 1) < 1e-14))
    values = 2  ! all equal, except on the diagonal
    values(1::3) = 8
    call crout_refactor_values(lu, nnz, values, info)
    call expect("refactor_values of real64", info == 0)
    b = 6
    b(1) = 5
    b(order) = 5
    call crout_getrs(lu, "N", order, 1, b, order, info)
    call expect("values of real64", info == 0 .and. all(abs(b - 0.5) < 1e-14))
  end subroutine

  subroutine sparse_complex32()
    complex(real32), parameter :: i = (0, 1)
    complex(real32) :: values(nnz), b(order)

    values = (1 + i)*1
    values(:order) = (1 + i)*4
    call crout_factorize_sparse(server, order, nnz, rows(), cols(), values, lu, info, &
                                "multifrontal")
    call expect("factorize_sparse of complex32", info == 0)
    b = 6  ! A (1, 1, ...)
    b(1) = 5
    b(order) = 5
    call crout_getrs(lu, "N", order, 1, b, order, info)
    call expect("sparse getrs of complex32", info == 0 .and. all(abs((1 + i)*b - 1) < 1e-5))
    values = (1 + i)*2  ! all equal, except on the diagonal
    values(1::3) = (1 + i)*8
    call crout_refactor_values(lu, nnz, values, info)
    call expect("refactor_values of complex32", info == 0)
    b = 6
    b(1) = 5
    b(order) = 5
    call crout_getrs(lu, "N", order, 1, b, order, info)
    call expect("values of complex32", info == 0 .and. all(abs((1 + i)*b - 0.5) < 1e-5))
  end subroutine

  subroutine sparse_complex64()
    complex(real64), parameter :: i = (0, 1)
    complex(real64) :: values(nnz), b(order)

    values = (1 + i)*1
    values(:order) = (1 + i)*4
    call crout_factorize_sparse(server, order, nnz, rows(), cols(), values, lu, info, &
                                "multifrontal")
    call expect("factorize_sparse of complex64", info == 0)
    b = 6  ! A (1, 1, ...)
    b(1) = 5
    b(order) = 5
    call crout_getrs(lu, "N", order, 1, b, order, info)
    call expect("sparse getrs of complex64", info == 0 .and. all(abs((1 + i)*b - 1) < 1e-14))
    values = (1 + i)*2  ! all equal, except on the diagonal
    values(1::3) = (1 + i)*8
    call crout_refactor_values(lu, nnz, values, info)
    call expect("refactor_values of complex64", info == 0)
    b = 6
    b(1) = 5
    b(order) = 5
    call crout_getrs(lu, "N", order, 1, b, order, info)
    call expect("values of complex64", info == 0 .and. all(abs((1 + i)*b - 0.5) < 1e-14))
  end subroutine

  ! Rows of the tridiagonal matrix: the diagonal, then the entries next to it.
  function rows() result(row)
    integer :: row(nnz), k

    row = [(k, k=1, order), (k, k=2, order), (k, k=1, order - 1)]
  end function

  function cols() result(col)
    integer :: col(nnz), k

    col = [(k, k=1, order), (k, k=1, order - 1), (k, k=2, order)]
  end function

  subroutine progress()
    type(crout_connection) :: watched
    type(crout_factor) :: factor
    real(real64) :: a(n, n), b(n)

    call crout_connect(address, watched, info, progress=receive)
    call expect("connected with progress", info == crout_ok)
    a = reshape(real([4, 1, 0, 1, 4, 1, 0, 1, 4], real64), [n, n])
    call crout_getrf(watched, n, a, n, factor, info)
    call expect("progress of getrf", info == 0 .and. reports > 0 .and. bytes_sent == 8*n*n)
    b = 1
    call crout_getrs(factor, "N", n, 1, b, n, info)
    call expect("progress of getrs", info == 0 .and. bytes_sent == 8*n .and. bytes_total == 8*n)
    call crout_refactor(factor, n, 2*a, n, info)
    call expect("progress of refactor", info == 0 .and. bytes_sent == 8*n*n)
    call expect("no context", .not. has_context)
    call crout_release(factor, info)
    call crout_disconnect(watched)
  end subroutine

  subroutine errors()
    real(real64) :: singular(2, 2), b(2), magic(4, 4), sums(4)

    call crout_getrs(lu, "X", n, 1, b, n, info)
    call expect("the second argument", info == -2 .and. index(crout_last_error(), "trans") == 1)
    singular = reshape(real([1, 2, 2, 4], real64), [2, 2])
    call crout_refactor(lu, 2, singular, 2, info)
    call expect("another order", info == crout_failed_precondition)
    call crout_getrf(server, 2, singular, 2, lu, info)
    call expect("the second pivot", info == 2)
    call crout_getrs(lu, "N", 2, 1, b, 2, info)
    call expect("no solve", info == crout_singular)
    magic = reshape(real([16, 5, 9, 4, 2, 11, 7, 14, 3, 10, 6, 15, 13, 8, 12, 1], real64), [4, 4])
    sums = 34
    call crout_getrf(server, 4, magic, 4, lu, info)
    call crout_getrs(lu, "N", 4, 1, sums, 4, info)
    call expect("a warning", info == 0 .and. crout_last_warnings() == crout_warning_nearly_singular)
    call crout_refactor_values(lu, 2, b, info)
    call expect("values of a dense matrix", info == crout_failed_precondition)
    call crout_factorize_sparse(server, 2, 1, [3], [1], b, lu, info)
    call expect("a row beyond the matrix", info == crout_invalid_argument)
    call crout_factorize_sparse(server, 2, -1, [3], [1], b, lu, info)
    call expect("a negative count", info == crout_invalid_argument)
    call crout_factorize_sparse(server, 1, 1, [1], [1], b, lu, info, "magic")
    call expect("a method that is none", info == crout_invalid_argument)
    b = 1
    call crout_factorize_sparse(server, 2, 2, [1, 2], [1, 1], b, lu, info)
    call expect("a singular one", info == 2)
    call crout_release(lu, info)
    call expect("released", info == crout_ok)
    call crout_release(lu, info)
    call expect("nothing to release", info == crout_ok)
    call crout_getrs(lu, "N", 2, 1, b, 2, info)
    call expect("no factor", info == -1)
  end subroutine

  subroutine expect(what, holds)
    character(len=*), intent(in) :: what
    logical, intent(in) :: holds

    if (holds) return
    write (error_unit, '("not so: ", a, "; info = ", i0, ", ", a)') what, info, crout_last_error()
    stop 1
  end subroutine
end program
