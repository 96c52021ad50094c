// SPDX-License-Identifier: Apache-2.0

// Suggests the word of a list that is nearest to a mistyped word.
#ifndef CROUT_KERNELS_UTIL_NEAREST_H_
#define CROUT_KERNELS_UTIL_NEAREST_H_

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace crout {

// Optimal string alignment distance (Damerau's with at most one transposition of a pair).
inline size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      const size_t replace = d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      d[i][j] = std::min({replace, d[i - 1][j] + 1, d[i][j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

// Returns the word of `words` with the smallest edit distance to `word` (insertions, deletions,
// substitutions, transpositions of neighbours). Empty if the distance of each exceeds a third of
// `word`'s length, rounded up, or if `word` is longer than kLongestWord.
inline std::string Nearest(std::string_view word, const std::vector<std::string>& words) {
  constexpr size_t kLongestWord = 64;
  if (word.size() > kLongestWord) return "";
  const size_t limit = (word.size() + 2) / 3;
  std::string nearest;
  size_t least = limit + 1;
  for (const std::string& candidate : words) {
    const size_t distance = EditDistance(word, candidate);
    if (distance >= least) continue;
    nearest = candidate;
    least = distance;
  }
  return nearest;
}

// Returns "; the nearest is WORD", or nothing if no word of `words` is near `word`.
inline std::string NearestHint(std::string_view word, const std::vector<std::string>& words) {
  const std::string nearest = Nearest(word, words);
  return nearest.empty() ? "" : "; the nearest is " + nearest;
}

// Returns the same hint for the option `word`, such as "--algoritm=getrf". `names` have no dashes.
inline std::string NearestOptionHint(std::string_view word, const std::vector<std::string>& names) {
  word.remove_prefix(std::min(word.find_first_not_of('-'), word.size()));
  const std::string nearest = Nearest(word.substr(0, word.find('=')), names);
  return nearest.empty() ? "" : "; the nearest is --" + nearest;
}

}  // namespace crout

#endif  // CROUT_KERNELS_UTIL_NEAREST_H_
