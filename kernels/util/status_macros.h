// SPDX-License-Identifier: Apache-2.0

// Early return of errors.
#ifndef CROUT_KERNELS_UTIL_STATUS_MACROS_H_
#define CROUT_KERNELS_UTIL_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns from the enclosing function if `expr`, an absl::Status, is an error.
#define CROUT_RETURN_IF_ERROR(expr)                \
  do {                                             \
    absl::Status crout_status_ = (expr);           \
    if (!crout_status_.ok()) return crout_status_; \
  } while (false)

// NOLINTBEGIN(bugprone-macro-parentheses): `lhs` may be a declaration.
// Assigns the value of `expr`, an absl::StatusOr, to `lhs` (which may declare a variable), or
// returns its error.
#define CROUT_ASSIGN_OR_RETURN(lhs, expr) \
  CROUT_ASSIGN_OR_RETURN_(CROUT_CONCAT_(crout_value_, __LINE__), lhs, expr)

#define CROUT_ASSIGN_OR_RETURN_(value, lhs, expr) \
  auto value = (expr);                            \
  if (!value.ok()) return value.status();         \
  lhs = *std::move(value)
#define CROUT_CONCAT_(a, b) CROUT_CONCAT_INNER_(a, b)
#define CROUT_CONCAT_INNER_(a, b) a##b
// NOLINTEND(bugprone-macro-parentheses)

#endif  // CROUT_KERNELS_UTIL_STATUS_MACROS_H_
