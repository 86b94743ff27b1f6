# What `cmake --install` copies and CPack packs: programs, two libraries, headers, pages, tasks and cards.
#
#   libklgate     base to executor: may this kernel enter?
#   libklineage   on top of it: journal, models, lineages, cards, searches, reports
#
# Two components, which are two packages: `runtime` (klineage) and `development` (klineage-dev).
find_package(Threads REQUIRED)
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
include(cmake/kl_library.cmake)

# Ours are shared, so theirs are: a static library of theirs need not be position independent.
foreach(name jansson md xxhash seccomp sqlite3 zstd fyaml)
  find_library(KL_SHARED_${name} ${name} REQUIRED)
  mark_as_advanced(KL_SHARED_${name})
endforeach()
set(support ${KL_SHARED_jansson} ${KL_SHARED_md} ${KL_SHARED_xxhash} Threads::Threads m ${CMAKE_DL_LIBS})

kl_library(klgate base support task kernel confine backend surface gate executor)
target_link_libraries(libklgate PRIVATE ${support} ${KL_SHARED_seccomp} INTERFACE jansson)
kl_library(klineage support confine store rewrite model run lineage skill search experiment report dataset)
target_link_libraries(libklineage PUBLIC libklgate PRIVATE ${support} ${KL_SHARED_seccomp} ${KL_SHARED_sqlite3} ${KL_SHARED_zstd} ${KL_SHARED_fyaml})

# ---- programs and libraries ----------------------------------------------------------------------------------

install(TARGETS klineage klineage-worker RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
install(TARGETS klineage-capture LIBRARY DESTINATION ${CMAKE_INSTALL_DATADIR}/klineage COMPONENT runtime)
install(TARGETS libklgate libklineage EXPORT klineage-targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development)
install(FILES ${PROJECT_BINARY_DIR}/lib/libklgate.a ${PROJECT_BINARY_DIR}/lib/libklineage.a
        DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(DIRECTORY include/klineage DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)

# ---- how they are found --------------------------------------------------------------------------------------

set(packages ${CMAKE_INSTALL_LIBDIR}/cmake/klineage)
install(EXPORT klineage-targets NAMESPACE klineage:: DESTINATION ${packages} COMPONENT development)
write_basic_package_version_file(klineage-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES cmake/klineage-config.cmake ${PROJECT_BINARY_DIR}/klineage-config-version.cmake
        DESTINATION ${packages} COMPONENT development)

file(RELATIVE_PATH up /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" up ${up})
function(kl_pkg_config name description requires private)
  configure_file(cmake/klineage.pc.in ${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endfunction()
kl_pkg_config(klgate "Referee for compute kernels: compiles, checks, profiles, answers with a verdict"
              "jansson" "-lseccomp -lmd -lxxhash -lpthread -lm -ldl")
kl_pkg_config(klineage "Lineages, SkillCards and searches over gated compute kernels"
              "klgate = ${PROJECT_VERSION}" "-lsqlite3 -lzstd -lfyaml -lmd -lxxhash -lpthread -lm -ldl")

# ---- pages, from the program's own table ---------------------------------------------------------------------

set(pages)
function(kl_page kind name folder)
  set(page ${PROJECT_BINARY_DIR}/pages/${name})
  add_custom_command(OUTPUT ${page} COMMAND sh -c "mkdir -p pages; $<TARGET_FILE:klineage> --generate ${kind} >${page}"
                     DEPENDS klineage WORKING_DIRECTORY ${PROJECT_BINARY_DIR} VERBATIM)
  install(FILES ${page} DESTINATION ${folder} COMPONENT runtime)
  set(pages ${pages} ${page} PARENT_SCOPE)
endfunction()
kl_page(man klineage.1 ${CMAKE_INSTALL_MANDIR}/man1)
kl_page(complete-bash klineage ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
kl_page(complete-zsh _klineage ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
kl_page(complete-fish klineage.fish ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
add_custom_target(pages ALL DEPENDS ${pages})
# All that is installed, and no tests: what `./run install` builds.
add_custom_target(installed DEPENDS klineage klineage-worker libklgate libklineage libklgate_archive libklineage_archive pages)

# ---- data ----------------------------------------------------------------------------------------------------

set(share ${CMAKE_INSTALL_DATADIR}/klineage)
install(FILES ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/runner_script.py
  ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/compile_server.py
  ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/triton_frontend.py
  ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/tilelang_frontend.py DESTINATION ${share} COMPONENT runtime)
install(DIRECTORY src/surface/triton/extract/ DESTINATION ${share}/triton_extract COMPONENT runtime)
install(DIRECTORY src/surface/c/extract/ DESTINATION ${share}/c_extract COMPONENT runtime)
install(DIRECTORY python/klineage DESTINATION ${share}/python COMPONENT runtime PATTERN __pycache__ EXCLUDE)
install(DIRECTORY src/task/import/ DESTINATION ${share}/task_import COMPONENT runtime)
install(DIRECTORY skills DESTINATION ${share} COMPONENT runtime)
install(DIRECTORY tasks DESTINATION ${share} COMPONENT runtime)
install(DIRECTORY library DESTINATION ${share} COMPONENT runtime PATTERN recordings EXCLUDE)
install(FILES README.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)
install(FILES examples/embed.c DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples COMPONENT development)

# ---- Debian packages: cpack --config build/CPackConfig.cmake -------------------------------------------------

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_CONTACT "klineage <klineage@packages.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "referee for compute kernels, and what can be learned from its verdicts")
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL runtime development)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME klineage)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_RECOMMENDS "gcc, libc6-dev, python3")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SUGGESTS "libmicrohttpd12")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME klineage-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "klineage (= ${PROJECT_VERSION}), libjansson-dev")
include(CPack)
