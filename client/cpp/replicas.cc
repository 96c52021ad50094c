// SPDX-License-Identifier: Apache-2.0

#include "client/cpp/replicas.h"

#include <google/protobuf/descriptor.h>

#include <utility>

#include "crout/status.h"

namespace crout {
inline namespace api {
namespace internal {

std::string HandleIn(const google::protobuf::Message& request) {
  const google::protobuf::Descriptor* const type = request.GetDescriptor();
  const google::protobuf::Reflection* const reflection = request.GetReflection();
  if (const auto* const handle = type->FindFieldByName("handle")) {
    return reflection->GetString(request, handle);
  }
  const auto* const header = type->FindFieldByName("header");
  return header == nullptr ? std::string() : HandleIn(reflection->GetMessage(request, header));
}

bool IsOtherReplica(const absl::Status& status) {
  return absl::IsUnavailable(status) && Reason(status) == "OTHER_REPLICA";
}

std::string Replicas::Find(const std::string& handle) const {
  absl::MutexLock lock(&mutex_);
  for (const auto* const values : {&newer_, &older_}) {
    if (const auto found = values->find(handle); found != values->end()) return found->second;
  }
  return {};
}

void Replicas::Set(const std::string& handle, const std::string& value) {
  if (handle.empty() || value.empty() || value.size() > kMaxValue) return;
  absl::MutexLock lock(&mutex_);
  newer_[handle] = value;
  if (newer_.size() >= kHandles) older_ = std::exchange(newer_, {});
}

}  // namespace internal
}  // namespace api
}  // namespace crout
