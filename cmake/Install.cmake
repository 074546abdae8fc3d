# What `cmake --install` lays down. One set of targets per library, because only the static one asks its users for the
# libraries that Verbatim is made with.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_directory ${CMAKE_INSTALL_LIBDIR}/cmake/verbatim)

install(TARGETS verbatim EXPORT verbatim-static INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS verbatim-shared EXPORT verbatim-shared INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
foreach(kind static shared)
  install(EXPORT verbatim-${kind} NAMESPACE verbatim:: DESTINATION ${package_directory})
endforeach()
configure_package_config_file(cmake/verbatimConfig.cmake.in verbatimConfig.cmake
  INSTALL_DESTINATION ${package_directory} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(verbatimConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/verbatimConfig.cmake ${PROJECT_BINARY_DIR}/verbatimConfigVersion.cmake
  DESTINATION ${package_directory})

# From where the file lies, so that an installed tree may be moved.
file(RELATIVE_PATH pc_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" pc_to_prefix ${pc_to_prefix})
configure_file(cmake/verbatim.pc.in verbatim.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/verbatim.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(DIRECTORY include/verbatim DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN *.hpp)
install(TARGETS verbatim-info verbatim-perf verbatim-pingpong verbatim-run)
install(TARGETS verbatim-verbs LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES docs/man/verbatim-info.1 docs/man/verbatim-perf.1 docs/man/verbatim-pingpong.1 docs/man/verbatim-run.1
  DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES docs/man/verbatim.toml.5 DESTINATION ${CMAKE_INSTALL_MANDIR}/man5)
install(FILES conf/verbatim.toml conf/soft.toml DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)
