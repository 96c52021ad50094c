// Whether this build is instrumented: tests take smaller problems then.
#ifndef CROUT_TESTS_SUPPORT_SANITIZERS_H_
#define CROUT_TESTS_SUPPORT_SANITIZERS_H_

namespace crout::testing {

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CROUT_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CROUT_SANITIZED 1
#endif

#ifdef CROUT_SANITIZED
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// ThreadSanitizer does not see how OpenBLAS's threads wait for each other.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CROUT_THREAD_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define CROUT_THREAD_SANITIZED 1
#endif
#ifdef CROUT_THREAD_SANITIZED
inline constexpr bool kThreadSanitized = true;
#else
inline constexpr bool kThreadSanitized = false;
#endif

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_SANITIZERS_H_
