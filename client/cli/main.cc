// SPDX-License-Identifier: Apache-2.0

// croutctl, the command-line client.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

#include "client/cli/command_line.h"

namespace {

// Occupies the descriptors of closed standard streams with a file that cannot be written.
// Otherwise a connection could get the descriptor of standard output and receive the output.
void OccupyStandardStreams() {
  int fd;
  do {
    fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd >= 0) close(fd);
}

// Standard error has only this program's lines or JSON; errors include gRPC's messages. The user
// can override the variable.
void KeepGrpcQuiet() { setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0); }

}  // namespace

int main(int argc, char** argv) {
  OccupyStandardStreams();
  KeepGrpcQuiet();
  return crout::cli::RunCommandLine(argc, argv);
}
