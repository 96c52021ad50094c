// SPDX-License-Identifier: Apache-2.0

// algorithms, devices, status, estimate
#include <memory>
#include <optional>
#include <vector>

#include "absl/time/clock.h"
#include "client/cli/commands/commands.h"
#include "client/cli/exit_codes.h"
#include "client/cli/options/factor_options.h"
#include "client/cli/options/option_values.h"
#include "client/cli/report/summary.h"
#include "client/cli/report/text.h"

namespace crout::cli {
namespace {

std::vector<std::string> NamesOf(const ServerInfo& info) {
  std::vector<std::string> names;
  for (const DeviceStatus& device : info.devices) names.push_back(device.name);
  return names;
}

absl::Status RunAlgorithms(Session* session) {
  const auto info = session->client().ServerInfo(session->call());
  if (!info.ok()) return info.status();
  const Json all = ToJson(*info);
  Json devices = Json::array();
  for (const Json& device : all["devices"]) {
    devices.push_back({{"name", device["name"]},
                       {"algorithms", device["algorithms"]},
                       {"sparse_algorithms", device["sparse_algorithms"]},
                       {"batch_algorithms", device["batch_algorithms"]},
                       {"solvers", device["solvers"]}});
  }
  const std::string table = FormatObjects(
      {"name", "algorithms", "sparse_algorithms", "batch_algorithms", "solvers"}, devices);
  session->Print({Json{{"devices", devices}}, table, table, NamesOf(*info)});
  return absl::OkStatus();
}

absl::Status RunDevices(Session* session) {
  const auto info = session->client().ServerInfo(session->call());
  if (!info.ok()) return info.status();
  const Json devices = ToJson(*info)["devices"];
  const std::string table =
      FormatObjects({"name", "healthy", "memory_bytes", "budget_bytes", "reserved_bytes", "streams",
                     "streams_busy", "queue_depth", "description"},
                    devices);
  session->Print({Json{{"devices", devices}}, table, table, NamesOf(*info)});
  return absl::OkStatus();
}

// The rows of `croutctl quota`: each quota with its limit and its use.
std::string QuotaTable(const TenantUsage& usage) {
  const TenantQuota quota = usage.quota.value_or(TenantQuota());
  std::vector<std::vector<std::string>> rows;
  const auto bytes = [](int64_t value) { return FormatBytes(static_cast<double>(value)); };
  const auto count = [](int64_t value) { return absl::StrCat(value); };
  const auto add = [&](const char* name, std::optional<int64_t> limit, std::optional<int64_t> used,
                       const auto& format) {
    rows.push_back(
        {name, limit ? format(*limit) : "none", used ? format(*used) : std::string("-")});
  };
  add("device_bytes", quota.device_bytes, usage.device_bytes, bytes);
  add("host_bytes", quota.host_bytes, usage.host_bytes, bytes);
  add("store_bytes", quota.store_bytes, usage.store_bytes, bytes);
  add("pinned_bytes", quota.pinned_bytes, usage.pinned_bytes, bytes);
  add("factors", quota.factors, usage.cached_factors, count);
  add("bytes_in_flight", quota.bytes_in_flight, usage.bytes_in_flight, bytes);
  add("queued_jobs", quota.queued_jobs, usage.queued_jobs, count);
  add("running_jobs", quota.running_jobs, usage.running_jobs, count);
  add("max_n", quota.max_n, std::nullopt, count);
  rows.push_back(
      {"device_seconds_per_minute",
       quota.device_seconds_per_minute ? absl::StrCat(*quota.device_seconds_per_minute) : "none",
       absl::StrCat(usage.device_seconds)});
  return absl::StrCat("tenant ", Printable(usage.tenant), quota.soft ? " (soft bytes)" : "", "\n",
                      FormatTable({"quota", "limit", "used"}, rows));
}

absl::Status RunQuota(Session* session) {
  const auto info = session->client().ServerInfo(session->call());
  if (!info.ok()) return info.status();
  if (!info->own) {
    return absl::UnimplementedError("the server is older than quotas: upgrade it");
  }
  const std::string table = QuotaTable(*info->own);
  session->Print({ToJson(*info->own), table, table});
  return absl::OkStatus();
}

absl::Status RunStatus(Session* session) {
  CallOptions call = session->call();
  // A health check: a server that does not answer in time counts as absent.
  if (!call.timeout) call.timeout = absl::Seconds(5);
  const auto info = session->client().ServerInfo(call);
  if (absl::IsDeadlineExceeded(info.status())) session->ExitWith(kUnreachable);
  if (!info.ok()) return info.status();
  const Json json = ToJson(*info);
  Json summary = json;
  summary.erase("devices");
  summary.erase("tenants");
  summary.erase("own");
  std::string report = FormatObject(summary) + "\n" +
                       FormatObjects({"name", "healthy", "streams_busy", "queue_depth",
                                      "reserved_bytes", "budget_bytes"},
                                     json["devices"]);
  if (!info->tenants.empty()) {
    report += "\n" + FormatObjects({"tenant", "cached_factors", "device_bytes", "host_bytes",
                                    "store_bytes", "calls"},
                                   json["tenants"]);
  }
  session->Print({json, report, SummaryOf(*info, session->server(), absl::Now())});
  return absl::OkStatus();
}

absl::Status RunEstimate(Session* session, const std::string& factor, EstimateRequest request) {
  if (!factor.empty()) {
    const auto handle = session->Handle(factor);
    if (!handle.ok()) return handle.status();
    request.handle = *handle;
  }
  const auto estimate = session->client().Estimate(request, session->call());
  if (!estimate.ok()) return estimate.status();
  const Json json = ToJson(*estimate);
  session->Print({json, FormatObject(json), SummaryOf(*estimate)});
  return absl::OkStatus();
}

}  // namespace

void AddServerCommands(CLI::App* app, Session* session) {
  session->AddCommand(app, "algorithms",
                      "List the LU methods and solvers that each device supports",
                      [=] { return RunAlgorithms(session); });
  session->AddCommand(app, "devices", "List the devices of the server and their load",
                      [=] { return RunDevices(session); });
  session->AddCommand(app, "quota", "Show the limits of the tenant and what it uses",
                      [=] { return RunQuota(session); });
  session->AddCommand(
      app, "status",
      "Show the version, limits and load of the server; the default of --timeout is 5s",
      [=] { return RunStatus(session); });

  const auto request = std::make_shared<EstimateRequest>();
  const auto factor = std::make_shared<std::string>();
  CLI::App* estimate =
      session->AddCommand(app, "estimate", "Predict the memory and time of a factorization",
                          [=] { return RunEstimate(session, *factor, *request); });
  CLI::Option* n = estimate->add_option_function<int64_t>(
      "n", [=](const int64_t& n) { request->n = n; }, "Order of the matrix");
  BeginSection(estimate, "Input");
  CLI::Option* nnz = estimate->add_option_function<int64_t>(
      "--nnz", [=](const int64_t& nnz) { request->nnz = nnz; },
      "Entries of a sparse matrix, both triangles of a symmetric one counted [default: a dense "
      "matrix]");
  CLI::Option* from = estimate->add_option("--factor", *factor,
                                           "Handle or name of a sparse factor; the prediction is "
                                           "exact for a matrix with the same pattern");
  from->excludes(n)->excludes(nnz);
  estimate->parse_complete_callback([=] {
    if (n->empty() && from->empty()) throw CLI::RequiredError("n, or --factor");
  });
  AddEnumOption<Dtype>(
      estimate, "--dtype", [=](Dtype dtype) { request->dtype = dtype; },
      "Type of the matrix [default: f64]");
  AddFactorizeOptions(estimate, &request->factor);
}

}  // namespace crout::cli
