# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Linux on x86-32, by Debian's cross compiler. An x86-64 kernel runs the tests.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR i686)
set(CMAKE_C_COMPILER i686-linux-gnu-gcc)
set(root /usr/i686-linux-gnu)
set(CMAKE_CROSSCOMPILING_EMULATOR ${root}/lib/ld-linux.so.2 --library-path ${root}/lib)
