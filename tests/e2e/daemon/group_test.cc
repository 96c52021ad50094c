// SPDX-License-Identifier: Apache-2.0

// Tests a daemon with a group of ranks, and its end by signals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "kernels/util/helper_program.h"
#include "server/auth/token.h"
#include "tests/e2e/harness/certificates.h"
#include "tests/e2e/harness/daemon.h"
#include "tests/server/groups/fake_gpu/fake_gpus.h"
#include "tests/support/status_matchers.h"

namespace crout::e2e::group_test {
namespace {

using ::crout::testing::FailsWith;

constexpr int kRanks = 2;
constexpr double kRoundoff = 1.1e-16;  // float64

// A process, as the system reports it.
struct ProcessState {
  std::string name;
  char state = 'X';
  pid_t parent = 0;
};

std::optional<ProcessState> StateOf(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const size_t open = text.find('(');
  const size_t close = text.rfind(") ");
  if (open == std::string::npos || close == std::string::npos) return std::nullopt;
  const std::vector<std::string> fields = absl::StrSplit(text.substr(close + 2), ' ');
  ProcessState state{.name = text.substr(open + 1, close - open - 1), .state = fields[0][0]};
  if (!absl::SimpleAtoi(fields[1], &state.parent)) return std::nullopt;
  return state;
}

// A process that has ended may still have an entry, until its parent has read its status.
bool IsAlive(pid_t pid) {
  const std::optional<ProcessState> state = StateOf(pid);
  return state && state->state != 'Z' && state->state != 'X';
}

// Returns the children of `parent` that run, with theirs.
std::vector<pid_t> DescendantsOf(pid_t parent) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    pid_t pid = 0;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &pid) || !IsAlive(pid)) continue;
    const std::optional<ProcessState> state = StateOf(pid);
    if (!state || state->parent != parent) continue;
    found.push_back(pid);
    const std::vector<pid_t> below = DescendantsOf(pid);
    found.insert(found.end(), below.begin(), below.end());
  }
  return found;
}

// Returns the folder of a daemon's group, from the command line of one of its processes; empty if
// no process has it.
std::filesystem::path FolderOf(const std::vector<pid_t>& processes) {
  for (const pid_t pid : processes) {
    std::ifstream file(absl::StrCat("/proc/", pid, "/cmdline"));
    for (std::string argument; std::getline(file, argument, '\0');) {
      absl::string_view socket = argument;
      if (absl::ConsumePrefix(&socket, "--join=unix:")) {
        return std::filesystem::path(std::string(socket)).parent_path();
      }
    }
  }
  return {};
}

class GroupTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (FindHelperProgram("crout-rank").empty()) GTEST_SKIP() << "crout-rank is not built";
    StartDaemon(absl::StrCat("pair=host:", kRanks));
  }

  void StartDaemon(const std::string& group) {
    daemon_ = std::make_unique<Daemon>(std::vector<std::string>{"--group=" + group});
    client_ = daemon_->NewClient();
  }

  std::vector<pid_t> Ranks() {
    std::vector<pid_t> ranks;
    for (const pid_t pid : DescendantsOf(daemon_->process().pid())) {
      if (const auto state = StateOf(pid); state && state->name == "crout-rank") {
        ranks.push_back(pid);
      }
    }
    return ranks;
  }

  // Returns a matrix that differs for each order, with entries in (-1, 1).
  static std::vector<double> MatrixOf(int64_t n) {
    std::vector<double> a(static_cast<size_t>(n * n));
    uint64_t bits = static_cast<uint64_t>(n);
    for (double& entry : a) {
      bits = bits * 6364136223846793005u + 1442695040888963407u;
      entry = static_cast<double>(static_cast<int64_t>(bits)) / 9.3e18;
    }
    return a;
  }
  absl::StatusOr<FactorDescription> Factor(int64_t n, const std::string& device,
                                           Algorithm algorithm = Algorithm::kAuto) {
    const std::vector<double> a = MatrixOf(n);
    FactorOptions options;
    options.device = device;
    options.algorithm = algorithm;
    return client_->Factor(MatrixSource::Dense(absl::MakeConstSpan(a), n, n), options);
  }
  absl::StatusOr<SolveResult> Solve(const std::string& handle, int64_t n,
                                    Solver solver = Solver::kAuto) {
    const std::vector<double> b(static_cast<size_t>(n), 1.0);
    SolveOptions options;
    options.solver = solver;
    BufferSink x;
    return client_->Solve(handle, MatrixSource::Dense(absl::MakeConstSpan(b), n, 1), options, &x);
  }

  std::unique_ptr<Daemon> daemon_;
  std::unique_ptr<Client> client_;
};

// Such a daemon hides its entry in /proc from other processes of its user.
TEST_F(GroupTest, ADaemonWithIdentitiesSharesMemoryWithItsRanks) {
  const TempDir files;
  const std::string identities = files.File("identities");
  WriteFile(identities, absl::StrCat("[ann]\ntenants = a\nroles = factor\ntoken = ",
                                     FormatTokenHash(HashToken("ann")), "\n"));
  ASSERT_EQ(chmod(identities.c_str(), 0600), 0);
  // The start includes a factorization by the ranks.
  const Daemon daemon({"--identities=" + identities, "--group=pair=host:2"});
  EXPECT_TRUE(daemon.Logs({"group_formed"}));
}

TEST_F(GroupTest, SolvesAsAccuratelyAsTheHost) {
  for (const int64_t n : {500, 3000}) {
    SCOPED_TRACE(n);
    const auto factor = Factor(n, "group:pair");
    ASSERT_OK(factor);
    EXPECT_EQ(factor->device, "group:pair");
    EXPECT_EQ(factor->algorithm, Algorithm::kScalapack);
    const auto solved = Solve(factor->handle, n);
    ASSERT_OK(solved);
    EXPECT_EQ(solved->solver, Solver::kScalapack);
    const auto on_host = Factor(n, "host");
    ASSERT_OK(on_host);
    const auto expected = Solve(on_host->handle, n);
    ASSERT_OK(expected);
    // Errors of different block sizes differ by a small factor.
    EXPECT_LE(*solved->backward_error, 8 * *expected->backward_error + kRoundoff);
    EXPECT_OK(client_->Release(factor->handle));
    EXPECT_OK(client_->Release(on_host->handle));
  }
  // Without a name, jobs that fit run on the host.
  EXPECT_EQ(Factor(100, "")->device, "host");
}

TEST_F(GroupTest, FactorsSparseMatricesWithMumps) {
  // A line of points.
  constexpr int32_t kN = 2000;
  std::vector<double> values;
  std::vector<int32_t> rows, columns;
  for (int32_t i = 0; i < kN; ++i) {
    for (int32_t j = std::max(0, i - 1); j <= std::min(kN - 1, i + 1); ++j) {
      rows.push_back(i);
      columns.push_back(j);
      values.push_back(i == j ? 2.5 : j < i ? -1.2 : -0.8);
    }
  }
  FactorOptions options;
  options.device = "group:pair";
  options.algorithm = Algorithm::kMumps;
  const auto factor = client_->Factor(
      MatrixSource::Coordinates(absl::MakeConstSpan(values), absl::MakeConstSpan(rows),
                                absl::MakeConstSpan(columns), kN, kN),
      options);
  if (absl::IsUnimplemented(factor.status())) GTEST_SKIP() << factor.status();
  ASSERT_OK(factor);
  EXPECT_EQ(factor->algorithm, Algorithm::kMumps);
  const auto solved = Solve(factor->handle, kN);
  ASSERT_OK(solved);
  EXPECT_EQ(solved->solver, Solver::kMumps);
  EXPECT_LE(*solved->backward_error, 16 * kRoundoff);
  EXPECT_THAT(client_->DownloadSparse(factor->handle),
              FailsWith(absl::StatusCode::kFailedPrecondition, ""));
}

TEST_F(GroupTest, FactorsOnGpusWithCusolvermp) {
  const testing::FakeGpus gpus;
  StartDaemon("gpus=cuda:0,1");
  constexpr int64_t kN = 301;
  const auto factor = Factor(kN, "group:gpus", Algorithm::kCusolvermp);
  ASSERT_OK(factor);
  EXPECT_EQ(factor->device, "group:gpus");
  EXPECT_EQ(factor->algorithm, Algorithm::kCusolvermp);
  const auto solved = Solve(factor->handle, kN, Solver::kCusolvermp);
  ASSERT_OK(solved);
  EXPECT_EQ(solved->solver, Solver::kCusolvermp);
  EXPECT_LE(*solved->backward_error, 100 * kRoundoff);
  EXPECT_GT(gpus.Calls("cusolverMpGetrf"), 0);

  const std::vector<pid_t> ranks = Ranks();
  ASSERT_EQ(ranks.size(), 2u);
  kill(ranks[0], SIGKILL);
  EXPECT_TRUE(Eventually([&] { return !IsAlive(ranks[1]); }));
  // The factor is in the memory of the daemon, which starts other ranks.
  EXPECT_TRUE(Eventually([&] { return Solve(factor->handle, kN, Solver::kCusolvermp).ok(); }));
}

TEST_F(GroupTest, StoppedRankEndsTheCallAndTheNextOneSucceeds) {
  const std::vector<pid_t> ranks = Ranks();
  ASSERT_EQ(ranks.size(), static_cast<size_t>(kRanks));
  kill(ranks[1], SIGSTOP);
  EXPECT_THAT(Factor(300, "group:pair"),
              FailsWith(absl::StatusCode::kUnavailable, "group:pair was lost"));
  EXPECT_TRUE(Eventually([this] {
    return absl::StrContains(daemon_->ScrapeMetrics(),
                             "crout_rejected_total{reason=\"group_lost\"} 1");
  }));
  EXPECT_OK(Factor(300, "group:pair"));
  for (const pid_t pid : ranks) EXPECT_FALSE(IsAlive(pid)) << pid;
}

TEST_F(GroupTest, NothingSurvivesTheDaemon) {
  for (const int signal : {SIGKILL, SIGTERM}) {
    SCOPED_TRACE(signal);
    const std::vector<pid_t> processes = DescendantsOf(daemon_->process().pid());
    ASSERT_GE(processes.size(), static_cast<size_t>(kRanks + 1)) << "the ranks and mpirun";
    const std::filesystem::path folder = FolderOf(processes);
    ASSERT_TRUE(std::filesystem::exists(folder)) << folder;
    kill(Ranks().front(), SIGSTOP);
    daemon_->process().Signal(signal);
    ASSERT_TRUE(daemon_->process().Wait().has_value());
    for (const pid_t pid : processes) {
      EXPECT_TRUE(Eventually([pid] { return !IsAlive(pid); })) << pid;
    }
    SetUp();  // removes the folder of a killed daemon
    EXPECT_FALSE(std::filesystem::exists(folder)) << folder;
  }
}

// A daemon with TLS and identities, and a group that agents on this machine join.
class JoinedGroupTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (FindHelperProgram("crout-rank").empty()) GTEST_SKIP() << "crout-rank is not built";
    MakeAuthority(files_, "ca");
    MakeCertificate(files_, "server", "ca");
    std::string identities;
    for (const char* role : {"rank", "factor"}) {
      WriteFile(files_.File(role), role);  // the token of the role
      absl::StrAppend(&identities, "[", role, "]\ntenants = a\nroles = ", role,
                      "\ntoken = ", FormatTokenHash(HashToken(role)), "\n");
    }
    WriteFile(files_.File("identities"), identities);
    ASSERT_EQ(chmod(files_.File("identities").c_str(), 0600), 0);
    StartDaemon("127.0.0.1:0");
    ASSERT_TRUE(daemon_->Logs({"group_listening"}));
    const std::string log = daemon_->process().Errors();
    constexpr char kAddress[] = "address=\"";
    const size_t begin = log.find(kAddress, log.find("group_listening")) + sizeof kAddress - 1;
    address_ = log.substr(begin, log.find('"', begin) - begin);
  }

  void StartDaemon(const std::string& address) {
    daemon_ = std::make_unique<Daemon>(std::vector<std::string>{
        "--tls-cert=" + files_.File("server.crt"), "--tls-key=" + files_.File("server.key"),
        "--identities=" + files_.File("identities"), "--group=far=join:2@" + address});
  }

  // Returns the command of an agent with the token in `token_file`.
  std::vector<std::string> AgentCommand(const std::string& token_file) {
    std::vector<std::string> command = {FindHelperProgram("crout-rank"),
                                        "--join=" + address_,
                                        "--group=far",
                                        "--ranks=2",
                                        "--network=127.0.0.0/8",
                                        "--tls",
                                        "--ca=" + files_.File("ca.crt")};
    if (!token_file.empty()) command.push_back("--token-file=" + files_.File(token_file));
    return command;
  }

  const TempDir files_;
  std::string address_;
  std::unique_ptr<Daemon> daemon_;
};

TEST_F(JoinedGroupTest, RefusesIdentitiesWithoutTheRole) {
  const Finished unknown = RunToEnd(AgentCommand(""));
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_THAT(unknown.errors, ::testing::HasSubstr("the call has no credentials"));
  const Finished factor = RunToEnd(AgentCommand("factor"));
  EXPECT_EQ(factor.exit_code, 1);
  EXPECT_THAT(factor.errors, ::testing::HasSubstr("'factor' may not join a group"));
}

TEST_F(JoinedGroupTest, AgentsSendNoTokenToOtherMachinesWithoutTls) {
  for (const char* address : {"127.example.org:1", "localhost.example.org:1", "192.0.2.1:1"}) {
    SCOPED_TRACE(address);
    const Finished agent =
        RunToEnd({FindHelperProgram("crout-rank"), absl::StrCat("--join=", address), "--group=far",
                  "--token-file=" + files_.File("rank")});
    EXPECT_EQ(agent.exit_code, 1);
    EXPECT_THAT(agent.errors, ::testing::HasSubstr("--token-file needs --tls"));
  }
}

TEST_F(JoinedGroupTest, RanksEndWithTheDaemonAndJoinTheNextOne) {
  Process agent(AgentCommand("rank"));
  ASSERT_TRUE(daemon_->Logs({"group_formed"})) << agent.Errors();
  const std::vector<pid_t> processes = DescendantsOf(agent.pid());
  ASSERT_GE(processes.size(), 4u) << "mpirun, orted and the ranks";
  daemon_->process().Signal(SIGKILL);
  ASSERT_TRUE(daemon_->process().Wait().has_value());
  for (const pid_t pid : processes) {
    EXPECT_TRUE(Eventually([pid] { return !IsAlive(pid); })) << pid;
  }
  EXPECT_TRUE(agent.running()) << agent.Errors();
  StartDaemon(address_);
  EXPECT_TRUE(daemon_->Logs({"group_formed"})) << agent.Errors();
}

TEST_F(JoinedGroupTest, AStoppedDaemonLosesItsRanks) {
  const Process agent(AgentCommand("rank"));
  ASSERT_TRUE(daemon_->Logs({"group_formed"})) << agent.Errors();
  const std::vector<pid_t> processes = DescendantsOf(agent.pid());
  daemon_->process().Signal(SIGSTOP);
  for (const pid_t pid : processes) {
    EXPECT_TRUE(Eventually([pid] { return !IsAlive(pid); })) << pid;
  }
  daemon_->process().Signal(SIGCONT);
  EXPECT_TRUE(Eventually([&] { return DescendantsOf(agent.pid()).size() >= processes.size(); }));
}

TEST_F(JoinedGroupTest, KilledAgentLeavesNoProcess) {
  const Process agent(AgentCommand("rank"));
  ASSERT_TRUE(daemon_->Logs({"group_formed"})) << agent.Errors();
  const std::vector<pid_t> processes = DescendantsOf(agent.pid());
  agent.Signal(SIGKILL);
  for (const pid_t pid : processes) {
    EXPECT_TRUE(Eventually([pid] { return !IsAlive(pid); })) << pid;
  }
  EXPECT_TRUE(daemon_->Logs({"group_lost"}));
}

// An exit code shows that the agent handles the signal, which the first process of a container
// would ignore otherwise.
TEST_F(JoinedGroupTest, AgentEndsWithItsProcessesOnSigterm) {
  Process agent(AgentCommand("rank"));
  ASSERT_TRUE(daemon_->Logs({"group_formed"})) << agent.Errors();
  const std::vector<pid_t> processes = DescendantsOf(agent.pid());
  agent.Signal(SIGTERM);
  EXPECT_EQ(agent.Wait(), 0);
  for (const pid_t pid : processes) {
    EXPECT_TRUE(Eventually([pid] { return !IsAlive(pid); })) << pid;
  }
}

}  // namespace
}  // namespace crout::e2e::group_test
