// Options that several commands share, as the contract's messages.
#ifndef CROUT_CLIENT_CLI_FACTOR_OPTIONS_H_
#define CROUT_CLIENT_CLI_FACTOR_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "crout/matrix_source.h"
#include "crout/v1/factorization_service.pb.h"

namespace crout::cli {

// A matrix on the command line: a Matrix Market file, plain or gzip, or - for standard input.
struct MatrixArgument {
  std::string path;
  v1::Dtype dtype = v1::DTYPE_UNSPECIFIED;  // unspecified: as the file's banner says

  v1::Dtype Type() const;
  client::MatrixSource Source() const;
};

// Each adds its options to `app`, which write to the second argument when the line is parsed.
CLI::Option* AddMatrixArgument(CLI::App* app, MatrixArgument* matrix);  // the file, and --dtype
void AddFactorizeOptions(CLI::App* app, v1::FactorizeOptions* options);
void AddCacheOptions(CLI::App* app, v1::CacheOptions* options);  // but --request-id
void AddRequestIdOption(CLI::App* app, v1::CacheOptions* options);
void AddSolverOption(CLI::App* app, std::function<void(v1::Solver)> set);
void AddSolveOptions(CLI::App* app, v1::SolveOptions* options);

// An existing file, or - for standard input.
CLI::Validator InputFile();

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_FACTOR_OPTIONS_H_
