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

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_SANITIZERS_H_
