// SPDX-License-Identifier: Apache-2.0

#include "tests/support/peers/memory_peer.h"

#include <endian.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "gtest/gtest.h"

namespace crout::testing {

MemoryFile::MemoryFile(size_t bytes) : MemoryFile(bytes, F_SEAL_SHRINK | F_SEAL_GROW) {}

MemoryFile::MemoryFile(size_t bytes, int seals, unsigned flags)
    : file_(memfd_create("crout-test", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags)) {
  EXPECT_GE(file_.get(), 0);
  EXPECT_EQ(ftruncate(file_.get(), static_cast<off_t>(bytes)), 0);
  void* const start =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), /*offset=*/0);
  if (start != MAP_FAILED) bytes_ = {static_cast<std::byte*>(start), bytes};
  EXPECT_EQ(fcntl(file_.get(), F_ADD_SEALS, seals), 0);
}

MemoryFile::~MemoryFile() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

OwnedFile MemoryFile::Duplicate() const {
  return OwnedFile(fcntl(file_.get(), F_DUPFD_CLOEXEC, 0));
}

void MemoryFile::Write(const std::string& data, size_t offset) const {
  std::memcpy(bytes_.data() + offset, data.data(), data.size());
}

std::string MemoryFile::Read(size_t offset, size_t size) const {
  return {reinterpret_cast<const char*>(bytes_.data()) + offset, size};
}

MemoryConnection::MemoryConnection(const std::string& path)
    : socket_(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
  sockaddr_un to = {};
  to.sun_family = AF_UNIX;
  path.copy(to.sun_path, sizeof to.sun_path - 1);
  if (connect(socket_.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    socket_.Close();
  }
}

void MemoryConnection::Send(const std::string& message, const std::vector<int>& files) const {
  std::string text = message;
  iovec bytes = {.iov_base = text.data(), .iov_len = text.size()};
  std::vector<char> control(CMSG_SPACE(files.size() * sizeof(int)));
  msghdr header = {};
  header.msg_iov = &bytes;
  header.msg_iovlen = 1;
  if (!files.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    cmsghdr* const part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(files.size() * sizeof(int));
    std::memcpy(CMSG_DATA(part), files.data(), files.size() * sizeof(int));
  }
  EXPECT_EQ(sendmsg(socket_.get(), &header, MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
}

void MemoryConnection::Offer(int file, uint64_t size) const {
  const uint64_t little = htole64(size);
  std::string message("CROUTM1", 8);
  message.append(reinterpret_cast<const char*>(&little), sizeof little);
  Send(message, {file});
}

void MemoryConnection::RequestGpu(const std::string& uuid, uint64_t size) const {
  const uint64_t little = htole64(size);
  std::string message("CROUTG1", 8);
  message.append(reinterpret_cast<const char*>(&little), sizeof little);
  Send(message + uuid, {});
}

std::string MemoryConnection::Receive(OwnedFile* file) const {
  std::string text(4096, '\0');
  iovec bytes = {.iov_base = text.data(), .iov_len = text.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t count = recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
  text.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
  // After an error the system leaves the control buffer as it was.
  const cmsghdr* const part = count > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (part != nullptr && part->cmsg_type == SCM_RIGHTS) {
    int descriptor = -1;
    std::memcpy(&descriptor, CMSG_DATA(part), sizeof descriptor);
    OwnedFile received(descriptor);
    if (file != nullptr) *file = std::move(received);
  }
  return text;
}

std::string MemoryConnection::Share(const MemoryFile& file) const {
  Offer(file.get(), file.bytes().size());
  const std::string reply = Receive();
  return reply.empty() || reply[0] != '\0' ? "" : reply.substr(1);
}

}  // namespace crout::testing
