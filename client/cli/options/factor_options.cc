// SPDX-License-Identifier: Apache-2.0

#include "client/cli/options/factor_options.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "client/cli/options/option_values.h"
#include "client/cli/report/text.h"

namespace crout::cli {
namespace {

template <class Set>
void AddFlag(CLI::App* app, const std::string& name, Set set, const std::string& description) {
  app->add_flag_callback(
      name, [set] { set(true); }, description);
}

template <class T, class Set>
CLI::Option* AddValue(CLI::App* app, const std::string& name, Set set,
                      const std::string& description) {
  return app->add_option_function<T>(
      name, [set](const T& value) { set(value); }, description);
}

// Returns the methods for a single matrix that some device of a server of this version supports.
std::vector<std::string> OfferedAlgorithms() {
  std::vector<std::string> names;
  for (const std::string& name : Names<Algorithm>()) {
    if (name != "irr_lu") names.push_back(name);
  }
  return names;
}

void AddFactorDtype(CLI::App* app, FactorOptions* options) {
  CLI::Option* const precision = AddEnumOption<Precision>(
      app, "--precision", [=](auto value) { options->precision = value; },
      "Precision of a factor whose solves are corrected to the accuracy of the matrix's type; "
      "auto: low precision if that is predicted to be faster [default: no corrections]");
  AddEnumOption<Dtype>(
      app, "--factor-dtype", [=](auto value) { options->factor_dtype = value; },
      "Type of L and U, without corrections [default: the matrix's type]")
      ->excludes(precision);
}

void AddMethodParameters(CLI::App* app, FactorOptions* options) {
  BeginSection(app, "Method parameters");
  MethodParameters* const parameters = &options->parameters;
  AddEnumOption<Pivoting>(
      app, "--pivot-rule", [=](auto value) { parameters->pivot_rule = value; },
      "When to pivot, for methods with conditional pivoting");
  AddValue<std::pair<double, double>>(
      app, "--interval",
      [=](const auto& interval) {
        parameters->interval_low = interval.first;
        parameters->interval_high = interval.second;
      },
      "Magnitudes of pivots that need no exchange, with --pivot-rule=interval [default: 1e-5 1e5]")
      ->type_name("LOW HIGH");
  AddValue<double>(
      app, "--threshold", [=](double value) { parameters->threshold = value; },
      "Smallest pivot that needs no exchange, as a fraction of the largest entry of its column, in "
      "(0, 1]; with --pivot-rule=threshold [default: 0.1]");
  AddValue<double>(
      app, "--tolerance", [=](double value) { parameters->tolerance = value; },
      "Relative change at which an iterative method stops, in [0, 1); 0: when nothing changes "
      "[default: 0]");
  AddValue<double>(
      app, "--absolute-tolerance", [=](double value) { parameters->absolute_tolerance = value; },
      "Absolute change at which an iterative method stops, added to --tolerance [default: 0]");
  AddEnumOption<Variant>(
      app, "--variant", [=](auto value) { parameters->variant = value; },
      "Variant of the method. published: as in its source, so icm and icmpp use sections of n/10 "
      "within [256, 1024] and pivoting by interval, and block_lu on the host the task priorities "
      "of the source [default: fast]");
  AddValue<int64_t>(
      app, "--section-size", [=](int64_t value) { parameters->section_size = value; },
      "Rows and columns of a section of an iterative method [default: set by the method]");
  AddValue<int32_t>(
      app, "--block-size", [=](int32_t value) { parameters->block_size = value; },
      "Block size, a power of two. pcm, pcmpp: columns of a panel's tile, 8 to 32. block_lu on the "
      "host: order of a block, 32 to 1024. icm, icmpp with --variant=published: threads of a CUDA "
      "block along each dimension, 8 to 32 [default: set by the method]")
      ->type_name("SIZE")
      ->check(OneOf({"8", "16", "32", "64", "128", "256", "512", "1024"}));
  AddValue<int64_t>(
      app, "--sweep-limit", [=](int64_t value) { parameters->sweep_limit = value; },
      "Largest number of sweeps of a section; beyond it the call fails [default: set by the "
      "method]");
}

}  // namespace

std::string OutputArgument::PathIn(const Session& session) const {
  return path.empty() && session.show() != Show::kJson ? "-" : path;
}

std::string OutputArgument::Destination(const Session& session) const {
  const std::string target = PathIn(session);
  if (target.empty()) return "not written";
  return target == "-" ? "on standard output" : absl::StrCat("in ", Printable(target));
}

ArrayFileSink OutputArgument::Open(Session* session) const {
  const std::string target = PathIn(*session);
  if (target == "-") session->ReportOnStandardError();
  if (!format.has_value() && HasUnknownEnding(path)) {
    session->Warn(absl::StrCat(path, " is written as Matrix Market. To choose a format, give ",
                               "--format or end the name in ", kEndings));
  }
  return ArrayFileSink(target, format.value_or(FormatOf(target)));
}

void AddFormatOption(CLI::App* app, std::initializer_list<FileFormat> formats,
                     std::function<void(FileFormat)> set, const std::string& description) {
  std::vector<std::pair<std::string, FileFormat>> names;
  for (const FileFormat format : formats) names.emplace_back(NameOf(format), format);
  AddChoiceOption<FileFormat>(app, "--format", names, std::move(set), description);
}

void AddOutputOptions(CLI::App* app, const std::string& what, OutputArgument* output) {
  BeginSection(app, "Output");
  app->add_option("-o,--output", output->path,
                  absl::StrCat("Write ", what,
                               " to this file; -: to standard output, with the report on standard "
                               "error [default: -; with --json, nothing is written]"))
      ->type_name("FILE|-");
  AddFormatOption(
      app, {FileFormat::kMatrixMarket, FileFormat::kNpy, FileFormat::kNpz, FileFormat::kText},
      [=](FileFormat format) { output->format = format; },
      "Format of the output file: mtx (Matrix Market), npy, npz (one array x) or txt [default: by "
      "the file name, otherwise mtx]");
}

CLI::Option* AddMatrixArgument(CLI::App* app, MatrixArgument* matrix) {
  BeginSection(app, "Input");
  AddEnumOption(app, "--dtype", &matrix->dtype,
                "Type of the matrix. Required for complex Matrix Market text on a pipe, except "
                "with --ones [default: "
                "the file's type; for Matrix Market and text f64 or c128]");
  return app
      ->add_option(
          "matrix", matrix->path,
          "File of the matrix: Matrix Market (plain or gzip), .npy, .npz (F.npz:NAME) or text; -: "
          "standard input")
      ->check(InputFile());
}

void AddFactorizeOptions(CLI::App* app, FactorOptions* options) {
  BeginSection(app, "Method");
  AddValue<std::string>(
      app, "--algorithm",
      [=](const std::string& name) { options->algorithm = *FromName<Algorithm>(name); },
      "LU method that the device supports, see `croutctl algorithms` [default: auto]")
      ->check(OneOf(OfferedAlgorithms()));
  AddValue<std::string>(
      app, "--device", [=](const auto& value) { options->device = value; }, kDeviceHelp)
      ->type_name("DEVICE");
  BeginSection(app, "Accuracy");
  AddFactorDtype(app, options);
  AddEnumOption<Equilibrate>(
      app, "--equilibrate", [=](auto value) { options->equilibrate = value; },
      "Scale the rows and columns of the matrix [default: auto]");
  AddValue<double>(
      app, "--pivot-threshold", [=](double value) { options->pivot_threshold = value; },
      "multifrontal: smallest pivot as a fraction of the largest entry of its column in the front, "
      "in (0, 1] [default: 0.01]")
      ->check(InRange(0.0, 1.0, LowEnd::kExcluded));
  BeginSection(app, "Output");
  AddFlag(
      app, "--condition", [=](bool on) { options->condition = on; },
      "Report an estimate of the reciprocal condition number");
  AddFlag(
      app, "--determinant", [=](bool on) { options->determinant = on; }, "Report the determinant");
  BeginSection(app, "Cache");
  AddFlag(
      app, "--no-keep-matrix", [=](bool on) { options->keep_matrix = !on; },
      "Discard the matrix after factoring; solves are then neither verified nor refined");
  AddMethodParameters(app, options);
}

void AddLeaseOption(CLI::App* app, std::function<void(absl::Duration)> set,
                    const std::string& description) {
  const auto set_positive = [set = std::move(set)](absl::Duration lease) {
    // An explicit zero is refused: in the contract 0 selects the default.
    if (lease == absl::ZeroDuration()) {
      throw CLI::ValidationError(
          "--lease", "the lease must be longer than 0; `croutctl release` removes a factor");
    }
    set(lease);
  };
  AddDurationOption(app, "--lease", set_positive,
                    absl::StrCat(description, " [default: set by the server, normally 1h]"));
}

void AddCacheOptions(CLI::App* app, CacheOptions* options) {
  BeginSection(app, "Cache");
  AddLeaseOption(
      app, [=](absl::Duration lease) { options->lease = lease; },
      "Time that the factor stays cached after its last use");
  AddValue<std::string>(
      app, "--name", [=](const auto& value) { options->name = value; },
      "Name of the factor, at most 128 bytes")
      ->type_name("NAME");
  AddFlag(
      app, "--pin", [=](bool on) { options->pin = on; },
      "Pin the factor: the server neither evicts it nor moves it to host memory");
  AddFlag(
      app, "--durable", [=](bool on) { options->durable = on; },
      "Write the factor to the server's disk; it then survives a restart of the server");
}

void AddRequestIdOption(CLI::App* app, CacheOptions* options) {
  AddValue<std::string>(
      app, "--request-id", [=](const auto& value) { options->request_id = value; },
      "Id of the request, at most 128 bytes; a repeated request returns the existing factor")
      ->type_name("ID");
}

void AddSolverOption(CLI::App* app, std::function<void(Solver)> set) {
  AddEnumOption<Solver>(app, "--solver", std::move(set),
                        "Triangular solver [default: auto, the fastest]");
}

void AddOperationFlags(CLI::App* app, std::function<void(Operation)> set) {
  AddFlag(
      app, "--transpose", [=](bool) { set(Operation::kTranspose); },
      "Solve with the transpose of the matrix");
  AddFlag(
      app, "--conjugate-transpose", [=](bool) { set(Operation::kConjugateTranspose); },
      "Solve with the conjugate transpose of the matrix");
  app->get_option("--conjugate-transpose")->excludes(app->get_option("--transpose"));
}

void AddSolveOptions(CLI::App* app, SolveOptions* options) {
  BeginSection(app, "Method");
  AddOperationFlags(app, [=](Operation operation) { options->operation = operation; });
  AddSolverOption(app, [=](Solver solver) { options->solver = solver; });
  AddValue<double>(
      app, "--solver-tolerance", [=](double value) { options->solver_tolerance = value; },
      "Relative change at which --solver=is stops, in [0, 1); 0: when nothing changes "
      "[default: 0]");
  BeginSection(app, "Accuracy");
  AddFlag(
      app, "--no-verify", [=](bool on) { options->verify = !on; }, "Skip the backward error");
  AddFlag(
      app, "--componentwise-error", [=](bool on) { options->componentwise_error = on; },
      "Also report the componentwise backward error");
  AddFlag(
      app, "--error-bound", [=](bool on) { options->error_bound = on; },
      "Report an estimated bound of the forward error");
  AddValue<int32_t>(
      app, "--refine", [=](int32_t steps) { options->max_refinement_steps = steps; },
      "Largest number of steps of iterative refinement, up to 100 [default: 0]")
      ->check(InRange(0, 100));
  AddFlag(
      app, "--refine-componentwise", [=](bool on) { options->refine_componentwise = on; },
      "Refine by the componentwise backward error; for matrices with rows of very different size");
}

}  // namespace crout::cli
