// SPDX-License-Identifier: Apache-2.0

// A terminal that shows one view, which is redrawn and ended by a key.
#ifndef CROUT_CLIENT_CLI_REPORT_TERMINAL_H_
#define CROUT_CLIENT_CLI_REPORT_TERMINAL_H_

#include <thread>

#include "crout/cancellation.h"

namespace crout::cli {

// Whether standard input and standard output are terminals.
bool IsInteractive();

// Shows the terminal's alternate screen without a cursor, and switches echo and line editing off.
// The destructor restores the terminal. Signals that end or stop the process restore it, too. At
// most one object at a time; requires IsInteractive().
class FullScreen {
 public:
  FullScreen();
  ~FullScreen();
  FullScreen(const FullScreen&) = delete;  // signal handlers refer to its state
  FullScreen& operator=(const FullScreen&) = delete;
};

// Reads keys from standard input on its own thread and calls Cancellation::Cancel() for q, Q,
// Control-D or the end of the input.
class QuitKey {
 public:
  explicit QuitKey(Cancellation* cancellation);
  ~QuitKey();
  QuitKey(const QuitKey&) = delete;  // its thread holds its address
  QuitKey& operator=(const QuitKey&) = delete;

 private:
  void ReadKeys();

  Cancellation* const cancellation_;
  int stop_[2];  // a pipe; closing its second end stops the thread
  std::thread reader_;
};

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_REPORT_TERMINAL_H_
