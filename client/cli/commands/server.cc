// SPDX-License-Identifier: Apache-2.0

// algorithms, devices, status, estimate
#include <memory>
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
