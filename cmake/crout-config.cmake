# find_package(crout): the target crout::client.
include(CMakeFindDependencyMacro)
find_dependency(absl)
find_dependency(Protobuf)
find_dependency(gRPC CONFIG)
include("${CMAKE_CURRENT_LIST_DIR}/crout-targets.cmake")
