// SPDX-License-Identifier: Apache-2.0

// Options shared by several commands, as options of the client library.
#ifndef CROUT_CLIENT_CLI_OPTIONS_FACTOR_OPTIONS_H_
#define CROUT_CLIENT_CLI_OPTIONS_FACTOR_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>

#include "client/cli/input/matrix_input.h"
#include "client/cli/output/array_writer.h"
#include "client/cli/session.h"
#include "crout/options.h"

namespace crout::cli {

// A matrix on the command line, and its requested type.
struct MatrixArgument {
  std::string path;
  std::optional<Dtype> dtype;  // unset: the type of the file
};

// Destination of a returned matrix. Without a path the matrix is written to standard output, except
// with --json, whose object is there; the matrix is then discarded.
struct OutputArgument {
  std::string path;
  std::optional<FileFormat> format;  // unset: by the name's ending

  // If the matrix is written to standard output, the session reports on standard error.
  ArrayFileSink Open(Session* session) const;
  // Describes the destination in a summary: "in x.mtx".
  std::string Destination(const Session& session) const;

 private:
  std::string PathIn(const Session& session) const;
};

// Help of --device.
inline constexpr char kDeviceHelp[] =
    "Device: host, cuda:0, ... [default: the device that is expected to finish first]";

// Each function adds its options to `app`. The parser then writes to the second argument.
CLI::Option* AddMatrixArgument(CLI::App* app, MatrixArgument* matrix);  // the file, and --dtype
void AddFactorizeOptions(CLI::App* app, FactorOptions* options);
void AddCacheOptions(CLI::App* app, CacheOptions* options);  // without --request-id
// Adds --lease, greater than 0.
void AddLeaseOption(CLI::App* app, std::function<void(absl::Duration)> set,
                    const std::string& description);
void AddRequestIdOption(CLI::App* app, CacheOptions* options);
void AddSolverOption(CLI::App* app, std::function<void(Solver)> set);
// Adds --transpose and --conjugate-transpose, which exclude each other.
void AddOperationFlags(CLI::App* app, std::function<void(Operation)> set);
void AddSolveOptions(CLI::App* app, SolveOptions* options);
// Adds --format, one of `formats`.
void AddFormatOption(CLI::App* app, std::initializer_list<FileFormat> formats,
                     std::function<void(FileFormat)> set, const std::string& description);
// Adds -o and --format; `what` names the output in the help, such as "X".
void AddOutputOptions(CLI::App* app, const std::string& what, OutputArgument* output);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_OPTIONS_FACTOR_OPTIONS_H_
