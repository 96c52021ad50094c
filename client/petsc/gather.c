/* SPDX-License-Identifier: Apache-2.0 */

/* Gathers distributed matrices and vectors on rank 0. */
#include "croutpetsc.h"

PetscErrorCode CroutGatherCheck(Mat A, PetscReal limit) {
  MPI_Comm comm = PetscObjectComm((PetscObject)A);
  MatInfo info;
  PetscInt rows;
  PetscReal mib;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &rows, NULL));
  PetscCall(MatGetInfo(A, MAT_GLOBAL_SUM, &info));
  mib = (PetscReal)((info.nz_used * (sizeof(PetscScalar) + sizeof(PetscInt)) +
                     ((double)rows + 1) * sizeof(PetscInt)) /
                    1048576);
  PetscCheck(mib <= limit, comm, PETSC_ERR_SUP,
             "The matrix of order %" PetscInt_FMT
             " with %.0f entries takes %.3g MiB on rank 0; the limit is %.3g MiB. Raise "
             "-mat_crout_gather_limit, or factor its blocks: -pc_type bjacobi -sub_pc_type lu "
             "-sub_pc_factor_mat_solver_type crout",
             rows, info.nz_used, (double)mib, (double)limit);
  PetscCheck(
      info.nz_used <= (double)PETSC_MAX_INT, comm, PETSC_ERR_SUP,
      "The matrix has %.0f entries, more than PetscInt can count on rank 0. Use a PETSc with "
      "64-bit indices",
      info.nz_used);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode CroutGatherMatrix(CroutGather* gather, Mat A, PetscBool same, Mat* local) {
  MPI_Comm comm = PetscObjectComm((PetscObject)A);
  PetscBool reuse = (PetscBool)(same && gather->matrix);
  IS every;
  PetscMPIInt rank;
  PetscInt rows;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  PetscCall(MatGetSize(A, &rows, NULL));
  if (gather->matrix && !reuse) PetscCall(MatDestroySubMatrices(1, &gather->matrix));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, rank == 0 ? rows : 0, 0, 1, &every));
  PetscCall(MatCreateSubMatrices(A, 1, &every, &every,
                                 reuse ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, &gather->matrix));
  PetscCall(ISDestroy(&every));
  if (!gather->move) {
    PetscInt own;
    PetscCall(MatGetLocalSize(A, &own, NULL));
    PetscCall(VecCreateMPIWithArray(comm, 1, own, rows, NULL, &gather->part));
    PetscCall(VecScatterCreateToZero(gather->part, &gather->move, &gather->all));
    PetscCall(VecDuplicate(gather->all, &gather->solution));
  }
  *local = gather->matrix[0];
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode CroutGatherColumns(CroutGather* gather, ScatterMode direction, PetscInt count,
                                  PetscScalar* column, PetscInt ld, PetscScalar* all,
                                  PetscInt rows) {
  Vec from = direction == SCATTER_FORWARD ? gather->part : gather->all;
  Vec to = direction == SCATTER_FORWARD ? gather->all : gather->part;

  PetscFunctionBegin;
  for (PetscInt j = 0; j < count; j++) {
    PetscCall(VecPlaceArray(gather->part, column + j * ld));
    PetscCall(VecPlaceArray(gather->all, all ? all + j * rows : NULL));
    PetscCall(VecScatterBegin(gather->move, from, to, INSERT_VALUES, direction));
    PetscCall(VecScatterEnd(gather->move, from, to, INSERT_VALUES, direction));
    PetscCall(VecResetArray(gather->all));
    PetscCall(VecResetArray(gather->part));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode CroutGatherDestroy(CroutGather* gather) {
  PetscFunctionBegin;
  if (gather->matrix) PetscCall(MatDestroySubMatrices(1, &gather->matrix));
  PetscCall(VecScatterDestroy(&gather->move));
  PetscCall(VecDestroy(&gather->part));
  PetscCall(VecDestroy(&gather->all));
  PetscCall(VecDestroy(&gather->solution));
  PetscFunctionReturn(PETSC_SUCCESS);
}
