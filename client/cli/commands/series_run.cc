// SPDX-License-Identifier: Apache-2.0

#include "client/cli/commands/series_run.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "client/cli/exit_codes.h"
#include "client/cli/input/local_matrix.h"
#include "client/cli/input/matrix_input.h"
#include "client/cli/input/series_files.h"
#include "client/cli/output/array_writer.h"
#include "client/cli/report/text.h"

namespace crout::cli {

absl::Status SeriesRun::CheckStep(size_t index) const {
  const StepFiles& step = steps_.files()[index];
  if (index == 0 && step.matrix.empty() && arguments_.start.empty()) {
    return absl::InvalidArgumentError(steps_.Shown(absl::StrCat(
        absl::StrJoin(step.change.paths(), ", "), step.rhs,
        ": the first step has no matrix. Add its file, or give a factor with --start")));
  }
  if (!step.rhs.empty() || HasCommonRhs()) return absl::OkStatus();
  return absl::InvalidArgumentError(steps_.Shown(absl::StrCat(
      step.matrix, absl::StrJoin(step.change.paths(), ", "), step.matrix.empty() ? step.x0 : "",
      " has no right-hand side. Add its file, or give --rhs or --ones")));
}

absl::Status SeriesRun::Run() {
  if (!arguments_.output.empty() || session_->show() != Show::kJson) {
    const bool is_directory = !arguments_.output.empty() && arguments_.output != "-";
    x_.emplace(is_directory ? absl::StrCat(arguments_.output, "/x") : arguments_.output,
               arguments_.format);
    if (!is_directory) session_->ReportOnStandardError();
  }
  auto steps =
      SeriesSteps::Find(arguments_.paths, HasCommonRhs(), [this] { return session_->deadline(); });
  if (!steps.ok()) return steps.status();
  steps_ = *std::move(steps);
  if (const auto first = steps_.Await(0); !first.ok()) return first.status();
  for (size_t index = 0; index < steps_.files().size(); ++index) {
    if (absl::Status status = CheckStep(index); !status.ok()) return status;
  }
  SeriesOptions options = arguments_.options;
  if (!arguments_.start.empty()) {
    options.cache = {};
    auto handle = session_->Handle(arguments_.start);
    if (!handle.ok()) return handle.status();
    if (absl::Status status = Describe(*handle); !status.ok()) return status;
    options.handle = *std::move(handle);
  }
  if (!arguments_.output.empty() && arguments_.output != "-") {
    std::error_code error;
    std::filesystem::create_directory(arguments_.output, error);
    if (error) {
      return FileErrnoError(error.value(), absl::StrCat("cannot create ", arguments_.output));
    }
  }
  if (!arguments_.rhs.empty()) {
    auto rhs = ReadRhs(arguments_.rhs, arguments_.dtype, session_->deadline());
    if (!rhs.ok()) return rhs.status();
    common_rhs_ = *std::move(rhs);
  }
  call_ = session_->call();
  call_.on_progress = [this](const ProgressUpdate& update) { bar_->Update(update); };
  // Not owned: the session owns the client.
  const std::shared_ptr<Client> client(&session_->client(), [](Client*) {});
  series_.emplace(client, std::move(options), call_);
  if (arguments_.keep) series_->KeepFactor();
  absl::Status status = RunSteps();
  // Also writes the solutions before a failed step.
  if (x_) status.Update(x_->Close());
  return status;
}

absl::Status SeriesRun::RunSteps() {
  for (size_t index = 0;; ++index) {
    const auto more = steps_.Await(index);
    if (more.ok() && !*more) break;
    absl::Status status = more.ok() ? CheckStep(index) : more.status();
    if (status.ok()) status = RunStep(index);
    if (!status.ok()) {
      if (arguments_.keep) session_->WarnIfKept(series_->factor());
      return status;
    }
  }
  if (arguments_.keep && session_->show() == Show::kName) {
    session_->Print({.names = {series_->factor().handle}});
  }
  return series_->Close();
}

absl::Status SeriesRun::RunStep(size_t index) {
  const auto output = OutputOf(index);
  if (!output.ok()) return output.status();
  ArrayFileSink x(*output, x_ ? x_->format() : arguments_.format);
  const absl::Time begin = absl::Now();
  absl::StatusOr<SeriesStep> step;
  {
    ProgressBar bar(session_->progress());
    bar_ = &bar;
    step = Solve(steps_.files()[index], &x);
  }
  if (!step.ok()) {
    // The new status has the code and details of the old one.
    const std::string message = steps_.Shown(step.status().message());
    absl::Status status(step.status().code(),
                        absl::StrCat("step ", index, NamesOf(index, message), ": ", message));
    step.status().ForEachPayload([&](absl::string_view type, const absl::Cord& payload) {
      status.SetPayload(type, payload);
    });
    return status;
  }
  entry_digest_ = step->result.entry_digest;
  if (step->result.solved) {
    absl::Status closed = x.Close();
    if (closed.ok() && x_) closed = x_->Flush();
    if (!closed.ok()) return closed;
  } else if (arguments_.fail_singular) {
    session_->ExitWith(kSingular);
  }
  Report(index, *step, absl::ToDoubleSeconds(absl::Now() - begin));
  return absl::OkStatus();
}

std::string SeriesRun::NamesOf(size_t index, absl::string_view message) const {
  const StepFiles& files = steps_.files()[index];
  std::vector<std::string> names;
  for (const std::string& path : {files.matrix, files.rhs, files.x0}) {
    if (!path.empty()) names.push_back(steps_.Shown(path));
  }
  for (const std::string& path : files.change.paths()) names.push_back(steps_.Shown(path));
  const bool is_named = absl::c_any_of(
      names, [&](const std::string& name) { return absl::StrContains(message, name); });
  return names.empty() || is_named ? "" : absl::StrCat(" (", absl::StrJoin(names, ", "), ")");
}

absl::StatusOr<SeriesStep> SeriesRun::Solve(const StepFiles& step, MatrixSink* x) {
  std::optional<MatrixInput> matrix;
  if (!step.matrix.empty()) {
    auto opened = MatrixInput::Open(step.matrix, arguments_.dtype, session_->deadline());
    if (!opened.ok()) return opened.status();
    matrix = *std::move(opened);
    rows_ = matrix->Rows();
    dtype_ = matrix->dtype();
  }
  std::optional<MatrixChange> change;
  if (!step.change.paths().empty()) {
    auto read = ReadChange(step.change, dtype_, entry_digest_);
    if (!read.ok()) return read.status();
    change = *std::move(read);
  }
  const auto rhs = RhsOf(step);
  if (!rhs.ok()) return rhs.status();
  const auto x0 = StartOf(step, *rhs);
  if (!x0.ok()) return x0.status();
  if (change) {
    last_matrix_.clear();
    return series_->Step(*change, *rhs, x, *x0);
  }
  if (!matrix) return SolveAgain(*rhs, *x0, x);
  last_matrix_ = step.matrix;
  return series_->Step(matrix->Source(), *rhs, x, *x0);
}

absl::StatusOr<SeriesStep> SeriesRun::SolveAgain(const MatrixSource& rhs, const MatrixSource* x0,
                                                 MatrixSink* x) {
  auto solved = series_->Step(rhs, x, x0);
  // The server may evict the matrix between steps; it is then sent again.
  if (Reason(solved.status()) != "MATRIX_GONE" || last_matrix_.empty()) return solved;
  const auto matrix = MatrixInput::Open(last_matrix_, arguments_.dtype, session_->deadline());
  if (!matrix.ok()) return matrix.status();
  return series_->Step(matrix->Source(), rhs, x, x0);
}

absl::Status SeriesRun::Describe(const std::string& handle) {
  const auto factor = session_->client().Describe(handle, session_->call());
  if (!factor.ok()) return factor.status();
  rows_ = factor->n;
  dtype_ = factor->matrix_dtype.value_or(Dtype::kFloat64);
  return absl::OkStatus();
}

absl::StatusOr<MatrixSource> SeriesRun::RhsOf(const StepFiles& step) {
  if (!step.rhs.empty()) {
    auto rhs = ReadRhs(step.rhs, arguments_.dtype);
    if (!rhs.ok()) return rhs.status();
    return rhs_.emplace(*std::move(rhs)).Source();
  }
  if (common_rhs_) return common_rhs_->Source();
  if (!rows_.ok()) return rows_.status();
  return MatrixSource::Ones(*rows_, 1, dtype_);
}

absl::StatusOr<const MatrixSource*> SeriesRun::StartOf(const StepFiles& step,
                                                       const MatrixSource& rhs) {
  if (step.x0.empty()) return nullptr;
  Dtype dtype = rhs.dtype();
  if (IsComplex(ElementOf(dtype_))) {
    const bool single = dtype == Dtype::kFloat32 || dtype == Dtype::kComplex64;
    dtype = single ? Dtype::kComplex64 : Dtype::kComplex128;
  }
  auto x0 = ReadRhs(step.x0, dtype);
  if (!x0.ok()) return x0.status();
  return &x0_source_.emplace(x0_.emplace(*std::move(x0)).Source());
}

absl::StatusOr<std::string> SeriesRun::OutputOf(size_t index) {
  if (!x_) return "";
  const size_t digits = std::max<size_t>(3, absl::StrCat(steps_.files().size() - 1).size());
  // The name of a part in an archive has no prefix.
  return x_->Add(
      absl::StrFormat("%s%0*d", x_->in_archive() ? "x_" : "", static_cast<int>(digits), index));
}

void SeriesRun::Report(size_t index, const SeriesStep& step, double seconds) {
  const SeriesResult& result = step.result;
  const StepFiles& files = steps_.files()[index];
  Json json = {
      {"step", index}, {"matrix", steps_.Shown(files.matrix)}, {"rhs", steps_.Shown(files.rhs)}};
  for (const std::string& path : files.change.paths()) json["change"] += steps_.Shown(path);
  if (!files.x0.empty()) json["x0"] = steps_.Shown(files.x0);
  json.update(ToJson(result));
  json["seconds"] = seconds;
  if (step.made) json["factor"] = ToJson(*step.made);
  const char* const header = "step  strategy  iterations  age  backward_error  seconds\n";
  session_->PrintLine(
      json, absl::StrFormat("%s%4d  %-8s  %10d  %3d  %-14s  %s\n", index == 0 ? header : "", index,
                            json["strategy"].get<std::string>(),
                            result.old_iterations + result.new_iterations, result.age,
                            result.solved ? absl::StrFormat("%.2e", result.backward_error) : "-",
                            FormatSeconds(seconds)));
  if (!result.solved) {
    session_->Warn(absl::StrCat("step ", index, ": the matrix is singular, so X is missing"));
  } else if (absl::c_linear_search(result.warnings, Warning::kNearlySingular)) {
    session_->Warn(
        absl::StrFormat("step %d: the matrix is nearly singular (condition at least %.3g); X "
                        "may have no correct digits",
                        index, result.amplification));
  } else if (!result.accurate) {
    session_->Warn(
        absl::StrFormat("step %d: the backward error of X is %.3g, above the limit of %.3g", index,
                        result.backward_error, result.accuracy));
    session_->ExitWith(kNotAccurate);
  }
}

}  // namespace crout::cli
