# In place of NVIDIA's management library.
add_library(crout_fake_nvml MODULE fake_nvml.cc)
target_link_libraries(crout_fake_nvml PRIVATE crout_flags Threads::Threads)
target_include_directories(crout_fake_nvml PRIVATE "${PROJECT_SOURCE_DIR}")

crout_test(gpu_monitor_test LABELS unit SOURCES gpu_monitor_test.cc
  DEPS crout::gpu crout::metrics crout::test_support ${CMAKE_DL_LIBS})
target_compile_definitions(gpu_monitor_test PRIVATE
  CROUT_FAKE_NVML="$<TARGET_FILE:crout_fake_nvml>")
add_dependencies(gpu_monitor_test crout_fake_nvml)
