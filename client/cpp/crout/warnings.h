// SPDX-License-Identifier: Apache-2.0

// Warnings of results as sentences, for programs that print them.
#ifndef CROUT_CLIENT_CPP_CROUT_WARNINGS_H_
#define CROUT_CLIENT_CPP_CROUT_WARNINGS_H_

#include <string>
#include <vector>

#include "crout/v1/factorization_service.pb.h"

namespace crout::client {

// Returns one sentence for each entry of `warnings`. Programs that act on a warning read `warnings`
// itself.
std::vector<std::string> WarningTexts(const v1::Factor& factor);
std::vector<std::string> WarningTexts(const v1::SolveResult& result);
std::vector<std::string> WarningTexts(const v1::ComplementResult& result);
std::vector<std::string> WarningTexts(const v1::EchelonFormResult& result);

// Whether WARNING_NOT_ACCURATE is set: the backward error is too large, or X is not finite.
bool IsInaccurate(const v1::SolveResult& result);
// Whether the rank and the form may be wrong: WARNING_POOR_ECHELON_FORM is set.
bool IsInaccurate(const v1::EchelonFormResult& result);

}  // namespace crout::client

#endif  // CROUT_CLIENT_CPP_CROUT_WARNINGS_H_
