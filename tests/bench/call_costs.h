// What a small call costs on both sides, from a call of nothing to the whole one.
#ifndef CROUT_TESTS_BENCH_CALL_COSTS_H_
#define CROUT_TESTS_BENCH_CALL_COSTS_H_

#include "nlohmann/json.hpp"
#include "tests/bench/small_calls.h"

namespace crout {

// Adds a record for each kind of call, by all clients: processor time of the daemon and of this
// process, how often the daemon's threads went to sleep, and what the server says that its phases
// took.
void AddCallCosts(SmallCalls& calls, nlohmann::ordered_json& rows);

}  // namespace crout

#endif  // CROUT_TESTS_BENCH_CALL_COSTS_H_
