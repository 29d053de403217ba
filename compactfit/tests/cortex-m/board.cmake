# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Programs for one of Arm's MPS2 boards, which QEMU has, with newlib and semihosting.
set(code 0)
set(data 0x21000000)
if(CF_BOARD STREQUAL mps2-an505)
	set(code 0x10000000)
	set(data 0x80000000)
endif()
foreach(program soak_bound test_compactfit test_internals test_memory test_without)
	target_sources(${program} PRIVATE tests/cortex-m/startup.c)
	# of 16 MiB, for newlib's malloc() and the tests' tables have to have some
	target_compile_definitions(${program} PRIVATE CF_TEST_MEMORY=0x980000 CF_TEST_OPERATIONS=2000)
	target_link_options(${program} PRIVATE --specs=rdimon.specs
		-T ${CMAKE_CURRENT_SOURCE_DIR}/tests/cortex-m/mps2.ld
		-Wl,--defsym=CF_TEST_CODE=${code},--defsym=CF_TEST_DATA=${data})
endforeach()
