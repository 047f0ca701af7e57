# The provider's objects without the versioned exports, so that tests reach its internals.
target_link_libraries(test_mlx5 PRIVATE mlx5_core ibverbs verbena_prm verbena_support)
set_source_files_properties(${folder}/abi_ours.cc TARGET_DIRECTORY test_mlx5
  PROPERTIES INCLUDE_DIRECTORIES ${CMAKE_SOURCE_DIR}/include)
foreach(source wqe_test.cc poll_test.cc size_test.cc)
  set_source_files_properties(${folder}/${source} TARGET_DIRECTORY test_mlx5
    PROPERTIES INCLUDE_DIRECTORIES ${CMAKE_SOURCE_DIR}/include)
endforeach()
target_compile_definitions(test_mlx5 PRIVATE
  VERBENA_LIBMLX5="$<TARGET_FILE:mlx5>" VERBENA_DISTRO_LIBMLX5="/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/libmlx5.so.1")
add_dependencies(test_mlx5 mlx5)
