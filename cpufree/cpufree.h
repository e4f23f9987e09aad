/* Systems A x = b, A sparse, symmetric and positive definite, from C: the interface of libcpufree.
 *
 *   cpufree_create    checks a matrix and lays it out on its PEs (threads of CPUs, or GPUs)
 *   cpufree_solve     solves for a right-hand side
 *   cpufree_update    takes new values of the same pattern
 *   cpufree_report    tells how the matrix lies, and what its set-up took
 *   cpufree_destroy   frees it
 *
 * Each function but the last returns CPUFREE_OK or the kind of its error, of which cpufree_error()
 * has the text. No C++ exception leaves the library. A solver is for one thread at a time: a call
 * that meets another one of the same solver returns CPUFREE_BUSY. Threads with a solver each do not
 * know of one another. Arrays that are given are read during the call alone.
 *
 * Structs begin with their size, which cpufree_*_init sets: libraries may add members at their
 * ends, and take the shorter structs of older programs. docs/from-cpp.md has examples.
 */
#ifndef CPUFREE_CPUFREE_H
#define CPUFREE_CPUFREE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define CPUFREE_API __attribute__((visibility("default")))
#else
#define CPUFREE_API
#endif

/* What functions return. */
enum {
  CPUFREE_OK = 0,
  CPUFREE_INVALID_INPUT = 1,  /* an argument, an option or a vector is wrong */
  CPUFREE_NOT_FINITE = 2,     /* an entry of the matrix is NaN or infinite (cpufree_error_entry) */
  CPUFREE_BAD_DIAGONAL = 3,   /* one of its diagonal is missing, zero or negative */
  CPUFREE_NOT_SYMMETRIC = 4,  /* it is not symmetric, or its pattern */
  CPUFREE_UNSUPPORTED = 5,    /* this build or this machine does not have it */
  CPUFREE_OUT_OF_MEMORY = 6,  /* of the host or of a GPU */
  CPUFREE_ENGINE_ERROR = 7,   /* threads, GPUs, drivers */
  CPUFREE_WAIT_TIMEOUT = 8,   /* a PE waited longer for another one than wait_limit */
  CPUFREE_BUSY = 9,           /* another call is using this solver */
  CPUFREE_INTERNAL_ERROR = 10 /* a bug */
};

enum { CPUFREE_FLOAT64 = 0, CPUFREE_FLOAT32 = 1 };
enum { CPUFREE_CPU_THREADS = 0, CPUFREE_CUDA_P2P = 1 };
enum { CPUFREE_CG = 0, CPUFREE_PRCG = 1, CPUFREE_PIPECG = 2 };
enum {
  CPUFREE_NONE = 0,
  CPUFREE_JACOBI = 1,
  CPUFREE_CHEBYSHEV = 2,
  CPUFREE_FSAI = 3,
  CPUFREE_AMG = 4
};
enum { CPUFREE_AS_SET_UP = -1 }; /* method, preconditioner of a solve: those of the set-up */
enum { CPUFREE_HOST = -1 };      /* device of vectors in host memory */
/* amg: what an update keeps of the levels. */
enum { CPUFREE_KEEP_AGGREGATES = 0, CPUFREE_NEW_AGGREGATES = 1 };

/* Why a solve ended. */
enum {
  CPUFREE_CONVERGED_RTOL = 1,
  CPUFREE_CONVERGED_ATOL = 2,
  CPUFREE_DIVERGED_ITS = 3,
  CPUFREE_DIVERGED_DTOL = 4,
  CPUFREE_DIVERGED_NANORINF = 5,
  CPUFREE_DIVERGED_INDEFINITE_MAT = 6,
  CPUFREE_DIVERGED_INDEFINITE_PC = 7,
  CPUFREE_DIVERGED_BREAKDOWN = 8,
  CPUFREE_STAGNATED = 9,
  CPUFREE_TIME_LIMIT = 10,
  CPUFREE_INTERRUPTED = 11
};

/* A square matrix in compressed rows, in host memory, both triangles stored: row i has the columns
 * col[row_ptr[i]] to col[row_ptr[i + 1] - 1], from 0 and increasing, and the values beside them.
 * Where (i, j) is stored, (j, i) is, were it 0. */
typedef struct cpufree_matrix {
  size_t size;
  int32_t rows;
  int32_t type; /* of the values: CPUFREE_FLOAT64, CPUFREE_FLOAT32 */
  int64_t nonzeros;
  const int64_t* row_ptr; /* rows + 1 */
  const int32_t* col;     /* nonzeros */
  const void* val;        /* nonzeros, double or float */
} cpufree_matrix;

/* How a matrix is set up. Nothing is chosen by itself but what 0 or NULL is said to leave open. */
typedef struct cpufree_setup {
  size_t size;
  int32_t engine;         /* CPUFREE_CPU_THREADS (default), CPUFREE_CUDA_P2P */
  int32_t pes;            /* default 1; on GPUs, their number */
  int32_t blocks;         /* per PE; 0 (default): as many threads as there are cores for it, or as
                             many blocks as run at once on a GPU */
  int32_t method;         /* of the solves, default CPUFREE_CG */
  int32_t preconditioner; /* of the solves, default CPUFREE_JACOBI; FSAI and AMG are set up here */
  int32_t pc_level;       /* FSAI: 1 (default), the pattern of A, or 2, that of A^2 */
  int32_t check;          /* 1 (default): refuses values that conjugate gradients cannot have */
  int32_t gpus;           /* how many are named; 0 (default): GPUs 0, 1, ... */
  const int32_t* gpu;     /* number of the GPU of each PE */
  const int32_t* part;    /* rows: the PE of each row; NULL: consecutive rows, of equal nonzeros */
  const int32_t* order;   /* rows: in which sequence PEs number their rows; NULL: as they come */
  int32_t modes;          /* AMG: vectors of near_nullspace, 1 to 6; 0 (default): the constant */
  int32_t numbers;        /* how many numbers of a machine are given, for the layout on GPUs */
  const double* near_nullspace; /* rows x modes, row by row */
  const int32_t* node;          /* rows: the node of each row, from 0; NULL: each row is one */
  const char* const* name;      /* numbers: as in machine files, "gpu.multiprocessors" */
  const double* value;          /* numbers; those that are not given are those of an H200 */
} cpufree_setup;

/* Called while kernels run. Anything but 0 asks for an end, CPUFREE_INTERRUPTED. */
typedef int32_t (*cpufree_progress)(int64_t iteration, double residual, void* context);

typedef struct cpufree_options {
  size_t size;
  int32_t method;           /* default CPUFREE_AS_SET_UP */
  int32_t preconditioner;   /* default CPUFREE_AS_SET_UP */
  double rtol;              /* to ||b - A x|| <= max(rtol ||b||, atol); default 1e-5 */
  double atol;              /* default 0 */
  int64_t maxiter;          /* -1 (default): 10 times the rows */
  double time_limit;        /* seconds; 0 (default): none */
  double wait_limit;        /* seconds that a PE may wait for another one; default 60 */
  int32_t replace_every;    /* PIPECG: iterations between true residuals, 0: never; default 50 */
  int32_t chebyshev_degree; /* default 4 */
  int32_t device; /* where b, x0 and x lie: CPUFREE_HOST (default), or the number of a GPU, whose
                     work on them has ended */
  int32_t reserved;
  cpufree_progress progress; /* NULL (default): none */
  void* context;             /* for it */
} cpufree_options;

typedef struct cpufree_result {
  size_t size;
  int32_t converged; /* 1: the true residual is within the tolerance */
  int32_t reason;    /* CPUFREE_CONVERGED_RTOL ... */
  int64_t iterations;
  double residual;      /* norm, of the recurrence */
  double true_residual; /* ||b - A x|| */
  double bnorm;         /* ||b|| */
  double tolerance;     /* max(rtol ||b||, atol) */
  double seconds;       /* from the launch of the kernels to their end */
  double lambda_max;    /* CHEBYSHEV: estimate for D^-1 A */
  int64_t reductions, exchanges, replacements;
} cpufree_result;

typedef struct cpufree_layout {
  size_t size;
  int64_t rows, nonzeros;
  int32_t engine, type;
  int32_t pes, blocks, threads; /* blocks per PE, threads per block */
  int32_t levels;               /* of AMG, 0: it is not set up */
  int64_t halo_values;          /* moved per exchange */
  double imbalance;             /* largest over mean nonzeros of PEs */
  double matrix_bytes;          /* in the format of the engine, all PEs */
  double setup_seconds;         /* of cpufree_create, or of the last update */
  int64_t updates;
} cpufree_layout;

typedef struct cpufree_solver cpufree_solver;

/* Default values. `size`: of the struct, sizeof. */
CPUFREE_API void cpufree_matrix_init(cpufree_matrix* matrix, size_t size);
CPUFREE_API void cpufree_setup_init(cpufree_setup* setup, size_t size);
CPUFREE_API void cpufree_options_init(cpufree_options* options, size_t size);
CPUFREE_API void cpufree_result_init(cpufree_result* result, size_t size);
CPUFREE_API void cpufree_layout_init(cpufree_layout* layout, size_t size);

/* Checks a matrix and lays it out. `setup`: NULL for the defaults. *solver is NULL after an error.
 */
CPUFREE_API int32_t cpufree_create(const cpufree_matrix* matrix, const cpufree_setup* setup,
                                   cpufree_solver** solver);
/* Takes the values of a matrix of the same pattern and type. After CPUFREE_OUT_OF_MEMORY or
 * CPUFREE_ENGINE_ERROR the old values may be gone: then every later call says so. */
CPUFREE_API int32_t cpufree_update(cpufree_solver* solver, const cpufree_matrix* matrix,
                                   int32_t aggregates);
/* Solves A x = b. b, x0 and x have `rows` values of the type of the matrix. x0: a first guess,
 * NULL: 0. `options`: NULL for the defaults. `result` may be NULL. That a solve has not converged
 * is no error: x is its last iterate then, and `result` says why. */
CPUFREE_API int32_t cpufree_solve(cpufree_solver* solver, const void* b, const void* x0, void* x,
                                  const cpufree_options* options, cpufree_result* result);
/* How the matrix lies. */
CPUFREE_API int32_t cpufree_report(cpufree_solver* solver, cpufree_layout* layout);
/* The same and the last solve as lines of text, until the next call with this solver. */
CPUFREE_API int32_t cpufree_report_text(cpufree_solver* solver, const char** text);
/* Norms of the residual of the last solve, at iterations 0, *stride, 2 *stride, ..., until the next
 * solve. */
CPUFREE_API int32_t cpufree_history(cpufree_solver* solver, const double** norms, int64_t* count,
                                    int64_t* stride);
/* Frees a solver that no thread is using; NULL: nothing. */
CPUFREE_API void cpufree_destroy(cpufree_solver* solver);

/* What went wrong in the last call of this thread that has failed: what, where, what to do. */
CPUFREE_API const char* cpufree_error(void);
/* The entry that it is about, from 0; -1: none. */
CPUFREE_API void cpufree_error_entry(int64_t* row, int64_t* column);
/* "CONVERGED_RTOL" and so on. */
CPUFREE_API const char* cpufree_reason_name(int32_t reason);
/* Of the library, such as "0.1.0". */
CPUFREE_API const char* cpufree_version(void);

#ifdef __cplusplus
}
#endif

#endif /* CPUFREE_CPUFREE_H */
