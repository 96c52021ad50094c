// SPDX-License-Identifier: Apache-2.0

// Costs of small requests on the client and on the server, from a call that computes nothing to
// factorize and solve.
#ifndef CROUT_TESTS_BENCH_CALL_COSTS_H_
#define CROUT_TESTS_BENCH_CALL_COSTS_H_

#include "nlohmann/json.hpp"
#include "tests/bench/small_requests.h"

namespace crout {

// Appends a record for each kind of call, made by all clients: processor time of the daemon and of
// this process, how often the daemon's threads slept, and the server's phase timings.
void AddCallCosts(SmallRequests& calls, nlohmann::ordered_json& rows);

}  // namespace crout

#endif  // CROUT_TESTS_BENCH_CALL_COSTS_H_
