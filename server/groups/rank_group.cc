// SPDX-License-Identifier: Apache-2.0

#include "server/groups/rank_group.h"

#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "crout_version.h"
#include "kernels/util/clock.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/thread.h"
#include "server/engine/error.h"
#include "server/groups/local_ranks.h"
#include "server/groups/machines.h"
#include "server/groups/process_file.h"
#include "server/groups/rank_folder.h"
#include "server/net/listen_address.h"
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

// `peer`: MessageStream::peer(). Names the machine of the rank if it is another one.
std::string Describe(size_t rank, pid_t pid, const std::string& peer) {
  if (absl::StartsWith(peer, "unix:")) return absl::StrCat("rank ", rank, " (process ", pid, ")");
  return absl::StrCat("rank ", rank, " (process ", pid, " at ", peer, ")");
}

}  // namespace

absl::StatusOr<std::unique_ptr<RankGroup>> RankGroup::Start(const RankGroupOptions& options,
                                                            const SharedArena& arena) {
  std::unique_ptr<RankGroup> group(new RankGroup(options, arena));
  CROUT_RETURN_IF_ERROR(group->Listen());
  group->supervisor_ = StartThread([group = group.get()] { group->Supervise(); });
  if (group->joined_by_machines()) return group;
  MutexLock lock(&group->mutex_);
  while (group->formations_ == 0 && group->last_loss_.empty()) group->changed_.Wait(&group->mutex_);
  if (group->formations_ > 0) return group;
  return absl::UnavailableError(
      absl::StrCat("group ", group->name_, " cannot be formed: ", group->last_loss_));
}

RankGroup::RankGroup(const RankGroupOptions& options, const SharedArena& arena)
    : options_(options),
      arena_(arena),
      name_(absl::StrCat("group:", options.spec.name)),
      memory_(arena),
      members_(options.spec.ranks) {
  if (joined_by_machines()) methods_ = {"scalapack", "mumps"};
}

absl::Status RankGroup::Listen() {
  if (joined_by_machines()) {
    CROUT_ASSIGN_OR_RETURN(gate_, RankGate::Create(options_.security));
    auto machines = std::make_unique<Machines>(options_.spec.name, ranks());
    const RankService service = {.ranks = this,
                                 .agents = machines.get(),
                                 .memory = &memory_,
                                 .gate = gate_.get(),
                                 .most_connections = MostConnections(ranks())};
    launcher_ = std::move(machines);
    CROUT_ASSIGN_OR_RETURN(listener_, RankListener::Start(options_.spec.join, service));
    address_ = WithPort(options_.spec.join, listener_->port());
    Log(LogLevel::kInfo, "group_listening",
        {{"device", name_}, {"address", address_}, {"ranks", ranks()}});
    return absl::OkStatus();
  }
  CROUT_ASSIGN_OR_RETURN(RankFolder folder, RankFolder::Create());
  auto ranks = std::make_unique<LocalRanks>(name_, std::move(folder),
                                            RankStart{.program = options_.program,
                                                      .ranks = options_.spec.ranks,
                                                      .threads = options_.threads,
                                                      .memory = arena_.file(),
                                                      .gpus = options_.spec.gpus,
                                                      .token = {}});
  const std::string address = absl::StrCat("unix:", ranks->socket());
  launcher_ = std::move(ranks);
  CROUT_ASSIGN_OR_RETURN(listener_,
                         RankListener::Start(address, {.ranks = this, .memory = &memory_}));
  return absl::OkStatus();
}

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
  message.mutable_forget()->add_factors(factor);
  MutexLock lock(&mutex_);
  for (const Member& member : members_) {
    if (member.stream != nullptr) member.stream->Write(message);
  }
}

uint64_t RankGroup::GpuBytes() {
  MutexLock lock(&mutex_);
  return gpu_bytes_;
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
  std::string reason;
  if (hello.version() != kVersion || hello.ranks() != ranks()) {
    reason = absl::StrCat("crout-rank has version ", absl::CEscape(hello.version()), " and ",
                          hello.ranks(), " ranks; this daemon needs version ", kVersion, " and ",
                          ranks(), " ranks");
  } else if (joined_by_machines() && !std::ranges::equal(hello.methods(), methods_)) {
    reason = absl::StrCat("crout-rank has the methods ", absl::StrJoin(hello.methods(), ", "),
                          "; machines that join need ", absl::StrJoin(methods_, ", "),
                          ". Build it with CROUT_MUMPS=ON");
  }
  if (!reason.empty()) {
    Lose(reason);
    return absl::FailedPreconditionError(reason);
  }
  if (hello.rank() < 0 || hello.rank() >= ranks()) {
    return absl::FailedPreconditionError(
        absl::StrCat("there is no rank ", hello.rank(), ": ranks are 0 to ", ranks() - 1));
  }
  if (members_[hello.rank()].stream != nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("there is a rank ", hello.rank(), " already"));
  }
  Member& member = members_[hello.rank()];
  member.pid = static_cast<pid_t>(hello.pid());
  if (!joined_by_machines()) member.process = OpenProcess(member.pid);
  if (!joined_by_machines() && member.process.get() < 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("process ", hello.pid(), " cannot be opened: ", std::strerror(errno)));
  }
  member.last_heard = SteadyNow();
  member.gpu_bytes = hello.gpu_bytes();
  methods_.assign(hello.methods().begin(), hello.methods().end());
  GroupMessage message;
  message.mutable_welcome()->set_memory_bytes(joined_by_machines() ? 0 : arena_.size());
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
  if (message.result().error_kind() == rank::v1::ERROR_KIND_LIBRARY) {
    return Lose(absl::StrCat(Describe(member - members_.data(), member->pid, stream.peer()), ": ",
                             message.result().error()));
  }
  member->result = message.result();
  if (AllAnswered()) changed_.SignalAll();
}

void RankGroup::Left(const RankStream& stream) {
  MutexLock lock(&mutex_);
  const Member* const member = Find(stream);
  if (member == nullptr) return;
  Lose(absl::StrCat(Describe(member - members_.data(), member->pid, stream.peer()), " ended"));
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

absl::Status RankGroup::LostStatus() const {
  return WithRetryAfter(
      WithReason(absl::UnavailableError(absl::StrCat(name_, " was lost: ", last_loss_,
                                                     ". It forms again; retry the call")),
                 kReasonGroupLost),
      kRetrySeconds);
}

absl::Status RankGroup::NotFormedStatus() const {
  if (missing_.empty()) return LostStatus();
  return WithRetryAfter(
      WithReason(absl::UnavailableError(absl::StrCat(name_, " is not formed: ", missing_)),
                 kReasonGroupLost),
      kRetrySeconds);
}

absl::StatusOr<Result> RankGroup::Run(rank::v1::Job job, double predicted_seconds,
                                      StopRequested stop) {
  MutexLock run_lock(&run_mutex_);
  MutexLock lock(&mutex_);
  CROUT_RETURN_IF_ERROR(AwaitFormation(stop));
  job.set_id(++job_id_);
  memory_.Begin(token_, job);
  GroupMessage message;
  *message.mutable_job() = std::move(job);
  for (Member& member : members_) {
    member.result.reset();
    member.stream->Write(message);
  }
  absl::StatusOr<Result> result = AwaitResults(predicted_seconds, stop);
  memory_.End();
  return result;
}

absl::Status RankGroup::AwaitFormation(StopRequested stop) {
  const Clock::time_point deadline = SteadyNow() + kMostWait;
  while (!formed_ || !loss_.empty() || stopping_) {
    CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
    const Clock::time_point now = SteadyNow();
    if (now >= deadline || stopping_) return NotFormedStatus();
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
      return killed_because_stopped ? absl::CancelledError("the job was stopped") : LostStatus();
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
    const std::string& error = member.result->error();
    if (error.empty()) continue;
    if (member.result->error_kind() == rank::v1::ERROR_KIND_MEMORY) {
      return absl::ResourceExhaustedError(absl::StrCat(name_, ": ", error));
    }
    return absl::InternalError(absl::StrCat(name_, " refused a job: ", error));
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

void RankGroup::AwaitMachines() {
  MutexLock lock(&mutex_);
  while (!stopping_ && !(missing_ = launcher_->Missing()).empty()) {
    changed_.WaitUntil(&mutex_, SteadyNow() + kFormPeriod);
  }
}

void RankGroup::Form() {
  AwaitMachines();
  const Clock::time_point start = SteadyNow();
  const seconds limit = options_.spec.gpus.empty() ? kFormation : kGpuFormation;
  absl::StatusOr<std::string> token = NewToken();
  {
    MutexLock lock(&mutex_);
    if (stopping_) return;
    if (!token.ok()) return Lose(std::string(token.status().message()));
    token_ = *token;
  }
  const absl::Status status = launcher_->Start(*token);
  started_ = status.ok();
  MutexLock lock(&mutex_);
  if (!started_) return Lose(std::string(status.message()));
  while (!AllJoined() && loss_.empty() && !stopping_) {
    const Clock::time_point now = SteadyNow();
    if (const std::string failure = launcher_->Failure(); !failure.empty()) {
      Lose(failure);
    } else if (now - start >= limit) {
      Lose(absl::StrCat("the ranks did not join within ", limit.count(),
                        " s: ", launcher_->Output()));
    } else {
      changed_.WaitUntil(&mutex_, now + kFormPeriod);
    }
  }
  if (!loss_.empty() || stopping_) return;
  launcher_->Formed();
  formed_ = true;
  ++formations_;
  gpu_bytes_ = std::ranges::min_element(members_, {}, &Member::gpu_bytes)->gpu_bytes;
  changed_.SignalAll();
  Log(LogLevel::kInfo, "group_formed",
      {{"device", name_},
       {"ranks", ranks()},
       {"seconds", std::chrono::duration<double>(SteadyNow() - start).count()}});
}

void RankGroup::Watch() {
  MutexLock lock(&mutex_);
  while (formed_ && loss_.empty() && !stopping_) {
    const Clock::time_point now = SteadyNow();
    for (const Member& member : members_) {
      if (now - member.last_heard > kSilence) {
        Lose(absl::StrCat(Describe(&member - members_.data(), member.pid, member.stream->peer()),
                          " sent no heartbeat for ", kSilence.count(), " s"));
      }
    }
    if (const std::string failure = launcher_->Failure(); !failure.empty()) Lose(failure);
    if (loss_.empty()) changed_.WaitUntil(&mutex_, now + kWatchPeriod);
  }
}

void RankGroup::Disband() {
  std::vector<Member> members(ranks());
  {
    MutexLock lock(&mutex_);
    token_.clear();
    members.swap(members_);
    failures_ = formed_ ? 0 : failures_ + 1;
  }
  for (const Member& member : members) {
    if (member.stream == nullptr) continue;
    if (member.process.get() >= 0) Kill(member.process);
    member.stream->Cancel();
  }
  if (std::exchange(started_, false)) launcher_->End();
  const Clock::time_point deadline = SteadyNow() + kEndWait;
  for (const Member& member : members) {
    if (member.process.get() < 0) continue;
    AwaitEnd(member.process, deadline);
    // Orphans become children of this process if it is the first one of a container.
    waitpid(member.pid, nullptr, WNOHANG);
  }
  MutexLock lock(&mutex_);
  if (!stopping_) {
    Log(LogLevel::kWarn, formed_ ? "group_lost" : "group_not_formed",
        {{"device", name_}, {"reason", loss_}});
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
