// SPDX-License-Identifier: Apache-2.0

// Tests SolveSeries with steps that send new values for the pattern of an earlier text.
#include <algorithm>
#include <complex>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/server/rpc/series/series_fixture.h"
#include "tests/support/gzip.h"

namespace crout::testing::series_values_test {
namespace {

using ::testing::HasSubstr;
using Complex = std::complex<double>;

// A Matrix Market text whose values change from step to step.
struct Pattern {
  std::string field = "real";  // "real", "complex" or "pattern"
  std::string symmetry = "general";
  bool gzip = false;
  std::vector<std::pair<int64_t, int64_t>> lines;  // row, column; 1-based

  bool complex() const { return field == "complex"; }
  v1::Dtype dtype() const { return complex() ? v1::DTYPE_COMPLEX128 : v1::DTYPE_FLOAT64; }

  // Returns random values, one per line, with larger ones on the diagonal.
  std::vector<Complex> Values(uint64_t seed) const {
    const HostMatrix random = RandomMatrix(static_cast<int64_t>(lines.size()), 2, seed);
    std::vector<Complex> values;
    for (size_t k = 0; k < lines.size(); ++k) {
      const bool diagonal = lines[k].first == lines[k].second;
      const bool real = !complex() || (symmetry == "hermitian" && diagonal);
      values.emplace_back(random[k] + (diagonal ? 5 : 0), real ? 0 : random[lines.size() + k]);
      if (field == "pattern") values.back() = 1;
    }
    return values;
  }
  std::string Text(const std::vector<Complex>& values) const {
    std::string text = absl::StrCat("%%MatrixMarket matrix coordinate ", field, " ", symmetry, "\n",
                                    kN, " ", kN, " ", lines.size(), "\n");
    for (size_t k = 0; k < lines.size(); ++k) {
      absl::StrAppend(&text, lines[k].first, " ", lines[k].second);
      if (field != "pattern") absl::StrAppendFormat(&text, " %.17g", values[k].real());
      if (complex()) absl::StrAppendFormat(&text, " %.17g", values[k].imag());
      absl::StrAppend(&text, "\n");
    }
    return gzip ? Gzip(text) : text;
  }
  std::string Packed(const std::vector<Complex>& values) const {
    if (complex()) return Concatenate(values);
    std::vector<double> real;
    for (const Complex v : values) real.push_back(v.real());
    return Concatenate(real);
  }
};

// The lower triangle of a matrix with three diagonals, listed from the last row to the first. Some
// entries are given twice.
Pattern Lower(const std::string& field, const std::string& symmetry) {
  Pattern pattern{field, symmetry, false, {}};
  for (int64_t i = kN; i >= 1; --i) {
    if (i > 1) pattern.lines.emplace_back(i, i - 1);
    if (i > 5 && i % 3 == 0) pattern.lines.emplace_back(i, i - 5);
    if (symmetry != "skew-symmetric") pattern.lines.emplace_back(i, i);
    if (i % 4 == 0) pattern.lines.emplace_back(i, i - 1);
  }
  return pattern;
}

class RpcSeriesValuesTest : public RpcSeriesTest {
 protected:
  static v1::SolveSeriesRequest Request(v1::SeriesStrategy strategy, bool first) {
    v1::SolveSeriesRequest request;
    if (first) request.mutable_header()->set_strategy(strategy);
    *request.mutable_header()->mutable_rhs() = Dense(kN, 1);
    return request;
  }
  bool TextStep(Series& series, const Pattern& pattern, const std::vector<Complex>& values,
                Answer* answer, bool first = false,
                v1::SeriesStrategy strategy = v1::SERIES_STRATEGY_AUTO) {
    v1::SolveSeriesRequest request = Request(strategy, first);
    *request.mutable_header()->mutable_matrix() = Text(pattern.dtype());
    request.set_data(pattern.Text(values));
    request.set_rhs_data(Bytes(rhs_));
    return series.Write(request) && series.Receive(answer);
  }
  // On entry, `answer` is the reply to the previous step. Its digest identifies the entries.
  bool ValuesStep(Series& series, int64_t count, const std::string& values, Answer* answer,
                  const std::string& handle = "") {
    v1::SolveSeriesRequest request = Request({}, false);
    request.mutable_header()->set_handle(handle);
    request.mutable_header()->mutable_change()->set_values(count);
    request.mutable_header()->mutable_change()->set_entry_digest(answer->result.entry_digest());
    request.set_data(values);
    request.set_rhs_data(Bytes(rhs_));
    return series.Write(request) && series.Receive(answer);
  }
  bool ValuesStep(Series& series, const Pattern& pattern, const std::vector<Complex>& values,
                  Answer* answer) {
    return ValuesStep(series, std::ssize(values), pattern.Packed(values), answer);
  }
  void ExpectToFollowASingularText() {
    const Pattern pattern = Lower("real", "symmetric");
    const std::vector<Complex> zero(pattern.lines.size());
    const std::vector<Complex> values = pattern.Values(2);
    // With `auto`, the last step might reuse the first factor, if this is predicted to be faster.
    const auto strategy = v1::SERIES_STRATEGY_REFACTOR;
    for (const bool begins : {true, false}) {
      SCOPED_TRACE(begins ? "at first" : "later");
      Series series(stub()), by_texts(stub());
      Answer answer, expected;
      if (!begins) {
        ASSERT_TRUE(TextStep(series, pattern, pattern.Values(1), &answer, true, strategy));
      }
      ASSERT_TRUE(TextStep(series, pattern, zero, &answer, begins, strategy));
      EXPECT_FALSE(answer.result.solved());
      // The singular matrix is also detected if it arrives as values.
      ASSERT_TRUE(ValuesStep(series, pattern, zero, &answer)) << series.Status().error_message();
      EXPECT_FALSE(answer.result.solved());
      ASSERT_TRUE(ValuesStep(series, pattern, values, &answer)) << series.Status().error_message();
      EXPECT_TRUE(answer.result.accurate());
      ASSERT_TRUE(answer.factor);
      ASSERT_TRUE(TextStep(by_texts, pattern, values, &expected, true, strategy));
      EXPECT_EQ(answer.x, expected.x);
      EXPECT_TRUE(series.Finish().ok());
      EXPECT_TRUE(by_texts.Finish().ok());
    }
  }
  // Expects the same bits from a series of texts and from a series of values.
  void ExpectSameAsTexts(const Pattern& pattern) {
    for (const auto strategy : {v1::SERIES_STRATEGY_REFACTOR, v1::SERIES_STRATEGY_REUSE}) {
      SCOPED_TRACE(absl::StrCat(pattern.field, " ", pattern.symmetry, " ", strategy));
      Series by_texts(stub()), by_values(stub());
      std::vector<Complex> values = pattern.Values(1);
      Answer expected, answer;
      ASSERT_TRUE(TextStep(by_texts, pattern, values, &expected, true, strategy))
          << by_texts.Status().error_message();
      ASSERT_TRUE(TextStep(by_values, pattern, values, &answer, true, strategy));
      ASSERT_TRUE(answer.result.solved());
      for (int step = 2; step < 5; ++step) {
        const std::vector<Complex> random = pattern.Values(step);
        for (size_t k = 0; k < values.size(); ++k) values[k] += 1e-4 * random[k];
        if (pattern.field == "pattern") values = pattern.Values(0);
        ASSERT_TRUE(TextStep(by_texts, pattern, values, &expected));
        ASSERT_TRUE(ValuesStep(by_values, pattern, values, &answer))
            << by_values.Status().error_message();
        EXPECT_TRUE(answer.result.accurate());
        EXPECT_EQ(answer.x, expected.x);
        EXPECT_EQ(answer.result.strategy(), expected.result.strategy());
        EXPECT_EQ(answer.result.backward_error(), expected.result.backward_error());
        ASSERT_EQ(answer.factor.has_value(), expected.factor.has_value());
        if (!answer.factor) continue;
        EXPECT_EQ(answer.factor->nnz(), expected.factor->nnz());
      }
      EXPECT_TRUE(by_texts.Finish().ok());
      EXPECT_TRUE(by_values.Finish().ok());
    }
  }

  void ExpectAllSameAsTexts() {
    for (const char* field : {"real", "complex"}) {
      for (const char* symmetry : {"general", "symmetric", "skew-symmetric"}) {
        ExpectSameAsTexts(Lower(field, symmetry));
      }
    }
    Pattern pattern = Lower("complex", "hermitian");
    pattern.gzip = true;
    ExpectSameAsTexts(pattern);
  }

  const std::vector<double> rhs_ = RandomMatrix(kN, 1, 7);
};

TEST_F(RpcSeriesValuesTest, ValuesEqualATextWithThem) {
  FakeDeviceOptions options;
  options.has_sparse_ops = true;
  StartServer(options);
  ExpectAllSameAsTexts();
}

TEST_F(RpcSeriesValuesTest, ValuesEqualATextWithThemInDenseStorage) {
  StartServer();
  ExpectAllSameAsTexts();
}

TEST_F(RpcSeriesValuesTest, APatternHasAsManyValuesAsLines) {
  FakeDeviceOptions options;
  options.has_sparse_ops = true;
  StartServer(options);
  const Pattern pattern = Lower("pattern", "symmetric");
  ExpectSameAsTexts(pattern);
  // A real text has the lines of the pattern, with values other than one.
  Pattern real = pattern;
  real.field = "real";
  const std::vector<Complex> values = real.Values(3);
  Series by_texts(stub()), by_values(stub());
  Answer expected, answer;
  ASSERT_TRUE(TextStep(by_texts, pattern, values, &expected, true, v1::SERIES_STRATEGY_REFACTOR));
  ASSERT_TRUE(TextStep(by_values, pattern, values, &answer, true, v1::SERIES_STRATEGY_REFACTOR));
  ASSERT_TRUE(TextStep(by_texts, real, values, &expected));
  ASSERT_TRUE(ValuesStep(by_values, real, values, &answer));
  EXPECT_EQ(answer.x, expected.x);
}

TEST_F(RpcSeriesValuesTest, InvalidValuesAreRefused) {
  FakeDeviceOptions options;
  options.has_sparse_ops = true;
  StartServer(options);
  const Holdings before = Idle();
  const Pattern pattern = Lower("real", "symmetric");
  const Pattern hermitian = Lower("complex", "hermitian");
  const auto count = std::ssize(pattern.lines);
  const std::vector<Complex> values = pattern.Values(1);
  std::vector<Complex> infinite = values;
  infinite[3] = std::numeric_limits<double>::infinity();
  std::vector<Complex> not_a_number = values;
  not_a_number.back() = std::numeric_limits<double>::quiet_NaN();
  std::vector<Complex> not_real = hermitian.Values(1);
  const auto diagonal = std::ssize(hermitian.lines) - 1;  // entry (1, 1)
  not_real[diagonal].imag(1);
  struct Case {
    const Pattern& pattern;
    int64_t count;
    std::string data;
    const char* message;
  };
  const Case cases[] = {
      {pattern, count + 1, pattern.Packed(values) + std::string(8, 'x'), "values"},
      {pattern, count - 1, pattern.Packed(values), "values"},
      {pattern, 0, "", "values"},
      {pattern, -1, "", "values"},
      {pattern, std::numeric_limits<int64_t>::max(), pattern.Packed(values), "values"},
      {pattern, int64_t{1} << 61, pattern.Packed(values), "values"},
      {pattern, count, pattern.Packed(values) + std::string(8, 'x'), "more bytes"},
      {pattern, count, pattern.Packed(infinite), "matrix"},
      {pattern, count, pattern.Packed(not_a_number), "matrix"},
      {hermitian, count, hermitian.Packed(not_real), "hermitian"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(absl::StrCat(c.count, " ", c.message));
    Series series(stub());
    Answer answer;
    ASSERT_TRUE(TextStep(series, c.pattern, c.pattern.Values(1), &answer, true));
    while (ValuesStep(series, c.count, c.data, &answer)) {
      // The server detects excess data when the step is complete.
      ASSERT_THAT(c.message, HasSubstr("more"));
    }
    const grpc::Status status = series.Status();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr(c.message));
  }
  WaitUntil([&] { return Idle().factors == before.factors + std::size(cases); },
            "the streams' own parts to go");
}

TEST_F(RpcSeriesValuesTest, ValuesRequireATextOfThisStream) {
  FakeDeviceOptions options;
  options.has_sparse_ops = true;
  StartServer(options);
  const Pattern pattern = Lower("real", "general");
  const std::vector<Complex> values = pattern.Values(1);
  const auto expect_no_text = [](Series& series, const char* why) {
    const grpc::Status status = series.Status();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), HasSubstr(why));
  };
  Answer answer;
  std::string handle;
  {
    Series series(stub());
    ASSERT_TRUE(TextStep(series, pattern, values, &answer, true));
    handle = answer.factor->handle();
    EXPECT_TRUE(series.Finish().ok());
  }
  {
    SCOPED_TRACE("taken up by its handle");
    Series series(stub());
    EXPECT_FALSE(ValuesStep(series, std::ssize(values), pattern.Packed(values), &answer, handle));
    expect_no_text(series, "this stream has sent none");
  }
  {
    SCOPED_TRACE("at first");
    Series series(stub());
    EXPECT_FALSE(ValuesStep(series, pattern, values, &answer));
    EXPECT_EQ(series.Status().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  }
  {
    SCOPED_TRACE("a dense matrix came since");
    Series series(stub());
    ASSERT_TRUE(TextStep(series, pattern, values, &answer, true));
    ASSERT_TRUE(series.Step(a_, b_, &answer));
    EXPECT_EQ(answer.result.entry_digest(), "");
    EXPECT_FALSE(ValuesStep(series, pattern, values, &answer));
    expect_no_text(series, "this stream's last matrix was dense");
  }
}

TEST_F(RpcSeriesValuesTest, ValuesOfOtherEntriesAreRefused) {
  FakeDeviceOptions options;
  options.has_sparse_ops = true;
  StartServer(options);
  const Pattern pattern = Lower("real", "general");
  // Other texts have the same positions in another order, or as many entries at other positions.
  Pattern reversed = pattern;
  std::reverse(reversed.lines.begin(), reversed.lines.end());
  Pattern transposed = pattern;
  for (auto& [row, column] : transposed.lines) std::swap(row, column);
  for (const Pattern& other : {reversed, transposed}) {
    Series series(stub()), of_other(stub());
    Answer answer, others;
    const std::vector<Complex> values = other.Values(2);
    ASSERT_TRUE(TextStep(of_other, other, other.Values(1), &others, true));
    ASSERT_TRUE(TextStep(series, pattern, pattern.Values(1), &answer, true));
    EXPECT_FALSE(ValuesStep(series, other, values, &others));
    const grpc::Status status = series.Status();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
    EXPECT_THAT(status.error_message(), HasSubstr("another order"));
    EXPECT_THAT(status.error_details(), HasSubstr("PATTERN_MISMATCH"));
  }
  for (const char* digest : {"", "0123456789abcdeF", "0123456789abcde", "0123456789abcdef0"}) {
    SCOPED_TRACE(digest);
    Series series(stub());
    Answer answer, claimed;
    ASSERT_TRUE(TextStep(series, pattern, pattern.Values(1), &answer, true));
    claimed.result.set_entry_digest(digest);
    EXPECT_FALSE(ValuesStep(series, pattern, pattern.Values(2), &claimed));
    const grpc::Status status = series.Status();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), HasSubstr("entry_digest"));
  }
}

TEST_F(RpcSeriesValuesTest, ValuesFollowASingularText) {
  StartServer();
  ExpectToFollowASingularText();
}

TEST_F(RpcSeriesValuesTest, ValuesFollowASingularTextInSparseStorage) {
  FakeDeviceOptions options;
  options.has_sparse_ops = true;
  StartServer(options);
  ExpectToFollowASingularText();
}

TEST_F(RpcSeriesValuesTest, TheMapIsEvictedLikeTheMatrixAndFreedWithTheStream) {
  FakeDeviceOptions options;
  options.has_sparse_ops = true;
  StartServer(options);
  const Holdings before = Idle();
  const Pattern pattern = Lower("real", "symmetric");
  const std::vector<Complex> values = pattern.Values(1);
  Series series(stub());
  Answer answer;
  ASSERT_TRUE(TextStep(series, pattern, values, &answer, true));
  const auto handle = Handle::Parse(answer.factor->handle());
  WaitUntil([&] { return Held().streams_busy == 0; }, "the step's stream");
  // The stream holds the factor, the solution and the map. All can be evicted.
  const Holdings held = Held();
  EXPECT_EQ(held.factors, 3u);
  EXPECT_EQ(held.device_reserved,
            core().engine.cache.EvictableBytes(*core().engine.devices.slots()[0]));
  DeviceSlot& slot = *core().engine.devices.slots()[0];
  {
    // Moves the parts to host memory. The next step promotes them.
    const auto all = core().engine.cache.ReserveOnDevice(slot, slot.budget->limit());
    ASSERT_TRUE(all.ok());
    const Reservation taken = std::move(const_cast<Reservation&>(*all));
  }
  ASSERT_TRUE(ValuesStep(series, pattern, pattern.Values(2), &answer))
      << series.Status().error_message();
  EXPECT_TRUE(answer.result.accurate());
  WaitUntil([&] { return Held().streams_busy == 0; }, "the step's stream");
  {
    const auto pin = core().engine.cache.Acquire("default", *handle);
    ASSERT_TRUE(pin.ok());
    const size_t device = slot.budget->limit() - slot.budget->reserved();
    ASSERT_TRUE(
        core()
            .engine.cache.ReserveOnDevice(slot, device + core().engine.cache.EvictableBytes(slot))
            .ok());
    MemoryBudget& host = core().engine.devices.host_budget();
    const size_t evicted = core().engine.cache.tiers()[static_cast<size_t>(Tier::kHost)].bytes;
    ASSERT_TRUE(core().engine.cache.ReserveOnHost(host.limit() - host.reserved() + evicted).ok());
  }
  EXPECT_FALSE(ValuesStep(series, pattern, pattern.Values(3), &answer));
  ExpectMatrixGone(series.Status());
  WaitUntil([&] { return Idle().factors == before.factors + 1; }, "the parts between the steps");
}

TEST_F(RpcSeriesValuesTest, ValuesFollowOtherChangesInDenseStorage) {
  StartServer();
  const Pattern pattern = Lower("real", "general");
  const std::vector<Complex> values = pattern.Values(1);
  Series by_values(stub()), by_texts(stub());
  Answer answer, expected;
  ASSERT_TRUE(TextStep(by_values, pattern, values, &answer, true, v1::SERIES_STRATEGY_REFACTOR));
  ASSERT_TRUE(TextStep(by_texts, pattern, values, &expected, true, v1::SERIES_STRATEGY_REFACTOR));
  v1::SolveSeriesRequest change = Request({}, false);
  change.mutable_header()->mutable_change()->set_rank(1);
  change.set_data(Concatenate(RandomMatrix(kN, 1, 30), RandomMatrix(kN, 1, 31)));
  change.set_rhs_data(Bytes(rhs_));
  ASSERT_TRUE(by_values.Write(change) && by_values.Receive(&answer));
  const std::vector<Complex> next = pattern.Values(2);
  ASSERT_TRUE(ValuesStep(by_values, pattern, next, &answer));
  ASSERT_TRUE(TextStep(by_texts, pattern, next, &expected));
  EXPECT_EQ(answer.x, expected.x);
}

}  // namespace
}  // namespace crout::testing::series_values_test
