/* SPDX-License-Identifier: Apache-2.0 */

/* Options and shared connections of the solver type "crout". */
#include "croutpetsc.h"

struct _n_CroutConnection {
  crout_connection* handle;
  char server[PETSC_MAX_PATH_LEN];
  char tenant[128];
  PetscReal timeout;
  PetscInt users;
  CroutConnection next;
};

static CroutConnection connections = NULL;

PetscErrorCode CroutSettingsRead(Mat F, CroutSettings* s) {
  const char* prefix;

  PetscFunctionBegin;
  PetscCall(MatGetOptionsPrefix(F, &prefix));
  PetscOptionsBegin(PetscObjectComm((PetscObject)F), prefix, "Crout options", "Mat");
  PetscCall(PetscOptionsString("-mat_crout_server",
                               "Server: host:port, unix:PATH or a name in servers.toml", "None",
                               s->server, s->server, sizeof s->server, NULL));
  PetscCall(PetscOptionsString("-mat_crout_tenant", "Tenant that owns the factor", "None",
                               s->tenant, s->tenant, sizeof s->tenant, NULL));
  PetscCall(PetscOptionsReal("-mat_crout_timeout", "Seconds of a call, retries included", "None",
                             s->timeout, &s->timeout, NULL));
  PetscCall(PetscOptionsString("-mat_crout_name", "Name of the factor in lists", "None", s->name,
                               s->name, sizeof s->name, NULL));
  PetscCall(PetscOptionsReal("-mat_crout_lease", "Seconds that the server keeps an unused factor",
                             "None", s->lease, &s->lease, NULL));
  PetscCall(PetscOptionsString("-mat_crout_algorithm", "Method, such as multifrontal or getrf",
                               "None", s->algorithm, s->algorithm, sizeof s->algorithm, NULL));
  PetscCall(PetscOptionsString("-mat_crout_precision",
                               "Precision of the factor: single, tf32, auto", "None", s->precision,
                               s->precision, sizeof s->precision, NULL));
  PetscCall(PetscOptionsReal("-mat_crout_pivot_threshold", "Pivot threshold of multifrontal",
                             "None", s->pivot_threshold, &s->pivot_threshold, NULL));
  PetscCall(PetscOptionsBool("-mat_crout_condition", "Estimate the reciprocal condition", "None",
                             s->condition, &s->condition, NULL));
  PetscCall(PetscOptionsInt("-mat_crout_refinement_steps", "Most refinement steps of a solve",
                            "None", s->refinement_steps, &s->refinement_steps, NULL));
  PetscCall(PetscOptionsBool("-mat_crout_verify", "Measure the backward error of each solve",
                             "None", s->verify, &s->verify, NULL));
  PetscCall(PetscOptionsReal("-mat_crout_gather_limit",
                             "MiB that a distributed matrix may take on rank 0", "None",
                             s->gather_limit, &s->gather_limit, NULL));
  PetscOptionsEnd();
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Serves(CroutConnection connection, const CroutSettings* s,
                             PetscBool* serves) {
  PetscBool server, tenant;

  PetscFunctionBegin;
  PetscCall(PetscStrcmp(connection->server, s->server, &server));
  PetscCall(PetscStrcmp(connection->tenant, s->tenant, &tenant));
  *serves = (PetscBool)(server && tenant && connection->timeout == s->timeout);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode CroutConnectionGet(const CroutSettings* s, CroutConnection* connection, int* code) {
  crout_options options = {.struct_size = sizeof options};
  CroutConnection found;

  PetscFunctionBegin;
  *connection = NULL;
  *code = CROUT_OK;
  for (found = connections; found; found = found->next) {
    PetscBool serves = PETSC_FALSE;
    PetscCall(Serves(found, s, &serves));
    if (serves) break;
  }
  if (!found) {
    crout_connection* handle = NULL;
    options.server = s->server;
    options.tenant = s->tenant;
    options.timeout = (double)s->timeout;
    *code = crout_connect_with(&options, &handle);
    if (*code != CROUT_OK) PetscFunctionReturn(PETSC_SUCCESS);
    PetscCall(PetscNew(&found));
    found->handle = handle;
    found->timeout = s->timeout;
    PetscCall(PetscStrncpy(found->server, s->server, sizeof found->server));
    PetscCall(PetscStrncpy(found->tenant, s->tenant, sizeof found->tenant));
    found->next = connections;
    connections = found;
  }
  found->users++;
  *connection = found;
  PetscFunctionReturn(PETSC_SUCCESS);
}

crout_connection* CroutConnectionHandle(CroutConnection connection) { return connection->handle; }

PetscErrorCode CroutConnectionRestore(CroutConnection* connection) {
  CroutConnection* link;

  PetscFunctionBegin;
  if (*connection && --(*connection)->users == 0) {
    for (link = &connections; *link != *connection; link = &(*link)->next) continue;
    *link = (*connection)->next;
    crout_disconnect((*connection)->handle);
    PetscCall(PetscFree(*connection));
  }
  *connection = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}
