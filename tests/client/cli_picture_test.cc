// SPDX-License-Identifier: Apache-2.0

// Tests the picture of an analysis.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/input/local_matrix.h"
#include "client/cli/input/packed_matrix.h"
#include "client/cli/report/analysis_picture.h"
#include "kernels/sparse/analysis.h"

namespace crout::cli::cli_picture_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class CliPictureTest : public ::testing::Test {
 protected:
  ~CliPictureTest() override { std::filesystem::remove(path_); }

  // Returns the picture of a matrix of order n with ones at these 1-based positions, in natural
  // order.
  std::string Draw(int64_t n, const std::vector<std::pair<int64_t, int64_t>>& positions,
                   MatchingMode matching = MatchingMode::kOff) {
    std::ofstream file(path_);
    file << "%%MatrixMarket matrix coordinate real general\n"
         << n << " " << n << " " << positions.size() << "\n";
    for (const auto& [i, j] : positions) file << i << " " << j << " " << (i == j ? 9 : 1) << "\n";
    file.close();
    const auto matrix = LocalMatrix::Load(path_);
    EXPECT_TRUE(matrix.ok()) << matrix.status();
    const auto packed = PackedMatrix::Pack(*matrix);
    EXPECT_TRUE(packed.ok()) << packed.status();
    AnalysisOptions options;
    options.matching = matching;
    options.ordering = OrderingMode::kNatural;
    const auto analysis = Analyze(packed->view(), options, [] { return false; });
    EXPECT_TRUE(analysis.ok()) << analysis.status();
    return AnalysisPicture("a<b", packed->view(), *analysis);
  }

  // Number of cells with this color, in all panels.
  static int64_t CellsOf(const std::string& svg, const std::string& color) {
    int64_t cells = 0;
    const std::regex path("<path fill=\"" + color + "\" d=\"([^\"]*)\""), run("h([0-9]+)v1h");
    for (std::sregex_iterator p(svg.begin(), svg.end(), path), end; p != end; ++p) {
      const std::string data = (*p)[1];
      for (std::sregex_iterator r(data.begin(), data.end(), run); r != end; ++r) {
        cells += std::stoll((*r)[1]);
      }
    }
    return cells;
  }

 private:
  const std::string path_ =
      absl::StrCat(::testing::TempDir(), "/crout_picture_test.", getpid(), ".mtx");
};

constexpr char kBlue[] = "#0072b2", kOrange[] = "#d55e00";  // colors of cells without zeros

TEST_F(CliPictureTest, ShowsEntriesFillAndFronts) {
  // The first unknown is coupled with all others, so that L and U are full.
  std::vector<std::pair<int64_t, int64_t>> hub_first;
  for (int64_t k = 1; k <= 4; ++k) hub_first.emplace_back(k, k);
  for (int64_t k = 2; k <= 4; ++k) hub_first.insert(hub_first.end(), {{1, k}, {k, 1}});
  const std::string svg = Draw(4, hub_first);
  EXPECT_THAT(svg, HasSubstr("a&lt;b, ordering natural<"));
  EXPECT_THAT(svg, HasSubstr(">A: 4 x 4, 10 nonzeros<"));
  EXPECT_THAT(svg, HasSubstr(">L and U: 16 nonzeros, 1.6 times those of A<"));
  EXPECT_THAT(svg, HasSubstr(">1 fronts in 1 levels, the largest of order 4<"));
  EXPECT_EQ(CellsOf(svg, kBlue), 2 * 10);
  EXPECT_EQ(CellsOf(svg, kOrange), 6);
  EXPECT_THAT(svg, Not(HasSubstr("cells; darker")));
}

TEST_F(CliPictureTest, LargeMatricesAreDrawnInCells) {
  std::vector<std::pair<int64_t, int64_t>> diagonal;
  for (int64_t k = 1; k <= 900; ++k) diagonal.emplace_back(k, k);
  const std::string svg = Draw(900, diagonal);
  EXPECT_THAT(svg, HasSubstr(">A: 900 x 900, 900 nonzeros<"));
  EXPECT_THAT(svg, HasSubstr("300 x 300 cells"));
  EXPECT_EQ(CellsOf(svg, kBlue), 0);
  // Three of the nine elements of a cell are nonzero, half of them on the logarithmic scale.
  EXPECT_EQ(CellsOf(svg, "#4095c5"), 2 * 300);
}

TEST_F(CliPictureTest, AStructurallySingularMatrixHasNoFactors) {
  const std::string svg = Draw(3, {{1, 1}, {3, 3}}, MatchingMode::kOn);
  EXPECT_THAT(svg, HasSubstr("a&lt;b, structurally singular<"));
  EXPECT_EQ(CellsOf(svg, kBlue), 2);
  EXPECT_THAT(svg, Not(HasSubstr("L and U")));
}

TEST_F(CliPictureTest, TheSmallestMatricesHavePictures) {
  EXPECT_THAT(Draw(0, {}), HasSubstr(">A: 0 x 0, 0 nonzeros<"));
  EXPECT_EQ(CellsOf(Draw(1, {{1, 1}}), kBlue), 2);
}

}  // namespace
}  // namespace crout::cli::cli_picture_test
