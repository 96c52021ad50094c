// SPDX-License-Identifier: Apache-2.0

#include "kernels/util/thread_pool.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "kernels/util/allocation.h"
#include "kernels/util/thread.h"

namespace crout {

ThreadPool::ThreadPool(int threads) {
  threads_.reserve(std::max(1, threads));
  try {
    for (int i = 0; i < std::max(1, threads); ++i) {
      threads_.push_back(StartThread([this] { Work(); }));
    }
  } catch (const std::system_error&) {
    Stop();
    throw;
  }
}

ThreadPool::~ThreadPool() { Stop(); }

void ThreadPool::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  wake_.SignalAll();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::Schedule(Node node, Task task, double cost, QueuePriority priority) noexcept {
  {
    MutexLock lock(&mutex_);
    tasks_.Add(std::move(node), std::move(task), cost, priority);
  }
  wake_.Signal();
}

size_t ThreadPool::waiting() const {
  MutexLock lock(&mutex_);
  return tasks_.size();
}

size_t ThreadPool::waiting(std::string_view account, QueuePriority priority) const {
  MutexLock lock(&mutex_);
  return tasks_.Queued(account, priority);
}

void ThreadPool::Work() {
  for (;;) {
    FairQueue<Task>::TenantRef account = nullptr;
    QueuePriority priority = QueuePriority::kNormal;
    {
      Task task;
      {
        MutexLock lock(&mutex_);
        while (tasks_.empty() && !stopping_) wake_.Wait(&mutex_);
        if (tasks_.empty()) return;
        const auto next = *tasks_.Find([](const Task&) { return true; });
        account = next.tenant;
        priority = next.entry->priority;
        task = tasks_.Begin(next);
      }
      AbandonOnBadAlloc([&] { std::move(task)(); });
    }
    MutexLock lock(&mutex_);
    tasks_.End(account, priority, /*correction=*/0);
  }
}

}  // namespace crout
