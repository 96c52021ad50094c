// SPDX-License-Identifier: Apache-2.0

#include "tests/bench/crout_bench/cases.h"

#include "kernels/host/device/host_device.h"
#include "kernels/icm/sections.h"
#include "tests/support/status_matchers.h"

namespace crout::bench::cases_test {
namespace {

using ::crout::testing::FailsWith;
using ::testing::ElementsAre;
using ::testing::SizeIs;

const LuAlgorithm& Named(const Device& device, std::string_view name) {
  for (const auto& algorithm : device.algorithms()) {
    if (algorithm->traits().name == name) return *algorithm;
  }
  ADD_FAILURE() << name;
  return *device.algorithms()[0];
}

TEST(CasesTest, ReturnsEverySupportedCombination) {
  const auto device = host::MakeDevice({});
  Options options;
  options.tolerances = {0, 1e-10};
  options.section_sizes = {0, kPublishedSection};
  options.pivotings = {std::nullopt, PivotCriterion{PivotRule::kPartial}};
  EXPECT_THAT(CasesOf(Named(*device, "getrf"), options, 100), SizeIs(1));
  const std::vector<Case> cases = CasesOf(Named(*device, "icmpp"), options, 4156);
  ASSERT_THAT(cases, SizeIs(8));
  EXPECT_EQ(ParametersJson(cases[0]), Json::object());
  EXPECT_EQ(ParametersJson(cases[7]),
            Json({{"pivoting", "partial"}, {"tolerance", 1e-10}, {"section_size", "published"}}));
  EXPECT_EQ(cases[7].parameters.section_size, 416);
}

TEST(CasesTest, ReturnsVariantsOfMethodsThatHaveThem) {
  const auto device = host::MakeDevice({});
  Options options;
  options.variants = {MethodVariant::kFast, MethodVariant::kPublished};
  options.absolute_tolerances = {0, 1e-2};
  EXPECT_THAT(CasesOf(Named(*device, "getrf"), options, 100), SizeIs(1));
  const std::vector<Case> cases = CasesOf(Named(*device, "icmpp"), options, 100);
  ASSERT_THAT(cases, SizeIs(4));
  EXPECT_EQ(ParametersJson(cases[0]), Json::object());
  EXPECT_EQ(ParametersJson(cases[3]),
            Json({{"variant", "published"}, {"absolute_tolerance", 1e-2}}));
}

TEST(CasesTest, ReturnsSupportedBlockSizes) {
  const auto device = host::MakeDevice({});
  Options options;
  options.block_sizes = {0, 8, 128, 4096};
  EXPECT_THAT(CasesOf(Named(*device, "getrf"), options, 100), SizeIs(1));
  const std::vector<Case> blocks = CasesOf(Named(*device, "block_lu"), options, 100);
  ASSERT_THAT(blocks, SizeIs(2));
  EXPECT_EQ(ParametersJson(blocks[1]), Json({{"block_size", 128}}));
  EXPECT_THAT(CasesOf(Named(*device, "icmpp"), options, 100), SizeIs(1));
  options.variants = {MethodVariant::kPublished};
  EXPECT_THAT(CasesOf(Named(*device, "icmpp"), options, 100), SizeIs(2));
}

TEST(CasesTest, ChoosesPlainLoopsOnlyByName) {
  const auto device = host::MakeDevice({});
  const auto none = [](const std::string& name, const absl::Status&) { ADD_FAILURE() << name; };
  for (const LuAlgorithm* algorithm : ChosenAlgorithms(*device, {}, none)) {
    EXPECT_NE(algorithm->name(), "lu_loop");
  }
  const auto chosen = ChosenAlgorithms(*device, {"lu_loop"}, none);
  ASSERT_THAT(chosen, SizeIs(1));
  const auto context = device->CreateContext();
  std::vector<double> a{2, 4, 1, 5};
  std::vector<int64_t> ipiv(2);
  const AnyMatrix matrix = MatrixView<double>{a.data(), 2, 2, 2};
  ASSERT_OK(chosen[0]->Factor(**context, matrix, ipiv.data(), {}, {}, [] { return false; }));
  EXPECT_THAT(a, ElementsAre(2, 2, 1, 3));
  EXPECT_EQ((*context)->report().info, 0);
}

TEST(CasesTest, UsesPublishedSectionSizes) {
  EXPECT_EQ(PublishedSectionSize(558, 32), 256);
  EXPECT_EQ(PublishedSectionSize(4156, 32), 416);
  EXPECT_EQ(PublishedSectionSize(2599, 8), 264);
  EXPECT_EQ(PublishedSectionSize(20000, 16), 1024);
}

TEST(CasesTest, ReportsNamesThatTheDeviceLacks) {
  const auto device = host::MakeDevice({});
  std::vector<std::string> missing;
  const auto chosen = ChosenAlgorithms(*device, {"cmpp", "lu9", "getrf"},
                                       [&](const std::string& name, const absl::Status& status) {
                                         missing.push_back(name);
                                         EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
                                       });
  EXPECT_THAT(missing, ElementsAre("lu9"));
  ASSERT_THAT(chosen, SizeIs(2));
  EXPECT_EQ(chosen[0]->traits().name, "cmpp");
  EXPECT_THAT(ChosenAlgorithms(*device, {}, [](auto&, auto&) {}),
              SizeIs(device->algorithms().size()));
}

TEST(CasesTest, ParsesPivotingRules) {
  ASSERT_OK_AND_ASSIGN(const auto none, ParsePivoting("default"));
  EXPECT_FALSE(none.has_value());
  for (const char* text : {"none", "partial", "interval:1e-06:2", "threshold:0.25"}) {
    ASSERT_OK_AND_ASSIGN(const auto criterion, ParsePivoting(text));
    EXPECT_EQ(FormatPivoting(*criterion), text);
  }
  ASSERT_OK_AND_ASSIGN(const auto interval, ParsePivoting("interval"));
  EXPECT_EQ(FormatPivoting(*interval), "interval:1e-05:100000");
  for (const char* text : {"", "complete", "interval:1", "threshold:x", "threshold:1:2"}) {
    EXPECT_THAT(ParsePivoting(text), FailsWith(absl::StatusCode::kInvalidArgument, text));
  }
}

TEST(CasesTest, ParsesFamilies) {
  ASSERT_OK_AND_ASSIGN(const FamilyOrders family, ParseFamily("thesis:558,1089"));
  EXPECT_EQ(family.family, "thesis");
  EXPECT_THAT(family.orders, ElementsAre(558, 1089));
  for (const char* text : {"thesis", "thesis:", "thesis:0", "thesis:5,", "thesis:x"}) {
    EXPECT_THAT(ParseFamily(text), FailsWith(absl::StatusCode::kInvalidArgument, text));
  }
}

}  // namespace
}  // namespace crout::bench::cases_test
