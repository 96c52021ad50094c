// SPDX-License-Identifier: Apache-2.0

// Encodes HTTP/2 frames (RFC 9113).
#ifndef CROUT_TESTS_E2E_ATTACKS_HTTP2_FRAMES_H_
#define CROUT_TESTS_E2E_ATTACKS_HTTP2_FRAMES_H_

#include <cstdint>
#include <string>

namespace crout::e2e {

// Returns a frame. `stream` is the stream identifier.
inline std::string Frame(char type, char flags, uint32_t stream, const std::string& payload) {
  std::string frame;
  for (const int shift : {16, 8, 0}) frame += static_cast<char>(payload.size() >> shift);
  frame += type;
  frame += flags;
  for (const int shift : {24, 16, 8, 0}) frame += static_cast<char>(stream >> shift);
  return frame + payload;
}

// Returns the connection preface of a client, with empty settings.
inline const std::string& Preface() {
  static const auto* const preface =
      new std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Frame(/*SETTINGS*/ 4, 0, 0, ""));
  return *preface;
}

}  // namespace crout::e2e

#endif  // CROUT_TESTS_E2E_ATTACKS_HTTP2_FRAMES_H_
