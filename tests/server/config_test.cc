#include "server/config.h"

#include <cstdlib>
#include <string>
#include <variant>
#include <vector>

#include "gtest/gtest.h"

namespace crout {
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

TEST(ConfigTest, StateGoesWhereTheEnvironmentSays) {
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

}  // namespace
}  // namespace crout
