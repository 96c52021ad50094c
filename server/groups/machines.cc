// SPDX-License-Identifier: Apache-2.0

#include "server/groups/machines.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "crout_version.h"
#include "kernels/util/clock.h"
#include "server/observability/log/log.h"

namespace crout {

using rank::v1::AgentMessage;
using rank::v1::MachineMessage;

std::string Machines::Missing() {
  MutexLock lock(&mutex_);
  RemoveSilent();
  const int joined = RanksOfAll();
  if (joined == ranks_) return {};
  return absl::StrCat("machines with ", joined, " of ", ranks_,
                      " ranks have joined. Start crout-rank --join on the others");
}

absl::Status Machines::Start(const std::string& token) {
  MutexLock lock(&mutex_);
  failure_.clear();
  output_.clear();
  MachineMessage message;
  rank::v1::Form& form = *message.mutable_form();
  form.set_token(token);
  for (const Machine& machine : machines_) form.add_ranks(machine.ranks);
  for (size_t i = 0; i < machines_.size(); ++i) {
    form.set_machine(static_cast<int32_t>(i));
    machines_[i].stream->Write(message);
    machines_[i].runs = true;
  }
  // A machine that left after Missing() is missed by mpirun only.
  if (RanksOfAll() != ranks_) failure_ = "a machine left";
  return absl::OkStatus();
}

std::string Machines::Failure() {
  MutexLock lock(&mutex_);
  RemoveSilent();
  return failure_;
}

std::string Machines::Output() const {
  MutexLock lock(&mutex_);
  return output_;
}

void Machines::End() {
  MutexLock lock(&mutex_);
  RemoveSilent();
  MachineMessage message;
  message.mutable_disband();
  for (const Machine& machine : machines_) {
    if (machine.runs) machine.stream->Write(message);
  }
  const Clock::time_point deadline = SteadyNow() + kEndWait;
  while (AnyRuns() && SteadyNow() < deadline) {
    changed_.WaitUntil(&mutex_, std::min(deadline, SteadyNow() + kEndPoll));
    RemoveSilent();
  }
  for (size_t i = machines_.size(); i-- > 0;) {
    if (machines_[i].runs) Remove(i, "did not end its ranks");
  }
}

absl::Status Machines::Joined(std::shared_ptr<AgentStream> stream,
                              const rank::v1::AgentHello& hello) {
  constexpr absl::string_view kVersion = CROUT_VERSION "-" CROUT_COMMIT;
  constexpr size_t kLongestHost = 255;
  if (hello.version() != kVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("crout-rank has version ", absl::CEscape(hello.version()),
                     "; this daemon has version ", kVersion, ". Install the same version"));
  }
  if (hello.group() != group_) {
    return absl::FailedPreconditionError(absl::StrCat("the group of this address is ", group_,
                                                      ", not ", absl::CEscape(hello.group())));
  }
  if (hello.host().size() > kLongestHost) {
    return absl::FailedPreconditionError(absl::StrCat("the name of the machine has ",
                                                      hello.host().size(), " bytes; at most ",
                                                      kLongestHost, " are allowed"));
  }
  if (hello.ranks() < 1 || hello.ranks() > ranks_) {
    return absl::FailedPreconditionError(
        absl::StrCat("the machine offers ", hello.ranks(), " ranks; the group has ", ranks_));
  }
  MutexLock lock(&mutex_);
  if (RanksOfAll() + hello.ranks() > ranks_) {
    return absl::ResourceExhaustedError(absl::StrCat("machines with ", RanksOfAll(), " of ", ranks_,
                                                     " ranks have joined; there is no place for ",
                                                     hello.ranks(), " more"));
  }
  machines_.push_back({.stream = std::move(stream),
                       .host = absl::CEscape(hello.host()),
                       .ranks = hello.ranks(),
                       .last_heard = SteadyNow()});
  Log(LogLevel::kInfo, "machine_joined",
      {{"device", absl::StrCat("group:", group_)},
       {"host", machines_.back().host},
       {"ranks", hello.ranks()}});
  return absl::OkStatus();
}

void Machines::Received(const AgentStream& stream, const AgentMessage& message) {
  MutexLock lock(&mutex_);
  const auto found = std::ranges::find_if(
      machines_, [&](const Machine& machine) { return machine.stream.get() == &stream; });
  if (found == machines_.end()) return;
  found->last_heard = SteadyNow();
  if (message.has_launch()) Relay(*found, message.launch());
  if (!message.has_ended() || !found->runs) return;
  found->runs = false;
  if (failure_.empty()) {
    output_ = absl::CEscape(message.ended().output());
    failure_ = absl::StrCat("the processes on ", found->host, " ended: ", output_);
  }
  changed_.SignalAll();
}

void Machines::Relay(const Machine& from, const rank::v1::Launch& launch) {
  const auto index = static_cast<size_t>(launch.machine());
  if (&from != &machines_.front() || !from.runs || launch.machine() < 0 ||
      index >= machines_.size() || !machines_[index].runs) {
    return;
  }
  // The agent checks the parameters.
  MachineMessage message;
  *message.mutable_launch() = launch;
  machines_[index].stream->Write(message);
}

void Machines::Left(const AgentStream& stream) {
  MutexLock lock(&mutex_);
  for (size_t i = 0; i < machines_.size(); ++i) {
    if (machines_[i].stream.get() == &stream) return Remove(i, "left");
  }
}

int Machines::RanksOfAll() const {
  int ranks = 0;
  for (const Machine& machine : machines_) ranks += machine.ranks;
  return ranks;
}

bool Machines::AnyRuns() const {
  return std::ranges::any_of(machines_, [](const Machine& machine) { return machine.runs; });
}

void Machines::Remove(size_t i, const std::string& reason) {
  const Machine machine = machines_[i];
  machines_.erase(machines_.begin() + static_cast<std::ptrdiff_t>(i));
  machine.stream->Cancel();
  if (failure_.empty()) failure_ = absl::StrCat("machine ", machine.host, " ", reason);
  Log(LogLevel::kWarn, "machine_left",
      {{"device", absl::StrCat("group:", group_)}, {"host", machine.host}, {"reason", reason}});
  changed_.SignalAll();
}

void Machines::RemoveSilent() {
  const Clock::time_point now = SteadyNow();
  for (size_t i = machines_.size(); i-- > 0;) {
    if (now - machines_[i].last_heard > kSilence) {
      Remove(i, absl::StrCat("sent no heartbeat for ", kSilence.count(), " s"));
    }
  }
}

}  // namespace crout
