// SPDX-License-Identifier: Apache-2.0

// Detects builds with AddressSanitizer or ThreadSanitizer.
#ifndef CROUT_KERNELS_UTIL_SANITIZERS_H_
#define CROUT_KERNELS_UTIL_SANITIZERS_H_

// GCC defines a macro for each sanitizer; Clang provides __has_feature.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CROUT_ADDRESS_SANITIZED 1
#endif
#if __has_feature(thread_sanitizer)
#define CROUT_THREAD_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define CROUT_ADDRESS_SANITIZED 1
#endif
#if defined(__SANITIZE_THREAD__)
#define CROUT_THREAD_SANITIZED 1
#endif

namespace crout {

#ifdef CROUT_THREAD_SANITIZED
inline constexpr bool kThreadSanitized = true;
#else
inline constexpr bool kThreadSanitized = false;
#endif

#ifdef CROUT_ADDRESS_SANITIZED
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = kThreadSanitized;
#endif

}  // namespace crout

#endif  // CROUT_KERNELS_UTIL_SANITIZERS_H_
