# kl_embed(VARIABLE FILE) - the bytes of FILE as `const unsigned char VARIABLE[]` and `const size_t VARIABLE_bytes` in a
# generated VARIABLE.c, whose path is left in VARIABLE.  Rebuilt when FILE changes.  CMake alone does it: no xxd.
function(kl_embed variable file)
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${variable}.c)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DNAME=${variable} -DINPUT=${source} -DOUTPUT=${output}
            -P ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/embed_file.cmake
    DEPENDS ${source} ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/embed_file.cmake
    VERBATIM)
  set(${variable} ${output} PARENT_SCOPE)
endfunction()
