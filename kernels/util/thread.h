// Starts threads: the one place where the server and the kernels do.
#ifndef CROUT_KERNELS_UTIL_THREAD_H_
#define CROUT_KERNELS_UTIL_THREAD_H_

#include <system_error>
#include <thread>
#include <utility>

#include "kernels/util/failpoint.h"

namespace crout {

// A thread that runs `work`. Throws std::system_error where the system starts no thread, or the
// failpoint "thread.start" fails. A daemon starts its threads before it serves: then this is an
// error of its start, and no call's.
template <class Work>
std::thread StartThread(Work work) {
  if (!Failpoint("thread.start").ok()) {
    throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
  }
  return std::thread(std::move(work));
}

}  // namespace crout

#endif  // CROUT_KERNELS_UTIL_THREAD_H_
