// SPDX-License-Identifier: Apache-2.0

#include "client/cli/options/option_names.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "client/cli/command_line.h"
#include "client/cli/session.h"

namespace crout::cli::cli_option_names_test {
namespace {

// Returns `message`, rewritten by WithOptionNames() for the command line `words`.
std::string Shown(std::vector<std::string> words, const std::string& message) {
  CLI::App app;
  Session session(&app);
  AddCommands(&app, &session);
  std::reverse(words.begin(), words.end());  // the parser expects the last word first
  app.parse(words);
  return WithOptionNames(*app.get_subcommands().front(), message);
}

TEST(OptionNamesTest, FilesTakeThePlaceOfArguments) {
  EXPECT_EQ(Shown({"factor", "-"}, "matrix: 3 x 4 is not square"),
            "standard input: 3 x 4 is not square");
  EXPECT_EQ(Shown({"factor", __FILE__}, "matrix: line 3: no value"),
            std::string(__FILE__) + ": line 3: no value");
  EXPECT_EQ(Shown({"solve", "h", "-"}, "rhs: 3 rows"), "standard input: 3 rows");
  EXPECT_EQ(Shown({"solve", "h", "--ones"}, "rhs: 3 rows"), "rhs: 3 rows");
  EXPECT_EQ(Shown({"factor", "-"}, "the matrix: it is"), "the matrix: it is");
}

TEST(OptionNamesTest, OptionsTakeThePlaceOfMembers) {
  const std::vector<std::string> factor = {"factor", "-"};
  EXPECT_EQ(Shown(factor, "options.factor_dtype: f32"), "--factor-dtype: f32");
  EXPECT_EQ(Shown(factor, "options.precision: leave factor_dtype out"),
            "--precision: leave --factor-dtype out");
  EXPECT_EQ(Shown(factor, "options.parameters.pivot_rule: no."), "--pivot-rule: no.");
  EXPECT_EQ(Shown(factor, "options.parameters.interval_low: 2"), "--interval: 2");
  EXPECT_EQ(Shown(factor, "options.parameters: crout_lu takes no block_size."),
            "the parameters of the method: crout_lu takes no --block-size.");
  EXPECT_EQ(Shown(factor, "cache.request_id: too long"), "--request-id: too long");
  EXPECT_EQ(Shown(factor, "options.solver_hint: no"), "solver hint: no");
  EXPECT_EQ(Shown(factor, "options: no"), "the options: no");
  EXPECT_EQ(Shown({"schur", "-", "--keep=1"}, "header.leading_order: beside header.keep"),
            "--leading-order: beside --keep");
  EXPECT_EQ(Shown({"schur", "-", "--keep=1"}, "cache: leave it out"),
            "--lease and --name: leave it out");
  EXPECT_EQ(Shown({"rref", "-"}, "header.augmented_columns: 5"), "--augmented: 5");
  EXPECT_EQ(Shown({"download", "h", "-o", "p", "--member=3"}, "first: 3: no"), "--member: 3: no");
  EXPECT_EQ(Shown({"solve", "h", "-"}, "send the right-hand sides as batch_rhs"),
            "solve with `solve-batch`");
  EXPECT_EQ(Shown({"solve", "h", "-"}, "options.max_refinement_steps: -1"), "--refine: -1");
  EXPECT_EQ(Shown(factor, "header: 1.5 of crout-order at 127.0.0.1:50051..."),
            "header: 1.5 of crout-order at 127.0.0.1:50051...");
}

}  // namespace
}  // namespace crout::cli::cli_option_names_test
