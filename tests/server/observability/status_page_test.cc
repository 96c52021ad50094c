// SPDX-License-Identifier: Apache-2.0

#include "server/observability/status/status_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/observability/status/html_writer.h"
#include "server/observability/status/recent_work.h"
#include "tests/support/timing/failpoints.h"

namespace crout::status_page_test {
namespace {

using crout::testing::Failpoints;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr char kHostile[] = "</td><script>alert(1)</script>&\"'\x01\xff";
constexpr char kHarmless[] = "&lt;/td&gt;&lt;script&gt;alert(1)&lt;/script&gt;&amp;&quot;&#39;??";

TEST(HtmlWriterTest, UntrustedTextIsEscaped) {
  EXPECT_EQ(EscapeHtml(kHostile), kHarmless);
  EXPECT_EQ(EscapeHtml(std::string(1000, '<')).size(), 4 * kMaxTextBytes + 3);
  HtmlWriter page;
  page.Open("p", {{"title", kHostile}});
  page.Text(kHostile);
  page.Empty("br");
  page.Close();
  EXPECT_EQ(page.Take(),
            std::string("<p title=\"") + kHarmless + "\">" + kHarmless + "<br /></p>\n");
}

OpenCall OpenCallOf(const std::string& text) {
  OpenCall call;
  call.tenant = text;
  call.device = text;
  return call;
}

EndedCall EndedCallOf(const std::string& text) {
  EndedCall call;
  call.tenant = text;
  call.algorithm = text;
  call.device = text;
  return call;
}

StatusView SmallView() {
  StatusView view;
  view.version = "0.1.0";
  view.now = absl::FromUnixSeconds(1'800'000'000);
  view.uptime = absl::Hours(3);
  view.ready = true;
  view.devices = {{"cuda:0", "NVIDIA H100"}, {"host", "a processor"}};
  view.queue_capacity = 256;
  view.state.devices.resize(2);
  view.state.devices[0].queue_depth = 3;
  view.state.devices[0].streams = 4;
  view.state.devices[0].streams_busy = 4;
  view.state.devices[1].healthy = false;
  view.state.cache = {TierState{.entries = 7, .bytes = 3 << 20}, TierState{}};
  return view;
}

TEST(StatusPageTest, DevicesQueueAndCache) {
  const std::string page = RenderStatusPage(SmallView());
  EXPECT_THAT(page, StartsWith("<!DOCTYPE html>\n<html lang=\"en\">"));
  EXPECT_THAT(page, EndsWith("</html>\n"));
  EXPECT_THAT(page, AllOf(HasSubstr("croutd 0.1.0"), HasSubstr("up 3 h 0 min"),
                          HasSubstr("2027-01-15 08:00:00 UTC"), HasSubstr(">ready<")));
  EXPECT_THAT(page, AllOf(HasSubstr("NVIDIA H100"), HasSubstr(">fenced<"), HasSubstr("4 of 4 busy"),
                          HasSubstr("3 of 256 places used"), HasSubstr("3.00 MiB")));
  EXPECT_THAT(page, HasSubstr("No iterative method has run yet."));
}

TEST(StatusPageTest, ReadingsOfTheDriver) {
  StatusView view = SmallView();
  EXPECT_THAT(RenderStatusPage(view), Not(HasSubstr("GPU: ")));
  GpuReading& gpu = view.state.devices[0].gpu.emplace();
  gpu.compute_utilization = 0.75;
  gpu.power_watts = 412.4;
  gpu.temperature_celsius = 61;
  gpu.last_xid = 0;
  gpu.age_seconds = 0.5;
  EXPECT_THAT(RenderStatusPage(view), HasSubstr("GPU: 75 % busy, 412 W, 61 &#176;C; 500 ms ago."));
  gpu.last_xid = 79;
  gpu.ecc_uncorrected = 2;
  EXPECT_THAT(RenderStatusPage(view), HasSubstr("2 uncorrected memory errors, last Xid error 79;"));
}

TEST(StatusPageTest, ThePageLoadsNoResourcesAndRunsNoScripts) {
  const std::string page = RenderStatusPage(SmallView());
  for (const char* foreign :
       {"<script", "<link", "<img", "http://", "https://", "url(", "@import"}) {
    EXPECT_THAT(page, Not(HasSubstr(foreign)));
  }
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  EXPECT_THAT(page, HasSubstr("prefers-color-scheme: dark"));
}

TEST(StatusPageTest, ADrainIsShown) {
  StatusView view = SmallView();
  view.ready = false;
  EXPECT_THAT(RenderStatusPage(view),
              AllOf(HasSubstr("<title>(not ready) croutd</title>"), HasSubstr(">not ready<")));
}

TEST(StatusPageTest, TextFromCallersIsEscaped) {
  StatusView view = SmallView();
  view.calls_in_flight = 1;
  view.open_calls.push_back(OpenCallOf(kHostile));
  view.slow_calls.push_back(EndedCallOf(kHostile));
  view.devices[0].description = kHostile;
  view.last_run.emplace();
  view.last_run->algorithm = kHostile;
  const std::string page = RenderStatusPage(view);
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, HasSubstr(kHarmless));
}

TEST(StatusPageTest, OpenCallsTheOldestAndHowManyMore) {
  StatusView view = SmallView();
  view.calls_in_flight = 5000;
  view.open_calls.push_back({.id = 17,
                             .method = Method::kSolve,
                             .tenant = "alice",
                             .phase = "queue",
                             .device = "cuda:0",
                             .received_bytes = 2048,
                             .seconds = 1.5});
  EXPECT_THAT(RenderStatusPage(view),
              AllOf(HasSubstr(">17<"), HasSubstr(">Solve<"), HasSubstr(">queue<"),
                    HasSubstr(">alice<"), HasSubstr(">2.00 KiB<"), HasSubstr(">1.50 s<"),
                    HasSubstr("And 4999 more recent calls.")));
}

TEST(StatusPageTest, SlowCallsWithTheirPhases) {
  StatusView view = SmallView();
  EndedCall call;
  call.code = absl::StatusCode::kDeadlineExceeded;
  call.algorithm = "icmpp";
  call.n = 12000;
  call.seconds = 20;
  call.ended = view.now - absl::Seconds(90);
  call.phases[static_cast<size_t>(JobPhase::kQueue)] = 5;
  call.phases[static_cast<size_t>(JobPhase::kFactor)] = 15;
  view.slow_calls.push_back(call);
  EXPECT_THAT(RenderStatusPage(view),
              AllOf(HasSubstr("<i class=\"p1\" style=\"width:25%\" title=\"queue 5 s\">"),
                    HasSubstr("<i class=\"p4\" style=\"width:75%\" title=\"factor 15 s\">"),
                    HasSubstr(">factor, 15.0 s<"), HasSubstr(">DEADLINE_EXCEEDED<"),
                    HasSubstr(">12,000<"), HasSubstr(">90.0 s ago<")));
}

IterationReport Report(int64_t sections) {
  IterationReport report;
  report.section_size = 32;
  report.sections = sections;
  report.sweeps.assign(static_cast<size_t>(sections * sections), 1);
  return report;
}

TEST(StatusPageTest, HeatMapOfASmallRunHasARectangleForEachLevelInARow) {
  IterationReport report = Report(3);
  report.sweeps = {5, 1, 1, 1, 5, 2, 1, 1, 5};  // column by column
  StatusView view = SmallView();
  view.last_run = PoolIterations(report);
  view.last_run->algorithm = "icm";
  const std::string page = RenderStatusPage(view);
  EXPECT_THAT(page, HasSubstr("viewBox=\"0 0 3 3\""));
  EXPECT_THAT(page, HasSubstr("<rect class=\"h6\" x=\"0\" y=\"0\" width=\"1\" height=\"1\" />"
                              "<rect class=\"h0\" x=\"1\" y=\"0\" width=\"2\" height=\"1\" />"
                              "<rect class=\"h0\" x=\"0\" y=\"1\" width=\"1\" height=\"1\" />"));
  EXPECT_THAT(page, HasSubstr("<rect class=\"h1\" x=\"1\" y=\"2\" width=\"1\" height=\"1\" />"));
  EXPECT_THAT(page, HasSubstr("3 by 3 sections of order 32"));
  EXPECT_THAT(page, Not(HasSubstr("Each cell shows")));
}

// Every part of the page has a limited size, whatever callers send.
TEST(StatusPageTest, SizeIsBounded) {
  StatusView view = SmallView();
  const std::string longest(4096, '&');
  view.calls_in_flight = 20;
  view.open_calls.assign(20, OpenCallOf(longest));
  view.slow_calls.assign(RecentWork::kSlowCalls, EndedCallOf(longest));
  IterationReport report = Report(1000);
  for (size_t i = 0; i < report.sweeps.size(); ++i) report.sweeps[i] = i / 37 % 100;
  view.last_run = PoolIterations(report);
  EXPECT_LT(RenderStatusPage(view).size(), size_t{256} << 10);
}

TEST(RecentWorkTest, ACellHoldsTheMostSweepsOfItsSections) {
  IterationReport report = Report(100);
  report.sweeps[99 + 100 * 3] = 40;  // section (99, 3)
  report.sweeps[98 + 100 * 3] = 20;
  const IterationRun run = PoolIterations(report);
  ASSERT_EQ(run.side, IterationRun::kSide);
  ASSERT_THAT(run.cells, SizeIs(IterationRun::kSide * IterationRun::kSide));
  EXPECT_EQ(run.cells[31 + 32 * 0], 40);
  EXPECT_EQ(run.cells[0 + 32 * 31], 1);
}

TEST(RecentWorkTest, ARunWithoutCountsHasNoCells) {
  IterationReport report = Report(4);
  report.sweeps.clear();
  EXPECT_THAT(PoolIterations(report).cells, SizeIs(0));
}

std::vector<double> SecondsOf(const RecentWork& work) {
  std::vector<double> seconds;
  for (const EndedCall& call : work.SlowCalls()) seconds.push_back(call.seconds);
  return seconds;
}

TEST(RecentWorkTest, KeepsTheSlowestCallsOfTheLastHour) {
  Failpoints failpoints;  // controls the clock
  RecentWork work;
  int described = 0;
  const auto end = [&](double seconds) {
    work.Ended(seconds, [&] {
      ++described;
      return EndedCall{};
    });
  };
  for (size_t i = 0; i < RecentWork::kSlowCalls; ++i) end(2);
  end(1);
  EXPECT_EQ(described, RecentWork::kSlowCalls) << "others cost nothing";
  end(3);
  EXPECT_THAT(SecondsOf(work), SizeIs(RecentWork::kSlowCalls));
  EXPECT_EQ(SecondsOf(work).front(), 3);
  failpoints.Advance(absl::Minutes(61));
  EXPECT_THAT(work.SlowCalls(), SizeIs(0));
  end(0.5);
  end(0.75);
  EXPECT_THAT(SecondsOf(work), ElementsAre(0.75, 0.5)) << "the older ones take no room";
}

TEST(RecentWorkTest, TheNewestRunIsKept) {
  RecentWork work;
  EXPECT_FALSE(work.run());
  IterationRun run;
  for (run.n = 1; run.n <= 2; ++run.n) work.SetRun(run);
  EXPECT_EQ(work.run()->n, 2);
}

}  // namespace
}  // namespace crout::status_page_test
