// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/stream/call_deadline.h"

#include <algorithm>
#include <chrono>

#include "kernels/util/clock.h"

namespace crout {
namespace {

using SystemTime = std::chrono::system_clock::time_point;

}  // namespace

bool IsAboutDeadline(const grpc::ServerContextBase& context, double seconds) {
  const SystemTime deadline = context.deadline();
  if (deadline == SystemTime::max()) return false;
  constexpr double kJourneySeconds = 0.05;
  constexpr double kRounding = 0.01;
  const std::chrono::duration<double> left = deadline - std::chrono::system_clock::now();
  return left.count() <= kJourneySeconds + kRounding * (seconds + left.count());
}

Job::Clock::time_point DeadlineForJob(const grpc::ServerContextBase& context) {
  const SystemTime deadline = context.deadline();
  if (deadline == SystemTime::max()) return Job::Clock::time_point::max();
  const auto left = deadline - std::chrono::system_clock::now();
  constexpr auto kLong = std::chrono::hours(24 * 365);  // avoids overflow of the sum
  return SteadyNow() +
         std::chrono::duration_cast<Job::Clock::duration>(std::min<decltype(left)>(left, kLong));
}

}  // namespace crout
