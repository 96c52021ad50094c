// SPDX-License-Identifier: Apache-2.0

// Warnings of results as sentences, for programs that print them.
#ifndef CROUT_CROUT_WARNINGS_H_
#define CROUT_CROUT_WARNINGS_H_

#include <string>
#include <vector>

#include "crout/results.h"

namespace crout {
inline namespace api {

// Returns one sentence for each entry of `warnings`. Programs that act on a warning read `warnings`
// itself.
std::vector<std::string> WarningTexts(const FactorDescription& factor);
std::vector<std::string> WarningTexts(const SolveResult& result);
std::vector<std::string> WarningTexts(const ComplementResult& result);
std::vector<std::string> WarningTexts(const EchelonFormResult& result);

// Whether Warning::kNotAccurate is set: the backward error is too large, or X is not finite.
bool IsInaccurate(const SolveResult& result);
// Whether the rank and the form may be wrong: Warning::kPoorEchelonForm is set.
bool IsInaccurate(const EchelonFormResult& result);

}  // namespace api
}  // namespace crout

#endif  // CROUT_CROUT_WARNINGS_H_
