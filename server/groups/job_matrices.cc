// SPDX-License-Identifier: Apache-2.0

#include "server/groups/job_matrices.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

using rank::v1::Range;

std::vector<std::pair<Range, bool>> RangesOf(const rank::v1::Job& job) {
  switch (job.work_case()) {
    case rank::v1::Job::kFactor:
      return {{job.factor().a().range(), true}, {job.factor().ipiv(), true}};
    case rank::v1::Job::kSolve:
      return {{job.solve().lu().range(), false},
              {job.solve().ipiv(), false},
              {job.solve().b().range(), true}};
    case rank::v1::Job::kSparseFactor:
      return {{job.sparse_factor().rows(), false},
              {job.sparse_factor().columns(), false},
              {job.sparse_factor().values(), false}};
    case rank::v1::Job::kSparseSolve:
      return {{job.sparse_solve().b().range(), true}};
    case rank::v1::Job::WORK_NOT_SET:
      break;
  }
  return {};
}

bool Contains(const Range& outer, const Range& inner) {
  return inner.offset() >= outer.offset() && inner.offset() - outer.offset() <= outer.bytes() &&
         inner.bytes() <= outer.bytes() - (inner.offset() - outer.offset());
}

}  // namespace

void JobMatrices::Begin(const std::string& token, const rank::v1::Job& job) {
  MutexLock lock(&mutex_);
  token_ = token;
  job_ = job.id();
  ranges_ = RangesOf(job);
}

void JobMatrices::End() {
  MutexLock lock(&mutex_);
  token_.clear();
  job_ = 0;
}

absl::Status JobMatrices::CheckRuns(uint64_t job) const {
  if (job_ != 0 && job == job_) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("job ", job, " does not run"));
}

absl::StatusOr<JobMatrices::Copy> JobMatrices::Start(const rank::v1::Access& access,
                                                     Direction direction) {
  MutexLock lock(&mutex_);
  CROUT_RETURN_IF_ERROR(CheckRuns(access.job()));
  if (access.token() != token_) {
    return absl::UnauthenticatedError("the token is wrong for the current formation");
  }
  const rank::v1::Part& part = access.part();
  const auto permits = [&](const std::pair<Range, bool>& matrix) {
    return Contains(matrix.first, part.range()) &&
           (direction == Direction::kToRank || matrix.second);
  };
  const std::optional<rank::PartRanges> ranges = rank::PartRanges::Of(part);
  if (!ranges || !std::ranges::any_of(ranges_, permits)) {
    return absl::OutOfRangeError(absl::StrCat("the part is not inside a matrix that job ",
                                              access.job(), " may ",
                                              direction == Direction::kToRank ? "read" : "change"));
  }
  return Copy(*this, access.job(), *ranges);
}

absl::Status JobMatrices::Copy::Read(size_t most, std::string* to) {
  MutexLock lock(&memory_.mutex_);
  CROUT_RETURN_IF_ERROR(memory_.CheckRuns(job_));
  while (most > 0 && left_ > 0) {
    const rank::PartRanges::Next range = ranges_.Take(most);
    to->append(reinterpret_cast<const char*>(memory_.arena_.At(range.offset)), range.bytes);
    most -= range.bytes;
    left_ -= range.bytes;
  }
  return absl::OkStatus();
}

absl::Status JobMatrices::Copy::Write(std::string_view from) {
  MutexLock lock(&memory_.mutex_);
  CROUT_RETURN_IF_ERROR(memory_.CheckRuns(job_));
  if (from.size() > left_) return absl::OutOfRangeError("more bytes than the part has");
  while (!from.empty()) {
    const rank::PartRanges::Next range = ranges_.Take(from.size());
    std::memcpy(memory_.arena_.At(range.offset), from.data(), range.bytes);
    from.remove_prefix(range.bytes);
    left_ -= range.bytes;
  }
  return absl::OkStatus();
}

}  // namespace crout
