/* SPDX-License-Identifier: Apache-2.0 */

/* Factors a matrix on a Crout server and solves with its factors, from C.
 *
 * usage: solve_c [HOST:PORT] */
#include <crout/crout.h>
#include <inttypes.h>
#include <stdio.h>

enum { N = 3 };

/* [docs] */
static int64_t solve(crout_connection* server) {
  const double a[N * N] = {4, 1, 0, 1, 4, 1, 0, 1, 4}; /* by columns */
  double b[N] = {6, 12, 14};                           /* A (1, 2, 3) */
  crout_factor* lu = NULL;

  int64_t info = crout_dgetrf(server, N, a, N, &lu);
  if (info == 0) info = crout_dgetrs(lu, 'N', N, 1, b, N);
  if (info == 0) {
    crout_description of = {.struct_size = sizeof of};
    crout_describe(lu, &of);
    printf("x = %.4f %.4f %.4f\n", b[0], b[1], b[2]);
    printf("n = %" PRId64 ", growth %.4f\n", of.n, of.pivot_growth);
  }
  crout_release(lu);
  return info;
}
/* [end] */

int main(int argc, char** argv) {
  crout_connection* server = NULL;
  int64_t info = crout_connect(argc > 1 ? argv[1] : "127.0.0.1:50051", NULL, 0, &server);
  if (info == 0) info = solve(server);
  if (info > 0) fprintf(stderr, "the matrix is singular: U(%" PRId64 ") is zero\n", info);
  if (info < 0) fprintf(stderr, "error %" PRId64 ": %s\n", info, crout_last_error());
  crout_disconnect(server);
  return info == 0 ? 0 : 1;
}
