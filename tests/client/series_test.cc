// SPDX-License-Identifier: Apache-2.0

// Tests crout::Series against a fake service: requests, replies, and recovery after a stream has
// ended.
#include "crout/series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "tests/client/fake_service.h"

namespace crout::series_test {
namespace {

using client_test::FakeServer;
using client_test::FakeService;
using client_test::ServerStatus;
using grpc::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Stream = FakeService::Stream<v1::SolveSeriesResponse, v1::SolveSeriesRequest>;

constexpr int64_t kN = 4;

// A received request of a step.
struct Received {
  v1::SolveSeriesHeader header;
  std::string data;
  std::string rhs;
  std::string x0;
};

class SeriesTest : public ::testing::Test {
 protected:
  // Replies to step `step` of stream `stream`, both 0-based. A status other than OK ends the
  // stream.
  using Answer = std::function<grpc::Status(int stream, int step, Stream* out)>;

  void Serve(Answer answer) {
    server_.service.solve_series = [this, answer](grpc::ServerContext*, Stream* stream) {
      return AnswerAll(answer, stream);
    };
    server_.service.release = [this](auto*, const v1::ReleaseFactorRequest& request, auto*) {
      absl::MutexLock lock(&mutex_);
      released_.push_back(request.handle());
      return grpc::Status::OK;
    };
  }

  static void Solve(Stream* out, const std::string& made = "") {
    v1::SolveSeriesResponse head;
    if (!made.empty()) head.mutable_factor()->set_handle(made);
    v1::DenseSpec* shape = head.mutable_header()->mutable_solution();
    shape->set_dtype(v1::DTYPE_FLOAT64);
    shape->set_layout(v1::LAYOUT_COLUMN_MAJOR);
    shape->set_rows(kN);
    shape->set_cols(1);
    const std::vector<double> x = {1, 2, 3, 4};
    head.set_data(x.data(), sizeof(double));
    out->Write(head);
    v1::SolveSeriesResponse last;
    last.set_data(x.data() + 1, 3 * sizeof(double));
    last.mutable_result()->set_solved(true);
    last.mutable_result()->set_accurate(true);
    last.mutable_result()->set_old_iterations(made.empty() ? 3 : 0);
    out->Write(last);
  }

  absl::StatusOr<SeriesStep> Step(Series& series) {
    SpanSink x(absl::MakeSpan(x_));
    return series.Step(matrix_, rhs_, &x);
  }
  absl::StatusOr<SeriesStep> StepWithoutMatrix(Series& series) {
    SpanSink x(absl::MakeSpan(x_));
    return series.Step(rhs_, &x);
  }

  const std::vector<double> a_ = std::vector<double>(kN * kN, 0.5);
  const std::vector<double> b_ = std::vector<double>(kN, 2);
  const MatrixSource matrix_ = MatrixSource::Dense(absl::MakeConstSpan(a_), kN, kN);
  const MatrixSource rhs_ = MatrixSource::Dense(absl::MakeConstSpan(b_), kN, 1);
  std::vector<double> x_ = std::vector<double>(kN);
  absl::Mutex mutex_;
  std::vector<Received> received_;     // guarded by mutex_
  std::vector<std::string> released_;  // guarded by mutex_
  std::atomic<int> streams_{0};
  std::atomic<int> ended_in_order_{0};
  FakeServer server_;
  std::shared_ptr<Client> client_ = server_.NewClient();

 private:
  static bool ReadStep(Stream* stream, Received* step) {
    v1::SolveSeriesRequest request;
    while (stream->Read(&request)) {
      if (request.has_header()) step->header = request.header();
      step->data += request.data();
      step->rhs += request.rhs_data();
      step->x0 += request.x0_data();
      const bool has_start = step->header.has_x0();
      if (step->rhs.size() == kN * sizeof(double) && (!has_start || step->x0 == step->rhs)) {
        return true;
      }
    }
    return false;
  }
  grpc::Status AnswerAll(const Answer& answer, Stream* stream) {
    const int index = streams_++;
    for (int step = 0;; ++step) {
      Received received;
      if (!ReadStep(stream, &received)) break;
      {
        absl::MutexLock lock(&mutex_);
        received_.push_back(received);
      }
      grpc::Status status = answer(index, step, stream);
      if (!status.ok()) return status;
    }
    ++ended_in_order_;
    return grpc::Status::OK;
  }
};

TEST_F(SeriesTest, AStartGoesWithItsStepAlone) {
  Serve([](int, int step, Stream* out) {
    Solve(out, step == 0 ? "h1" : "");
    return grpc::Status::OK;
  });
  Series series(client_);
  SpanSink x(absl::MakeSpan(x_));
  EXPECT_TRUE(series.Step(matrix_, rhs_, &x, &rhs_).ok());
  EXPECT_TRUE(Step(series).ok());
  SpanSink again(absl::MakeSpan(x_));
  EXPECT_TRUE(series.Step(rhs_, &again, &rhs_).ok());
  absl::MutexLock lock(&mutex_);
  ASSERT_EQ(received_.size(), 3u);
  for (const size_t step : {0, 1, 2}) {
    EXPECT_EQ(received_[step].header.has_x0(), step != 1);
    EXPECT_EQ(received_[step].x0, step == 1 ? "" : received_[step].rhs);
  }
  EXPECT_EQ(received_[2].header.x0().dense().rows(), kN);
}

TEST_F(SeriesTest, OnlyTheFirstHeaderHasWhatIsOfAllSteps) {
  Serve([](int, int step, Stream* out) {
    Solve(out, step == 0 ? "h1" : "");
    return grpc::Status::OK;
  });
  SeriesOptions options;
  options.strategy = SeriesStrategy::kReuse;
  options.accuracy = 1e-9;
  options.cache.name = "flow";
  {
    Series series(client_, options);
    const auto first = Step(series);
    ASSERT_TRUE(first.ok()) << first.status();
    ASSERT_TRUE(first->made.has_value());
    EXPECT_EQ(first->made->handle, "h1");
    EXPECT_EQ(series.factor().handle, "h1");
    EXPECT_THAT(x_, ElementsAre(1, 2, 3, 4));
    const auto second = Step(series);
    ASSERT_TRUE(second.ok()) << second.status();
    EXPECT_FALSE(second->made.has_value());
    EXPECT_EQ(second->result.old_iterations, 3);
    ASSERT_TRUE(StepWithoutMatrix(series).ok());
  }
  ASSERT_EQ(received_.size(), 3u);
  EXPECT_EQ(received_[0].header.strategy(), v1::SERIES_STRATEGY_REUSE);
  EXPECT_EQ(received_[0].header.accuracy(), 1e-9);
  EXPECT_EQ(received_[0].header.cache().name(), "flow");
  for (int step : {1, 2}) {
    v1::SolveSeriesHeader rest = received_[step].header;
    EXPECT_EQ(rest.has_matrix(), step == 1);
    EXPECT_TRUE(rest.has_rhs());
    rest.clear_matrix();
    rest.clear_rhs();
    EXPECT_EQ(rest.ByteSizeLong(), 0u) << rest.ShortDebugString();
  }
  EXPECT_EQ(received_[1].data.size(), a_.size() * sizeof(double));
  EXPECT_EQ(std::memcmp(received_[1].data.data(), a_.data(), received_[1].data.size()), 0);
  EXPECT_EQ(received_[2].data, "");
  EXPECT_EQ(streams_, 1);
  EXPECT_EQ(ended_in_order_, 1);
  EXPECT_THAT(released_, ElementsAre("h1"));
}

TEST_F(SeriesTest, StepsOfManyMessagesArriveWholeAndTheirMemoryIsFreeAfterwards) {
  Serve([](int, int step, Stream* out) {
    Solve(out, step == 0 ? "h1" : "");
    return grpc::Status::OK;
  });
  constexpr int64_t kLarge = 600;  // 2.7 MiB, sent in three messages
  std::vector<double> a(kLarge * kLarge);
  int64_t reported = 0;
  CallOptions call;
  call.on_progress = [&](const ProgressUpdate& update) { reported = update.bytes_sent; };
  Series series(client_, {}, call);
  for (int step = 0; step < 3; ++step) {
    std::fill(a.begin(), a.end(), step);
    SpanSink x(absl::MakeSpan(x_));
    const auto solved =
        series.Step(MatrixSource::Dense(absl::MakeConstSpan(a), kLarge, kLarge), rhs_, &x);
    ASSERT_TRUE(solved.ok()) << solved.status();
    EXPECT_EQ(reported, static_cast<int64_t>((a.size() + kN) * sizeof(double)));
  }
  EXPECT_TRUE(series.Close().ok());
  ASSERT_EQ(received_.size(), 3u);
  for (int step = 0; step < 3; ++step) {
    std::fill(a.begin(), a.end(), step);
    ASSERT_EQ(received_[step].data.size(), a.size() * sizeof(double));
    EXPECT_EQ(std::memcmp(received_[step].data.data(), a.data(), received_[step].data.size()), 0);
  }
}

TEST_F(SeriesTest, AStepThatIsNotSolvedHasAResultAlone) {
  Serve([](int, int step, Stream* out) {
    if (step == 0) {
      v1::SolveSeriesResponse only;
      only.mutable_factor()->set_info(2);
      only.mutable_result()->set_strategy(v1::SERIES_STRATEGY_REFACTOR);
      out->Write(only);
    } else {
      Solve(out);
    }
    return grpc::Status::OK;
  });
  Series series(client_);
  x_ = {7, 7, 7, 7};
  const auto step = Step(series);
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_FALSE(step->result.solved);
  ASSERT_TRUE(step->made.has_value());
  EXPECT_EQ(step->made->info, 2);
  EXPECT_EQ(series.factor().handle, "");
  EXPECT_THAT(x_, ElementsAre(7, 7, 7, 7));
  EXPECT_TRUE(Step(series).ok());
  EXPECT_TRUE(series.Close().ok());
  EXPECT_THAT(released_, ElementsAre());
}

TEST_F(SeriesTest, AStreamThatEndedIsTakenUpByTheFactorsHandle) {
  Serve([](int stream, int step, Stream* out) {
    if (stream == 0 && step == 1) {
      return ServerStatus(StatusCode::FAILED_PRECONDITION, "MATRIX_GONE");
    }
    Solve(out, stream == 0 ? "h1" : "");
    return grpc::Status::OK;
  });
  SeriesOptions options;
  options.operation = Operation::kTranspose;
  options.cache.name = "flow";
  Series series(client_, options);
  ASSERT_TRUE(Step(series).ok());
  const auto refused = StepWithoutMatrix(series);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Reason(refused.status()), "MATRIX_GONE");
  // The factor belongs to the matrix of another step. The client therefore sends no step without a
  // matrix.
  EXPECT_EQ(Reason(StepWithoutMatrix(series).status()), "MATRIX_GONE");
  EXPECT_EQ(received_.size(), 2u);
  ASSERT_TRUE(Step(series).ok());
  ASSERT_TRUE(StepWithoutMatrix(series).ok());
  EXPECT_EQ(streams_, 2);
  EXPECT_EQ(received_[2].header.handle(), "h1");
  EXPECT_EQ(received_[2].header.operation(), v1::OPERATION_TRANSPOSE);
  EXPECT_FALSE(received_[2].header.has_cache());
  EXPECT_EQ(received_[3].header.handle(), "");
  EXPECT_TRUE(series.Close().ok());
  EXPECT_THAT(released_, ElementsAre("h1"));
  EXPECT_EQ(Step(series).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(series.Close().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(SeriesTest, FactorsToBeginWithAndKeptOnesStay) {
  Serve([](int stream, int, Stream* out) {
    Solve(out, stream == 0 ? "h1" : "h2");
    return grpc::Status::OK;
  });
  SeriesOptions options;
  options.handle = "h1";
  {
    Series begun(client_, options);
    EXPECT_EQ(begun.factor().handle, "h1");
    ASSERT_TRUE(StepWithoutMatrix(begun).ok());
  }
  {
    Series kept(client_);
    kept.KeepFactor();
    ASSERT_TRUE(Step(kept).ok());
    Series moved(std::move(kept));
    EXPECT_EQ(moved.factor().handle, "h2");
  }
  EXPECT_THAT(released_, ElementsAre());
  EXPECT_EQ(ended_in_order_, 2);
}

TEST_F(SeriesTest, AFactorWhoseStepBreaksOffIsDropped) {
  Serve([](int, int, Stream* out) {
    v1::SolveSeriesResponse head;
    head.mutable_factor()->set_handle("h1");
    out->Write(head);
    return grpc::Status(StatusCode::UNAVAILABLE, "lost");
  });
  Series series(client_);
  EXPECT_EQ(Step(series).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(series.factor().handle, "h1");
  EXPECT_TRUE(series.Close().ok());
  EXPECT_THAT(released_, ElementsAre("h1"));
}

TEST_F(SeriesTest, AServerThatStopsIsUnavailable) {
  Serve([](int, int, Stream*) { return grpc::Status(StatusCode::CANCELLED, "CANCELLED"); });
  Series series(client_);
  EXPECT_EQ(Step(series).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(SeriesTest, AStepThatTakesLongerThanItsTimeoutIsCancelled) {
  Serve([](int, int, Stream* out) {
    v1::SolveSeriesRequest request;
    EXPECT_FALSE(out->Read(&request));  // waits until the client has disconnected
    return grpc::Status::OK;
  });
  CallOptions call;
  call.timeout = absl::Milliseconds(200);
  Series series(client_, {}, call);
  EXPECT_EQ(Step(series).status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(SeriesTest, CancellationEndsAStepAndTheStream) {
  Cancellation cancellation;
  Serve([&](int, int step, Stream* out) {
    if (step == 0) {
      Solve(out, "h1");
      return grpc::Status::OK;
    }
    cancellation.Cancel();
    v1::SolveSeriesRequest request;
    EXPECT_FALSE(out->Read(&request));  // The client has disconnected.
    return grpc::Status::OK;
  });
  CallOptions call;
  call.cancellation = &cancellation;
  Series series(client_, {}, call);
  ASSERT_TRUE(Step(series).ok());
  EXPECT_EQ(Step(series).status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(Step(series).status().code(), absl::StatusCode::kCancelled);
}

TEST_F(SeriesTest, WhatCannotBeSentLeavesTheStreamAsItWas) {
  Serve([](int, int step, Stream* out) {
    Solve(out, step == 0 ? "h1" : "");
    return grpc::Status::OK;
  });
  Series series(client_);
  SpanSink x(absl::MakeSpan(x_));
  const MatrixSource missing = MatrixSource::MatrixMarketFile("/no/such/file.mtx");
  EXPECT_EQ(series.Step(missing, rhs_, &x).status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(Step(series).ok());
  EXPECT_EQ(series.Step(missing, rhs_, &x).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(series.Step(matrix_, rhs_, nullptr).status().code(),
            absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(StepWithoutMatrix(series).ok());
  EXPECT_EQ(streams_, 1);
}

TEST_F(SeriesTest, RepliesThatBreakTheContractAreInternal) {
  const std::pair<const char*, std::function<void(Stream*)>> cases[] = {
      {"did not solve",
       [](Stream* out) {
         v1::SolveSeriesResponse only;
         only.mutable_header()->mutable_solution()->set_dtype(v1::DTYPE_FLOAT64);
         only.mutable_header()->mutable_solution()->set_rows(kN);
         only.mutable_header()->mutable_solution()->set_cols(1);
         only.mutable_result();
         out->Write(only);
       }},
      {"less data",
       [](Stream* out) {
         v1::SolveSeriesResponse only;
         only.mutable_result()->set_solved(true);
         out->Write(only);
       }},
  };
  for (const auto& [message, reply] : cases) {
    Serve([send = reply](int, int, Stream* out) {
      send(out);
      v1::SolveSeriesRequest request;
      EXPECT_FALSE(out->Read(&request));  // The client has disconnected.
      return grpc::Status::OK;
    });
    Series series(client_);
    const auto step = Step(series);
    EXPECT_EQ(step.status().code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(step.status().message()), HasSubstr(message));
  }
  server_.service.solve_series = [](auto*, Stream*) { return grpc::Status::OK; };
  Series series(client_);
  EXPECT_THAT(std::string(Step(series).status().message()), HasSubstr("before its reply"));
}

}  // namespace
}  // namespace crout::series_test
