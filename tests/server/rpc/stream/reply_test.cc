// SPDX-License-Identifier: Apache-2.0

// Tests how the memory of replies is accounted for: it is reserved when the header arrives, charged
// until gRPC has sent the reply, and reclaimed from clients that do not read.
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/server/rpc/fixture.h"
#include "tests/server/scrape.h"

namespace crout::testing::reply_test {
namespace {

constexpr int64_t kOrder = 128;
constexpr size_t kReplyBytes = kOrder * kOrder * sizeof(double);
constexpr size_t kChunkBytes = kReplyBytes / 4;

class ReplyTest : public RpcTest {
 protected:
  void SetUp() override {
    Config config = SmallConfig();
    config.limits.reply_chunk_bytes = kChunkBytes;
    StartServer({}, config);
    v1::Factor factor;
    ASSERT_TRUE(Factorize(kOrder, &factor).ok());
    handle_ = factor.handle();
    idle_ = Idle();
  }

  // A Solve whose client reads all of the reply except the last chunk.
  class Reader {
   public:
    Reader(ReplyTest& test, const std::string& handle) : stream_(test.stub().Solve(&context_)) {
      v1::SolveRequest request;
      request.mutable_header()->set_handle(handle);
      *request.mutable_header()->mutable_rhs() = Dense(kOrder, kOrder);
      request.set_data(Bytes(std::vector<double>(kOrder * kOrder, 1.0)));
      stream_->Write(request);
      stream_->WritesDone();
      v1::SolveResponse response;
      size_t read = 0;
      while (read < kReplyBytes - kChunkBytes && stream_->Read(&response)) {
        read += response.data().size();
      }
      EXPECT_EQ(read, kReplyBytes - kChunkBytes);
    }
    grpc::Status Finish() {
      v1::SolveResponse response;
      while (stream_->Read(&response)) {
      }
      return stream_->Finish();
    }

   private:
    grpc::ClientContext context_;
    const std::unique_ptr<grpc::ClientReaderWriter<v1::SolveRequest, v1::SolveResponse>> stream_;
  };

  std::vector<std::unique_ptr<Reader>> Readers(int count) {
    const double before = Sent();
    std::vector<std::unique_ptr<Reader>> readers;
    for (int i = 0; i < count; ++i) readers.push_back(std::make_unique<Reader>(*this, handle_));
    const auto all = static_cast<double>(count * kReplyBytes);
    WaitUntil([&] { return Sent() >= before + all; }, "last chunks given to gRPC");
    return readers;
  }

  double Sent() { return SampleOf(core().metrics.Scrape(), "crout_sent_bytes_total").value_or(0); }

  std::string handle_;
  Holdings idle_;
};

TEST_F(ReplyTest, ReadersThatStopAreChargedAndCancelled) {
  constexpr int kReaders = 16;
  const auto readers = Readers(kReaders);
  EXPECT_GE(Held().host_reserved, kReaders * kReplyBytes);
  PassTime(absl::Seconds(15));
  EXPECT_EQ(Held().calls, size_t{kReaders});
  PassTime(absl::Seconds(16));
  ExpectHeldSoon(idle_);
  for (const auto& reader : readers) {
    EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
}

TEST_F(ReplyTest, AReaderThatResumesGetsItsReply) {
  const auto readers = Readers(1);
  PassTime(absl::Seconds(15));
  EXPECT_TRUE(readers.front()->Finish().ok());
  ExpectHeldSoon(idle_);
}

TEST_F(ReplyTest, AStoppedReaderDoesNotDelayTheServersExit) {
  const auto readers = Readers(1);
  core().calls.AbortAll(absl::UnavailableError("draining"));
  PassTime(absl::Seconds(1));
  ExpectHeldSoon(idle_);
}

// A chunk is no larger than the minimum rate can transfer in half the idle timeout.
TEST_F(ReplyTest, ChunksAreAsLargeAsTheSlowestReaderCanTake) {
  v1::Factor factor;
  constexpr int64_t kLarge = 256;
  constexpr size_t kMax = (size_t{16} << 10) * 30 / 2;
  ASSERT_TRUE(Factorize(kLarge, &factor).ok());
  core().limits.reply_chunk_bytes = Limits().reply_chunk_bytes;
  core().limits.transfer = {.idle_timeout = absl::Seconds(30), .min_rate = size_t{16} << 10};
  v1::GetFactorsRequest request;
  request.set_handle(factor.handle());
  grpc::ClientContext context;
  auto stream = stub().GetFactors(&context, request);
  v1::GetFactorsResponse response;
  size_t read = 0;
  while (stream->Read(&response)) {
    EXPECT_LE(response.data().size(), kMax);
    read += response.data().size();
  }
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(read, kLarge * kLarge * sizeof(double));
}

// The memory of the reply is reserved when the header arrives, before any payload.
TEST_F(ReplyTest, FactorizeAndSolveReservesItsReplyAtTheHeader) {
  for (const auto algorithm : {v1::ALGORITHM_GETRF, v1::ALGORITHM_GAUSS_JORDAN}) {
    grpc::ClientContext context;
    auto stream = stub().FactorizeAndSolve(&context);
    v1::FactorizeAndSolveRequest request;
    *request.mutable_header()->mutable_matrix() = Dense(kOrder, kOrder);
    *request.mutable_header()->mutable_rhs() = Dense(kOrder, kOrder);
    request.mutable_header()->mutable_options()->set_algorithm(algorithm);
    stream->Write(request);
    WaitUntil([this] { return Held().uploads == 2; }, "uploads open");
    EXPECT_EQ(Held().host_reserved, idle_.host_reserved + kReplyBytes);
    context.TryCancel();
    stream->Finish();
    ExpectHeldSoon(idle_);
  }
}

TEST_F(ReplyTest, ASchurComplementReservesItsReplyAtTheHeader) {
  grpc::ClientContext context;
  auto stream = stub().ComputeSchurComplement(&context);
  v1::ComputeSchurComplementRequest request;
  *request.mutable_header()->mutable_matrix() = Dense(2 * kOrder, 2 * kOrder);
  request.mutable_header()->set_leading_order(kOrder);
  stream->Write(request);
  WaitUntil([this] { return Held().uploads == 1; }, "upload open");
  EXPECT_EQ(Held().host_reserved, idle_.host_reserved + kReplyBytes);
  context.TryCancel();
  stream->Finish();
  ExpectHeldSoon(idle_);
}

TEST_F(ReplyTest, AFactorThatDoesNotFitTheHostIsRefusedBeforeTheJob) {
  v1::GetFactorsRequest request;
  request.set_handle(handle_);
  auto all =
      core().engine.devices.host_budget().TryReserve(core().engine.devices.host_budget().limit());
  ASSERT_TRUE(all.has_value());
  const int jobs = failpoints().reached("scheduler.job");
  grpc::ClientContext context;
  auto stream = stub().GetFactors(&context, request);
  v1::GetFactorsResponse response;
  while (stream->Read(&response)) {
  }
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(failpoints().reached("scheduler.job"), jobs);
}

}  // namespace
}  // namespace crout::testing::reply_test
