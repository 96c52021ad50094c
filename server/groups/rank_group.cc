// SPDX-License-Identifier: Apache-2.0

#include "server/groups/rank_group.h"

#include <poll.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "crout_version.h"
#include "kernels/util/clock.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/thread.h"
#include "server/engine/error.h"
#include "server/observability/log/log.h"

namespace crout {
namespace {

using rank::v1::GroupMessage;
using rank::v1::Hello;
using rank::v1::RankMessage;
using rank::v1::Result;
using std::chrono::milliseconds;
using std::chrono::seconds;

// A job waits this long for a group that is forming.
constexpr seconds kMostWait{30};
// A job may take this many times its prediction, and at least kLeastDeadline.
constexpr double kSlack = 20;
constexpr seconds kLeastDeadline{30};
// A cancelled job may end on its own for this long.
constexpr seconds kStopGrace{1};
constexpr milliseconds kStopPoll{5};
constexpr milliseconds kWatchPeriod{200};
constexpr milliseconds kFormPeriod{20};
// Killed ranks end at once, unless the system is writing their memory to disk.
constexpr milliseconds kEndWait{5000};
constexpr milliseconds kFirstPause{250};
constexpr milliseconds kLongestPause{8000};
// Time until a lost group has usually formed again.
constexpr double kRetrySeconds = 5;

absl::StatusOr<std::string> NewToken() {
  std::array<char, 16> bytes;
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return absl::UnavailableError("the system has no random bytes");
  }
  return absl::BytesToHexString(absl::string_view(bytes.data(), bytes.size()));
}

// glibc has functions for these calls from version 2.36 on.
OwnedFile OpenProcess(pid_t pid) {
  return OwnedFile(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}
// The process may have ended.
void Kill(const OwnedFile& process) {
  syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0);
}

// Waits until the process has ended.
void AwaitEnd(const OwnedFile& process, std::chrono::steady_clock::time_point deadline) {
  pollfd ended{process.get(), POLLIN, 0};
  int result = 0;
  do {
    const auto left = std::chrono::ceil<milliseconds>(deadline - SteadyNow());
    result = poll(&ended, 1, static_cast<int>(std::max<int64_t>(0, left.count())));
  } while (result < 0 && errno == EINTR);
}

std::string Describe(size_t rank, pid_t pid) {
  return absl::StrCat("rank ", rank, " (process ", pid, ")");
}

}  // namespace

absl::StatusOr<std::unique_ptr<RankGroup>> RankGroup::Start(const RankGroupOptions& options,
                                                            const SharedArena& arena) {
  CROUT_ASSIGN_OR_RETURN(RankFolder folder, RankFolder::Create());
  std::unique_ptr<RankGroup> group(new RankGroup(options, arena, std::move(folder)));
  CROUT_ASSIGN_OR_RETURN(group->listener_, RankListener::Start(group->folder_.socket(), *group));
  group->supervisor_ = StartThread([group = group.get()] { group->Supervise(); });
  MutexLock lock(&group->mutex_);
  while (group->formations_ == 0 && group->last_loss_.empty()) group->changed_.Wait(&group->mutex_);
  if (group->formations_ > 0) return group;
  return absl::UnavailableError(
      absl::StrCat("group ", options.name, " cannot be formed: ", group->last_loss_));
}

RankGroup::RankGroup(const RankGroupOptions& options, const SharedArena& arena, RankFolder folder)
    : options_(options), arena_(arena), folder_(std::move(folder)), members_(options.ranks) {}

RankGroup::~RankGroup() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
  }
  if (supervisor_.joinable()) supervisor_.join();
}

std::vector<pid_t> RankGroup::pids() {
  MutexLock lock(&mutex_);
  std::vector<pid_t> pids;
  if (!formed_ || !AllJoined()) return pids;
  for (const Member& member : members_) pids.push_back(member.pid);
  return pids;
}

bool RankGroup::HasMethod(absl::string_view name) {
  MutexLock lock(&mutex_);
  return std::ranges::find(methods_, name) != methods_.end();
}

void RankGroup::Forget(uint64_t factor) {
  GroupMessage message;
  message.mutable_forget()->set_factor(factor);
  MutexLock lock(&mutex_);
  for (const Member& member : members_) {
    if (member.stream != nullptr) member.stream->Write(message);
  }
}

int64_t RankGroup::formations() {
  MutexLock lock(&mutex_);
  return formations_;
}

absl::Status RankGroup::Joined(std::shared_ptr<RankStream> stream, const Hello& hello) {
  MutexLock lock(&mutex_);
  if (token_.empty() || hello.token() != token_) {
    return absl::UnauthenticatedError("the token is wrong for the current formation");
  }
  constexpr absl::string_view kVersion = CROUT_VERSION "-" CROUT_COMMIT;
  if (hello.version() != kVersion || hello.ranks() != options_.ranks) {
    const std::string reason = absl::StrCat("crout-rank has version ", hello.version(), " and ",
                                            hello.ranks(), " ranks; this daemon needs version ",
                                            kVersion, " and ", options_.ranks, " ranks");
    Lose(reason);
    return absl::FailedPreconditionError(reason);
  }
  if (hello.rank() < 0 || hello.rank() >= options_.ranks ||
      members_[hello.rank()].stream != nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("there is a rank ", hello.rank(), " already"));
  }
  Member& member = members_[hello.rank()];
  member.pid = static_cast<pid_t>(hello.pid());
  member.process = OpenProcess(member.pid);
  if (member.process.get() < 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("process ", hello.pid(), " cannot be opened: ", std::strerror(errno)));
  }
  member.last_heard = SteadyNow();
  methods_.assign(hello.methods().begin(), hello.methods().end());
  GroupMessage message;
  message.mutable_welcome()->set_memory_bytes(arena_.size());
  stream->Write(message);
  member.stream = std::move(stream);
  changed_.SignalAll();
  return absl::OkStatus();
}

void RankGroup::Received(const RankStream& stream, const RankMessage& message) {
  MutexLock lock(&mutex_);
  Member* const member = Find(stream);
  if (member == nullptr) return;
  member->last_heard = SteadyNow();
  if (!message.has_result() || message.result().job() != job_id_) return;
  member->result = message.result();
  if (AllAnswered()) changed_.SignalAll();
}

void RankGroup::Left(const RankStream& stream) {
  MutexLock lock(&mutex_);
  const Member* const member = Find(stream);
  if (member == nullptr) return;
  Lose(absl::StrCat(Describe(member - members_.data(), member->pid), " ended"));
}

RankGroup::Member* RankGroup::Find(const RankStream& stream) {
  const auto found = std::ranges::find_if(
      members_, [&](const Member& member) { return member.stream.get() == &stream; });
  return found == members_.end() ? nullptr : &*found;
}

bool RankGroup::AllJoined() const {
  return std::ranges::all_of(members_,
                             [](const Member& member) { return member.stream != nullptr; });
}

bool RankGroup::AllAnswered() const {
  return std::ranges::all_of(members_,
                             [](const Member& member) { return member.result.has_value(); });
}

void RankGroup::Lose(const std::string& reason) {
  if (loss_.empty()) loss_ = reason;
  changed_.SignalAll();
}

absl::Status RankGroup::LostStatus(const std::string& reason) const {
  return WithRetryAfter(
      WithReason(absl::UnavailableError(absl::StrCat(options_.name, " was lost: ", reason,
                                                     ". It forms again; retry the call")),
                 kReasonGroupLost),
      kRetrySeconds);
}

absl::StatusOr<Result> RankGroup::Run(rank::v1::Job job, double predicted_seconds,
                                      StopRequested stop) {
  MutexLock run_lock(&run_mutex_);
  MutexLock lock(&mutex_);
  CROUT_RETURN_IF_ERROR(AwaitFormation(stop));
  job.set_id(++job_id_);
  GroupMessage message;
  *message.mutable_job() = std::move(job);
  for (Member& member : members_) {
    member.result.reset();
    member.stream->Write(message);
  }
  return AwaitResults(predicted_seconds, stop);
}

absl::Status RankGroup::AwaitFormation(StopRequested stop) {
  const Clock::time_point deadline = SteadyNow() + kMostWait;
  while (!formed_ || !loss_.empty() || stopping_) {
    CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
    const Clock::time_point now = SteadyNow();
    if (now >= deadline || stopping_) return LostStatus(last_loss_);
    changed_.WaitUntil(&mutex_, now + kStopPoll);
  }
  return absl::OkStatus();
}

absl::StatusOr<Result> RankGroup::AwaitResults(double predicted_seconds, StopRequested stop) {
  const int64_t formation = formations_;
  const auto allowed = std::max<Clock::duration>(
      kLeastDeadline, std::chrono::duration_cast<Clock::duration>(
                          std::chrono::duration<double>(kSlack * predicted_seconds)));
  Clock::time_point deadline = SteadyNow() + allowed;
  bool stopped = false;
  bool killed_because_stopped = false;
  // A rank may write to the memory of the job until it has answered or ended.
  while (!AllAnswered()) {
    if (!formed_ || formations_ != formation) {
      return killed_because_stopped ? absl::CancelledError("the job was stopped")
                                    : LostStatus(last_loss_);
    }
    const Clock::time_point now = SteadyNow();
    if (!stopped && stop()) {
      stopped = true;
      deadline = std::min(deadline, now + kStopGrace);
    }
    if (now >= deadline && loss_.empty()) {
      killed_because_stopped = stopped;
      Lose(stopped ? std::string("a job was cancelled")
                   : absl::StrCat("a job predicted to take ", predicted_seconds,
                                  " s did not end within ",
                                  std::chrono::duration_cast<seconds>(allowed).count(), " s"));
    }
    changed_.WaitUntil(&mutex_, now + kStopPoll);
  }
  for (const Member& member : members_) {
    if (!member.result->error().empty()) {
      return absl::InternalError(
          absl::StrCat(options_.name, " refused a job: ", member.result->error()));
    }
  }
  return *members_.front().result;
}

void RankGroup::Supervise() {
  while (true) {
    {
      MutexLock lock(&mutex_);
      if (stopping_) return;
    }
    Form();
    Watch();
    Disband();
    Pause();
  }
}

void RankGroup::Form() {
  const Clock::time_point start = SteadyNow();
  absl::StatusOr<std::string> token = NewToken();
  {
    MutexLock lock(&mutex_);
    if (!token.ok()) return Lose(std::string(token.status().message()));
    token_ = *token;
  }
  auto processes = RankProcesses::Start(folder_, {.program = options_.program,
                                                  .ranks = options_.ranks,
                                                  .threads = options_.threads,
                                                  .memory = arena_.file(),
                                                  .token = *token});
  MutexLock lock(&mutex_);
  if (!processes.ok()) return Lose(std::string(processes.status().message()));
  processes_ = *std::move(processes);
  while (!AllJoined() && loss_.empty() && !stopping_) {
    const Clock::time_point now = SteadyNow();
    if (processes_->ended()) {
      Lose(absl::StrCat("the ranks ended: ", folder_.LogTail()));
    } else if (now - start >= kFormation) {
      Lose(absl::StrCat("the ranks did not join within ", kFormation.count(),
                        " s: ", folder_.LogTail()));
    } else {
      changed_.WaitUntil(&mutex_, now + kFormPeriod);
    }
  }
  if (!loss_.empty() || stopping_) return;
  if (!processes_->HasOwnNetwork()) {
    Log(LogLevel::kWarn, "group_exposed",
        {{"device", options_.name},
         {"reason",
          "the system permits no network namespace, so mpirun accepts connections on all "
          "interfaces. Block them with a firewall"}});
  }
  formed_ = true;
  ++formations_;
  changed_.SignalAll();
  Log(LogLevel::kInfo, "group_formed",
      {{"device", options_.name},
       {"ranks", options_.ranks},
       {"seconds", std::chrono::duration<double>(SteadyNow() - start).count()}});
}

void RankGroup::Watch() {
  MutexLock lock(&mutex_);
  while (formed_ && loss_.empty() && !stopping_) {
    const Clock::time_point now = SteadyNow();
    for (const Member& member : members_) {
      if (now - member.last_heard > kSilence) {
        Lose(absl::StrCat(Describe(&member - members_.data(), member.pid),
                          " sent no heartbeat for ", kSilence.count(), " s"));
      }
    }
    if (processes_->ended()) Lose("the process that started the ranks ended");
    if (loss_.empty()) changed_.WaitUntil(&mutex_, now + kWatchPeriod);
  }
}

void RankGroup::Disband() {
  std::vector<Member> members(options_.ranks);
  {
    MutexLock lock(&mutex_);
    token_.clear();
    members.swap(members_);
    failures_ = formed_ ? 0 : failures_ + 1;
  }
  for (const Member& member : members) {
    if (member.stream == nullptr) continue;
    Kill(member.process);
    member.stream->Cancel();
  }
  processes_.reset();
  const Clock::time_point deadline = SteadyNow() + kEndWait;
  for (const Member& member : members) {
    if (member.stream == nullptr) continue;
    AwaitEnd(member.process, deadline);
    // Orphans become children of this process if it is the first one of a container.
    waitpid(member.pid, nullptr, WNOHANG);
  }
  MutexLock lock(&mutex_);
  if (!stopping_) {
    Log(LogLevel::kWarn, formed_ ? "group_lost" : "group_not_formed",
        {{"device", options_.name}, {"reason", loss_}});
  }
  formed_ = false;
  last_loss_ = std::exchange(loss_, {});
  changed_.SignalAll();
}

void RankGroup::Pause() {
  if (failures_ == 0) return;
  const int doublings = std::min(failures_ - 1, 5);
  const Clock::time_point end =
      SteadyNow() + std::min(kFirstPause * (1 << doublings), kLongestPause);
  MutexLock lock(&mutex_);
  while (!stopping_ && SteadyNow() < end) changed_.WaitUntil(&mutex_, end);
}

}  // namespace crout
