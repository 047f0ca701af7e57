# The stub as a library under the name that the preload library looks for, and the two side by side in one folder.
add_library(preload_stub_nic SHARED ${CMAKE_CURRENT_SOURCE_DIR}/unit/preload/stub_nic.cc)
target_include_directories(preload_stub_nic PRIVATE ${CMAKE_SOURCE_DIR})
target_link_libraries(preload_stub_nic PRIVATE verbena_uverbs)
set_target_properties(preload_stub_nic PROPERTIES OUTPUT_NAME verbena-nic
                      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/preload_stub)
add_custom_command(TARGET preload_stub_nic POST_BUILD
                   COMMAND ${CMAKE_COMMAND} -E create_symlink $<TARGET_FILE:verbena-preload>
                           ${CMAKE_BINARY_DIR}/lib/preload_stub/libverbena-preload.so)
add_dependencies(preload_stub_nic verbena-preload)
add_dependencies(test_preload preload_stub_nic)
target_compile_definitions(test_preload PRIVATE
                           VERBENA_PRELOAD_STUB="${CMAKE_BINARY_DIR}/lib/preload_stub/libverbena-preload.so")
if(VERBENA_SANITIZER_RUNTIME)
  target_compile_definitions(test_preload PRIVATE VERBENA_SANITIZER_RUNTIME="${VERBENA_SANITIZER_RUNTIME}:")
endif()
