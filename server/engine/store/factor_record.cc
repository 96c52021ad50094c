// SPDX-License-Identifier: Apache-2.0

#include "server/engine/store/factor_record.h"

#include <array>
#include <concepts>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "kernels/util/digest.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/strings.h"
#include "nlohmann/json.hpp"

namespace crout {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormatKey = "format";
constexpr const char* kFormatVersion = "crout-factor-2";

// The texts of the enums, in the order of their values.
template <class E>
inline constexpr std::array<std::string_view, 0> kNamesOf = {};
template <>
inline constexpr std::array<std::string_view, 4> kNamesOf<DType> = {"f32", "f64", "c64", "c128"};
template <>
inline constexpr std::array<std::string_view, 2> kNamesOf<DeviceKind> = {"host", "cuda"};
template <>
inline constexpr std::array<std::string_view, 3> kNamesOf<FactorPrecision> = {"factor_type",
                                                                              "single", "tf32"};
template <>
inline constexpr std::array<std::string_view, 4> kNamesOf<PrecisionFallback> = {
    "none", "unusable", "condition", "stagnation"};
template <>
inline constexpr std::array<std::string_view, 2> kNamesOf<UnitDiagonal> = {"l", "u"};
template <>
inline constexpr std::array<std::string_view, 5> kNamesOf<SingularReason> = {
    "none", "zero_pivot", "empty_row", "empty_column", "structure"};
template <>
inline constexpr std::array<std::string_view, 2> kNamesOf<MethodVariant> = {"fast", "published"};
// Names of the orderings of an Analysis.
constexpr std::array<std::string_view, 4> kOrderings = {"", "amd", "metis", "natural"};

template <class Names>
std::optional<size_t> IndexIn(const Names& names, std::string_view name) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return i;
  }
  return std::nullopt;
}

// JSON has no infinity and no NaN.
Json NumberToJson(double number) {
  if (number - number == 0) return number;
  return number != number ? "nan" : number > 0 ? "inf" : "-inf";
}

std::optional<double> NumberOf(const Json& json) {
  if (json.is_number()) return json.get<double>();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (json == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (json == "inf") return kInfinity;
  if (json == "-inf") return -kInfinity;
  return std::nullopt;
}

// The functions Fields() name the members of each structure once, for the writer and the reader.
template <class Archive, class T>
concept HasFields = requires(Archive& archive, T& value) {
  Fields(archive, value);
};

template <class Archive, class T>
requires std::same_as<std::remove_const_t<T>, BatchExtent>
void Fields(Archive& archive, T& extent) {
  archive("dtype", extent.dtype);
  archive("members", extent.members);
  archive("max_rows", extent.max_rows);
  archive("max_cols", extent.max_cols);
  archive("max_diagonal", extent.max_diagonal);
  archive("total_rows", extent.total_rows);
  archive("total_cols", extent.total_cols);
  archive("diagonals", extent.diagonals);
  archive("bytes", extent.bytes);
}

template <class Archive, class T>
requires std::same_as<std::remove_const_t<T>, BatchSummary>
void Fields(Archive& archive, T& batch) {
  archive("extent", batch.extent);
  archive("singular", batch.singular);
  archive("pivot_growth", batch.pivot_growth);
  archive("quality", batch.quality);
  archive("poor", batch.poor);
  archive("first_poor", batch.first_poor);
  archive("nearly_singular", batch.nearly_singular);
  archive("first_nearly_singular", batch.first_nearly_singular);
}

template <class Archive, class T>
requires std::same_as<std::remove_const_t<T>, FactorCounts>
void Fields(Archive& archive, T& counts) {
  archive("lower", counts.lower);
  archive("upper", counts.upper);
}

template <class Archive, class T>
requires std::same_as<std::remove_const_t<T>, NumericSummary>
void Fields(Archive& archive, T& numeric) {
  archive("info", numeric.info);
  archive("singular_column", numeric.singular_column);
  archive("perturbed_pivots", numeric.perturbed_pivots);
  archive("interchanges", numeric.interchanges);
  archive("negative_pivots", numeric.negative_pivots);
  archive("max_abs", numeric.max_abs);
  archive("pivot_growth", numeric.pivot_growth);
  archive("counts", numeric.counts);
}

// The numbers of an analysis. Its arrays are tensors (stored_analysis.h).
template <class Archive, class T>
requires std::same_as<std::remove_const_t<T>, Analysis>
void Fields(Archive& archive, T& analysis) {
  archive("n", analysis.n);
  archive("nonzeros", analysis.nonzeros);
  archive("pattern_0", analysis.pattern.half[0]);
  archive("pattern_1", analysis.pattern.half[1]);
  archive("unmatched_row", analysis.unmatched_row);
  archive("kept", analysis.kept);
  archive("matched", analysis.matched);
  archive("pivot_threshold", analysis.pivot_threshold);
  archive("delayed", analysis.delayed);
  archive("regrouped", analysis.regrouped);
  archive.Ordering("ordering", analysis.ordering);
  archive("flops", analysis.flops);
  archive("stack_entries", analysis.stack_entries);
  archive("level_pair_entries", analysis.level_pair_entries);
  archive("largest_front", analysis.largest_front);
}

template <class Archive, class T>
requires std::same_as<std::remove_const_t<T>, SparseSummary>
void Fields(Archive& archive, T& sparse) {
  archive.Shared("analysis", sparse.analysis);
  archive("reused", sparse.reused);
  archive("postponements", sparse.postponements);
  archive("flops", sparse.flops);
  archive("numeric", sparse.numeric);
}

template <class Archive, class T>
requires std::same_as<std::remove_const_t<T>, IterationReport>
void Fields(Archive& archive, T& report) {
  archive("warm", report.warm);
  archive("variant", report.variant);
  archive("section_size", report.section_size);
  archive("block_size", report.block_size);
  archive("sections", report.sections);
  archive("total_sweeps", report.total_sweeps);
  archive("total_pivots", report.total_pivots);
  archive("total_bad_elements", report.total_bad_elements);
}

template <class Archive, class T>
requires std::same_as<std::remove_const_t<T>, PreparationStats>
void Fields(Archive& archive, T& stats) {
  archive("condition", stats.condition);
  archive("transposed_condition", stats.transposed_condition);
}

template <class Archive, class T>
requires std::same_as<std::remove_const_t<T>, FactorSummary>
void Fields(Archive& archive, T& summary) {
  archive("algorithm", summary.algorithm);
  archive("n", summary.n);
  archive("factor_dtype", summary.factor_dtype);
  archive("matrix_dtype", summary.matrix_dtype);
  archive("precision", summary.precision);
  archive("precision_fallback", summary.precision_fallback);
  archive("unit_diagonal", summary.unit_diagonal);
  archive("info", summary.info);
  archive("pivots", summary.pivots);
  archive("pivot_replaced", summary.pivot_replaced);
  archive("singular", summary.singular);
  archive("empty_index", summary.empty_index);
  archive("pivot_growth", summary.pivot_growth);
  archive("quality", summary.quality);
  archive("condition_signal", summary.condition_signal);
  archive("norm_one", summary.norm_one);
  archive("norm_inf", summary.norm_inf);
  archive("matrix_nonzeros", summary.matrix_nonzeros);
  archive("row_scaled", summary.row_scaled);
  archive("col_scaled", summary.col_scaled);
  archive("rcond", summary.rcond);
  archive("rcond_scaled", summary.rcond_scaled);
  archive("det_sign", summary.det_sign);
  archive("det_sign_imaginary", summary.det_sign_imaginary);
  archive("det_log_abs", summary.det_log_abs);
  archive("iterations", summary.iterations);
  archive("preparation", summary.preparation);
  archive("batch", summary.batch);
  archive("sparse", summary.sparse);
}

template <class Archive, class T>
requires std::same_as<std::remove_const_t<T>, CallTimings>
void Fields(Archive& archive, T& timings) {
  archive("receive", timings.receive);
  archive("queue", timings.queue);
  archive("analyze", timings.analyze);
  archive("host_to_device", timings.host_to_device);
  archive("factor", timings.factor);
  archive("solve", timings.solve);
  archive("refine", timings.refine);
  archive("device_to_host", timings.device_to_host);
  archive("send", timings.send);
  archive("total", timings.total);
}

class Writer {
 public:
  template <class T>
  void operator()(const char* key, const T& value) {
    object_[key] = ToJson(value);
  }
  void Ordering(const char* key, std::string_view ordering) { object_[key] = ordering; }
  void Shared(const char* key, const std::shared_ptr<const Analysis>& analysis) {
    object_[key] = ToJson(*analysis);
  }

  template <class T>
  static Json ToJson(const T& value) {
    if constexpr (std::is_enum_v<T>) {
      return kNamesOf<T>[static_cast<size_t>(value)];
    } else if constexpr (std::is_floating_point_v<T>) {
      return NumberToJson(value);
    } else if constexpr (HasFields<Writer, const T>) {
      Writer writer;
      Fields(writer, value);
      return std::move(writer.object_);
    } else {
      return value;
    }
  }
  template <class T>
  static Json ToJson(const std::optional<T>& value) {
    return value ? ToJson(*value) : Json();
  }

 private:
  Json object_ = Json::object();
};

class Reader {
 public:
  explicit Reader(const Json& object) : object_(object), next_(object.begin()) {}

  // Becomes false at the first member that is missing or has no possible value.
  bool ok() const { return ok_; }

  template <class T>
  void operator()(const char* key, T& value) {
    ok_ = ok_ && Read(Member(key), value);
  }
  void Ordering(const char* key, std::string_view& ordering) {
    std::string name;
    (*this)(key, name);
    const auto index = IndexIn(kOrderings, name);
    ok_ = ok_ && index;
    if (ok_) ordering = kOrderings[*index];
  }
  void Shared(const char* key, std::shared_ptr<const Analysis>& analysis) {
    auto read = std::make_shared<Analysis>();
    (*this)(key, *read);
    analysis = std::move(read);
  }

  template <class T>
  static bool Read(const Json& json, T& value) {
    if constexpr (std::is_enum_v<T>) {
      const auto index = json.is_string() ? IndexIn(kNamesOf<T>, json.get_ref<const std::string&>())
                                          : std::nullopt;
      if (index) value = static_cast<T>(*index);
      return index.has_value();
    } else if constexpr (std::same_as<T, bool>) {
      if (json.is_boolean()) value = json.get<bool>();
      return json.is_boolean();
    } else if constexpr (std::same_as<T, std::string>) {
      if (json.is_string()) value = json.get<std::string>();
      return json.is_string();
    } else if constexpr (std::is_floating_point_v<T>) {
      const std::optional<double> number = NumberOf(json);
      if (number) value = *number;
      return number.has_value();
    } else if constexpr (std::is_integral_v<T>) {
      if (!json.is_number_integer()) return false;
      // nlohmann::json stores numbers from 0 on as unsigned.
      if (json.is_number_unsigned()) {
        const auto number = json.get<uint64_t>();
        value = static_cast<T>(number);
        return std::in_range<T>(number);
      }
      const auto number = json.get<int64_t>();
      value = static_cast<T>(number);
      return std::in_range<T>(number);
    } else {
      if (!json.is_object()) return false;
      Reader reader(json);
      Fields(reader, value);
      return reader.ok();
    }
  }
  template <class T>
  static bool Read(const Json& json, std::optional<T>& value) {
    if (json.is_null()) return true;
    return Read(json, value.emplace());
  }

 private:
  const Json& Member(const char* key) {
    static const Json kAbsent = Json::value_t::discarded;
    if (next_ == object_.end() || next_.key() != key) next_ = object_.find(key);
    return next_ == object_.end() ? kAbsent : *next_++;
  }

  const Json& object_;
  Json::const_iterator next_;  // the members are usually in the order of Fields()
  bool ok_ = true;
};

absl::Status NoValid(absl::string_view key) {
  return absl::DataLossError(
      absl::StrCat("the header of the stored factor has no valid \"", key, "\""));
}

// Reads texts by their keys. Keeps the first error.
class TextReader {
 public:
  explicit TextReader(const RecordTexts& texts) : texts_(texts) {}

  const absl::Status& status() const { return status_; }

  void Read(const char* key, std::string& value) {
    if (const std::string* const text = Find(key)) value = *text;
  }
  void Read(const char* key, absl::Time& time) {
    const std::string* const text = Find(key);
    if (text != nullptr && !absl::ParseTime(absl::RFC3339_full, *text, &time, nullptr)) Fail(key);
  }
  void Read(const char* key, absl::Duration& duration) {
    const std::string* const text = Find(key);
    if (text == nullptr) return;
    if (!absl::ParseDuration(*text, &duration) || duration < absl::ZeroDuration()) Fail(key);
  }
  // Reads a text in JSON.
  template <class T>
  void ReadJson(const char* key, T& value) {
    const std::string* const text = Find(key);
    if (text == nullptr) return;
    const Json json = Json::parse(*text, /*cb=*/nullptr, /*allow_exceptions=*/false);
    if (!Reader::Read(json, value)) Fail(key);
  }
  void Fail(absl::string_view key) { status_.Update(NoValid(key)); }

 private:
  const std::string* Find(const char* key) {
    const auto found = texts_.find(key);
    if (found != texts_.end()) return &found->second;
    Fail(key);
    return nullptr;
  }

  const RecordTexts& texts_;
  absl::Status status_;
};

}  // namespace

RecordTexts EncodeRecord(const FactorRecord& record) {
  const auto json = [](const auto& value) {
    return Writer::ToJson(value).dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  const auto time = [](absl::Time time) {
    return absl::FormatTime(absl::RFC3339_full, time, absl::UTCTimeZone());
  };
  return {{kFormatKey, kFormatVersion},
          {"handle", record.handle.ToString()},
          {"version", absl::StrCat(record.version)},
          {"tenant", record.tenant},
          {"name", record.name},
          {"request_id", record.request_id},
          {"lease", absl::FormatDuration(record.lease)},
          {"create_time", time(record.create_time)},
          {"life_end", time(record.life_end)},
          {"durable", json(record.durable)},
          {"device_kind", json(record.device_kind)},
          {"device", record.device},
          {"summary", json(record.summary)},
          {"nnz", json(record.nnz)},
          {"timings", json(record.timings)}};
}

absl::StatusOr<FactorRecord> DecodeRecord(const RecordTexts& texts) {
  TextReader reader(texts);
  std::string format;
  reader.Read(kFormatKey, format);
  CROUT_RETURN_IF_ERROR(reader.status());
  if (format != kFormatVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("the stored factor has another format than ", kFormatVersion,
                     ". Read it with the version of Crout that wrote it"));
  }
  FactorRecord record;
  std::string handle;
  reader.Read("handle", handle);
  if (const auto parsed = Handle::Parse(handle)) {
    record.handle = *parsed;
  } else {
    reader.Fail("handle");
  }
  reader.ReadJson("version", record.version);
  if (record.version < 1) reader.Fail("version");
  reader.Read("tenant", record.tenant);
  if (record.tenant.empty()) reader.Fail("tenant");
  reader.Read("name", record.name);
  reader.Read("request_id", record.request_id);
  reader.Read("lease", record.lease);
  reader.Read("create_time", record.create_time);
  reader.Read("life_end", record.life_end);
  reader.ReadJson("durable", record.durable);
  reader.ReadJson("device_kind", record.device_kind);
  reader.Read("device", record.device);
  reader.ReadJson("summary", record.summary);
  reader.ReadJson("nnz", record.nnz);
  reader.ReadJson("timings", record.timings);
  CROUT_RETURN_IF_ERROR(reader.status());
  const FactorSummary& summary = record.summary;
  if (summary.n < 0 || (summary.sparse && summary.batch) ||
      (summary.sparse && summary.sparse->analysis->n != summary.n)) {
    return NoValid("summary");
  }
  return record;
}

}  // namespace crout
