// SPDX-License-Identifier: Apache-2.0

#include "server/observability/log/log_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>

namespace crout::log_writer_test {
namespace {

constexpr int kPipeBytes = 4096;
constexpr size_t kCapacity = 20'000;  // more than the pipe holds
constexpr std::chrono::milliseconds kFlushTimeout(50);
constexpr std::chrono::seconds kLong(60);

// A pipe whose write end remains open, because the writer's thread outlives the test.
struct Pipe {
  Pipe() {
    EXPECT_EQ(pipe(ends.data()), 0);
    EXPECT_EQ(fcntl(ends[1], F_SETPIPE_SZ, kPipeBytes), kPipeBytes);
  }
  // Reads at least `bytes` bytes, or to the end.
  std::string Read(size_t bytes) const {
    std::string text;
    char buffer[1024];
    while (text.size() < bytes) {
      const ssize_t got = read(ends[0], buffer, sizeof buffer);
      if (got <= 0) break;
      text.append(buffer, static_cast<size_t>(got));
    }
    return text;
  }
  std::array<int, 2> ends;
};

std::string Line(int number) { return std::to_string(10'000'000 + number) + "\n"; }

TEST(LogWriterTest, LinesComeInOrder) {
  const Pipe pipe;
  LogWriter* writer = LogWriter::Start(pipe.ends[1], kCapacity);
  std::string expected;
  for (int i = 0; i < 100; ++i) {
    writer->Push(Line(i));
    expected += Line(i);
  }
  EXPECT_EQ(pipe.Read(expected.size()), expected);
  EXPECT_TRUE(writer->Flush(kLong));
  EXPECT_EQ(writer->dropped(), 0u);
}

TEST(LogWriterTest, ReaderDoesNotRead) {
  const Pipe pipe;
  LogWriter* writer = LogWriter::Start(pipe.ends[1], kCapacity);
  int lines = 0;
  const auto push = [&](int count) {
    for (const int end = lines + count; lines < end; ++lines) writer->Push(Line(lines));
  };
  const auto taken = [&] { return (lines - writer->dropped()) * Line(0).size(); };
  push(5000);  // does not block
  EXPECT_FALSE(writer->Flush(kFlushTimeout)) << "it waits no longer than for that";
  // Pushes until more bytes are accepted than the queue and the pipe can contain. The writer's
  // thread then has taken the other bytes, and takes no more before it has written them.
  while (taken() <= kCapacity + kPipeBytes) {
    push(100);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  push(5000);
  EXPECT_GT(writer->dropped(), 0u);
  EXPECT_EQ(writer->TakeUnreported(), 0u) << "there is no room to report them";
  // When the pipe is read, the accepted lines are written completely and in order.
  const uint64_t dropped = writer->dropped();
  const size_t expected = taken();
  const std::string text = pipe.Read(expected);
  EXPECT_EQ(text.size(), expected);
  EXPECT_EQ(text.substr(0, 2 * Line(0).size()), Line(0) + Line(1));
  EXPECT_TRUE(writer->Flush(kLong));
  EXPECT_EQ(writer->TakeUnreported(), dropped);
  EXPECT_EQ(writer->TakeUnreported(), 0u);
}

TEST(LogWriterTest, ReaderIsGone) {
  const Pipe pipe;
  close(pipe.ends[0]);
  LogWriter* writer = LogWriter::Start(pipe.ends[1], kCapacity);
  for (int i = 0; i < 10; ++i) writer->Push(Line(i));
  EXPECT_TRUE(writer->Flush(kLong));
  EXPECT_EQ(writer->dropped(), 10u);
}

TEST(LogWriterTest, NonBlockingDescriptor) {
  const Pipe pipe;
  ASSERT_EQ(fcntl(pipe.ends[1], F_SETFL, O_NONBLOCK), 0);
  LogWriter* writer = LogWriter::Start(pipe.ends[1], 4 * kCapacity);
  std::string expected;
  for (int i = 0; i < 1000; ++i) {
    writer->Push(Line(i));
    expected += Line(i);
  }
  EXPECT_EQ(pipe.Read(expected.size()), expected);
  EXPECT_TRUE(writer->Flush(kLong));
}

TEST(LogWriterTest, LineBeyondTheCapacityIsDropped) {
  const Pipe pipe;
  LogWriter* writer = LogWriter::Start(pipe.ends[1], kCapacity);
  writer->Push(std::string(kCapacity + 1, 'x'));
  EXPECT_EQ(writer->dropped(), 1u);
}

}  // namespace
}  // namespace crout::log_writer_test
