// SPDX-License-Identifier: Apache-2.0

// A fixed set of threads that divide their work fairly among several accounts.
#ifndef CROUT_KERNELS_UTIL_THREAD_POOL_H_
#define CROUT_KERNELS_UTIL_THREAD_POOL_H_

#include <cstddef>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "kernels/util/fair_queue.h"
#include "kernels/util/mutex.h"

namespace crout {

// Thread-safe. Tasks start in the order of a FairQueue: accounts with waiting tasks get equal parts
// of the costs, in a unit that all users of a pool share. With equal costs accounts take turns.
// Tasks of one account and priority start in FIFO order. With more than one thread tasks may finish
// in another order. A task may schedule tasks but must not wait for one, because that deadlocks if
// every thread does so. A task that throws std::bad_alloc is abandoned and counted
// (AbandonOnBadAlloc()).
class ThreadPool {
 public:
  using Task = absl::AnyInvocable<void() &&>;
  // Memory for scheduling one task of one account.
  using Node = FairQueue<Task>::Node;

  // Starts max(1, threads) threads. Throws std::system_error if the system cannot start them.
  explicit ThreadPool(int threads);
  ThreadPool(const ThreadPool&) = delete;  // Its threads point to it.
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Runs all scheduled tasks, then joins the threads. Must not be called on a pool thread.
  ~ThreadPool();

  // Returns at once. The task and everything it holds are destroyed right after it ran. `account`
  // is a tenant, or empty for work of the server. `cost` is positive. May throw std::bad_alloc.
  void Schedule(std::string_view account, Task task, double cost = 1,
                QueuePriority priority = QueuePriority::kNormal) {
    Schedule(Node(account), std::move(task), cost, priority);
  }
  void Schedule(Task task) { Schedule("", std::move(task)); }
  void Schedule(Node node, Task task, double cost = 1,
                QueuePriority priority = QueuePriority::kNormal) noexcept
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Tasks that no thread has taken.
  size_t waiting() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Those of one account and priority.
  size_t waiting(std::string_view account, QueuePriority priority) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  int thread_count() const { return static_cast<int>(threads_.size()); }

 private:
  void Work() ABSL_LOCKS_EXCLUDED(mutex_);
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  mutable Mutex mutex_;
  CondVar wake_;
  FairQueue<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::vector<std::thread> threads_;  // Constant after construction.
};

}  // namespace crout

#endif  // CROUT_KERNELS_UTIL_THREAD_POOL_H_
