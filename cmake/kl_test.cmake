# kl_tests(FOLDER LIBS lib... [FILES file...] [NEEDS target...] PARTS part...) - the unit tests of a folder, one program.
#
# Each part is PART_test.c, a cmocka program beside the code it tests, and the ctest entry FOLDER_PART_test (FOLDER_test
# where the part is called like the folder).  The program FOLDER_tests has them all and runs the one that it is given the
# name of (tests/kit/main.c), so that a folder is linked once and its tests are still processes of their own.
# FILES are compiled into it; NEEDS are built before it.
#
# kl_test(NAME FILE LIB...) - one test as a program of its own: where functions of the code under test are replaced, or it
# is compiled differently.
#
# What they share (arena, folder, case files, a fake provider) is tests/kit; KL_TEST_ROOT is the source tree.  Tests run in
# a folder of their own under the build tree, so that none sees another's files, and end after two minutes (KL_TEST_SECONDS).
# Labels: set_tests_properties(NAME PROPERTIES LABELS gpu) for what needs a device, `net`, `key`, `long` likewise.
# Where cmocka is missing the tests are left out and configuring says so once.
find_library(KL_CMOCKA cmocka)
mark_as_advanced(KL_CMOCKA)
if(NOT KL_CMOCKA)
  message(WARNING "cmocka was not found, so there are no unit tests; on Debian: apt install libcmocka-dev")
endif()

set(KL_TEST_SECONDS 120)
if(KL_SANITIZE) # some tests take four times as long there
  set(KL_TEST_SECONDS 600)
endif()

function(kl_tests folder)
  cmake_parse_arguments(PARSE_ARGV 1 test "" "" "LIBS;FILES;NEEDS;PARTS")
  foreach(part ${test_PARTS})
    kl_test_is_named(${part}_test.c)
  endforeach()
  if(NOT KL_CMOCKA OR KL_UNITY)
    return()
  endif()
  set(program ${folder}_tests)
  kl_test_program(${program} "${test_FILES}" "${test_LIBS}")
  set_target_properties(${program} PROPERTIES ENABLE_EXPORTS ON C_VISIBILITY_PRESET default) # main.c looks names up
  foreach(part ${test_PARTS})
    set(name ${folder}_${part}_test)
    if(part STREQUAL folder)
      set(name ${folder}_test)
    endif()
    target_sources(${program} PRIVATE ${part}_test.c)
    set_source_files_properties(${part}_test.c PROPERTIES COMPILE_DEFINITIONS main=${name})
    kl_test_entry(${name} ${program} ${name})
  endforeach()
  if(test_NEEDS)
    add_dependencies(${program} ${test_NEEDS})
  endif()
endfunction()

function(kl_test name file)
  kl_test_is_named(${file})
  if(KL_CMOCKA AND NOT KL_UNITY)
    kl_test_program(${name} ${file} "${ARGN}")
    kl_test_entry(${name} ${name})
  endif()
endfunction()

function(kl_test_program name files libs)
  add_executable(${name} ${files})
  target_link_libraries(${name} PRIVATE kl_kit ${libs} ${KL_CMOCKA})
  target_compile_definitions(${name} PRIVATE KL_TEST_ROOT="${PROJECT_SOURCE_DIR}")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
endfunction()

function(kl_test_entry name) # COMMAND...
  set(folder ${PROJECT_BINARY_DIR}/tests/${name}.files)
  file(MAKE_DIRECTORY ${folder})
  add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY ${folder})
  set_tests_properties(${name} PROPERTIES LABELS unit TIMEOUT ${KL_TEST_SECONDS} SKIP_RETURN_CODE 77)
endfunction()

function(kl_test_is_named file)
  get_filename_component(path ${file} ABSOLUTE)
  set_property(GLOBAL APPEND PROPERTY KL_TEST_FILES ${path})
endfunction()

# Called last: a test beside the code that no CMakeLists.txt names would never run.
function(kl_no_test_is_forgotten)
  file(GLOB_RECURSE forgotten CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*_test.c ${PROJECT_SOURCE_DIR}/tests/*_test.c)
  get_property(named GLOBAL PROPERTY KL_TEST_FILES)
  list(REMOVE_ITEM forgotten ${named})
  if(forgotten)
    message(FATAL_ERROR "no CMakeLists.txt names ${forgotten}; add its part to PARTS of kl_tests")
  endif()
endfunction()
