# CROUT_VERSION and CROUT_COMMIT, as compile definitions of crout_version.
execute_process(COMMAND git -C "${PROJECT_SOURCE_DIR}" rev-parse --short=12 HEAD
  OUTPUT_VARIABLE CROUT_COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT CROUT_COMMIT)
  set(CROUT_COMMIT "unknown")
endif()
add_library(crout_version INTERFACE)
target_compile_definitions(crout_version INTERFACE
  CROUT_VERSION="${PROJECT_VERSION}" CROUT_COMMIT="${CROUT_COMMIT}")
