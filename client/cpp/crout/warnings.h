// SPDX-License-Identifier: Apache-2.0

// Warnings of results as sentences, for programs that print them.
#ifndef CROUT_CLIENT_CPP_CROUT_WARNINGS_H_
#define CROUT_CLIENT_CPP_CROUT_WARNINGS_H_

#include <string>
#include <vector>

#include "crout/v1/factorization_service.pb.h"

namespace crout::client {

// One sentence for each entry of `warnings`; empty if there are none. To decide by kind, read
// `warnings` itself.
std::vector<std::string> WarningTexts(const v1::Factor& factor);
std::vector<std::string> WarningTexts(const v1::SolveResult& result);
std::vector<std::string> WarningTexts(const v1::ComplementResult& result);
std::vector<std::string> WarningTexts(const v1::EchelonFormResult& result);

// Whether the backward error was not accepted or X is not finite: WARNING_NOT_ACCURATE is set.
bool IsInaccurate(const v1::SolveResult& result);
// Whether the rank and the form may be wrong: WARNING_POOR_ECHELON_FORM is set.
bool IsInaccurate(const v1::EchelonFormResult& result);

}  // namespace crout::client

#endif  // CROUT_CLIENT_CPP_CROUT_WARNINGS_H_
