#include "client/cli/factor_options.h"

#include <utility>

#include "client/cli/enum_names.h"
#include "client/cli/matrix_market_order.h"
#include "client/cli/session.h"

namespace crout::cli {
namespace {

// An option that writes an enumeration through a setter of a message.
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
      "Pivots of good magnitude: LOW HIGH; for --pivoting=interval");
  AddValue<double>(
      app, "--threshold", [=](double value) { parameters()->set_threshold(value); },
      "Share of the column's largest that will do; for --pivoting=threshold");
  AddValue<double>(
      app, "--tolerance", [=](double value) { parameters()->set_tolerance(value); },
      "Relative change at which an iterative method stops; 0: when nothing changes");
  AddValue<int64_t>(
      app, "--section-size", [=](int64_t value) { parameters()->set_section_size(value); },
      "Rows and columns of a section of an iterative method");
  AddValue<int32_t>(
      app, "--block-size", [=](int32_t value) { parameters()->set_block_size(value); },
      "Threads of a block along each dimension")
      ->check(CLI::IsMember({8, 16, 32}));
  AddValue<int64_t>(
      app, "--sweep-limit", [=](int64_t value) { parameters()->set_sweep_limit(value); },
      "Sweeps of a section before an iterative method gives up");
}

std::string FilePath(const std::string& path) { return path == "-" ? "/dev/stdin" : path; }

}  // namespace

CLI::Validator InputFile() {
  return CLI::Validator(
      [](const std::string& path) { return path == "-" ? std::string() : CLI::ExistingFile(path); },
      "FILE|-");
}

v1::Dtype MatrixArgument::Type() const {
  if (dtype != v1::DTYPE_UNSPECIFIED) return dtype;
  return MatrixMarketIsComplex(FilePath(path)) ? v1::DTYPE_COMPLEX128 : v1::DTYPE_FLOAT64;
}

client::MatrixSource MatrixArgument::Source() const {
  return client::MatrixSource::MatrixMarketFile(FilePath(path), Type());
}

CLI::Option* AddMatrixArgument(CLI::App* app, MatrixArgument* matrix) {
  AddEnumOption(app, "--dtype", &matrix->dtype,
                "Type that the values are kept and computed in; f64 unless given, c128 where the "
                "file says complex (of a pipe only this option tells)");
  return app->add_option("matrix", matrix->path, "Matrix Market file, plain or gzip")
      ->check(InputFile());
}

void AddFactorizeOptions(CLI::App* app, v1::FactorizeOptions* options) {
  AddEnum<v1::Algorithm>(
      app, "--algorithm", [=](auto value) { options->set_algorithm(value); },
      "LU method; the device must offer it");
  AddValue<std::string>(
      app, "--device", [=](const auto& value) { options->set_device(value); },
      "host, cuda:0 ...; where it is done first unless given");
  AddEnum<v1::Dtype>(
      app, "--factor-dtype", [=](auto value) { options->set_factor_dtype(value); },
      "Type of L and U; the matrix's unless given");
  AddEnum<v1::Equilibrate>(
      app, "--equilibrate", [=](auto value) { options->set_equilibrate(value); },
      "Scale rows and columns");
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

void AddCacheOptions(CLI::App* app, v1::CacheOptions* options) {
  AddDurationOption(
      app, "--lease",
      [=](absl::Duration lease) { *options->mutable_lease() = client::ToProtoDuration(lease); },
      "How long the factor is kept");
  AddValue<std::string>(
      app, "--name", [=](const auto& value) { options->set_name(value); }, "Name of the factor");
}

void AddRequestIdOption(CLI::App* app, v1::CacheOptions* options) {
  AddValue<std::string>(
      app, "--request-id", [=](const auto& value) { options->set_request_id(value); },
      "Makes a repeated call return the same factor");
}

void AddSolverOption(CLI::App* app, std::function<void(v1::Solver)> set) {
  AddEnum<v1::Solver>(app, "--solver", std::move(set), "Triangular solver");
}

void AddSolveOptions(CLI::App* app, v1::SolveOptions* options) {
  AddFlag(
      app, "--transpose", [=](bool) { options->set_operation(v1::OPERATION_TRANSPOSE); },
      "Solve with the transpose of A");
  AddFlag(
      app, "--conjugate-transpose",
      [=](bool) { options->set_operation(v1::OPERATION_CONJUGATE_TRANSPOSE); },
      "Solve with the conjugate transpose of A");
  app->get_option("--conjugate-transpose")->excludes(app->get_option("--transpose"));
  AddSolverOption(app, [=](v1::Solver solver) { options->set_solver(solver); });
  AddValue<double>(
      app, "--solver-tolerance", [=](double value) { options->set_solver_tolerance(value); },
      "Relative change at which an iterative solver stops; 0: when nothing changes");
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
      "At most this many steps of iterative refinement")
      ->check(CLI::Range(0, 100));
  AddFlag(
      app, "--refine-componentwise", [=](bool on) { options->set_refine_componentwise(on); },
      "Refine, and judge, each equation by its own size");
}

}  // namespace crout::cli
