# kl_test(NAME FILE LIB...) - one *_test.c beside the code it tests is one cmocka program and one ctest entry.
#
# What they share (arena, folder, case files, a fake provider) is tests/kit; KL_TEST_ROOT is the source tree.  Tests run in
# a folder of their own under the build tree, so that none sees another's files, and end after two minutes.
# Labels: set_tests_properties(NAME PROPERTIES LABELS gpu) for what needs a device, `net`, `key`, `long` likewise.
# Where cmocka is missing the tests are left out and configuring says so once.
find_library(KL_CMOCKA cmocka)
mark_as_advanced(KL_CMOCKA)
if(NOT KL_CMOCKA)
  message(WARNING "cmocka was not found, so there are no unit tests; on Debian: apt install libcmocka-dev")
endif()

function(kl_test name file)
  if(NOT KL_CMOCKA OR KL_UNITY)
    return()
  endif()
  add_executable(${name} ${file})
  target_link_libraries(${name} PRIVATE kl_kit ${ARGN} ${KL_CMOCKA})
  target_compile_definitions(${name} PRIVATE KL_TEST_ROOT="${PROJECT_SOURCE_DIR}")
  set(folder ${PROJECT_BINARY_DIR}/tests/${name}.files)
  file(MAKE_DIRECTORY ${folder})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${folder})
  set_tests_properties(${name} PROPERTIES TIMEOUT 120 SKIP_RETURN_CODE 77)
endfunction()
