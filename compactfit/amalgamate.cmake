# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# cmake -DSOURCE=... -DOUTPUT=... -P amalgamate.cmake: the library as one header. One C or C++ file of the
# program defines COMPACTFIT_IMPLEMENTATION before it includes it.
file(READ ${SOURCE}/include/compactfit.h header)
file(READ ${SOURCE}/src/compactfit.c code)
string(REPLACE "#include \"compactfit.h\"\n" "" code "${code}")
set(before [=[
#if defined(COMPACTFIT_IMPLEMENTATION) && !defined(COMPACTFIT_IMPLEMENTED)
#define COMPACTFIT_IMPLEMENTED
/*
 * What follows is C. The C++ of gcc and clang takes all of it, with these words, but would say that it is C.
 */
#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wunknown-warning-option"
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wc99-extensions"
#pragma GCC diagnostic ignored "-Wc99-designator"
#pragma GCC diagnostic ignored "-Wc++20-extensions"
#pragma GCC diagnostic ignored "-Wc++20-designator"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wshadow"
#define class cf_class_
#define _Static_assert static_assert
#endif
]=])
set(after [=[
#ifdef __cplusplus
#undef class
#undef _Static_assert
#pragma GCC diagnostic pop
#endif
#endif /* COMPACTFIT_IMPLEMENTATION */
]=])
file(WRITE ${OUTPUT} "${header}\n${before}\n${code}\n${after}")
