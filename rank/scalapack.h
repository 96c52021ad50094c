// SPDX-License-Identifier: Apache-2.0

// ScaLAPACK's Fortran routines and the C interface of BLACS, for which the library has no header.
#ifndef CROUT_RANK_SCALAPACK_H_
#define CROUT_RANK_SCALAPACK_H_

#include <complex>

extern "C" {
void Cblacs_pinfo(int* rank, int* ranks);
void Cblacs_get(int context, int what, int* value);
void Cblacs_set(int context, int what, const int* value);
void Cblacs_gridinit(int* context, const char* order, int rows, int cols);
void Cblacs_gridinfo(int context, int* rows, int* cols, int* row, int* col);
void Cblacs_barrier(int context, const char* scope);
void Cigamn2d(int context, const char* scope, const char* topology, int rows, int cols, int* a,
              int lda, int* rows_of, int* cols_of, int ld_positions, int row, int col);
void Cigebs2d(int context, const char* scope, const char* topology, int rows, int cols, int* a,
              int lda);
void Cigebr2d(int context, const char* scope, const char* topology, int rows, int cols, int* a,
              int lda, int row, int col);

int numroc_(const int* n, const int* block, const int* process, const int* source,
            const int* processes);
void descinit_(int* descriptor, const int* rows, const int* cols, const int* row_block,
               const int* col_block, const int* row_source, const int* col_source,
               const int* context, const int* lld, int* info);

#define CROUT_DECLARE_PXGETR(letter, T)                                                         \
  void p##letter##getrf_(const int* m, const int* n, T* a, const int* ia, const int* ja,        \
                         const int* desca, int* ipiv, int* info);                               \
  void p##letter##getrs_(const char* trans, const int* n, const int* nrhs, const T* a,          \
                         const int* ia, const int* ja, const int* desca, const int* ipiv, T* b, \
                         const int* ib, const int* jb, const int* descb, int* info);
CROUT_DECLARE_PXGETR(s, float)
CROUT_DECLARE_PXGETR(d, double)
CROUT_DECLARE_PXGETR(c, std::complex<float>)
CROUT_DECLARE_PXGETR(z, std::complex<double>)
#undef CROUT_DECLARE_PXGETR
}  // extern "C"

namespace crout::rank {

#define CROUT_DEFINE_PXGETR(letter, T)                                                             \
  inline void Getrf(int n, T* a, const int* descriptor, int* ipiv, int* info) {                    \
    const int one = 1;                                                                             \
    p##letter##getrf_(&n, &n, a, &one, &one, descriptor, ipiv, info);                              \
  }                                                                                                \
  inline void Getrs(char op, int n, int nrhs, const T* a, const int* desca, const int* ipiv, T* b, \
                    const int* descb, int* info) {                                                 \
    const int one = 1;                                                                             \
    p##letter##getrs_(&op, &n, &nrhs, a, &one, &one, desca, ipiv, b, &one, &one, descb, info);     \
  }
CROUT_DEFINE_PXGETR(s, float)
CROUT_DEFINE_PXGETR(d, double)
CROUT_DEFINE_PXGETR(c, std::complex<float>)
CROUT_DEFINE_PXGETR(z, std::complex<double>)
#undef CROUT_DEFINE_PXGETR

}  // namespace crout::rank

#endif  // CROUT_RANK_SCALAPACK_H_
