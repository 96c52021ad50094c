// SPDX-License-Identifier: Apache-2.0

#include "client/cpp/convert.h"

#include <google/protobuf/descriptor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "client/cpp/fields.h"

namespace crout {
inline namespace api {
namespace internal {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// A field of a message. The lists of client/cpp/fields.h name only fields of the contract; a test
// checks this.
struct Place {
  Place(const Message& message, const char* name)
      : reflection(*message.GetReflection()),
        field(message.GetDescriptor()->FindFieldByName(name)) {}

  const Reflection& reflection;
  const FieldDescriptor* const field;
};

// Fills a message; the visitor of const structs.
class Writer {
 public:
  explicit Writer(Message* message) : message_(message) {}

  template <class T>
  void operator()(const char* name, const T& value) {
    Set(Place(*message_, name), value);
  }
  template <class T>
  void operator()(const char* name, const std::optional<T>& value) {
    if (!value) return;
    Set(Place(*message_, name), *value);
  }
  void operator()(const char* name, const std::vector<int32_t>& values) {
    const Place at(*message_, name);
    for (const int32_t value : values) at.reflection.AddInt32(message_, at.field, value);
  }
  template <class T>
  void Or(const char* name, const T& value, const T& unset) {
    if (value != unset) (*this)(name, value);
  }

 private:
  template <class T>
  void Set(const Place& at, const T& value) {
    if constexpr (std::is_enum_v<T>) {
      at.reflection.SetEnumValue(message_, at.field, static_cast<int>(value));
    } else if constexpr (std::is_same_v<T, bool>) {
      at.reflection.SetBool(message_, at.field, value);
    } else if constexpr (std::is_same_v<T, int32_t>) {
      at.reflection.SetInt32(message_, at.field, value);
    } else if constexpr (std::is_same_v<T, int64_t>) {
      at.reflection.SetInt64(message_, at.field, value);
    } else if constexpr (std::is_same_v<T, double>) {
      at.reflection.SetDouble(message_, at.field, value);
    } else if constexpr (std::is_same_v<T, std::string>) {
      at.reflection.SetString(message_, at.field, value);
    } else if constexpr (std::is_same_v<T, absl::Duration>) {
      at.reflection.MutableMessage(message_, at.field)->CopyFrom(ToProto(value));
    } else {
      Message* const nested = at.reflection.MutableMessage(message_, at.field);
      Fill(value, nested);
      // Only an optional struct has a meaning without fields.
      if (!at.field->has_optional_keyword() && nested->ByteSizeLong() == 0) {
        at.reflection.ClearField(message_, at.field);
      }
    }
  }

  Message* const message_;
};

// Reads a message; the visitor of structs that are filled.
class Reader {
 public:
  explicit Reader(const Message& message) : message_(message) {}

  template <class T>
  void operator()(const char* name, T& value) {
    Get(Place(message_, name), value);
  }
  template <class T>
  void operator()(const char* name, std::optional<T>& value) {
    const Place at(message_, name);
    if (at.reflection.HasField(message_, at.field)) Get(at, value.emplace());
  }
  template <class T>
  void operator()(const char* name, std::vector<T>& values) {
    const Place at(message_, name);
    const int size = at.reflection.FieldSize(message_, at.field);
    values.reserve(static_cast<size_t>(size));
    for (int i = 0; i < size; ++i) values.push_back(Element<T>(at, i));
  }
  template <class T>
  void Or(const char* name, T& value, const T&) {
    const Place at(message_, name);
    if (at.reflection.HasField(message_, at.field)) Get(at, value);
  }
  // An UNSPECIFIED enumerator has no presence.
  template <class T>
  void Implicit(const char* name, std::optional<T>& value) {
    (*this)(name, value);
  }

 private:
  template <class T>
  void Get(const Place& at, T& value) {
    if constexpr (std::is_enum_v<T>) {
      value = static_cast<T>(at.reflection.GetEnumValue(message_, at.field));
    } else if constexpr (std::is_same_v<T, bool>) {
      value = at.reflection.GetBool(message_, at.field);
    } else if constexpr (std::is_same_v<T, int32_t>) {
      value = at.reflection.GetInt32(message_, at.field);
    } else if constexpr (std::is_same_v<T, int64_t>) {
      value = at.reflection.GetInt64(message_, at.field);
    } else if constexpr (std::is_same_v<T, double>) {
      value = at.reflection.GetDouble(message_, at.field);
    } else if constexpr (std::is_same_v<T, std::string>) {
      value = at.reflection.GetString(message_, at.field);
    } else if constexpr (std::is_same_v<T, absl::Duration>) {
      value = FromProto(static_cast<const google::protobuf::Duration&>(
          at.reflection.GetMessage(message_, at.field)));
    } else if constexpr (std::is_same_v<T, absl::Time>) {
      value = FromProto(static_cast<const google::protobuf::Timestamp&>(
          at.reflection.GetMessage(message_, at.field)));
    } else {
      value = Read<T>(at.reflection.GetMessage(message_, at.field));
    }
  }

  template <class T>
  T Element(const Place& at, int index) {
    if constexpr (std::is_enum_v<T>) {
      return static_cast<T>(at.reflection.GetRepeatedEnumValue(message_, at.field, index));
    } else if constexpr (std::is_same_v<T, int64_t>) {
      return at.reflection.GetRepeatedInt64(message_, at.field, index);
    } else if constexpr (std::is_same_v<T, double>) {
      return at.reflection.GetRepeatedDouble(message_, at.field, index);
    } else {
      return Read<T>(at.reflection.GetRepeatedMessage(message_, at.field, index));
    }
  }

  const Message& message_;
};

}  // namespace

google::protobuf::Duration ToProto(absl::Duration duration) {
  google::protobuf::Duration result;
  result.set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &duration));
  result.set_nanos(static_cast<int32_t>(duration / absl::Nanoseconds(1)));
  return result;
}

google::protobuf::Timestamp ToProto(absl::Time time) {
  google::protobuf::Timestamp result;
  result.set_seconds(absl::ToUnixSeconds(time));
  result.set_nanos(static_cast<int32_t>((time - absl::FromUnixSeconds(result.seconds())) /
                                        absl::Nanoseconds(1)));
  return result;
}

absl::Duration FromProto(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

absl::Time FromProto(const google::protobuf::Timestamp& time) {
  return absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos());
}

template <class T>
void Fill(const T& native, Message* message) {
  Writer writer(message);
  Fields<T>::Visit(native, writer);
}

template <class T>
T Read(const Message& message) {
  T native;
  Reader reader(message);
  Fields<T>::Visit(native, reader);
  return native;
}

template void Fill(const CacheOptions&, Message*);
template void Fill(const EstimateRequest&, Message*);
template void Fill(const FactorAndSolveOptions&, Message*);
template void Fill(const FactorOptions&, Message*);
template void Fill(const RefactorOptions&, Message*);
template void Fill(const RrefOptions&, Message*);
template void Fill(const SchurOptions&, Message*);
template void Fill(const SeriesOptions&, Message*);
template void Fill(const SolveOptions&, Message*);

template ComplementResult Read(const Message&);
template DenseFactors Read(const Message&);
template DenseSpec Read(const Message&);
template EchelonFormResult Read(const Message&);
template Estimate Read(const Message&);
template FactorDescription Read(const Message&);
template IterationPage Read(const Message&);
template JobProgress Read(const Message&);
template SeriesResult Read(const Message&);
template ServerInfo Read(const Message&);
template SolveResult Read(const Message&);

}  // namespace internal
}  // namespace api
}  // namespace crout
