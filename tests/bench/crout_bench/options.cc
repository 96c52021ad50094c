// SPDX-License-Identifier: Apache-2.0

#include "tests/bench/crout_bench/options.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/util/strings.h"

namespace crout::bench {
namespace {

// Adds a flag with several values, separated by commas or in repeated flags. `parse` parses each
// value.
template <class T, class Parse>
void AddList(CLI::App& app, const std::string& name, std::vector<T>& values, Parse parse,
             const std::string& description) {
  app.add_option_function<std::vector<std::string>>(
         name,
         [&values, parse, name](const std::vector<std::string>& texts) {
           values.clear();
           for (const std::string& text : texts) {
             auto value = parse(text);
             if (!value.ok())
               throw CLI::ValidationError(name, std::string(value.status().message()));
             values.push_back(*std::move(value));
           }
         },
         description)
      ->delimiter(',');
}

absl::StatusOr<double> ParseNumber(std::string_view text) {
  double value = 0;
  if (absl::SimpleAtod(ToAbsl(text), &value)) return value;
  return absl::InvalidArgumentError(absl::StrCat("'", ToAbsl(text), "' is not a number"));
}

absl::StatusOr<DType> ParseDType(std::string_view text) {
  for (const DType dtype : kDTypes) {
    if (text == NameOf(dtype)) return dtype;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", ToAbsl(text), "' is none of f32, f64, c64, c128"));
}

absl::StatusOr<MethodVariant> ParseVariant(std::string_view text) {
  if (text == "fast") return MethodVariant::kFast;
  if (text == "published") return MethodVariant::kPublished;
  return absl::InvalidArgumentError(
      absl::StrCat("'", ToAbsl(text), "' is neither fast nor published"));
}

absl::StatusOr<int64_t> ParseSection(std::string_view text) {
  int64_t size = 0;
  if (text == "published") return kPublishedSection;
  if (absl::SimpleAtoi(ToAbsl(text), &size) && size >= 0) return size;
  return absl::InvalidArgumentError(
      absl::StrCat("'", ToAbsl(text), "' is neither a section size nor 'published'"));
}

absl::StatusOr<int> ParseBlock(std::string_view text) {
  int size = 0;
  if (absl::SimpleAtoi(ToAbsl(text), &size) && size >= 0) return size;
  return absl::InvalidArgumentError(absl::StrCat("'", ToAbsl(text), "' is not a block size"));
}

void AddInputs(CLI::App& app, Options& options) {
  app.add_option("--matrices", options.matrices, "Directory of Matrix Market files, plain or gzip")
      ->check(CLI::ExistingDirectory);
  app.add_option("--match", options.match,
                 "Glob that a file's path in the directory must match, as in 'poc/*' or "
                 "'hb/@(bp_0|685_bus).*'");
  app.add_option("--min-n", options.min_n, "Files of smaller order are left out");
  app.add_option("--max-n", options.max_n, "Files of larger order are left out");
  app.add_option_function<std::vector<std::string>>(
      "--generate",
      [&options](const std::vector<std::string>& texts) {
        for (const std::string& text : texts) {
          auto family = ParseFamily(text);
          if (!family.ok()) {
            throw CLI::ValidationError("--generate", std::string(family.status().message()));
          }
          options.generate.push_back(*std::move(family));
        }
      },
      "FAMILY:N[,N...]; thesis, dominant, random, eyvazov, arrow: matrices of order N; mcf: on "
      "a "
      "grid of N x N points; bddc, bddc_corner, bddc_edge, bddc_face, bddc_interior: of N elements "
      "along a subdomain's edge");
}

void AddParameters(CLI::App& app, Options& options) {
  AddTypes(app, options);
  AddList(app, "--pivoting", options.pivotings, ParsePivoting,
          "default, none, partial, interval[:LOW:HIGH], threshold[:T]");
  AddList(app, "--tolerance", options.tolerances, ParseNumber,
          "Relative tolerance of iterative methods; 0: until nothing changes");
  AddList(app, "--absolute-tolerance", options.absolute_tolerances, ParseNumber,
          "Published absolute tolerance, for iterative methods that have it");
  AddList(app, "--variant", options.variants, ParseVariant,
          "Variant, for methods that have it: fast, published");
  AddList(app, "--section-size", options.section_sizes, ParseSection,
          "Section size of iterative methods; 0: the default; 'published': clamp(n/10, 256, 1024)");
  AddList(app, "--block-size", options.block_sizes, ParseBlock,
          "Block size, for methods that accept the value: croutctl factor --help; 0: the default");
  app.add_option("--sweep-limit", options.sweep_limit, "Sweeps of one section; 0: the default");
  AddList(app, "--warm", options.warm, ParseNumber,
          "Sequences with these relative changes per step; iterative methods start from the "
          "factor of the previous step; 0: the steps of the family mcf");
  app.add_option("--steps", options.steps, "Steps of a sequence")->check(CLI::Range(1, 1000));
}

}  // namespace

absl::StatusOr<FamilyOrders> ParseFamily(std::string_view text) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(ToAbsl(text), ':');
  FamilyOrders family{parts.first, {}};
  for (const absl::string_view order : absl::StrSplit(parts.second, ',')) {
    int64_t n = 0;
    if (!absl::SimpleAtoi(order, &n) || n < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", ToAbsl(text), "' is not FAMILY:N[,N...] with positive orders"));
    }
    family.orders.push_back(n);
  }
  return family;
}

absl::StatusOr<std::optional<PivotCriterion>> ParsePivoting(std::string_view text) {
  const std::vector<std::string> parts = absl::StrSplit(ToAbsl(text), ':');
  const auto bad = [&] {
    return absl::InvalidArgumentError(absl::StrCat("'", ToAbsl(text), "' is no pivoting rule"));
  };
  if (text == "default") return std::nullopt;
  PivotCriterion criterion;
  if (text == "none") {
    criterion.rule = PivotRule::kNone;
  } else if (text == "partial") {
    criterion.rule = PivotRule::kPartial;
  } else if (parts[0] == "interval" && (parts.size() == 1 || parts.size() == 3)) {
    criterion.rule = PivotRule::kInterval;
    if (parts.size() == 3 && !(absl::SimpleAtod(parts[1], &criterion.low) &&
                               absl::SimpleAtod(parts[2], &criterion.high))) {
      return bad();
    }
  } else if (parts[0] == "threshold" && parts.size() <= 2) {
    criterion.rule = PivotRule::kThreshold;
    if (parts.size() == 2 && !absl::SimpleAtod(parts[1], &criterion.threshold)) return bad();
  } else {
    return bad();
  }
  return criterion;
}

std::string FormatPivoting(const PivotCriterion& criterion) {
  switch (criterion.rule) {
    case PivotRule::kNone:
      return "none";
    case PivotRule::kPartial:
      return "partial";
    case PivotRule::kInterval:
      return absl::StrCat("interval:", criterion.low, ":", criterion.high);
    case PivotRule::kThreshold:
      return absl::StrCat("threshold:", criterion.threshold);
  }
  return "unknown";
}

void AddTypes(CLI::App& app, Options& options) {
  AddList(app, "--dtype", options.dtypes, ParseDType, "f64, f32, c128, c64");
}

void AddOptions(CLI::App& app, Options& options) {
  app.add_option("--device", options.device, "host, or cuda:N")->capture_default_str();
  app.add_option("--threads", options.threads, "Host threads; default: one for each core")
      ->check(CLI::Range(1, 4096));
  app.add_option("--algorithms", options.algorithms,
                 "Names; default: all methods of the device. By name also lu_loop, plain loops on "
                 "the host")
      ->delimiter(',');
  AddInputs(app, options);
  AddParameters(app, options);
  app.add_flag("--solvers", options.solvers,
               "Also every solver with the factors of one method, ten right-hand sides of ones");
  app.add_flag("--direct", options.direct,
               "Also direct solvers beside getrf and getrs, with 1 and with n right-hand sides");
  app.add_option("--repetitions", options.repetitions, "Timed runs of every case")
      ->capture_default_str()
      ->check(CLI::Range(1, 10000));
  app.add_option("--case-seconds", options.case_seconds,
                 "Total seconds of a case's runs after which it is not repeated")
      ->capture_default_str();
  app.add_option("--refine", options.refine, "Most refinement steps of the refined solve")
      ->capture_default_str();
  app.add_option("--accuracy-limit", options.accuracy_limit,
                 "Largest order with a factor ratio and max |PA - LU|")
      ->capture_default_str();
  app.add_option("--pattern-cells", options.pattern_cells,
                 "Cells along a side of the patterns of magnitudes of A and LU; 0: none")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024));
  app.add_option("-o,--output", options.output, "Result file; standard output unless given");
}

}  // namespace crout::bench
