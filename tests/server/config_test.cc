// SPDX-License-Identifier: Apache-2.0

#include "server/config.h"

#include <unistd.h>
#include <chrono>

#include <cstdlib>
#include <fstream>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace crout::config_test {
namespace {

std::variant<Config, int> Parse(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "croutd");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  return ParseCommandLine(static_cast<int>(argv.size()), argv.data());
}

TransferLimits Transfer(const std::vector<std::string>& arguments) {
  const auto config = Parse(arguments);
  return std::holds_alternative<Config>(config) ? std::get<Config>(config).limits.transfer
                                                : TransferLimits{.min_rate = 1};
}

TEST(ConfigTest, ZeroAndInfAreNoTimeLimit) {
  for (const std::string none : {"0", "0s", "inf"}) {
    EXPECT_EQ(Transfer({"--upload-idle-timeout=" + none}).idle_timeout, absl::InfiniteDuration());
    EXPECT_EQ(Transfer({"--upload-max-time=" + none}).max_time, absl::InfiniteDuration());
  }
  EXPECT_EQ(Transfer({"--upload-idle-timeout=5s"}).idle_timeout, absl::Seconds(5));
  EXPECT_EQ(Transfer({"--upload-min-rate=128KiB"}).min_rate, size_t{128} << 10);
}

TEST(ConfigTest, TheEnvironmentDeterminesTheStateDirectory) {
  const auto with = [](const char* service, const char* state, const char* home) {
    setenv("STATE_DIRECTORY", service, 1);
    setenv("XDG_STATE_HOME", state, 1);
    setenv("HOME", home, 1);
    return std::get<Config>(Parse({})).state_dir;
  };
  EXPECT_EQ(with("/var/lib/crout:/var/lib/other", "/state", "/home/a"), "/var/lib/crout");
  EXPECT_EQ(with("", "/state", "/home/a"), "/state/crout");
  EXPECT_EQ(with("", "", "/home/a"), "/home/a/.local/state/crout");
  EXPECT_EQ(with("", "", ""), "");
  EXPECT_EQ(std::get<Config>(Parse({"--state-dir=/elsewhere"})).state_dir, "/elsewhere");
  EXPECT_EQ(std::get<Config>(Parse({"--state-dir=none"})).state_dir, "");
}

TEST(ConfigTest, OtherDurationsAreFiniteAndNotNegative) {
  for (const std::string flag : {"default-lease", "max-lease", "drain-grace", "drain-limit"}) {
    for (const std::string bad : {"inf", "1000000000h", "-1s", "-inf", "soon"}) {
      const auto parsed = Parse({"--" + flag + "=" + bad});
      ASSERT_TRUE(std::holds_alternative<int>(parsed)) << flag << " " << bad;
      EXPECT_EQ(std::get<int>(parsed), 2);
    }
  }
  EXPECT_TRUE(std::holds_alternative<int>(Parse({"--upload-idle-timeout=-inf"})));
  const auto parsed = Parse({"--drain-grace=0s"});
  ASSERT_TRUE(std::holds_alternative<Config>(parsed));
  EXPECT_EQ(std::get<Config>(parsed).drain_grace, absl::ZeroDuration());
}

// Returns the error message for `arguments`, or "taken" if the arguments are valid.
std::string Refusal(const std::vector<std::string>& arguments) {
  ::testing::internal::CaptureStderr();
  const auto parsed = Parse(arguments);
  const std::string said = ::testing::internal::GetCapturedStderr();
  const int* const code = std::get_if<int>(&parsed);
  return code == nullptr ? "taken" : *code == 2 ? said : absl::StrCat("exit code ", *code);
}

TEST(ConfigTest, ByteCountsAreFromZeroToInt64Max) {
  using ::testing::HasSubstr;
  for (const std::string flag : {"device-budget", "out-of-core-memory", "host-budget",
                                 "receive-buffers", "call-memory", "upload-min-rate"}) {
    for (const std::string bad : {"-1", "-1KiB", "-18446744073709551615", "9223372036854775808",
                                  "8EiB", "18446744073709551616", "some"}) {
      EXPECT_THAT(Refusal({"--" + flag + "=" + bad}), HasSubstr("--" + flag)) << bad;
    }
    EXPECT_THAT(Refusal({"--" + flag + "=-1"}),
                HasSubstr("-1 is not a size from 0 to 2^63-1 bytes; write it like 8GiB"));
  }
  const auto most = Parse({"--host-budget=9223372036854775807"});
  EXPECT_EQ(std::get<Config>(most).pool.host_budget_bytes, size_t{9223372036854775807});
}

TEST(ConfigTest, UnknownDevicesAreBadUsage) {
  for (const std::string bad : {"foo", "cuda:", "cuda:x", "cuda:-1", "host:0", "-1"}) {
    EXPECT_THAT(Refusal({"--devices=host," + bad}), ::testing::HasSubstr("'" + bad + "'"));
  }
  EXPECT_EQ(std::get<Config>(Parse({"--devices=auto,host,cuda,cuda:0,1"})).devices.size(), 5u);
}

TEST(ConfigTest, GroupsHaveNamesAndRanks) {
  const Config config = std::get<Config>(Parse({"--group=big=host:4,pair=host:2"}));
  ASSERT_EQ(config.groups.size(), 2u);
  EXPECT_EQ(config.groups[0].name, "big");
  EXPECT_EQ(config.groups[0].ranks, 4);
  EXPECT_EQ(config.groups[1].name, "pair");
  const Config gpus = std::get<Config>(Parse({"--group=big=cuda:0,1,2,pair=host:2"}));
  ASSERT_EQ(gpus.groups.size(), 2u);
  EXPECT_THAT(gpus.groups[0].gpus, ::testing::ElementsAre(0, 1, 2));
  EXPECT_EQ(gpus.groups[1].ranks, 2);
  EXPECT_THAT(Refusal({"--group=0,big=host:1"}), ::testing::HasSubstr("'0' is not NAME="));
  EXPECT_THAT(Refusal({"--group=big"}), ::testing::HasSubstr("'big' is not NAME=host:RANKS"));
  EXPECT_THAT(Refusal({"--group=a=host:2,a=host:3"}),
              ::testing::HasSubstr("two groups have the name a"));
}

TEST(ConfigTest, TrustedProxiesAreAddressesAndNetworks) {
  EXPECT_THAT(Refusal({"--trusted-proxies=10.0.0.0/8,proxy"}), ::testing::HasSubstr("'proxy'"));
  const auto parsed = Parse({"--trusted-proxies=10.0.0.0/8,unix"});
  EXPECT_THAT(std::get<Config>(parsed).trusted_proxies,
              ::testing::ElementsAre("10.0.0.0/8", "unix"));
}

TEST(ConfigTest, TheDefaultLeaseIsPositiveAndAtMostTheLongest) {
  for (const std::vector<std::string>& bad : {std::vector<std::string>{"--default-lease=0"},
                                              {"--max-lease=0"},
                                              {"--default-lease=0", "--max-lease=0"},
                                              {"--default-lease=2h", "--max-lease=1h"},
                                              {"--default-lease=1000h"}}) {
    EXPECT_THAT(Refusal(bad), ::testing::HasSubstr("--max-lease")) << bad[0];
  }
  const auto equal = Parse({"--default-lease=2h", "--max-lease=2h"});
  EXPECT_EQ(std::get<Config>(equal).limits.default_lease, absl::Hours(2));
  const auto days = Parse({"--default-lease=1d12h"});
  EXPECT_EQ(std::get<Config>(days).limits.default_lease, absl::Hours(36));
}

TEST(ConfigTest, UnusableSettingsAreRefused) {
  EXPECT_THAT(Refusal({"--receive-buffers=0"}), ::testing::HasSubstr("less than 1MiB"));
  EXPECT_THAT(Refusal({"--memory-fraction=nan"}),
              ::testing::HasSubstr("not a number from 0.01 to 1"));
  EXPECT_THAT(Refusal({"--memory-fraction=1.5"}),
              ::testing::HasSubstr("not a number from 0.01 to 1"));
}

TEST(ConfigTest, UnknownOptionsSuggestTheNearest) {
  EXPECT_THAT(
      Refusal({"--listn=1"}),
      ::testing::HasSubstr("croutd: there is no option '--listn'; the nearest is --listen"));
  EXPECT_THAT(Refusal({"--xyzzy"}), ::testing::Not(::testing::HasSubstr("nearest")));
  EXPECT_THAT(Refusal({"--config=/nope"}),
              ::testing::HasSubstr("/nope cannot be read: No such file or directory"));
}

TEST(ConfigTest, UnknownSettingsAreReportedWithTheirFile) {
  const std::string path = ::testing::TempDir() + "/crout_config_test." + std::to_string(getpid());
  std::ofstream(path) << "max-n = 7\nfrobnicate = 1\n";
  EXPECT_THAT(Refusal({"--config=" + path}),
              ::testing::HasSubstr(path + ": line 2: unknown setting frobnicate"));
  std::ofstream(path) << "# one\n\n [limits]\nmax-n = 7\n";
  EXPECT_THAT(Refusal({"--config=" + path}),
              ::testing::HasSubstr(path + ": line 3: sections are not supported. Remove [limits]"));
  std::ofstream(path) << "max-n = 7\n";
  EXPECT_EQ(std::get<Config>(Parse({"--config=" + path})).limits.max_n, 7);
  setenv("CROUT_CONFIG", path.c_str(), 1);
  EXPECT_EQ(std::get<Config>(Parse({})).limits.max_n, 7);
  unlink(path.c_str());
  EXPECT_THAT(Refusal({}), ::testing::HasSubstr(path));
  unsetenv("CROUT_CONFIG");
  EXPECT_TRUE(std::holds_alternative<Config>(Parse({})));
}

TEST(ConfigTest, SettingsAreCheckedWithoutAServer) {
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(std::get<int>(Parse({"--check-config", "--max-n=7"})), 0);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "croutd: the settings are valid\n");
  EXPECT_THAT(Refusal({"--check-config", "--default-lease=1000h"}),
              ::testing::HasSubstr("--max-lease"));
}

TEST(ConfigTest, DynamicBatchingSetsLimitsAndSchedulers) {
  const Config usual = std::get<Config>(Parse({}));
  EXPECT_EQ(usual.limits.batching_max_order, 128);
  EXPECT_EQ(usual.pool.scheduler.max_batch_jobs, 128);
  EXPECT_EQ(usual.pool.scheduler.max_batch_delay, absl::Microseconds(200));
  const Config set = std::get<Config>(
      Parse({"--batching-max-order=32", "--batching-max-requests=8", "--batching-max-delay=0"}));
  EXPECT_EQ(set.limits.batching_max_order, 32);
  EXPECT_EQ(set.pool.scheduler.max_batch_jobs, 8);
  EXPECT_EQ(set.pool.scheduler.max_batch_delay, absl::ZeroDuration());
  const Config off = std::get<Config>(Parse({"--batching=off"}));
  EXPECT_EQ(off.limits.batching_max_order, 0);
  EXPECT_EQ(off.pool.scheduler.max_batch_jobs, 1);
  EXPECT_THAT(Refusal({"--batching-max-order=0"}), ::testing::HasSubstr("batching-max-order"));
  EXPECT_THAT(Refusal({"--batching-max-requests=0"}),
              ::testing::HasSubstr("batching-max-requests"));
  const Config most = std::get<Config>(Parse({"--batching-max-delay=10ms"}));
  EXPECT_EQ(most.pool.scheduler.max_batch_delay, absl::Milliseconds(10));
  EXPECT_THAT(Refusal({"--batching-max-delay=10001us"}),
              ::testing::HasSubstr("--batching-max-delay: '10001us' is longer than 10ms"));
}

TEST(ConfigTest, WordsAreListedAndMayBeInAnyCase) {
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(std::get<int>(Parse({"--help"})), 0);
  const std::string help = ::testing::internal::GetCapturedStdout();
  for (const char c : help) EXPECT_TRUE(c == '\n' || absl::ascii_isprint(c)) << int{c};
  EXPECT_THAT(help, ::testing::HasSubstr("{debug,error,info,warn}"));
  EXPECT_THAT(Refusal({"--log-level=inof"}),
              ::testing::HasSubstr("none of {debug,error,info,warn}; the nearest is info"));
  const Config config = std::get<Config>(Parse({"--log-level=Warn", "--log-calls=ALL"}));
  EXPECT_EQ(config.log_level, LogLevel::kWarn);
  EXPECT_EQ(config.call_log.calls, LogCalls::kAll);
}

}  // namespace
}  // namespace crout::config_test
