// SPDX-License-Identifier: Apache-2.0

// Converts statuses and exceptions to the codes of crout.h.
#ifndef CROUT_CLIENT_C_ERROR_H_
#define CROUT_CLIENT_C_ERROR_H_

#include <cstdint>
#include <exception>
#include <new>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "crout/crout.h"

namespace crout::c {

// Records the calling thread's last error and returns `code`. Long texts are truncated.
crout_code Fail(crout_code code, absl::string_view text) noexcept;
// Records a failed status like Fail and returns its code. OK is CROUT_OK and leaves the last error
// unchanged.
crout_code ToCode(const absl::Status& status) noexcept;
// Returns LAPACK's -position (1-based) and records CROUT_INVALID_ARGUMENT as the last error.
int64_t IllegalArgument(int position, absl::string_view text) noexcept;

// Returns the result of `body`, or the code of its exception: exceptions must not reach C callers.
template <class Body>
auto Guarded(Body body) noexcept -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Fail(CROUT_OUT_OF_MEMORY, "out of memory in this process");
  } catch (const std::exception& error) {
    return Fail(CROUT_INTERNAL, error.what());
  } catch (...) {
    return Fail(CROUT_INTERNAL, "an exception of unknown type");
  }
}

}  // namespace crout::c

#endif  // CROUT_CLIENT_C_ERROR_H_
