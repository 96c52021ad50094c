// A run of `croutctl series`.
#ifndef CROUT_CLIENT_CLI_SERIES_RUN_H_
#define CROUT_CLIENT_CLI_SERIES_RUN_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/array.h"
#include "client/cli/array_files.h"
#include "client/cli/progress_bar.h"
#include "client/cli/series_files.h"
#include "client/cli/session.h"
#include "crout/series.h"

namespace crout::cli {

// What the command line says.
struct SeriesArguments {
  std::vector<std::string> paths;
  std::string rhs;
  bool ones = false;
  v1::Dtype dtype = v1::DTYPE_UNSPECIFIED;
  std::string start;
  bool keep = false;
  bool fail_singular = false;
  std::string output;
  FileFormat format = FileFormat::kMatrixMarket;
  v1::SolveSeriesHeader header;
};

// Sends the steps one after the other, writes each X and reports. For one run.
class SeriesRun {
 public:
  SeriesRun(Session* session, const SeriesArguments& arguments)
      : session_(session), arguments_(arguments) {}

  absl::Status Run();

 private:
  // What is wrong with the steps, found before the first is sent.
  absl::Status CheckSteps() const;
  absl::Status RunSteps();
  absl::Status RunStep(size_t index);
  absl::StatusOr<SeriesStep> Solve(const StepFiles& step, client::MatrixSink* x);
  // With the matrix of an earlier step; with none at first, that of --start.
  absl::StatusOr<SeriesStep> SolveAgain(const client::MatrixSource& rhs,
                                        const client::MatrixSource* x0, client::MatrixSink* x);
  absl::StatusOr<client::MatrixSource> RhsOf(const StepFiles& step);
  // In X's type; null where the step has none.
  absl::StatusOr<const client::MatrixSource*> StartOf(const StepFiles& step,
                                                      const client::MatrixSource& rhs);
  // The order and type of --start's matrix.
  absl::Status Describe(const std::string& handle);
  // Where X of a step is written; empty: nowhere.
  absl::StatusOr<std::string> OutputOf(size_t index);
  void Report(size_t index, const SeriesStep& step, double seconds);

  Session* const session_;
  const SeriesArguments& arguments_;
  SeriesSteps steps_;
  std::string last_matrix_;           // of which the server's is; none once that was changed
  std::string entry_digest_;          // of the last matrix, as the last result has it
  absl::StatusOr<int64_t> rows_ = 0;  // of the last matrix, where its file says so
  v1::Dtype dtype_ = v1::DTYPE_FLOAT64;
  std::optional<Array> common_rhs_;
  std::optional<Array> rhs_;  // of the step, as the next two
  std::optional<Array> x0_;
  std::optional<client::MatrixSource> x0_source_;
  client::CallOptions call_;
  ProgressBar* bar_ = nullptr;  // of the step
  std::optional<Series> series_;
  std::optional<ArrayFiles> x_;  // of all steps; none: X is not written
};

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_SERIES_RUN_H_
