/* Poisson's equation on a square from C, by multigrid on two PEs; and what an error looks like. */
#include <cpufree/cpufree.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIDE = 60, ROWS = SIDE * SIDE };

static int64_t row_ptr[ROWS + 1];
static int32_t col[5 * ROWS];
static double val[5 * ROWS], b[ROWS], x[ROWS];

static void put(int64_t* count, int row, double value) {
  col[*count] = row;
  val[(*count)++] = value;
}

/* -u_xx - u_yy = f by five points; u is 0 on the boundary. */
static void assemble(void) {
  int64_t count = 0;
  for (int row = 0; row < ROWS; ++row) {
    const int i = row % SIDE, j = row / SIDE;
    if (j > 0) put(&count, row - SIDE, -1.0);
    if (i > 0) put(&count, row - 1, -1.0);
    put(&count, row, 4.0);
    if (i < SIDE - 1) put(&count, row + 1, -1.0);
    if (j < SIDE - 1) put(&count, row + SIDE, -1.0);
    row_ptr[row + 1] = count;
  }
}

/* The largest distance from u = sin(pi x) sin(pi y), for f = 2 pi^2 u. */
static double error_of_solution(void) {
  const double pi = acos(-1.0), h = 1.0 / (SIDE + 1);
  double most = 0.0;
  for (int row = 0; row < ROWS; ++row) {
    const double u = sin(pi * h * (row % SIDE + 1)) * sin(pi * h * (row / SIDE + 1));
    most = fmax(most, fabs(x[row] - u));
  }
  return most;
}

static void fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, cpufree_error());
  exit(1);
}

int main(void) {
  const double pi = acos(-1.0), h = 1.0 / (SIDE + 1);
  cpufree_matrix matrix;
  cpufree_setup setup;
  cpufree_options options;
  cpufree_result result;
  cpufree_solver* solver;
  const char* text;

  assemble();
  for (int row = 0; row < ROWS; ++row)
    b[row] = h * h * 2 * pi * pi * sin(pi * h * (row % SIDE + 1)) * sin(pi * h * (row / SIDE + 1));

  cpufree_matrix_init(&matrix, sizeof matrix);
  matrix.rows = ROWS;
  matrix.nonzeros = row_ptr[ROWS];
  matrix.row_ptr = row_ptr;
  matrix.col = col;
  matrix.val = val;

  cpufree_setup_init(&setup, sizeof setup);
  setup.pes = 2;
  setup.blocks = 1;
  setup.preconditioner = CPUFREE_AMG;
  if (cpufree_create(&matrix, &setup, &solver) != CPUFREE_OK) fail("create");

  cpufree_options_init(&options, sizeof options);
  options.rtol = 1e-10;
  cpufree_result_init(&result, sizeof result);
  if (cpufree_solve(solver, b, NULL, x, &options, &result) != CPUFREE_OK) fail("solve");
  if (cpufree_report_text(solver, &text) != CPUFREE_OK) fail("report");
  printf("%s", text);
  printf("%s, error of the solution: %.1e\n", cpufree_reason_name(result.reason),
         error_of_solution());
  cpufree_destroy(solver);
  if (!result.converged || error_of_solution() > 1e-3) return 1;

  val[7] = -2.0; /* (1, 61) is not (61, 1) any more */
  if (cpufree_create(&matrix, NULL, &solver) != CPUFREE_NOT_SYMMETRIC) return 1;
  printf("as expected: %s\n", cpufree_error());
  return 0;
}
