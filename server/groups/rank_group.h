// SPDX-License-Identifier: Apache-2.0

// A group of processes (ranks) that run one job at a time together.
#ifndef CROUT_SERVER_GROUPS_RANK_GROUP_H_
#define CROUT_SERVER_GROUPS_RANK_GROUP_H_

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "crout/rank/v1/rank_service.pb.h"
#include "kernels/stop_requested.h"
#include "kernels/util/mutex.h"
#include "kernels/util/owned_file.h"
#include "server/groups/group_spec.h"
#include "server/groups/job_matrices.h"
#include "server/groups/rank_gate.h"
#include "server/groups/rank_launcher.h"
#include "server/groups/rank_listener.h"
#include "server/groups/shared_arena.h"

namespace crout {

struct RankGroupOptions {
  GroupSpec spec;
  std::string program;         // path of crout-rank; unused if machines join
  int threads = 1;             // cores of each rank; unused if machines join
  RankSecurity security = {};  // for machines that join
};

// Starts its ranks and watches them on a thread. A rank is lost if its stream ends, if it has sent
// nothing for kSilence (each sends a heartbeat every second), or if a job exceeds its deadline.
// Then all ranks are killed, because MPI hangs when one is missing, and started again.
//
// Ranks on this machine end when this process ends, by whatever signal (PR_SET_PDEATHSIG), and
// those on other machines when their agent notices it, within kSilence. Thread-safe.
class RankGroup final : private RankEvents {
 public:
  static constexpr std::chrono::seconds kSilence{5};
  // Most time from the start of the processes until all ranks have joined.
  static constexpr std::chrono::seconds kFormation{20};
  // The same with GPUs, whose libraries are large.
  static constexpr std::chrono::seconds kGpuFormation{60};

  // Starts the ranks and waits until all have joined. UNAVAILABLE, with the output of the ranks, if
  // they do not. If machines join, listens for them and returns: they may join later. `arena` must
  // outlive the group.
  static absl::StatusOr<std::unique_ptr<RankGroup>> Start(const RankGroupOptions& options,
                                                          const SharedArena& arena);
  ~RankGroup() override;
  RankGroup(const RankGroup&) = delete;  // It owns a thread.
  RankGroup& operator=(const RankGroup&) = delete;

  int ranks() const { return options_.spec.ranks; }
  // Address at which machines join, with the port that was bound; "" if none do.
  const std::string& address() const { return address_; }

  // Returns true if crout-rank was built with the method. Machines that join must have all methods.
  bool HasMethod(absl::string_view name);

  // Least free memory of the ranks' GPUs when the group formed last; 0 without GPUs.
  uint64_t GpuBytes();

  // Runs the job on all ranks, after other calls' jobs, and returns the result of rank 0. Waits for
  // a group that is forming.
  //
  // UNAVAILABLE (reason GROUP_LOST, with a retry delay): a rank was lost, or a library failed in
  // it. RESOURCE_EXHAUSTED: the job needs more memory of GPUs. INTERNAL: the ranks refused the job.
  // CANCELLED: `stop` returned true; a job that does not end within a second is
  // killed with its ranks. When it returns, no rank uses the memory of the job.
  absl::StatusOr<rank::v1::Result> Run(rank::v1::Job job, double predicted_seconds,
                                       StopRequested stop);

  // Lets the ranks free a factor after the job that runs. Does not wait for it.
  void Forget(uint64_t factor);

  // Process ids of the ranks, by rank. Empty while the group is forming.
  std::vector<pid_t> pids();
  // Number of times that the group has formed.
  int64_t formations();

 private:
  using Clock = std::chrono::steady_clock;

  // A rank that has joined.
  struct Member {
    std::shared_ptr<RankStream> stream;  // null: has not joined
    pid_t pid = 0;
    OwnedFile process;  // a pidfd; none on other machines
    Clock::time_point last_heard;
    std::optional<rank::v1::Result> result;  // answer to the job `job_id_`
    uint64_t gpu_bytes = 0;
  };

  RankGroup(const RankGroupOptions& options, const SharedArena& arena);
  // Makes the launcher and the listener.
  absl::Status Listen();
  bool joined_by_machines() const { return !options_.spec.join.empty(); }

  // RankEvents.
  absl::Status Joined(std::shared_ptr<RankStream> stream, const rank::v1::Hello& hello) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Received(const RankStream& stream, const rank::v1::RankMessage& message) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Left(const RankStream& stream) override ABSL_LOCKS_EXCLUDED(mutex_);

  // The watching thread.
  void Supervise();
  // Starts the ranks and waits until all have joined or the formation has failed.
  void Form() ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until the launcher can start the ranks.
  void AwaitMachines() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns when the group must end.
  void Watch() ABSL_LOCKS_EXCLUDED(mutex_);
  // Kills all ranks and waits for their end.
  void Disband() ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits before the next formation, longer after each one that failed.
  void Pause() ABSL_LOCKS_EXCLUDED(mutex_);

  // Sets the reason for which the formation must end, unless it has one.
  void Lose(const std::string& reason) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool AllJoined() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool AllAnswered() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Member* Find(const RankStream& stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The errors of a call that lost its ranks, and of one that waited for them.
  absl::Status LostStatus() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status NotFormedStatus() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits until the group has formed.
  absl::Status AwaitFormation(StopRequested stop) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<rank::v1::Result> AwaitResults(double predicted_seconds, StopRequested stop)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const RankGroupOptions options_;
  const SharedArena& arena_;
  std::string address_;
  const std::string name_;                  // for messages and the log: "group:big"
  std::unique_ptr<RankGate> gate_;          // null: the ranks use a Unix socket
  std::unique_ptr<RankLauncher> launcher_;  // used by the watching thread
  bool started_ = false;                    // the launcher has started ranks; same thread
  int failures_ = 0;                        // formations in a row that failed; same thread
  JobMatrices memory_;                      // for ranks on other machines

  Mutex run_mutex_;  // held while a job runs
  Mutex mutex_;      // after run_mutex_
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool formed_ ABSL_GUARDED_BY(mutex_) = false;  // until its ranks have ended
  int64_t formations_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t gpu_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string token_ ABSL_GUARDED_BY(mutex_);  // required to join now; empty: no rank may join
  std::string loss_ ABSL_GUARDED_BY(mutex_);   // why it must end; empty: it may go on
  std::string last_loss_ ABSL_GUARDED_BY(mutex_);
  std::string missing_ ABSL_GUARDED_BY(mutex_);               // Machines::Missing()
  std::vector<std::string> methods_ ABSL_GUARDED_BY(mutex_);  // that crout-rank has
  std::vector<Member> members_ ABSL_GUARDED_BY(mutex_);       // by rank
  uint64_t job_id_ ABSL_GUARDED_BY(mutex_) = 0;

  std::unique_ptr<RankListener> listener_;
  std::thread supervisor_;
};

}  // namespace crout

#endif  // CROUT_SERVER_GROUPS_RANK_GROUP_H_
