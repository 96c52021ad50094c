/* SPDX-License-Identifier: Apache-2.0 */

/* Solves a sequence of systems from C whose matrix changes from step to step: a diffusion operator
 * with a drifting coefficient, then a coupling of two of its points.
 *
 * usage: series_c [HOST:PORT] */
#include <crout/crout.h>
#include <math.h>
#include <stdio.h>

enum { N = 50, STEPS = 5 };

/* Matrix of an implicit step of u_t = (c u_x)_x, stored dense for the interface. */
static void operator_at(int step, double a[N * N]) {
  for (int j = 0; j < N; ++j) {
    for (int i = 0; i < N; ++i) a[i + j * N] = 0;
  }
  for (int i = 0; i < N; ++i) {
    const double c = 40 * (1 + 1e-4 * step * sin(i));
    a[i + i * N] = 1 + 2 * c;
    if (i > 0) a[i + (i - 1) * N] = -c;
    if (i + 1 < N) a[i + (i + 1) * N] = -c;
  }
}

static int report(const char* what, int code, const crout_series_result* result) {
  if (code != CROUT_OK) return code;
  printf("%-7s %s, %s\n", what, result->age == 0 ? "a new factor" : "the existing factor",
         result->backward_error <= result->accuracy ? "accurate" : "not accurate");
  return CROUT_OK;
}

static int run(crout_connection* server) {
  static double a[N * N];
  double u[N], b[N];
  const crout_matrix matrix = {a, CROUT_FLOAT64, CROUT_COLUMN_MAJOR, N, N, N};
  const crout_matrix rhs = {b, CROUT_FLOAT64, CROUT_COLUMN_MAJOR, N, 1, N};
  crout_series_options options = {.struct_size = sizeof options, .strategy = CROUT_REUSE};
  crout_series_result result = {.struct_size = sizeof result};
  crout_series* series = NULL;
  int code = crout_series_open(server, &options, &series);

  for (int i = 0; i < N; ++i) u[i] = i == N / 2;
  for (int step = 0; code == CROUT_OK && step < STEPS; ++step) {
    operator_at(step, a);
    for (int i = 0; i < N; ++i) b[i] = u[i];
    code = report("drift", crout_series_step(series, &matrix, &rhs, u, N, &result), &result);
  }
  if (code == CROUT_OK) {
    /* The same matrix with another right-hand side. */
    for (int i = 0; i < N; ++i) b[i] = u[i];
    code = report("again", crout_series_step(series, NULL, &rhs, u, N, &result), &result);
  }
  if (code == CROUT_OK) {
    /* Two entries of the matrix get new values. */
    const double values[2] = {-3, -3};
    const int32_t rows[2] = {4, 44}, cols[2] = {44, 4};
    const crout_change change = {.struct_size = sizeof change,
                                 .dtype = CROUT_FLOAT64,
                                 .count = 2,
                                 .values = values,
                                 .rows = rows,
                                 .cols = cols};
    for (int i = 0; i < N; ++i) b[i] = u[i];
    code = report("change", crout_series_change(series, &change, &rhs, u, N, &result), &result);
  }
  const int closed = crout_series_close(series);
  return code == CROUT_OK ? closed : code;
}

int main(int argc, char** argv) {
  crout_connection* server = NULL;
  int code = crout_connect(argc > 1 ? argv[1] : "127.0.0.1:50051", NULL, 0, &server);
  if (code == CROUT_OK) code = run(server);
  if (code != CROUT_OK) fprintf(stderr, "error %d: %s\n", code, crout_last_error());
  crout_disconnect(server);
  return code == CROUT_OK ? 0 : 1;
}
