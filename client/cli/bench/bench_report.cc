// SPDX-License-Identifier: Apache-2.0

#include "client/cli/bench/bench_report.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/exit_codes.h"
#include "client/cli/report/text.h"

namespace crout::cli {
namespace {

// Step of the page's curves, uniform on their axis log10(1 / (1 - q)).
constexpr double kPercentileStep = 0.1;
constexpr double kPercentileEnd = 4;  // 99.99 %

Json CurveOf(const LatencyHistogram& latencies) {
  Json curve = Json::array();
  for (double x = 0; x < kPercentileEnd + kPercentileStep / 2; x += kPercentileStep) {
    const double q = 1 - std::pow(10, -x);
    curve.push_back(
        {{"percentile", 100 * q}, {"seconds", absl::ToDoubleSeconds(latencies.Quantile(q))}});
  }
  return curve;
}

std::string RowName(const Json& row) {
  const double rate = row.value("rate", 0.0);
  return absl::StrCat(row.value("call", ""), ", ", row.value("concurrency", 0), " workers",
                      rate > 0 ? absl::StrFormat(", %g a second", rate) : "");
}

// Whether the two have the same call and load.
bool SameLoad(const Json& a, const Json& b) { return RowName(a) == RowName(b); }

const Json* FindLike(const Json& row, const Json& rows) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const Json& old) { return SameLoad(row, old); });
  return found == rows.end() ? nullptr : &*found;
}

// The chart's area and ranges.
struct Axes {
  static constexpr double kWidth = 720, kHeight = 360, kLeft = 70, kRight = 30, kTop = 10,
                          kBottom = 30;
  int low, high;  // decades of seconds

  double X(double percentile) const {
    const double x = -std::log10(std::max(1 - percentile / 100, std::pow(10, -kPercentileEnd)));
    return kLeft + (kWidth - kLeft - kRight) * x / kPercentileEnd;
  }
  double Y(double seconds) const {
    const double decade = std::clamp(std::log10(std::max(seconds, 1e-9)), 1.0 * low, 1.0 * high);
    return kTop + (kHeight - kTop - kBottom) * (high - decade) / (high - low);
  }
};

Axes AxesFor(const std::vector<const Json*>& runs) {
  double least = 1e9, most = 1e-9;
  for (const Json* run : runs) {
    for (const Json& row : run->at("results")) {
      for (const Json& point : row.value("curve", Json::array())) {
        least = std::min(least, std::max(point.value("seconds", 0.0), 1e-6));
        most = std::max(most, point.value("seconds", 0.0));
      }
    }
  }
  const int low = static_cast<int>(std::floor(std::log10(std::min(least, most))));
  return {low, std::max(low + 1, static_cast<int>(std::ceil(std::log10(most))))};
}

void AppendGrid(const Axes& axes, std::string* svg) {
  for (int decade = axes.low; decade <= axes.high; ++decade) {
    const double y = axes.Y(std::pow(10, decade));
    absl::StrAppendFormat(svg, "<path class=\"grid\" d=\"M%g %.1fH%g\"/>", Axes::kLeft, y,
                          Axes::kWidth - Axes::kRight);
    absl::StrAppendFormat(svg, "<text x=\"%g\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
                          Axes::kLeft - 6, y + 4, FormatSeconds(std::pow(10, decade)));
  }
  for (const double percentile : {0.0, 50.0, 90.0, 99.0, 99.9, 99.99}) {
    const double x = axes.X(percentile);
    absl::StrAppendFormat(svg, "<path class=\"grid\" d=\"M%.1f %gV%g\"/>", x, Axes::kTop,
                          Axes::kHeight - Axes::kBottom);
    absl::StrAppendFormat(svg, "<text x=\"%.1f\" y=\"%g\" text-anchor=\"middle\">%g %%</text>\n", x,
                          Axes::kHeight - 10, percentile);
  }
}

void AppendCurve(const Axes& axes, const Json& row, const std::string& color, bool dashed,
                 std::string* svg) {
  std::string path;
  for (const Json& point : row.value("curve", Json::array())) {
    absl::StrAppendFormat(&path, "%s%.1f %.1f", path.empty() ? "M" : "L",
                          axes.X(point.value("percentile", 0.0)),
                          axes.Y(point.value("seconds", 0.0)));
  }
  absl::StrAppendFormat(svg, "<path d=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"%s/>\n",
                        path, color, dashed ? " stroke-dasharray=\"5 4\"" : "");
}

std::string Chart(const Json& run, const Json* baseline) {
  // Colors that remain distinct with color-vision deficiency: Okabe and Ito (2008).
  constexpr std::array<const char*, 7> kColors = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                  "#e69f00", "#56b4e9", "#000000"};
  std::vector<const Json*> runs = {&run};
  if (baseline != nullptr) runs.push_back(baseline);
  const Axes axes = AxesFor(runs);
  std::string svg =
      absl::StrFormat("<svg viewBox=\"0 0 %g %g\" role=\"img\">\n", Axes::kWidth, Axes::kHeight);
  AppendGrid(axes, &svg);
  std::string legend = "<ul>\n";
  size_t at = 0;
  for (const Json& row : run.at("results")) {
    const std::string color = kColors[at++ % kColors.size()];
    AppendCurve(axes, row, color, false, &svg);
    const Json* old = baseline == nullptr ? nullptr : FindLike(row, baseline->at("results"));
    if (old != nullptr) AppendCurve(axes, *old, color, true, &svg);
    absl::StrAppend(&legend, "<li style=\"color:", color, "\">", EscapeXml(RowName(row)),
                    old == nullptr ? "" : " (dashed: the baseline)", "</li>\n");
  }
  return svg + "</svg>\n" + legend + "</ul>\n";
}

std::string Table(const Json& rows) {
  constexpr std::array<const char*, 11> kKeys = {"requests",      "errors",      "per_second",
                                                 "p50_seconds",   "p90_seconds", "p99_seconds",
                                                 "p99_9_seconds", "max_seconds", "per_second_ratio",
                                                 "p50_ratio",     "p99_ratio"};
  std::string table = "<table><tr><th>load</th>";
  for (const char* key : kKeys) absl::StrAppend(&table, "<th>", key, "</th>");
  for (const Json& row : rows) {
    absl::StrAppend(&table, "</tr>\n<tr><td>", EscapeXml(RowName(row)), "</td>");
    for (const char* key : kKeys) {
      const auto value = row.find(key);
      absl::StrAppend(&table, "<td>", value == row.end() ? "" : EscapeXml(FormatValue(key, *value)),
                      "</td>");
    }
  }
  return table + "</tr></table>\n";
}

// Describes a run without its rows: "n 256, nrhs 1, ...".
std::string Facts(const Json& run) {
  std::string facts;
  for (const auto& [key, value] : run.items()) {
    if (key == "results") continue;
    absl::StrAppend(&facts, facts.empty() ? "" : ", ", EscapeXml(key), " ",
                    EscapeXml(FormatValue(key, value)));
  }
  return facts;
}

}  // namespace

void AppendRows(int concurrency, double rate, const BenchResult& result, Json* rows) {
  for (const auto& [call, counts] : result.calls) {
    int64_t errors = 0;
    for (const auto& [name, count] : counts.errors) errors += count;
    const LatencyHistogram& latencies = counts.latencies;
    const auto quantile = [&](double q) { return absl::ToDoubleSeconds(latencies.Quantile(q)); };
    rows->push_back({{"concurrency", concurrency},
                     {"rate", rate},
                     {"call", call},
                     {"requests", latencies.count()},
                     {"errors", errors},
                     {"per_second", static_cast<double>(latencies.count()) /
                                        absl::ToDoubleSeconds(result.elapsed)},
                     {"p50_seconds", quantile(0.5)},
                     {"p90_seconds", quantile(0.9)},
                     {"p99_seconds", quantile(0.99)},
                     {"p99_9_seconds", quantile(0.999)},
                     {"max_seconds", absl::ToDoubleSeconds(latencies.max())},
                     {"errors_by_status", counts.errors},
                     {"curve", CurveOf(latencies)}});
  }
}

absl::StatusOr<Json> ReadRun(const std::string& path) {
  std::ifstream file(path);
  if (!file) return FileErrnoError(errno, absl::StrCat("cannot read ", path));
  const Json run = Json::parse(file, nullptr, false);
  const auto is_row = [](const Json& row) {
    const auto has = [&](const char* key) { return row.contains(key) && row[key].is_number(); };
    return row.is_object() && row.contains("call") && row["call"].is_string() &&
           has("concurrency") && has("rate") && has("per_second") && has("p50_seconds") &&
           has("p99_seconds") && row.contains("curve") && row["curve"].is_array();
  };
  if (!run.is_object() || !run.contains("results") || !run["results"].is_array() ||
      !std::all_of(run["results"].begin(), run["results"].end(), is_row)) {
    return FileError(absl::StrCat(path, " is not the output of `croutctl bench --json`"));
  }
  return run;
}

void CompareRows(const Json& baseline, Json* rows) {
  for (Json& row : *rows) {
    const Json* old = FindLike(row, baseline.at("results"));
    if (old == nullptr) continue;
    const auto compare = [&](const char* key, const char* ratio) {
      const double before = old->at(key).get<double>();
      if (before > 0) row[ratio] = row.at(key).get<double>() / before;
    };
    compare("per_second", "per_second_ratio");
    compare("p50_seconds", "p50_ratio");
    compare("p99_seconds", "p99_ratio");
  }
}

std::string BenchHtml(const Json& run, const Json* baseline) {
  std::string page =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>"
      "<title>croutctl bench</title>\n<style>body{font:14px sans-serif;margin:2em;}"
      "svg{max-width:60em}td:first-child{text-align:left;white-space:nowrap}"
      "td,th{padding:.2em .6em;text-align:right}.grid{stroke:#ccc}svg text{font-size:11px}"
      "</style></head><body>\n<h1>croutctl bench</h1>\n";
  absl::StrAppend(&page, "<p>", Facts(run), "</p>\n");
  if (baseline != nullptr) absl::StrAppend(&page, "<p>Baseline: ", Facts(*baseline), "</p>\n");
  absl::StrAppend(&page, "<h2>Latency by percentile</h2>\n", Chart(run, baseline));
  absl::StrAppend(&page, "<h2>Figures</h2>\n", Table(run.at("results")));
  return page + "</body></html>\n";
}

}  // namespace crout::cli
