// SPDX-License-Identifier: Apache-2.0

#include "kernels/sparse/analysis.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/sparse/front_tree.h"
#include "kernels/sparse/graph.h"
#include "kernels/sparse/matching.h"
#include "kernels/sparse/minimum_degree.h"
#include "kernels/sparse/ordering_process.h"
#include "kernels/stop_requested.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

// Below this size minimum degree is as good, and starting a program would take most of the time.
constexpr int64_t kFewVertices = 1000;
// Up to this size minimum degree takes a small part of the program's time, so it runs first.
constexpr int64_t kManyVertices = 100000;

// True if the arrays of `a` are as SparseView requires; later steps rely on this. Also false once
// the counter stops.
bool IsConsistent(const AnySparse& a, StopCounter& counter) {
  const SparseLayout at(a.n, a.nonzeros, a.dtype);
  const auto* const column_start = reinterpret_cast<const int64_t*>(a.data + at.column_start);
  const auto* const row_start = reinterpret_cast<const int64_t*>(a.data + at.row_start);
  const auto* const row = reinterpret_cast<const int32_t*>(a.data + at.row);
  const auto* const column = reinterpret_cast<const int32_t*>(a.data + at.column);
  const auto* const position = reinterpret_cast<const int32_t*>(a.data + at.position);
  const auto ascends = [&](const int64_t* start, const int32_t* index) {
    if (start[0] != 0 || start[a.n] != a.nonzeros) return false;
    for (int64_t k = 0; k < a.n; ++k) {
      if (start[k] > start[k + 1] || start[k + 1] > a.nonzeros) return false;
      if (counter.Stops(1 + start[k + 1] - start[k])) return false;
      int64_t before = -1;
      for (int64_t e = start[k]; e < start[k + 1]; ++e) {
        if (index[e] <= before || index[e] >= a.n) return false;
        before = index[e];
      }
    }
    return true;
  };
  if (!ascends(column_start, row) || !ascends(row_start, column)) return false;
  for (int64_t i = 0; i < a.n; ++i) {
    if (counter.Stops(1 + row_start[i + 1] - row_start[i])) return false;
    for (int64_t e = row_start[i]; e < row_start[i + 1]; ++e) {
      const int64_t p = position[e];
      if (p < column_start[column[e]] || p >= column_start[column[e] + 1] || row[p] != i) {
        return false;
      }
    }
  }
  return true;
}

absl::Status CheckFinite(const AnySparse& a, StopCounter& counter) {
  return DispatchDType(a.dtype, [&](auto tag) {
    const auto view = a.As<typename decltype(tag)::type>();
    for (int64_t j = 0; j < a.n; ++j) {
      if (counter.Stops(1 + view.column_start[j + 1] - view.column_start[j])) break;
      for (int64_t e = view.column_start[j]; e < view.column_start[j + 1]; ++e) {
        if (!IsFinite(view.value[e])) {
          return absl::InvalidArgumentError(
              absl::StrCat("entry (", view.row[e], ", ", j, "), 0-based, is not finite"));
        }
      }
    }
    return absl::OkStatus();
  });
}

struct Ordered {
  EliminationTree tree;
  std::string_view name;
};

absl::StatusOr<Ordered> MakeOrdered(const Graph& graph, const std::vector<int32_t>& order,
                                    std::string_view name, StopRequested stop) {
  CROUT_ASSIGN_OR_RETURN(EliminationTree tree, MakeEliminationTree(graph, order, stop));
  return Ordered{std::move(tree), name};
}

absl::StatusOr<Ordered> OrderNaturally(const Graph& graph, StopRequested stop) {
  std::vector<int32_t> order(graph.vertices());
  std::iota(order.begin(), order.end(), 0);
  return MakeOrdered(graph, order, "natural", stop);
}

bool IsShort(const Graph& graph) {
  return IsMinimumDegreeFast(graph.vertices(), graph.start.back());
}

// Orders by minimum degree: in this thread if that is short, otherwise in the program. Without a
// program, larger graphs are refused because the call here could not be stopped.
absl::StatusOr<Ordered> OrderByDegree(const Graph& graph, const std::string& program,
                                      StopRequested stop) {
  if (IsShort(graph)) return MakeOrdered(graph, OrderByMinimumDegree(graph), "amd", stop);
  CROUT_ASSIGN_OR_RETURN(const std::vector<int32_t> order,
                         OrderInProcess(program, OrderingMethod::kMinimumDegree, graph, stop));
  return MakeOrdered(graph, order, "amd", stop);
}

// Returns the order with less work. An error if neither method succeeded or the analysis was
// stopped.
absl::StatusOr<Ordered> Better(absl::StatusOr<Ordered> by_degree,
                               absl::StatusOr<Ordered> by_dissection) {
  if (absl::IsCancelled(by_dissection.status())) return by_dissection;
  if (absl::IsCancelled(by_degree.status()) || !by_dissection.ok()) return by_degree;
  if (!by_degree.ok()) return by_dissection;
  return by_degree->tree.Flops() <= by_dissection->tree.Flops() ? std::move(by_degree)
                                                                : std::move(by_dissection);
}

absl::StatusOr<Ordered> OrderByDissection(const Graph& graph, const std::string& program,
                                          StopRequested stop) {
  CROUT_ASSIGN_OR_RETURN(const std::vector<int32_t> order,
                         OrderInProcess(program, OrderingMethod::kNestedDissection, graph, stop));
  return MakeOrdered(graph, order, "metis", stop);
}

// Runs both methods concurrently, each in its own process.
absl::StatusOr<Ordered> OrderConcurrently(const Graph& graph, const std::string& program,
                                          StopRequested stop) {
  absl::StatusOr<OrderingProcess> degree =
      OrderingProcess::Start(program, OrderingMethod::kMinimumDegree, graph, stop);
  if (absl::IsCancelled(degree.status())) return degree.status();
  absl::StatusOr<Ordered> by_dissection = OrderByDissection(graph, program, stop);
  if (absl::IsCancelled(by_dissection.status())) return by_dissection;
  const auto await = [&]() -> absl::StatusOr<Ordered> {
    CROUT_RETURN_IF_ERROR(degree.status());
    CROUT_ASSIGN_OR_RETURN(const std::vector<int32_t> order, degree->Await(stop));
    return MakeOrdered(graph, order, "amd", stop);
  };
  return Better(await(), std::move(by_dissection));
}

absl::StatusOr<Ordered> OrderByBothMethods(const Graph& graph, const AnalysisOptions& options,
                                           StopRequested stop) {
  const std::string& program = options.ordering_program;
  if (graph.vertices() > kManyVertices && !IsShort(graph)) {
    return OrderConcurrently(graph, program, stop);
  }
  absl::StatusOr<Ordered> by_degree = OrderByDegree(graph, program, stop);
  const auto little = options.dissection_work * static_cast<double>(graph.vertices());
  if (by_degree.ok() && by_degree->tree.Flops() < little) return by_degree;
  if (absl::IsCancelled(by_degree.status())) return by_degree;
  return Better(std::move(by_degree), OrderByDissection(graph, program, stop));
}

// True if nested dissection may be tried.
bool MayTryDissection(const Graph& graph, const AnalysisOptions& options) {
  if (options.ordering_program.empty() || graph.neighbour.empty() ||
      !FitsOrderingProgram(OrderingMethod::kNestedDissection, graph.vertices(),
                           graph.start.back())) {
    return false;
  }
  return options.ordering == OrderingMode::kNestedDissection ||
         (options.ordering == OrderingMode::kAuto && graph.vertices() > kFewVertices);
}

absl::StatusOr<Ordered> Order(const Graph& graph, const AnalysisOptions& options,
                              StopRequested stop) {
  const std::string& program = options.ordering_program;
  if (options.ordering == OrderingMode::kNatural) return OrderNaturally(graph, stop);
  if (options.ordering != OrderingMode::kNestedDissection) {
    const std::optional<std::vector<int32_t>> forest = OrderForest(graph);
    if (forest) return MakeOrdered(graph, *forest, "amd", stop);
  }
  if (!MayTryDissection(graph, options)) return OrderByDegree(graph, program, stop);
  if (options.ordering == OrderingMode::kAuto) return OrderByBothMethods(graph, options, stop);
  absl::StatusOr<Ordered> ordered = OrderByDissection(graph, program, stop);
  if (ordered.ok() || absl::IsCancelled(ordered.status())) return ordered;
  return OrderByDegree(graph, program, stop);
}

// Memory, in bytes, that Order() needs in addition to the graph and AnalysisBytes().
size_t OrderingBytes(const Graph& graph, const AnalysisOptions& options) {
  const int64_t n = graph.vertices();
  const int64_t neighbours = graph.start.back();
  const size_t by_degree =
      IsShort(graph) ? MinimumDegreeBytes(n, neighbours)
                     : OrderingProgramBytes(OrderingMethod::kMinimumDegree, n, neighbours);
  return by_degree + (MayTryDissection(graph, options) ? NestedDissectionBytes(n, neighbours) : 0);
}

// Returns 1 for each vertex to keep, 0 for the others.
absl::StatusOr<std::vector<char>> MarkKept(const std::vector<int32_t>& keep, int64_t n) {
  std::vector<char> kept(n);
  for (const int32_t v : keep) {
    if (v < 0 || v >= n || kept[v] != 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "unknown ", v, " (0-based) cannot be kept: it is outside the matrix of order ", n,
          " or is named twice"));
    }
    kept[v] = 1;
  }
  return kept;
}

// Returns the vertices that are not kept, in ascending order.
std::vector<int32_t> Others(const std::vector<char>& kept) {
  std::vector<int32_t> others;
  others.reserve(std::count(kept.begin(), kept.end(), 0));
  for (int32_t v = 0; v < std::ssize(kept); ++v) {
    if (kept[v] == 0) others.push_back(v);
  }
  return others;
}

// Returns the subgraph of `others`, whose vertices are renumbered in order.
Graph Without(const Graph& graph, const std::vector<char>& kept,
              const std::vector<int32_t>& others) {
  std::vector<int32_t> number(graph.vertices());
  for (int32_t k = 0; k < std::ssize(others); ++k) number[others[k]] = k;
  Graph out;
  out.start.resize(others.size() + 1);
  for (size_t k = 0; k < others.size(); ++k) {
    const auto neighbours = graph.neighbours(others[k]);
    out.start[k + 1] =
        out.start[k] + std::ranges::count_if(neighbours, [&](int32_t w) { return kept[w] == 0; });
  }
  out.neighbour.resize(out.start.back());
  int32_t* next = out.neighbour.data();
  for (const int32_t v : others) {
    for (const int32_t w : graph.neighbours(v)) {
      if (kept[w] == 0) *next++ = number[w];
    }
  }
  return out;
}

// Claims the memory for the order, plus `held` bytes and the graph, and computes the order.
absl::StatusOr<Ordered> ClaimAndOrder(const Graph& graph, size_t held,
                                      const AnalysisOptions& options, StopRequested stop) {
  CROUT_RETURN_IF_ERROR(
      options.Claim(held + graph.neighbour_bytes() + OrderingBytes(graph, options)));
  return Order(graph, options, stop);
}

// Builds the fronts of the graph without the kept vertices, and above them one front of the kept
// vertices.
absl::StatusOr<FrontTree> MakeTreeBelow(const Graph& graph, const AnalysisOptions& options,
                                        StopRequested stop, std::string_view& ordering) {
  CROUT_ASSIGN_OR_RETURN(const std::vector<char> kept, MarkKept(options.keep, graph.vertices()));
  const std::vector<int32_t> vertex = Others(kept);
  CROUT_RETURN_IF_ERROR(
      options.Claim(2 * graph.neighbour_bytes()));  // the subgraph is at most as large
  CROUT_ASSIGN_OR_RETURN(
      const Ordered ordered,
      ClaimAndOrder(Without(graph, kept, vertex), graph.neighbour_bytes(), options, stop));
  ordering = ordered.name;
  CROUT_ASSIGN_OR_RETURN(FrontTree fronts, MakeFrontTree(ordered.tree, stop));
  fronts.counted = false;  // The kept vertices enlarge the borders.
  for (int32_t& v : fronts.order) v = vertex[v];
  fronts.order.insert(fronts.order.end(), options.keep.begin(), options.keep.end());
  const auto last = static_cast<int32_t>(fronts.parent.size());
  for (int32_t& parent : fronts.parent) {
    if (parent == -1) parent = last;
  }
  fronts.parent.push_back(-1);
  fronts.bordered.push_back(0);
  fronts.first_position.push_back(static_cast<int32_t>(graph.vertices()));
  return fronts;
}

absl::StatusOr<FrontTree> MakeTree(const Graph& graph, const AnalysisOptions& options,
                                   StopRequested stop, std::string_view& ordering) {
  if (!options.keep.empty()) return MakeTreeBelow(graph, options, stop, ordering);
  CROUT_ASSIGN_OR_RETURN(const Ordered ordered, ClaimAndOrder(graph, 0, options, stop));
  CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
  ordering = ordered.name;
  return MakeFrontTree(ordered.tree, stop);
}

absl::StatusOr<bool> NeedsMatching(const AnalysisOptions& options, const AnySparse& a,
                                   StopCounter& counter) {
  if (options.matching == MatchingMode::kOff) return false;
  CROUT_RETURN_IF_ERROR(CheckFinite(a, counter));
  const bool needs = options.matching == MatchingMode::kOn ||
                     ShouldUseMatching(a, options.factor_dtype.value_or(a.dtype), counter);
  CROUT_RETURN_IF_ERROR(counter.status());
  return needs;
}

absl::Status EndStep(int steps, const AnalysisOptions& options, StopRequested stop) {
  if (options.report_steps) options.report_steps(steps);
  return CheckNotStopped(stop);
}

template <class T>
size_t BytesOf(const std::vector<T>& elements) {
  return elements.capacity() * sizeof(T);
}

}  // namespace

size_t Analysis::bytes() const {
  return sizeof(*this) + BytesOf(row_order) + BytesOf(column_order) + BytesOf(row_scale) +
         BytesOf(column_scale) + BytesOf(first_position) + BytesOf(border_start) + BytesOf(parent) +
         BytesOf(child_start) + BytesOf(child) + BytesOf(border) + BytesOf(place_in_parent) +
         BytesOf(level_start) + BytesOf(level_front) + BytesOf(factor_start) +
         BytesOf(contribution_start) + BytesOf(level_contribution_entries);
}

absl::StatusOr<Analysis> Analyze(const AnySparse& a, const AnalysisOptions& options,
                                 StopRequested stop) {
  StopCounter counter(stop);
  if (!IsConsistent(a, counter)) {
    CROUT_RETURN_IF_ERROR(counter.status());
    return absl::InvalidArgumentError(
        "the indices of each row and column must ascend and be below the order of the matrix");
  }
  Analysis analysis;
  analysis.n = a.n;
  analysis.nonzeros = a.nonzeros;
  analysis.pattern = PatternDigest(a, counter);
  CROUT_RETURN_IF_ERROR(counter.status());
  CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
  if (options.keep.empty()) {
    CROUT_ASSIGN_OR_RETURN(analysis.matched, NeedsMatching(options, a, counter));
  } else if (options.matching == MatchingMode::kOn) {
    return absl::InvalidArgumentError(
        "unknowns cannot be kept with matching, which permutes the columns. Turn matching off");
  }
  std::vector<int32_t> column_of_row;
  if (analysis.matched) {
    CROUT_RETURN_IF_ERROR(options.Claim(MatchingBytes(a.nonzeros)));
    CROUT_ASSIGN_OR_RETURN(Matching matching, MaximumProductMatching(a, stop));
    analysis.unmatched_row = matching.unmatched_row;
    if (matching.unmatched_row >= 0) return analysis;
    analysis.row_scale = std::move(matching.row_scale);
    analysis.column_scale = std::move(matching.column_scale);
    column_of_row = std::move(matching.column_of_row);
  }
  CROUT_RETURN_IF_ERROR(EndStep(1, options, stop));
  CROUT_RETURN_IF_ERROR(options.Claim(MaxNeighbourBytes(a.nonzeros)));
  CROUT_ASSIGN_OR_RETURN(
      const Graph graph,
      SymmetrizedGraph(a, column_of_row.empty() ? nullptr : column_of_row.data(), stop));
  CROUT_RETURN_IF_ERROR(EndStep(2, options, stop));
  CROUT_ASSIGN_OR_RETURN(FrontTree fronts, MakeTree(graph, options, stop, analysis.ordering));
  CROUT_RETURN_IF_ERROR(EndStep(3, options, stop));
  analysis.kept = std::ssize(options.keep);
  analysis.pivot_threshold = options.pivot_threshold;
  const auto claim = [&](size_t bytes) { return options.Claim(graph.neighbour_bytes() + bytes); };
  CROUT_RETURN_IF_ERROR(claim(SymbolicBytes(fronts)));
  analysis.row_order = std::move(fronts.order);
  analysis.column_order = analysis.row_order;
  if (!column_of_row.empty()) {
    for (int32_t& k : analysis.column_order) k = column_of_row[k];
  }
  CROUT_RETURN_IF_ERROR(FillSymbolic(graph, fronts, claim, stop, analysis));
  CROUT_RETURN_IF_ERROR(EndStep(kAnalysisSteps, options, stop));
  return analysis;
}

absl::StatusOr<std::optional<Analysis>> Rescale(const Analysis& analysis, const AnySparse& a,
                                                const AnalysisOptions& options,
                                                StopRequested stop) {
  if (a.n != analysis.n || a.nonzeros != analysis.nonzeros || analysis.unmatched_row >= 0 ||
      analysis.kept > 0) {
    return absl::InvalidArgumentError("the matrix does not have the pattern that was analyzed");
  }
  CROUT_RETURN_IF_ERROR(options.Claim(MatchingBytes(a.nonzeros)));
  CROUT_ASSIGN_OR_RETURN(Matching matching, MaximumProductMatching(a, stop));
  if (matching.unmatched_row >= 0) return std::nullopt;
  CROUT_RETURN_IF_ERROR(options.Claim(analysis.bytes()));
  Analysis rescaled = analysis;
  rescaled.matched = true;
  rescaled.row_scale = std::move(matching.row_scale);
  rescaled.column_scale = std::move(matching.column_scale);
  return rescaled;
}

size_t AnalysisBytes(int64_t n) {
  // Permutations, scales, and the arrays of the matching or of two trees.
  constexpr size_t kBytesPerVertex = 240;
  return sizeof(Analysis) + static_cast<size_t>(n + 1) * kBytesPerVertex;
}

}  // namespace crout
