// Options that several commands share, as the contract's messages.
#ifndef CROUT_CLIENT_CLI_FACTOR_OPTIONS_H_
#define CROUT_CLIENT_CLI_FACTOR_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>

#include "client/cli/array_writer.h"
#include "client/cli/matrix_input.h"
#include "client/cli/session.h"
#include "crout/v1/factorization_service.pb.h"

namespace crout::cli {

// A matrix on the command line, and the type that is asked for.
struct MatrixArgument {
  std::string path;
  v1::Dtype dtype = v1::DTYPE_UNSPECIFIED;  // unspecified: as the file says
};

// Where a matrix that comes back goes.
struct OutputArgument {
  std::string path;                  // empty: nowhere
  std::optional<FileFormat> format;  // unset: by the ending of the name

  // Where the path is -, the session's report goes elsewhere.
  ArrayFileSink Open(Session* session) const;
};

// Each adds its options to `app`, which write to the second argument when the line is parsed.
CLI::Option* AddMatrixArgument(CLI::App* app, MatrixArgument* matrix);  // the file, and --dtype
void AddFactorizeOptions(CLI::App* app, v1::FactorizeOptions* options);
void AddCacheOptions(CLI::App* app, v1::CacheOptions* options);  // but --request-id
// --lease, longer than 0.
void AddLeaseOption(CLI::App* app, std::function<void(absl::Duration)> set,
                    const std::string& description);
void AddRequestIdOption(CLI::App* app, v1::CacheOptions* options);
void AddSolverOption(CLI::App* app, std::function<void(v1::Solver)> set);
// --transpose and --conjugate-transpose, of which a command takes one.
void AddOperationFlags(CLI::App* app, std::function<void(v1::Operation)> set);
void AddSolveOptions(CLI::App* app, v1::SolveOptions* options);
// --format, one of `formats`.
void AddFormatOption(CLI::App* app, std::initializer_list<FileFormat> formats,
                     std::function<void(FileFormat)> set, const std::string& description);
// -o and --format; `what` is written: "X".
void AddOutputOptions(CLI::App* app, const std::string& what, OutputArgument* output);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_FACTOR_OPTIONS_H_
