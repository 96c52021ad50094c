// SPDX-License-Identifier: Apache-2.0

#include "client/cli/factor_options.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "client/cli/enum_names.h"

namespace crout::cli {
namespace {

// Adds an option that sets an enumeration through a setter of a message.
template <class E, class Set>
CLI::Option* AddEnum(CLI::App* app, const std::string& name, Set set,
                     const std::string& description) {
  const auto* type = google::protobuf::GetEnumDescriptor<E>();
  return app
      ->add_option_function<std::string>(
          name,
          [set, type](const std::string& text) {
            set(static_cast<E>(ParseShortName(*type, text)));
          },
          description)
      ->check(CLI::IsMember(ShortNames(*type)));
}

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

// Methods for a single matrix on any device of a server of this version.
std::vector<std::string> OfferedAlgorithms() {
  std::vector<std::string> names;
  for (const std::string& name : ShortNames(*v1::Algorithm_descriptor())) {
    if (name != "irr_lu") names.push_back(name);
  }
  return names;
}

// Adds --dtype: a type, or a precision in which solves are corrected. These are two fields; the
// last option given counts.
void AddFactorDtype(CLI::App* app, v1::FactorizeOptions* options) {
  const auto* types = v1::Dtype_descriptor();
  const auto* precisions = v1::FactorPrecision_descriptor();
  std::vector<std::string> names = ShortNames(*types);
  const std::vector<std::string> corrected = ShortNames(*precisions);
  names.insert(names.end(), corrected.begin(), corrected.end());
  AddValue<std::string>(
      app, "--factor-dtype",
      [=](const std::string& name) {
        options->clear_factor_dtype();
        options->clear_precision();
        if (std::find(corrected.begin(), corrected.end(), name) != corrected.end()) {
          options->set_precision(
              static_cast<v1::FactorPrecision>(ParseShortName(*precisions, name)));
        } else {
          options->set_factor_dtype(static_cast<v1::Dtype>(ParseShortName(*types, name)));
        }
      },
      "Type of L and U; the matrix's unless given. single or tf32: lower precision, and solves "
      "corrected to the accuracy of the matrix's type; auto: where that is expected to gain time")
      ->check(CLI::IsMember(names));
}

void AddMethodParameters(CLI::App* app, v1::FactorizeOptions* options) {
  const auto parameters = [options] { return options->mutable_parameters(); };
  AddEnum<v1::PivotRule>(
      app, "--pivoting", [=](auto value) { parameters()->set_pivot_rule(value); },
      "When to pivot, for methods that leave it open");
  AddValue<std::pair<double, double>>(
      app, "--interval",
      [=](const auto& interval) {
        parameters()->set_interval_low(interval.first);
        parameters()->set_interval_high(interval.second);
      },
      "Pivots of good magnitude: LOW HIGH, absolute; for --pivoting=interval; 1e-5 1e5 unless "
      "given");
  AddValue<double>(
      app, "--threshold", [=](double value) { parameters()->set_threshold(value); },
      "Share of the column's largest that will do, in (0, 1]; for --pivoting=threshold; 0.1 unless "
      "given");
  AddValue<double>(
      app, "--tolerance", [=](double value) { parameters()->set_tolerance(value); },
      "Relative change at which an iterative method stops, in [0, 1); 0, the default: when nothing "
      "changes");
  AddValue<double>(
      app, "--absolute-tolerance",
      [=](double value) { parameters()->set_absolute_tolerance(value); },
      "Absolute change at which it stops, as published; added to the relative one; 0 unless given");
  AddEnum<v1::MethodVariant>(
      app, "--variant", [=](auto value) { parameters()->set_variant(value); },
      "Form of a method: fast, the default, or published, as its source defines it: icm and icmpp "
      "in "
      "sections of n / 10 within [256, 1024], pivoting by interval; block_lu on the host with the "
      "source's priorities of tasks");
  AddValue<int64_t>(
      app, "--section-size", [=](int64_t value) { parameters()->set_section_size(value); },
      "Rows and columns of a section of an iterative method; the method's choice unless given");
  AddValue<int32_t>(
      app, "--block-size", [=](int32_t value) { parameters()->set_block_size(value); },
      "A power of two: of pcm and pcmpp columns of a panel's tile, 8 to 32; of block_lu on the "
      "host "
      "the order of its blocks, 32 to 1024; of icm and icmpp, published, threads of a block along "
      "each dimension, 8 to 32; the method's choice unless given")
      ->check(CLI::IsMember({8, 16, 32, 64, 128, 256, 512, 1024}));
  AddValue<int64_t>(
      app, "--sweep-limit", [=](int64_t value) { parameters()->set_sweep_limit(value); },
      "Sweeps of a section before an iterative method gives up; the method's choice unless given");
}

}  // namespace

ArrayFileSink OutputArgument::Open(Session* session) const {
  if (path == "-") session->ReportOnStandardError();
  return ArrayFileSink(path, format.value_or(FormatOf(path)));
}

void AddFormatOption(CLI::App* app, std::initializer_list<FileFormat> formats,
                     std::function<void(FileFormat)> set, const std::string& description) {
  std::vector<std::pair<std::string, FileFormat>> names;
  for (const FileFormat format : formats) names.emplace_back(NameOf(format), format);
  AddChoiceOption<FileFormat>(app, "--format", names, std::move(set), description);
}

void AddOutputOptions(CLI::App* app, const std::string& what, OutputArgument* output) {
  app->add_option("-o,--output", output->path,
                  absl::StrCat("Write ", what,
                               " to this file, or to standard output: the report "
                               "goes to standard error then"))
      ->type_name("FILE|-");
  AddFormatOption(
      app, {FileFormat::kMatrixMarket, FileFormat::kNpy, FileFormat::kNpz, FileFormat::kText},
      [=](FileFormat format) { output->format = format; },
      "Of the output: mtx (Matrix Market), npy, npz (an array x) or txt; as the name ends unless "
      "given, and mtx for all other endings");
}

CLI::Option* AddMatrixArgument(CLI::App* app, MatrixArgument* matrix) {
  AddEnumOption(app, "--dtype", &matrix->dtype,
                "Type that the values are kept and computed in; as the file says unless given, and "
                "f64, or c128 if it is complex, where it does not (Matrix Market, text); of Matrix "
                "Market on a pipe only this option tells");
  return app
      ->add_option("matrix", matrix->path,
                   "Matrix Market, plain or gzip, .npy, .npz (F.npz:NAME) or text")
      ->check(InputFile());
}

void AddFactorizeOptions(CLI::App* app, v1::FactorizeOptions* options) {
  const auto* algorithm = v1::Algorithm_descriptor();
  AddValue<std::string>(
      app, "--algorithm",
      [=](const std::string& name) {
        options->set_algorithm(static_cast<v1::Algorithm>(ParseShortName(*algorithm, name)));
      },
      "LU method; the device must offer it (`croutctl algorithms`); auto unless given")
      ->check(CLI::IsMember(OfferedAlgorithms()));
  AddValue<std::string>(
      app, "--device", [=](const auto& value) { options->set_device(value); },
      "host, cuda:0 ...; where it is done first unless given");
  AddFactorDtype(app, options);
  AddEnum<v1::Equilibrate>(
      app, "--equilibrate", [=](auto value) { options->set_equilibrate(value); },
      "Scale rows and columns; auto unless given");
  AddValue<double>(
      app, "--pivot-threshold", [=](double value) { options->set_pivot_threshold(value); },
      "Share of the largest entry of its column in a front that a pivot of multifrontal has at "
      "least, in (0, 1]; 0.01 unless given")
      ->check(CLI::Range(0.0, 1.0));
  AddFlag(
      app, "--drop-matrix", [=](bool on) { options->set_drop_matrix(on); },
      "Keep the factors only: solves are neither verified nor refined");
  AddFlag(
      app, "--condition", [=](bool on) { options->set_condition(on); },
      "Estimate the reciprocal condition number");
  AddFlag(
      app, "--determinant", [=](bool on) { options->set_determinant(on); },
      "Report the determinant");
  AddMethodParameters(app, options);
}

void AddLeaseOption(CLI::App* app, std::function<void(absl::Duration)> set,
                    const std::string& description) {
  const auto set_positive = [set = std::move(set)](absl::Duration lease) {
    // In the contract 0 selects the default, which is not what an explicit zero means.
    if (lease == absl::ZeroDuration()) {
      throw CLI::ValidationError("--lease", "a lease lasts longer than 0; `release` ends one");
    }
    set(lease);
  };
  AddDurationOption(
      app, "--lease", set_positive,
      absl::StrCat(description, "; the server's default (1h unless configured) unless given"));
}

void AddCacheOptions(CLI::App* app, v1::CacheOptions* options) {
  AddLeaseOption(
      app,
      [=](absl::Duration lease) { *options->mutable_lease() = client::ToProtoDuration(lease); },
      "How long the factor is kept after its last use");
  AddValue<std::string>(
      app, "--name", [=](const auto& value) { options->set_name(value); },
      "Name of the factor, at most 128 bytes");
}

void AddRequestIdOption(CLI::App* app, v1::CacheOptions* options) {
  AddValue<std::string>(
      app, "--request-id", [=](const auto& value) { options->set_request_id(value); },
      "Makes a repeated call return the same factor");
}

void AddSolverOption(CLI::App* app, std::function<void(v1::Solver)> set) {
  AddEnum<v1::Solver>(app, "--solver", std::move(set),
                      "Triangular solver; auto, the cheapest, unless given");
}

void AddOperationFlags(CLI::App* app, std::function<void(v1::Operation)> set) {
  AddFlag(
      app, "--transpose", [=](bool) { set(v1::OPERATION_TRANSPOSE); },
      "Solve with the transpose of A");
  AddFlag(
      app, "--conjugate-transpose", [=](bool) { set(v1::OPERATION_CONJUGATE_TRANSPOSE); },
      "Solve with the conjugate transpose of A");
  app->get_option("--conjugate-transpose")->excludes(app->get_option("--transpose"));
}

void AddSolveOptions(CLI::App* app, v1::SolveOptions* options) {
  AddOperationFlags(app, [=](v1::Operation operation) { options->set_operation(operation); });
  AddSolverOption(app, [=](v1::Solver solver) { options->set_solver(solver); });
  AddValue<double>(
      app, "--solver-tolerance", [=](double value) { options->set_solver_tolerance(value); },
      "Relative change at which the solver `is` stops, in [0, 1); 0, the default: when nothing "
      "changes");
  AddFlag(
      app, "--no-verify", [=](bool on) { options->set_skip_verification(on); },
      "Do not compute the backward error");
  AddFlag(
      app, "--componentwise-error", [=](bool on) { options->set_componentwise_error(on); },
      "Report the componentwise backward error too");
  AddFlag(
      app, "--error-bound", [=](bool on) { options->set_error_bound(on); },
      "Report a forward error bound");
  AddValue<int32_t>(
      app, "--refine", [=](int32_t steps) { options->set_max_refinement_steps(steps); },
      "At most this many steps of iterative refinement; 0 unless given")
      ->check(CLI::Range(0, 100));
  AddFlag(
      app, "--refine-componentwise", [=](bool on) { options->set_refine_componentwise(on); },
      "Refine, and judge, each equation by its own size");
}

}  // namespace crout::cli
