// SPDX-License-Identifier: Apache-2.0

// A wrapper over std::mutex with Clang's thread-safety annotations, which spins before it sleeps.
//
// absl::Mutex is not used: the distribution's Abseil is built without ThreadSanitizer, which then
// reports false races (docs/decisions/0002-std-mutex-behind-annotations.md).
#ifndef CROUT_KERNELS_UTIL_MUTEX_H_
#define CROUT_KERNELS_UTIL_MUTEX_H_

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "kernels/util/clock.h"

namespace crout {

class ABSL_LOCKABLE Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;  // Its address is its identity.
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    if (!TryLockBriefly()) mutex_.lock();
  }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK() {}

 private:
  friend class CondVar;

  // Retries for about a microsecond. Most holders release the mutex sooner, and a thread that
  // sleeps and wakes up takes several times as long.
  bool TryLockBriefly() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    constexpr int kMostPauses = 16;
    for (int pauses = 1; pauses <= kMostPauses; pauses *= 2) {
      if (mutex_.try_lock()) return true;
      for (int i = 0; i < pauses; ++i) Pause();
    }
    return false;
  }
  static void Pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb");
#endif
  }

  std::mutex mutex_;
};

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_->Lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }
  MutexLock(const MutexLock&) = delete;  // One scope, one lock.
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* const mutex_;
};

// A condition variable for Mutex. Callers wait in a loop over their own predicate, so that the
// analysis sees guarded members read under the lock:
//   while (!ready_) cv_.Wait(&mutex_);
class CondVar {
 public:
  void Wait(Mutex* mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
    cv_.wait(lock);
    lock.release();
  }

  // Returns false if `deadline`, in SteadyNow() time, passed first.
  bool WaitUntil(Mutex* mutex, std::chrono::steady_clock::time_point deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
    // Uses system_clock, because wait_until on the steady clock calls glibc's
    // pthread_cond_clockwait, which ThreadSanitizer of LLVM 14 does not intercept.
    const auto left = deadline - SteadyNow();
    const auto status = cv_.wait_until(
        lock, std::chrono::system_clock::now() +
                  std::chrono::duration_cast<std::chrono::system_clock::duration>(left));
    lock.release();
    return status == std::cv_status::no_timeout;
  }

  void Signal() { cv_.notify_one(); }
  void SignalAll() { cv_.notify_all(); }

 private:
  std::condition_variable cv_;
};

}  // namespace crout

#endif  // CROUT_KERNELS_UTIL_MUTEX_H_
