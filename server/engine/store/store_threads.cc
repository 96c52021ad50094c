// SPDX-License-Identifier: Apache-2.0

#include "server/engine/store/store_threads.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/util/allocation.h"
#include "kernels/util/clock.h"

namespace crout {
namespace {

// Interval at which a call checks whether its operation hangs.
constexpr std::chrono::milliseconds kPoll{50};
constexpr std::chrono::duration<double> kShortestLimit{60};
constexpr double kSlowestBytesPerSecond = 4 << 20;

}  // namespace

// An operation, shared by its call and its thread. Lock order: this mutex, then the mutex of
// StoreThreads.
class StoreThreads::Operation final : public OverdueWrite {
 public:
  enum class State { kWaiting, kRunning, kEnded };

  explicit Operation(Work work) : work(std::move(work)) {}

  void Keep(Reservation& reservation, FactorParts& parts) noexcept override {
    MutexLock lock(&mutex);
    if (state == State::kEnded) return;
    kept = std::move(reservation);
    kept_parts = std::move(parts);
  }
  bool ended() const override {
    MutexLock lock(&mutex);
    return state == State::kEnded;
  }

  mutable Mutex mutex;
  CondVar changed;
  State state ABSL_GUARDED_BY(mutex) = State::kWaiting;
  bool left ABSL_GUARDED_BY(mutex) = false;   // by its call
  bool hangs ABSL_GUARDED_BY(mutex) = false;  // counts in hanging_
  std::chrono::steady_clock::time_point started ABSL_GUARDED_BY(mutex);
  absl::Status status ABSL_GUARDED_BY(mutex);
  Reservation kept ABSL_GUARDED_BY(mutex);
  FactorParts kept_parts ABSL_GUARDED_BY(mutex);

  Work work;  // used by the thread alone
};

std::chrono::duration<double> StoreThreads::TimeLimit(uint64_t bytes) {
  return kShortestLimit +
         std::chrono::duration<double>(static_cast<double>(bytes) / kSlowestBytesPerSecond);
}

bool StoreThreads::all_hang() const {
  MutexLock lock(&mutex_);
  return hanging_ >= pool_.thread_count();
}

void StoreThreads::AwaitOverdue() {
  MutexLock lock(&mutex_);
  while (overdue_ > 0) changed_.Wait(&mutex_);
}

void StoreThreads::CountHanging(int by, bool overdue) {
  MutexLock lock(&mutex_);
  hanging_ += by;
  if (overdue) overdue_ += by;
  changed_.SignalAll();
}

absl::Status StoreThreads::Read(std::string_view account, uint64_t bytes, Work work) {
  return CatchBadAlloc([&] { return Run(account, bytes, std::move(work), /*overdue=*/nullptr); });
}

absl::Status StoreThreads::Write(std::string_view account, uint64_t bytes, Work work,
                                 std::shared_ptr<OverdueWrite>* overdue) {
  return CatchBadAlloc([&] { return Run(account, bytes, std::move(work), overdue); });
}

absl::Status StoreThreads::Run(std::string_view account, uint64_t bytes, Work work,
                               std::shared_ptr<OverdueWrite>* overdue) {
  using State = Operation::State;
  const auto operation = std::make_shared<Operation>(std::move(work));
  pool_.Schedule(
      account, [this, operation] { Execute(*operation); },
      kOperationCost + static_cast<double>(bytes), kCallPriority);
  absl::Status status;
  {
    MutexLock lock(&operation->mutex);
    while (operation->state != State::kEnded && !operation->left) {
      if (operation->state == State::kWaiting && all_hang()) {
        operation->left = true;
        status = StatusOf(absl::StatusCode::kUnavailable, "the storage does not respond");
      } else if (operation->state == State::kRunning && !operation->hangs &&
                 SteadyNow() - operation->started >= TimeLimit(bytes)) {
        operation->hangs = true;
        operation->left = overdue != nullptr;
        CountHanging(1, operation->left);
        if (!operation->left) continue;
        *overdue = operation;
        return StatusOf(absl::StatusCode::kUnavailable, "the storage does not complete a write");
      } else {
        operation->changed.WaitUntil(&operation->mutex, SteadyNow() + kPoll);
      }
    }
    if (!operation->left) status = std::move(operation->status);
  }
  operation->work = nullptr;  // The thread does not use it any more.
  return status;
}

void StoreThreads::Execute(Operation& operation) {
  {
    MutexLock lock(&operation.mutex);
    if (operation.left) return;
    operation.state = Operation::State::kRunning;
    operation.started = SteadyNow();
  }
  absl::Status result = CatchBadAlloc([&] { return operation.work(); });
  bool hung = false;
  bool left = false;
  {
    Reservation kept;  // destroyed after the parts, and without locks
    FactorParts parts;
    MutexLock lock(&operation.mutex);
    hung = operation.hangs;
    left = operation.left;
    operation.state = Operation::State::kEnded;
    operation.status = std::move(result);
    kept = std::move(operation.kept);
    parts = std::move(operation.kept_parts);
    operation.changed.Signal();
  }
  if (left) operation.work = nullptr;
  if (hung) CountHanging(-1, left);
}

}  // namespace crout
