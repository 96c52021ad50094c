// SPDX-License-Identifier: Apache-2.0

#include "kernels/sparse/front_tree.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "kernels/stop_requested.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

using Claim = std::function<absl::Status(size_t bytes)>;

// Size of the per-front arrays, in bytes.
size_t FrontBytes(const FrontTree& tree) {
  constexpr size_t kBytesPerFront = 7 * sizeof(int32_t) + 4 * sizeof(int64_t);
  return (tree.parent.size() + 1) * kBytesPerFront;
}

class Symbolic {
 public:
  Symbolic(const Graph& graph, const FrontTree& tree, const Claim& claim, Analysis& analysis)
      : graph_(graph),
        tree_(tree),
        claim_(claim),
        out_(analysis),
        fronts_(std::ssize(tree.parent)) {}

  absl::Status Run(StopRequested stop) {
    out_.first_position = tree_.first_position;
    out_.parent = tree_.parent;
    LinkChildren();
    CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
    StopCounter counter(stop);
    CROUT_RETURN_IF_ERROR(FindBorders(counter));
    CROUT_RETURN_IF_ERROR(PlaceBorders(counter));
    CROUT_RETURN_IF_ERROR(PlaceFronts());
    FillLevels();
    CountStack();
    return absl::OkStatus();
  }

 private:
  absl::Status PlaceFronts() {
    out_.factor_start.resize(fronts_ + 1);
    double entries = 0;
    for (int64_t f = 0; f < fronts_; ++f) {
      const auto d1 = static_cast<double>(out_.eliminated(f));
      const auto d2 = static_cast<double>(out_.bordered(f));
      entries += d1 * d1 + 2 * d1 * d2;
      if (out_.is_kept(f)) continue;
      out_.flops += 2.0 / 3.0 * d1 * d1 * d1 + 2 * d1 * d1 * d2 + 2 * d1 * d2 * d2;
    }
    constexpr double kMaxEntries = 0x1p58;  // 2^62 bytes of the largest type
    if (entries > kMaxEntries) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the factors would have ", entries, " entries; the limit is ", kMaxEntries));
    }
    for (int64_t f = 0; f < fronts_; ++f) {
      const int64_t d1 = out_.eliminated(f);
      const int64_t d2 = out_.bordered(f);
      out_.factor_start[f + 1] = out_.factor_start[f] + d1 * (d1 + 2 * d2);
      out_.largest_front = std::max(out_.largest_front, d1 + d2);
    }
    return absl::OkStatus();
  }

  void LinkChildren() {
    out_.child_start.assign(fronts_ + 1, 0);
    for (const int32_t p : out_.parent) {
      if (p != -1) ++out_.child_start[p + 1];
    }
    std::partial_sum(out_.child_start.begin(), out_.child_start.end(), out_.child_start.begin());
    out_.child.resize(out_.child_start[fronts_]);
    std::vector<int32_t> next(out_.child_start.begin(), out_.child_start.end());
    for (int64_t f = 0; f < fronts_; ++f) {
      const int32_t p = out_.parent[f];
      if (p != -1) out_.child[next[p]++] = static_cast<int32_t>(f);
    }
  }

  // Border of a front: later neighbors of its vertices, and the later positions of its children's
  // borders.
  absl::Status FindBorders(StopCounter& counter) {
    std::vector<int32_t> position(out_.n), last_seen_by(out_.n, -1), border;
    for (int64_t k = 0; k < out_.n; ++k) position[out_.row_order[k]] = static_cast<int32_t>(k);
    out_.border_start.resize(fronts_ + 1);
    out_.border.reserve(std::accumulate(tree_.bordered.begin(), tree_.bordered.end(), int64_t{0}));
    for (int64_t f = 0; f < fronts_; ++f) {
      if (counter.Stops()) return counter.status();
      const int32_t end = out_.first_position[f + 1];
      border.clear();
      const auto see = [&](int32_t k) {
        if (k < end || last_seen_by[k] == f) return;
        last_seen_by[k] = static_cast<int32_t>(f);
        border.push_back(k);
      };
      for (int32_t k = out_.first_position[f]; k < end; ++k) {
        const std::span<const int32_t> neighbours = graph_.neighbours(out_.row_order[k]);
        counter.Count(std::ssize(neighbours));
        for (const int32_t w : neighbours) see(position[w]);
      }
      for (int32_t c = out_.child_start[f]; c < out_.child_start[f + 1]; ++c) {
        const int32_t child = out_.child[c];
        if (counter.Stops(out_.bordered(child))) return counter.status();
        for (int64_t b = out_.border_start[child]; b < out_.border_start[child + 1]; ++b) {
          see(out_.border[b]);
        }
      }
      if (tree_.counted && tree_.bordered[f] != std::ssize(border)) {
        return absl::InternalError("the border of a front does not match its count");
      }
      std::sort(border.begin(), border.end());
      CROUT_RETURN_IF_ERROR(MakeRoom(border.size()));
      out_.border.insert(out_.border.end(), border.begin(), border.end());
      out_.border_start[f + 1] = std::ssize(out_.border);
    }
    return absl::OkStatus();
  }

  // Makes room for `more` border positions. Does nothing if the borders were counted.
  absl::Status MakeRoom(size_t more) {
    const size_t wanted = out_.border.size() + more;
    if (wanted <= out_.border.capacity()) return absl::OkStatus();
    const size_t room = wanted + wanted / 4;
    CROUT_RETURN_IF_ERROR(ClaimBorders(out_.border.capacity() + room));  // both copies
    out_.border.reserve(room);
    return absl::OkStatus();
  }

  absl::Status ClaimBorders(size_t numbers) const {
    return claim_(FrontBytes(tree_) + numbers * sizeof(int32_t));
  }

  absl::Status PlaceBorders(StopCounter& counter) {
    CROUT_RETURN_IF_ERROR(ClaimBorders(out_.border.capacity() + out_.border.size()));
    out_.place_in_parent.resize(out_.border.size());
    std::vector<int32_t> place(out_.n);
    for (int64_t f = 0; f < fronts_; ++f) {
      if (counter.Stops(1 + out_.bordered(f))) return counter.status();
      PlaceChildren(f, place);
    }
    return absl::OkStatus();
  }

  void PlaceChildren(int64_t f, std::vector<int32_t>& place) {
    if (out_.child_start[f] == out_.child_start[f + 1]) return;
    SetPlaces(f, place);
    for (int32_t c = out_.child_start[f]; c < out_.child_start[f + 1]; ++c) {
      const int32_t child = out_.child[c];
      for (int64_t b = out_.border_start[child]; b < out_.border_start[child + 1]; ++b) {
        out_.place_in_parent[b] = place[out_.border[b]];
      }
    }
  }

  // Sets place[k] to 0, ..., d1 + d2 - 1 for the positions k of the front.
  void SetPlaces(int64_t f, std::vector<int32_t>& place) const {
    int32_t next = 0;
    for (int32_t k = out_.first_position[f]; k < out_.first_position[f + 1]; ++k) {
      place[k] = next++;
    }
    for (int64_t b = out_.border_start[f]; b < out_.border_start[f + 1]; ++b) {
      place[out_.border[b]] = next++;
    }
  }

  void FillLevels() {
    std::vector<int32_t> level(fronts_);
    for (int64_t f = fronts_ - 1; f >= 0; --f) {
      if (out_.parent[f] != -1) level[f] = level[out_.parent[f]] + 1;
    }
    const int32_t levels = fronts_ == 0 ? 0 : *std::max_element(level.begin(), level.end()) + 1;
    out_.level_start.assign(levels + 1, 0);
    out_.level_contribution_entries.assign(levels, 0);
    out_.contribution_start.resize(fronts_);
    for (int64_t f = 0; f < fronts_; ++f) {
      ++out_.level_start[level[f] + 1];
      int64_t& entries = out_.level_contribution_entries[level[f]];
      out_.contribution_start[f] = entries;
      entries += out_.bordered(f) * out_.bordered(f);
    }
    std::partial_sum(out_.level_start.begin(), out_.level_start.end(), out_.level_start.begin());
    out_.level_front.resize(fronts_);
    std::vector<int32_t> next(out_.level_start.begin(), out_.level_start.end());
    for (int64_t f = 0; f < fronts_; ++f) {
      out_.level_front[next[level[f]]++] = static_cast<int32_t>(f);
    }
    for (int32_t v = 0; v < levels; ++v) {
      const int64_t below = v + 1 < levels ? out_.level_contribution_entries[v + 1] : 0;
      out_.level_pair_entries =
          std::max(out_.level_pair_entries, out_.level_contribution_entries[v] + below);
    }
  }

  void CountStack() {
    int64_t held = 0;
    for (int64_t f = 0; f < fronts_; ++f) {
      held += out_.bordered(f) * out_.bordered(f);
      out_.stack_entries = std::max(out_.stack_entries, held);
      for (int32_t c = out_.child_start[f]; c < out_.child_start[f + 1]; ++c) {
        held -= out_.bordered(out_.child[c]) * out_.bordered(out_.child[c]);
      }
    }
  }

  const Graph& graph_;
  const FrontTree& tree_;
  const Claim& claim_;
  Analysis& out_;
  const int64_t fronts_;
};

}  // namespace

absl::Status FillSymbolic(const Graph& graph, const FrontTree& tree, const Claim& claim,
                          StopRequested stop, Analysis& analysis) {
  return Symbolic(graph, tree, claim, analysis).Run(stop);
}

size_t SymbolicBytes(const FrontTree& tree) {
  size_t borders = 0;
  for (const int32_t d2 : tree.bordered) borders += d2;
  return FrontBytes(tree) + borders * 2 * sizeof(int32_t);
}

}  // namespace crout
