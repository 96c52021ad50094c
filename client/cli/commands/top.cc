// SPDX-License-Identifier: Apache-2.0

// top
#include <unistd.h>

#include <iostream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/top_view.h"
#include "client/cli/report/text.h"

namespace crout::cli {
namespace {

struct TopArguments {
  absl::Duration interval = absl::Seconds(1);
  bool once = false;
};

absl::Status RunTop(Session* session, const TopArguments& arguments) {
  const bool terminal = isatty(STDOUT_FILENO) == 1;
  for (;;) {
    const auto info = session->client().ServerInfo(session->call());
    if (!info.ok()) return info.status();
    const std::string view = TopView(session->server(), *info, absl::Now());
    if (arguments.once) {
      session->Print(ToJson(*info), view);
      return absl::OkStatus();
    }
    // On a terminal: moves home, draws, and erases the rest of a longer view. Elsewhere views
    // follow each other.
    session->Print(ToJson(*info), terminal ? absl::StrCat("\x1b[H", EndLines(view), "\x1b[J")
                                           : absl::StrCat(view, "\n"));
    if (!std::cout.flush()) return absl::OkStatus();  // Run() reports the error
    absl::SleepFor(arguments.interval);
  }
}

}  // namespace

void AddTopCommand(CLI::App* app, Session* session) {
  const auto arguments = std::make_shared<TopArguments>();
  CLI::App* top = session->AddCommand(
      app, "top", "Show devices, queues, cache and tenants, updated every second until interrupted",
      [=] { return RunTop(session, *arguments); });
  BeginSection(top, "Output");
  top->add_flag("--once", arguments->once, "Show one view and exit");
  AddDurationOption(
      top, "--interval",
      [=](absl::Duration value) {
        if (value < absl::Milliseconds(100)) {
          throw CLI::ValidationError("--interval",
                                     "the interval is too short: give at least 100ms");
        }
        arguments->interval = value;
      },
      "Time between two views, at least 100ms [default: 1s]");
}

}  // namespace crout::cli
