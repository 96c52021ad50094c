// SPDX-License-Identifier: Apache-2.0

// The threads of a FactorStore, and operations that do not end because the storage hangs.
#ifndef CROUT_SERVER_ENGINE_STORE_STORE_THREADS_H_
#define CROUT_SERVER_ENGINE_STORE_STORE_THREADS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "kernels/factor_parts.h"
#include "kernels/util/mutex.h"
#include "kernels/util/thread_pool.h"
#include "server/engine/admission/memory_budget.h"

namespace crout {

// A write that has outlived its call, and owns the memory that it reads until it ends. Thread-safe.
class OverdueWrite {
 public:
  virtual ~OverdueWrite() = default;
  // Moves the memory into the write, which frees it at its end. Has no effect if it has ended.
  virtual void Keep(Reservation& reservation, FactorParts& parts) noexcept = 0;
  virtual bool ended() const = 0;
};

// Thread-safe. Calls wait for their operations, which take turns of accounts by bytes.
//
// An operation hangs if it runs for longer than TimeLimit(). A write that hangs ends its call. A
// read does not, because it uses memory of its call. If all threads hang, the calls that wait for a
// thread end without an effect.
class StoreThreads {
 public:
  using Work = absl::AnyInvocable<absl::Status()>;

  // Cost of an operation without bytes, in bytes that a disk writes in the same time.
  static constexpr double kOperationCost = 64 << 10;
  static constexpr QueuePriority kCallPriority = QueuePriority::kNormal;

  explicit StoreThreads(int threads) : pool_(threads) {}

  ThreadPool& pool() { return pool_; }
  const ThreadPool& pool() const { return pool_; }

  // Runs `work`, which reads about this many bytes, and returns its status. UNAVAILABLE if all
  // threads hang before it starts.
  absl::Status Read(std::string_view account, uint64_t bytes, Work work);
  // Runs `work`, which writes this many bytes, and returns its status. UNAVAILABLE if the storage
  // hangs. If `work` runs then, sets *overdue, and destroys `work` after its end. The caller passes
  // all other memory that `work` uses to OverdueWrite::Keep() before it would free it.
  absl::Status Write(std::string_view account, uint64_t bytes, Work work,
                     std::shared_ptr<OverdueWrite>* overdue);

  bool all_hang() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Blocks until no write is overdue and their memory is free.
  void AwaitOverdue() ABSL_LOCKS_EXCLUDED(mutex_);

  // Generous: slower disks count as failed.
  static std::chrono::duration<double> TimeLimit(uint64_t bytes);

 private:
  class Operation;
  absl::Status Run(std::string_view account, uint64_t bytes, Work work,
                   std::shared_ptr<OverdueWrite>* overdue);
  void Execute(Operation& operation);
  void CountHanging(int by, bool overdue) ABSL_LOCKS_EXCLUDED(mutex_);

  mutable Mutex mutex_;
  CondVar changed_;
  int hanging_ ABSL_GUARDED_BY(mutex_) = 0;  // threads
  int overdue_ ABSL_GUARDED_BY(mutex_) = 0;  // those of them with writes

  ThreadPool pool_;  // destroyed first
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_STORE_STORE_THREADS_H_
