# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Firmware for an Arm Cortex-M: -DCF_CPU=cortex-m33, or whatever -mcpu= takes. QEMU runs the tests on one of
# Arm's MPS2 boards, which tests/cortex-m/ is made for.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR arm)
set(CF_CPU cortex-m3 CACHE STRING "The core, as the compiler calls it")
set(CMAKE_C_COMPILER arm-none-eabi-gcc)
set(CMAKE_C_FLAGS_INIT "-mcpu=${CF_CPU} -mthumb")
# A program needs a linker script, which the compiler's check has none of.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES CF_CPU)

if(CF_CPU STREQUAL cortex-m33)
	set(CF_BOARD mps2-an505)
elseif(CF_CPU STREQUAL cortex-m4)
	set(CF_BOARD mps2-an386)
else()
	# A Cortex-M3, which runs the code of a Cortex-M0 as well.
	set(CF_BOARD mps2-an385)
endif()
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-system-arm -machine ${CF_BOARD} -display none -monitor none
	-serial none -semihosting-config enable=on,target=native -kernel)
