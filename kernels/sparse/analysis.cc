#include "kernels/sparse/analysis.h"

#include <algorithm>
#include <future>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/sparse/elimination_tree.h"
#include "kernels/sparse/front_tree.h"
#include "kernels/sparse/graph.h"
#include "kernels/sparse/matching.h"
#include "kernels/sparse/minimum_degree.h"
#include "kernels/sparse/nested_dissection.h"
#include "kernels/sparse/ordering_protocol.h"
#include "kernels/sparse/symbolic.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

// Below, minimum degree is as good, and starting a program is most of the time.
constexpr int64_t kFewVertices = 1000;
// Up to so many, minimum degree takes a small part of the program's time, and goes first.
constexpr int64_t kManyVertices = 100000;
// Operations for each vertex that the program takes longer than. Circuits and power grids have
// less.
constexpr double kLittleWork = 1000;

// Whether what SparseView says of the arrays of a holds: later steps go by it.
bool IsConsistent(const AnySparse& a) {
  const SparseLayout at(a.n, a.nonzeros, a.dtype);
  const auto* const column_start = reinterpret_cast<const int64_t*>(a.data + at.column_start);
  const auto* const row_start = reinterpret_cast<const int64_t*>(a.data + at.row_start);
  const auto* const row = reinterpret_cast<const int32_t*>(a.data + at.row);
  const auto* const column = reinterpret_cast<const int32_t*>(a.data + at.column);
  const auto* const position = reinterpret_cast<const int32_t*>(a.data + at.position);
  const auto ascends = [&a](const int64_t* start, const int32_t* index) {
    if (start[0] != 0 || start[a.n] != a.nonzeros) return false;
    for (int64_t k = 0; k < a.n; ++k) {
      if (start[k] > start[k + 1] || start[k + 1] > a.nonzeros) return false;
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
    for (int64_t e = row_start[i]; e < row_start[i + 1]; ++e) {
      const int64_t p = position[e];
      if (p < column_start[column[e]] || p >= column_start[column[e] + 1] || row[p] != i) {
        return false;
      }
    }
  }
  return true;
}

absl::Status CheckFinite(const AnySparse& a) {
  return DispatchDType(a.dtype, [&](auto tag) {
    const auto view = a.As<typename decltype(tag)::type>();
    for (int64_t j = 0; j < a.n; ++j) {
      for (int64_t e = view.column_start[j]; e < view.column_start[j + 1]; ++e) {
        if (!IsFinite(view.value[e])) {
          return absl::InvalidArgumentError(
              absl::StrCat("entry (", view.row[e], ", ", j, ") is not finite"));
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

Ordered OrderNaturally(const Graph& graph) {
  std::vector<int32_t> order(graph.vertices());
  std::iota(order.begin(), order.end(), 0);
  return {MakeEliminationTree(graph, order), "natural"};
}

Ordered OrderByDegree(const Graph& graph) {
  return {MakeEliminationTree(graph, OrderByMinimumDegree(graph)), "amd"};
}

// Nothing where the program fails.
absl::StatusOr<std::optional<Ordered>> OrderByDissection(const Graph& graph,
                                                         const std::string& program,
                                                         StopRequested stop) {
  const absl::StatusOr<std::vector<int32_t>> order = OrderByNestedDissection(program, graph, stop);
  if (absl::IsCancelled(order.status())) return order.status();
  if (!order.ok()) return std::nullopt;
  return Ordered{MakeEliminationTree(graph, *order), "metis"};
}

// The better one. For large graphs both are made side by side, one in a process of its own.
absl::StatusOr<Ordered> OrderBothWays(const Graph& graph, const std::string& program,
                                      StopRequested stop) {
  const bool large = graph.vertices() > kManyVertices;
  // Its destructor waits for the thread.
  std::future<Ordered> degree = std::async(large ? std::launch::async : std::launch::deferred,
                                           [&graph] { return OrderByDegree(graph); });
  std::optional<Ordered> by_degree;
  if (!large) {
    by_degree = degree.get();
    const auto little = kLittleWork * static_cast<double>(graph.vertices());
    if (by_degree->tree.Flops() < little) return *std::move(by_degree);
  }
  CROUT_ASSIGN_OR_RETURN(std::optional<Ordered> by_dissection,
                         OrderByDissection(graph, program, stop));
  if (!by_degree) by_degree = degree.get();
  if (!by_dissection || by_degree->tree.Flops() <= by_dissection->tree.Flops()) {
    return *std::move(by_degree);
  }
  return *std::move(by_dissection);
}

// Whether the program may be asked for an order.
bool TriesDissection(const Graph& graph, const AnalysisOptions& options) {
  if (options.ordering_program.empty() || graph.neighbour.empty() ||
      !FitsOrderingProgram(graph.vertices(), graph.start.back())) {
    return false;
  }
  return options.ordering == OrderingMode::kNestedDissection ||
         (options.ordering == OrderingMode::kAuto && graph.vertices() > kFewVertices);
}

absl::StatusOr<Ordered> Order(const Graph& graph, const AnalysisOptions& options,
                              StopRequested stop) {
  if (options.ordering == OrderingMode::kNatural) return OrderNaturally(graph);
  if (!TriesDissection(graph, options)) return OrderByDegree(graph);
  if (options.ordering == OrderingMode::kNestedDissection) {
    CROUT_ASSIGN_OR_RETURN(std::optional<Ordered> ordered,
                           OrderByDissection(graph, options.ordering_program, stop));
    return ordered ? *std::move(ordered) : OrderByDegree(graph);
  }
  return OrderBothWays(graph, options.ordering_program, stop);
}

// What Order() takes beside the graph and AnalysisBytes().
size_t OrderingBytes(const Graph& graph, const AnalysisOptions& options) {
  const size_t of_program = TriesDissection(graph, options)
                                ? OrderingProgramBytes(graph.vertices(), graph.start.back())
                                : 0;
  return MinimumDegreeBytes(graph) + of_program;
}

// 1 for each vertex that is to be kept.
absl::StatusOr<std::vector<char>> MarkKept(const std::vector<int32_t>& keep, int64_t n) {
  std::vector<char> kept(n);
  for (const int32_t v : keep) {
    if (v < 0 || v >= n || kept[v] != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown ", v, " cannot be kept: it is not there, or named twice"));
    }
    kept[v] = 1;
  }
  return kept;
}

// The vertices that are not kept, ascending.
std::vector<int32_t> Others(const std::vector<char>& kept) {
  std::vector<int32_t> others;
  others.reserve(std::count(kept.begin(), kept.end(), 0));
  for (int32_t v = 0; v < std::ssize(kept); ++v) {
    if (kept[v] == 0) others.push_back(v);
  }
  return others;
}

// The graph of these vertices alone, each with its number among them.
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

// Claims what the order takes, beside `held` bytes and the graph, and makes it.
absl::StatusOr<Ordered> OrderWithin(const Graph& graph, size_t held, const AnalysisOptions& options,
                                    StopRequested stop) {
  CROUT_RETURN_IF_ERROR(
      options.Claim(held + graph.neighbour_bytes() + OrderingBytes(graph, options)));
  return Order(graph, options, stop);
}

// The fronts of the graph without those vertices, and above them one that has these alone.
absl::StatusOr<FrontTree> MakeTreeBelow(const Graph& graph, const AnalysisOptions& options,
                                        StopRequested stop, std::string_view& ordering) {
  CROUT_ASSIGN_OR_RETURN(const std::vector<char> kept, MarkKept(options.keep, graph.vertices()));
  const std::vector<int32_t> vertex = Others(kept);
  CROUT_RETURN_IF_ERROR(options.Claim(2 * graph.neighbour_bytes()));  // before the other is known
  CROUT_ASSIGN_OR_RETURN(
      const Ordered ordered,
      OrderWithin(Without(graph, kept, vertex), graph.neighbour_bytes(), options, stop));
  ordering = ordered.name;
  FrontTree fronts = MakeFrontTree(ordered.tree);
  fronts.counted = false;  // Borders are wider by what is kept.
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
  CROUT_ASSIGN_OR_RETURN(const Ordered ordered, OrderWithin(graph, 0, options, stop));
  CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
  ordering = ordered.name;
  return MakeFrontTree(ordered.tree);
}

absl::StatusOr<bool> Wants(MatchingMode mode, const AnySparse& a) {
  if (mode == MatchingMode::kOff) return false;
  CROUT_RETURN_IF_ERROR(CheckFinite(a));
  return mode == MatchingMode::kOn || AsksForMatching(a);
}

absl::Status EndStep(int steps, const AnalysisOptions& options, StopRequested stop) {
  if (options.tell) options.tell(steps);
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
  if (!IsConsistent(a)) return absl::InvalidArgumentError("the indices are out of order");
  Analysis analysis;
  analysis.n = a.n;
  analysis.nonzeros = a.nonzeros;
  analysis.pattern = PatternDigest(a);
  CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
  if (options.keep.empty()) {
    CROUT_ASSIGN_OR_RETURN(analysis.matched, Wants(options.matching, a));
  } else if (options.matching == MatchingMode::kOn) {
    return absl::InvalidArgumentError("unknowns cannot be kept where columns are exchanged");
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
  CROUT_RETURN_IF_ERROR(options.Claim(MostNeighbourBytes(a.nonzeros)));
  const Graph graph = SymmetrizedGraph(a, column_of_row.empty() ? nullptr : column_of_row.data());
  CROUT_RETURN_IF_ERROR(EndStep(2, options, stop));
  CROUT_ASSIGN_OR_RETURN(FrontTree fronts, MakeTree(graph, options, stop, analysis.ordering));
  CROUT_RETURN_IF_ERROR(EndStep(3, options, stop));
  analysis.kept = std::ssize(options.keep);
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

size_t AnalysisBytes(int64_t n) {
  // Permutations, scales, the matching's or two trees' arrays.
  constexpr size_t kOfVertex = 240;
  return sizeof(Analysis) + static_cast<size_t>(n + 1) * kOfVertex;
}

}  // namespace crout
