// SPDX-License-Identifier: Apache-2.0

// Tests the map from the lines of a text to the entries of its matrix. Values applied through the
// map must give exactly the matrix of the text.
#include <complex>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gtest/gtest.h"
#include "kernels/io/matrix_market_reader.h"
#include "kernels/util/digest.h"
#include "tests/kernels/io/matrix_market_testing.h"

namespace crout::value_map_test {
namespace {

using Symmetry = MatrixMarketHeader::Symmetry;
using Complex = std::complex<double>;

struct Line {
  int row;  // 1-based
  int column;
  Complex value;
};

struct Case {
  const char* field;
  Symmetry symmetry;
};

constexpr const char* kWords[] = {"general", "symmetric", "skew-symmetric", "hermitian"};
constexpr int kN = 60;

// Unsorted entries in both triangles, with about four at each position that has any.
std::vector<Line> RandomLines(const Case& c, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> index(1, kN / 2);
  std::uniform_real_distribution<double> number(-1, 1);
  std::vector<Line> lines;
  for (int k = 0; k < 2 * kN * kN / 2; ++k) {
    Line line{2 * index(random), index(random), {number(random), number(random)}};
    const bool diagonal = line.row == line.column;
    if (diagonal && c.symmetry == Symmetry::kSkewSymmetric) continue;
    if (diagonal && c.symmetry == Symmetry::kHermitian) line.value.imag(0);
    if (k % 50 == 0) line.value = {-0.0, 0};
    lines.push_back(line);
  }
  return lines;
}

std::string Text(const Case& c, const std::vector<Line>& lines) {
  const std::string field = c.field;
  std::string text = absl::StrCat("%%MatrixMarket matrix coordinate ", field, " ",
                                  kWords[static_cast<int>(c.symmetry)], "\n% a comment\n", kN, " ",
                                  kN, " ", lines.size(), "\n");
  for (const Line& line : lines) {
    absl::StrAppend(&text, line.row, " ", line.column);
    if (field != "pattern") absl::StrAppendFormat(&text, " %.17g", line.value.real());
    if (field == "complex") absl::StrAppendFormat(&text, " %.17g", line.value.imag());
    absl::StrAppend(&text, "\n");
    if (line.row == 4) absl::StrAppend(&text, "\n% between\n");
  }
  return text;
}

// Applies the map by its definition.
std::vector<Complex> Apply(const ValueMapData& map, const std::vector<Line>& lines) {
  std::vector<Complex> out(map.shape.elements);
  for (int64_t e = 0; e < map.shape.elements; ++e) {
    for (int32_t s = map.start[e]; s < map.start[e + 1]; ++s) {
      Complex value = lines[map.source[s] & ValueMap::kLine].value;
      if ((map.source[s] & ValueMap::kMirrored) != 0) {
        value = {map.shape.mirror_sign * value.real(),
                 map.shape.imaginary_mirror_sign * value.imag()};
      }
      out[e] = s == map.start[e] ? value : out[e] + value;
    }
  }
  return out;
}

class ValueMapTest : public ::testing::TestWithParam<Case> {
 protected:
  static void Read(const std::string& file, ThreadPool* pool, SparseMatrix* matrix,
                   ValueMapData* map) {
    MatrixMarketLimits limits;
    limits.build_value_map = true;
    limits.segment_bytes = 1000;
    MatrixMarketReader reader(limits, pool);
    ASSERT_TRUE(reader.Append(file).ok());
    const absl::Status status = reader.Finish();
    ASSERT_TRUE(status.ok()) << status;
    *matrix = reader.TakeSparse();
    *map = reader.TakeValueMap();
  }
};

TEST_P(ValueMapTest, GivesTheMatrixOfTheTextWithOtherValues) {
  ThreadPool pool(2);
  const std::vector<Line> first = RandomLines(GetParam(), 1);
  std::vector<Line> second = first;
  const bool pattern = std::string_view(GetParam().field) == "pattern";
  const bool complex = std::string_view(GetParam().field) == "complex";
  const std::vector<Line> others = RandomLines(GetParam(), 2);
  for (size_t k = 0; k < second.size(); ++k) {
    const Complex other = others[k % 500].value;
    second[k].value = pattern ? 1 : other;
    if (GetParam().symmetry == Symmetry::kHermitian && second[k].row == second[k].column) {
      second[k].value.imag(0);
    }
    if (!complex) second[k].value.imag(0);
  }
  SparseMatrix matrix;
  ValueMapData map;
  Read(Gzip(Text(GetParam(), first)), &pool, &matrix, &map);
  EXPECT_EQ(map.shape.lines, std::ssize(first));
  EXPECT_EQ(map.shape.elements, matrix.nonzeros());
  EXPECT_EQ(map.shape.sources, std::ssize(map.source));
  EXPECT_EQ(map.start.front(), 0);
  EXPECT_EQ(map.start.back(), map.shape.sources);
  EXPECT_LT(matrix.nonzeros(), map.shape.sources);  // duplicates
  for (size_t e = 0; e < map.source.size(); ++e) {
    const Line& line = first[map.source[e] & ValueMap::kLine];
    EXPECT_EQ((map.source[e] & ValueMap::kReal) != 0,
              GetParam().symmetry == Symmetry::kHermitian && line.row == line.column);
  }

  SparseMatrix expected;
  ValueMapData same;
  Read(Text(GetParam(), second), nullptr, &expected, &same);
  EXPECT_EQ(same.start, map.start);
  EXPECT_EQ(same.source, map.source);
  const std::vector<Complex> values = Apply(map, second);
  ASSERT_EQ(std::ssize(values), expected.nonzeros());
  for (size_t e = 0; e < values.size(); ++e) {
    const double parts[] = {values[e].real(), values[e].imag()};
    EXPECT_EQ(std::memcmp(&parts[0], &expected.value[e], sizeof(double)), 0) << e;
    if (!complex) continue;
    EXPECT_EQ(std::memcmp(&parts[1], &expected.imaginary[e], sizeof(double)), 0) << e;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Texts, ValueMapTest,
    ::testing::Values(Case{"real", Symmetry::kGeneral}, Case{"real", Symmetry::kSymmetric},
                      Case{"real", Symmetry::kSkewSymmetric}, Case{"pattern", Symmetry::kGeneral},
                      Case{"pattern", Symmetry::kSymmetric}, Case{"complex", Symmetry::kGeneral},
                      Case{"complex", Symmetry::kSymmetric},
                      Case{"complex", Symmetry::kSkewSymmetric},
                      Case{"complex", Symmetry::kHermitian}));

// The expected numbers follow the definition of SeriesResult.entry_digest, evaluated in Python.
TEST(ValueMapReaderTest, DigestsLinesInOrder) {
  const auto digest = [](absl::string_view lines) {
    MatrixMarketLimits limits;
    limits.build_value_map = true;
    MatrixMarketReader reader(limits, nullptr);
    EXPECT_TRUE(
        reader
            .Append(absl::StrCat("%%MatrixMarket matrix coordinate real symmetric\n3 3 4\n", lines))
            .ok());
    EXPECT_TRUE(reader.Finish().ok());
    return DigestText(reader.TakeValueMap().digest);
  };
  EXPECT_EQ(digest("2 1 1\n1 1 3\n1 1 1\n3 3 2\n"), "32b0c433a9be6bf4");
  EXPECT_EQ(digest("2 1 5\n1 1 0\n1 1 7\n3 3 0\n"), "32b0c433a9be6bf4");
  EXPECT_EQ(digest("1 1 1\n2 1 3\n1 1 1\n3 3 2\n"), "d7b3feee057e4dc9");
}

TEST(ValueMapReaderTest, MakesNoMapWithoutARequestOrForArrays) {
  const std::string coordinate = "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 3\n";
  const std::string array = "%%MatrixMarket matrix array real general\n1 1\n3\n";
  MatrixMarketLimits limits;
  for (const auto& [text, build_value_map] :
       {std::pair(coordinate, false), std::pair(array, true)}) {
    limits.build_value_map = build_value_map;
    MatrixMarketReader reader(limits, nullptr);
    ASSERT_TRUE(reader.Append(text).ok());
    ASSERT_TRUE(reader.Finish().ok());
    EXPECT_TRUE(reader.TakeValueMap().empty());
  }
}

}  // namespace
}  // namespace crout::value_map_test
