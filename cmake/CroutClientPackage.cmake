# SPDX-License-Identifier: Apache-2.0
# The client libraries in the install tree: find_package(crout 0.1) and pkg-config crout.
include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/crout")

# crout::client and crout::proto, static. No public header includes generated headers.
set_target_properties(crout_client PROPERTIES EXPORT_NAME client)
set_target_properties(crout_proto PROPERTIES EXPORT_NAME proto)
install(TARGETS crout_client crout_proto EXPORT crout-client-targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT client
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT crout-client-targets NAMESPACE crout:: DESTINATION "${package_dir}"
  COMPONENT client)
install(DIRECTORY client/cpp/crout client/c/crout DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  COMPONENT client)

# crout::c, libcrout. In the bundle it finds gRPC where the programs do.
set_target_properties(crout_c PROPERTIES INSTALL_RPATH "$ORIGIN/crout")
target_link_options(crout_c PRIVATE -Wl,--disable-new-dtags)
set_property(GLOBAL APPEND PROPERTY CROUT_BUNDLED_PROGRAMS "$<TARGET_FILE:crout_c>")
install(TARGETS crout_c EXPORT crout-c-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT client
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT crout-c-targets NAMESPACE crout:: DESTINATION "${package_dir}" COMPONENT client)
string(REGEX REPLACE "[^/]+" ".." up "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
configure_file(client/c/crout.pc.in crout.pc @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/crout.pc" DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
  COMPONENT client)

configure_package_config_file(cmake/crout-config.cmake.in crout-config.cmake
  INSTALL_DESTINATION "${package_dir}" PATH_VARS CMAKE_INSTALL_DATADIR CMAKE_INSTALL_LIBDIR)
# Before 1.0 a minor version may break its users.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/crout-config-version.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/crout-config.cmake"
  "${PROJECT_BINARY_DIR}/crout-config-version.cmake" DESTINATION "${package_dir}" COMPONENT client)

install(FILES client/fortran/crout.f90 DESTINATION ${CMAKE_INSTALL_DATADIR}/crout/fortran
  COMPONENT client)
install(DIRECTORY client/petsc DESTINATION ${CMAKE_INSTALL_DATADIR}/crout COMPONENT client
  FILES_MATCHING PATTERN "*.c" PATTERN "*.h")
install(DIRECTORY client/examples DESTINATION ${CMAKE_INSTALL_DATADIR}/crout COMPONENT client)
install(DIRECTORY proto/ DESTINATION ${CMAKE_INSTALL_DATADIR}/crout/proto
  COMPONENT client FILES_MATCHING PATTERN "*.proto")
