// SPDX-License-Identifier: Apache-2.0

// analyze
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "client/cli/commands/commands.h"
#include "client/cli/exit_codes.h"
#include "client/cli/input/local_matrix.h"
#include "client/cli/input/matrix_input.h"
#include "client/cli/input/packed_matrix.h"
#include "client/cli/options/option_values.h"
#include "client/cli/report/analysis_picture.h"
#include "client/cli/report/summary.h"
#include "client/cli/report/text.h"
#include "kernels/sparse/analysis.h"
#include "kernels/sparse/multifrontal_factor.h"
#include "kernels/sparse/ordering_process.h"
#include "kernels/util/stopwatch.h"

namespace crout::cli {
namespace {

constexpr int64_t kDefaultDepth = 4;

struct AnalyzeArguments {
  std::string matrix;
  MatchingMode matching = MatchingMode::kAuto;
  OrderingMode ordering = OrderingMode::kAuto;
  std::optional<int64_t> depth;
  std::string plot;
};

double FlopsOf(const Analysis& analysis, int64_t f) {
  const auto d1 = static_cast<double>(analysis.eliminated(f));
  const auto d2 = static_cast<double>(analysis.bordered(f));
  return 2.0 / 3.0 * d1 * d1 * d1 + 2 * d1 * d1 * d2 + 2 * d1 * d2 * d2;
}

Json Summary(const Analysis& analysis, const AnySparse& a, double seconds) {
  Json json{{"n", analysis.n}, {"entries", analysis.nonzeros}, {"dtype", NameOf(a.dtype)}};
  json["symmetric"] = IsSymmetric(a);
  json["matched"] = analysis.matched;
  json["analyze_seconds"] = seconds;
  if (analysis.unmatched_row >= 0) {
    json["structurally_singular_row"] = analysis.unmatched_row + 1;
    return json;
  }
  const auto entries = static_cast<double>(analysis.factor_entries());
  json["ordering"] = analysis.ordering;
  json["lu_entries"] = analysis.factor_entries();
  json["fill"] = analysis.nonzeros > 0 ? entries / static_cast<double>(analysis.nonzeros) : 1;
  json["flops"] = analysis.flops;
  json["factor_bytes"] = MultifrontalLayout(analysis, a.dtype).bytes;
  json["contribution_bytes"] = static_cast<size_t>(analysis.stack_entries) * SizeOf(a.dtype);
  json["analysis_bytes"] = analysis.bytes();
  json["fronts"] = analysis.fronts();
  json["levels"] = analysis.levels();
  json["largest_front"] = analysis.largest_front;
  return json;
}

std::string SummaryText(const Analysis& analysis, const AnySparse& a, const Json& summary) {
  const auto value = [&](const char* key) { return FormatValue(key, summary[key]); };
  return FormatLines(
      {{"matrix", absl::StrCat(analysis.n, " x ", analysis.n, " ", std::string(NameOf(a.dtype)),
                               ", ", analysis.nonzeros, " entries",
                               summary["symmetric"].get<bool>() ? ", symmetric" : "")},
       {"ordering", absl::StrCat(value("ordering"), analysis.matched ? " after matching" : "", ", ",
                                 analysis.fronts(), " fronts in ", analysis.levels(),
                                 " levels, the largest of order ", analysis.largest_front)},
       {"fill", absl::StrCat(analysis.factor_entries(), " entries of L and U, ",
                             absl::StrFormat("%.3g", summary["fill"].get<double>()),
                             " times those of the matrix")},
       {"work",
        absl::StrFormat("%.3g flops, analyzed in %s", analysis.flops, value("analyze_seconds"))},
       {"memory", absl::StrCat(value("factor_bytes"), " for the factor, ",
                               value("contribution_bytes"), " for waiting fronts")}});
}

Json Levels(const Analysis& analysis) {
  Json levels = Json::array();
  for (int64_t level = 0; level < analysis.levels(); ++level) {
    int64_t eliminated = 0, widest = 0, largest = 0, entries = 0;
    double flops = 0;
    for (int32_t k = analysis.level_start[level]; k < analysis.level_start[level + 1]; ++k) {
      const int32_t f = analysis.level_front[k];
      eliminated += analysis.eliminated(f);
      widest = std::max(widest, analysis.eliminated(f));
      largest = std::max(largest, analysis.eliminated(f) + analysis.bordered(f));
      entries += analysis.factor_start[f + 1] - analysis.factor_start[f];
      flops += FlopsOf(analysis, f);
    }
    levels.push_back({{"level", level},
                      {"fronts", analysis.level_start[level + 1] - analysis.level_start[level]},
                      {"eliminated", eliminated},
                      {"widest", widest},
                      {"largest_front", largest},
                      {"lu_entries", entries},
                      {"flops", flops}});
  }
  return levels;
}

// The upper levels of the tree of fronts. Children follow their parent, most work first.
class FrontTreeView {
 public:
  FrontTreeView(const Analysis& analysis, int64_t depth)
      : analysis_(analysis), depth_(depth), flops_(analysis.fronts()), fronts_(analysis.fronts()) {
    for (int64_t f = 0; f < analysis.fronts(); ++f) {
      flops_[f] += FlopsOf(analysis, f);
      fronts_[f] += 1;
      const int32_t parent = analysis.parent[f];
      if (parent < 0) {
        roots_.push_back(static_cast<int32_t>(f));
        continue;
      }
      flops_[parent] += flops_[f];
      fronts_[parent] += fronts_[f];
    }
  }

  Json ToJson() const {
    Json fronts = Json::array();
    Visit(roots_, 0, [&](int32_t f, int64_t level) {
      fronts.push_back({{"front", f},
                        {"parent", analysis_.parent[f]},
                        {"level", level},
                        {"eliminated", analysis_.eliminated(f)},
                        {"border", analysis_.bordered(f)},
                        {"children", analysis_.child_start[f + 1] - analysis_.child_start[f]},
                        {"subtree_fronts", fronts_[f]},
                        {"subtree_flops", flops_[f]}});
    });
    return fronts;
  }

  // Omits subtrees with less than a hundredth of the work and prints their number.
  std::string ToText() const {
    std::vector<std::vector<std::string>> rows;
    int64_t hidden = 0;
    Visit(roots_, 0, [&](int32_t f, int64_t level) {
      const double share = analysis_.flops > 0 ? flops_[f] / analysis_.flops : 1;
      constexpr double kWorthALine = 0.01;
      if (share < kWorthALine) {
        ++hidden;
        return;
      }
      rows.push_back({absl::StrCat(std::string(static_cast<size_t>(2 * level), ' '), f),
                      absl::StrCat(analysis_.eliminated(f)), absl::StrCat(analysis_.bordered(f)),
                      absl::StrCat(fronts_[f]), absl::StrFormat("%.1f %%", 100 * share)});
    });
    std::string text = FormatTable({"front", "eliminated", "border", "fronts", "work"}, rows);
    if (hidden > 0)
      absl::StrAppend(&text, "and ", hidden, " of less than a hundredth of the work\n");
    return text;
  }

 private:
  template <class F>
  void Visit(std::vector<int32_t> fronts, int64_t level, const F& visit) const {
    if (level >= depth_) return;
    std::stable_sort(fronts.begin(), fronts.end(),
                     [this](int32_t f, int32_t g) { return flops_[f] > flops_[g]; });
    for (const int32_t f : fronts) {
      visit(f, level);
      const auto* const child = analysis_.child.data();
      Visit({child + analysis_.child_start[f], child + analysis_.child_start[f + 1]}, level + 1,
            visit);
    }
  }

  const Analysis& analysis_;
  const int64_t depth_;
  std::vector<double> flops_;    // work of each front's subtree, the front included
  std::vector<int64_t> fronts_;  // number of fronts in that subtree
  std::vector<int32_t> roots_;
};

absl::Status RunAnalyze(Session* session, const AnalyzeArguments& arguments) {
  const auto matrix = LocalMatrix::Load(arguments.matrix);
  if (!matrix.ok()) return matrix.status();
  const auto packed = PackedMatrix::Pack(*matrix);
  if (!packed.ok()) return packed.status();
  AnalysisOptions options;
  options.matching = arguments.matching;
  options.ordering = arguments.ordering;
  options.ordering_program = OrderingProgram();
  Stopwatch watch;
  const absl::Time deadline = session->deadline();
  const auto analysis =
      Analyze(packed->view(), options, [deadline] { return absl::Now() > deadline; });
  if (absl::IsCancelled(analysis.status())) {
    return absl::DeadlineExceededError("the analysis took longer than --timeout. Raise --timeout");
  }
  if (!analysis.ok()) return analysis.status();
  Json json = Summary(*analysis, packed->view(), watch.Lap());
  if (!arguments.plot.empty()) {
    const std::string name =
        arguments.matrix == "-" ? "standard input" : Printable(arguments.matrix);
    absl::Status written =
        WriteTextFile(arguments.plot, AnalysisPicture(name, packed->view(), *analysis));
    if (!written.ok()) return written;
  }
  if (analysis->unmatched_row >= 0) {
    session->PrintFields(json);
    session->ExitWith(kSingular);
    return absl::OkStatus();
  }
  std::string summary = SummaryText(*analysis, packed->view(), json);
  std::string text = FormatObject(json);
  json["by_level"] = Levels(*analysis);
  absl::StrAppend(&text, "\n",
                  FormatObjects({"level", "fronts", "eliminated", "widest", "largest_front",
                                 "lu_entries", "flops"},
                                json["by_level"]));
  const int64_t depth = arguments.depth.value_or(kDefaultDepth);
  const FrontTreeView tree(*analysis, depth);
  json["tree"] = tree.ToJson();
  if (depth > 0) absl::StrAppend(&text, "\n", tree.ToText());
  if (arguments.depth.value_or(0) > 0) absl::StrAppend(&summary, "\n", tree.ToText());
  session->Print({json, text, summary});
  return absl::OkStatus();
}

}  // namespace

void AddAnalyzeCommand(CLI::App* app, Session* session) {
  const auto arguments = std::make_shared<AnalyzeArguments>();
  CLI::App* analyze = session->AddLocalCommand(
      app, "analyze",
      "Predict the ordering, fill-in, work and memory of a sparse LU factorization, without a "
      "server",
      [=] { return RunAnalyze(session, *arguments); });
  analyze
      ->add_option("A", arguments->matrix,
                   "File of the matrix: Matrix Market, .npy, .npz (F.npz:NAME) or text")
      ->required()
      ->check(InputFile());
  BeginSection(analyze, "Method");
  AddChoiceOption<MatchingMode>(
      analyze, "--matching",
      {{"auto", MatchingMode::kAuto}, {"off", MatchingMode::kOff}, {"on", MatchingMode::kOn}},
      [=](MatchingMode mode) { arguments->matching = mode; },
      "Permute columns and scale the matrix for a large diagonal; auto: if the diagonal requires "
      "it [default: auto]");
  AddChoiceOption<OrderingMode>(
      analyze, "--ordering",
      {{"auto", OrderingMode::kAuto},
       {"amd", OrderingMode::kMinimumDegree},
       {"metis", OrderingMode::kNestedDissection},
       {"natural", OrderingMode::kNatural}},
      [=](OrderingMode mode) { arguments->ordering = mode; },
      "Ordering: minimum degree (amd), nested dissection (metis), natural, or auto: amd or metis, "
      "whichever predicts less work [default: auto]");
  BeginSection(analyze, "Output");
  analyze
      ->add_option("--depth", arguments->depth,
                   absl::StrCat("Levels of the tree of fronts to list [default: ", kDefaultDepth,
                                " with -v or --json]"))
      ->check(NotNegative<int64_t>());
  analyze
      ->add_option(
          "--plot", arguments->plot,
          "Draw the patterns of the matrix and of L and U, and the tree of fronts, in this "
          "SVG file")
      ->check(CLI::Validator(
          [](const std::string& name) {
            return absl::EndsWith(name, ".svg")
                       ? std::string()
                       : absl::StrCat("'", name, "' does not end in .svg, the only format");
          },
          "FILE.svg"));
}

}  // namespace crout::cli
