// SPDX-License-Identifier: Apache-2.0

#include "crout/types.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/generated_enum_reflection.h>

#include <algorithm>
#include <complex>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "crout/v1/factorization_service.pb.h"

namespace crout {
inline namespace api {
namespace {

using google::protobuf::EnumDescriptor;
using google::protobuf::EnumValueDescriptor;

// ALGORITHM_CROUT_LU -> "crout_lu"; DTYPE_FLOAT64 -> "f64".
std::string NameIn(const EnumDescriptor& type, const EnumValueDescriptor& value) {
  absl::string_view name = value.name();
  // The name of the value 0 is the prefix of all names, and UNSPECIFIED.
  absl::ConsumePrefix(&name, absl::StripSuffix(type.value(0)->name(), "UNSPECIFIED"));
  std::string result = absl::AsciiStrToLower(name);
  if (type.name() != "Dtype") return result;
  return absl::StrReplaceAll(result, {{"float", "f"}, {"complex", "c"}});
}

std::vector<std::string> NamesIn(const EnumDescriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.value_count(); ++i) {
    if (type.value(i)->number() != 0) names.push_back(NameIn(type, *type.value(i)));
  }
  return names;
}

std::string NameOfNumber(const EnumDescriptor& type, int number) {
  const EnumValueDescriptor* const value = type.FindValueByNumber(number);
  return value == nullptr ? absl::StrCat(number) : NameIn(type, *value);
}

std::optional<int> NumberOf(const EnumDescriptor& type, absl::string_view name) {
  for (int i = 0; i < type.value_count(); ++i) {
    const int number = type.value(i)->number();
    if (number != 0 && NameIn(type, *type.value(i)) == name) return number;
  }
  return std::nullopt;
}

}  // namespace

#define CROUT_ENUM(Native, Contract)                                                          \
  template <>                                                                                 \
  std::string Name(Native value) {                                                            \
    return NameOfNumber(*google::protobuf::GetEnumDescriptor<v1::Contract>(),                 \
                        static_cast<int>(value));                                             \
  }                                                                                           \
  template <>                                                                                 \
  std::optional<Native> FromName(absl::string_view name) {                                    \
    const auto number = NumberOf(*google::protobuf::GetEnumDescriptor<v1::Contract>(), name); \
    if (!number) return std::nullopt;                                                         \
    return static_cast<Native>(*number);                                                      \
  }                                                                                           \
  template <>                                                                                 \
  std::vector<std::string> Names<Native>() {                                                  \
    return NamesIn(*google::protobuf::GetEnumDescriptor<v1::Contract>());                     \
  }

CROUT_ENUM(Dtype, Dtype)
CROUT_ENUM(StorageOrder, Layout)
CROUT_ENUM(Algorithm, Algorithm)
CROUT_ENUM(Variant, MethodVariant)
CROUT_ENUM(Solver, Solver)
CROUT_ENUM(SolverFallback, SolverFallback)
CROUT_ENUM(Equilibrate, Equilibrate)
CROUT_ENUM(Operation, Operation)
CROUT_ENUM(Precision, FactorPrecision)
CROUT_ENUM(PrecisionFallback, PrecisionFallback)
CROUT_ENUM(Pivoting, PivotRule)
CROUT_ENUM(UnitTriangle, UnitDiagonal)
CROUT_ENUM(SingularReason, SingularReason)
CROUT_ENUM(Tier, Tier)
CROUT_ENUM(Warning, Warning)
CROUT_ENUM(SeriesStrategy, SeriesStrategy)
CROUT_ENUM(Phase, Phase)

#undef CROUT_ENUM

template <>
std::vector<std::string> Names<Priority>() {
  return {"interactive", "normal", "batch"};
}
template <>
std::string Name(Priority value) {
  const std::vector<std::string> names = Names<Priority>();
  const auto i = static_cast<size_t>(value) - 1;
  return i < names.size() ? names[i] : absl::StrCat(static_cast<int>(value));
}
template <>
std::optional<Priority> FromName(absl::string_view name) {
  const std::vector<std::string> names = Names<Priority>();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Priority>(found - names.begin() + 1);
}

size_t ElementSize(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat32:
      return sizeof(float);
    case Dtype::kFloat64:
      return sizeof(double);
    case Dtype::kComplex64:
      return sizeof(std::complex<float>);
    case Dtype::kComplex128:
      return sizeof(std::complex<double>);
  }
  return 0;
}

}  // namespace api
}  // namespace crout
