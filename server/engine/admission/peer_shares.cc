// SPDX-License-Identifier: Apache-2.0

#include "server/engine/admission/peer_shares.h"

#include <iterator>
#include <utility>

namespace crout {

PeerShares::Charge::Charge(Charge&& other) noexcept
    : shares_(std::exchange(other.shares_, nullptr)), share_(other.share_), held_(other.held_) {}

PeerShares::Charge& PeerShares::Charge::operator=(Charge&& other) noexcept {
  if (this != &other) {
    Release();
    shares_ = std::exchange(other.shares_, nullptr);
    share_ = other.share_;
    held_ = other.held_;
  }
  return *this;
}

void PeerShares::Charge::Release() {
  if (shares_ != nullptr) std::exchange(shares_, nullptr)->Give(share_, held_);
}

std::optional<PeerShares::Charge> PeerShares::TryCharge(std::string_view peer, size_t bytes,
                                                        std::weak_ptr<Holder> holder) {
  Ended ended;
  std::optional<Charge> charge;
  {
    MutexLock lock(&mutex_);
    if (std::optional<Reservation> reserved = Reserve(peer, bytes, ended)) {
      auto share = shares_.find(peer);
      if (share == shares_.end()) share = shares_.emplace(peer, Share()).first;
      std::list<Held>& held = share->second.held;
      held.push_back({.bytes = *std::move(reserved), .holder = std::move(holder)});
      share->second.bytes += bytes;
      charge = Charge(this, share, std::prev(held.end()));
    }
  }
  for (const auto& each : ended) each->GiveWay();
  return charge;
}

std::optional<Reservation> PeerShares::Reserve(std::string_view peer, size_t bytes, Ended& ended) {
  std::optional<Reservation> reserved = budget_.TryReserve(bytes);
  const auto share = shares_.find(peer);
  const size_t held = share == shares_.end() ? 0 : share->second.bytes;
  const bool within = peer.empty() || (bytes <= quarter_ && held <= quarter_ - bytes);
  while (!reserved && within && MakeOneGiveWay(ended)) reserved = budget_.TryReserve(bytes);
  return reserved;
}

bool PeerShares::MakeOneGiveWay(Ended& ended) {
  Share* largest = nullptr;
  for (auto& [peer, share] : shares_) {
    if (peer.empty() || share.bytes <= quarter_) continue;
    if (largest == nullptr || share.bytes > largest->bytes) largest = &share;
  }
  if (largest == nullptr) return false;
  auto newest = largest->held.rbegin();
  while (newest->leaving) ++newest;
  const size_t bytes = newest->bytes.bytes();
  std::optional<Reservation> elsewhere = leaving_.TryReserve(bytes);
  if (!elsewhere) return false;
  newest->bytes = *std::move(elsewhere);
  newest->leaving = true;
  largest->bytes -= bytes;
  if (auto holder = newest->holder.lock()) ended.push_back(std::move(holder));
  return true;
}

void PeerShares::Give(Shares::iterator share, std::list<Held>::iterator held) {
  MutexLock lock(&mutex_);
  if (!held->leaving) share->second.bytes -= held->bytes.bytes();
  share->second.held.erase(held);
  if (share->second.held.empty()) shares_.erase(share);
}

}  // namespace crout
