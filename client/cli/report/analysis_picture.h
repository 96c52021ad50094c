// SPDX-License-Identifier: Apache-2.0

// A picture of the analysis of a sparse matrix, as SVG.
#ifndef CROUT_CLIENT_CLI_REPORT_ANALYSIS_PICTURE_H_
#define CROUT_CLIENT_CLI_REPORT_ANALYSIS_PICTURE_H_

#include <string>

#include "kernels/sparse/analysis.h"
#include "kernels/sparse_view.h"

namespace crout::cli {

// Draws the pattern of `a`, the pattern of L and U in the order of elimination, and the tree of
// fronts of `analysis`, which is the analysis of `a`. For a structurally singular matrix, draws its
// pattern alone. Indices in the picture are 1-based, as in Matrix Market files. `name`: the title.
//
// Matrices above order 300 are drawn as 300 x 300 cells. A cell is darker if more of its elements
// are nonzero, on a logarithmic scale. In L and U a cell is blue if at least half of its nonzeros
// are entries of `a`, otherwise orange. In the tree a front covers the columns of its subtree.
std::string AnalysisPicture(const std::string& name, const AnySparse& a, const Analysis& analysis);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_REPORT_ANALYSIS_PICTURE_H_
