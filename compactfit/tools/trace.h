/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Traces: the allocations of one process, as record.c writes and trace.c reads them. Version 1.
 *
 * A file is a header, then records, then zeros. Numbers of the header are little-endian, 32 bits:
 *
 *	bytes 0-7	"cftrace\n"
 *	8		version, 1
 *	12		bytes of the header: where the records begin
 *	16		process
 *	20		its parent
 *	24 ...		the command: its words, each ended by a zero
 *
 * A record is a byte that says what was called, and numbers in LEB128 (7 bits a byte, the lowest first,
 * bit 7 set in all but the last byte):
 *
 *	0			the end
 *	1 ALLOC size		malloc(), or realloc() of NULL
 *	2 ZEROED size		calloc(), size being the product
 *	3 ALIGNED shift size	aligned_alloc() and its like; alignment 2^shift bytes
 *	4 FREE back		free(), or realloc() to 0 that freed
 *	5 RESIZE back size	any other realloc()
 *	6 THREAD number		the records that follow are of this thread
 *
 * Objects have no addresses here. They are numbered in the order of their allocation, from 0; back is
 * how many objects were allocated since, the object itself counted: 1 is the latest. An object keeps its
 * number when it is resized. Threads are numbered in the order of their first call; 0 to begin with.
 * Calls that failed are left out, and frees of what was not seen being allocated. A forked process has
 * its own file, which begins with an ALLOC for each object that it inherited. There are no times.
 *
 * The last record may be cut off: a process can die at any moment.
 */
#ifndef TRACE_H
#define TRACE_H

#include <stddef.h>
#include <stdint.h>

#define TRACE_MAGIC "cftrace\n"
#define TRACE_VERSION 1u
#define TRACE_FIXED 24u /* bytes of the header before the command */
#define TRACE_SUFFIX ".cftrace"

enum trace_operation {
	TRACE_END,
	TRACE_ALLOC,
	TRACE_ZEROED,
	TRACE_ALIGNED,
	TRACE_FREE,
	TRACE_RESIZE,
	TRACE_THREAD,
};

/* What of a trace is replayed. */
struct trace_call {
	uint64_t size; /* bytes asked for; TRACE_FREE: those that the object had */
	uint32_t object; /* its index, below trace.slots; free again after TRACE_FREE */
	uint8_t operation; /* neither TRACE_END nor TRACE_THREAD */
	uint8_t shift; /* binary logarithm of the alignment, 0 if not TRACE_ALIGNED */
	uint16_t thread; /* modulo 2^16 */
};

struct trace {
	struct trace_call *calls;
	size_t nr_calls, room;
	size_t slots; /* objects live at once, at most */
	size_t objects; /* that were allocated */
	uint64_t peak; /* bytes live at once, at most */
	uint64_t live; /* bytes at the end */
	unsigned int threads;
	uint32_t process, parent;
	char command[256]; /* words separated by blanks, cut off if longer */
};

/**
 * trace_load() - read a whole trace into memory, checked
 * @path: the file
 * @trace: filled; trace_unload() frees it
 * @error: set to a sentence about the file, if it is refused
 *
 * Every call makes sense then: what is freed or resized is live. malloc() is not used, as that may be
 * what is looked at. O(file).
 * Return: 0, or -1 and @trace is empty.
 */
int trace_load(const char *path, struct trace *trace, const char **error);

void trace_unload(struct trace *trace);

#endif
