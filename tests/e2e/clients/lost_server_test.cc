// SPDX-License-Identifier: Apache-2.0

// Tests a server that disappears: the client library returns a status, and the process of the
// client continues.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "crout/crout.h"
#include "crout/factor.h"
#include "crout/status.h"
#include "tests/e2e/harness/daemon.h"
#include "tests/support/status_matchers.h"

namespace crout::e2e::lost_server_test {
namespace {

constexpr int64_t kOrder = 256;

std::vector<double> Identity() {
  std::vector<double> a(kOrder * kOrder);
  for (int64_t i = 0; i < kOrder; ++i) a[static_cast<size_t>(i * (kOrder + 1))] = 1;
  return a;
}

class LostServerTest : public ::testing::Test {
 protected:
  void Kill() {
    daemon_.process().Signal(SIGKILL);
    EXPECT_EQ(daemon_.process().Wait(), 128 + SIGKILL);
  }

  absl::StatusOr<Factor> Factorize() {
    return Factor::Make(client_,
                        MatrixSource::Dense(absl::MakeConstSpan(identity_), kOrder, kOrder));
  }

  const std::vector<double> identity_ = Identity();
  Daemon daemon_;
  std::shared_ptr<Client> client_ = daemon_.NewClient();
};

// A sink that calls a function when the first bytes arrive.
class CallbackSink : public MatrixSink {
 public:
  explicit CallbackSink(std::function<void()> action) : action_(std::move(action)) {}
  absl::Status Begin(const DenseSpec&) override { return absl::OkStatus(); }
  absl::Status Append(absl::Span<const std::byte>) override {
    if (action_) std::exchange(action_, nullptr)();
    return absl::OkStatus();
  }

 private:
  std::function<void()> action_;
};

TEST_F(LostServerTest, BeforeACall) {
  ASSERT_OK_AND_ASSIGN(Factor factor, Factorize());
  Kill();
  const MatrixSource ones = MatrixSource::Ones(kOrder, 1);
  BufferSink x;
  EXPECT_TRUE(IsUnreachable(Factorize().status()));
  EXPECT_TRUE(IsUnreachable(factor.Solve(ones, {}, &x).status()));
  EXPECT_TRUE(IsUnreachable(factor.SolveAsync(ones, {}, &x).get().status()));
  EXPECT_TRUE(IsUnreachable(factor.Refactor(MatrixSource::Ones(kOrder, kOrder))));
  EXPECT_TRUE(IsUnreachable(factor.Describe().status()));
  EXPECT_TRUE(IsUnreachable(client_->ServerInfo().status()));
  EXPECT_EQ(factor.description().n, kOrder);
}

TEST_F(LostServerTest, DuringAnUpload) {
  constexpr int64_t n = 4096;  // 128 MiB, of which only the first messages are sent
  CallOptions call;
  int64_t sent = 0;
  call.on_progress = [&](const ProgressUpdate& update) {
    if (sent == 0) Kill();
    sent = update.bytes_sent;
  };
  const auto factor = Factor::Make(client_, MatrixSource::Ones(n, n), {}, {}, call);
  EXPECT_TRUE(IsUnreachable(factor.status())) << factor.status();
  EXPECT_GT(sent, 0);
  EXPECT_LT(sent, n * n * 8);
}

TEST_F(LostServerTest, DuringAReply) {
  ASSERT_OK_AND_ASSIGN(const Factor factor, Factorize());
  bool killed = false;
  CallbackSink x([&] {
    Kill();
    killed = true;
  });
  // The reply has 32 MiB, much more than fits in the buffers of the connection.
  const auto result = factor.Solve(MatrixSource::Ones(kOrder, 16384), {}, &x);
  EXPECT_TRUE(IsUnreachable(result.status())) << result.status();
  EXPECT_TRUE(killed);
}

TEST_F(LostServerTest, FromC) {
  crout_connection* connection = nullptr;
  // The timeout ends the wait for a restart.
  ASSERT_EQ(crout_connect(daemon_.address().c_str(), nullptr, 10, &connection), CROUT_OK);
  crout_factor* factor = nullptr;
  ASSERT_EQ(crout_dgetrf(connection, kOrder, identity_.data(), kOrder, &factor), 0);
  Kill();
  std::vector<double> b(kOrder, 7);
  EXPECT_EQ(crout_dgetrs(factor, 'N', kOrder, 1, b.data(), kOrder), CROUT_UNREACHABLE);
  EXPECT_THAT(b, ::testing::Each(7));
  EXPECT_EQ(crout_last_error_code(), CROUT_UNREACHABLE);
  EXPECT_THAT(crout_last_error(), ::testing::Not(::testing::StrEq("")));
  crout_factor* none = nullptr;
  EXPECT_EQ(crout_dgetrf(connection, kOrder, identity_.data(), kOrder, &none), CROUT_UNREACHABLE);
  EXPECT_EQ(none, nullptr);
  crout_disconnect(connection);
  EXPECT_EQ(crout_release(factor), CROUT_UNREACHABLE);
}

// A daemon on a Unix socket, whose address stays the same over restarts, and a client with retries.
class RestartTest : public ::testing::Test {
 protected:
  RestartTest() {
    Restart();
    client_ = *Client::Connect({.server = daemon_->address()});
  }

  void Restart() {
    daemon_.reset();  // kills the daemon
    daemon_.emplace(std::vector<std::string>{"--listen=unix:" + directory_.File("socket")});
  }

  absl::StatusOr<Factor> Factorize(OnLost on_lost, const CacheOptions& cache = {}) {
    return Factor::Make(client_,
                        MatrixSource::Dense(absl::MakeConstSpan(identity_), kOrder, kOrder), {},
                        cache, {}, on_lost);
  }

  const std::vector<double> identity_ = Identity();
  TempDir directory_;
  std::optional<Daemon> daemon_;
  std::shared_ptr<Client> client_;
};

TEST_F(RestartTest, TheReasonOfTheLossIsTheRestart) {
  ASSERT_OK_AND_ASSIGN(const Factor factor, Factorize(OnLost::kFail));
  Restart();
  BufferSink x;
  const absl::Status lost = factor.Solve(MatrixSource::Ones(kOrder, 1), {}, &x).status();
  EXPECT_EQ(Reason(lost), "SERVER_RESTARTED") << lost;
}

TEST_F(RestartTest, ALostFactorIsMadeAgain) {
  CacheOptions cache;
  cache.name = "kept";
  cache.pin = true;
  ASSERT_OK_AND_ASSIGN(Factor factor, Factorize(OnLost::kRefactor, cache));
  const std::string first = factor.handle();
  Restart();
  // Both threads find the factor lost; one factorization serves both.
  BufferSink x0, x1;
  const MatrixSource ones = MatrixSource::Ones(kOrder, 1);
  auto other = factor.SolveAsync(ones, {}, &x0);
  ASSERT_OK(factor.Solve(ones, {}, &x1));
  ASSERT_OK(other.get());
  EXPECT_THAT(x0.values<double>(), ::testing::Each(1.0));
  EXPECT_THAT(x1.values<double>(), ::testing::Each(1.0));
  EXPECT_NE(factor.handle(), first);
  int factors = 0;
  ASSERT_OK(client_->List("kept", [&](const FactorDescription& listed) {
    EXPECT_EQ(listed.handle, factor.handle());
    EXPECT_TRUE(listed.pinned);
    return ++factors > 0;
  }));
  EXPECT_EQ(factors, 1);
  // The matrix of the last replacement is the one that counts.
  std::vector<double> twice = identity_;
  for (double& entry : twice) entry *= 2;
  ASSERT_OK(factor.Refactor(MatrixSource::Dense(absl::MakeConstSpan(twice), kOrder, kOrder)));
  twice.assign(twice.size(), 0);  // the factor has a copy
  Restart();
  ASSERT_OK(factor.Solve(ones, {}, &x0));
  EXPECT_THAT(x0.values<double>(), ::testing::Each(0.5));
}

TEST_F(RestartTest, AReleasedFactorIsNotMadeAgain) {
  ASSERT_OK_AND_ASSIGN(const Factor factor, Factorize(OnLost::kRefactor));
  ASSERT_OK(client_->Release(factor.handle()));
  BufferSink x;
  EXPECT_EQ(Reason(factor.Solve(MatrixSource::Ones(kOrder, 1), {}, &x).status()),
            "HANDLE_RELEASED");
}

TEST_F(RestartTest, AMatrixThatCannotBeSentAgainIsRefused) {
  ASSERT_OK_AND_ASSIGN(Factor factor, Factorize(OnLost::kRefactor));
  const std::vector<double> values(3, 1.0);
  EXPECT_EQ(factor.Refactor(MatrixSource::SparseValues(absl::MakeConstSpan(values), "")).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(RestartTest, FromC) {
  crout_connection* connection = nullptr;
  ASSERT_EQ(crout_connect(daemon_->address().c_str(), nullptr, 0, &connection), CROUT_OK);
  std::vector<double> a = identity_;
  const crout_matrix matrix = {.data = a.data(),
                               .dtype = CROUT_FLOAT64,
                               .layout = CROUT_COLUMN_MAJOR,
                               .rows = kOrder,
                               .cols = kOrder,
                               .ld = kOrder};
  crout_factorize_options options = {};
  options.struct_size = sizeof options;
  options.refactor_if_lost = 1;
  options.pin = 1;
  crout_factor* factor = nullptr;
  ASSERT_EQ(crout_factorize(connection, &matrix, &options, &factor), CROUT_OK);
  a.assign(a.size(), 0);
  Restart();
  std::vector<double> b(kOrder, 7);
  EXPECT_EQ(crout_dgetrs(factor, 'N', kOrder, 1, b.data(), kOrder), 0) << crout_last_error();
  EXPECT_THAT(b, ::testing::Each(7));
  EXPECT_EQ(crout_release(factor), CROUT_OK);
  crout_disconnect(connection);
}

}  // namespace
}  // namespace crout::e2e::lost_server_test
