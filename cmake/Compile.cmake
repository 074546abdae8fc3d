# One place for flags. Every target of the project links verbatim_flags.
add_library(verbatim_flags INTERFACE)
target_compile_options(verbatim_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Fields that are read as a pair just after they were written one by one can't be forwarded from the store buffer: the
  # read waits until all that was written before it has left the core, on the data path a line that the other core has.
  target_compile_options(verbatim_flags INTERFACE $<$<CONFIG:Release,RelWithDebInfo>:-fno-tree-slp-vectorize>)
endif()
if(VERBATIM_WERROR)
  target_compile_options(verbatim_flags INTERFACE -Werror)
endif()
if(VERBATIM_SANITIZE)
  target_compile_options(verbatim_flags INTERFACE -fsanitize=${VERBATIM_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(verbatim_flags INTERFACE -fsanitize=${VERBATIM_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Instrumented code hides from GCC what is initialized: it then warns of its own standard library.
    target_compile_options(verbatim_flags INTERFACE -Wno-maybe-uninitialized)
  endif()
  if(VERBATIM_SANITIZE MATCHES "undefined")
    # The check of vtable pointers opens a pipe: it fails where a test has used up its descriptors.
    target_compile_options(verbatim_flags INTERFACE -fno-sanitize-recover=undefined -fno-sanitize=vptr)
  endif()
  if(VERBATIM_SANITIZE MATCHES "thread")
    # GCC says that fences are not modelled; the code that needs one takes another way under ThreadSanitizer.
    target_compile_options(verbatim_flags INTERFACE -Wno-tsan)
  endif()
endif()
if(VERBATIM_LTO)
  # A message passes through a dozen small functions of as many files: a fifth of its time is calls between them.
  target_compile_options(verbatim_flags INTERFACE -flto=auto -ffat-lto-objects)
  target_link_options(verbatim_flags INTERFACE -flto=auto)
endif()
