// SPDX-License-Identifier: Apache-2.0

// Summaries of results: at most five aligned lines, for people. -v prints all fields instead.
#ifndef CROUT_CLIENT_CLI_REPORT_SUMMARY_H_
#define CROUT_CLIENT_CLI_REPORT_SUMMARY_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "crout/results.h"

namespace crout::cli {

// Largest number of lines of a summary.
inline constexpr size_t kSummaryLines = 5;

// Aligns lines of a key and a text; omits lines without a text.
std::string FormatLines(const std::vector<std::pair<std::string, std::string>>& lines);

// "HANDLE (NAME, version 1)".
std::string Identity(const FactorDescription& factor);

std::string SummaryOf(const FactorDescription& factor);
// `destination` describes where X was written, such as "x.mtx". `factor`: of FactorAndSolve, or
// null.
std::string SummaryOf(const SolveResult& result, const std::string& destination,
                      const FactorDescription* factor);
// Summary of a solve with a batch, whose solutions are in `files`.
std::string BatchSummaryOf(const SolveResult& result, const std::vector<std::string>& files);
std::string SummaryOf(const ComplementResult& result, const std::string& destination,
                      const FactorDescription& factor);
std::string SummaryOf(const EchelonFormResult& result, const std::string& destination);
std::string SummaryOf(const Estimate& estimate);
std::string SummaryOf(const ServerInfo& info, const std::string& server, absl::Time now);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_REPORT_SUMMARY_H_
