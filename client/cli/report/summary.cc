// SPDX-License-Identifier: Apache-2.0

#include "client/cli/report/summary.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "client/cli/report/json.h"
#include "client/cli/report/text.h"
#include "crout/types.h"
#include "kernels/util/duration.h"

namespace crout::cli {
namespace {

std::string Number(double value) { return absl::StrFormat("%.3g", value); }

std::string Bytes(int64_t bytes) { return FormatBytes(static_cast<double>(bytes)); }

template <class E>
std::string NameOf(const std::optional<E>& value) {
  return value ? Name(*value) : "unspecified";
}

// Joins the texts that are not empty.
std::string Join(const std::vector<std::string>& texts) {
  std::vector<std::string> shown;
  for (const std::string& text : texts) {
    if (!text.empty()) shown.push_back(text);
  }
  return absl::StrJoin(shown, ", ");
}

// "quality 0.0867"; empty without a value.
std::string Figure(const std::string& name, std::optional<double> value) {
  return value ? absl::StrCat(name, " ", Number(*value)) : "";
}

std::string Count(int64_t count, const std::string& name) {
  return absl::StrCat(count, " ", name, count == 1 ? "" : "s");
}

std::string PlaceAndTime(const std::string& device, const Timings& timings) {
  return absl::StrCat("on ", Printable(device), " in ", FormatSeconds(timings.total_seconds));
}

std::string DeterminantText(const Determinant& determinant) {
  if (std::isinf(determinant.log_abs)) return "determinant 0";
  const std::string sign =
      determinant.sign_imaginary == 0
          ? Number(determinant.sign)
          : absl::StrFormat("(%.3g%+.3gi)", determinant.sign, determinant.sign_imaginary);
  return absl::StrCat("determinant ", sign, " exp(", absl::StrFormat("%.6g", determinant.log_abs),
                      ")");
}

std::string MatrixText(const FactorDescription& factor) {
  const std::string dtype = NameOf(factor.matrix_dtype);
  const std::string kept = factor.has_matrix || factor.handle.empty() ? "" : "not kept";
  if (factor.batch) {
    const BatchInfo& batch = *factor.batch;
    return Join({absl::StrCat(batch.members, batch.members == 1 ? " matrix" : " matrices",
                              " of at most ", batch.max_rows, " x ", batch.max_cols, " ", dtype),
                 kept});
  }
  return Join({absl::StrCat(factor.n, " x ", factor.n, " ", dtype),
               factor.nnz ? absl::StrCat(*factor.nnz, " entries") : "", kept});
}

std::string AccuracyText(const FactorDescription& factor) {
  if (factor.batch) {
    const BatchInfo& batch = *factor.batch;
    return absl::StrCat(batch.singular, " singular, ", batch.poor, " poor, ", batch.nearly_singular,
                        " nearly singular");
  }
  if (factor.info > 0) {
    return Join({absl::StrCat("singular, info ", factor.info),
                 factor.singular_reason ? Name(*factor.singular_reason) : ""});
  }
  return Join({"info 0", Figure("quality", factor.quality),
               Figure("pivot growth", factor.pivot_growth), Figure("rcond", factor.rcond),
               factor.determinant ? DeterminantText(*factor.determinant) : ""});
}

absl::string_view PlaceName(std::optional<Tier> tier) {
  if (tier == Tier::kStore) return "in the server's store";
  return tier == Tier::kDevice ? "of device memory" : "of host memory";
}

std::string MethodText(const FactorDescription& factor) {
  std::string type = NameOf(factor.factor_dtype);
  if (factor.precision) absl::StrAppend(&type, " (precision ", Name(*factor.precision), ")");
  const std::string memory = factor.handle.empty()
                                 ? ""
                                 : absl::StrCat(Bytes(factor.bytes), " ", PlaceName(factor.tier),
                                                factor.durable ? ", durable" : "");
  return Join(
      {absl::StrCat(NameOf(factor.algorithm), " ", PlaceAndTime(factor.device, factor.timings)),
       factor.iterations ? Count(factor.iterations->total_sweeps, "sweep") : "", type, memory});
}

std::string LeaseText(const FactorDescription& factor) {
  if (!factor.lease_expire_time) return "";
  return absl::StrCat("until ", absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", *factor.lease_expire_time,
                                                 absl::UTCTimeZone()));
}

std::string BackwardErrorText(const SolveResult& result) {
  if (!result.backward_error) return "not measured";
  return Join({Number(*result.backward_error),
               result.refinement_steps > 0
                   ? absl::StrCat("after ", Count(result.refinement_steps, "refinement step"))
                   : "",
               result.corrections ? Count(*result.corrections, "correction") : ""});
}

std::string DevicesText(const ServerInfo& info) {
  std::vector<std::string> names;
  int64_t streams = 0, busy = 0, queued = 0;
  for (const DeviceStatus& device : info.devices) {
    names.push_back(absl::StrCat(Printable(device.name), device.healthy ? "" : " (fenced off)"));
    streams += device.streams;
    busy += device.streams_busy;
    queued += device.queue_depth;
  }
  return Join({absl::StrJoin(names, " "), absl::StrCat(busy, " of ", streams, " streams busy"),
               absl::StrCat(queued, " queued")});
}

}  // namespace

std::string FormatLines(const std::vector<std::pair<std::string, std::string>>& lines) {
  size_t width = 0;
  for (const auto& [key, text] : lines) {
    if (!text.empty()) width = std::max(width, key.size());
  }
  std::string all;
  for (const auto& [key, text] : lines) {
    if (text.empty()) continue;
    absl::StrAppend(&all, key, std::string(width - key.size() + 2, ' '), text, "\n");
  }
  return all;
}

std::string Identity(const FactorDescription& factor) {
  if (factor.handle.empty()) return "not kept";
  return absl::StrCat(Printable(factor.handle), " (",
                      factor.name.empty() ? "" : Printable(factor.name),
                      factor.name.empty() ? "" : ", ", "version ", factor.version, ")");
}

std::string SummaryOf(const FactorDescription& factor) {
  return FormatLines({{"handle", Identity(factor)},
                      {"matrix", MatrixText(factor)},
                      {"method", MethodText(factor)},
                      {"accuracy", AccuracyText(factor)},
                      {"lease", LeaseText(factor)}});
}

std::string SummaryOf(const SolveResult& result, const std::string& destination,
                      const FactorDescription* factor) {
  const std::string method =
      factor == nullptr ? NameOf(result.solver)
                        : absl::StrCat(NameOf(factor->algorithm), " and ", NameOf(result.solver));
  const bool replaced = result.fallback && *result.fallback != SolverFallback::kNone;
  return FormatLines(
      {{"backward_error", BackwardErrorText(result)},
       {"bounds", Join({Figure("componentwise", result.componentwise_error),
                        Figure("forward error", result.forward_error_bound)})},
       {"method", Join({absl::StrCat(method, " ", PlaceAndTime(result.device, result.timings)),
                        replaced ? absl::StrCat("fallback ", Name(*result.fallback)) : "",
                        result.promoted ? "factor copied from host memory" : ""})},
       {"factor",
        factor == nullptr ? absl::StrCat("version ", result.factor_version) : Identity(*factor)},
       {"solution", Join({Count(result.nrhs, "column"), destination})}});
}

std::string BatchSummaryOf(const SolveResult& result, const std::vector<std::string>& files) {
  const BatchSolveInfo batch = result.batch.value_or(BatchSolveInfo());
  const auto systems = static_cast<int64_t>(result.systems.info.size());
  const std::string written = files.empty()       ? "not written"
                              : files.size() == 1 ? files[0]
                                                  : absl::StrCat(files[0], " to ", files.back());
  return FormatLines(
      {{"backward_error", result.backward_error
                              ? absl::StrCat("at most ", Number(*result.backward_error))
                              : "not measured"},
       {"method", PlaceAndTime(result.device, result.timings)},
       {"factor", absl::StrCat("version ", result.factor_version)},
       {"systems", absl::StrCat(systems, ", ", batch.singular, " singular, ", batch.inaccurate,
                                " inaccurate")},
       {"solutions", written}});
}

std::string SummaryOf(const ComplementResult& result, const std::string& destination,
                      const FactorDescription& factor) {
  return FormatLines(
      {{"handle", factor.handle.empty() ? "" : Identity(factor)},
       {"backward_error",
        Join({result.backward_error ? Number(*result.backward_error) : "not measured",
              Figure("growth", result.growth)})},
       {"method",
        absl::StrCat(NameOf(result.solver), " ", PlaceAndTime(result.device, result.timings))},
       {"complement", destination}});
}

std::string SummaryOf(const EchelonFormResult& result, const std::string& destination) {
  return FormatLines({{"rank", absl::StrCat(result.rank)},
                      {"pivot_columns", FormatValue("pivot_columns", ToJson(result.pivot_columns))},
                      {"pivots", Join({Figure("smallest", result.least_pivot),
                                       Figure("largest rejected", result.largest_rejected),
                                       Figure("tolerance", result.tolerance),
                                       Figure("pivot growth", result.pivot_growth)})},
                      {"method", PlaceAndTime(result.device, result.timings)},
                      {"echelon_form", destination}});
}

std::string SummaryOf(const Estimate& estimate) {
  const std::string precision =
      estimate.precision ? absl::StrCat("precision ", Name(*estimate.precision)) : "";
  return FormatLines(
      {{"method",
        Join({absl::StrCat(NameOf(estimate.algorithm), " on ", Printable(estimate.device)),
              precision})},
       {"time", Join({FormatSeconds(estimate.predicted_seconds),
                      absl::StrCat("after ", FormatSeconds(estimate.predicted_queue_seconds),
                                   " in the queue")})},
       {"memory", Join({absl::StrCat(Bytes(estimate.peak_bytes), " while it runs"),
                        absl::StrCat(Bytes(estimate.cached_bytes), " afterwards")})},
       {"fits", estimate.fits ? "yes" : "no"},
       {"quality", estimate.rough ? "rough: may be wrong by a factor of ten" : ""}});
}

std::string SummaryOf(const ServerInfo& info, const std::string& server, absl::Time now) {
  const absl::Duration up = std::max(now - info.start_time.value_or(now), absl::ZeroDuration());
  const ServerLimits& limits = info.limits;
  const auto lease = [](const std::string& text, std::optional<absl::Duration> duration) {
    return duration ? absl::StrCat(text, " ", DurationText(*duration)) : "";
  };
  return FormatLines(
      {{"server", Join({Printable(server), absl::StrCat("croutd ", Printable(info.version)),
                        absl::StrCat("up ", DurationText(absl::Trunc(up, absl::Seconds(1)))),
                        info.draining ? "draining" : ""})},
       {"devices", DevicesText(info)},
       {"cache", Join({Count(info.cached_factors, "factor"),
                       absl::StrCat(Bytes(info.host_reserved_bytes), " of ",
                                    Bytes(info.host_budget_bytes), " of host memory")})},
       {"limits", Join({absl::StrCat("order ", limits.max_n),
                        limits.max_sparse_n > 0 ? absl::StrCat("sparse ", limits.max_sparse_n) : "",
                        lease("lease", limits.default_lease), lease("longest", limits.max_lease)})},
       {"tenants", info.tenants.empty() ? "" : absl::StrCat(info.tenants.size())}});
}

}  // namespace crout::cli
