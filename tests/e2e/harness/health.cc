// SPDX-License-Identifier: Apache-2.0

#include "tests/e2e/harness/health.h"

#include <vector>

#include "absl/time/clock.h"
#include "tests/support/timing/eventually.h"

namespace crout::e2e {
namespace {

// Encodes a message with one string field. Encodes an empty message if `value` is empty.
grpc::ByteBuffer StringMessage(int field, const std::string& value) {
  std::string bytes;
  if (!value.empty()) {
    bytes += static_cast<char>(field << 3 | 2);
    bytes += static_cast<char>(value.size());  // a length below 128 is one byte
    bytes += value;
  }
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

std::string Flatten(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (buffer.Valid() && buffer.Dump(&slices).ok()) {
    for (const grpc::Slice& slice : slices) bytes.append(slice.begin(), slice.end());
  }
  return bytes;
}

// Parses a HealthCheckResponse, which has one field: an enum with number 1.
Health ParseHealth(const grpc::ByteBuffer& buffer) {
  const std::string bytes = Flatten(buffer);
  if (bytes.size() != 2 || bytes[0] != 8) return Health::kUnknownService;
  return bytes[1] == 1   ? Health::kServing
         : bytes[1] == 2 ? Health::kNotServing
                         : Health::kUnknownService;
}

auto Deadline() { return absl::ToChronoTime(absl::Now() + testing::kTestTimeout); }

bool Await(grpc::CompletionQueue* queue) {
  void* tag;
  bool ok = false;
  queue->Next(&tag, &ok);
  return ok;
}

}  // namespace

Health CheckHealth(const std::shared_ptr<grpc::Channel>& channel, const std::string& service) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(Deadline());
  grpc::CompletionQueue queue;
  grpc::ByteBuffer response;
  grpc::Status status;
  const auto call = stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check",
                                          StringMessage(1, service), &queue);
  call->StartCall();
  call->Finish(&response, &status, nullptr);
  Await(&queue);
  if (status.error_code() == grpc::StatusCode::NOT_FOUND) return Health::kUnknownService;
  return status.ok() ? ParseHealth(response) : Health::kUnreachable;
}

HealthWatch::HealthWatch(const std::shared_ptr<grpc::Channel>& channel, const std::string& service)
    : stub_(channel) {
  call_ = stub_.PrepareCall(&context_, "/grpc.health.v1.Health/Watch", &queue_);
  call_->StartCall(nullptr);
  Await(&queue_);
  call_->WriteLast(StringMessage(1, service), {}, nullptr);
  Await(&queue_);
}

HealthWatch::~HealthWatch() {
  context_.TryCancel();
  if (reading_) Await(&queue_);
  grpc::Status status;
  call_->Finish(&status, nullptr);
  Await(&queue_);
}

std::optional<Health> HealthWatch::Next() {
  if (!reading_) call_->Read(&response_, nullptr);
  reading_ = true;
  void* tag;
  bool ok = false;
  const auto got = queue_.AsyncNext(&tag, &ok, Deadline());
  if (got != grpc::CompletionQueue::GOT_EVENT) return std::nullopt;
  reading_ = false;
  if (!ok) return std::nullopt;
  return ParseHealth(response_);
}

std::string ListServices(const std::shared_ptr<grpc::Channel>& channel) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(Deadline());
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareCall(
      &context, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", &queue);
  call->StartCall(nullptr);
  Await(&queue);
  call->WriteLast(StringMessage(7, "*"), {}, nullptr);  // field list_services
  Await(&queue);
  grpc::ByteBuffer response;
  call->Read(&response, nullptr);
  const std::string bytes = Await(&queue) ? Flatten(response) : "";
  grpc::Status status;
  call->Finish(&status, nullptr);
  Await(&queue);
  return bytes;
}

}  // namespace crout::e2e
