// SPDX-License-Identifier: Apache-2.0

// Tests croutctl on a terminal: the keys and signals of top, and the confirmation of release --all.
#include <signal.h>

#include "tests/e2e/croutctl/croutctl.h"
#include "tests/e2e/harness/pseudo_terminal.h"

namespace crout::e2e::croutctl_terminal_test {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

// Sequences of the alternate screen.
constexpr char kEnter[] = "\x1b[?1049h";
constexpr char kLeave[] = "\x1b[?25h\x1b[?1049l";

TEST_F(CroutctlTest, QEndsTop) {
  for (const char* key : {"q", "Q", "\x04"}) {
    PseudoTerminal terminal(daemon_.CtlCommand({"top", "--interval=1h"}));
    ASSERT_TRUE(terminal.Shows("q quits"));
    EXPECT_FALSE(terminal.HasLineMode());
    terminal.Type("x");  // has no effect
    terminal.Type(key);
    EXPECT_EQ(terminal.Wait(), 0);
    EXPECT_THAT(terminal.screen(), HasSubstr(kEnter));
    EXPECT_THAT(terminal.screen(), EndsWith(kLeave));
    EXPECT_TRUE(terminal.HasLineMode());
  }
}

TEST_F(CroutctlTest, QEndsTopWhileTheServerIsSilent) {
  PseudoTerminal terminal(daemon_.CtlCommand({"top", "--interval=100ms"}));
  ASSERT_TRUE(terminal.Shows("q quits"));
  daemon_.process().Signal(SIGSTOP);
  absl::SleepFor(absl::Milliseconds(300));  // a call waits for the server
  terminal.Type("q");
  EXPECT_EQ(terminal.Wait(), 0);
  daemon_.process().Signal(SIGCONT);
  EXPECT_TRUE(terminal.HasLineMode());
}

TEST_F(CroutctlTest, SignalsRestoreTheTerminal) {
  for (const int signal : {SIGINT, SIGTERM}) {
    PseudoTerminal terminal(daemon_.CtlCommand({"top"}));
    ASSERT_TRUE(terminal.Shows("q quits"));
    terminal.Signal(signal);
    EXPECT_EQ(terminal.Wait(), 128 + signal);
    EXPECT_THAT(terminal.screen(), EndsWith(kLeave));
    EXPECT_TRUE(terminal.HasLineMode());
  }
  PseudoTerminal terminal(daemon_.CtlCommand({"top"}));
  ASSERT_TRUE(terminal.Shows("q quits"));
  terminal.Type("\x03");  // Control-C
  EXPECT_EQ(terminal.Wait(), 128 + SIGINT);
  EXPECT_TRUE(terminal.HasLineMode());
}

TEST_F(CroutctlTest, ErrorsOfTopFollowTheRestoredTerminal) {
  PseudoTerminal terminal({ProgramPath("croutctl"), "--server=127.0.0.1:1", "top"});
  EXPECT_EQ(terminal.Wait(), 3);
  const size_t left = terminal.screen().find(kLeave);
  ASSERT_NE(left, std::string::npos);
  EXPECT_GT(terminal.screen().find("croutctl: UNREACHABLE"), left);
  EXPECT_TRUE(terminal.HasLineMode());
}

TEST_F(CroutctlTest, TopWithoutATerminalPrintsViewsWithoutSequences) {
  const Finished views = RunInShell({"top", "--interval=100ms"}, "| head -n 20");
  EXPECT_THAT(views.output, HasSubstr("cache  0 factors"));
  EXPECT_THAT(views.output, Not(HasSubstr("\x1b")));
  EXPECT_THAT(views.output, Not(HasSubstr("q quits")));
}

TEST_F(CroutctlTest, ReleaseAllAsksOnATerminal) {
  Factor();
  Factor();
  {
    PseudoTerminal terminal(daemon_.CtlCommand({"release", "--all"}));
    ASSERT_TRUE(terminal.Shows("Release 2 factors on " + daemon_.address() + "? [y/N] "));
    terminal.Type("\n");
    EXPECT_EQ(terminal.Wait(), 1);
    EXPECT_THAT(terminal.screen(), HasSubstr("CANCELLED: no factor was released"));
  }
  EXPECT_EQ(RunJson({"list"})["factors"].size(), 2u);
  {
    PseudoTerminal terminal(daemon_.CtlCommand({"release", "--all"}));
    ASSERT_TRUE(terminal.Shows("[y/N] "));
    terminal.Type("y\n");
    EXPECT_EQ(terminal.Wait(), 0);
    EXPECT_THAT(terminal.screen(), HasSubstr("released  2 of 2 factors"));
  }
  Factor();
  PseudoTerminal terminal(daemon_.CtlCommand({"release", "--all", "--yes"}));
  EXPECT_EQ(terminal.Wait(), 0);
  EXPECT_THAT(terminal.screen(), Not(HasSubstr("[y/N]")));
  EXPECT_EQ(RunJson({"list"})["factors"].size(), 0u);
}

}  // namespace
}  // namespace crout::e2e::croutctl_terminal_test
