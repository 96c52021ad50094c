// SPDX-License-Identifier: Apache-2.0

#include "crout/warnings.h"

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"

namespace crout {
inline namespace api {
namespace {

// Solves with a sparse or low-precision factor correct X if the matrix is kept, and ignore
// max_refinement_steps. Advice to refine would be wrong for them.
std::string_view PoorFactorAdvice(const FactorDescription& factor) {
  if (!factor.sparse && !factor.precision) {
    return "solve with refinement, or use an algorithm that pivots";
  }
  return factor.has_matrix ? "solves with it are corrected"
                           : "keep the matrix, so that solves are corrected";
}

std::string FactorWarning(const FactorDescription& factor, Warning warning) {
  const BatchInfo batch = factor.batch.value_or(BatchInfo());
  switch (warning) {
    case Warning::kPoorFactor:
      if (factor.batch) {
        return absl::StrFormat("%d of %d members %s a poor or non-finite factor; the first is %d",
                               batch.poor, batch.members, batch.poor == 1 ? "has" : "have",
                               batch.first_poor);
      }
      return absl::StrFormat("the factor is poor (quality %.3g, pivot growth %.3g): %s",
                             factor.quality.value_or(0), factor.pivot_growth,
                             PoorFactorAdvice(factor));
    case Warning::kNearlySingular:
      if (factor.batch) {
        return absl::StrFormat(
            "%d of %d members may be numerically singular; the first is %d. Solutions with such "
            "members may have no correct digit",
            batch.nearly_singular, batch.members, batch.first_nearly_singular);
      }
      return "the matrix may be numerically singular: solutions may have no correct digit";
    case Warning::kPerturbedRcond: {
      const int64_t pivots = factor.sparse ? factor.sparse->perturbed_pivots : 0;
      return absl::StrFormat(
          "rcond belongs to a nearby matrix, because %d %s perturbed: the rcond of the given "
          "matrix may be far smaller",
          pivots, pivots == 1 ? "pivot was" : "pivots were");
    }
    default:
      return absl::StrFormat("the factor has warning %d", static_cast<int>(warning));
  }
}

// Text of a warning about a solution. `error`: text with the backward error.
std::string SolutionWarning(Warning warning, const std::string& error) {
  switch (warning) {
    case Warning::kPoorFactor:
      return "the backward error was not measured, and the factor is poor: solve with verification";
    case Warning::kNotAccurate:
      return absl::StrFormat(
          "the solution is not accurate (%s): solve with refinement, or factor by another "
          "algorithm or in a wider type",
          error);
    case Warning::kNearlySingular:
      return "the matrix may be numerically singular: the solution may have no correct digit";
    default:
      return absl::StrFormat("the solution has warning %d", static_cast<int>(warning));
  }
}

std::string ErrorText(const std::optional<double>& error) {
  return error ? absl::StrFormat("backward error %.3g", *error) : "not finite";
}

template <class Message, class F>
std::vector<std::string> Texts(const Message& message, F&& text) {
  std::vector<std::string> texts;
  for (const Warning warning : message.warnings) texts.push_back(text(warning));
  return texts;
}

}  // namespace

std::vector<std::string> WarningTexts(const FactorDescription& factor) {
  return Texts(factor, [&](Warning warning) { return FactorWarning(factor, warning); });
}

std::vector<std::string> WarningTexts(const SolveResult& result) {
  std::string error = ErrorText(result.backward_error);
  if (result.batch) {
    const int64_t systems = result.batch->inaccurate;
    error =
        absl::StrFormat("%d %s; the first is %d; %s", systems, systems == 1 ? "system" : "systems",
                        result.batch->first_inaccurate, error);
  }
  // An infinite bound has WARNING_NOT_ACCURATE even if the backward error is small.
  const bool is_bounded = std::isfinite(result.forward_error_bound.value_or(0));
  return Texts(result, [&](Warning warning) {
    if (warning == Warning::kNotAccurate && !is_bounded) {
      return absl::StrFormat(
          "the solution may have no correct digit (forward error bound %.3g, %s)",
          result.forward_error_bound.value_or(0), error);
    }
    if (warning == Warning::kNotAccurate && result.corrections) {
      return absl::StrFormat(
          "the solution is not accurate after %d corrections (%s): factor by another algorithm or "
          "in a wider type",
          *result.corrections, error);
    }
    return SolutionWarning(warning, error);
  });
}

std::vector<std::string> WarningTexts(const ComplementResult& result) {
  return Texts(result, [&](Warning) {
    return absl::StrFormat("the Schur complement is poor (backward error %.3g, growth %.3g)",
                           result.backward_error.value_or(0), result.growth.value_or(0));
  });
}

std::vector<std::string> WarningTexts(const EchelonFormResult& result) {
  return Texts(result, [&](Warning) {
    return absl::StrFormat(
        "the rank and the echelon form may be wrong (pivot growth %.3g): find the rank by singular "
        "values, and solve a system with refinement, which reports its backward error",
        result.pivot_growth);
  });
}

bool IsInaccurate(const SolveResult& result) {
  return absl::c_linear_search(result.warnings, Warning::kNotAccurate);
}

bool IsInaccurate(const EchelonFormResult& result) {
  return absl::c_linear_search(result.warnings, Warning::kPoorEchelonForm);
}

}  // namespace api
}  // namespace crout
