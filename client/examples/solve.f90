! SPDX-License-Identifier: Apache-2.0

! Factors a matrix on a Crout server and solves with its factors, from Fortran.
!
! usage: solve_fortran [HOST:PORT]
program solve
  use crout
  use, intrinsic :: iso_fortran_env, only: error_unit, real64
  implicit none

  integer, parameter :: n = 3
  type(crout_connection) :: server
  type(crout_factor) :: lu
  type(crout_description) :: description
  real(real64) :: a(n, n), b(n)
  integer :: info

  a = reshape([real(real64) :: 4, 1, 0, 1, 4, 1, 0, 1, 4], [n, n])
  b = [6, 12, 14]  ! A (1, 2, 3)

  ! [docs]
  call crout_connect(address(), server, info)
  call check("crout_connect", info)
  call crout_getrf(server, n, a, n, lu, info)
  call check("crout_getrf", info)
  call crout_getrs(lu, "N", n, 1, b, n, info)
  call check("crout_getrs", info)
  print '("x =", 3f8.4)', b
  ! [end]

  a = 2 * a
  b = [6, 12, 14]
  call crout_refactor(lu, n, a, n, info)
  call check("crout_refactor", info)
  call crout_getrs(lu, "N", n, 1, b, n, info)
  call check("crout_getrs", info)
  print '("with 2 A, x =", 3f8.4)', b

  call crout_describe(lu, description, info)
  call check("crout_describe", info)
  print '("version", i2, ", n =", i2, ", growth", f7.4)', &
    description%version, description%n, description%pivot_growth
  call crout_release(lu, info)
  call crout_disconnect(server)

contains

  function address() result(text)
    character(len=:), allocatable :: text
    integer :: length

    text = "127.0.0.1:50051"
    if (command_argument_count() == 0) return
    call get_command_argument(1, length=length)
    deallocate (text)
    allocate (character(len=length) :: text)
    call get_command_argument(1, text)
  end function

  subroutine check(what, info)
    character(len=*), intent(in) :: what
    integer, intent(in) :: info

    if (info == 0) return
    write (error_unit, '(a, ": info = ", i0, " ", a)') what, info, crout_last_error()
    stop 1
  end subroutine
end program
