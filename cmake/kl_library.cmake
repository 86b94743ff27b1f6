# kl_library(NAME FOLDER...) - the folders of src/ as one library for others: target libNAME, shared, and libNAME.a.
#
# Both let through what the headers in include/klineage declare and nothing else.  The static one is a single object file
# whose other symbols are local, so that it meets no symbol of its user's, nor those of another library of ours.
function(kl_library name)
  list(TRANSFORM ARGN REPLACE "(.+)" "$<TARGET_OBJECTS:kl_\\1>" OUTPUT_VARIABLE objects)
  add_library(lib${name} SHARED ${objects})
  set_target_properties(lib${name} PROPERTIES
    OUTPUT_NAME ${name} EXPORT_NAME ${name} LINKER_LANGUAGE C
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
    INSTALL_RPATH "$ORIGIN")
  target_link_options(lib${name} PRIVATE -Wl,-z,defs)
  target_include_directories(lib${name} INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

  set(archive ${PROJECT_BINARY_DIR}/lib/lib${name}.a)
  set(object ${PROJECT_BINARY_DIR}/lib/${name}.o)
  add_custom_command(
    OUTPUT ${archive}
    COMMAND ${CMAKE_LINKER} -r -o ${object} ${objects}
    COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${object}
    COMMAND ${CMAKE_COMMAND} -E rm -f ${archive}
    COMMAND ${CMAKE_AR} rcs ${archive} ${object}
    DEPENDS ${objects} COMMAND_EXPAND_LISTS VERBATIM)
  add_custom_target(lib${name}_archive ALL DEPENDS ${archive})
endfunction()
