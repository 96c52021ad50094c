// croutctl, the command-line client.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

#include "client/cli/command_line.h"

namespace {

// Where standard output is closed, a connection would take its number and get what is printed. This
// takes it first, and cannot be written.
void OccupyStandardStreams() {
  int fd;
  do {
    fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd >= 0) close(fd);
}

// Standard error has this program's lines, or its JSON, alone: what gRPC would say there, the error
// says, too. Whoever asks for more gets it.
void KeepGrpcQuiet() { setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0); }

}  // namespace

int main(int argc, char** argv) {
  OccupyStandardStreams();
  KeepGrpcQuiet();
  return crout::cli::RunCommandLine(argc, argv);
}
