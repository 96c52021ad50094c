// SPDX-License-Identifier: Apache-2.0

// Tests connections of crout.h to a real daemon: their progress function, priority and end.
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "tests/e2e/clients/c_api.h"

namespace crout::e2e::c_api_connection_test {
namespace {

using ::testing::HasSubstr;

TEST_F(CApiTest, AConnectionReportsTheProgressOfCallsWithoutTheirOwn) {
  std::vector<crout_progress> reports;
  auto settings = Sized<crout_options>();
  settings.server = daemon_.address().c_str();
  settings.progress = [](const crout_progress* update, void* context) {
    static_cast<std::vector<crout_progress>*>(context)->push_back(*update);
  };
  settings.progress_context = &reports;
  crout_connection* connection = nullptr;
  ASSERT_EQ(crout_connect_with(&settings, &connection), CROUT_OK) << crout_last_error();
  // Returns the bytes of the last report, and forgets all reports.
  const auto sent = [&] {
    const int64_t bytes = reports.empty() ? -1 : reports.back().bytes_sent;
    reports.clear();
    return bytes;
  };
  constexpr int64_t kMatrix = 4 * sizeof(double), kSides = 2 * sizeof(double);
  const std::vector<double> a = {4, 1, 1, 3};
  std::vector<double> b = {1, 2}, x(2);
  const crout_matrix matrix = Matrix(a, 2, 2), rhs = Matrix(b, 2, 1);
  crout_factor* factor = nullptr;
  ASSERT_EQ(crout_dgetrf(connection, 2, a.data(), 2, &factor), 0);
  EXPECT_EQ(sent(), kMatrix);
  EXPECT_EQ(crout_dgetrs(factor, 'N', 2, 1, b.data(), 2), 0);
  EXPECT_EQ(sent(), kSides);
  EXPECT_EQ(crout_refactorize(factor, &matrix), CROUT_OK);
  EXPECT_EQ(sent(), kMatrix);
  EXPECT_EQ(crout_solve(factor, &rhs, nullptr, x.data(), 2, nullptr), CROUT_OK);
  EXPECT_EQ(sent(), kSides);
  auto own = Sized<crout_solve_options>();
  int calls = 0;
  own.progress = [](const crout_progress*, void* context) { ++*static_cast<int*>(context); };
  own.progress_context = &calls;
  EXPECT_EQ(crout_solve(factor, &rhs, &own, x.data(), 2, nullptr), CROUT_OK);
  EXPECT_GT(calls, 0);
  EXPECT_EQ(sent(), -1) << "the options of a call replace the connection's function";
  crout_factor* attached = nullptr;
  auto description = Sized<crout_description>();
  ASSERT_EQ(crout_describe(factor, &description), CROUT_OK);
  ASSERT_EQ(crout_attach(connection, description.handle, &attached), CROUT_OK);
  EXPECT_EQ(crout_solve(attached, &rhs, nullptr, x.data(), 2, nullptr), CROUT_OK);
  EXPECT_EQ(sent(), kSides);
  crout_series* series = nullptr;
  ASSERT_EQ(crout_series_open(connection, nullptr, &series), CROUT_OK);
  EXPECT_EQ(crout_series_step(series, &matrix, &rhs, x.data(), 2, nullptr), CROUT_OK);
  EXPECT_EQ(sent(), kMatrix + kSides);
  EXPECT_EQ(crout_series_close(series), CROUT_OK);
  EXPECT_EQ(crout_release(attached), CROUT_OK);
  EXPECT_EQ(crout_release(factor), CROUT_OK);
  crout_disconnect(connection);
}

TEST_F(CApiTest, AFactorOutlivesItsConnectionAndServesManyThreads) {
  crout_factor* factor = Factor();
  crout_disconnect(std::exchange(connection_, nullptr));
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; ++k) {
    threads.emplace_back([&] {
      EXPECT_EQ(crout_last_error_code(), CROUT_OK);  // errors are stored per thread
      std::vector<double> b = {6, 7};
      EXPECT_EQ(crout_dgetrs(factor, 'N', 2, 1, b.data(), 2), 0) << crout_last_error();
      EXPECT_NEAR(b[0], 1, 1e-15);
      EXPECT_EQ(crout_dgetrs(factor, 'N', 2, 1, b.data(), 1), -6);
      EXPECT_EQ(crout_last_error_code(), CROUT_INVALID_ARGUMENT);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(crout_release(factor), CROUT_OK);
}

TEST_F(CApiTest, AConnectionHasAPriority) {
  auto settings = Sized<crout_options>();
  settings.server = daemon_.address().c_str();
  for (const char* priority : {"interactive", "normal", "batch", ""}) {
    settings.priority = priority;
    crout_connection* connection = nullptr;
    ASSERT_EQ(crout_connect_with(&settings, &connection), CROUT_OK) << crout_last_error();
    const double a = 2;
    crout_factor* factor = nullptr;
    EXPECT_EQ(crout_dgetrf(connection, 1, &a, 1, &factor), 0) << crout_last_error();
    EXPECT_EQ(crout_release(factor), CROUT_OK);
    crout_disconnect(connection);
  }
  settings.priority = "urgent";
  crout_connection* connection = nullptr;
  EXPECT_EQ(crout_connect_with(&settings, &connection), CROUT_INVALID_ARGUMENT);
  EXPECT_THAT(crout_last_error(), HasSubstr("'urgent': choose interactive, normal or batch"));
}

}  // namespace
}  // namespace crout::e2e::c_api_connection_test
