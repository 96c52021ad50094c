/* SPDX-License-Identifier: Apache-2.0 */

/* Additive Schwarz preconditioner whose subdomain solves run on a Crout server.
 * The functions have the form of a shell preconditioner of PETSc (PCShellSetSetUp, PCShellSetApply,
 * PCShellSetDestroy), called by a conjugate-gradient loop.
 *
 * -Laplace(u) = 1 on the unit square, with a five-point stencil on M x M inner points. The square
 * is divided into P x P boxes, each enlarged by an overlap. Set-up factors the dense matrix of each
 * box on the server. Each iteration solves with all factors: z = sum over boxes R^T A_box^-1 R r.
 *
 * usage: schwarz [HOST:PORT] */
#include <crout/crout.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { M = 40, UNKNOWNS = M * M, P = 4, OVERLAP = 2, LIMIT = 500 };
static const double TOLERANCE = 1e-10; /* limit of the residual, relative to the right-hand side */

typedef struct box {
  int left, right, bottom, top; /* columns left <= i < right, rows bottom <= j < top of the grid */
  crout_factor* lu;
} box;

typedef struct schwarz {
  box boxes[P * P];
  double local[UNKNOWNS]; /* the residual in one box, then the correction */
} schwarz;

static int least(int a, int b) { return a < b ? a : b; }
static int most(int a, int b) { return a > b ? a : b; }

static box box_of(int index) {
  const int i = index % P * M / P, j = index / P * M / P;
  box b = {most(0, i - OVERLAP), least(M, i + M / P + OVERLAP), most(0, j - OVERLAP),
           least(M, j + M / P + OVERLAP), NULL};
  return b;
}

static int order_of(const box* b) { return (b->right - b->left) * (b->top - b->bottom); }

/* Returns the dense matrix of a box, its rows and columns of the Laplacian; the caller frees it.
 * Null if memory is exhausted. */
static double* matrix_of(const box* b) {
  const int width = b->right - b->left, n = order_of(b);
  double* a = calloc((size_t)n * (size_t)n, sizeof *a);
  for (int k = 0; a != NULL && k < n; ++k) {
    double* column = a + (size_t)k * (size_t)n;
    column[k] = 4;
    if (k % width > 0) column[k - 1] = -1;
    if (k % width < width - 1) column[k + 1] = -1;
    if (k >= width) column[k - width] = -1;
    if (k + width < n) column[k + width] = -1;
  }
  return a;
}

/* PCSetUp: factors every box. Returns 0, or the code of crout_dgetrf. */
static int64_t schwarz_set_up(schwarz* pc, crout_connection* server) {
  for (int k = 0; k < P * P; ++k) pc->boxes[k] = box_of(k);
  for (int k = 0; k < P * P; ++k) {
    box* b = &pc->boxes[k];
    const int n = order_of(b);
    double* a = matrix_of(b);
    if (a == NULL) return CROUT_OUT_OF_MEMORY;
    const int64_t info = crout_dgetrf(server, n, a, n, &b->lu);
    free(a);
    if (info != 0) return info;
  }
  return 0;
}

/* PCApply: z = M^-1 r. Returns 0, or the code of crout_dgetrs. */
static int64_t schwarz_apply(void* context, const double* r, double* z) {
  schwarz* pc = context;
  for (int k = 0; k < UNKNOWNS; ++k) z[k] = 0;
  for (int k = 0; k < P * P; ++k) {
    const box* b = &pc->boxes[k];
    double* to = pc->local;
    for (int j = b->bottom; j < b->top; ++j) {
      for (int i = b->left; i < b->right; ++i) *to++ = r[i + j * M];
    }
    const int n = order_of(b);
    const int64_t info = crout_dgetrs(b->lu, 'N', n, 1, pc->local, n);
    if (info != 0) return info;
    const double* from = pc->local;
    for (int j = b->bottom; j < b->top; ++j) {
      for (int i = b->left; i < b->right; ++i) z[i + j * M] += *from++;
    }
  }
  return 0;
}

/* PCDestroy: releases the factors. */
static void schwarz_destroy(schwarz* pc) {
  for (int k = 0; k < P * P; ++k) crout_release(pc->boxes[k].lu);
}

static int64_t no_preconditioner(void* context, const double* r, double* z) {
  (void)context;
  for (int k = 0; k < UNKNOWNS; ++k) z[k] = r[k];
  return 0;
}

static void laplacian(const double* x, double* y) {
  for (int j = 0; j < M; ++j) {
    for (int i = 0; i < M; ++i) {
      const int k = i + j * M;
      y[k] = 4 * x[k] - (i > 0 ? x[k - 1] : 0) - (i < M - 1 ? x[k + 1] : 0) -
             (j > 0 ? x[k - M] : 0) - (j < M - 1 ? x[k + M] : 0);
    }
  }
}

static double dot(const double* x, const double* y) {
  double sum = 0;
  for (int k = 0; k < UNKNOWNS; ++k) sum += x[k] * y[k];
  return sum;
}

static void add(double alpha, const double* x, double* y) {
  for (int k = 0; k < UNKNOWNS; ++k) y[k] += alpha * x[k];
}

typedef int64_t (*preconditioner)(void* context, const double* r, double* z);

/* Preconditioned conjugate gradients from x = 0. Returns the number of iterations, -1 if LIMIT was
 * reached, or the error of the preconditioner. */
static int64_t conjugate_gradients(preconditioner apply, void* context, const double* b,
                                   double* x) {
  static double r[UNKNOWNS], z[UNKNOWNS], p[UNKNOWNS], q[UNKNOWNS];
  for (int k = 0; k < UNKNOWNS; ++k) x[k] = p[k] = 0, r[k] = b[k];
  double rho = 1;
  for (int64_t iteration = 0; iteration < LIMIT; ++iteration) {
    if (sqrt(dot(r, r)) <= TOLERANCE * sqrt(dot(b, b))) return iteration;
    const int64_t info = apply(context, r, z);
    if (info != 0) return info;
    const double previous = rho;
    rho = dot(r, z);
    for (int k = 0; k < UNKNOWNS; ++k) p[k] = z[k] + (iteration > 0 ? rho / previous : 0) * p[k];
    laplacian(p, q);
    const double alpha = rho / dot(p, q);
    add(alpha, p, x);
    add(-alpha, q, r);
  }
  return -1;
}

static double residual(const double* b, const double* x) {
  static double r[UNKNOWNS];
  laplacian(x, r);
  for (int k = 0; k < UNKNOWNS; ++k) r[k] -= b[k];
  return sqrt(dot(r, r)) / sqrt(dot(b, b));
}

int main(int argc, char** argv) {
  static schwarz pc;
  static double b[UNKNOWNS], x[UNKNOWNS];
  for (int k = 0; k < UNKNOWNS; ++k) b[k] = 1.0 / ((M + 1) * (M + 1));

  crout_connection* server = NULL;
  int64_t info = crout_connect(argc > 1 ? argv[1] : "127.0.0.1:50051", NULL, 0, &server);
  if (info == 0) info = schwarz_set_up(&pc, server);
  int64_t plain = 0, preconditioned = 0;
  if (info == 0) plain = conjugate_gradients(no_preconditioner, NULL, b, x);
  if (info == 0) preconditioned = conjugate_gradients(schwarz_apply, &pc, b, x);
  if (info != 0 || plain < 0 || preconditioned < 0) {
    fprintf(stderr, "info %d, iterations %d and %d: %s\n", (int)info, (int)plain,
            (int)preconditioned, crout_last_error());
  } else {
    printf("%d unknowns in %d boxes\n", UNKNOWNS, P * P);
    printf("%3d iterations without a preconditioner\n", (int)plain);
    printf("%3d iterations with additive Schwarz on the server\n", (int)preconditioned);
    printf("residual %s 1e-9, u in the middle %.4f\n", residual(b, x) < 1e-9 ? "below" : "above",
           x[M / 2 + M / 2 * M]);
  }
  schwarz_destroy(&pc);
  crout_disconnect(server);
  return info == 0 && plain >= 0 && preconditioned >= 0 ? 0 : 1;
}
