// SPDX-License-Identifier: Apache-2.0

// Tests a group of four ranks on two "machines" that join, without shared memory.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <array>
#include <chrono>
#include <complex>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "crout/rank/v1/rank_service.grpc.pb.h"
#include "crout_version.h"
#include "server/engine/error.h"
#include "tests/server/groups/group_under_test.h"
#include "tests/server/groups/sparse_runner.h"
#include "tests/server/groups/two_machines.h"
#include "tests/support/matrices/gallery.h"
#include "tests/support/ratios.h"
#include "tests/support/timing/eventually.h"

namespace crout::testing::join_test {
namespace {

namespace v1 = rank::v1;

constexpr int kMachines = 2;
constexpr int kRanks = 4;
constexpr int64_t kN = 300;
// A job asks a few times whether it must stop before its ranks start, and all the time while it
// waits for them.
constexpr int kPollsOfRunningJob = 20;
using Clock = std::chrono::steady_clock;
using std::chrono::seconds;
// Six seconds, and two more for a busy machine.
constexpr seconds kFound{8};
constexpr seconds kFormsAgain{30};

class JoinTest : public ::testing::Test {
 public:
  static void SetUpTestSuite() {
    if (FindHelperProgram("crout-rank").empty()) return;
    machines_ = TwoMachines::Create().release();
    if (machines_ == nullptr) return;
    auto device = MakeGroupDevice({.name = "test", .ranks = kRanks, .join = machines_->address()},
                                  host::MakeExecutor(2));
    ASSERT_OK(device);
    device_ = device->release();
    for (int i = 0; i < kMachines; ++i) StartAgent(i);
  }
  static void TearDownTestSuite() {
    for (auto& agent : agents_) agent.reset();
    delete std::exchange(device_, nullptr);
    delete std::exchange(machines_, nullptr);
  }

 protected:
  void SetUp() override {
    if (FindHelperProgram("crout-rank").empty()) GTEST_SKIP() << "crout-rank is not built";
    if (machines_ == nullptr) {
      GTEST_SKIP() << "no network namespaces: they need root and the command ip (iproute2)";
    }
    ASSERT_NE(device_, nullptr);
    AwaitGroup();
  }

  static std::vector<std::string> AgentCommand(int i, const std::string& group = "test") {
    return {"ip",
            "netns",
            "exec",
            machines_->Name(i),
            FindHelperProgram("crout-rank"),
            absl::StrCat("--join=", machines_->address()),
            absl::StrCat("--group=", group),
            "--ranks=2",
            absl::StrCat("--network=", machines_->network())};
  }
  static void StartAgent(int i) { agents_[i] = std::make_unique<ChildProcess>(AgentCommand(i)); }

  static GroupDevice& device() { return *device_; }
  static RankGroup& group() { return device_->group(); }
  static FactorRequest Scalapack() {
    FactorRequest request;
    request.algorithm = "scalapack";
    return request;
  }

  void AwaitGroup() {
    ASSERT_TRUE(Eventually([this] { return !(pids_ = group().pids()).empty(); }));
    ASSERT_EQ(pids_.size(), static_cast<size_t>(kRanks));
  }

  std::future<absl::Status> StartFactor(std::function<bool()> stop = [] { return false; }) {
    return std::async(std::launch::async, [stop = std::move(stop)] {
      JobRunner runner(device());
      return runner.Factor(RandomMatrix(kN, kN, 1), kN, Scalapack(), stop).status();
    });
  }
  // Starts a factorization that cannot end, because rank 3 is stopped, and waits until it runs.
  std::future<absl::Status> StartStandingFactor() {
    kill(pids_[3], SIGSTOP);
    auto running = std::make_shared<std::promise<void>>();
    std::future<absl::Status> job = StartFactor([running, polls = 0]() mutable {
      if (++polls == kPollsOfRunningJob) running->set_value();
      return false;
    });
    EXPECT_EQ(running->get_future().wait_for(kFormsAgain), std::future_status::ready);
    return job;
  }

  static void ExpectLost(const absl::Status& status) {
    EXPECT_THAT(status, FailsWith(absl::StatusCode::kUnavailable, "group:test was lost"));
    EXPECT_EQ(ReasonOf(status), kReasonGroupLost);
    EXPECT_TRUE(RetryAfterOf(status));
  }
  // Expects that the processes of the formation end, and that a new one works.
  void ExpectFormsAgain() {
    const Clock::time_point start = Clock::now();
    const std::vector<pid_t> old = pids_;
    ASSERT_TRUE(Eventually([&] {
      pids_ = group().pids();
      return !pids_.empty() && pids_ != old;
    }));
    EXPECT_LT(Clock::now() - start, kFormsAgain);
    for (const pid_t pid : old) {
      EXPECT_TRUE(Eventually([pid] { return !IsAlive(pid); })) << pid;
    }
    JobRunner runner(device());
    EXPECT_OK(runner.Factor(RandomMatrix(kN, kN, 2), kN, Scalapack()));
  }

  static inline TwoMachines* machines_ = nullptr;
  static inline GroupDevice* device_ = nullptr;
  static inline std::array<std::unique_ptr<ChildProcess>, kMachines> agents_;
  std::vector<pid_t> pids_;
};

TEST_F(JoinTest, FactorsAndSolvesDenseMatrices) {
  JobRunner runner(device());
  for (const int64_t n : {1, 65, 200, 1000}) {
    SCOPED_TRACE(n);
    const HostMatrix a = RandomMatrix(n, n, 1);
    ASSERT_OK_AND_ASSIGN(const Factorization factor, runner.Factor(a, n, Scalapack()));
    ASSERT_OK_AND_ASSIGN(const HostFactor lu, runner.Download(factor));
    EXPECT_LT(FactorRatio(a, n, lu.lu, lu.ipiv, UnitDiagonal::kL, DType::kFloat64), kThreshold);
    const HostMatrix b = RandomMatrix(n, 70, 3);
    for (const Op op : kOps) {
      ASSERT_OK_AND_ASSIGN(const Solution solution, runner.Solve(factor, b, 70, {.op = op}));
      EXPECT_LT(SolveRatio(a, n, op, solution.x, b, 70, DType::kFloat64), kThreshold);
    }
  }
}

TEST_F(JoinTest, SolvesInEachTypeAsAccuratelyAsTheHost) {
  JobRunner runner(device());
  const std::unique_ptr<Device> host = host::MakeDevice({});
  JobRunner on_host(*host);
  constexpr int64_t kOrder = 500;
  const ComplexMatrix a = RandomComplex(kOrder, kOrder, 4);
  const ComplexMatrix b = RandomComplex(kOrder, 2, 5);
  for (const DType dtype : kDTypes) {
    SCOPED_TRACE(NameOf(dtype));
    const auto take = [dtype](ComplexMatrix m) {
      if (!IsComplex(dtype)) {
        for (std::complex<double>& z : m) z = z.real();
      }
      return Rounded(m, dtype);
    };
    FactorRequest request = Scalapack();
    request.matrix_dtype = request.factor_dtype = dtype;
    ASSERT_OK_AND_ASSIGN(const Factorization factor,
                         runner.FactorComplex(take(a), kOrder, request));
    ASSERT_OK_AND_ASSIGN(const ComplexSolution solution,
                         runner.SolveComplex(factor, take(b), 2, {.dtype = dtype}));
    EXPECT_LT(SolveRatio(take(a), kOrder, Op::kNone, solution.x, take(b), 2, dtype), kThreshold);
    request.algorithm = "getrf";
    ASSERT_OK_AND_ASSIGN(const Factorization expected,
                         on_host.FactorComplex(take(a), kOrder, request));
    ASSERT_OK_AND_ASSIGN(const ComplexSolution reference,
                         on_host.SolveComplex(expected, take(b), 2, {.dtype = dtype}));
    EXPECT_LE(*solution.summary.backward_error,
              8 * *reference.summary.backward_error + AcceptedBackwardError(dtype, 1));
  }
}

TEST_F(JoinTest, FactorsAnOrderOf3000) {
  constexpr int64_t kOrder = 3000;
  JobRunner runner(device());
  const HostMatrix a = RandomMatrix(kOrder, kOrder, 1);
  const HostMatrix b = RandomMatrix(kOrder, 1, 2);
  ASSERT_OK_AND_ASSIGN(const Factorization factor, runner.Factor(a, kOrder, Scalapack()));
  ASSERT_OK_AND_ASSIGN(const Solution solution, runner.Solve(factor, b, 1, {}));
  EXPECT_LE(*solution.summary.backward_error, AcceptedBackwardError(DType::kFloat64, kOrder));
}

TEST_F(JoinTest, FactorsSparseGridsInEachType) {
  SparseRunner runner(device(), "mumps");
  for (const DType dtype : kDTypes) {
    SCOPED_TRACE(NameOf(dtype));
    const PackedSparse a = Grid(12, dtype);
    ASSERT_OK_AND_ASSIGN(const Factorization factor, runner.Factor(a));
    for (const Op op : kOps) {
      EXPECT_LE(runner.ErrorOf(factor, op, 3), AcceptedBackwardError(dtype, a.n));
    }
  }
}

TEST_F(JoinTest, SparseFactorsSurviveALoss) {
  SparseRunner runner(device(), "mumps");
  const PackedSparse a = Grid(8, DType::kFloat64);
  ASSERT_OK_AND_ASSIGN(const Factorization factor, runner.Factor(a));
  kill(pids_[1], SIGKILL);
  ExpectFormsAgain();
  EXPECT_LE(runner.ErrorOf(factor, Op::kNone, 1), AcceptedBackwardError(DType::kFloat64, a.n));
}

TEST_F(JoinTest, KilledRankEndsTheJob) {
  std::future<absl::Status> job = StartStandingFactor();
  const Clock::time_point start = Clock::now();
  kill(pids_[1], SIGKILL);
  ExpectLost(job.get());
  EXPECT_LT(Clock::now() - start, seconds(4));
  ExpectFormsAgain();
}

TEST_F(JoinTest, StoppedRankIsFound) {
  const Clock::time_point start = Clock::now();
  kill(pids_[2], SIGSTOP);
  ExpectLost(StartFactor().get());
  EXPECT_LT(Clock::now() - start, kFound);
  ExpectFormsAgain();
}

// No job runs and no rank is stopped, so only the silence of the agent can end the formation.
TEST_F(JoinTest, StoppedAgentIsFound) {
  const pid_t agent = agents_[1]->pid();
  kill(agent, SIGSTOP);
  EXPECT_TRUE(Eventually([] { return group().pids().empty(); }));
  kill(agent, SIGCONT);
  ExpectFormsAgain();
}

TEST_F(JoinTest, DeadLinkIsFound) {
  machines_->SetLink(1, false);
  EXPECT_TRUE(Eventually([] { return group().pids().empty(); }));
  // The agent behind the dead link ends its ranks by itself.
  for (const pid_t pid : pids_) EXPECT_TRUE(Eventually([pid] { return !IsAlive(pid); })) << pid;
  machines_->SetLink(1, true);
  ExpectFormsAgain();
}

TEST_F(JoinTest, KilledAgentsEndTheirRanks) {
  // Machine 0 executes mpirun, if it joined first.
  for (int i = 0; i < kMachines; ++i) {
    SCOPED_TRACE(i);
    std::future<absl::Status> job = StartStandingFactor();
    agents_[i]->Kill();
    ExpectLost(job.get());
    for (const pid_t pid : pids_) EXPECT_TRUE(Eventually([pid] { return !IsAlive(pid); })) << pid;
    StartAgent(i);
    ExpectFormsAgain();
  }
}

TEST_F(JoinTest, AgentOfAnotherGroupEnds) {
  ChildProcess agent(AgentCommand(0, "other"));
  EXPECT_EQ(agent.Wait(), EXIT_FAILURE);
}

// Calls the service as a rank or agent of another build would do.
class RefusalTest : public JoinTest {
 protected:
  void SetUp() override {
    JoinTest::SetUp();
    if (IsSkipped()) return;
    stub_ = v1::RankService::NewStub(
        grpc::CreateChannel(machines_->address(), grpc::InsecureChannelCredentials()));
  }

  // Offers one rank. Returns the refusal.
  grpc::Status Attend(const std::string& version) {
    grpc::ClientContext context;
    const auto stream = stub_->Attend(&context);
    v1::AgentMessage message;
    message.mutable_hello()->set_version(version);
    message.mutable_hello()->set_group("test");
    message.mutable_hello()->set_ranks(1);
    stream->Write(message);
    v1::MachineMessage reply;
    EXPECT_FALSE(stream->Read(&reply));
    return stream->Finish();
  }

  std::unique_ptr<v1::RankService::Stub> stub_;
};

TEST_F(RefusalTest, RefusesMoreRanksThanTheGroupHas) {
  const grpc::Status full = Attend(CROUT_VERSION "-" CROUT_COMMIT);
  EXPECT_EQ(full.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(full.error_message(),
              ::testing::HasSubstr("machines with 4 of 4 ranks have joined; there is no place"));
  EXPECT_EQ(group().pids(), pids_);
}

TEST_F(RefusalTest, RefusesOtherVersionsAndFormations) {
  const grpc::Status other = Attend("0.0.1-0123");
  EXPECT_EQ(other.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(other.error_message(), ::testing::HasSubstr("has version 0.0.1-0123; this daemon"));

  // A rank of an earlier formation.
  grpc::ClientContext context;
  const auto stream = stub_->Join(&context);
  v1::RankMessage message;
  message.mutable_hello()->set_token("0123456789abcdef");
  stream->Write(message);
  v1::GroupMessage reply;
  EXPECT_FALSE(stream->Read(&reply));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);

  // None of this disturbs the group.
  EXPECT_EQ(group().pids(), pids_);
  EXPECT_OK(StartFactor().get());
}

TEST_F(RefusalTest, RefusesMemoryOutsideOfJobs) {
  grpc::ClientContext context;
  v1::ReadRequest request;
  request.mutable_access()->set_job(1);
  const auto reader = stub_->Read(&context, request);
  v1::Bytes bytes;
  EXPECT_FALSE(reader->Read(&bytes));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

TEST(GroupEndTest, EndOfTheDaemonEndsItsRanks) {
  if (FindHelperProgram("crout-rank").empty()) GTEST_SKIP() << "crout-rank is not built";
  ASSERT_OK_AND_ASSIGN(
      std::unique_ptr<GroupDevice> device,
      MakeGroupDevice({.name = "end", .ranks = 2, .join = "127.0.0.1:0"}, host::MakeExecutor(1)));
  const ChildProcess agent({FindHelperProgram("crout-rank"),
                            absl::StrCat("--join=", device->group().address()), "--group=end",
                            "--ranks=2", "--network=127.0.0.0/8"});
  std::vector<pid_t> pids;
  ASSERT_TRUE(Eventually([&] { return !(pids = device->group().pids()).empty(); }));
  device.reset();
  for (const pid_t pid : pids) EXPECT_TRUE(Eventually([pid] { return !IsAlive(pid); })) << pid;
  // The agent waits for another daemon.
  EXPECT_TRUE(IsAlive(agent.pid()));
}

}  // namespace
}  // namespace crout::testing::join_test
