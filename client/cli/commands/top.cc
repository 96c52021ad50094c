// SPDX-License-Identifier: Apache-2.0

#include "client/cli/commands/top.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "client/cli/commands/commands.h"
#include "client/cli/report/text.h"

namespace crout::cli {
namespace {

// "[####      ] 4 of 10"; `format` formats the numbers.
template <class Format>
std::string Bar(double part, double whole, Format format) {
  constexpr int kWidth = 10;
  const double share = whole > 0 ? std::clamp(part / whole, 0.0, 1.0) : 0;
  const auto filled = static_cast<size_t>(share * kWidth + 0.5);
  return absl::StrCat("[", std::string(filled, '#'), std::string(kWidth - filled, ' '), "] ",
                      format(part), " of ", format(whole));
}

std::string Count(double value) { return absl::StrCat(static_cast<int64_t>(value)); }

// The server sorts tenants by their bytes, most first.
std::string TenantTable(const ServerInfo& info) {
  std::vector<std::vector<std::string>> rows;
  for (const TenantUsage& load : info.tenants) {
    if (rows.size() == kTopTenants) break;
    rows.push_back({Printable(load.tenant), absl::StrCat(load.cached_factors),
                    FormatBytes(static_cast<double>(load.device_bytes)),
                    FormatBytes(static_cast<double>(load.host_bytes)), absl::StrCat(load.calls)});
  }
  std::string table =
      FormatTable({"tenant", "factors", "on devices", "in host memory", "calls"}, rows);
  const size_t more = info.tenants.size() - rows.size();
  if (more > 0) absl::StrAppend(&table, "and ", more, " more\n");
  return table;
}

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
    // A terminal shows one view: move home, draw, and erase the rest of a longer view. Other
    // outputs get the views one after the other.
    session->Print(ToJson(*info), terminal ? absl::StrCat("\x1b[H", EndLines(view), "\x1b[J")
                                           : absl::StrCat(view, "\n"));
    if (!std::cout.flush()) return absl::OkStatus();  // Run() reports the error
    absl::SleepFor(arguments.interval);
  }
}

}  // namespace

std::string TopView(const std::string& server, const ServerInfo& info, absl::Time now) {
  const absl::Duration up = absl::Trunc(now - info.start_time.value_or(now), absl::Seconds(1));
  std::string view =
      absl::StrCat(Printable(server), "  croutd ", Printable(info.version), "  up ",
                   absl::FormatDuration(up), info.draining ? "  draining" : "", "\n");
  absl::StrAppend(&view, "cache  ", info.cached_factors,
                  info.cached_factors == 1 ? " factor" : " factors", "  host memory ",
                  Bar(static_cast<double>(info.host_reserved_bytes),
                      static_cast<double>(info.host_budget_bytes), FormatBytes),
                  "\n\n");
  std::vector<std::vector<std::string>> rows;
  for (const DeviceStatus& device : info.devices) {
    rows.push_back({Printable(device.name), Bar(device.streams_busy, device.streams, Count),
                    absl::StrCat(device.queue_depth, " of ", info.limits.queue_capacity),
                    Bar(static_cast<double>(device.reserved_bytes),
                        static_cast<double>(device.budget_bytes), FormatBytes),
                    device.healthy ? Printable(device.description) : "fenced off"});
  }
  absl::StrAppend(&view, FormatTable({"device", "streams busy", "queued", "memory", ""}, rows));
  return info.tenants.empty() ? view : absl::StrCat(view, "\n", TenantTable(info));
}

std::string EndLines(absl::string_view view) {
  return absl::StrReplaceAll(view, {{"\n", "\x1b[K\n"}});
}

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
