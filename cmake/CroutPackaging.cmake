# SPDX-License-Identifier: Apache-2.0
# The install tree and the bundle that CPack makes of it: relocatable, with every shared library it
# needs in lib/crout but for those of the C and C++ runtimes and of CUDA. It needs the glibc of the
# machine that built it, or a newer one. libcrout_cuda.so in lib/crout holds the CUDA device and
# alone needs the CUDA libraries: it finds them through LD_LIBRARY_PATH or in CROUT_CUDA_RPATH; where
# they are absent, the daemon serves from the host.
#
#   bin/                   croutd, croutctl, crout-bench
#   lib/crout/             shared libraries for these and libcrout alone
#   lib/, include/crout/   the client libraries (CroutClientPackage.cmake)
#   share/crout/           the wire contract, the Fortran module, PETSc's solver type, examples, croutd.toml, croutd.service
#   share/crout/python/    the Python client's source: pip install share/crout/python
#   share/crout/deploy/    what Prometheus, Alertmanager, Grafana, Kubernetes and proxies read; make-certificates.sh
#   share/doc/crout/       docs/operations.md and docs/operations; licenses/ of the shared libraries
#   libexec/crout/         crout-order and crout-rank, which croutd starts; tests and benchmarks, with
#                          CROUT_PACKAGE_TESTS

set(CROUT_CUDA_RPATH "/usr/local/cuda/lib64" CACHE STRING
  "Where libcrout_cuda.so looks for the CUDA libraries, after LD_LIBRARY_PATH; a list")

# crout_install_programs(DESTINATION dir COMPONENT name TARGETS ... [RPATH ...])
# RPATH: directories of libraries that the bundle does not contain.
function(crout_install_programs)
  cmake_parse_arguments(arg "" "DESTINATION;COMPONENT" "TARGETS;RPATH" ${ARGN})
  string(REGEX REPLACE "[^/]+" ".." up "${arg_DESTINATION}")
  foreach(target ${arg_TARGETS})
    set_target_properties(${target} PROPERTIES
      INSTALL_RPATH "$ORIGIN/${up}/${CMAKE_INSTALL_LIBDIR}/crout;${arg_RPATH}")
    # RPATH rather than RUNPATH: it also serves what the libraries in lib/crout need themselves.
    target_link_options(${target} PRIVATE -Wl,--disable-new-dtags)
    set_property(GLOBAL APPEND PROPERTY CROUT_BUNDLED_PROGRAMS "$<TARGET_FILE:${target}>")
  endforeach()
  install(TARGETS ${arg_TARGETS} RUNTIME DESTINATION "${arg_DESTINATION}"
    COMPONENT ${arg_COMPONENT})
endfunction()

if(TARGET crout_cuda_plugin)
  set_target_properties(crout_cuda_plugin PROPERTIES INSTALL_RPATH "$ORIGIN;${CROUT_CUDA_RPATH}")
  # RUNPATH, because RPATH precedes LD_LIBRARY_PATH, and NVIDIA's libraries find each other by RUNPATH: libcublas.so
  # of CROUT_CUDA_RPATH would load libcublasLt.so of another version from LD_LIBRARY_PATH.
  target_link_options(crout_cuda_plugin PRIVATE -Wl,--enable-new-dtags)
  set_property(GLOBAL APPEND PROPERTY CROUT_BUNDLED_PROGRAMS "$<TARGET_FILE:crout_cuda_plugin>")
  install(TARGETS crout_cuda_plugin LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/crout
    COMPONENT runtime)
endif()

foreach(program croutd croutctl crout-bench)
  if(TARGET ${program})
    crout_install_programs(DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime TARGETS ${program})
  endif()
endforeach()

crout_install_programs(DESTINATION libexec/crout COMPONENT runtime TARGETS crout-order)

if(CROUT_PACKAGE_TESTS)
  get_property(tests GLOBAL PROPERTY CROUT_PACKAGED_TESTS)
  if(tests)
    crout_install_programs(DESTINATION libexec/crout COMPONENT tests TARGETS ${tests}
      RPATH ${CROUT_CUDA_RPATH})
  endif()
  if(CROUT_HAVE_CUDA)
    foreach(script run_suite.sh run_benches.sh run_studies.sh sanitize.sh operator_check.sh record_metrics.py)
      install(PROGRAMS tests/gpu/scripts/${script} DESTINATION libexec/crout COMPONENT tests)
    endforeach()
    install(FILES tests/gpu/scripts/find_program.sh DESTINATION libexec/crout COMPONENT tests)
  endif()
endif()

install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/crout COMPONENT runtime)
install(FILES deploy/croutd.toml deploy/croutd.service
  DESTINATION ${CMAKE_INSTALL_DATADIR}/crout COMPONENT runtime)
install(DIRECTORY deploy/prometheus deploy/alertmanager deploy/grafana deploy/kubernetes deploy/proxies
  DESTINATION ${CMAKE_INSTALL_DATADIR}/crout/deploy COMPONENT runtime
  PATTERN tests EXCLUDE)
install(PROGRAMS deploy/tls/make-certificates.sh
  DESTINATION ${CMAKE_INSTALL_DATADIR}/crout/deploy/tls COMPONENT runtime)
install(FILES docs/operations.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/crout COMPONENT runtime)
install(DIRECTORY docs/operations DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/crout COMPONENT runtime)
include(CroutClientPackage)
install(FILES LICENSE client/python/README.md client/python/pyproject.toml client/python/setup.py
  DESTINATION ${CMAKE_INSTALL_DATADIR}/crout/python COMPONENT client)
install(DIRECTORY client/python/src client/python/examples
  DESTINATION ${CMAKE_INSTALL_DATADIR}/crout/python COMPONENT client
  FILES_MATCHING PATTERN "*.py" PATTERN "*.ipynb" PATTERN py.typed PATTERN src/crout/v1 EXCLUDE
  PATTERN "*.egg-info" EXCLUDE PATTERN __pycache__ EXCLUDE)

get_property(programs GLOBAL PROPERTY CROUT_BUNDLED_PROGRAMS)
if(programs)
  install(CODE "
    set(crout_programs \"${programs}\")
    set(crout_library_dir \"${CMAKE_INSTALL_LIBDIR}/crout\")
    set(crout_license_dir \"${CMAKE_INSTALL_DATADIR}/doc/crout/licenses\")
    include(\"${PROJECT_SOURCE_DIR}/cmake/CroutBundleLibraries.cmake\")"
    COMPONENT runtime)
endif()

string(TOLOWER "${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}" platform)
set(CPACK_GENERATOR TGZ)
set(CPACK_PACKAGE_NAME crout)
set(CPACK_PACKAGE_FILE_NAME "crout-${PROJECT_VERSION}-${platform}")
set(CPACK_STRIP_FILES ON)
set(CPACK_THREADS 0)
include(CPack)
