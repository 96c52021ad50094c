// A fixed set of threads that run tasks by turns of the accounts that the tasks belong to.
#ifndef CROUT_KERNELS_UTIL_THREAD_POOL_H_
#define CROUT_KERNELS_UTIL_THREAD_POOL_H_

#include <cstddef>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "kernels/util/mutex.h"
#include "kernels/util/turn_queue.h"

namespace crout {

// Thread-safe. Tasks of one account start in the order in which they were given, and accounts take
// turns: between two tasks of one account at most one of each other account starts. With more than
// one thread tasks may finish in another order.
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

  // Returns at once. The task, and what it holds, is destroyed right after it ran. `account`: a
  // tenant; empty: the server's own.
  void Schedule(std::string_view account, Task task) ABSL_LOCKS_EXCLUDED(mutex_);
  void Schedule(Task task) { Schedule("", std::move(task)); }

  // Tasks that no thread has taken.
  size_t waiting() const ABSL_LOCKS_EXCLUDED(mutex_);
  int thread_count() const { return static_cast<int>(threads_.size()); }

 private:
  void Work() ABSL_LOCKS_EXCLUDED(mutex_);
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  mutable Mutex mutex_;
  CondVar wake_;
  TurnQueue<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::vector<std::thread> threads_;  // Constant after construction.
};

}  // namespace crout

#endif  // CROUT_KERNELS_UTIL_THREAD_POOL_H_
