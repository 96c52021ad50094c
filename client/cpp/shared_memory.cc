// SPDX-License-Identifier: Apache-2.0

#include "client/cpp/shared_memory.h"

#include <endian.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/numeric/bits.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "crout/v1/matrix.pb.h"

namespace crout {
inline namespace api {
namespace internal {
namespace {

// The first bytes of an offer: the version of the protocol, with a zero.
constexpr char kMagic[] = "CROUTM1";
constexpr size_t kIdBytes = 16;
// Smallest payload or reply in shared memory; a message costs less for a smaller one.
constexpr int64_t kLeastBytes = int64_t{256} << 10;
constexpr size_t kMaxIdle = 4;  // regions kept for later calls
constexpr time_t kAnswerSeconds = 10;
constexpr absl::Duration kPause = absl::Seconds(10);
constexpr size_t kAlignment = 4096;

size_t Aligned(size_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }

// Rounds up by at most an eighth, so that calls of similar sizes use the same region.
size_t Rounded(size_t size) {
  const size_t step = std::max(kAlignment, absl::bit_floor(size) / 8);
  return (size + step - 1) / step * step;
}

std::string MemoryPath(absl::string_view server) {
  if (!absl::ConsumePrefix(&server, "unix:")) return "";
  absl::ConsumePrefix(&server, "//");
  return absl::StrCat(server, ".memory");
}

// Sends the offer of a file. Returns false if the connection is closed.
bool SendOffer(int socket, int file, uint64_t size) {
  std::string message(kMagic, sizeof kMagic);
  const uint64_t little = htole64(size);
  message.append(reinterpret_cast<const char*>(&little), sizeof little);
  iovec bytes = {.iov_base = message.data(), .iov_len = message.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof file)] = {};
  msghdr header = {};
  header.msg_iov = &bytes;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  cmsghdr* const part = CMSG_FIRSTHDR(&header);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof file);
  std::memcpy(CMSG_DATA(part), &file, sizeof file);
  return sendmsg(socket, &header, MSG_NOSIGNAL) == static_cast<ssize_t>(message.size());
}

void CloseFile(int* file) {
  if (*file >= 0) close(std::exchange(*file, -1));
}

}  // namespace

std::shared_ptr<SharedRegion> SharedRegion::Offer(const std::string& path, size_t size) {
  std::shared_ptr<SharedRegion> region(new SharedRegion(path));
  return region->Create(size) && region->Connect() ? region : nullptr;
}

SharedRegion::~SharedRegion() {
  if (!memory_.empty()) munmap(memory_.data(), memory_.size());
  CloseFile(&socket_);
  CloseFile(&file_);
}

bool SharedRegion::Create(size_t size) {
  file_ = memfd_create("crout", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file_ < 0 || ftruncate(file_, static_cast<off_t>(size)) != 0 ||
      fcntl(file_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
    return false;
  }
  void* const start = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file_, /*offset=*/0);
  if (start == MAP_FAILED) return false;
  memory_ = {static_cast<std::byte*>(start), size};
  return true;
}

bool SharedRegion::Connect() {
  sockaddr_un to = {};
  to.sun_family = AF_UNIX;
  if (path_.size() >= sizeof to.sun_path) return false;
  path_.copy(to.sun_path, path_.size());
  socket_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (socket_ < 0) return false;
  const timeval limit = {.tv_sec = kAnswerSeconds, .tv_usec = 0};
  setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  if (connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0 ||
      !SendOffer(socket_, file_, memory_.size())) {
    return false;
  }
  char answer[1 + kIdBytes] = {};
  const ssize_t count = recv(socket_, answer, sizeof answer, 0);
  if (count != sizeof answer || answer[0] != 0) return false;
  id_.assign(answer + 1, kIdBytes);
  return true;
}

bool SharedRegion::EnsureHeld() {
  char byte;
  if (socket_ >= 0 && recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
      (errno == EAGAIN || errno == EINTR)) {
    return true;  // The connection is open.
  }
  CloseFile(&socket_);
  return Connect();
}

std::string SharedRegion::EncodeRange(size_t offset, size_t size) const {
  v1::SharedRange range;
  range.set_region(id_);
  range.set_offset(offset);
  range.set_size(size);
  return range.SerializeAsString();
}

SharedMemory::SharedMemory(absl::string_view server) : path_(MemoryPath(server)) {}

Loan SharedMemory::Borrow(const std::vector<Wanted>& payloads, int64_t reply) {
  Loan loan;
  loan.payloads.resize(payloads.size());
  if (path_.empty()) return loan;
  size_t total = 0;
  for (size_t i = 0; i < payloads.size(); ++i) {
    Loan::Place& place = loan.payloads[i];
    if (payloads[i].size < kLeastBytes) continue;
    place = Find(payloads[i].bytes);
    if (place.region != nullptr) continue;
    place.offset = total;
    place.size = static_cast<size_t>(payloads[i].size);
    total += Aligned(place.size);
  }
  if (reply >= kLeastBytes) {
    loan.reply.offset = total;
    loan.reply.size = static_cast<size_t>(reply);
    total += Aligned(loan.reply.size);
  }
  if (total == 0) return loan;
  loan.region = Obtain(total);
  for (Loan::Place& place : loan.payloads) {
    if (place.size > 0 && !place.filled) place.region = loan.region;
  }
  if (loan.reply.size > 0) loan.reply.region = loan.region;
  return loan;
}

void SharedMemory::Return(const Loan& loan) {
  if (loan.region == nullptr) return;
  std::shared_ptr<SharedRegion> surplus;  // destroyed without the lock
  absl::MutexLock lock(&mutex_);
  const auto at = std::find_if(idle_.begin(), idle_.end(), [&](const auto& idle) {
    return idle->memory().size() >= loan.region->memory().size();
  });
  idle_.insert(at, loan.region);
  if (idle_.size() <= kMaxIdle) return;
  surplus = std::move(idle_.front());
  idle_.erase(idle_.begin());
}

std::shared_ptr<std::byte[]> SharedMemory::Allocate(size_t size) {
  if (size >= static_cast<size_t>(kLeastBytes)) {
    if (std::shared_ptr<SharedRegion> region = Offer(size)) {
      std::byte* const memory = region->memory().data();
      absl::MutexLock lock(&mutex_);
      for (auto at = arrays_.begin(); at != arrays_.end();) {
        at = at->second.expired() ? arrays_.erase(at) : std::next(at);
      }
      arrays_[memory] = region;
      return {std::move(region), memory};
    }
  }
  return std::shared_ptr<std::byte[]>(new std::byte[size]());
}

std::shared_ptr<SharedRegion> SharedMemory::Obtain(size_t size) {
  std::shared_ptr<SharedRegion> region;
  {
    absl::MutexLock lock(&mutex_);
    const auto fits = std::find_if(idle_.begin(), idle_.end(),
                                   [&](const auto& idle) { return idle->memory().size() >= size; });
    if (fits != idle_.end()) {
      region = std::move(*fits);
      idle_.erase(fits);
    }
  }
  if (region == nullptr) return Offer(Rounded(size));
  if (region->EnsureHeld()) return region;
  Pause();
  return nullptr;
}

std::shared_ptr<SharedRegion> SharedMemory::Offer(size_t size) {
  {
    absl::MutexLock lock(&mutex_);
    if (path_.empty() || absl::Now() < next_offer_) return nullptr;
  }
  std::shared_ptr<SharedRegion> region = SharedRegion::Offer(path_, size);
  if (region == nullptr) Pause();
  return region;
}

Loan::Place SharedMemory::Find(absl::Span<const absl::Span<const std::byte>> bytes) {
  if (bytes.size() != 1) return {};
  std::shared_ptr<SharedRegion> region;
  size_t offset = 0;
  {
    absl::MutexLock lock(&mutex_);
    auto above = arrays_.upper_bound(bytes[0].data());
    if (above == arrays_.begin()) return {};
    region = std::prev(above)->second.lock();
    if (region == nullptr) return {};
    offset = static_cast<size_t>(bytes[0].data() - region->memory().data());
    if (offset > region->memory().size() || bytes[0].size() > region->memory().size() - offset) {
      return {};
    }
    if (!region->EnsureHeld()) return {};  // Under the lock: another call may use the region.
  }
  return {std::move(region), offset, bytes[0].size(), true};
}

void SharedMemory::Pause() {
  absl::MutexLock lock(&mutex_);
  next_offer_ = absl::Now() + kPause;
}

}  // namespace internal
}  // namespace api
}  // namespace crout
