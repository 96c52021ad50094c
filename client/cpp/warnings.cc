// SPDX-License-Identifier: Apache-2.0

#include "crout/warnings.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"

namespace crout::client {
namespace {

// Solves with a sparse or low-precision factor correct X if the matrix is kept, and ignore
// max_refinement_steps. Advice to refine would be wrong for them.
std::string_view PoorFactorAdvice(const v1::Factor& factor) {
  if (!factor.has_sparse() && !factor.has_precision()) {
    return "solve with refinement, or use an algorithm that pivots";
  }
  return factor.has_matrix() ? "solves with it are corrected"
                             : "keep the matrix, so that solves are corrected";
}

std::string FactorWarning(const v1::Factor& factor, int warning) {
  const v1::BatchInfo& batch = factor.batch();
  switch (warning) {
    case v1::WARNING_POOR_FACTOR:
      if (factor.has_batch()) {
        return absl::StrFormat("%d of %d members %s a poor or non-finite factor; the first is %d",
                               batch.poor(), batch.members(), batch.poor() == 1 ? "has" : "have",
                               batch.first_poor());
      }
      return absl::StrFormat("the factor is poor (quality %.3g, pivot growth %.3g): %s",
                             factor.quality(), factor.pivot_growth(), PoorFactorAdvice(factor));
    case v1::WARNING_NEARLY_SINGULAR:
      if (factor.has_batch()) {
        return absl::StrFormat(
            "%d of %d members may be numerically singular; the first is %d. Solutions with such "
            "members may have no correct digit",
            batch.nearly_singular(), batch.members(), batch.first_nearly_singular());
      }
      return "the matrix may be numerically singular: solutions may have no correct digit";
    case v1::WARNING_PERTURBED_RCOND: {
      const int64_t pivots = factor.sparse().perturbed_pivots();
      return absl::StrFormat(
          "rcond belongs to a nearby matrix, because %d %s perturbed: the rcond of the given "
          "matrix may be far smaller",
          pivots, pivots == 1 ? "pivot was" : "pivots were");
    }
    default:
      return absl::StrFormat("the factor has warning %d", warning);
  }
}

// Text of a warning about a solution. `error`: text with the backward error.
std::string SolutionWarning(int warning, const std::string& error) {
  switch (warning) {
    case v1::WARNING_POOR_FACTOR:
      return "the backward error was not measured, and the factor is poor: solve with verification";
    case v1::WARNING_NOT_ACCURATE:
      return absl::StrFormat(
          "the solution is not accurate (%s): solve with refinement, or factor by another "
          "algorithm or in a wider type",
          error);
    case v1::WARNING_NEARLY_SINGULAR:
      return "the matrix may be numerically singular: the solution may have no correct digit";
    default:
      return absl::StrFormat("the solution has warning %d", warning);
  }
}

std::string ErrorText(bool measured, double error) {
  return measured ? absl::StrFormat("backward error %.3g", error) : "not finite";
}

template <class Message, class F>
std::vector<std::string> Texts(const Message& message, F&& text) {
  std::vector<std::string> texts;
  for (const int warning : message.warnings()) texts.push_back(text(warning));
  return texts;
}

}  // namespace

std::vector<std::string> WarningTexts(const v1::Factor& factor) {
  return Texts(factor, [&](int warning) { return FactorWarning(factor, warning); });
}

std::vector<std::string> WarningTexts(const v1::SolveResult& result) {
  std::string error = ErrorText(result.has_backward_error(), result.backward_error());
  if (result.has_batch()) {
    const int64_t systems = result.batch().inaccurate();
    error =
        absl::StrFormat("%d %s; the first is %d; %s", systems, systems == 1 ? "system" : "systems",
                        result.batch().first_inaccurate(), error);
  }
  // An infinite bound has WARNING_NOT_ACCURATE even if the backward error is small.
  const bool is_bounded = std::isfinite(result.forward_error_bound());
  return Texts(result, [&](int warning) {
    if (warning == v1::WARNING_NOT_ACCURATE && !is_bounded) {
      return absl::StrFormat(
          "the solution may have no correct digit (forward error bound %.3g, %s)",
          result.forward_error_bound(), error);
    }
    if (warning == v1::WARNING_NOT_ACCURATE && result.has_corrections()) {
      return absl::StrFormat(
          "the solution is not accurate after %d corrections (%s): factor by another algorithm or "
          "in a wider type",
          result.corrections(), error);
    }
    return SolutionWarning(warning, error);
  });
}

std::vector<std::string> WarningTexts(const v1::ComplementResult& result) {
  return Texts(result, [&](int) {
    return absl::StrFormat("the Schur complement is poor (backward error %.3g, growth %.3g)",
                           result.backward_error(), result.growth());
  });
}

std::vector<std::string> WarningTexts(const v1::EchelonFormResult& result) {
  return Texts(result, [&](int) {
    return absl::StrFormat(
        "the rank and the echelon form may be wrong (pivot growth %.3g): find the rank by singular "
        "values, and solve a system with refinement, which reports its backward error",
        result.pivot_growth());
  });
}

bool IsInaccurate(const v1::SolveResult& result) {
  return absl::c_linear_search(result.warnings(), v1::WARNING_NOT_ACCURATE);
}

bool IsInaccurate(const v1::EchelonFormResult& result) {
  return absl::c_linear_search(result.warnings(), v1::WARNING_POOR_ECHELON_FORM);
}

}  // namespace crout::client
