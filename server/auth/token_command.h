// SPDX-License-Identifier: Apache-2.0

// `croutd token create`: makes a bearer token.
#ifndef CROUT_SERVER_AUTH_TOKEN_COMMAND_H_
#define CROUT_SERVER_AUTH_TOKEN_COMMAND_H_

namespace crout {

// Creates a token; argv[0] is "token". Writes the token to standard output or to a new file of mode
// 600. Writes the matching line of the --identities file to standard output. The token is stored
// nowhere else. Returns the exit code: 0 on success, 1 on failure, 2 for bad usage.
int RunTokenCommand(int argc, char** argv);

}  // namespace crout

#endif  // CROUT_SERVER_AUTH_TOKEN_COMMAND_H_
