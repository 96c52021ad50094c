// SPDX-License-Identifier: Apache-2.0

#include "server/engine/admission/peer_shares.h"

#include <iterator>
#include <utility>

namespace crout {

PeerShares::Charge::Charge(Charge&& other) noexcept
    : shares_(std::exchange(other.shares_, nullptr)),
      share_(other.share_),
      record_(other.record_) {}

PeerShares::Charge& PeerShares::Charge::operator=(Charge&& other) noexcept {
  if (this != &other) {
    Release();
    shares_ = std::exchange(other.shares_, nullptr);
    share_ = other.share_;
    record_ = other.record_;
  }
  return *this;
}

void PeerShares::Charge::Release() {
  if (shares_ != nullptr) std::exchange(shares_, nullptr)->ReturnCharge(share_, record_);
}

std::optional<PeerShares::Charge> PeerShares::TryCharge(std::string_view peer, size_t bytes,
                                                        std::weak_ptr<Holder> holder) {
  Ended ended;
  std::optional<Charge> charge;
  std::list<ChargeRecord> added;  // every call takes the mutex: allocate before
  added.push_back({.bytes = {}, .holder = std::move(holder)});
  {
    MutexLock lock(&mutex_);
    if (std::optional<Reservation> reserved = Reserve(peer, bytes, ended)) {
      auto share = shares_.find(peer);
      if (share == shares_.end()) share = shares_.emplace(peer, Share()).first;
      std::list<ChargeRecord>& records = share->second.records;
      added.front().bytes = *std::move(reserved);
      records.splice(records.end(), added);
      share->second.bytes += bytes;
      charge = Charge(this, share, std::prev(records.end()));
    }
  }
  for (const auto& each : ended) each->Preempt();
  return charge;
}

std::optional<Reservation> PeerShares::Reserve(std::string_view peer, size_t bytes, Ended& ended) {
  std::optional<Reservation> reserved = budget_.TryReserve(bytes);
  const auto share = shares_.find(peer);
  const size_t charged = share == shares_.end() ? 0 : share->second.bytes;
  const bool within = peer.empty() || (bytes <= quarter_ && charged <= quarter_ - bytes);
  while (!reserved && within && PreemptOne(ended)) reserved = budget_.TryReserve(bytes);
  return reserved;
}

bool PeerShares::PreemptOne(Ended& ended) {
  Share* largest = nullptr;
  for (auto& [peer, share] : shares_) {
    if (peer.empty() || share.bytes <= quarter_) continue;
    if (largest == nullptr || share.bytes > largest->bytes) largest = &share;
  }
  if (largest == nullptr) return false;
  auto newest = largest->records.rbegin();
  while (newest->preempted) ++newest;
  const size_t bytes = newest->bytes.bytes();
  std::optional<Reservation> elsewhere = preempted_.TryReserve(bytes);
  if (!elsewhere) return false;
  newest->bytes = *std::move(elsewhere);
  newest->preempted = true;
  largest->bytes -= bytes;
  if (auto holder = newest->holder.lock()) ended.push_back(std::move(holder));
  return true;
}

void PeerShares::ReturnCharge(Shares::iterator share, std::list<ChargeRecord>::iterator record) {
  std::list<ChargeRecord> removed;  // freed after the mutex is released
  MutexLock lock(&mutex_);
  if (!record->preempted) share->second.bytes -= record->bytes.bytes();
  record->bytes = Reservation();
  removed.splice(removed.end(), share->second.records, record);
  if (share->second.records.empty()) shares_.erase(share);
}

}  // namespace crout
