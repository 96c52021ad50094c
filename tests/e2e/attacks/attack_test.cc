// SPDX-License-Identifier: Apache-2.0

// Runs eight hostile clients concurrently against a daemon with small budgets. The resident memory
// of the daemon must stay within its budgets, all reservations must end, and an honest client must
// be served at all times.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cpp/grpc_status.h"
#include "gtest/gtest.h"
#include "tests/e2e/attacks/open_call.h"
#include "tests/e2e/harness/daemon.h"
#include "tests/e2e/harness/raw_calls.h"
#include "tests/server/scrape.h"
#include "tests/support/gzip.h"
#include "tests/support/status_matchers.h"

namespace crout::e2e::attack_test {
namespace {

constexpr int kAttackers = 8;
constexpr int64_t kMiB = int64_t{1} << 20;

// The limit for the resident memory of the daemon, kMaxResident, is the sum of its budgets, a tenth
// of them, and a constant for code, stacks, and buffers of threads and libraries.
constexpr int64_t kHostBudget = 256 * kMiB;
constexpr int64_t kReceiveBuffers = 64 * kMiB;
constexpr int64_t kCallMemory = 160 * kMiB;
constexpr int64_t kConstant = 256 * kMiB;
constexpr int64_t kMaxResident =
    (kHostBudget + kReceiveBuffers + kCallMemory) / 10 * 11 + kConstant;

// A client that factors, solves and releases in a loop through the client library.
class RegularClient {
 public:
  explicit RegularClient(const Daemon& daemon) {
    ClientOptions options;
    options.server = daemon.address();
    options.tenant = "honest";
    options.timeout = kTestTimeout;
    client_ = *Client::Connect(options);
    thread_ = std::thread([this] { Run(); });
  }
  ~RegularClient() { Stop().IgnoreError(); }

  // Waits until `rounds` rounds have been served since the start. Returns false if it takes too
  // long.
  bool AwaitServed(int rounds) {
    return Eventually([&] { return served_ >= rounds || failed_; });
  }
  int served() const { return served_; }
  // Stops the client. Returns its first error, or OK.
  absl::Status Stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
    return error_;
  }

 private:
  absl::Status Round() {
    constexpr int64_t kN = 60;
    std::vector<double> a(kN * kN, 0.5);
    for (int64_t i = 0; i < kN; ++i) a[i * (kN + 1)] = kN;
    const std::vector<double> b(kN, 1.0);
    std::vector<double> x(kN);
    const auto factor = client_->Factor(MatrixSource::Dense(a, kN, kN), {}, {});
    if (!factor.ok()) return factor.status();
    SpanSink sink(absl::MakeSpan(x));
    const auto result = client_->Solve(factor->handle, MatrixSource::Dense(b, kN, 1), {}, &sink);
    if (!result.ok()) return result.status();
    if (result->backward_error.value() > 1e-14) return absl::DataLossError("a wrong answer");
    return client_->Release(factor->handle);
  }
  void Run() {
    while (!stop_ && !failed_) {
      error_ = Round();
      if (error_.ok()) {
        ++served_;
      } else if (Reason(error_) == "HANDLE_EVICTED") {
        error_ = absl::OkStatus();  // idle factors may be evicted; the next round factors again
      } else {
        failed_ = true;
      }
    }
  }

  std::unique_ptr<Client> client_;
  std::atomic<bool> stop_ = false;
  std::atomic<int> served_ = 0;
  std::atomic<bool> failed_ = false;
  absl::Status error_;  // used only by the thread until it is joined
  std::thread thread_;
};

class AttackTest : public ::testing::Test {
 protected:
  explicit AttackTest(const std::string& idle_timeout = "30s")
      : daemon_({absl::StrCat("--host-budget=", kHostBudget),
                 absl::StrCat("--receive-buffers=", kReceiveBuffers),
                 absl::StrCat("--call-memory=", kCallMemory), "--streams=2",
                 "--upload-idle-timeout=" + idle_timeout}) {}

  // Calls `attack` on eight threads while an honest client runs, then checks that nothing is left.
  void Attack(const std::function<void(int)>& attack) {
    RegularClient honest(daemon_);
    ASSERT_TRUE(honest.AwaitServed(1));
    std::vector<std::thread> attackers;
    for (int i = 0; i < kAttackers; ++i) attackers.emplace_back([&attack, i] { attack(i); });
    const int before = honest.served();
    ASSERT_TRUE(honest.AwaitServed(before + 1));
    for (std::thread& attacker : attackers) attacker.join();
    EXPECT_TRUE(honest.AwaitServed(honest.served() + 1));
    EXPECT_OK(honest.Stop());
    EXPECT_TRUE(daemon_.process().running());
    const int64_t most = StatusBytes(daemon_.process().pid(), "VmHWM");
    EXPECT_LE(most, kMaxResident);
    RecordProperty("most_resident_mib", absl::StrCat(most / kMiB));
    RecordProperty("rounds_of_the_honest_client", honest.served());
    EXPECT_TRUE(Eventually([&] { return HoldingsOf(*client_) == Holdings{}; }))
        << HoldingsOf(*client_);
    EXPECT_NE(daemon_.ScrapeMetrics().find(
                  "crout_device_memory_bytes{device=\"host\",kind=\"reserved\"} 0\n"),
              std::string::npos);
  }

  int64_t Resident() { return StatusBytes(daemon_.process().pid(), "VmRSS"); }

  Daemon daemon_;
  const std::unique_ptr<Client> client_ = daemon_.NewClient();
};

// For attackers that pause: the daemon has a short idle timeout. Other attacks use the default, so
// that the timeout does not end them on a slow machine.
class PausingAttackTest : public AttackTest {
 protected:
  PausingAttackTest() : AttackTest("3s") {}
};

// Returns a text of 32 MB with 8 million entries. gzip compresses it about 150 times, slightly less
// than the limit. Each line of 4 bytes becomes an entry of 16 bytes.
std::string CompressibleText() {
  constexpr int kEntries = 8'000'000;
  std::mt19937 random(1);
  std::string text = absl::StrCat(
      "%%MatrixMarket matrix coordinate pattern general\n100000 100000 ", kEntries, "\n");
  for (int i = 0; i < kEntries; ++i) {
    if (i % 500 == 0) {
      absl::StrAppend(&text, random() % 100000 + 1, " ", random() % 100000 + 1, "\n");
    } else {
      text += "1 1\n";
    }
  }
  return text;
}

CacheOptions ShortLease() { return {.lease = absl::Seconds(1)}; }

TEST_F(AttackTest, GzipText) {
  const std::string text = CompressibleText();
  const std::string file = testing::Gzip(text, 9);
  ASSERT_GT(text.size(), 100 * file.size());
  ASSERT_LT(text.size(), 200 * file.size());
  Attack([&](int) {
    v1::FactorizeRequest first;
    *first.mutable_header()->mutable_matrix() = TextSpec();
    first.mutable_header()->mutable_cache()->mutable_lease()->set_seconds(1);
    const auto stub = daemon_.NewStub();
    UploadCall<v1::FactorizeRequest, v1::FactorizeResponse> call(
        [&](grpc::ClientContext* context) { return stub->Factorize(context); }, first, file);
    call.SendAll();
    const absl::Status status = call.Finish();
    // A call that gets the memory for its text succeeds, with a singular matrix. Other calls are
    // refused for lack of memory.
    EXPECT_TRUE(status.ok() || absl::IsResourceExhausted(status)) << status;
  });
}

TEST_F(AttackTest, CompressedMessages) {
  const std::string zeros(48 * kMiB, '\0');
  Attack([&](int) {
    const auto stub = daemon_.NewStub();
    grpc::ClientContext context;
    context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
    v1::FactorizeRequest request;
    *request.mutable_header()->mutable_matrix() = DenseSpecOf(100, 100);
    request.set_data(zeros);
    const absl::Status status = Exchange(stub->Factorize(&context), {std::move(request)});
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
  });
}

TEST_F(PausingAttackTest, ReadersThatStop) {
  constexpr int64_t kN = 200;
  constexpr int64_t kColumns = 10000;  // 16 MB of X
  const std::string ones = Bytes(std::vector<double>(kN, 1.0));
  // Number of clients that received data. Others were refused earlier, perhaps by gRPC itself,
  // whose refusals the server does not count.
  std::atomic<int> readers = 0;
  Attack([&](int) {
    const auto stub = daemon_.NewStub();
    grpc::ClientContext context;
    auto stream = stub->FactorizeAndSolve(&context);
    v1::FactorizeAndSolveRequest request;
    *request.mutable_header()->mutable_matrix() = DenseSpecOf(kN, kN);
    *request.mutable_header()->mutable_rhs() = DenseSpecOf(kN, kColumns);
    request.mutable_header()->mutable_solve()->set_verify(false);
    request.set_data(DominantBytes(kN));
    stream->Write(request);
    for (int64_t column = 0; column < kColumns; column += 500) {
      request.Clear();
      for (int k = 0; k < 500; ++k) request.mutable_rhs_data()->append(ones);
      if (!stream->Write(request)) break;
    }
    stream->WritesDone();
    v1::FactorizeAndSolveResponse response;
    while (stream->Read(&response) && response.data().empty()) {
    }
    if (!response.data().empty()) {
      ++readers;
      // Reads no more until all these calls have ended. The clients get the status when they read
      // again.
      EXPECT_TRUE(Eventually([&] {
        return CallsRefused(daemon_.ScrapeMetrics(), "DEADLINE_EXCEEDED") >= readers;
      })) << daemon_.ScrapeMetrics();
    }
    while (stream->Read(&response)) {
    }
    EXPECT_FALSE(internal::ToAbslStatus(stream->Finish()).ok());
  });
  EXPECT_GT(readers, 0);
}

TEST_F(PausingAttackTest, EmptyMessages) {
  Attack([&](int) {
    const auto stub = daemon_.NewStub();
    grpc::ClientContext context;
    auto stream = stub->Factorize(&context);
    v1::FactorizeRequest request;
    *request.mutable_header()->mutable_matrix() = DenseSpecOf(1000, 1000);
    request.set_data(std::string(1000, '\0'));
    // Sends until the server ends the call, at most for a minute.
    const absl::Time limit = absl::Now() + absl::Minutes(1);
    while (stream->Write(request) && absl::Now() < limit) {
      request.Clear();
      absl::SleepFor(absl::Milliseconds(20));
    }
    const absl::Status status = internal::ToAbslStatus(stream->Finish());
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  });
}

TEST_F(AttackTest, SmallFactors) {
  constexpr int kEach = 700;
  const int64_t before = Resident();
  std::atomic<int64_t> charged = 0;
  std::atomic<int64_t> grown = 0;
  Attack([&](int) {
    const auto client = daemon_.NewClient();
    const CacheOptions cache{.lease = absl::Hours(1)};
    const std::vector<double> one = {1.0};
    std::vector<std::string> handles;
    for (int i = 0; i < kEach; ++i) {
      const auto factor = client->Factor(MatrixSource::Dense(one, 1, 1), {}, cache);
      ASSERT_THAT(factor, crout::testing::IsOk());
      handles.push_back(factor->handle);
      charged += factor->bytes;
      grown = std::max(grown.load(), Resident() - before);
    }
    for (const std::string& handle : handles) EXPECT_OK(client->Release(handle));
  });
  RecordProperty("charged_mib", absl::StrCat(charged.load() / kMiB));
  RecordProperty("grown_mib", absl::StrCat(grown.load() / kMiB));
  // The growth is at most the bytes charged for the factors, a tenth more, and a constant for the
  // heap.
  EXPECT_LE(grown.load(), charged.load() / 10 * 11 + 16 * kMiB);
}

TEST_F(PausingAttackTest, IdleStreams) {
  constexpr int kEach = 250;  // calls per connection; further calls would wait in the client
  const int64_t before = Resident();
  std::atomic<int> open = 0;
  std::atomic<int64_t> grown = 0;
  Attack([&](int) {
    using Stream = grpc::ClientReaderWriter<v1::FactorizeRequest, v1::FactorizeResponse>;
    const auto stub = daemon_.NewStub();
    std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
    std::vector<std::unique_ptr<Stream>> streams;
    for (int i = 0; i < kEach; ++i) {
      contexts.push_back(std::make_unique<grpc::ClientContext>());
      streams.push_back(stub->Factorize(contexts.back().get()));
      ++open;
    }
    for (const auto& stream : streams) {
      grown = std::max(grown.load(), Resident() - before);
      EXPECT_FALSE(stream->Finish().ok());  // ended by the idle timeout
    }
  });
  constexpr int64_t kCallBytes = 32 << 10;
  RecordProperty("charged_mib", absl::StrCat(open * kCallBytes / kMiB));
  RecordProperty("grown_mib", absl::StrCat(grown.load() / kMiB));
  EXPECT_LE(grown.load(), open * kCallBytes / 10 * 11 + 16 * kMiB);
}

TEST_F(AttackTest, EmptyRows) {
  Attack([&](int) {
    const auto client = daemon_.NewClient();
    for (int i = 0; i < 20; ++i) {
      const auto factor =
          client->Factor(MatrixSource::MatrixMarket(
                             "%%MatrixMarket matrix coordinate real general\n8000 8000 0\n"),
                         {}, ShortLease());
      ASSERT_THAT(factor, crout::testing::IsOk());
      EXPECT_EQ(factor->info, 8000);
      EXPECT_EQ(factor->singular_reason, SingularReason::kEmptyRow);
    }
  });
}

}  // namespace
}  // namespace crout::e2e::attack_test
