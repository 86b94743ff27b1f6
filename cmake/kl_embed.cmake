# kl_embed(NAME VARIABLE FILE...) - the bytes of each FILE as `const unsigned char VARIABLE[]` and `const size_t
# VARIABLE_bytes`, all in one generated NAME.c, whose path is left in NAME.  Made again when a FILE changes.  CMake alone
# does it: no xxd.
function(kl_embed name)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${name}.c)
  set(files)
  list(LENGTH ARGN n)
  math(EXPR last "${n} - 1")
  foreach(i RANGE 1 ${last} 2)
    list(GET ARGN ${i} file)
    list(APPEND files ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  endforeach()
  set(script ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/embed_files.cmake)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} "-DOUTPUT=${output}" "-DROOT=${CMAKE_CURRENT_SOURCE_DIR}" "-DPAIRS=${ARGN}" -P ${script}
    DEPENDS ${files} ${script}
    VERBATIM)
  set(${name} ${output} PARENT_SCOPE)
endfunction()
