// SPDX-License-Identifier: Apache-2.0

#include "server/observability/status/status_page.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "server/observability/status/heat_map.h"
#include "server/observability/status/html_writer.h"
#include "server/observability/status/number_format.h"
#include "server/observability/status/status_style.h"

namespace crout {
namespace {

std::string_view NameOf(Method method) { return kMethodNames[static_cast<size_t>(method)]; }

// Returns the CSS width of a part of a bar.
std::string Width(double percent) {
  return absl::StrCat("width:", std::clamp(percent, 0.0, 100.0), "%");
}

// Returns "now" if `age` is less than a second.
std::string Ago(absl::Duration age) {
  const double seconds = absl::ToDoubleSeconds(age);
  return seconds < 1 ? "now" : Seconds(seconds) + " ago";
}

void BeginTable(std::initializer_list<std::string_view> columns, HtmlWriter& page) {
  page.Open("div", {{"class", "scroll"}, {"tabindex", "0"}});
  page.Open("table");
  page.Open("tr");
  for (const std::string_view column : columns) {
    // A leading "#" marks a column of numbers.
    const bool number = column.front() == '#';
    page.Element("th", column.substr(number ? 1 : 0), {{"class", number ? "number" : "text"}});
  }
  page.Close();
}

void EndTable(HtmlWriter& page) {
  page.Close();
  page.Close();
}

void TextCell(std::string_view text, HtmlWriter& page) {
  page.Element("td", text.empty() ? "-" : text);
}

// `number` is markup from number_format.h.
void NumberCell(std::string_view number, HtmlWriter& page) {
  page.RawElement("td", number, {{"class", "number"}});
}

void Tile(std::string_view name, std::string_view number, HtmlWriter& page) {
  page.Open("section");
  page.RawElement("b", number);
  page.Element("span", name, {{"class", "dim"}});
  page.Close();
}

// Draws a bar of `part` of `whole` with `note`, which is markup, below it.
void Meter(std::string_view name, int64_t part, int64_t whole, std::string_view note,
           HtmlWriter& page) {
  page.Open("div", {{"class", "meter"}});
  page.Element("span", name);
  page.Open("div", {{"class", "track"}});
  page.RawElement("i", "", {{"style", Width(Percent(part, whole))}});
  page.Close();
  page.RawElement("span", note, {{"class", "note"}});
  page.Close();
}

void MemoryMeter(std::string_view name, int64_t reserved, int64_t limit, HtmlWriter& page) {
  Meter(name, reserved, limit, absl::StrCat(Bytes(reserved), " of ", Bytes(limit), " reserved"),
        page);
}

void WriteHead(const StatusView& view, HtmlWriter& page) {
  page.Open("head");
  page.Empty("meta", {{"charset", "utf-8"}});
  page.Empty("meta", {{"name", "viewport"}, {"content", "width=device-width, initial-scale=1"}});
  page.Empty("meta", {{"http-equiv", "refresh"}, {"content", "10"}});
  // If markup is injected in place of text, it can neither run scripts nor load resources.
  page.Raw(
      "<meta http-equiv=\"Content-Security-Policy\" "
      "content=\"default-src 'none'; style-src 'unsafe-inline'\" />");
  page.Element("title", absl::StrCat(view.ready ? "" : "(not ready) ", "croutd"));
  page.RawElement("style", kStatusStyle);
  page.Close();
}

void WriteHeader(const StatusView& view, HtmlWriter& page) {
  page.Open("header");
  page.Element("h1", absl::StrCat("croutd ", view.version));
  page.Element("span", view.ready ? "ready" : "not ready",
               {{"class", view.ready ? "state good" : "state bad"}});
  page.RawElement("span", absl::StrCat("up ", Seconds(absl::ToDoubleSeconds(view.uptime))),
                  {{"class", "dim"}});
  page.Element("span", absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", view.now, absl::UTCTimeZone()),
               {{"class", "dim"}});
  page.Open("nav");
  for (const std::string_view path : {"/metrics", "/healthz", "/readyz"}) {
    page.Element("a", path, {{"href", path}});
  }
  page.Close();
  page.Close();
}

void WriteTiles(const StatusView& view, HtmlWriter& page) {
  int64_t queued = 0;
  int64_t busy = 0;
  int64_t streams = 0;
  for (const DeviceState& device : view.state.devices) {
    queued += device.queue_depth;
    busy += device.streams_busy;
    streams += device.streams;
  }
  const auto healthy = std::count_if(view.state.devices.begin(), view.state.devices.end(),
                                     [](const DeviceState& device) { return device.healthy; });
  int64_t factors = 0;
  for (const TierState& tier : view.state.cache) factors += tier.entries;
  page.Open("div", {{"class", "tiles"}});
  Tile("devices healthy",
       absl::StrCat(Count(healthy), " of ", Count(static_cast<int64_t>(view.state.devices.size()))),
       page);
  Tile("calls in flight", Count(static_cast<int64_t>(view.calls_in_flight)), page);
  Tile("jobs queued", Count(queued), page);
  Tile("streams busy", absl::StrCat(Count(busy), " of ", Count(streams)), page);
  Tile("factors cached", Count(factors), page);
  const int64_t lookups = view.cache.hits + view.cache.misses;
  Tile("handles found", lookups == 0 ? "-" : absl::StrCat(Percent(view.cache.hits, lookups), " %"),
       page);
  page.Close();
}

// Returns the driver's readings of a GPU on one line.
std::string GpuLine(const GpuReading& gpu) {
  std::vector<std::string> parts;
  if (gpu.compute_utilization.has_value()) {
    parts.push_back(absl::StrFormat("%.0f %% busy", *gpu.compute_utilization * 100));
  }
  if (gpu.power_watts.has_value()) parts.push_back(absl::StrFormat("%.0f W", *gpu.power_watts));
  if (gpu.temperature_celsius.has_value()) {
    parts.push_back(absl::StrFormat("%.0f &#176;C", *gpu.temperature_celsius));
  }
  if (gpu.sm_clock_hertz.has_value()) {
    parts.push_back(absl::StrFormat("%.0f MHz", *gpu.sm_clock_hertz * 1e-6));
  }
  if (gpu.ecc_uncorrected.value_or(0) > 0) {
    parts.push_back(absl::StrFormat("%.0f uncorrected memory errors", *gpu.ecc_uncorrected));
  }
  if (gpu.last_xid.value_or(0) > 0) {
    parts.push_back(absl::StrFormat("last Xid error %.0f", *gpu.last_xid));
  }
  return absl::StrCat("GPU: ", absl::StrJoin(parts, ", "), "; ", Seconds(gpu.age_seconds), " ago.");
}

void WriteDevice(const StatusView::Device& device, const DeviceState& state, int64_t queue_capacity,
                 HtmlWriter& page) {
  page.Open("div", {{"class", "device"}});
  page.Open("h3");
  page.Text(device.name);
  page.Raw(" ");
  page.Element("span", state.healthy ? "healthy" : "fenced",
               {{"class", state.healthy ? "state good" : "state bad"}});
  page.Close();
  page.Element("p", device.description, {{"class", "note"}});
  Meter("Streams", state.streams_busy, state.streams,
        absl::StrCat(Count(state.streams_busy), " of ", Count(state.streams), " busy"), page);
  Meter("Queue", state.queue_depth, queue_capacity,
        absl::StrCat(Count(state.queue_depth), " of ", Count(queue_capacity), " places used"),
        page);
  MemoryMeter("Budget", state.reserved_bytes, state.budget_bytes, page);
  page.RawElement("p",
                  absl::StrCat("Pool: ", Bytes(state.pool_used_bytes), " in use, ",
                               Bytes(state.pool_cached_bytes), " cached. All processes use ",
                               Bytes(state.driver_used_bytes), " according to the driver, ",
                               Seconds(state.memory_age_seconds), " ago."),
                  {{"class", "note"}});
  if (state.gpu.has_value()) page.RawElement("p", GpuLine(*state.gpu), {{"class", "note"}});
  page.Close();
}

void WriteDevices(const StatusView& view, HtmlWriter& page) {
  page.Open("section");
  page.Element("h2", "Devices");
  for (size_t i = 0; i < std::min(view.devices.size(), view.state.devices.size()); ++i) {
    WriteDevice(view.devices[i], view.state.devices[i], view.queue_capacity, page);
  }
  page.Close();
}

void WriteCache(const StatusView& view, HtmlWriter& page) {
  page.Open("section");
  page.Element("h2", "Cache and memory");
  BeginTable({"Factors in", "#Number", "#Bytes"}, page);
  for (size_t tier = 0; tier < view.state.cache.size(); ++tier) {
    const bool in_files = tier == static_cast<size_t>(Tier::kStore);
    if (in_files && !view.state.store) continue;
    page.Open("tr");
    TextCell(absl::StrCat(std::string(kCacheTierNames[tier]), in_files ? "" : " memory"), page);
    NumberCell(Count(view.state.cache[tier].entries), page);
    NumberCell(Bytes(view.state.cache[tier].bytes), page);
    page.Close();
  }
  EndTable(page);
  page.RawElement("p",
                  absl::StrCat("Since the daemon started: ", Count(view.cache.hits),
                               " handles found, ", Count(view.cache.misses), " not found, ",
                               Count(view.cache.evictions), " factors evicted from a tier."),
                  {{"class", "note"}});
  const ServerState& state = view.state;
  MemoryMeter("Host budget", state.host_memory_reserved, state.host_memory_limit, page);
  MemoryMeter("Call memory", state.call_memory_reserved, state.call_memory_limit, page);
  if (state.store) MemoryMeter("Store", state.store->used_bytes, state.store->limit_bytes, page);
  page.Close();
}

void WriteOpenCalls(const StatusView& view, HtmlWriter& page) {
  page.Open("section");
  page.Element("h2", "Calls in flight");
  if (view.open_calls.empty()) page.Element("p", "None.", {{"class", "dim"}});
  if (!view.open_calls.empty()) {
    BeginTable({"Call", "Method", "Phase", "Device", "Tenant", "#Received", "#Age"}, page);
    for (const OpenCall& call : view.open_calls) {
      page.Open("tr");
      TextCell(absl::StrCat(call.id), page);
      TextCell(NameOf(call.method), page);
      TextCell(std::string(call.phase) + (call.overdue ? ", overdue" : ""), page);
      TextCell(call.device, page);
      TextCell(call.tenant, page);
      NumberCell(Bytes(static_cast<int64_t>(call.received_bytes)), page);
      NumberCell(Seconds(call.seconds), page);
      page.Close();
    }
    EndTable(page);
    const size_t left =
        view.calls_in_flight - std::min(view.calls_in_flight, view.open_calls.size());
    if (left > 0) {
      page.Element("p", absl::StrCat("And ", left, " more recent calls."), {{"class", "note"}});
    }
  }
  page.Close();
}

void WritePhaseLegend(HtmlWriter& page) {
  page.Open("p", {{"class", "legend"}});
  for (size_t i = 0; i < kJobPhaseNames.size(); ++i) {
    page.Open("span");
    page.RawElement("i", "", {{"class", absl::StrCat("p", i)}});
    page.Text(kJobPhaseNames[i]);
    page.Close();
  }
  page.Close();
}

// Draws the phases of a call as a bar. Each part has a tooltip with its seconds.
void WritePhases(const EndedCall& call, HtmlWriter& page) {
  page.Open("td", {{"class", "phases"}});
  page.Open("div", {{"class", "track"}});
  for (size_t i = 0; i < call.phases.size(); ++i) {
    if (call.phases[i] <= 0 || call.seconds <= 0) continue;
    const std::string title =
        absl::StrCat(std::string(kJobPhaseNames[i]), " ", absl::SixDigits(call.phases[i]), " s");
    page.RawElement("i", "",
                    {{"class", absl::StrCat("p", i)},
                     {"style", Width(100 * call.phases[i] / call.seconds)},
                     {"title", title}});
  }
  page.Close();
  page.Close();
}

// Names the longest phase for readers who cannot distinguish the colours.
std::string LongestPhase(const EndedCall& call) {
  const auto longest = std::max_element(call.phases.begin(), call.phases.end());
  if (*longest <= 0) return "-";
  const std::string name(kJobPhaseNames[static_cast<size_t>(longest - call.phases.begin())]);
  return absl::StrCat(name, ", ", Seconds(*longest));
}

void WriteSlowCalls(const StatusView& view, HtmlWriter& page) {
  page.Open("section");
  page.Element("h2", "Slowest calls of the last hour");
  if (view.slow_calls.empty()) {
    page.Element("p", "None.", {{"class", "dim"}});
    page.Close();
    return;
  }
  BeginTable({"#Duration", "Phases", "Longest phase", "Method", "Status", "Algorithm", "#n",
              "Device", "Tenant", "Ended", "Call"},
             page);
  for (const EndedCall& call : view.slow_calls) {
    page.Open("tr");
    NumberCell(Seconds(call.seconds), page);
    WritePhases(call, page);
    page.RawElement("td", LongestPhase(call));
    TextCell(NameOf(call.method), page);
    page.Element("td", absl::StatusCodeToString(call.code),
                 {{"class", call.code == absl::StatusCode::kOk ? "text" : "bad"}});
    TextCell(call.algorithm, page);
    NumberCell(call.n < 0 ? "-" : Count(call.n), page);
    TextCell(call.device, page);
    TextCell(call.tenant, page);
    page.RawElement("td", Ago(view.now - call.ended));
    TextCell(absl::StrCat(call.id), page);
    page.Close();
  }
  EndTable(page);
  WritePhaseLegend(page);
  page.Close();
}

// Writes a count, shaded by its share of the row's observations.
void WriteShare(uint64_t count, uint64_t total, HtmlWriter& page) {
  const double share = static_cast<double>(count) / static_cast<double>(total);
  const std::string style = absl::StrCat("background:rgba(var(--heat),", 0.7 * share, ")");
  if (count == 0) {
    page.RawElement("td", "", {{"class", "share"}});
  } else {
    page.RawElement("td", Count(static_cast<int64_t>(count)),
                    {{"class", "share"}, {"style", style}});
  }
}

void WriteLatencies(std::string_view title, std::string_view column, std::string_view note,
                    const std::vector<StatusView::Latency>& latencies, HtmlWriter& page) {
  page.Open("section");
  page.Element("h2", title);
  page.Open("div", {{"class", "scroll"}, {"tabindex", "0"}});
  page.Open("table");
  page.Open("tr");
  page.Element("th", column);
  for (const std::string_view name : {"Count", "Median", "99 %"}) {
    page.Element("th", name, {{"class", "number"}});
  }
  for (const std::string_view name : kDecadeNames) {
    page.RawElement("th", name, {{"class", "share"}});
  }
  page.Close();
  for (const StatusView::Latency& latency : latencies) {
    if (latency.reading.count == 0) continue;
    page.Open("tr");
    TextCell(latency.name, page);
    NumberCell(Count(static_cast<int64_t>(latency.reading.count)), page);
    NumberCell(Seconds(Quantile(latency.reading, 0.5)), page);
    NumberCell(Seconds(Quantile(latency.reading, 0.99)), page);
    for (const uint64_t count : ByDecade(latency.reading)) {
      WriteShare(count, latency.reading.count, page);
    }
    page.Close();
  }
  EndTable(page);
  page.Element("p", note, {{"class", "note"}});
  page.Close();
}

void WriteLastRun(const StatusView& view, HtmlWriter& page) {
  page.Open("section");
  page.Element("h2", "Last iterative run");
  if (!view.last_run) {
    page.Element("p", "No iterative method has run yet.", {{"class", "dim"}});
    page.Close();
    return;
  }
  const IterationRun& run = *view.last_run;
  page.Open("div", {{"class", "run"}});
  WriteHeatMap(run, page);
  page.Open("div");
  page.Open("p");
  page.Text(absl::StrCat(run.algorithm, ", n = ", Count(run.n), " on ", run.device));
  page.Raw(absl::StrCat(": ", Seconds(run.seconds), ", ", Ago(view.now - run.ended), ", "));
  page.Text(run.warm ? "warm start." : "cold start.");
  page.Close();
  page.Element("p",
               absl::StrCat(Count(run.sections), " by ", Count(run.sections), " sections of order ",
                            Count(run.section_size), "; ", Count(run.total_sweeps), " sweeps, ",
                            Count(run.total_pivots), " row interchanges."));
  WriteHeatLegend(run, page);
  page.Close();
  page.Close();
  page.Close();
}

}  // namespace

std::string RenderStatusPage(const StatusView& view) {
  HtmlWriter page;
  page.Raw("<!DOCTYPE html>\n");
  page.Open("html", {{"lang", "en"}});
  WriteHead(view, page);
  page.Open("body");
  WriteHeader(view, page);
  WriteTiles(view, page);
  page.Open("div", {{"class", "columns"}});
  WriteDevices(view, page);
  WriteCache(view, page);
  page.Close();
  WriteOpenCalls(view, page);
  WriteSlowCalls(view, page);
  WriteLatencies("Latency by phase", "Phase",
                 "Since the daemon started. Median and 99 % are interpolated from the histogram "
                 "buckets of the metrics.",
                 view.phases, page);
  WriteLatencies("Latency by method", "Method",
                 "From the first message of a call to its last, since the daemon started.",
                 view.methods, page);
  WriteLastRun(view, page);
  page.Close();
  page.Close();
  return page.Take();
}

}  // namespace crout
