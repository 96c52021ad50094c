// SPDX-License-Identifier: Apache-2.0

// What an iterative method did, section by section, as it is kept with the factor.
#ifndef CROUT_SERVER_ENGINE_CACHE_ITERATION_RECORD_H_
#define CROUT_SERVER_ENGINE_CACHE_ITERATION_RECORD_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/factorization.h"
#include "server/engine/admission/memory_budget.h"

namespace crout {

// The counts of IterationReport: as many as a factor has elements, where a section is one. Members
// are destroyed from the last: memory is free before the budget says so.
struct IterationRecord {
  Reservation reservation;  // of the host budget
  std::vector<int64_t> sweeps;
  std::vector<int64_t> pivots;
  std::vector<int64_t> bad_elements;
};

// Moves the counts out of `summary`, whose copies are small from then on, into a record that
// `reservation`, of JobBytes::report, pays for. Null where a method has none.
std::shared_ptr<const IterationRecord> TakeRecord(FactorSummary& summary, Reservation reservation);

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_CACHE_ITERATION_RECORD_H_
