// SPDX-License-Identifier: Apache-2.0

#include "server/replicas/call_replica.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/error.h"
#include "server/replicas/lease.h"

namespace crout {
namespace {

// A guess: an adoption takes a few seconds, and the lease of a killed daemon ends later.
constexpr double kRetrySeconds = 1;

bool IsUnknownHandle(const absl::Status& status) {
  if (!absl::IsNotFound(status)) return false;
  const std::optional<std::string> reason = ReasonOf(status);
  return reason == kReasonHandleUnknown || reason == kReasonServerRestarted;
}

absl::Status Other(const std::string& message) {
  return WithReason(absl::UnavailableError(message), kReasonOtherReplica);
}

}  // namespace

bool CallReplica::Set(std::string_view value) {
  if (homes_ == nullptr) return true;
  const size_t dot = value.find('.');
  if (dot == std::string_view::npos || !IsReplicaName(value.substr(0, dot)) ||
      !IsFolderName(value.substr(dot + 1))) {
    return false;
  }
  name_ = value.substr(0, dot);
  folder_ = value.substr(dot + 1);
  was_here_ = homes_->Find(folder_).place == FolderHomes::Place::kHere;
  return true;
}

absl::Status CallReplica::Explain(absl::Status status) {
  if (folder_.empty() || !IsUnknownHandle(status)) return status;
  const FolderHomes::Home home = homes_->Find(folder_);
  switch (home.place) {
    case FolderHomes::Place::kNone:
      return AskNamed(std::move(status));
    case FolderHomes::Place::kHere:
      if (was_here_) return AskNamed(std::move(status));
      // The factor may have been restored after the call looked for it.
      [[fallthrough]];
    case FolderHomes::Place::kMoving:
      return WithRetryAfter(Other("the factors of the folder are on their way to another server. "
                                  "Try again"),
                            kRetrySeconds);
    case FolderHomes::Place::kOther:
      break;
  }
  home_ = absl::StrCat(home.owner, ".", folder_);
  status = Other(absl::StrCat("the server '", home.owner,
                              "' has the factor. Send the call with the metadata ", kMetadata, ": ",
                              home_));
  // A proxy that sends the call here cannot reach its home.
  return home.owner == name_ ? WithRetryAfter(std::move(status), kRetrySeconds) : status;
}

absl::Status CallReplica::AskNamed(absl::Status status) {
  if (!homes_->IsAlive(name_)) return status;
  home_ = absl::StrCat(name_, ".", folder_);
  return WithRetryAfter(Other(absl::StrCat("the call names the server '", name_,
                                           "', which may have the factor, but arrived at another "
                                           "server. Check that the proxy reaches '",
                                           name_, "', and try again")),
                        kRetrySeconds);
}

std::string CallReplica::ReplyValue(const FactorCache& cache, std::string_view tenant,
                                    const std::optional<Handle>& handle) const {
  if (homes_ == nullptr || !home_.empty() || !handle) return home_;
  const std::string folder = cache.FolderOf(tenant, *handle);
  return folder.empty() ? "" : absl::StrCat(homes_->name(), ".", folder);
}

}  // namespace crout
