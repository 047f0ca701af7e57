# Proves the layouts against the kernel's mlx5_ifc.h: layout_check.py measures both sides at build time.
set(layout_check ${CMAKE_CURRENT_BINARY_DIR}/layout_check.cc ${CMAKE_CURRENT_BINARY_DIR}/layout_check_kernel.c)
file(GLOB prm_headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/prm/*.h)
file(GLOB kernel_headers CONFIGURE_DEPENDS /usr/src/linux-headers-*-common/include/linux/mlx5/mlx5_ifc.h)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_custom_command(
  OUTPUT ${layout_check}
  COMMAND ${Python3_EXECUTABLE} ${folder}/layout_check.py ${CMAKE_SOURCE_DIR}/src/prm ${folder}/layout_exceptions.txt
          ${layout_check}
  DEPENDS ${folder}/layout_check.py ${folder}/layout_exceptions.txt ${prm_headers} ${kernel_headers}
  COMMENT "Measuring the layouts against mlx5_ifc.h")
# Constants against constants: nothing a sanitizer could see, and slow to compile.
if(NOT VERBENA_SANITIZE)
  target_sources(test_${layer} PRIVATE ${layout_check})
endif()

# What the layouts refuse to compile, and with which words.
function(prm_rejects case message)
  add_test(NAME prm_rejects_${case}
           COMMAND ${CMAKE_CXX_COMPILER} -std=gnu++23 -fsyntax-only -I${CMAKE_SOURCE_DIR}/src -DCASE_${case}
                   ${folder}/rejected.cxx)
  set_tests_properties(prm_rejects_${case} PROPERTIES PASS_REGULAR_EXPRESSION "${message}" TIMEOUT 60)
endfunction()
prm_rejects(field_outside "MemberOf")
prm_rejects(field_of_another "MemberOf")
prm_rejects(odd_dword "a field names the byte offset of its dword")
prm_rejects(bits_reversed "bits run from high to low inside one dword")
prm_rejects(odd_size "layouts are whole dwords")
prm_rejects(wrong_type "cannot convert")
add_test(NAME prm_accepts_the_rest
         COMMAND ${CMAKE_CXX_COMPILER} -std=gnu++23 -fsyntax-only -I${CMAKE_SOURCE_DIR}/src ${folder}/rejected.cxx)
