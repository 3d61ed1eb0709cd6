# One interface target carries the language level, warnings and sanitizers of every target.
add_library(tenure_flags INTERFACE)
target_compile_definitions(tenure_flags INTERFACE _GNU_SOURCE)
# Messages are cut to their buffers on purpose, by snprintf, and gcc says so only where it inlines.
target_compile_options(tenure_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror $<$<C_COMPILER_ID:GNU>:-Wno-format-truncation>
  -ffp-contract=off -fno-math-errno -fno-trapping-math)
# Sanitizers rewrite expressions before gcc looks for faults in them: what it then says of conversions,
# ranges and unset variables is said of code that nobody wrote. Every other build keeps the rule.
if(TENURE_SANITIZE)
  target_compile_options(tenure_flags INTERFACE -O1 -w)
endif()
if(TENURE_SANITIZE STREQUAL "address")
  target_compile_options(tenure_flags INTERFACE -fsanitize=address,undefined
    -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(tenure_flags INTERFACE -fsanitize=address,undefined)
elseif(TENURE_SANITIZE STREQUAL "thread")
  target_compile_options(tenure_flags INTERFACE -fsanitize=thread -fno-omit-frame-pointer)
  target_link_options(tenure_flags INTERFACE -fsanitize=thread)
endif()

# Whether a loop that may be vectorised was is no fault; sanitizers and fuzzers keep clang from it.
if(CMAKE_C_COMPILER_ID MATCHES "Clang")
  target_compile_options(tenure_flags INTERFACE -Wno-pass-failed)
endif()
