// SPDX-License-Identifier: Apache-2.0

#include "server/engine/cache/tenant_loads.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace crout {
namespace {

// Number of tenants that are copied at a time while the mutex is held.
constexpr size_t kPage = 64;

int64_t Bytes(const TenantLoad& load) { return std::reduce(load.bytes.begin(), load.bytes.end()); }

// Sums the differences of all memories. The numbers may be read while they change.
template <class Counts>
int64_t BytesInFlight(const Counts& reserved, const Counts& cached) {
  int64_t sum = 0;
  for (const Tier tier : {Tier::kDevice, Tier::kHost}) {
    sum += reserved[static_cast<size_t>(tier)] - cached[static_cast<size_t>(tier)];
  }
  return std::max<int64_t>(sum, 0);
}

}  // namespace

int64_t TenantLoad::bytes_in_flight() const { return BytesInFlight(reserved, bytes); }

size_t TenantLoads::Account::bytes_in_flight() const noexcept {
  return static_cast<size_t>(BytesInFlight(load_->second.reserved, load_->second.bytes));
}

TenantLoads::Account::~Account() {
  if (loads_ == nullptr) return;
  if (is_call_) --load_->second.calls;
  loads_->Close(load_);
}

TenantLoads::Account::Account(Account&& other) noexcept
    : loads_(std::exchange(other.loads_, nullptr)), load_(other.load_), is_call_(other.is_call_) {}

TenantLoads::Account& TenantLoads::Account::operator=(Account&& other) noexcept {
  std::swap(loads_, other.loads_);
  std::swap(load_, other.load_);
  std::swap(is_call_, other.is_call_);
  return *this;
}

void TenantLoads::Account::MakeShares(size_t count) {
  std::deque<TenantShare>& shares = load_->second.shares;
  while (shares.size() < count) shares.emplace_back(load_->first);
}

TenantLoads::Account TenantLoads::Open(std::string_view tenant) {
  MutexLock lock(&mutex_);
  auto load = loads_.find(tenant);
  if (load == loads_.end()) load = loads_.try_emplace(std::string(tenant)).first;
  ++load->second.accounts;
  return Account(this, load);
}

TenantLoads::Account TenantLoads::OpenCall(std::string_view tenant) {
  Account account = Open(tenant);
  account.is_call_ = true;
  ++account.load_->second.calls;
  return account;
}

void TenantLoads::Close(Loads::iterator load) noexcept {
  MutexLock lock(&mutex_);
  if (--load->second.accounts == 0) loads_.erase(load);
}

std::vector<TenantLoad> TenantLoads::Largest(size_t count) const {
  std::vector<TenantLoad> all;
  std::string last;  // no tenant has the name ""
  for (bool more = true; more;) {
    all.reserve(all.size() + kPage);
    MutexLock lock(&mutex_);
    auto next = loads_.upper_bound(last);
    for (size_t i = 0; i < kPage && next != loads_.end(); ++i, ++next) {
      if (TenantLoad copy = Copy(*next); !copy.empty()) all.push_back(std::move(copy));
      if (i + 1 == kPage) last = next->first;
    }
    more = next != loads_.end();
  }
  const size_t kept = std::min(count, all.size());
  std::partial_sort(all.begin(), all.begin() + static_cast<ptrdiff_t>(kept), all.end(),
                    [](const TenantLoad& a, const TenantLoad& b) {
                      return std::tuple(-Bytes(a), std::string_view(a.tenant)) <
                             std::tuple(-Bytes(b), std::string_view(b.tenant));
                    });
  all.resize(kept);
  return all;
}

TenantLoad TenantLoads::Of(std::string_view tenant) const {
  MutexLock lock(&mutex_);
  const auto found = loads_.find(tenant);
  return found == loads_.end() ? TenantLoad{.tenant = std::string(tenant)} : Copy(*found);
}

TenantLoad TenantLoads::Copy(const Loads::value_type& load) {
  TenantLoad copy{.tenant = load.first,
                  .factors = load.second.factors,
                  .pinned_bytes = load.second.pinned_bytes,
                  .calls = load.second.calls};
  std::copy(load.second.bytes.begin(), load.second.bytes.end(), copy.bytes.begin());
  std::copy(load.second.reserved.begin(), load.second.reserved.end(), copy.reserved.begin());
  return copy;
}

}  // namespace crout
