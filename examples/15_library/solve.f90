! A chain of springs from Fortran: set up once, solved for two loads, then with springs twice as stiff.
program solve
  use, intrinsic :: iso_c_binding
  use cpufree
  implicit none
  integer, parameter :: n = 500
  integer(c_int64_t) :: row_ptr(n + 1)
  integer(c_int32_t) :: col(3 * n - 2), status
  real(c_double) :: val(3 * n - 2), b(n), x(n), guess(n), soft
  type(cpufree_system) :: system
  type(cpufree_setup) :: setup
  type(cpufree_options) :: options
  type(cpufree_result) :: result
  integer :: i, k

  k = 0
  row_ptr(1) = 0
  do i = 1, n                       ! columns count from 0
    if (i > 1) call put(i - 2, -1d0)
    call put(i - 1, 2d0)
    if (i < n) call put(i, -1d0)
    row_ptr(i + 1) = k
  end do

  setup%blocks = 1
  setup%method = CPUFREE_PRCG
  call system%create(row_ptr, col, val, status, setup)
  call check("create")

  options%rtol = 1d-10
  b = 0d0
  b(n) = 1d0                        ! pulled at its end: x(i) = i / (n + 1)
  call system%solve(b, x, status, options=options, result=result)
  call check("solve")
  write (*, "(a, a, i0, a)") cpufree_reason_text(result%reason), " after ", result%iterations, " iterations"
  soft = x(n / 2)
  call expect(soft, real(n / 2, c_double) / (n + 1))

  call system%update(row_ptr, col, 2 * val, status)
  call check("update")
  guess = x
  call system%solve(b, x, status, x0=guess, options=options)
  call check("solve")
  call expect(x(n / 2), soft / 2)
  write (*, "(a)", advance="no") system%report()

  call system%solve(b(2:), x(2:), status)
  if (status /= CPUFREE_INVALID_INPUT) error stop "vectors that are too short were taken"
  write (*, "(a)") "as expected: " // cpufree_error_text()
  call system%destroy()

contains

  subroutine put(column, value)
    integer, intent(in) :: column
    real(c_double), intent(in) :: value
    k = k + 1
    col(k) = column
    val(k) = value
  end subroutine

  subroutine check(what)
    character(*), intent(in) :: what
    if (status /= CPUFREE_OK) error stop what // ": " // cpufree_error_text()
  end subroutine

  subroutine expect(found, known)
    real(c_double), intent(in) :: found, known
    write (*, "(a, f12.8, a, f12.8)") "x in the middle: ", found, ", expected ", known
    if (abs(found - known) > 1d-6 * abs(known)) error stop "wrong answer"
  end subroutine

end program
