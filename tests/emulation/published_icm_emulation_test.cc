// SPDX-License-Identifier: Apache-2.0

// Tests the device code of the published iterative Crout method on host threads. Bits and counts
// must equal those of the host version, which reproduces the published counts.
#include "kernels/cuda/icm/published_run.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <complex>
#include <numeric>
#include <type_traits>
#include <vector>

#include "kernels/host/icm/published_run.h"
#include "kernels/icm/sections.h"
#include "tests/support/matrices/gallery.h"

namespace crout::cuda::published_icm_emulation_test {
namespace {

constexpr int kTile = 8;
constexpr unsigned kBlocks = 2;

struct FactorOptions {
  int64_t section = 8;
  PivotCriterion criterion{.rule = PivotRule::kInterval};
  double absolute_tolerance = 0;
  int64_t sweep_limit = 1 << 20;
  uint32_t stop = 0;
};

template <class T>
struct Outcome {
  std::vector<T> lu;
  std::vector<int64_t> rows;
  std::vector<int64_t> sweeps;
  std::vector<int64_t> pivots;
  std::vector<int64_t> bad_elements;
  int64_t info = 0;
  bool sweep_limit = false;
  bool not_finite = false;
  bool stopped = false;
};

template <class T>
Outcome<T> OnDevice(const std::vector<T>& matrix, int64_t n, const FactorOptions& requested) {
  const int64_t sections = SectionGrid{n, requested.section}.count();
  Outcome<T> outcome;
  outcome.lu = matrix;
  outcome.rows.resize(n);
  std::iota(outcome.rows.begin(), outcome.rows.end(), 0);
  std::vector<T> a = matrix;
  std::vector<T> sums(n * n, T{0});
  std::vector<T> next(n * n, T{0});
  std::vector<int32_t> sweeps(sections * sections);
  std::vector<int32_t> pivots(sections);
  std::vector<int32_t> bad(sections);
  std::vector<int32_t> changed(sections);
  std::vector<int32_t> nan(sections);
  PublishedFlags flags = {};
  IcmState state = {};
  state.info = kNoIndex;
  state.position = kNoPosition;
  int64_t columns = 0;
  uint32_t stop = requested.stop;
  IcmRun run;
  run.state = &state;
  run.host.stop = &stop;
  run.host.columns = &columns;
  run.sweeps = sweeps.data();
  run.pivots = pivots.data();
  run.bad_elements = bad.data();
  run.sections = sections;
  run.section_size = requested.section;
  run.criterion = requested.criterion;
  run.tolerances.absolute = requested.absolute_tolerance;
  run.sweep_limit = requested.sweep_limit;
  const PublishedRun<T> work{{outcome.lu.data(), n, n, n}, a.data(),       sums.data(), next.data(),
                             outcome.rows.data(),          changed.data(), nan.data(),  &flags};
  for (int64_t index = 0; index < sections; ++index) {
    if (Halted(&state) || flags.over != 0) break;
    RunEmulatedGrid(kBlocks, kTile * kTile,
                    [&] { PublishedSection<T, kTile>(run, work, index).Run(); });
  }
  outcome.sweeps.assign(sweeps.begin(), sweeps.end());
  outcome.pivots.assign(pivots.begin(), pivots.end());
  outcome.bad_elements.assign(bad.begin(), bad.end());
  outcome.info = state.info == kNoIndex ? 0 : state.info;
  outcome.sweep_limit = state.end == static_cast<int32_t>(IcmEnd::kSweepLimit);
  outcome.not_finite = state.end == static_cast<int32_t>(IcmEnd::kNotFinite);
  outcome.stopped = state.stopped != 0;
  return outcome;
}

// The host's type of T: std::complex for Complex.
template <class T>
using HostType = std::conditional_t<kIsComplex<T>, std::complex<RealPart<T>>, T>;

template <class T>
Outcome<T> OnHost(const std::vector<T>& matrix, int64_t n, const FactorOptions& requested) {
  using H = HostType<T>;
  const auto as_host = [](const T* x) { return reinterpret_cast<const H*>(x); };
  const SectionGrid grid{n, requested.section};
  std::vector<H> lu(as_host(matrix.data()), as_host(matrix.data()) + n * n);
  std::vector<H> a = lu;
  std::vector<H> sums(n * n, H{0});
  std::vector<H> next(grid.size * grid.size);
  std::vector<H> strips(grid.size);
  std::vector<std::byte> memory(RunRecordBytes(grid));
  auto* const record = new (memory.data()) RunRecord{.grid = grid};
  std::fill_n(record->section_sweeps(), record->counts(), 0);
  const host::PublishedBuffers<H> buffers{{lu.data(), n, n, n},
                                          {a.data(), n, n, n},
                                          {sums.data(), n, n, n},
                                          {next.data(), grid.size, grid.size, grid.size},
                                          strips.data()};
  LuParameters parameters;
  parameters.absolute_tolerance = requested.absolute_tolerance;
  DeviceReport report;
  Outcome<T> outcome;
  outcome.rows.resize(n);
  std::iota(outcome.rows.begin(), outcome.rows.end(), 0);
  const host::PublishedOptions<H> options{requested.criterion, Tolerances<RealPart<H>>(parameters),
                                          requested.sweep_limit, 1};
  outcome.info = host::RunPublished(
      buffers, outcome.rows, options, report, [&] { return requested.stop != 0; }, *record);
  const auto* const bits = reinterpret_cast<const T*>(lu.data());
  outcome.lu.assign(bits, bits + n * n);
  const int64_t count = grid.count();
  outcome.sweeps.assign(record->section_sweeps(), record->section_sweeps() + count * count);
  outcome.pivots.assign(record->pivots(), record->pivots() + count);
  outcome.bad_elements.assign(record->bad_elements(), record->bad_elements() + count);
  outcome.sweep_limit = record->outcome == RunOutcome::kSweepLimit;
  outcome.not_finite = record->outcome == RunOutcome::kNotFinite;
  outcome.stopped = record->outcome == RunOutcome::kStopped;
  return outcome;
}

// Returns a matrix whose entries and diagonal zeros have the distribution of the published dense
// matrices.
template <class T>
std::vector<T> Dense(int64_t n, uint64_t seed) {
  const testing::HostMatrix parts = testing::RandomMatrix(n, 2 * n, seed);
  const testing::HostMatrix coin = testing::RandomMatrix(n, 1, seed + 1);
  std::vector<T> a;
  for (int64_t e = 0; e < n * n; ++e) {
    using Real = RealPart<T>;
    if constexpr (kIsComplex<T>) {
      a.push_back({static_cast<Real>(1000 * parts[2 * e]), static_cast<Real>(parts[2 * e + 1])});
    } else {
      a.push_back(static_cast<Real>(1000 * parts[e]));
    }
  }
  for (int64_t i = 0; i + 1 < n; ++i) {
    if (coin[i] < 0) a[i + i * n] = T{0};
  }
  return a;
}

template <class T>
void ExpectSame(const Outcome<T>& device, const Outcome<T>& host, bool bits) {
  EXPECT_EQ(device.info, host.info);
  EXPECT_EQ(device.sweep_limit, host.sweep_limit);
  EXPECT_EQ(device.not_finite, host.not_finite);
  EXPECT_EQ(device.stopped, host.stopped);
  // If the run fails, the device may end a few sweeps earlier than the host.
  if (host.sweep_limit || host.not_finite || host.stopped || host.info != 0) return;
  EXPECT_EQ(device.sweeps, host.sweeps);
  EXPECT_EQ(device.pivots, host.pivots);
  EXPECT_EQ(device.bad_elements, host.bad_elements);
  EXPECT_EQ(device.rows, host.rows);
  if (bits) {
    EXPECT_TRUE(device.lu == host.lu);
  }
}

template <class T>
class PublishedIcmEmulationTest : public ::testing::Test {};
using Types = ::testing::Types<double, Complex<float>>;
TYPED_TEST_SUITE(PublishedIcmEmulationTest, Types);

TYPED_TEST(PublishedIcmEmulationTest, MatchesTheHostsCountsAndBits) {
  using T = TypeParam;
  constexpr int64_t kOrder = 21;  // sections have 8, 8 and 5 columns
  const std::vector<T> a = Dense<T>(kOrder, 5);
  for (const PivotRule rule : {PivotRule::kInterval, PivotRule::kPartial}) {
    FactorOptions requested;
    requested.criterion.rule = rule;
    requested.criterion.low = 300;
    const Outcome<T> host = OnHost(a, kOrder, requested);
    EXPECT_GT(std::accumulate(host.pivots.begin(), host.pivots.end(), 0), 1);
    EXPECT_FALSE(host.not_finite);
    // The device rounds complex quotients differently.
    ExpectSame(OnDevice(a, kOrder, requested), host, !kIsComplex<T>);
  }
}

TYPED_TEST(PublishedIcmEmulationTest, EndsSweepsByToleranceLikeTheHost) {
  using T = TypeParam;
  constexpr int64_t kOrder = 12;
  std::vector<T> a = Dense<T>(kOrder, 8);
  for (int64_t i = 0; i < kOrder; ++i) a[i + i * kOrder] = T(20000);
  FactorOptions requested;
  requested.criterion.rule = PivotRule::kNone;
  const Outcome<T> exact = OnHost(a, kOrder, requested);
  requested.absolute_tolerance = 1;
  const Outcome<T> host = OnHost(a, kOrder, requested);
  EXPECT_LT(host.sweeps[0], exact.sweeps[0]);
  ExpectSame(OnDevice(a, kOrder, requested), host, !kIsComplex<T>);
}

TYPED_TEST(PublishedIcmEmulationTest, EndsLikeTheHost) {
  using T = TypeParam;
  constexpr int64_t kOrder = 10;
  FactorOptions requested;
  const std::vector<T> regular = Dense<T>(kOrder, 3);
  std::vector<T> singular = regular;
  for (int64_t i = 0; i < kOrder; ++i) singular[i + 6 * kOrder] = T{0};
  EXPECT_EQ(OnHost(singular, kOrder, requested).info, 7);
  ExpectSame(OnDevice(singular, kOrder, requested), OnHost(singular, kOrder, requested), false);
  std::vector<T> large = regular;
  const RealPart<T> most = std::numeric_limits<RealPart<T>>::max();
  for (int64_t i = 0; i < kOrder; ++i) large[i + i * kOrder] = T(RealPart<T>(1e-3));
  large[3] = large[3 * kOrder] = T(most / 4);
  EXPECT_TRUE(OnHost(large, kOrder, requested).not_finite);
  ExpectSame(OnDevice(large, kOrder, requested), OnHost(large, kOrder, requested), false);
  requested.sweep_limit = 3;
  ExpectSame(OnDevice(regular, kOrder, requested), OnHost(regular, kOrder, requested), false);
  EXPECT_TRUE(OnDevice(regular, kOrder, requested).sweep_limit);
  requested.stop = 1;
  ExpectSame(OnDevice(regular, kOrder, requested), OnHost(regular, kOrder, requested), false);
  // Without pivoting, a zero diagonal entry causes a division by zero, which info reports.
  std::vector<T> zero = regular;
  zero[0] = T{0};
  FactorOptions plain;
  plain.criterion.rule = PivotRule::kNone;
  EXPECT_EQ(OnHost(zero, kOrder, plain).info, 1);
  ExpectSame(OnDevice(zero, kOrder, plain), OnHost(zero, kOrder, plain), false);
}

}  // namespace
}  // namespace crout::cuda::published_icm_emulation_test
