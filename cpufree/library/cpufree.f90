! Systems A x = b, A sparse, symmetric and positive definite, from Fortran: the module over cpufree.h.
! docs/from-cpp.md has an example. Rows and columns of matrices count from 0, as in C.
!
!   type(cpufree_system) :: system
!   call system%create(row_ptr, col, val, status)      ! status: CPUFREE_OK, or see cpufree_error_text()
!   call system%solve(b, x, status, result=result)
!   call system%destroy()
!
! The components of the types are described in cpufree.h.
module cpufree
  use, intrinsic :: iso_c_binding
  implicit none
  private

  integer(c_int32_t), parameter, public :: CPUFREE_OK = 0, CPUFREE_INVALID_INPUT = 1, &
    CPUFREE_NOT_FINITE = 2, CPUFREE_BAD_DIAGONAL = 3, CPUFREE_NOT_SYMMETRIC = 4, &
    CPUFREE_UNSUPPORTED = 5, CPUFREE_OUT_OF_MEMORY = 6, CPUFREE_ENGINE_ERROR = 7, &
    CPUFREE_WAIT_TIMEOUT = 8, CPUFREE_BUSY = 9, CPUFREE_INTERNAL_ERROR = 10
  integer(c_int32_t), parameter, public :: CPUFREE_FLOAT64 = 0, CPUFREE_FLOAT32 = 1
  integer(c_int32_t), parameter, public :: CPUFREE_CPU_THREADS = 0, CPUFREE_CUDA_P2P = 1
  integer(c_int32_t), parameter, public :: CPUFREE_CG = 0, CPUFREE_PRCG = 1, CPUFREE_PIPECG = 2
  integer(c_int32_t), parameter, public :: CPUFREE_NONE = 0, CPUFREE_JACOBI = 1, &
    CPUFREE_CHEBYSHEV = 2, CPUFREE_FSAI = 3, CPUFREE_AMG = 4
  integer(c_int32_t), parameter, public :: CPUFREE_AS_SET_UP = -1, CPUFREE_HOST = -1
  integer(c_int32_t), parameter, public :: CPUFREE_KEEP_AGGREGATES = 0, CPUFREE_NEW_AGGREGATES = 1
  integer(c_int32_t), parameter, public :: CPUFREE_CONVERGED_RTOL = 1, CPUFREE_CONVERGED_ATOL = 2, &
    CPUFREE_DIVERGED_ITS = 3, CPUFREE_DIVERGED_DTOL = 4, CPUFREE_DIVERGED_NANORINF = 5, &
    CPUFREE_DIVERGED_INDEFINITE_MAT = 6, CPUFREE_DIVERGED_INDEFINITE_PC = 7, &
    CPUFREE_DIVERGED_BREAKDOWN = 8, CPUFREE_STAGNATED = 9, CPUFREE_TIME_LIMIT = 10, &
    CPUFREE_INTERRUPTED = 11

  type, bind(C), public :: cpufree_matrix
    integer(c_size_t) :: size = 0
    integer(c_int32_t) :: rows = 0, type = CPUFREE_FLOAT64
    integer(c_int64_t) :: nonzeros = 0
    type(c_ptr) :: row_ptr = c_null_ptr, col = c_null_ptr, val = c_null_ptr
  end type

  type, bind(C), public :: cpufree_setup
    integer(c_size_t) :: size = 0
    integer(c_int32_t) :: engine = CPUFREE_CPU_THREADS, pes = 1, blocks = 0, method = CPUFREE_CG, &
      preconditioner = CPUFREE_JACOBI, pc_level = 1, check = 1, gpus = 0
    type(c_ptr) :: gpu = c_null_ptr, part = c_null_ptr, order = c_null_ptr
    integer(c_int32_t) :: modes = 0, numbers = 0
    type(c_ptr) :: near_nullspace = c_null_ptr, node = c_null_ptr, name = c_null_ptr, &
      value = c_null_ptr
  end type

  type, bind(C), public :: cpufree_options
    integer(c_size_t) :: size = 0
    integer(c_int32_t) :: method = CPUFREE_AS_SET_UP, preconditioner = CPUFREE_AS_SET_UP
    real(c_double) :: rtol = 1d-5, atol = 0d0
    integer(c_int64_t) :: maxiter = -1
    real(c_double) :: time_limit = 0d0, wait_limit = 60d0
    integer(c_int32_t) :: replace_every = 50, chebyshev_degree = 4, device = CPUFREE_HOST, reserved = 0
    type(c_funptr) :: progress = c_null_funptr
    type(c_ptr) :: context = c_null_ptr
  end type

  type, bind(C), public :: cpufree_result
    integer(c_size_t) :: size = 0
    integer(c_int32_t) :: converged = 0, reason = 0
    integer(c_int64_t) :: iterations = 0
    real(c_double) :: residual = 0d0, true_residual = 0d0, bnorm = 0d0, tolerance = 0d0, &
      seconds = 0d0, lambda_max = 0d0
    integer(c_int64_t) :: reductions = 0, exchanges = 0, replacements = 0
  end type

  type, bind(C), public :: cpufree_layout
    integer(c_size_t) :: size = 0
    integer(c_int64_t) :: rows = 0, nonzeros = 0
    integer(c_int32_t) :: engine = 0, type = 0, pes = 0, blocks = 0, threads = 0, levels = 0
    integer(c_int64_t) :: halo_values = 0
    real(c_double) :: imbalance = 0d0, matrix_bytes = 0d0, setup_seconds = 0d0
    integer(c_int64_t) :: updates = 0
  end type

  ! A matrix on its PEs; for one thread at a time.
  type, public :: cpufree_system
    private
    type(c_ptr) :: handle = c_null_ptr
    integer(c_int32_t) :: rows = 0, type = CPUFREE_FLOAT64
  contains
    procedure, private :: create_double, create_single, update_double, update_single, &
      solve_double, solve_single
    generic, public :: create => create_double, create_single
    generic, public :: update => update_double, update_single
    generic, public :: solve => solve_double, solve_single
    procedure, public :: layout => report_layout
    procedure, public :: report => report_text
    procedure, public :: destroy
  end type

  public :: cpufree_error_text, cpufree_reason_text, cpufree_version_text

  interface
    function c_create(matrix, setup, solver) bind(C, name="cpufree_create") result(status)
      import
      type(cpufree_matrix), intent(in) :: matrix
      type(cpufree_setup), intent(in) :: setup
      type(c_ptr), intent(out) :: solver
      integer(c_int32_t) :: status
    end function
    function c_update(solver, matrix, aggregates) bind(C, name="cpufree_update") result(status)
      import
      type(c_ptr), value :: solver
      type(cpufree_matrix), intent(in) :: matrix
      integer(c_int32_t), value :: aggregates
      integer(c_int32_t) :: status
    end function
    function c_solve(solver, b, x0, x, options, result) bind(C, name="cpufree_solve") result(status)
      import
      type(c_ptr), value :: solver, b, x0, x
      type(cpufree_options), intent(in) :: options
      type(cpufree_result), intent(inout) :: result
      integer(c_int32_t) :: status
    end function
    function c_report(solver, layout) bind(C, name="cpufree_report") result(status)
      import
      type(c_ptr), value :: solver
      type(cpufree_layout), intent(inout) :: layout
      integer(c_int32_t) :: status
    end function
    function c_report_text(solver, text) bind(C, name="cpufree_report_text") result(status)
      import
      type(c_ptr), value :: solver
      type(c_ptr), intent(out) :: text
      integer(c_int32_t) :: status
    end function
    subroutine c_destroy(solver) bind(C, name="cpufree_destroy")
      import
      type(c_ptr), value :: solver
    end subroutine
    function c_error() bind(C, name="cpufree_error") result(text)
      import
      type(c_ptr) :: text
    end function
    function c_reason_name(reason) bind(C, name="cpufree_reason_name") result(text)
      import
      integer(c_int32_t), value :: reason
      type(c_ptr) :: text
    end function
    function c_version() bind(C, name="cpufree_version") result(text)
      import
      type(c_ptr) :: text
    end function
    function c_strlen(text) bind(C, name="strlen") result(length)
      import
      type(c_ptr), value :: text
      integer(c_size_t) :: length
    end function
  end interface

contains

  function text_of(pointer) result(text)
    type(c_ptr), intent(in) :: pointer
    character(len=:), allocatable :: text
    character(kind=c_char), pointer :: letters(:)
    integer :: k, length
    length = int(c_strlen(pointer))
    call c_f_pointer(pointer, letters, [length])
    allocate (character(len=length) :: text)
    do k = 1, length
      text(k:k) = letters(k)
    end do
  end function

  ! What went wrong in the last call of this thread that has failed.
  function cpufree_error_text() result(text)
    character(len=:), allocatable :: text
    text = text_of(c_error())
  end function

  ! "CONVERGED_RTOL" and so on.
  function cpufree_reason_text(reason) result(text)
    integer(c_int32_t), intent(in) :: reason
    character(len=:), allocatable :: text
    text = text_of(c_reason_name(reason))
  end function

  function cpufree_version_text() result(text)
    character(len=:), allocatable :: text
    text = text_of(c_version())
  end function

  function matrix_of(row_ptr, col, val, entries, type) result(matrix)
    integer(c_int64_t), intent(in), target, contiguous :: row_ptr(:)
    integer(c_int32_t), intent(in), target, contiguous :: col(:)
    type(c_ptr), intent(in) :: val
    integer(c_int64_t), intent(in) :: entries
    integer(c_int32_t), intent(in) :: type
    type(cpufree_matrix) :: matrix
    matrix%size = c_sizeof(matrix)
    matrix%rows = int(size(row_ptr) - 1, c_int32_t)
    matrix%type = type
    matrix%nonzeros = entries
    if (size(col, kind=c_int64_t) /= entries) matrix%nonzeros = -1  ! which is refused
    matrix%row_ptr = c_loc(row_ptr)
    matrix%col = c_loc(col)
    matrix%val = val
  end function

  subroutine create_any(self, matrix, status, setup)
    class(cpufree_system), intent(inout) :: self
    type(cpufree_matrix), intent(in) :: matrix
    integer(c_int32_t), intent(out) :: status
    type(cpufree_setup), intent(in), optional :: setup
    type(cpufree_setup) :: given
    call self%destroy()
    if (present(setup)) given = setup
    given%size = c_sizeof(given)
    status = c_create(matrix, given, self%handle)
    self%rows = matrix%rows
    self%type = matrix%type
  end subroutine

  subroutine create_double(self, row_ptr, col, val, status, setup)
    class(cpufree_system), intent(inout) :: self
    integer(c_int64_t), intent(in), target, contiguous :: row_ptr(:)
    integer(c_int32_t), intent(in), target, contiguous :: col(:)
    real(c_double), intent(in), target, contiguous :: val(:)
    integer(c_int32_t), intent(out) :: status
    type(cpufree_setup), intent(in), optional :: setup
    call create_any(self, matrix_of(row_ptr, col, c_loc(val), size(val, kind=c_int64_t), CPUFREE_FLOAT64), status, setup)
  end subroutine

  subroutine create_single(self, row_ptr, col, val, status, setup)
    class(cpufree_system), intent(inout) :: self
    integer(c_int64_t), intent(in), target, contiguous :: row_ptr(:)
    integer(c_int32_t), intent(in), target, contiguous :: col(:)
    real(c_float), intent(in), target, contiguous :: val(:)
    integer(c_int32_t), intent(out) :: status
    type(cpufree_setup), intent(in), optional :: setup
    call create_any(self, matrix_of(row_ptr, col, c_loc(val), size(val, kind=c_int64_t), CPUFREE_FLOAT32), status, setup)
  end subroutine

  subroutine update_any(self, matrix, status, aggregates)
    class(cpufree_system), intent(inout) :: self
    type(cpufree_matrix), intent(in) :: matrix
    integer(c_int32_t), intent(out) :: status
    integer(c_int32_t), intent(in), optional :: aggregates
    integer(c_int32_t) :: kept
    kept = CPUFREE_KEEP_AGGREGATES
    if (present(aggregates)) kept = aggregates
    status = c_update(self%handle, matrix, kept)
  end subroutine

  subroutine update_double(self, row_ptr, col, val, status, aggregates)
    class(cpufree_system), intent(inout) :: self
    integer(c_int64_t), intent(in), target, contiguous :: row_ptr(:)
    integer(c_int32_t), intent(in), target, contiguous :: col(:)
    real(c_double), intent(in), target, contiguous :: val(:)
    integer(c_int32_t), intent(out) :: status
    integer(c_int32_t), intent(in), optional :: aggregates
    call update_any(self, matrix_of(row_ptr, col, c_loc(val), size(val, kind=c_int64_t), CPUFREE_FLOAT64), status, &
      aggregates)
  end subroutine

  subroutine update_single(self, row_ptr, col, val, status, aggregates)
    class(cpufree_system), intent(inout) :: self
    integer(c_int64_t), intent(in), target, contiguous :: row_ptr(:)
    integer(c_int32_t), intent(in), target, contiguous :: col(:)
    real(c_float), intent(in), target, contiguous :: val(:)
    integer(c_int32_t), intent(out) :: status
    integer(c_int32_t), intent(in), optional :: aggregates
    call update_any(self, matrix_of(row_ptr, col, c_loc(val), size(val, kind=c_int64_t), CPUFREE_FLOAT32), status, &
      aggregates)
  end subroutine

  ! Vectors of another length or type than the matrix are refused: a null pointer is passed on.
  subroutine solve_any(self, b, x0, x, fit, status, options, result)
    class(cpufree_system), intent(in) :: self
    type(c_ptr), intent(in) :: b, x0, x
    logical, intent(in) :: fit
    integer(c_int32_t), intent(out) :: status
    type(cpufree_options), intent(in), optional :: options
    type(cpufree_result), intent(out), optional :: result
    type(cpufree_options) :: given
    type(cpufree_result) :: found
    if (present(options)) given = options
    given%size = c_sizeof(given)
    found%size = c_sizeof(found)
    status = c_solve(self%handle, merge_ptr(b, fit), x0, merge_ptr(x, fit), given, found)
    if (present(result)) result = found
  end subroutine

  function merge_ptr(pointer, fit) result(kept)
    type(c_ptr), intent(in) :: pointer
    logical, intent(in) :: fit
    type(c_ptr) :: kept
    kept = c_null_ptr
    if (fit) kept = pointer
  end function

  subroutine solve_double(self, b, x, status, x0, options, result)
    class(cpufree_system), intent(in) :: self
    real(c_double), intent(in), target, contiguous :: b(:)
    real(c_double), intent(inout), target, contiguous :: x(:)
    integer(c_int32_t), intent(out) :: status
    real(c_double), intent(in), target, contiguous, optional :: x0(:)
    type(cpufree_options), intent(in), optional :: options
    type(cpufree_result), intent(out), optional :: result
    type(c_ptr) :: guess
    logical :: fit
    fit = size(b) == self%rows .and. size(x) == self%rows .and. self%type == CPUFREE_FLOAT64
    guess = c_null_ptr
    if (present(x0)) then
      guess = c_loc(x0)
      fit = fit .and. size(x0) == self%rows
    end if
    call solve_any(self, c_loc(b), guess, c_loc(x), fit, status, options, result)
  end subroutine

  subroutine solve_single(self, b, x, status, x0, options, result)
    class(cpufree_system), intent(in) :: self
    real(c_float), intent(in), target, contiguous :: b(:)
    real(c_float), intent(inout), target, contiguous :: x(:)
    integer(c_int32_t), intent(out) :: status
    real(c_float), intent(in), target, contiguous, optional :: x0(:)
    type(cpufree_options), intent(in), optional :: options
    type(cpufree_result), intent(out), optional :: result
    type(c_ptr) :: guess
    logical :: fit
    fit = size(b) == self%rows .and. size(x) == self%rows .and. self%type == CPUFREE_FLOAT32
    guess = c_null_ptr
    if (present(x0)) then
      guess = c_loc(x0)
      fit = fit .and. size(x0) == self%rows
    end if
    call solve_any(self, c_loc(b), guess, c_loc(x), fit, status, options, result)
  end subroutine

  subroutine report_layout(self, layout, status)
    class(cpufree_system), intent(in) :: self
    type(cpufree_layout), intent(out) :: layout
    integer(c_int32_t), intent(out) :: status
    layout%size = c_sizeof(layout)
    status = c_report(self%handle, layout)
  end subroutine

  ! The layout and the last solve, in lines; "" after an error.
  function report_text(self) result(text)
    class(cpufree_system), intent(in) :: self
    character(len=:), allocatable :: text
    type(c_ptr) :: pointer
    text = ""
    if (c_report_text(self%handle, pointer) == CPUFREE_OK) text = text_of(pointer)
  end function

  subroutine destroy(self)
    class(cpufree_system), intent(inout) :: self
    call c_destroy(self%handle)
    self%handle = c_null_ptr
  end subroutine

end module
