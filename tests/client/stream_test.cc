// SPDX-License-Identifier: Apache-2.0

// Tests uploads: the data that arrives, the returned status, and calls that end early.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <numeric>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "tests/client/fake_service.h"

namespace crout::client_test::stream_test {
namespace {

using FactorizeStream = FakeService::Stream<v1::FactorizeResponse, v1::FactorizeRequest>;

std::vector<double> Iota(size_t count) {
  std::vector<double> values(count);
  std::iota(values.begin(), values.end(), 0.5);
  return values;
}

// A received upload.
struct Upload {
  v1::FactorizeHeader header;
  std::string data;
  std::vector<size_t> chunks;
};

Upload ReadAll(FactorizeStream* stream) {
  Upload upload;
  v1::FactorizeRequest request;
  while (stream->Read(&request)) {
    if (request.has_header()) upload.header = request.header();
    upload.data += request.data();
    upload.chunks.push_back(request.data().size());
  }
  return upload;
}

void SendFactor(FactorizeStream* stream, const std::string& handle) {
  v1::FactorizeResponse response;
  response.mutable_factor()->set_handle(handle);
  stream->Write(response);
}

class StreamTest : public ::testing::Test {
 protected:
  FakeServer server_;
  std::unique_ptr<Client> client_ = server_.NewClient();
  Upload upload_;

  void AnswerWithFactor() {
    server_.service.factorize = [this](grpc::ServerContext*, FactorizeStream* stream) {
      upload_ = ReadAll(stream);
      SendFactor(stream, "h1");
      return grpc::Status::OK;
    };
  }
};

TEST_F(StreamTest, DenseUploadArrivesWholeInChunks) {
  AnswerWithFactor();
  const auto a = Iota(1000 * 1000);
  const auto factor = client_->Factor(
      MatrixSource::Dense(absl::MakeConstSpan(a), 1000, 1000, StorageOrder::kRowMajor), {}, {});
  ASSERT_TRUE(factor.ok()) << factor.status();
  EXPECT_EQ(factor->handle, "h1");
  EXPECT_EQ(upload_.header.matrix().dense().rows(), 1000);
  EXPECT_EQ(upload_.header.matrix().dense().layout(), v1::LAYOUT_ROW_MAJOR);
  ASSERT_EQ(upload_.data.size(), a.size() * 8);
  EXPECT_EQ(std::memcmp(upload_.data.data(), a.data(), upload_.data.size()), 0);
  // The first chunk has at most the bytes that a waiting call may hold. Every other chunk must
  // arrive within the idle timeout of 30 s at 64 KiB/s, the slowest rate that the server accepts.
  EXPECT_LE(upload_.chunks.front(), size_t{60} << 10);
  for (const size_t chunk : upload_.chunks) EXPECT_LE(chunk, size_t{1920} << 10);
  EXPECT_LE(upload_.chunks.size(), upload_.data.size() / (size_t{1} << 20) + 2);
}

TEST_F(StreamTest, SmallAndEmptyMatricesRideInOneMessage) {
  AnswerWithFactor();
  for (const int64_t n : {0, 1, 3}) {
    const std::vector<float> a(static_cast<size_t>(n * n), 2.0f);
    ASSERT_TRUE(client_->Factor(MatrixSource::Dense(absl::MakeConstSpan(a), n, n), {}, {}).ok());
    EXPECT_EQ(upload_.chunks, std::vector<size_t>{a.size() * 4});
    EXPECT_EQ(upload_.header.matrix().dense().dtype(), v1::DTYPE_FLOAT32);
  }
}

TEST_F(StreamTest, FileIsStreamed) {
  AnswerWithFactor();
  const std::string path = ::testing::TempDir() + "/crout_stream_test." + std::to_string(getpid());
  std::string text(3'000'001, 'x');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i % 23);
  std::ofstream(path) << text;
  const auto factor = client_->Factor(MatrixSource::MatrixMarketFile(path), {}, {});
  unlink(path.c_str());
  ASSERT_TRUE(factor.ok()) << factor.status();
  EXPECT_EQ(upload_.data, text);
  EXPECT_TRUE(upload_.header.matrix().has_matrix_market());
}

// A slow writer of a pipe provides few bytes per read. The chunks that are sent do not depend on
// it.
TEST_F(StreamTest, PipeIsSentInWholeChunks) {
  AnswerWithFactor();
  const std::string path = ::testing::TempDir() + "/crout_stream_test." + std::to_string(getpid());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  constexpr size_t kFirst = size_t{32} << 10;  // size of the first message
  std::string text(kFirst + (size_t{1} << 20) + 1234, 'x');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i % 23);
  std::thread writer([&] {
    const int fd = open(path.c_str(), O_WRONLY);
    for (size_t offset = 0; offset < text.size(); offset += 4096) {
      const std::string piece = text.substr(offset, 4096);
      EXPECT_EQ(write(fd, piece.data(), piece.size()), static_cast<ssize_t>(piece.size()));
      int unread = 1;  // becomes 0 when the client has read this piece
      while (unread > 0 && ioctl(fd, FIONREAD, &unread) == 0) std::this_thread::yield();
    }
    close(fd);
  });
  const auto factor = client_->Factor(MatrixSource::MatrixMarketFile(path), {}, {});
  writer.join();
  unlink(path.c_str());
  ASSERT_TRUE(factor.ok()) << factor.status();
  EXPECT_TRUE(upload_.data == text);
  EXPECT_EQ(upload_.chunks, (std::vector<size_t>{kFirst, size_t{1} << 20, 1234}));
}

// A pipe with an open write end to which nothing is written.
class SilentPipe {
 public:
  SilentPipe() {
    EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
    fd = open(path.c_str(), O_RDWR);
  }
  ~SilentPipe() {
    close(fd);
    unlink(path.c_str());
  }

  const std::string path = ::testing::TempDir() + "/crout_stream_test." + std::to_string(getpid());
  int fd;
};

TEST_F(StreamTest, DeadlineWhileAPipeIsSilent) {
  const SilentPipe pipe;
  CallOptions call;
  call.timeout = absl::Milliseconds(50);
  const auto factor = client_->Factor(MatrixSource::MatrixMarketFile(pipe.path), {}, {}, call);
  EXPECT_EQ(factor.status().code(), absl::StatusCode::kDeadlineExceeded) << factor.status();
}

TEST_F(StreamTest, CancelWhileAPipeIsSilent) {
  const SilentPipe pipe;
  Cancellation cancellation;
  CallOptions call;
  call.cancellation = &cancellation;
  std::thread canceller([&] { cancellation.Cancel(); });
  const auto factor = client_->Factor(MatrixSource::MatrixMarketFile(pipe.path), {}, {}, call);
  canceller.join();
  EXPECT_EQ(factor.status().code(), absl::StatusCode::kCancelled) << factor.status();
}

TEST_F(StreamTest, RefusalWhileAPipeIsSilent) {
  server_.service.factorize = [](grpc::ServerContext*, FactorizeStream* stream) {
    v1::FactorizeRequest request;
    stream->Read(&request);
    return ServerStatus(grpc::StatusCode::INVALID_ARGUMENT, "DIMENSION_TOO_LARGE");
  };
  const SilentPipe pipe;
  // The client sends its first message when it has read the data of the second.
  const std::string text((size_t{1} << 20) + (size_t{36} << 10), 'x');
  std::thread writer([&] {
    EXPECT_EQ(write(pipe.fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  });
  const auto factor = client_->Factor(MatrixSource::MatrixMarketFile(pipe.path), {}, {});
  writer.join();
  EXPECT_EQ(factor.status().code(), absl::StatusCode::kInvalidArgument) << factor.status();
  EXPECT_EQ(Reason(factor.status()), "DIMENSION_TOO_LARGE");
}

TEST_F(StreamTest, WhatCannotBeReadFailsBeforeTheCall) {
  EXPECT_EQ(client_->Factor(MatrixSource::MatrixMarketFile("/no/such"), {}, {}).status().code(),
            absl::StatusCode::kNotFound);
  const std::vector<double> a(5);
  EXPECT_EQ(
      client_->Factor(MatrixSource::Dense(absl::MakeConstSpan(a), 2, 2), {}, {}).status().code(),
      absl::StatusCode::kInvalidArgument);
}

TEST_F(StreamTest, ServersEarlyStatusWinsOverTheBrokenUpload) {
  // The server refuses an upload of 64 MiB when it has read one message.
  server_.service.factorize = [](grpc::ServerContext*, FactorizeStream* stream) {
    v1::FactorizeRequest request;
    stream->Read(&request);
    return ServerStatus(grpc::StatusCode::INVALID_ARGUMENT, "DIMENSION_TOO_LARGE");
  };
  const auto a = Iota(size_t{8} << 20);
  for (int i = 0; i < 20; ++i) {
    const auto factor =
        client_->Factor(MatrixSource::Dense(absl::MakeConstSpan(a), 8 << 10, 1 << 10), {}, {});
    ASSERT_EQ(factor.status().code(), absl::StatusCode::kInvalidArgument) << factor.status();
    EXPECT_EQ(Reason(factor.status()), "DIMENSION_TOO_LARGE");
  }
}

TEST_F(StreamTest, CancelMidUploadReturnsWithTheBufferFree) {
  absl::Notification started;
  server_.service.factorize = [&](grpc::ServerContext* context, FactorizeStream* stream) {
    v1::FactorizeRequest request;
    stream->Read(&request);
    started.Notify();
    while (!context->IsCancelled()) absl::SleepFor(absl::Milliseconds(1));  // reads no more
    return grpc::Status::CANCELLED;
  };
  Cancellation cancellation;
  std::thread canceller([&] {
    started.WaitForNotification();
    cancellation.Cancel();
  });
  absl::Status status;
  {
    // Freed directly after the call, so that AddressSanitizer detects a late read.
    const auto a = Iota(size_t{8} << 20);
    CallOptions call;
    call.cancellation = &cancellation;
    status =
        client_->Factor(MatrixSource::Dense(absl::MakeConstSpan(a), 8 << 10, 1 << 10), {}, {}, call)
            .status();
  }
  canceller.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
  CallOptions after;
  after.cancellation = &cancellation;
  EXPECT_EQ(client_->Describe("x", after).status().code(), absl::StatusCode::kCancelled);
}

TEST_F(StreamTest, DeadlineMidUpload) {
  server_.service.factorize = [](grpc::ServerContext* context, FactorizeStream*) {
    while (!context->IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
    return grpc::Status::CANCELLED;
  };
  const auto a = Iota(size_t{8} << 20);
  CallOptions call;
  call.timeout = absl::Milliseconds(100);
  const auto factor =
      client_->Factor(MatrixSource::Dense(absl::MakeConstSpan(a), 8 << 10, 1 << 10), {}, {}, call);
  EXPECT_EQ(factor.status().code(), absl::StatusCode::kDeadlineExceeded) << factor.status();
}

TEST_F(StreamTest, ProgressCountsBytesAndPassesPhasesOn) {
  server_.service.factorize = [&](grpc::ServerContext*, FactorizeStream* stream) {
    ReadAll(stream);
    for (const v1::Phase phase : {v1::PHASE_QUEUE, v1::PHASE_FACTOR}) {
      v1::FactorizeResponse response;
      response.mutable_progress()->set_phase(phase);
      stream->Write(response);
    }
    SendFactor(stream, "h");
    return grpc::Status::OK;
  };
  std::vector<int64_t> sent;
  std::vector<Phase> phases;
  CallOptions call;
  call.on_progress = [&](const ProgressUpdate& update) {
    EXPECT_EQ(update.bytes_total, 4 << 20);
    if (update.job) {
      phases.push_back(update.job->phase.value());
    } else {
      sent.push_back(update.bytes_sent);
    }
  };
  const auto a = Iota(512 * 1024);
  ASSERT_TRUE(
      client_->Factor(MatrixSource::Dense(absl::MakeConstSpan(a), 1024, 512), {}, {}, call).ok());
  EXPECT_GE(sent.size(), 4u) << "of chunks";
  EXPECT_TRUE(std::is_sorted(sent.begin(), sent.end()));
  EXPECT_EQ(sent.back(), 4 << 20);
  EXPECT_THAT(phases, ::testing::ElementsAre(Phase::kQueue, Phase::kFactor));
}

TEST_F(StreamTest, NoFactorIsTheServersFault) {
  server_.service.factorize = [](grpc::ServerContext*, FactorizeStream* stream) {
    ReadAll(stream);
    return grpc::Status::OK;
  };
  const std::vector<double> a(1);
  EXPECT_EQ(
      client_->Factor(MatrixSource::Dense(absl::MakeConstSpan(a), 1, 1), {}, {}).status().code(),
      absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace crout::client_test::stream_test
