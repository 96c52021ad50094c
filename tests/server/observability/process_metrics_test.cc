// SPDX-License-Identifier: Apache-2.0

#include "server/observability/metrics/process_metrics.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <string>
#include <thread>

#include "server/observability/metrics/metrics.h"
#include "tests/server/scrape.h"

namespace crout::process_metrics_test {
namespace {

// Fields 3 to 25 of /proc/PID/stat; see proc(5).
constexpr char kAfterName[] =
    " S 1 2 3 0 -1 4194304 100 0 0 0 250 30 0 0 20 0 7 0 123456 8192000 1500 18446744073709551615";

TEST(ProcessStatTest, ReadsTheFieldsBehindAnyName) {
  for (const std::string name : {"croutd", "a b", "x) R 1 2 (y", ")", ""}) {
    const auto stat = ParseProcessStat("42 (" + name + ")" + kAfterName + "\n");
    ASSERT_TRUE(stat.has_value()) << name;
    EXPECT_EQ(stat->cpu_ticks, 280);
    EXPECT_EQ(stat->threads, 7);
    EXPECT_EQ(stat->start_ticks, 123456);
    EXPECT_EQ(stat->virtual_bytes, 8192000);
    EXPECT_EQ(stat->resident_pages, 1500);
  }
}

TEST(ProcessStatTest, MalformedLinesAreRejected) {
  for (const char* text : {"", "42", "42 (croutd", "42 (croutd) S 1 2 3", "42 (croutd) S x"}) {
    EXPECT_FALSE(ParseProcessStat(text).has_value()) << text;
  }
}

double Sample(const std::string& name) { return SampleOf(Metrics({}).Scrape(), name).value_or(-1); }

TEST(ProcessMetricsTest, DescribesThisProcess) {
  EXPECT_GT(Sample("process_resident_memory_bytes"), 1 << 20);
  EXPECT_GT(Sample("process_virtual_memory_bytes"), Sample("process_resident_memory_bytes"));
  EXPECT_GT(Sample("process_virtual_memory_max_bytes"), 0);
  EXPECT_GE(Sample("process_max_fds"), Sample("process_open_fds"));
  const auto now = static_cast<double>(std::time(nullptr));
  EXPECT_LE(Sample("process_start_time_seconds"), now + 1);
  EXPECT_GT(Sample("process_start_time_seconds"), now - 86400);
}

TEST(ProcessMetricsTest, FollowsFilesThreadsAndWork) {
  const double files = Sample("process_open_fds"), threads = Sample("process_threads");
  const double cpu = Sample("process_cpu_seconds_total");
  const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(Sample("process_open_fds"), files + 1);
  close(fd);
  std::thread([&] { EXPECT_EQ(Sample("process_threads"), threads + 1); }).join();
  while (std::clock() < CLOCKS_PER_SEC / 10) {
  }
  EXPECT_GE(Sample("process_cpu_seconds_total"), std::max(cpu, 0.05));
}

}  // namespace
}  // namespace crout::process_metrics_test
