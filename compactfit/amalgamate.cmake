# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# cmake -DSOURCE=... -DOUTPUT=... -P amalgamate.cmake: the library as one header. One C file of the
# program defines COMPACTFIT_IMPLEMENTATION before it includes it.
file(READ ${SOURCE}/include/compactfit.h header)
file(READ ${SOURCE}/src/compactfit.c code)
string(REPLACE "#include \"compactfit.h\"\n" "" code "${code}")
set(once "defined(COMPACTFIT_IMPLEMENTATION) && !defined(COMPACTFIT_IMPLEMENTED)")
set(c "#ifdef __cplusplus\n#error \"the implementation is C: include it in a C file\"\n#endif")
file(WRITE ${OUTPUT} "${header}\n#if ${once}\n#define COMPACTFIT_IMPLEMENTED\n${c}\n${code}\n#endif\n")
