// SPDX-License-Identifier: Apache-2.0

#include "client/cli/report/analysis_picture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/report/text.h"

namespace crout::cli {
namespace {

constexpr int64_t kMaxCells = 300;  // along a side of a picture
constexpr int kShades = 5;
constexpr double kLeastShade = 0.5;  // shade of a cell with few nonzeros
constexpr int kFrontShades = 9;
constexpr double kLeastBlock = 0.02;  // smallest share of the order at which a front is outlined

// Lengths in pixels.
constexpr double kSide = 320, kLeft = 78, kGap = 100, kTop = 76, kBottom = 84, kBar = 12,
                 kRight = 96;

struct Color {
  double red, green, blue;  // 0 to 255
};
// Colors that remain distinct with color-vision deficiency: Okabe and Ito (2008).
constexpr Color kWhite = {255, 255, 255}, kBlue = {0, 114, 178}, kOrange = {213, 94, 0},
                kPaleGreen = {213, 240, 230}, kGreen = {0, 158, 115}, kDarkGreen = {0, 64, 47};

// `from` at t = 0, `to` at t = 1.
std::string Blend(const Color& from, const Color& to, double t) {
  const auto part = [t](double a, double b) { return std::lround(a + t * (b - a)); };
  return absl::StrFormat("#%02x%02x%02x", part(from.red, to.red), part(from.green, to.green),
                         part(from.blue, to.blue));
}

std::string FrontColor(int shade) {
  const double t = 2.0 * shade / (kFrontShades - 1);
  return t < 1 ? Blend(kPaleGreen, kGreen, t) : Blend(kGreen, kDarkGreen, t - 1);
}

// "1,234,567".
std::string Grouped(int64_t number) {
  std::string text = absl::StrCat(number);
  for (auto at = static_cast<int64_t>(text.size()) - 3; at > 0; at -= 3) text.insert(at, ",");
  return text;
}

// Numbers in the cells of a picture of rows x cols.
struct Grid {
  Grid(int64_t rows, int64_t cols) : rows(rows), cols(cols), cells(rows * cols) {}
  int64_t& at(int64_t i, int64_t j) { return cells[i * cols + j]; }
  int64_t at(int64_t i, int64_t j) const { return cells[i * cols + j]; }

  int64_t rows, cols;
  std::vector<int64_t> cells;
};

// The cells of a side of length n, of which element k is in cell Of(k).
struct Side {
  explicit Side(int64_t n) : n(n), cells(std::min(n, kMaxCells)) {}
  int64_t Of(int64_t k) const { return k * cells / n; }

  int64_t n, cells;
};

// Counts the entries of `a` in each cell. Entry (i, j) is in row row_at[i] and column col_at[j] of
// the picture; empty spans: in row i and column j.
Grid CountEntries(const AnySparse& a, std::span<const int32_t> row_at,
                  std::span<const int32_t> col_at) {
  const Side side(a.n);
  Grid counts(side.cells, side.cells);
  const SparseView<double> view = a.As<double>();  // only the pattern is read
  for (int64_t j = 0; j < a.n; ++j) {
    const int64_t col = side.Of(col_at.empty() ? j : col_at[j]);
    for (int64_t e = view.column_start[j]; e < view.column_start[j + 1]; ++e) {
      const int32_t i = view.row[e];
      ++counts.at(side.Of(row_at.empty() ? i : row_at[i]), col);
    }
  }
  return counts;
}

std::vector<int32_t> InverseOf(const std::vector<int32_t>& order) {
  std::vector<int32_t> position(order.size());
  for (size_t k = 0; k < order.size(); ++k) position[order[k]] = static_cast<int32_t>(k);
  return position;
}

// Number of positions of a front in each cell that has any, in ascending order.
using Tally = std::vector<std::pair<int64_t, int64_t>>;

void Add(int64_t cell, Tally* tally) {
  if (tally->empty() || tally->back().first != cell) tally->emplace_back(cell, 0);
  ++tally->back().second;
}

// Counts the entries of L and U in each cell, front by front.
Grid CountFactors(const Analysis& analysis) {
  const Side side(analysis.n);
  Grid counts(side.cells, side.cells);
  for (int64_t f = 0; f < analysis.fronts(); ++f) {
    Tally own, border;
    for (int32_t k = analysis.first_position[f]; k < analysis.first_position[f + 1]; ++k) {
      Add(side.Of(k), &own);
    }
    for (int64_t k = analysis.border_start[f]; k < analysis.border_start[f + 1]; ++k) {
      Add(side.Of(analysis.border[k]), &border);
    }
    for (const auto& [i, count] : own) {
      for (const auto& [j, others] : own) counts.at(i, j) += count * others;
      for (const auto& [j, others] : border) {
        counts.at(i, j) += count * others;
        counts.at(j, i) += count * others;
      }
    }
  }
  return counts;
}

// Shapes that cover the cells of one color, as the data of a path in units of cells.
class Cells {
 public:
  explicit Cells(size_t colors) : paths_(colors) {}

  // Adds the cells [begin, end) of row i.
  void Add(size_t color, int64_t i, int64_t begin, int64_t end) {
    absl::StrAppend(&paths_[color], "M", begin, " ", i, "h", end - begin, "v1h", begin - end, "z");
  }
  // Adds all cells of a grid, each with the color color(i, j); negative: none.
  template <class ColorOf>
  void AddAll(const Grid& grid, const ColorOf& color) {
    for (int64_t i = 0; i < grid.rows; ++i) {
      for (int64_t j = 0; j < grid.cols;) {
        const int64_t begin = j;
        const int chosen = color(i, j);
        while (j < grid.cols && color(i, j) == chosen) ++j;
        if (chosen >= 0) Add(static_cast<size_t>(chosen), i, begin, j);
      }
    }
  }
  const std::vector<std::string>& paths() const { return paths_; }

 private:
  std::vector<std::string> paths_;
};

class Picture {
 public:
  Picture(const std::string& name, const AnySparse& a, const Analysis& analysis)
      : a_(a), analysis_(analysis), singular_(analysis.unmatched_row >= 0) {
    const int panels = singular_ ? 1 : 3;
    const double width = kLeft + panels * kSide + (panels - 1) * kGap + kRight;
    const double height = kTop + kSide + kBottom;
    absl::StrAppendFormat(&svg_,
                          "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" height=\"%g\" "
                          "viewBox=\"0 0 %g %g\" font-family=\"sans-serif\" font-size=\"11\">\n",
                          width, height, width, height);
    const std::string title =
        singular_ ? absl::StrCat(name, ", structurally singular")
                  : absl::StrCat(name, ", ordering ", std::string(analysis.ordering),
                                 analysis.matched ? " after matching" : "");
    absl::StrAppend(&svg_, "<title>", EscapeXml(title), "</title>\n<rect width=\"", width,
                    "\" height=\"", height, "\" fill=\"white\"/>\n");
    Text(kLeft, 26, "font-size=\"15\" font-weight=\"bold\"", title);
  }

  std::string Draw() {
    const Grid pattern = CountEntries(a_, {}, {});
    Begin(0,
          absl::StrCat("A: ", Grouped(a_.n), " x ", Grouped(a_.n), ", ", Grouped(a_.nonzeros),
                       " nonzeros"),
          "column, from 1", "row, from 1");
    DrawPattern(pattern, pattern);
    End(a_.n, a_.n, 1);
    if (Side side(a_.n); side.cells < a_.n) {
      Text(0, kSide + 56, "fill=\"#555\"",
           absl::StrCat(side.cells, " x ", side.cells, " cells; darker: more nonzeros"));
    }
    svg_ += "</g>\n";
    if (!singular_) {
      DrawFactors();
      DrawFronts();
    }
    return svg_ + "</svg>\n";
  }

 private:
  void Text(double x, double y, const std::string& attributes, const std::string& text) {
    absl::StrAppendFormat(&svg_, "<text x=\"%g\" y=\"%g\" %s>", x, y, attributes);
    absl::StrAppend(&svg_, EscapeXml(text), "</text>\n");
  }

  // Begins panel k, with the origin in the upper left corner of its square.
  void Begin(int k, const std::string& title, const std::string& x_label,
             const std::string& y_label) {
    absl::StrAppendFormat(&svg_, "<g transform=\"translate(%g %g)\">\n", kLeft + k * (kSide + kGap),
                          kTop);
    Text(kSide / 2, -12, "font-size=\"12\" text-anchor=\"middle\"", title);
    Text(kSide / 2, kSide + 36, "text-anchor=\"middle\"", x_label);
    absl::StrAppendFormat(&svg_,
                          "<text transform=\"translate(-56 %g) rotate(-90)\" "
                          "text-anchor=\"middle\">%s</text>\n",
                          kSide / 2, y_label);
  }

  // Draws the frame of a panel and its ticks. The axes have `cols` and `rows` elements, and the
  // vertical axis counts from `base`.
  void End(int64_t cols, int64_t rows, int64_t base) {
    for (const int64_t tick : Ticks(cols, 1)) {
      const double x = kSide * (static_cast<double>(tick) - 0.5) / static_cast<double>(cols);
      absl::StrAppendFormat(&svg_, "<path d=\"M%.2f %gv4\" stroke=\"black\"/>", x, kSide);
      Text(x, kSide + 17, "text-anchor=\"middle\"", Grouped(tick));
    }
    for (const int64_t tick : Ticks(rows, base)) {
      const double y = kSide * (static_cast<double>(tick - base) + 0.5) / static_cast<double>(rows);
      absl::StrAppendFormat(&svg_, "<path d=\"M0 %.2fh-4\" stroke=\"black\"/>", y);
      Text(-8, y + 4, "text-anchor=\"end\"", Grouped(tick));
    }
    absl::StrAppendFormat(
        &svg_, "<rect width=\"%g\" height=\"%g\" fill=\"none\" stroke=\"black\"/>\n", kSide, kSide);
  }

  // The smallest round number of which at most six multiples are up to `count`.
  static int64_t StepFor(int64_t count) {
    for (int64_t power = 1;; power *= 10) {
      for (const int64_t step : {power, 2 * power, 5 * power}) {
        if (count / step <= 6) return step;
      }
    }
  }

  // The first of the indices base to base + count - 1, and round numbers at some distance from it.
  static std::vector<int64_t> Ticks(int64_t count, int64_t base) {
    if (count == 0) return {};
    const int64_t step = StepFor(count);
    std::vector<int64_t> ticks = {base};
    for (int64_t tick = step; tick < base + count; tick += step) {
      if (2 * (tick - base) >= step) ticks.push_back(tick);
    }
    return ticks;
  }

  void Fill(const Grid& grid, const Cells& cells, const std::vector<std::string>& colors) {
    absl::StrAppendFormat(
        &svg_, "<g transform=\"scale(%.8g %.8g)\" shape-rendering=\"crispEdges\">\n",
        kSide / static_cast<double>(grid.cols), kSide / static_cast<double>(grid.rows));
    for (size_t k = 0; k < colors.size(); ++k) {
      if (cells.paths()[k].empty()) continue;
      absl::StrAppend(&svg_, "<path fill=\"", colors[k], "\" d=\"", cells.paths()[k], "\"/>\n");
    }
    svg_ += "</g>\n";
  }

  // Draws counts of nonzeros: blue where at least half of them are `entries`, otherwise orange.
  void DrawPattern(const Grid& counts, const Grid& entries) {
    const int64_t height = counts.rows == 0 ? 1 : (a_.n + counts.rows - 1) / counts.rows;
    const double scale = height > 1 ? 1 / (2 * std::log(static_cast<double>(height))) : 0;
    Cells cells(2 * kShades);
    cells.AddAll(counts, [&](int64_t i, int64_t j) {
      const int64_t count = counts.at(i, j);
      if (count == 0) return -1;
      const double t = height > 1 ? std::log(static_cast<double>(count)) * scale : 1;
      const int shade = std::clamp(static_cast<int>(t * kShades), 0, kShades - 1);
      return 2 * entries.at(i, j) >= count ? shade : kShades + shade;
    });
    std::vector<std::string> colors;
    for (const Color& color : {kBlue, kOrange}) {
      for (int shade = 0; shade < kShades; ++shade) {
        colors.push_back(
            Blend(kWhite, color, kLeastShade + (1 - kLeastShade) * shade / (kShades - 1)));
      }
    }
    Fill(counts, cells, colors);
  }

  void DrawFactors() {
    const int64_t filled = analysis_.factor_entries();
    Begin(1,
          absl::StrFormat(
              "L and U: %s nonzeros, %.3g times those of A", Grouped(filled),
              static_cast<double>(filled) / static_cast<double>(std::max<int64_t>(a_.nonzeros, 1))),
          "column in the order of elimination, from 1", "row in the order of elimination, from 1");
    const Grid counts = CountFactors(analysis_);
    DrawPattern(counts, CountEntries(a_, InverseOf(analysis_.row_order),
                                     InverseOf(analysis_.column_order)));
    const double scale = kSide / static_cast<double>(std::max<int64_t>(a_.n, 1));
    for (int64_t f = 0; f < analysis_.fronts(); ++f) {
      const auto size = static_cast<double>(analysis_.eliminated(f));
      if (size < std::max(kLeastBlock * static_cast<double>(a_.n), 2.0)) continue;
      const double at = scale * analysis_.first_position[f];
      absl::StrAppendFormat(&svg_,
                            "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" "
                            "fill=\"none\" stroke=\"black\" stroke-width=\"0.8\"/>\n",
                            at, at, scale * size, scale * size);
    }
    End(a_.n, a_.n, 1);
    double x = kSide / 2 - 80;
    for (const auto& [color, text] : {std::pair(kBlue, "entries of A"), {kOrange, "fill"}}) {
      absl::StrAppendFormat(&svg_,
                            "<rect x=\"%g\" y=\"%g\" width=\"20\" height=\"9\" fill=\"%s\"/>", x,
                            kSide + 48, Blend(kWhite, color, 1));
      Text(x + 26, kSide + 56, "", text);
      x += 116;
    }
    svg_ += "</g>\n";
  }

  void DrawFronts() {
    Begin(2,
          absl::StrCat(Grouped(analysis_.fronts()), " fronts in ", Grouped(analysis_.levels()),
                       " levels, the largest of order ", Grouped(analysis_.largest_front)),
          "column in the order of elimination, from 1", "level, from 0 at the roots");
    const int64_t fronts = analysis_.fronts(), levels = analysis_.levels();
    std::vector<int64_t> order(fronts), first(fronts), level(fronts);
    for (int64_t f = 0; f < fronts; ++f) {
      order[f] = analysis_.eliminated(f) + analysis_.bordered(f);
      first[f] = analysis_.first_position[f];
    }
    // Children precede their parent.
    for (int64_t f = 0; f < fronts; ++f) {
      if (const int32_t parent = analysis_.parent[f]; parent >= 0) {
        first[parent] = std::min(first[parent], first[f]);
      }
    }
    for (int64_t v = 0; v < levels; ++v) {
      for (int32_t k = analysis_.level_start[v]; k < analysis_.level_start[v + 1]; ++k) {
        level[analysis_.level_front[k]] = v;
      }
    }
    const Side cols(std::max<int64_t>(a_.n, 1)), rows(std::max<int64_t>(levels, 1));
    Grid largest(rows.cells, cols.cells);
    for (int64_t f = 0; f < fronts; ++f) {
      const int64_t last = cols.Of(analysis_.first_position[f + 1] - 1);
      for (int64_t j = cols.Of(first[f]); j <= last; ++j) {
        int64_t& cell = largest.at(rows.Of(level[f]), j);
        cell = std::max(cell, order[f]);
      }
    }
    const auto [least, greatest] = std::minmax_element(order.begin(), order.end());
    const double low = fronts == 0 ? 0 : std::log(static_cast<double>(*least));
    const double high = fronts == 0 ? 0 : std::log(static_cast<double>(*greatest));
    Cells cells(kFrontShades);
    cells.AddAll(largest, [&](int64_t i, int64_t j) {
      if (largest.at(i, j) == 0) return -1;
      const double t =
          high > low ? (std::log(static_cast<double>(largest.at(i, j))) - low) / (high - low) : 1;
      return std::clamp(static_cast<int>(t * kFrontShades), 0, kFrontShades - 1);
    });
    std::vector<std::string> colors(kFrontShades);
    for (int shade = 0; shade < kFrontShades; ++shade) colors[shade] = FrontColor(shade);
    Fill(largest, cells, colors);
    std::string edges;
    for (int64_t f = 0; f < fronts; ++f) {
      const auto width = static_cast<double>(analysis_.first_position[f + 1] - first[f]);
      if (first[f] == 0 || width < kLeastBlock * static_cast<double>(a_.n)) continue;
      absl::StrAppendFormat(&edges, "M%.2f %.2fv%.2f",
                            kSide * static_cast<double>(first[f]) / static_cast<double>(a_.n),
                            kSide * static_cast<double>(level[f]) / static_cast<double>(levels),
                            kSide / static_cast<double>(levels));
    }
    absl::StrAppend(&svg_, "<path d=\"", edges, "\" stroke=\"white\" stroke-width=\"0.8\"/>\n");
    End(a_.n, levels, 0);
    if (fronts > 0) DrawScale(*least, *greatest);
    svg_ += "</g>\n";
  }

  // Draws the colors of the orders `least` to `greatest`, beside the panel.
  void DrawScale(int64_t least, int64_t greatest) {
    const double height = kSide / kFrontShades, x = kSide + 16;
    for (int shade = 0; shade < kFrontShades; ++shade) {
      absl::StrAppendFormat(&svg_,
                            "<rect x=\"%g\" y=\"%.2f\" width=\"%g\" height=\"%.2f\" fill=\"%s\"/>",
                            x, kSide - (shade + 1) * height, kBar, height, FrontColor(shade));
    }
    std::vector<int64_t> marks = {least};
    for (int64_t power = 10; power < greatest; power *= 10) {
      if (power > 1.3 * static_cast<double>(least) &&
          1.3 * static_cast<double>(power) < static_cast<double>(greatest))
        marks.push_back(power);
    }
    if (greatest > least) marks.push_back(greatest);
    for (const int64_t mark : marks) {
      const double share =
          greatest > least
              ? std::log(static_cast<double>(mark) / static_cast<double>(least)) /
                    std::log(static_cast<double>(greatest) / static_cast<double>(least))
              : 1;
      Text(x + kBar + 5, kSide * (1 - share) + 4, "", Grouped(mark));
    }
    absl::StrAppendFormat(&svg_,
                          "<text transform=\"translate(%g %g) rotate(-90)\" "
                          "text-anchor=\"middle\">order of the front</text>\n",
                          x + kBar + 56, kSide / 2);
  }

  const AnySparse& a_;
  const Analysis& analysis_;
  const bool singular_;
  std::string svg_;
};

}  // namespace

std::string AnalysisPicture(const std::string& name, const AnySparse& a, const Analysis& analysis) {
  return Picture(name, a, analysis).Draw();
}

}  // namespace crout::cli
