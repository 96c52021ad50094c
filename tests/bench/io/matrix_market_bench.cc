// SPDX-License-Identifier: Apache-2.0

// Measures the speed of reading Matrix Market text, in bytes of text per second.
//
// With argument 0, one thread reads everything. With argument N, a pool of N threads parses; the
// calling thread copies, and helps to parse after the last byte. MB/s/core is the amount of text
// over the processor time of all threads, which is meaningful also on a busy machine.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdio>
#include <ctime>
#include <memory>
#include <random>
#include <string>
#include <string_view>

#include "crout_version.h"
#include "kernels/host/device/host_info.h"
#include "kernels/io/matrix_market_entries.h"
#include "kernels/io/matrix_market_reader.h"
#include "tests/support/gzip.h"

namespace crout {
namespace {

constexpr int kPieceBytes = 1 << 20;
constexpr int kEntries = 2000000;
constexpr int kN = 20000;

// Returns a coordinate file with entries by columns, as in typical files. `format` is "%.17g" or
// "%.6g".
std::string MakeCoordinateText(const char* format) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  std::string text = "%%MatrixMarket matrix coordinate real general\n" + std::to_string(kN) + " " +
                     std::to_string(kN) + " " + std::to_string(kEntries) + "\n";
  char value[64];
  for (int64_t i = 0; i < kEntries; ++i) {
    snprintf(value, sizeof value, format, normal(random));
    text +=
        std::to_string(i % 100 * 199 + 1) + " " + std::to_string(i / 100 + 1) + " " + value + "\n";
  }
  return text;
}

std::string MakeArrayText() {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  std::string text = "%%MatrixMarket matrix array real general\n2000 1000\n";
  char value[64];
  for (int64_t i = 0; i < kEntries; ++i) {
    snprintf(value, sizeof value, "%.17g\n", normal(random));
    text += value;
  }
  return text;
}

const std::string& Text(int kind) {
  static const auto* const texts =
      new std::string[3]{MakeCoordinateText("%.17g"), MakeCoordinateText("%.6g"), MakeArrayText()};
  return texts[kind];
}

void Read(benchmark::State& state, std::string_view file, size_t text_bytes) {
  const int threads = static_cast<int>(state.range(0));
  const auto pool = threads > 0 ? std::make_unique<ThreadPool>(threads) : nullptr;
  const std::clock_t start = std::clock();
  for (auto _ : state) {
    MatrixMarketReader reader({}, pool.get());
    absl::Status status;
    for (size_t at = 0; at < file.size() && status.ok(); at += kPieceBytes) {
      status = reader.Append(file.substr(at, kPieceBytes));
    }
    if (status.ok()) status = reader.Finish();
    if (!status.ok()) state.SkipWithError(std::string(status.message()).c_str());
    benchmark::DoNotOptimize(reader.TakeSparse());
  }
  const double cpu_seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  const double bytes = static_cast<double>(text_bytes) * static_cast<double>(state.iterations());
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
  state.counters["MB/s/core"] = bytes / 1e6 / cpu_seconds;
}

void BM_Coordinate17Digits(benchmark::State& state) { Read(state, Text(0), Text(0).size()); }
void BM_Coordinate6Digits(benchmark::State& state) { Read(state, Text(1), Text(1).size()); }
void BM_Array17Digits(benchmark::State& state) { Read(state, Text(2), Text(2).size()); }
void BM_Coordinate17DigitsGzip(benchmark::State& state) {
  static const std::string compressed = testing::Gzip(Text(0));
  Read(state, compressed, Text(0).size());
}

// Measures the time of the calling thread for 1 MiB. A thread of the RPC layer waits for this time.
void BM_AppendAlone(benchmark::State& state) {
  ThreadPool pool(1);
  const std::string& text = Text(0);
  for (auto _ : state) {
    MatrixMarketReader reader({}, &pool);
    for (size_t at = 0; at < text.size(); at += kPieceBytes) {
      benchmark::DoNotOptimize(reader.Append(std::string_view(text).substr(at, kPieceBytes)));
    }
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(text.size()));
}

// Measures parsing alone, without copying, assembly or threads.
void BM_ParseSegment(benchmark::State& state) {
  const std::string& text = Text(static_cast<int>(state.range(0)));
  const size_t body = text.find('\n', text.find('\n') + 1) + 1;
  const std::string segment = text.substr(body, text.find('\n', body + kPieceBytes) + 1 - body);
  MatrixMarketHeader header;
  header.coordinate = state.range(0) < 2;
  header.rows = header.columns = kN;
  for (auto _ : state) {
    ParsedSegment parsed = CountLines(segment);
    ParseSegment(header, &parsed);
    benchmark::DoNotOptimize(parsed);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(segment.size()));
}

BENCHMARK(BM_Coordinate17Digits)->Arg(0)->Arg(1)->Arg(2)->Arg(4)->UseRealTime();
BENCHMARK(BM_Coordinate6Digits)->Arg(0)->Arg(1)->Arg(2)->Arg(4)->UseRealTime();
BENCHMARK(BM_Array17Digits)->Arg(0)->Arg(1)->Arg(2)->Arg(4)->UseRealTime();
BENCHMARK(BM_Coordinate17DigitsGzip)->Arg(0)->Arg(1)->Arg(2)->Arg(4)->UseRealTime();
BENCHMARK(BM_AppendAlone)->UseRealTime();
BENCHMARK(BM_ParseSegment)->Arg(0)->Arg(1)->Arg(2);

}  // namespace
}  // namespace crout

int main(int argc, char** argv) {
  // The result needs the header of other results; the framework adds the date.
  benchmark::AddCustomContext("device", crout::host::ProcessorName());
  benchmark::AddCustomContext("commit", CROUT_COMMIT);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
