# kl_test(NAME FILE LIB...) - one *_test.c beside the code it tests is one cmocka program and one ctest entry.
#
# Tests run in a folder of their own under the build tree, so that none sees another's files, and end after two minutes.
# Labels: set_tests_properties(NAME PROPERTIES LABELS gpu) for what needs a device, `net`, `key`, `slow` likewise.
# Where cmocka is missing the tests are left out and configuring says so once.
find_library(KL_CMOCKA cmocka)
mark_as_advanced(KL_CMOCKA)
if(NOT KL_CMOCKA)
  message(WARNING "cmocka was not found, so there are no unit tests; on Debian: apt install libcmocka-dev")
endif()

function(kl_test name file)
  if(NOT KL_CMOCKA)
    return()
  endif()
  add_executable(${name} ${file})
  target_link_libraries(${name} PRIVATE ${ARGN} ${KL_CMOCKA})
  set(folder ${PROJECT_BINARY_DIR}/tests/${name}.files)
  file(MAKE_DIRECTORY ${folder})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${folder})
  set_tests_properties(${name} PROPERTIES TIMEOUT 120 SKIP_RETURN_CODE 77)
endfunction()
