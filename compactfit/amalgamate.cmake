# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# cmake -DSOURCE=... -DOUTPUT=... -P amalgamate.cmake: the library as one header. One C file of the
# program defines COMPACTFIT_IMPLEMENTATION before it includes it.
file(READ ${SOURCE}/include/compactfit.h header)
file(READ ${SOURCE}/src/compactfit.c code)
string(REPLACE "#include \"compactfit.h\"\n" "" code "${code}")
file(WRITE ${OUTPUT} "${header}\n#ifdef COMPACTFIT_IMPLEMENTATION\n${code}\n#endif\n")
