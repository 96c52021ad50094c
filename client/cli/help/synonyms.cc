// SPDX-License-Identifier: Apache-2.0

#include "client/cli/help/synonyms.h"

#include <algorithm>
#include <string_view>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "kernels/util/nearest.h"

namespace crout::cli {
namespace {

struct Synonyms {
  const char* name;              // name in croutctl, or a command with options
  const char* words;             // separated by spaces
  const char* beside = nullptr;  // the row is only used if this name exists, too
};

constexpr Synonyms kCommandSynonyms[] = {
    {"factor", "factorize factorise decompose create add put upload push send getrf lu_factor"},
    {"refactor", "refactorize update replace modify edit"},
    {"solve", "backsolve apply getrs lu_solve backslash"},
    {"lu", "gesv linsolve factor-solve factor-and-solve"},
    {"schur", "complement schur-complement condense"},
    {"rref", "rank echelon reduce gauss-jordan"},
    {"series", "sequence steps timesteps"},
    {"download", "get fetch pull export save dump"},
    {"list", "ls ps factors handles find"},
    {"describe", "info show inspect stat get-factor"},
    {"iterations", "sweeps history"},
    {"renew", "extend touch lease refresh keepalive"},
    {"release", "delete del remove rm free drop evict destroy kill"},
    {"release --all", "clear purge prune flush reset"},
    {"verify", "check validate residual compare"},
    {"analyze", "analyse analysis ordering symbolic fill"},
    {"algorithms", "methods solvers"},
    {"devices", "device gpu gpus"},
    {"quota", "quotas limits"},
    {"status", "health ping server ready uptime server-info"},
    {"estimate", "predict cost price"},
    {"top", "watch monitor htop load"},
    {"bench", "benchmark stress loadtest load-test perf"},
    {"completion", "completions complete autocomplete"},
    {"man", "manual manpage"},
    {"help", "usage commands"},
    {"version", "ver about"},
};

// Includes the names of fields in the other clients.
constexpr Synonyms kOptionSynonyms[] = {
    {"algorithm", "method lu-method"},
    {"pivot-rule", "pivoting pivot"},
    {"interval", "interval-low interval-high", "pivot-rule"},
    {"precision", "mixed-precision low-precision single tf32"},
    {"factor-dtype", "factor-type"},
    {"dtype", "type data-type element-type"},
    {"condition", "cond rcond condition-number"},
    {"determinant", "det slogdet logdet"},
    {"no-keep-matrix", "drop-matrix keep-matrix discard-matrix"},
    {"no-verify", "verify skip-verify skip-verification no-check"},
    {"equilibrate", "scale scaling equilibration"},
    {"refine", "max-refinement-steps refinement refinement-steps max-refine"},
    {"refine-componentwise", "componentwise"},
    {"componentwise-error", "berr"},
    {"error-bound", "ferr forward-error forward-error-bound"},
    {"transpose", "trans transposed operation"},
    {"conjugate-transpose", "hermitian adjoint ctranspose conj-transpose"},
    {"leading-order", "leading block-order"},
    {"augmented", "augmented-columns"},
    {"tolerance", "tol eps rtol"},
    {"absolute-tolerance", "atol"},
    {"sweep-limit", "max-sweeps max-iterations maxiter"},
    {"nrhs", "columns rhs-columns"},
    {"lease", "ttl expire expires expiry lifetime duration"},
    {"name", "label tag"},
    {"from", "replace"},
    {"start", "handle resume initial-factor"},
    {"yes", "force assume-yes no-confirm"},
    {"all", "everything"},
    {"server", "host address addr url endpoint target connect"},
    {"tenant", "namespace user account project"},
    {"priority", "nice urgency class"},
    {"token-file", "token auth bearer"},
    {"ca", "cacert ca-cert ca-file cafile"},
    {"cert", "client-cert cert-file"},
    {"key", "client-key key-file"},
    {"tls", "ssl secure https"},
    {"timeout", "deadline time-limit max-time"},
    {"traceparent", "trace"},
    {"verbose", "long full all-fields debug"},
    {"quiet", "silent handle-only"},
    {"show", "view output-format"},
    {"json", "as-json"},
    {"progress", "progress-bar"},
    {"plot", "spy picture draw svg figure"},
    {"output", "out outfile out-file output-file save"},
    {"format", "file-format fmt"},
    {"interval", "period refresh every", "once"},
    {"once", "oneshot batch single-shot"},
    {"duration", "seconds length"},
    {"requests", "count calls iterations"},
    {"concurrency", "threads workers clients parallel"},
    {"rate", "qps rps"},
    {"n", "size order"},
    {"members", "member"},
    {"member", "members index"},
    {"device", "gpu"},
    {"help", "usage"},
};

constexpr Synonyms kValueSynonyms[] = {
    {"f32", "float32 float real32"},
    {"f64", "float64 double real64 real"},
    {"c64", "complex64"},
    {"c128", "complex128 complex"},
    {"single", "f32 float32 float"},
    {"getrf", "lapack cusolver openblas lu gepp"},
    {"gem", "gauss gaussian"},
    {"crout_lu", "crout crout-lu"},
    {"multifrontal", "mumps umfpack superlu"},
    {"mtx", "mm matrixmarket matrix-market"},
    {"npy", "numpy"},
    {"txt", "text csv plain"},
    {"amd", "mindegree minimum-degree"},
    {"metis", "nested-dissection nd"},
    {"wide", "all full verbose long"},
    {"name", "handle quiet short"},
    {"zsh", "z-shell"},
    {"on", "true yes 1"},
    {"off", "false no 0"},
};

bool Applies(const Synonyms& row, const std::vector<std::string>& names) {
  // The first word of "release --all" is the name.
  const absl::string_view whole = row.name;
  const absl::string_view name = whole.substr(0, whole.find(' '));
  return absl::c_linear_search(names, name) &&
         (row.beside == nullptr || absl::c_linear_search(names, row.beside));
}

// Returns the name for which `word` is a synonym; empty if there is none.
std::string NameOf(absl::string_view word, absl::Span<const Synonyms> table,
                   const std::vector<std::string>& names) {
  for (const Synonyms& row : table) {
    if (!Applies(row, names)) continue;
    const std::vector<absl::string_view> words = absl::StrSplit(row.words, ' ');
    if (absl::c_linear_search(words, word)) return row.name;
  }
  return "";
}

// The same for a synonym with one slip.
std::string NameOfMisspelled(absl::string_view word, absl::Span<const Synonyms> table,
                             const std::vector<std::string>& names) {
  constexpr size_t kShortest = 5;  // shorter words resemble too many others
  constexpr size_t kLongest = 64;
  if (word.size() < kShortest || word.size() > kLongest) return "";
  for (const Synonyms& row : table) {
    if (!Applies(row, names)) continue;
    for (const absl::string_view synonym : absl::StrSplit(row.words, ' ')) {
      const std::string_view a(word.data(), word.size()), b(synonym.data(), synonym.size());
      if (EditDistance(a, b) <= 1) return row.name;
    }
  }
  return "";
}

std::string Hint(absl::string_view word, absl::string_view dashes, absl::Span<const Synonyms> table,
                 const std::vector<std::string>& names) {
  const auto use = [&](const std::string& name) { return absl::StrCat("; use ", dashes, name); };
  const std::string lower = absl::AsciiStrToLower(word);
  std::string name = NameOf(lower, table, names);
  if (!name.empty()) return use(name);
  const std::string nearest = Nearest(lower, names);
  if (!nearest.empty()) return absl::StrCat("; the nearest is ", dashes, nearest);
  name = NameOfMisspelled(lower, table, names);
  return name.empty() ? "" : use(name);
}

}  // namespace

std::string CommandHint(absl::string_view word, const std::vector<std::string>& names) {
  const std::string name = NameOf(absl::AsciiStrToLower(word), kCommandSynonyms, names);
  if (!name.empty()) return absl::StrCat("; use ", name);
  // "batch" is a part of "factor-batch".
  constexpr size_t kMinSearchLength = 4;  // shorter words occur in many names
  std::vector<std::string> longer;
  for (const std::string& candidate : names) {
    if (absl::StrContains(candidate, word)) longer.push_back(candidate);
  }
  if (word.size() >= kMinSearchLength && !longer.empty()) {
    return absl::StrCat("; there is ", absl::StrJoin(longer, ", "));
  }
  return Hint(word, "", kCommandSynonyms, names);
}

std::string OptionHint(absl::string_view word, const std::vector<std::string>& names) {
  word.remove_prefix(std::min(word.find_first_not_of('-'), word.size()));
  word = word.substr(0, word.find('='));
  // The fields of the other clients have underscores.
  return Hint(absl::StrReplaceAll(word, {{"_", "-"}}), "--", kOptionSynonyms, names);
}

std::string ValueHint(absl::string_view word, const std::vector<std::string>& names) {
  return Hint(word, "", kValueSynonyms, names);
}

}  // namespace crout::cli
