// SPDX-License-Identifier: Apache-2.0

// Thread creation; all threads of the server and the kernels are started here.
#ifndef CROUT_KERNELS_UTIL_THREAD_H_
#define CROUT_KERNELS_UTIL_THREAD_H_

#include <system_error>
#include <thread>
#include <utility>

#include "kernels/util/failpoint.h"

namespace crout {

// Starts a thread that runs `work`. Throws std::system_error if the system cannot start a thread,
// or if the failpoint "thread.start" fails. A daemon starts all threads before it serves, so that
// this is a startup error and never fails a call.
template <class Work>
std::thread StartThread(Work work) {
  if (!Failpoint("thread.start").ok()) {
    throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
  }
  return std::thread(std::move(work));
}

}  // namespace crout

#endif  // CROUT_KERNELS_UTIL_THREAD_H_
