// SPDX-License-Identifier: Apache-2.0

#include "rank/remote_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "rank/part.h"

namespace crout::rank {
namespace {

constexpr size_t kMessageBytes = size_t{1} << 20;

}  // namespace

void RemoteMemory::Unmap::operator()(std::byte* data) const { munmap(data, bytes); }

RemoteMemory::Block RemoteMemory::Allocate(size_t bytes) const {
  bytes = std::max<size_t>(bytes, 1);
  void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) {
    on_failure_("cannot allocate " + std::to_string(bytes) + " bytes: " + std::strerror(errno));
  }
  return {static_cast<std::byte*>(data), Unmap{bytes}};
}

v1::Access RemoteMemory::AccessTo(const v1::Part& part) const {
  v1::Access access;
  access.set_token(token_);
  access.set_job(job_);
  *access.mutable_part() = part;
  return access;
}

void RemoteMemory::Check(const v1::Part& part) const {
  if (!PartRanges::Of(part)) Refuse("a matrix ends outside its range");
}

void RemoteMemory::Read(const v1::Part& part, void* to) {
  const uint64_t all = PartRanges::Of(part)->bytes();
  if (all == 0) return;
  grpc::ClientContext context;
  connection_.Authorize(context);
  v1::ReadRequest request;
  *request.mutable_access() = AccessTo(part);
  const auto reader = connection_.stub().Read(&context, request);
  v1::Bytes bytes;
  uint64_t done = 0;
  while (reader->Read(&bytes)) {
    if (bytes.data().size() > all - done) on_failure_("the daemon sent too many bytes");
    std::memcpy(static_cast<std::byte*>(to) + done, bytes.data().data(), bytes.data().size());
    done += bytes.data().size();
  }
  const grpc::Status status = reader->Finish();
  if (!status.ok() || done != all) {
    on_failure_("received " + std::to_string(done) + " of " + std::to_string(all) +
                " bytes of a matrix: " + status.error_message());
  }
}

void RemoteMemory::Write(const v1::Part& part, const void* from) {
  const uint64_t all = PartRanges::Of(part)->bytes();
  if (all == 0) return;
  grpc::ClientContext context;
  connection_.Authorize(context);
  v1::WriteReply reply;
  const auto writer = connection_.stub().Write(&context, &reply);
  v1::WriteMessage message;
  *message.mutable_access() = AccessTo(part);
  bool writable = writer->Write(message);
  for (uint64_t done = 0; writable && done < all;) {
    const size_t bytes = std::min<uint64_t>(kMessageBytes, all - done);
    message.mutable_bytes()->set_data(static_cast<const std::byte*>(from) + done, bytes);
    writable = writer->Write(message);
    done += bytes;
  }
  writer->WritesDone();
  const grpc::Status status = writer->Finish();
  if (!status.ok()) on_failure_("cannot send a matrix: " + status.error_message());
}

v1::Part RemoteMemory::BytesOf(const v1::Part& whole) {
  const int64_t elements = whole.ld() * (whole.cols() - 1) + whole.rows();
  return ArrayPart(whole.range(), whole.element_bytes(), elements);
}

void* RemoteMemory::Load(const v1::Part& whole) {
  const v1::Part bytes = BytesOf(whole);
  Block& block = loaded_[bytes.range().offset()];
  block = Allocate(PartRanges::Of(bytes)->bytes());
  Read(bytes, block.get());
  return block.get();
}

void RemoteMemory::Store(const v1::Part& whole) {
  const v1::Part bytes = BytesOf(whole);
  Write(bytes, loaded_.at(bytes.range().offset()).get());
}

void* RemoteMemory::Blocks(const v1::Range& /*workspace*/, uint64_t /*offset*/, uint64_t bytes) {
  blocks_.push_back(Allocate(bytes));
  return blocks_.back().get();
}

void RemoteMemory::End() {
  blocks_.clear();
  loaded_.clear();
}

}  // namespace crout::rank
