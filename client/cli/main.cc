// croutctl, the command-line client.
#include <fcntl.h>
#include <unistd.h>

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

}  // namespace

int main(int argc, char** argv) {
  OccupyStandardStreams();
  return crout::cli::RunCommandLine(argc, argv);
}
