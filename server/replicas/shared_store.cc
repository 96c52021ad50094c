// SPDX-License-Identifier: Apache-2.0

#include "server/replicas/shared_store.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "kernels/util/failpoint.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

constexpr absl::string_view kSuffix = ".safetensors";
constexpr absl::string_view kDamaged = ".damaged";
constexpr absl::string_view kUntil = ".until-";
constexpr absl::string_view kAdopted = "adopted-";
// Longest list of names that is read: more than 500,000 names.
constexpr size_t kMaxNamesBytes = size_t{64} << 20;
// The least rate of a transfer that is not ended, and the time for any other request.
constexpr size_t kMinBytesPerSecond = size_t{4} << 20;
constexpr std::chrono::seconds kRequestLimit{60};

S3CallLimits LimitsFor(uint64_t bytes) {
  return {.duration = kRequestLimit + std::chrono::seconds(bytes / kMinBytesPerSecond)};
}

size_t SizeOfBytes(ObjectBytes bytes) {
  size_t sum = 0;
  for (const std::span<const std::byte> piece : bytes) sum += piece.size();
  return sum;
}

// Converts an error of S3Objects to one of ObjectStore.
absl::Status StoreStatus(const absl::Status& status) {
  if (status.ok() || absl::IsResourceExhausted(status) || absl::IsUnavailable(status)) {
    return status;
  }
  return absl::UnavailableError(status.message());
}

// Splits "TEXT-NUMBER". Returns false if `name` has another form.
bool SplitNumber(absl::string_view name, absl::string_view* text, int64_t* number) {
  const size_t hyphen = name.rfind('-');
  if (hyphen == absl::string_view::npos || hyphen == 0) return false;
  *text = name.substr(0, hyphen);
  return absl::SimpleAtoi(name.substr(hyphen + 1), number) && *number >= 0;
}

}  // namespace

// The entries of a folder.
struct SharedStore::Contents {
  struct Object {
    StoredObject stored;
    int64_t epoch = 0;
    bool damaged = false;
  };
  std::map<std::string, Object> objects;          // by their names
  std::map<std::string, std::string> lease_ends;  // names of the objects that hold them
  std::map<int64_t, S3Entry> lists;               // by their epochs; the keys are names
  std::vector<std::string> marks;                 // without an object
  int64_t others = 0;
  size_t other_bytes = 0;
};

class SharedStore::Reader final : public ObjectReader {
 public:
  Reader(SharedStore& store, StoredObject object) : store_(store), object_(std::move(object)) {}

  uint64_t size() const override { return object_.bytes; }
  absl::Status ReadAt(uint64_t offset, std::span<std::byte> to) const override {
    const std::string key = store_.KeyOf(object_.folder, object_.name);
    const absl::Status status =
        store_.objects_->GetRange(key, object_.tag, offset, to, LimitsFor(to.size()));
    const bool gone =
        absl::IsNotFound(status) || absl::IsAborted(status) || absl::IsOutOfRange(status);
    // Another owner may have removed the object.
    if (gone && store_.CheckOwned(object_).ok()) return absl::DataLossError(status.message());
    return StoreStatus(status);
  }

 private:
  SharedStore& store_;
  const StoredObject object_;
};

absl::StatusOr<std::unique_ptr<SharedStore>> SharedStore::Open(std::unique_ptr<S3Objects> objects,
                                                               const LeaseOptions& options) {
  std::unique_ptr<SharedStore> store(new SharedStore(std::move(objects), options));
  CROUT_RETURN_IF_ERROR(store->leases_.Probe());
  store->renewing_.emplace(options.interval(), [leases = &store->leases_] { leases->Renew(); });
  CROUT_RETURN_IF_ERROR(store->leases_.Begin());
  return store;
}

SharedStore::SharedStore(std::unique_ptr<S3Objects> objects, const LeaseOptions& options)
    : objects_(std::move(objects)), prefix_(options.prefix), leases_(*objects_, options) {}

SharedStore::~SharedStore() {
  renewing_.reset();
  leases_.ReleaseAll();
}

std::string SharedStore::KeyOf(const std::string& folder, const std::string& name) const {
  return absl::StrCat(prefix_, "factors/", folder, "/", name);
}

absl::StatusOr<SharedStore::Contents> SharedStore::ListContents(const std::string& folder) {
  Contents contents;
  std::vector<std::pair<std::string, std::string>> marks;  // name of the object, name of the mark
  const std::string prefix = KeyOf(folder, "");
  std::string continuation;
  do {
    CROUT_ASSIGN_OR_RETURN(S3Page page,
                           objects_->List(prefix, continuation, LimitsFor(/*bytes=*/0)));
    for (S3Entry& entry : page.entries) {
      entry.key.erase(0, prefix.size());
      const absl::string_view name = entry.key;
      const size_t suffix = name.rfind(kSuffix);
      absl::string_view text;
      int64_t number = 0;
      if (SplitNumber(name, &text, &number) && absl::StrCat(text, "-") == kAdopted) {
        contents.lists[number] = std::move(entry);
        continue;
      }
      if (suffix == absl::string_view::npos ||
          !SplitNumber(name.substr(0, suffix), &text, &number)) {
        ++contents.others;
        contents.other_bytes += entry.bytes;
        continue;
      }
      const absl::string_view rest = name.substr(suffix + kSuffix.size());
      if (rest.empty()) {
        StoredObject stored{.folder = folder,
                            .stem = std::string(text),
                            .name = entry.key,
                            .charged = Charged(entry.bytes),
                            .bytes = entry.bytes,
                            .tag = std::move(entry.etag)};
        contents.objects[entry.key] = {std::move(stored), number};
      } else {
        marks.emplace_back(name.substr(0, suffix + kSuffix.size()), name);
      }
    }
    continuation = std::move(page.continuation);
  } while (!continuation.empty());
  for (auto& [name, mark] : marks) {
    const auto object = contents.objects.find(name);
    absl::string_view text;
    int64_t seconds = 0;
    if (object == contents.objects.end()) {
      contents.marks.push_back(std::move(mark));
    } else if (absl::EndsWith(mark, kDamaged)) {
      object->second.damaged = true;
    } else if (SplitNumber(mark, &text, &seconds)) {
      absl::Time& end = object->second.stored.lease_end;
      end = std::max(end, absl::FromUnixSeconds(seconds));
      if (auto& last = contents.lease_ends[name]; last.empty()) {
        last = std::move(mark);
      } else {
        contents.marks.push_back(std::exchange(last, std::max(last, mark)));
      }
    }
  }
  return contents;
}

absl::StatusOr<std::set<std::string>> SharedStore::ReadNames(const std::string& folder,
                                                             const S3Entry& list) {
  if (list.bytes > kMaxNamesBytes) {
    return absl::DataLossError(absl::StrCat("a list of stored factors has ", list.bytes,
                                            " bytes; the limit is ", kMaxNamesBytes,
                                            ". Remove the object ", list.key));
  }
  std::string text(list.bytes, '\0');
  CROUT_RETURN_IF_ERROR(objects_
                            ->Get(KeyOf(folder, list.key), std::as_writable_bytes(std::span(text)),
                                  LimitsFor(list.bytes))
                            .status());
  return absl::StrSplit(text, '\n', absl::SkipEmpty());
}

absl::Status SharedStore::RemoveName(const std::string& folder, const std::string& name) {
  return objects_->Remove(KeyOf(folder, name), LimitsFor(/*bytes=*/0));
}

absl::Status SharedStore::CheckOwned(const StoredObject& object) const {
  CROUT_ASSIGN_OR_RETURN(const int64_t epoch, leases_.Epoch(object.folder));
  if (epoch == object.owned_in) return absl::OkStatus();
  return absl::AbortedError("another server has owned the folder of the factor since");
}

absl::Status SharedStore::Fence(const std::string& folder, int64_t epoch, Contents& contents) {
  std::vector<std::string> removed = std::move(contents.marks);
  if (!contents.lists.empty()) {
    const auto& [listed_in, list] = *contents.lists.rbegin();
    CROUT_ASSIGN_OR_RETURN(const std::set<std::string> names, ReadNames(folder, list));
    for (auto next = contents.objects.begin(); next != contents.objects.end();) {
      const auto& [name, object] = *next;
      if (object.epoch >= listed_in || names.contains(name)) {
        ++next;
        continue;
      }
      removed.push_back(name);
      if (const auto end = contents.lease_ends.extract(name)) removed.push_back(end.mapped());
      next = contents.objects.erase(next);
    }
  }
  if (epoch > 1) {
    const std::string text = absl::StrJoin(
        contents.objects, "\n",
        [](std::string* out, const auto& object) { absl::StrAppend(out, object.first); });
    std::span<const std::byte> bytes = std::as_bytes(std::span(text));
    CROUT_RETURN_IF_ERROR(objects_
                              ->Put(KeyOf(folder, absl::StrCat(kAdopted, epoch)), {&bytes, 1}, {},
                                    LimitsFor(bytes.size()))
                              .status());
    for (const auto& [listed_in, list] : contents.lists) {
      if (listed_in != epoch) removed.push_back(list.key);
    }
  }
  // Only the owner removes objects, and only while no other daemon can be the owner.
  CROUT_RETURN_IF_ERROR(leases_.Epoch(folder).status());
  // The next owner removes what remains after an error.
  for (const std::string& name : removed) RemoveName(folder, name).IgnoreError();
  return absl::OkStatus();
}

absl::StatusOr<ObjectList> SharedStore::List(const std::string& folder) {
  CROUT_ASSIGN_OR_RETURN(const int64_t epoch, leases_.Epoch(folder));
  absl::StatusOr<Contents> listed = ListContents(folder);
  if (!listed.ok()) return StoreStatus(listed.status());
  Contents& contents = *listed;
  CROUT_RETURN_IF_ERROR(StoreStatus(Fence(folder, epoch, contents)));
  ObjectList list{.objects = {}, .others = contents.others, .other_bytes = contents.other_bytes};
  for (auto& [name, object] : contents.objects) {
    object.stored.owned_in = epoch;
    if (object.damaged) {
      ++list.quarantined;
      list.quarantined_bytes += object.stored.charged;
    } else {
      list.objects.push_back(std::move(object.stored));
    }
  }
  MutexLock lock(&mutex_);
  for (auto& [name, end] : contents.lease_ends) lease_ends_[KeyOf(folder, name)] = std::move(end);
  return list;
}

absl::StatusOr<StoredObject> SharedStore::Put(const std::string& folder, const std::string& stem,
                                              ObjectBytes bytes, absl::Time /*lease_end*/) {
  // List() needs no first end of a lease: each owner starts the leases again.
  CROUT_ASSIGN_OR_RETURN(const int64_t epoch, leases_.Epoch(folder));
  StoredObject object{.folder = folder,
                      .stem = stem,
                      .name = absl::StrCat(stem, "-", epoch, kSuffix),
                      .bytes = SizeOfBytes(bytes),
                      .owned_in = epoch};
  object.charged = Charged(object.bytes);
  CROUT_RETURN_IF_ERROR(Failpoint("replicas.put"));
  // The stem is new and only this process writes in this epoch, so that the put may be repeated.
  absl::StatusOr<std::string> tag =
      objects_->Put(KeyOf(folder, object.name), bytes, {}, LimitsFor(object.bytes));
  CROUT_RETURN_IF_ERROR(Failpoint("replicas.put_done"));
  const absl::StatusOr<int64_t> now = leases_.Epoch(folder);
  if (tag.ok() && now.ok() && *now == epoch) {
    object.tag = *std::move(tag);
    return object;
  }
  if (now.ok() && *now == epoch) RemoveName(folder, object.name).IgnoreError();
  return StoreStatus(tag.ok() ? now.status() : tag.status());
}

absl::StatusOr<std::unique_ptr<ObjectReader>> SharedStore::Open(const StoredObject& object) {
  return std::make_unique<Reader>(*this, object);
}

absl::Status SharedStore::Remove(const StoredObject& object) {
  CROUT_RETURN_IF_ERROR(CheckOwned(object));
  CROUT_RETURN_IF_ERROR(StoreStatus(RemoveName(object.folder, object.name)));
  std::string end;
  {
    MutexLock lock(&mutex_);
    if (auto found = lease_ends_.extract(KeyOf(object.folder, object.name))) {
      end = std::move(found.mapped());
    }
  }
  if (!end.empty()) RemoveName(object.folder, end).IgnoreError();
  return absl::OkStatus();
}

absl::StatusOr<bool> SharedStore::CloseIfEmpty(const std::string& folder) {
  if (folder == home()) return false;
  CROUT_ASSIGN_OR_RETURN(const ObjectList list, List(folder));
  if (!list.objects.empty() || list.quarantined > 0 || list.others > 0) return false;
  // The write has a condition, so that it has no effect if another daemon has adopted the folder.
  // Removing the lease at once would need a condition too, which object stores lack.
  CROUT_RETURN_IF_ERROR(leases_.Close(folder));
  return true;
}

void SharedStore::RemoveClosed() {
  for (const std::string& folder : leases_.LongClosed()) {
    const absl::StatusOr<Contents> contents = ListContents(folder);
    if (!contents.ok()) continue;
    std::vector<std::string> names = contents->marks;
    for (const auto& [name, object] : contents->objects) names.push_back(name);
    for (const auto& [name, end] : contents->lease_ends) names.push_back(end);
    for (const auto& [epoch, list] : contents->lists) names.push_back(list.key);
    // The next call tries again after an error. It removes the lease, which must be last.
    for (const std::string& name : names) RemoveName(folder, name).IgnoreError();
    if (names.empty()) leases_.RemoveClosed(folder).IgnoreError();
  }
}

absl::Status SharedStore::Quarantine(const StoredObject& object) {
  CROUT_RETURN_IF_ERROR(CheckOwned(object));
  const std::string key = KeyOf(object.folder, absl::StrCat(object.name, kDamaged));
  return StoreStatus(objects_->Put(key, {}, {}, LimitsFor(/*bytes=*/0)).status());
}

absl::Status SharedStore::SetLeaseEnd(const StoredObject& object, absl::Time end) {
  CROUT_RETURN_IF_ERROR(CheckOwned(object));
  std::string name =
      absl::StrCat(object.name, kUntil, std::max<int64_t>(0, absl::ToUnixSeconds(end)));
  CROUT_RETURN_IF_ERROR(StoreStatus(
      objects_->Put(KeyOf(object.folder, name), {}, {}, LimitsFor(/*bytes=*/0)).status()));
  const std::string key = KeyOf(object.folder, object.name);
  {
    MutexLock lock(&mutex_);
    std::string& last = lease_ends_[key];
    if (last == name) return absl::OkStatus();
    std::swap(last, name);
  }
  if (!name.empty()) RemoveName(object.folder, name).IgnoreError();
  return absl::OkStatus();
}

}  // namespace crout
