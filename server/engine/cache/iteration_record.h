// SPDX-License-Identifier: Apache-2.0

// The iteration counts of an iterative method, by section, stored with its factor.
#ifndef CROUT_SERVER_ENGINE_CACHE_ITERATION_RECORD_H_
#define CROUT_SERVER_ENGINE_CACHE_ITERATION_RECORD_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/factorization.h"
#include "server/engine/admission/memory_budget.h"

namespace crout {

// The counts of IterationReport: up to one for each element of the factor. Members are destroyed in
// reverse order, so that the memory is freed before the budget counts it as free.
struct IterationRecord {
  Reservation reservation;  // from the host budget
  std::vector<int64_t> sweeps;
  std::vector<int64_t> pivots;
  std::vector<int64_t> bad_elements;
};

// Moves the counts from `summary` to a record, so that copies of the summary are small.
// `reservation`, of JobBytes::report bytes, is charged for the record and shrinks to its size.
// Returns null for a method without counts.
std::shared_ptr<const IterationRecord> ExtractRecord(FactorSummary& summary,
                                                     Reservation reservation);

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_CACHE_ITERATION_RECORD_H_
