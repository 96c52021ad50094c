// SPDX-License-Identifier: Apache-2.0

// A run of `croutctl series`.
#ifndef CROUT_CLIENT_CLI_COMMANDS_SERIES_RUN_H_
#define CROUT_CLIENT_CLI_COMMANDS_SERIES_RUN_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cli/formats/array.h"
#include "client/cli/input/series_files.h"
#include "client/cli/output/array_files.h"
#include "client/cli/report/progress_bar.h"
#include "client/cli/session.h"
#include "crout/series.h"

namespace crout::cli {

// Arguments of the command line.
struct SeriesArguments {
  std::vector<std::string> paths;
  std::string rhs;
  bool ones = false;
  std::optional<Dtype> dtype;
  std::string start;
  bool keep = false;
  bool fail_singular = false;
  std::string output;
  FileFormat format = FileFormat::kMatrixMarket;
  SeriesOptions options;
};

// Sends the steps in order, writes each X, and reports. For one run.
class SeriesRun {
 public:
  SeriesRun(Session* session, const SeriesArguments& arguments)
      : session_(session), arguments_(arguments) {}

  absl::Status Run();

 private:
  // Whether steps without their own right-hand side have one.
  bool HasCommonRhs() const { return !arguments_.rhs.empty() || arguments_.ones; }
  absl::Status CheckStep(size_t index) const;
  absl::Status RunSteps();
  absl::Status RunStep(size_t index);
  // Returns the step's files in parentheses, unless `message` names one of them.
  std::string NamesOf(size_t index, absl::string_view message) const;
  absl::StatusOr<SeriesStep> Solve(const StepFiles& step, MatrixSink* x);
  // Solves with the matrix of an earlier step; the first step uses the matrix of --start.
  absl::StatusOr<SeriesStep> SolveAgain(const MatrixSource& rhs, const MatrixSource* x0,
                                        MatrixSink* x);
  absl::StatusOr<MatrixSource> RhsOf(const StepFiles& step);
  // The initial guess of a step in X's type; null if it has none.
  absl::StatusOr<const MatrixSource*> StartOf(const StepFiles& step, const MatrixSource& rhs);
  // Sets rows_ and dtype_ from the factor of --start.
  absl::Status Describe(const std::string& handle);
  // Output file of X of a step; empty: none.
  absl::StatusOr<std::string> OutputOf(size_t index);
  void Report(size_t index, const SeriesStep& step, double seconds);

  Session* const session_;
  const SeriesArguments& arguments_;
  SeriesSteps steps_;
  std::string last_matrix_;           // file of the server's current matrix; empty after a change
  std::string entry_digest_;          // digest of the last matrix, from the last result
  absl::StatusOr<int64_t> rows_ = 0;  // rows of the last matrix, if its file declares them
  Dtype dtype_ = Dtype::kFloat64;
  std::optional<Array> common_rhs_;
  std::optional<Array> rhs_;  // B of the current step; the next two hold its initial guess
  std::optional<Array> x0_;
  std::optional<MatrixSource> x0_source_;
  CallOptions call_;
  ProgressBar* bar_ = nullptr;  // bar of the current step
  std::optional<Series> series_;
  std::optional<ArrayFiles> x_;  // files of all X; nullopt: X is not written
};

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_COMMANDS_SERIES_RUN_H_
