// SPDX-License-Identifier: Apache-2.0

// DescribeFactor: describes a factor, with pages of its iteration counts.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/util/status_macros.h"
#include "server/engine/error.h"
#include "server/rpc/codec/decode_matrix.h"
#include "server/rpc/codec/encode.h"
#include "server/rpc/handlers/handlers.h"

namespace crout {
namespace {

constexpr int64_t kMaxPageSize = 65536;

// The start of a page: the factor's version and the index of the page's first count.
struct PagePosition {
  int64_t version = 0;  // 0: the current version
  int64_t first = 0;
};

absl::StatusOr<PagePosition> DecodeToken(const std::string& token) {
  PagePosition position;
  if (token.empty()) return position;
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(token, absl::MaxSplits('.', 1));
  if (!absl::SimpleAtoi(parts.first, &position.version) || position.version <= 0 ||
      !absl::SimpleAtoi(parts.second, &position.first) || position.first < 0) {
    return BadField("iterations.page_token",
                    "not a token that DescribeFactor returned: begin with the first page");
  }
  return position;
}

// Adds to `field` the counts of `counts` whose record indices are in [first, end). The record index
// of counts[0] is `base`.
template <class Field>
void AddRange(const std::vector<int64_t>& counts, int64_t base, int64_t first, int64_t end,
              Field* field) {
  const auto size = static_cast<int64_t>(counts.size());
  const int64_t from = std::clamp<int64_t>(first - base, 0, size);
  const int64_t to = std::clamp<int64_t>(end - base, 0, size);
  field->Add(counts.begin() + from, counts.begin() + to);
}

// Fills `page` with counts of the factor. FAILED_PRECONDITION if the factor has none.
absl::Status AddIterations(const FactorInfo& info, const v1::IterationPageRequest& request,
                           v1::IterationPage* page) {
  if (request.page_size() < 0)
    return BadField("iterations.page_size",
                    absl::StrCat(request.page_size(), " is negative: send 0 or more"));
  CROUT_ASSIGN_OR_RETURN(const PagePosition position, DecodeToken(request.page_token()));
  if (!info.summary.iterations) {
    return absl::FailedPreconditionError(absl::StrCat(
        info.summary.algorithm,
        " does not iterate and has no counts: factor with icm or icmpp to get counts"));
  }
  if (info.record == nullptr) {
    return absl::FailedPreconditionError(
        "the counts of this factor were dropped when host memory was short: factor again to get "
        "them");
  }
  if (position.version != 0 && position.version != info.version) {
    return absl::FailedPreconditionError(absl::StrCat(
        "version ", position.version, " was replaced: start again from the first page"));
  }
  const IterationRecord& record = *info.record;
  const auto sweeps = static_cast<int64_t>(record.sweeps.size());
  const int64_t pivots = sweeps + static_cast<int64_t>(record.pivots.size());
  const int64_t total = pivots + static_cast<int64_t>(record.bad_elements.size());
  const int64_t size = request.page_size() == 0
                           ? kMaxPageSize
                           : std::min<int64_t>(request.page_size(), kMaxPageSize);
  const int64_t first = std::min(position.first, total);
  const int64_t end = std::min(first + size, total);
  page->set_version(info.version);
  page->set_sections(info.summary.iterations->sections);
  AddRange(record.sweeps, 0, first, end, page->mutable_sweeps());
  AddRange(record.pivots, sweeps, first, end, page->mutable_pivots());
  AddRange(record.bad_elements, pivots, first, end, page->mutable_bad_elements());
  if (end < total) page->set_next_page_token(absl::StrCat(info.version, ".", end));
  return absl::OkStatus();
}

}  // namespace

absl::Status DescribeFactor(ServerCore& core, const Scope& scope,
                            const v1::DescribeFactorRequest& request,
                            v1::DescribeFactorResponse* response) {
  CROUT_ASSIGN_OR_RETURN(const Handle handle, DecodeHandle(request.handle()));
  CROUT_ASSIGN_OR_RETURN(const FactorInfo info, core.engine.cache.Describe(scope.tenant, handle));
  *response->mutable_factor() = Encode(info);
  if (!request.has_iterations()) return absl::OkStatus();
  return AddIterations(info, request.iterations(), response->mutable_iterations());
}

}  // namespace crout
