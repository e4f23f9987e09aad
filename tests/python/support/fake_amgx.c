/* A stand-in for AmgX's C interface: conjugate gradients on the host. It refuses calls in a wrong
   order and other modes, and counts the handles that are alive. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, BAD_PARAMETERS = 1, BAD_MODE = 9, BAD_CONFIGURATION = 12 };

typedef struct {
  int n, nnz, ready, iterations, status;
  int *row, *col;
  double *val;
  double tolerance;
  struct handle *matrix;
} state;
typedef struct handle {
  state s;
} handle;

int fake_alive = 0, fake_initialised = 0;

static int make(handle **out) {
  *out = calloc(1, sizeof(handle));
  ++fake_alive;
  return OK;
}
static int drop(handle *h) {
  free(h->s.row), free(h->s.col), free(h->s.val), free(h);
  --fake_alive;
  return OK;
}
static void *copy_of(const void *from, size_t bytes) { return memcpy(malloc(bytes), from, bytes); }

int AMGX_initialize(void) { return ++fake_initialised, OK; }
int AMGX_get_error_string(int code, char *to, int room) {
  strncpy(to, code == BAD_CONFIGURATION ? "Incorrect configuration" : "Bad parameters", room);
  return OK;
}
int AMGX_config_create(handle **out, const char *options) {
  const char *at = strstr(options, "main:tolerance=");
  if (!strstr(options, "config_version=2") || !at) return BAD_CONFIGURATION;
  make(out);
  (*out)->s.tolerance = atof(at + strlen("main:tolerance="));
  return OK;
}
int AMGX_config_destroy(handle *h) { return drop(h); }
int AMGX_resources_create(handle **out, handle *config, void *comm, int count, const int *devices) {
  if (!config || comm || count != 1 || devices[0] != 0) return BAD_PARAMETERS;
  return make(out);
}
int AMGX_resources_destroy(handle *h) { return drop(h); }
int AMGX_matrix_create(handle **out, handle *resources, int mode) {
  return !resources ? BAD_PARAMETERS : mode != 8193 ? BAD_MODE : make(out);
}
int AMGX_matrix_destroy(handle *h) { return drop(h); }
int AMGX_matrix_upload_all(handle *m, int n, int nnz, int wide, int high, const int *row,
                           const int *col, const void *val, const void *diagonal) {
  if (wide != 1 || high != 1 || diagonal || row[n] != nnz) return BAD_PARAMETERS;
  m->s.n = n, m->s.nnz = nnz;
  m->s.row = copy_of(row, sizeof(int) * (n + 1));
  m->s.col = copy_of(col, sizeof(int) * nnz);
  m->s.val = copy_of(val, sizeof(double) * nnz);
  return OK;
}
int AMGX_vector_create(handle **out, handle *resources, int mode) {
  return AMGX_matrix_create(out, resources, mode);
}
int AMGX_vector_destroy(handle *h) { return drop(h); }
int AMGX_vector_upload(handle *v, int n, int block, const void *data) {
  if (block != 1) return BAD_PARAMETERS;
  v->s.n = n, v->s.val = copy_of(data, sizeof(double) * n);
  return OK;
}
int AMGX_vector_set_zero(handle *v, int n, int block) {
  if (block != 1) return BAD_PARAMETERS;
  v->s.n = n, v->s.val = calloc(n, sizeof(double));
  return OK;
}
int AMGX_vector_download(const handle *v, void *data) {
  memcpy(data, v->s.val, sizeof(double) * v->s.n);
  return OK;
}
int AMGX_solver_create(handle **out, handle *resources, int mode, const handle *config) {
  if (!config) return BAD_PARAMETERS;
  const int code = AMGX_matrix_create(out, resources, mode);
  if (code == OK) (*out)->s.tolerance = config->s.tolerance;
  return code;
}
int AMGX_solver_destroy(handle *h) { return drop(h); }
int AMGX_solver_setup(handle *solver, handle *matrix) {
  if (!matrix->s.val) return BAD_PARAMETERS;
  solver->s.matrix = matrix;
  return OK;
}

static void multiply(const state *a, const double *x, double *y) {
  for (int i = 0; i < a->n; ++i) {
    y[i] = 0.0;
    for (int k = a->row[i]; k < a->row[i + 1]; ++k) y[i] += a->val[k] * x[a->col[k]];
  }
}
static double dot(int n, const double *a, const double *b) {
  double sum = 0.0;
  for (int i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}
int AMGX_solver_solve_with_0_initial_guess(handle *solver, handle *rhs, handle *solution) {
  if (!solver->s.matrix) return BAD_PARAMETERS;
  const state *a = &solver->s.matrix->s;
  const int n = a->n;
  double *x = solution->s.val, *r = copy_of(rhs->s.val, sizeof(double) * n);
  double *p = copy_of(r, sizeof(double) * n), *q = calloc(n, sizeof(double));
  double rr = dot(n, r, r);
  const double least = solver->s.tolerance * solver->s.tolerance * rr;
  int done = 0;
  for (; rr > least && done < 10000; ++done) {
    multiply(a, p, q);
    const double alpha = rr / dot(n, p, q);
    for (int i = 0; i < n; ++i) x[i] += alpha * p[i], r[i] -= alpha * q[i];
    const double next = dot(n, r, r);
    for (int i = 0; i < n; ++i) p[i] = r[i] + next / rr * p[i];
    rr = next;
  }
  solver->s.iterations = done;
  solver->s.status = rr > least ? 3 : 0;
  free(r), free(p), free(q);
  return OK;
}
int AMGX_solver_get_iterations_number(handle *solver, int *n) {
  return *n = solver->s.iterations, OK;
}
int AMGX_solver_get_status(handle *solver, int *status) {
  return *status = solver->s.status, OK;
}
