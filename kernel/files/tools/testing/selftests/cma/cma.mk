# SPDX-License-Identifier: GPL-2.0-only
#
# The rest of a Makefile that has named its programs: they build in a kernel tree like every
# kselftest, and alone with plain "make". Each is one source, with those that it shares.

LOCAL_HDRS += ../cma/cma_util.h ../cma/cma_ring.h
SHARED_SRCS += ../cma/cma_util.c ../cma/cma_ring.c

CFLAGS += -O2 -Wall -Wextra $(KHDR_INCLUDES)
LDLIBS += -lpthread

ifneq ($(wildcard ../lib.mk),)
include ../lib.mk
else
OUTPUT ?= $(CURDIR)
CFLAGS += -D_GNU_SOURCE=
TEST_GEN_PROGS := $(addprefix $(OUTPUT)/,$(TEST_GEN_PROGS))
TEST_GEN_PROGS_EXTENDED := $(addprefix $(OUTPUT)/,$(TEST_GEN_PROGS_EXTENDED))

all: $(TEST_GEN_PROGS) $(TEST_GEN_PROGS_EXTENDED)

$(OUTPUT)/%: %.c $(LOCAL_HDRS)
	$(CC) $(CFLAGS) $(filter %.c,$^) -o $@ $(LDLIBS)

clean:
	$(RM) $(TEST_GEN_PROGS) $(TEST_GEN_PROGS_EXTENDED)

.PHONY: all clean
endif

$(TEST_GEN_PROGS) $(TEST_GEN_PROGS_EXTENDED): $(SHARED_SRCS)
