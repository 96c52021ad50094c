/* SPDX-License-Identifier: Apache-2.0 */

/* The operations of a factored matrix of the solver type "crout", and its registration. */
#include "croutpetsc.h"

/* PETSc creates and fills factored matrices by its private structures only. They change between
 * minor versions of PETSc, so that the library is compiled for one. */
#include <petsc/private/matimpl.h>

#if defined(PETSC_USE_REAL___FLOAT128) || defined(PETSC_USE_REAL___FP16)
#error "The server has no numbers of this type: configure PETSc with single or double precision"
#elif defined(PETSC_USE_COMPLEX) && defined(PETSC_USE_REAL_SINGLE)
#define CROUT_SCALAR CROUT_COMPLEX64
#elif defined(PETSC_USE_COMPLEX)
#define CROUT_SCALAR CROUT_COMPLEX128
#elif defined(PETSC_USE_REAL_SINGLE)
#define CROUT_SCALAR CROUT_FLOAT32
#else
#define CROUT_SCALAR CROUT_FLOAT64
#endif

/* Result of calls of rank 0, which all ranks receive. */
typedef struct {
  int64_t code;       /* CROUT_OK or a negative code */
  int64_t zero_pivot; /* 1-based; -1: unknown; 0: the matrix is not singular */
  char text[1024];    /* crout_last_error() */
} Outcome;

typedef struct {
  CroutSettings settings;
  PetscBool gathers; /* the matrix is distributed */
  CroutGather gather;
  PetscMPIInt rank;
  /* Identity and nonzero state of the last factored matrix; matrix 0: none. */
  PetscObjectId matrix;
  PetscObjectState pattern;

  /* The rest is used on rank 0 only. */
  CroutConnection connection;
  crout_factor* factor;
  PetscBool takes_values; /* unless the server refused values without their positions */
  PetscInt* position; /* place of each entry of compressed rows in compressed columns, or null */
  PetscInt positions;
  crout_solve_result solved;
  PetscBool warned; /* warned of a solution with this factor */
} Mat_Crout;

static PetscErrorCode OutcomeSet(Outcome* outcome, int code) {
  PetscFunctionBegin;
  outcome->code = code;
  if (code < 0) PetscCall(PetscStrncpy(outcome->text, crout_last_error(), sizeof outcome->text));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ErrorOf(int64_t code) {
  switch (code) {
    case CROUT_OUT_OF_MEMORY:
    case CROUT_RESOURCE_EXHAUSTED:
      return PETSC_ERR_MEM;
    case CROUT_INVALID_ARGUMENT:
      return PETSC_ERR_ARG_WRONG;
    case CROUT_FAILED_PRECONDITION:
      return PETSC_ERR_ARG_WRONGSTATE;
    case CROUT_UNIMPLEMENTED:
      return PETSC_ERR_SUP;
    default:
      return PETSC_ERR_LIB;
  }
}

/* Sends the outcome from rank 0 to all ranks. */
static PetscErrorCode OutcomeShare(Mat F, Outcome* outcome) {
  PetscFunctionBegin;
  PetscCallMPI(MPI_Bcast(outcome, (PetscMPIInt)sizeof *outcome, MPI_BYTE, 0,
                         PetscObjectComm((PetscObject)F)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Fails, on all ranks, if the outcome is an error. */
static PetscErrorCode OutcomeCheck(Mat F, const Outcome* outcome) {
  PetscFunctionBegin;
  PetscCheck(outcome->code >= 0, PetscObjectComm((PetscObject)F), ErrorOf(outcome->code),
             "Crout: %s", outcome->text);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Release(Mat_Crout* lu) {
  PetscFunctionBegin;
  /* The server drops the factor at the end of its lease in any case. */
  if (crout_release(lu->factor) != CROUT_OK) {
    PetscCall(PetscInfo(NULL, "Crout: the factor was not released: %s\n", crout_last_error()));
  }
  lu->factor = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Computes the positions of the entries of compressed rows in compressed columns. */
static PetscErrorCode FindPositions(Mat_Crout* lu, PetscInt n, const PetscInt* row,
                                    const PetscInt* col) {
  PetscInt* next;

  PetscFunctionBegin;
  lu->positions = row[n];
  PetscCall(PetscMalloc1(lu->positions, &lu->position));
  PetscCall(PetscCalloc1(n + 1, &next));
  for (PetscInt k = 0; k < row[n]; k++) next[col[k] + 1]++;
  for (PetscInt j = 0; j < n; j++) next[j + 1] += next[j];
  for (PetscInt k = 0; k < row[n]; k++) lu->position[k] = next[col[k]]++;
  PetscCall(PetscFree(next));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SendValues(Mat_Crout* lu, const crout_sparse* a, int* code) {
  const PetscScalar* values = (const PetscScalar*)a->values;
  PetscScalar* by_columns;

  PetscFunctionBegin;
  if (!lu->position) {
    PetscCall(
        FindPositions(lu, (PetscInt)a->n, (const PetscInt*)a->row_start, (const PetscInt*)a->cols));
  }
  PetscCall(PetscMalloc1(lu->positions, &by_columns));
  for (PetscInt k = 0; k < lu->positions; k++) by_columns[lu->position[k]] = values[k];
  *code = crout_refactorize_values(lu->factor, CROUT_SCALAR, by_columns, a->count);
  PetscCall(PetscFree(by_columns));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode NewFactor(Mat_Crout* lu, const crout_sparse* a, int* code) {
  const CroutSettings* s = &lu->settings;
  crout_factorize_options options = {.struct_size = sizeof options};

  PetscFunctionBegin;
  if (!lu->connection) {
    PetscCall(CroutConnectionGet(s, &lu->connection, code));
    if (*code != CROUT_OK) PetscFunctionReturn(PETSC_SUCCESS);
  }
  options.name = s->name[0] ? s->name : NULL;
  options.algorithm = s->algorithm[0] ? s->algorithm : NULL;
  options.precision = s->precision[0] ? s->precision : NULL;
  options.lease = (double)s->lease;
  options.pivot_threshold = (double)s->pivot_threshold;
  options.condition = s->condition;
  *code = crout_factorize_sparse(CroutConnectionHandle(lu->connection), a, &options, &lu->factor);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Factors with the least data: the values for the factor's pattern, the whole matrix for the
 * factor, or a new factor. */
static PetscErrorCode Factorize(Mat_Crout* lu, const crout_sparse* a, PetscBool same_pattern,
                                int* code) {
  PetscFunctionBegin;
  *code = CROUT_FAILED_PRECONDITION;
  if (!same_pattern) {
    PetscCall(PetscFree(lu->position));
    lu->takes_values = PETSC_TRUE;
  }
  if (lu->factor && same_pattern && lu->takes_values) {
    PetscCall(SendValues(lu, a, code));
    lu->takes_values = (PetscBool)(*code != CROUT_FAILED_PRECONDITION);
    PetscCall(PetscInfo(NULL, "Crout: sent %" PetscInt64_FMT " values: %s\n", (PetscInt64)a->count,
                        *code < 0 ? crout_last_error() : "factored"));
  }
  if (lu->factor && *code == CROUT_FAILED_PRECONDITION) {
    *code = crout_refactorize_sparse(lu->factor, a);
    PetscCall(PetscInfo(NULL, "Crout: sent the matrix for the factor: %s\n",
                        *code < 0 ? crout_last_error() : "factored"));
  }
  if (lu->factor && *code == CROUT_NOT_FOUND) PetscCall(Release(lu));
  if (!lu->factor) {
    PetscCall(NewFactor(lu, a, code));
    PetscCall(PetscInfo(NULL, "Crout: sent the matrix for a new factor: %s\n",
                        *code < 0 ? crout_last_error() : "factored"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FactorizeLocal(Mat_Crout* lu, Mat local, PetscBool same, Outcome* outcome) {
  crout_sparse a = {.struct_size = sizeof a};
  crout_description made = {.struct_size = sizeof made};
  const PetscInt *row, *col;
  const PetscScalar* values;
  PetscInt n;
  PetscBool done;
  int code;

  PetscFunctionBegin;
  lu->warned = PETSC_FALSE;
  PetscCall(MatGetRowIJ(local, 0, PETSC_FALSE, PETSC_FALSE, &n, &row, &col, &done));
  PetscCheck(done, PETSC_COMM_SELF, PETSC_ERR_SUP, "The matrix has no compressed rows");
  PetscCall(MatSeqAIJGetArrayRead(local, &values));
  a.dtype = CROUT_SCALAR;
  a.index_bytes = (int32_t)sizeof(PetscInt);
  a.n = n;
  a.count = row[n];
  a.values = values;
  a.cols = col;
  a.row_start = row;
  PetscCall(Factorize(lu, &a, same, &code));
  PetscCall(MatSeqAIJRestoreArrayRead(local, &values));
  PetscCall(MatRestoreRowIJ(local, 0, PETSC_FALSE, PETSC_FALSE, &n, &row, &col, &done));
  if (code == CROUT_SINGULAR) { /* the server keeps the previous factor */
    outcome->zero_pivot = -1;
    code = CROUT_OK;
  } else if (code == CROUT_OK) {
    code = crout_describe(lu->factor, &made);
    outcome->zero_pivot = made.info;
  }
  PetscCall(OutcomeSet(outcome, code));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatLUFactorNumeric_Crout(Mat F, Mat A, const MatFactorInfo* info) {
  Mat_Crout* lu = (Mat_Crout*)F->data;
  Mat local = A;
  Outcome outcome = {0};
  PetscObjectId matrix;
  PetscObjectState pattern;
  PetscBool same;

  PetscFunctionBegin;
  (void)info;
  PetscCall(PetscObjectGetId((PetscObject)A, &matrix));
  PetscCall(MatGetNonzeroState(A, &pattern));
  same = (PetscBool)(lu->matrix == matrix && lu->pattern == pattern);
  lu->matrix = 0;
  F->factorerrortype = MAT_FACTOR_NOERROR;
  if (lu->gathers) {
    PetscCall(CroutGatherCheck(A, lu->settings.gather_limit));
    PetscCall(CroutGatherMatrix(&lu->gather, A, same, &local));
  }
  if (lu->rank == 0) PetscCall(FactorizeLocal(lu, local, same, &outcome));
  PetscCall(OutcomeShare(F, &outcome));
  PetscCall(OutcomeCheck(F, &outcome));
  lu->matrix = matrix;
  lu->pattern = pattern;
  if (outcome.zero_pivot != 0) {
    PetscCheck(!A->erroriffailure, PetscObjectComm((PetscObject)F), PETSC_ERR_MAT_LU_ZRPVT,
               "Crout: the matrix is singular; zero pivot %" PetscInt64_FMT " (-1: unknown)",
               (PetscInt64)outcome.zero_pivot);
    F->factorerrortype = MAT_FACTOR_NUMERIC_ZEROPIVOT;
    F->factorerror_zeropivot_value = 0;
    F->factorerror_zeropivot_row = (PetscInt)(outcome.zero_pivot > 0 ? outcome.zero_pivot - 1 : -1);
    PetscCall(
        PetscInfo(F, "Crout: zero pivot %" PetscInt64_FMT "\n", (PetscInt64)outcome.zero_pivot));
  }
  F->assembled = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatLUFactorSymbolic_Crout(Mat F, Mat A, IS row, IS col,
                                                const MatFactorInfo* info) {
  Mat_Crout* lu = (Mat_Crout*)F->data;
  CroutSettings settings;
  PetscBool unchanged;

  PetscFunctionBegin;
  (void)A; /* the server analyses the pattern when it first factors the matrix */
  (void)row;
  (void)col;
  (void)info;
  settings = lu->settings;
  PetscCall(CroutSettingsRead(F, &settings));
  PetscCall(PetscMemcmp(&settings, &lu->settings, sizeof settings, &unchanged));
  if (!unchanged) {
    PetscCall(Release(lu));
    PetscCall(CroutConnectionRestore(&lu->connection));
    lu->settings = settings;
  }
  lu->matrix = 0;
  F->ops->lufactornumeric = MatLUFactorNumeric_Crout;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Solves op(A) X = B for column-major arrays of this process. */
static PetscErrorCode SolveLocal(Mat F, crout_operation operation, PetscInt count,
                                 const PetscScalar* b, PetscInt ldb, PetscScalar* x, PetscInt ldx,
                                 Outcome* outcome) {
  Mat_Crout* lu = (Mat_Crout*)F->data;
  crout_solve_options options = {.struct_size = sizeof options};
  crout_matrix rhs = {0};

  PetscFunctionBegin;
  rhs.data = b;
  rhs.dtype = CROUT_SCALAR;
  rhs.layout = CROUT_COLUMN_MAJOR;
  rhs.rows = F->rmap->N;
  rhs.cols = count;
  rhs.ld = ldb;
  options.transpose = operation;
  options.max_refinement_steps = (int32_t)lu->settings.refinement_steps;
  options.skip_verification = !lu->settings.verify;
  lu->solved.struct_size = sizeof lu->solved;
  PetscCall(OutcomeSet(outcome, crout_solve(lu->factor, &rhs, &options, x, ldx, &lu->solved)));
  if (outcome->code == CROUT_OK) {
    PetscCall(PetscInfo(F,
                        "Crout: solved %" PetscInt_FMT " systems, backward error %g, warnings %d\n",
                        count, lu->solved.backward_error, (int)lu->solved.warnings));
    if (!lu->warned &&
        lu->solved.warnings & (CROUT_WARNING_NOT_ACCURATE | CROUT_WARNING_NEARLY_SINGULAR)) {
      lu->warned = PETSC_TRUE;
      PetscCall(PetscFPrintf(PETSC_COMM_SELF, PETSC_STDERR,
                             "Crout: WARNING: a solution may be inaccurate: %s (backward error "
                             "%g)\n",
                             lu->solved.warnings & CROUT_WARNING_NOT_ACCURATE
                                 ? "its backward error is too large"
                                 : "the matrix may be numerically singular",
                             lu->solved.backward_error));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SolveVector(Mat F, crout_operation operation, Vec b, Vec x) {
  Mat_Crout* lu = (Mat_Crout*)F->data;
  CroutGather* gather = &lu->gather;
  Outcome outcome = {0};
  Vec rhs = lu->gathers ? gather->all : b, solution = lu->gathers ? gather->solution : x;
  PetscInt n = F->rmap->N;

  PetscFunctionBegin;
  if (lu->gathers) {
    PetscCall(VecScatterBegin(gather->move, b, rhs, INSERT_VALUES, SCATTER_FORWARD));
    PetscCall(VecScatterEnd(gather->move, b, rhs, INSERT_VALUES, SCATTER_FORWARD));
  }
  if (lu->rank == 0) {
    const PetscScalar* from;
    PetscScalar* to;
    PetscCall(VecGetArrayRead(rhs, &from));
    PetscCall(VecGetArrayWrite(solution, &to));
    PetscCall(SolveLocal(F, operation, 1, from, n, to, n, &outcome));
    PetscCall(VecRestoreArrayWrite(solution, &to));
    PetscCall(VecRestoreArrayRead(rhs, &from));
  }
  PetscCall(OutcomeShare(F, &outcome));
  PetscCall(OutcomeCheck(F, &outcome));
  if (lu->gathers) {
    PetscCall(VecScatterBegin(gather->move, solution, x, INSERT_VALUES, SCATTER_REVERSE));
    PetscCall(VecScatterEnd(gather->move, solution, x, INSERT_VALUES, SCATTER_REVERSE));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSolve_Crout(Mat F, Vec b, Vec x) {
  PetscFunctionBegin;
  PetscCall(SolveVector(F, CROUT_NO_TRANSPOSE, b, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSolveTranspose_Crout(Mat F, Vec b, Vec x) {
  PetscFunctionBegin;
  PetscCall(SolveVector(F, CROUT_TRANSPOSE, b, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SolveGathered(Mat F, crout_operation operation, PetscInt count,
                                    PetscScalar* b, PetscInt ldb, PetscScalar* x, PetscInt ldx,
                                    Outcome* outcome) {
  Mat_Crout* lu = (Mat_Crout*)F->data;
  PetscScalar *rhs = NULL, *solution = NULL;
  PetscInt n = F->rmap->N;

  PetscFunctionBegin;
  if (lu->rank == 0) {
    const size_t elements = (size_t)n * (size_t)count;
    PetscCall(PetscMalloc2(elements, &rhs, elements, &solution));
  }
  PetscCall(CroutGatherColumns(&lu->gather, SCATTER_FORWARD, count, b, ldb, rhs, n));
  if (lu->rank == 0) {
    PetscCall(SolveLocal(F, operation, count, rhs, n, solution, n, outcome));
  }
  PetscCall(OutcomeShare(F, outcome));
  if (outcome->code == CROUT_OK) {
    PetscCall(CroutGatherColumns(&lu->gather, SCATTER_REVERSE, count, x, ldx, solution, n));
  }
  PetscCall(PetscFree2(rhs, solution));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SolveMatrix(Mat F, crout_operation operation, Mat B, Mat X) {
  Mat_Crout* lu = (Mat_Crout*)F->data;
  Outcome outcome = {0};
  const PetscScalar* b;
  PetscScalar* x;
  PetscInt count, ldb, ldx;
  PetscBool dense[2];

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)B, &dense[0], MATSEQDENSE, MATMPIDENSE, NULL));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)X, &dense[1], MATSEQDENSE, MATMPIDENSE, NULL));
  PetscCheck(dense[0] && dense[1], PetscObjectComm((PetscObject)F), PETSC_ERR_ARG_WRONG,
             "Right-hand sides of type %s and solutions of type %s: convert both to dense matrices",
             ((PetscObject)B)->type_name, ((PetscObject)X)->type_name);
  PetscCheck(B != X, PetscObjectComm((PetscObject)F), PETSC_ERR_ARG_IDN,
             "Right-hand sides and solutions must be different matrices");
  /* MatSolve checks this itself. The server may still have the factor of an earlier matrix. */
  PetscCheck(!F->factorerrortype, PetscObjectComm((PetscObject)F), PETSC_ERR_MAT_LU_ZRPVT,
             "Crout: the matrix is singular");
  PetscCall(MatGetSize(B, NULL, &count));
  PetscCall(MatDenseGetLDA(B, &ldb));
  PetscCall(MatDenseGetLDA(X, &ldx));
  PetscCall(MatDenseGetArrayRead(B, &b));
  PetscCall(MatDenseGetArrayWrite(X, &x));
  if (lu->gathers) {
    PetscCall(SolveGathered(F, operation, count, (PetscScalar*)b, ldb, x, ldx, &outcome));
  } else {
    PetscCall(SolveLocal(F, operation, count, b, ldb, x, ldx, &outcome));
  }
  PetscCall(MatDenseRestoreArrayWrite(X, &x));
  PetscCall(MatDenseRestoreArrayRead(B, &b));
  PetscCall(OutcomeCheck(F, &outcome));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMatSolve_Crout(Mat F, Mat B, Mat X) {
  PetscFunctionBegin;
  PetscCall(SolveMatrix(F, CROUT_NO_TRANSPOSE, B, X));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMatSolveTranspose_Crout(Mat F, Mat B, Mat X) {
  PetscFunctionBegin;
  PetscCall(SolveMatrix(F, CROUT_TRANSPOSE, B, X));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatView_Crout(Mat F, PetscViewer viewer) {
  Mat_Crout* lu = (Mat_Crout*)F->data;
  crout_description made = {.struct_size = sizeof made};
  PetscViewerFormat format;
  PetscBool ascii;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)viewer, PETSCVIEWERASCII, &ascii));
  if (!ascii) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscViewerGetFormat(viewer, &format));
  if (format != PETSC_VIEWER_ASCII_INFO && format != PETSC_VIEWER_ASCII_INFO_DETAIL) {
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (lu->factor && crout_describe(lu->factor, &made) == CROUT_OK) {
    PetscCall(PetscViewerASCIIPrintf(viewer, "Crout %s, libcrout %s:\n",
                                     lu->settings.server[0] ? lu->settings.server : "server",
                                     crout_version()));
    PetscCall(PetscViewerASCIIPrintf(viewer, "  handle %s, version %" PetscInt64_FMT "\n",
                                     made.handle, (PetscInt64)made.version));
    PetscCall(PetscViewerASCIIPrintf(viewer, "  1-norm %g, pivot growth %g\n", made.norm_one,
                                     made.pivot_growth));
    if (lu->settings.condition) {
      PetscCall(PetscViewerASCIIPrintf(viewer, "  reciprocal condition %g\n", made.rcond));
    }
    if (lu->solved.struct_size && lu->settings.verify) {
      PetscCall(
          PetscViewerASCIIPrintf(viewer, "  last solve: backward error %g, %d refinement steps\n",
                                 lu->solved.backward_error, (int)lu->solved.refinement_steps));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The server reports neither the entries nor the bytes of a factor to libcrout. */
static PetscErrorCode MatGetInfo_Crout(Mat F, MatInfoType flag, MatInfo* info) {
  PetscFunctionBegin;
  (void)F;
  (void)flag;
  PetscCall(PetscMemzero(info, sizeof *info));
  info->block_size = 1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatFactorGetSolverType_Crout(Mat F, MatSolverType* type) {
  PetscFunctionBegin;
  (void)F;
  *type = MATSOLVERCROUT;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatDestroy_Crout(Mat F) {
  Mat_Crout* lu = (Mat_Crout*)F->data;

  PetscFunctionBegin;
  PetscCall(Release(lu));
  PetscCall(CroutConnectionRestore(&lu->connection));
  PetscCall(CroutGatherDestroy(&lu->gather));
  PetscCall(PetscFree(lu->position));
  PetscCall(PetscObjectComposeFunction((PetscObject)F, "MatFactorGetSolverType_C", NULL));
  PetscCall(PetscFree(F->data));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatGetFactor_Crout(Mat A, MatFactorType type, Mat* factored) {
  MPI_Comm comm = PetscObjectComm((PetscObject)A);
  Mat_Crout* lu;
  Mat F;
  PetscBool square, distributed;

  PetscFunctionBegin;
  PetscCall(MatHasCongruentLayouts(A, &square));
  PetscCheck(square, comm, PETSC_ERR_SUP,
             "Rows and columns are distributed differently: give the matrix one layout for both");
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)A, MATMPIAIJ, &distributed));
  PetscCall(MatCreate(comm, &F));
  PetscCall(MatSetSizes(F, A->rmap->n, A->cmap->n, A->rmap->N, A->cmap->N));
  PetscCall(PetscStrallocpy(MATSOLVERCROUT, &((PetscObject)F)->type_name));
  PetscCall(MatSetUp(F));
  PetscCall(PetscFree(F->solvertype));
  PetscCall(PetscStrallocpy(MATSOLVERCROUT, &F->solvertype));
  PetscCall(PetscStrallocpy(MATORDERINGEXTERNAL, (char**)&F->preferredordering[type]));

  PetscCall(PetscNew(&lu));
  lu->gathers = distributed;
  lu->takes_values = PETSC_TRUE;
  lu->settings.verify = PETSC_TRUE;
  lu->settings.gather_limit = 4096;
  PetscCallMPI(MPI_Comm_rank(comm, &lu->rank));
  F->data = lu;
  F->factortype = type;
  F->trivialsymbolic = PETSC_TRUE;
  F->preallocated = PETSC_TRUE;
  F->ops->lufactorsymbolic = MatLUFactorSymbolic_Crout;
  F->ops->solve = MatSolve_Crout;
  F->ops->solvetranspose = MatSolveTranspose_Crout;
  F->ops->matsolve = MatMatSolve_Crout;
  F->ops->matsolvetranspose = MatMatSolveTranspose_Crout;
  F->ops->getinfo = MatGetInfo_Crout;
  F->ops->view = MatView_Crout;
  F->ops->destroy = MatDestroy_Crout;
  PetscCall(PetscObjectComposeFunction((PetscObject)F, "MatFactorGetSolverType_C",
                                       MatFactorGetSolverType_Crout));
  *factored = F;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Fails if the program's PETSc differs from the PETSc that this library was compiled for. */
static PetscErrorCode CheckPetsc(void) {
  /* The library writes 4 or 8 bytes of each number. */
  PetscInt64 version[4] = {-1, -1, -1, -1};
  PetscDataType scalar;
  PetscBool known;
  int bytes;

  PetscFunctionBegin;
  PetscCall(PetscGetVersionNumber((PetscInt*)&version[0], (PetscInt*)&version[1],
                                  (PetscInt*)&version[2], (PetscInt*)&version[3]));
  bytes = version[0] < 0 ? 4 : 8;
  PetscCall(PetscDataTypeFromString("scalar", &scalar, &known));
  PetscCheck(
      (int32_t)version[0] == PETSC_VERSION_MAJOR && (int32_t)version[1] == PETSC_VERSION_MINOR &&
          scalar == PETSC_SCALAR && bytes == (int)sizeof(PetscInt),
      PETSC_COMM_SELF, PETSC_ERR_SUP,
      "libcroutpetsc was compiled for PETSc %d.%d with %s scalars and %d-bit indices; this "
      "program uses PETSc %d.%d, %s and %d-bit indices. Compile libcroutpetsc for it",
      PETSC_VERSION_MAJOR, PETSC_VERSION_MINOR, PetscDefined(USE_COMPLEX) ? "complex" : "real",
      (int)(8 * sizeof(PetscInt)), (int)version[0], (int)version[1],
      scalar == PETSC_SCALAR ? "the same scalars" : "other scalars", 8 * bytes);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PetscDLLibraryRegister_croutpetsc(void) {
  PetscFunctionBegin;
  PetscCall(CheckPetsc());
  /* PETSc 3.18 loses its own solver types if the first registration initializes the package. */
  PetscCall(MatInitializePackage());
  PetscCall(MatSolverTypeRegister(MATSOLVERCROUT, MATSEQAIJ, MAT_FACTOR_LU, MatGetFactor_Crout));
  PetscCall(MatSolverTypeRegister(MATSOLVERCROUT, MATMPIAIJ, MAT_FACTOR_LU, MatGetFactor_Crout));
  PetscFunctionReturn(PETSC_SUCCESS);
}
