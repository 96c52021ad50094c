/* SPDX-License-Identifier: Apache-2.0 */

/* Internal declarations of libcroutpetsc, the solver type "crout" of PETSc. docs/petsc.md documents
 * its use. In a matrix with several processes only rank 0 calls the server. */
#ifndef CROUT_CLIENT_PETSC_CROUTPETSC_H_
#define CROUT_CLIENT_PETSC_CROUTPETSC_H_

#include <crout/crout.h>
#include <petscmat.h>

#define MATSOLVERCROUT "crout"

#ifndef PETSC_SUCCESS /* PETSc 3.18 and older */
#define PETSC_SUCCESS 0
#endif

/* The options -mat_crout_*. An empty string selects the default. */
typedef struct {
  char server[PETSC_MAX_PATH_LEN];
  char tenant[128];
  char name[160];
  char algorithm[64];
  char precision[16];
  PetscReal timeout;         /* seconds of a call; 0: default of libcrout */
  PetscReal lease;           /* seconds; 0: default of the server */
  PetscReal pivot_threshold; /* 0: default of the server */
  PetscReal gather_limit;    /* MiB that a gathered matrix may take on rank 0 */
  PetscInt refinement_steps;
  PetscBool condition; /* estimate the reciprocal condition */
  PetscBool verify;    /* measure the backward error of each solve */
} CroutSettings;

/* Reads the options with the prefix of `F`. Options that are not set leave `settings` unchanged. */
PetscErrorCode CroutSettingsRead(Mat F, CroutSettings* settings);

/* A connection that all factors of this process with the same server, tenant and timeout share. */
typedef struct _n_CroutConnection* CroutConnection;

/* Sets *code to the result of crout_connect_with; *connection is null on failure. */
PetscErrorCode CroutConnectionGet(const CroutSettings* settings, CroutConnection* connection,
                                  int* code);
crout_connection* CroutConnectionHandle(CroutConnection connection);
PetscErrorCode CroutConnectionRestore(CroutConnection* connection);

/* Gathers a distributed matrix, and vectors and dense matrices with its rows, on rank 0. */
typedef struct {
  Mat* matrix;     /* null before CroutGatherMatrix */
  VecScatter move; /* from a distributed vector to `all` */
  Vec part;        /* distributed; its array is placed for each column */
  Vec all;         /* on rank 0 all rows, on other ranks none */
  Vec solution;    /* like `all` */
} CroutGather;

/* Fails if A takes more than `limit` MiB on rank 0. */
PetscErrorCode CroutGatherCheck(Mat A, PetscReal limit);
/* `same`: A is the matrix of the previous call, with the same nonzero pattern. *local is a
 * MATSEQAIJ that `gather` owns; on ranks other than 0 it is empty. */
PetscErrorCode CroutGatherMatrix(CroutGather* gather, Mat A, PetscBool same, Mat* local);
/* Copies between `count` columns of a distributed dense matrix and an array of rank 0 with leading
 * dimension `rows`. `column` points to the process' rows of the first column. */
PetscErrorCode CroutGatherColumns(CroutGather* gather, ScatterMode direction, PetscInt count,
                                  PetscScalar* column, PetscInt ld, PetscScalar* all,
                                  PetscInt rows);
PetscErrorCode CroutGatherDestroy(CroutGather* gather);

/* PETSc calls this function when it loads the library. Programs that link the library may call it
 * after PetscInitialize(). */
PETSC_EXTERN PetscErrorCode PetscDLLibraryRegister_croutpetsc(void);

#endif /* CROUT_CLIENT_PETSC_CROUTPETSC_H_ */
