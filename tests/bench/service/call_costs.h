// SPDX-License-Identifier: Apache-2.0

// Measures the costs of small requests on the client and on the server.
#ifndef CROUT_TESTS_BENCH_SERVICE_CALL_COSTS_H_
#define CROUT_TESTS_BENCH_SERVICE_CALL_COSTS_H_

#include "nlohmann/json.hpp"
#include "tests/bench/service/small_requests.h"

namespace crout {

// Appends a record to `rows` for each kind of call: a description, which computes nothing, a
// factorization of order 1 with a solve, a solve, and a factorization with a solve. All clients
// make the calls. Records have averages per call: microseconds of processor time of the daemon and
// of this process, sleeps of the daemon's threads, and microseconds of the phases in the server.
void AddCallCosts(SmallRequests& calls, nlohmann::ordered_json& rows);

}  // namespace crout

#endif  // CROUT_TESTS_BENCH_SERVICE_CALL_COSTS_H_
