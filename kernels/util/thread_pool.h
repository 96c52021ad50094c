// A fixed set of threads that run tasks in the order in which they were given.
#ifndef CROUT_KERNELS_UTIL_THREAD_POOL_H_
#define CROUT_KERNELS_UTIL_THREAD_POOL_H_

#include <deque>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "kernels/util/mutex.h"

namespace crout {

// Thread-safe. Tasks start in FIFO order; with more than one thread they may finish in another.
// A task may schedule tasks; it must not wait for one, which deadlocks when every thread does so.
// A task that throws std::bad_alloc ends there, and is counted (GoOnWithoutMemory()).
class ThreadPool {
 public:
  using Task = absl::AnyInvocable<void() &&>;

  // Starts max(1, threads) threads. std::system_error: there are not that many.
  explicit ThreadPool(int threads);
  ThreadPool(const ThreadPool&) = delete;  // Its threads point to it.
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Runs everything that was scheduled, then joins the threads. Must not run on one of them.
  ~ThreadPool();

  // Returns at once. The task, and what it holds, is destroyed right after it ran.
  void Schedule(Task task) ABSL_LOCKS_EXCLUDED(mutex_);

  int thread_count() const { return static_cast<int>(threads_.size()); }

 private:
  void Work() ABSL_LOCKS_EXCLUDED(mutex_);
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  Mutex mutex_;
  CondVar wake_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::vector<std::thread> threads_;  // Constant after construction.
};

}  // namespace crout

#endif  // CROUT_KERNELS_UTIL_THREAD_POOL_H_
