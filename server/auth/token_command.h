// SPDX-License-Identifier: Apache-2.0

// `croutd token create`: makes a bearer token.
#ifndef CROUT_SERVER_AUTH_TOKEN_COMMAND_H_
#define CROUT_SERVER_AUTH_TOKEN_COMMAND_H_

namespace crout {

// argv[0] is "token". Writes a new token to standard output, or to a new file of mode 600, and the
// line for the file of --identities to standard output: nothing else ever has the token. Returns
// the exit code: 1 where that failed, 2 for bad usage.
int RunTokenCommand(int argc, char** argv);

}  // namespace crout

#endif  // CROUT_SERVER_AUTH_TOKEN_COMMAND_H_
