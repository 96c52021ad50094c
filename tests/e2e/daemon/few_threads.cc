// SPDX-License-Identifier: Apache-2.0

// A library to preload. It limits the threads of the process to CROUT_TEST_THREADS and its first
// thread.
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <memory>

namespace {

std::atomic<int>& Left() {
  static std::atomic<int> left = [] {
    const char* const threads = getenv("CROUT_TEST_THREADS");  // NOLINT(concurrency-mt-unsafe)
    return threads == nullptr ? 0 : std::atoi(threads);
  }();
  return left;
}

struct Work {
  void* (*run)(void*);
  void* argument;
};

// A thread that does not end by a return continues to count.
void* RunCounted(void* data) {
  const std::unique_ptr<Work> work(static_cast<Work*>(data));
  void* const result = work->run(work->argument);
  ++Left();
  return result;
}

}  // namespace

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*run)(void*), void* argument) noexcept {
  static const auto create =
      reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  if (Left().fetch_sub(1) <= 0) {
    ++Left();
    return EAGAIN;
  }
  auto work = std::make_unique<Work>(Work{run, argument});
  const int error = create(thread, attributes, RunCounted, work.get());
  if (error == 0) {
    (void)work.release();
  } else {
    ++Left();
  }
  return error;
}
