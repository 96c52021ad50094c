// SPDX-License-Identifier: Apache-2.0

#include "client/cli/commands/top.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "client/cli/commands/commands.h"
#include "client/cli/report/terminal.h"
#include "client/cli/report/text.h"
#include "kernels/util/duration.h"

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

// The server counts device seconds only for tenants with a quota of them.
std::string DeviceTime(const TenantUsage& usage) {
  const bool counts = usage.quota && usage.quota->device_seconds_per_minute;
  return counts ? FormatSeconds(usage.device_seconds) : "-";
}

// The server sorts tenants by their bytes, most first.
std::string TenantTable(const ServerInfo& info) {
  const auto bytes = [](int64_t value) { return FormatBytes(static_cast<double>(value)); };
  const auto count = [](int64_t value) { return absl::StrCat(value); };
  std::vector<std::vector<std::string>> rows;
  for (const TenantUsage& load : info.tenants) {
    if (rows.size() == kTopTenants) break;
    rows.push_back({Printable(load.tenant), count(load.cached_factors), bytes(load.device_bytes),
                    bytes(load.host_bytes), bytes(load.store_bytes), bytes(load.bytes_in_flight),
                    count(load.queued_jobs), count(load.running_jobs), DeviceTime(load),
                    count(load.calls)});
  }
  std::string table = FormatTable({"tenant", "factors", "devices", "host", "store", "in flight",
                                   "queued", "running", "device time", "calls"},
                                  rows);
  const size_t more = info.tenants.size() - rows.size();
  if (more > 0) absl::StrAppend(&table, "and ", more, " more\n");
  return table;
}

struct TopArguments {
  absl::Duration interval = absl::Seconds(1);
  bool once = false;
};

absl::Status RunTop(Session* session, const TopArguments& arguments) {
  // A terminal shows one view, which q ends. Other outputs get the views one after the other.
  const bool has_keys = !arguments.once && session->show() != Show::kJson && IsInteractive();
  const bool redraws = !arguments.once && isatty(STDOUT_FILENO) == 1;
  std::optional<FullScreen> screen;
  Cancellation quit;
  std::optional<QuitKey> key;
  if (has_keys) {
    screen.emplace();
    key.emplace(&quit);
  }
  CallOptions call = session->call();
  call.cancellation = &quit;
  for (;;) {
    const auto info = session->client().ServerInfo(call);
    if (quit.cancelled()) return absl::OkStatus();
    if (!info.ok()) return info.status();
    std::string view = TopView(session->server(), *info, absl::Now());
    if (arguments.once) {
      session->PrintText(ToJson(*info), view);
      return absl::OkStatus();
    }
    if (has_keys) absl::StrAppend(&view, "\nq quits\n");
    // Move home, draw, and erase the rest of a longer view.
    session->PrintText(ToJson(*info), redraws ? absl::StrCat("\x1b[H", EndLines(view), "\x1b[J")
                                              : absl::StrCat(view, "\n"));
    if (!std::cout.flush()) return absl::OkStatus();  // Run() reports the error
    if (quit.WaitFor(arguments.interval)) return absl::OkStatus();
  }
}

}  // namespace

std::string TopView(const std::string& server, const ServerInfo& info, absl::Time now) {
  const absl::Duration up = absl::Trunc(now - info.start_time.value_or(now), absl::Seconds(1));
  std::string view = absl::StrCat(Printable(server), "  croutd ", Printable(info.version), "  up ",
                                  DurationText(up), info.draining ? "  draining" : "", "\n");
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
      app, "top", "Show devices, queues, cache and tenants, updated every second until q is typed",
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
