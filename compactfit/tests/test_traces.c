/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Traces: that the recorder sees what traced.c calls, that no file makes the reader err, and that the K
 * chosen for a trace is right, by replaying it on the library. In KTAP.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../tools/trace.h"
#include "../tools/tune.h"
#include "compactfit.h"

#define PLAN 20

static unsigned int number;
static bool any_failed;

__attribute__((format(printf, 2, 3))) static void done(bool holds, const char *format, ...)
{
	va_list args;

	printf("%s %u ", holds ? "ok" : "not ok", ++number);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	any_failed |= !holds;
}

/* ------ recording --------------------------------------------------------------------------------- */

static char folder[] = "/tmp/test_traces.XXXXXX";
static char here[PATH_MAX - 64]; /* where this program lies, and the others */

/* The records of sizes of the thousands from @from to @to: their operations and sizes as a text. */
static const char *said(const struct trace *trace, uint64_t from, uint64_t to)
{
	static const char *const names[] = {
		[TRACE_ALLOC] = "alloc", [TRACE_ZEROED] = "zeroed", [TRACE_ALIGNED] = "aligned",
		[TRACE_FREE] = "free", [TRACE_RESIZE] = "resize",
	};
	static char text[4096];
	size_t i, length = 0;

	text[0] = 0;
	for (i = 0; i < trace->nr_calls && length < sizeof(text) - 64; i++) {
		const struct trace_call *call = &trace->calls[i];

		if (call->size < from * 1000 || call->size >= to * 1000)
			continue;
		length += (size_t)sprintf(text + length, "%s %" PRIu64, names[call->operation],
					  call->size);
		if (call->shift)
			length += (size_t)sprintf(text + length, "/%u", 1u << call->shift);
		length += (size_t)sprintf(text + length, ", ");
	}
	return text;
}

static bool is(const char *found, const char *wanted)
{
	if (strcmp(found, wanted) != 0)
		printf("# found  %s\n# wanted %s\n", found, wanted);
	return !strcmp(found, wanted);
}

/* @room: bytes that a file may have */
static bool record(rlim_t room)
{
	char program[PATH_MAX], library[PATH_MAX];
	int status = 1;
	pid_t child;

	snprintf(program, sizeof(program), "%s/traced", here);
	snprintf(library, sizeof(library), "%s/libcompactfit-record.so", here);
	child = fork();
	if (!child) {
		setrlimit(RLIMIT_FSIZE, &(struct rlimit){ room, room });
		setenv("CF_TRACE", folder, 1);
		setenv("LD_PRELOAD", library, 1);
		execl(program, program, NULL);
		_exit(3);
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

static size_t count(const struct trace *trace, uint64_t size, unsigned int operation)
{
	size_t nr = 0, i;

	for (i = 0; i < trace->nr_calls; i++)
		nr += trace->calls[i].size == size && trace->calls[i].operation == operation;
	return nr;
}

static void test_recorder(void)
{
	struct trace traces[3] = { 0 }, *t = traces;
	size_t nr = 0, refused = 0, i;
	struct dirent *entry;
	DIR *listing;

	done(record(RLIM_INFINITY), "a program runs as well while it is recorded");
	listing = opendir(folder);
	if (!listing)
		abort(); /* mkdtemp() made it */
	while ((entry = readdir(listing))) {
		char path[PATH_MAX];
		struct trace trace;
		const char *wrong;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (trace_load(path, &trace, &wrong)) {
			printf("# %s: %s\n", entry->d_name, wrong);
			refused++;
		} else if (nr < 3) {
			/* the program, what it forked, what that executed */
			i = count(&trace, 75002, TRACE_ALLOC) ? 0 :
			    count(&trace, 76001, TRACE_ALLOC) ? 1 : 2;
			traces[i] = trace;
			nr++;
		} else {
			nr++;
		}
		unlink(path);
	}
	done(record(65536), "it also runs if the trace cannot be written");
	rewinddir(listing);
	while ((entry = readdir(listing)))
		unlinkat(dirfd(listing), entry->d_name, 0);
	closedir(listing);
	rmdir(folder);
	done(nr == 3 && !refused, "each process has a file, however it ended");
	done(is(said(t, 71, 75),
		"alloc 71001, resize 71002, free 71002, zeroed 72003, resize 72004, alloc 72900, "
		"free 72004, alloc 73001, free 73001, free 72900, aligned 74001/256, free 74001, aligned 74048/64, "
		"free 74048, aligned 74003/4096, free 74003, "),
	     "the trace has each call, none that failed");
	done(is(said(t, 75, 78), "alloc 75001, alloc 75002, "), "_exit() loses no record");
	done(is(said(t + 1, 75, 78), "alloc 75001, free 75001, alloc 76001, ") &&
		     t[1].parent == t[0].process,
	     "a forked process begins with what it inherited");
	done(is(said(t + 2, 75, 78), "alloc 77001, ") && strstr(t[2].command, "traced again"),
	     "SIGKILL loses no record");
	printf("# %zu calls, %u threads\n", t->nr_calls, t->threads);
	done(t->threads == 5 && count(t, 50001, TRACE_ALLOC) == 240000 &&
		     count(t, 50001, TRACE_FREE) + count(t, 50002, TRACE_FREE) == 240000 &&
		     count(t, 50002, TRACE_RESIZE) == count(t, 50002, TRACE_FREE),
	     "of five threads that free each other's objects no call is lost or made up");
	for (i = 0; i < 3; i++)
		trace_unload(&traces[i]);
}

/* ------ reading ----------------------------------------------------------------------------------- */

/* The sentence about a file with this content, or NULL if it is a trace. */
static const char *refusal(const void *bytes, size_t size, size_t *calls)
{
	char path[] = "/tmp/test_traces.XXXXXX";
	const char *wrong = NULL;
	struct trace trace;
	int fd = mkstemp(path);

	if (fd < 0 || write(fd, bytes, size) != (ssize_t)size)
		abort();
	close(fd);
	if (!trace_load(path, &trace, &wrong))
		wrong = NULL;
	*calls = trace.nr_calls;
	trace_unload(&trace);
	unlink(path);
	return wrong;
}

/* A header without a command and these records. */
#define TRACE_OF(...)                                                                           \
	{ 'c', 'f', 't', 'r', 'a', 'c', 'e', '\n', 1, 0, 0, 0, 24, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
	  0, __VA_ARGS__ }

static void test_reader(void)
{
	static const uint8_t good[] = TRACE_OF(1, 16, 2, 0x80, 1, 6, 3, 3, 4, 32, 5, 2, 8, 4, 3, 0, 4);
	static const uint8_t version[] = { 'c', 'f', 't', 'r', 'a', 'c', 'e', '\n', 2, 0, 0, 0,
					   24, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1 };
	static const uint8_t header[] = { 'c', 'f', 't', 'r', 'a', 'c', 'e', '\n', 1, 0, 0, 0,
					  27, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1 };
	static const struct {
		uint8_t bytes[40];
		const char *wrong;
	} bad[] = {
		{ TRACE_OF(1, 1, 7), "unknown kind" },
		{ TRACE_OF(4, 1), "not allocated" },
		{ TRACE_OF(1, 1, 4, 0), "not allocated" },
		{ TRACE_OF(1, 1, 4, 2), "not allocated" },
		{ TRACE_OF(1, 1, 4, 1, 4, 1), "not allocated" },
		{ TRACE_OF(1, 1, 4, 1, 5, 1, 1), "not allocated" },
		{ TRACE_OF(1, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1), "64 bits" },
		{ TRACE_OF(1, 255, 255, 255, 255, 255, 255, 255, 255, 127), "larger than" },
		{ TRACE_OF(3, 64, 1), "larger than" },
		{ TRACE_OF(0), "no calls" },
	};
	bool holds, all = true;
	const char *wrong;
	size_t calls, i;
	unsigned int state = 1, round;

	wrong = refusal(good, sizeof(good), &calls);
	done(!wrong && calls == 5, "a trace is read up to its end");
	/* the second record is cut, and so on; without a call it is none */
	for (i = 0; i < sizeof(good); i++) {
		wrong = refusal(good, i, &calls);
		all &= i < 26 ? !!wrong : !wrong && calls >= 1 && calls <= 5;
	}
	done(all, "a trace that is cut off is read as far as it goes");
	all = (wrong = refusal("", 0, &calls)) && strstr(wrong, "no trace");
	all &= (wrong = refusal("#!/bin/sh\necho a foreign file\n", 30, &calls)) &&
	       strstr(wrong, "no trace");
	all &= (wrong = refusal(version, sizeof(version), &calls)) && strstr(wrong, "version");
	all &= (wrong = refusal(header, sizeof(header), &calls)) && strstr(wrong, "header");
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		wrong = refusal(bad[i].bytes, sizeof(bad[i].bytes), &calls);
		holds = wrong && strstr(wrong, bad[i].wrong);
		if (!holds)
			printf("# %zu: %s\n", i, wrong ? wrong : "taken for a trace");
		all &= holds;
	}
	done(all, "what is no trace is refused, each for its reason");
	for (round = 0; round < 2000; round++) {
		uint8_t bytes[80] = TRACE_OF(1, 8);

		for (i = TRACE_FIXED; i < sizeof(bytes); i++) {
			state = state * 1103515245 + 12345;
			/* mostly what could be a record */
			bytes[i] = (uint8_t)(state >> 24 & 1 ? state >> 16 & 3 : state >> 16);
		}
		refusal(bytes, sizeof(bytes), &calls);
	}
	done(true, "2,000 random files do no harm");
}

/* ------ choosing K -------------------------------------------------------------------------------- */

/*
 * Replay in a heap of what was chosen, in a buffer that is so far from being aligned. Returns its moves;
 * *failed: allocations that failed.
 */
static uint64_t replay_at(size_t unaligned, const struct trace *trace, const struct tune *tune,
			  const uint16_t *k, size_t *failed)
{
	struct cf_config config = { .page_size = CF_PAGE_SIZE, .class_max_not_full = k,
				    .wide = tune->wide, .pieces = true };
	char *buffer = aligned_alloc(CF_PAGE_SIZE, (tune->memory / CF_PAGE_SIZE + 2) * CF_PAGE_SIZE);
	struct cf_heap *heap = cf_init(buffer + unaligned, tune->memory, &config);
	cf_handle *handles = calloc(trace->slots + 1, sizeof(*handles));
	struct cf_stats stats;
	size_t i;

	*failed = 0;
	for (i = 0; i < trace->nr_calls; i++) {
		const struct trace_call *call = &trace->calls[i];
		cf_handle *handle = &handles[call->object];
		size_t size = call->size ? call->size : 1;
		int status = CF_OK;

		if (call->operation == TRACE_FREE)
			status = handle->slot ? cf_free(heap, *handle) : CF_OK;
		else if (call->operation == TRACE_RESIZE)
			status = cf_realloc(heap, *handle, size);
		else
			status = cf_aligned_alloc(heap, (size_t)1 << call->shift, size, handle);
		*failed += status != CF_OK;
	}
	cf_get_stats(heap, &stats);
	free(handles);
	free(buffer);
	return stats.moves;
}

/* The same, wherever the buffer begins. */
static uint64_t replay(const struct trace *trace, const struct tune *tune, const uint16_t *k,
		       size_t *failed)
{
	static const size_t unaligned[] = { 1, 16, 4096, 8192, 12288, CF_PAGE_SIZE - 1 };
	uint64_t moves = replay_at(0, trace, tune, k, failed);
	size_t more, i;

	for (i = 0; i < sizeof(unaligned) / sizeof(unaligned[0]); i++) {
		replay_at(unaligned[i], trace, tune, k, &more);
		*failed += more;
	}
	return moves;
}

/* A trace made up of calls of one size. */
static struct trace made(struct trace_call *calls, size_t nr, size_t slots)
{
	return (struct trace){ .calls = calls, .nr_calls = nr, .slots = slots };
}

static void test_tune(void)
{
	enum { PAGES = 5, SIZE = 1000 };
	static struct trace_call calls[4096];
	uint16_t k[CF_MAX_CLASSES], class;
	static struct tune tune, less;
	size_t nr = 0, failed, more, i;
	unsigned int n, state = 1;
	static uint64_t sizes[512];
	struct trace trace;
	uint64_t moves, with_less;

	/* full pages and one that is not: as many as there have to be */
	calls[0].size = SIZE;
	trace = made(calls, 1, 1);
	calls[0].operation = TRACE_ALLOC;
	tune_trace(&trace, 0, &tune);
	for (class = 0; tune.classes[class].size < SIZE; class++)
		;
	n = tune.classes[class].per_page;
	for (i = 0; i < PAGES * n + 1; i++)
		calls[nr++] = (struct trace_call){ SIZE, (uint32_t)i, TRACE_ALLOC, 0, 0 };
	trace = made(calls, nr, PAGES * n + 1);
	tune_trace(&trace, 0, &tune);
	memset(k, 0, sizeof(k));
	replay(&trace, &tune, k, &failed);
	tune.memory -= CF_PAGE_SIZE;
	replay(&trace, &tune, k, &more);
	done(!failed && more, "the memory that is named suffices, a page less does not");

	/* then a free in each of the full ones */
	for (i = 0; i < PAGES; i++)
		calls[nr++] = (struct trace_call){ SIZE, (uint32_t)(i * n), TRACE_FREE, 0, 0 };
	trace = made(calls, nr, PAGES * n + 1);
	tune_trace(&trace, 0, &tune);
	for (i = 0; i < CF_MAX_CLASSES; i++)
		k[i] = tune.classes[i].k;
	moves = replay(&trace, &tune, k, &failed);
	k[class]--;
	with_less = replay(&trace, &tune, k, &more);
	printf("# K = %u: %" PRIu64 " moves, K = %u: %" PRIu64 " moves\n", tune.classes[class].k, moves,
	       k[class], with_less);
	done(!moves && with_less && !failed && !more,
	     "with the chosen K nothing moves, with one less something does");

	/* any sizes in any order */
	nr = 0;
	for (i = 0; i < 4096; i++) {
		uint32_t object = (state = state * 1103515245 + 12345) >> 16 & 511;
		uint64_t size = 1 + ((state = state * 1103515245 + 12345) >> 12) % 3000;
		uint8_t operation = !sizes[object] ? TRACE_ALLOC :
				    size % 3 ? TRACE_FREE : TRACE_RESIZE;

		calls[nr++] = (struct trace_call){ operation == TRACE_FREE ? sizes[object] : size,
						   object, operation, 0, 0 };
		sizes[object] = operation == TRACE_FREE ? 0 : size;
	}
	trace = made(calls, nr, 512);
	tune_trace(&trace, 0, &tune);
	for (i = 0; i < CF_MAX_CLASSES; i++)
		k[i] = tune.classes[i].k;
	moves = replay(&trace, &tune, k, &failed);
	if (tune_trace(&trace, tune.memory * 3 / 4, &less))
		less.memory = UINT64_MAX;
	for (i = 0; i < CF_MAX_CLASSES; i++)
		k[i] = less.classes[i].k;
	with_less = less.memory > tune.memory ? 0 : replay(&trace, &less, k, &more);
	printf("# %" PRIu64 " bytes: %" PRIu64 " moves, %" PRIu64 " bytes: %" PRIu64 " moves\n",
	       tune.memory, moves, less.memory, with_less);
	done(!moves && !failed && less.memory <= tune.memory * 3 / 4 && with_less && !more,
	     "with less K less memory suffices, and something moves");

	/* the same sizes, some of them many times as large: pages, spines, tails */
	memset(sizes, 0, sizeof(sizes));
	for (i = 0; i < nr; i++) {
		if (calls[i].operation != TRACE_FREE) {
			calls[i].size *= calls[i].size % 7 ? 1 : 50;
			sizes[calls[i].object] = calls[i].size;
		} else {
			calls[i].size = sizes[calls[i].object];
		}
	}
	tune_trace(&trace, 0, &tune);
	for (i = 0; i < CF_MAX_CLASSES; i++)
		k[i] = tune.classes[i].k;
	moves = replay(&trace, &tune, k, &failed);
	done(!moves && !failed && tune.large_pages && !tune.refused,
	     "with the chosen K nothing moves if objects are larger than a page");

	for (i = 0; i < 10; i++)
		calls[i] = (struct trace_call){ 3 * CF_PAGE_SIZE + 100, (uint32_t)i, TRACE_ALLOC, 0, 0 };
	trace = made(calls, 10, 10);
	tune_trace(&trace, 0, &tune);
	memset(k, 0, sizeof(k));
	replay(&trace, &tune, k, &failed);
	tune.memory -= CF_PAGE_SIZE;
	replay(&trace, &tune, k, &more);
	done(!failed && more && tune.large_pages == 10 * 3, "so it is for objects larger than a page");
}

/* Allocate so many objects, free them again. Returns the calls behind these. */
static struct trace_call *come_and_go(struct trace_call *call, size_t size, uint32_t nr, uint32_t first)
{
	uint32_t i;

	for (i = 0; i < nr; i++)
		*call++ = (struct trace_call){ size, first + i, TRACE_ALLOC, 0, 0 };
	for (i = 0; i < nr; i++)
		*call++ = (struct trace_call){ size, first + i, TRACE_FREE, 0, 0 };
	return call;
}

/* What is guaranteed in whatever order objects come and go, not just in that of the trace. */
static void test_guarantee(void)
{
	enum { NR = 3000, MANY = 70000, HALF = CF_PAGE_SIZE / 2, ALIGNED = 1000, SHIFT = 6 };
	static struct trace_call calls[2 * MANY];
	uint16_t k[CF_MAX_CLASSES] = { 0 }, class;
	static struct tune tune, less;
	struct trace_call *end;
	size_t failed, more, i;
	struct trace trace;
	const char *wrong;

	/* objects of two sizes, never at once: slots of either have room in a page, of both they do not */
	end = come_and_go(come_and_go(calls, 20, NR, 0), 100, NR, NR);
	trace = made(calls, (size_t)(end - calls), (size_t)2 * NR);
	tune_trace(&trace, 0, &tune);
	wrong = tune_trace(&trace, tune.least_memory, &less);
	for (i = 0; i < NR; i++) {
		calls[i] = (struct trace_call){ 20, (uint32_t)i, TRACE_ALLOC, 0, 0 };
		calls[NR + i] = (struct trace_call){ 100, (uint32_t)(NR + i), TRACE_ALLOC, 0, 0 };
	}
	trace = made(calls, (size_t)2 * NR, (size_t)2 * NR);
	replay(&trace, &less, k, &failed);
	done(!wrong && !failed, "all size-classes may have as many objects as ever at the same time");

	/* more not-full pages than a K can say: then nothing is compacted, and each object may have a page */
	end = come_and_go(calls, HALF, MANY, 0);
	trace = made(calls, (size_t)(end - calls), MANY);
	tune_trace(&trace, 0, &tune);
	for (class = 0; tune.classes[class].size < HALF; class++)
		;
	printf("# K = %u: %" PRIu64 " pages, %" PRIu64 " frees may move\n", tune.classes[class].k,
	       tune.classes[class].pages, tune.classes[class].may_move);
	done(tune.classes[class].k == CF_UNLIMITED && tune.classes[class].pages == MANY &&
	     !tune.classes[class].may_move,
	     "what is never compacted may take a page for each object, and nothing moves");

	/* the last one is aligned to more than a page */
	for (i = 0; i < ALIGNED; i++)
		calls[i] = (struct trace_call){ 65, (uint32_t)i, TRACE_ALIGNED, SHIFT, 0 };
	calls[i] = (struct trace_call){ 65, (uint32_t)i, TRACE_ALIGNED, 15, 0 };
	trace = made(calls, ALIGNED + 1, ALIGNED + 1);
	tune_trace(&trace, 0, &tune);
	trace.nr_calls--;
	replay(&trace, &tune, k, &failed);
	tune.memory -= CF_PAGE_SIZE;
	replay(&trace, &tune, k, &more);
	done(!failed && more && tune.refused == 1,
	     "aligned objects have the memory that they need; what no heap can align is left out");
}

int main(void)
{
	char *slash;

	if (readlink("/proc/self/exe", here, sizeof(here) - 1) < 0 || !mkdtemp(folder))
		return 1;
	slash = strrchr(here, '/');
	*slash = 0;
	setvbuf(stdout, NULL, _IOLBF, 0); /* what is forked has nothing to print again */
	printf("TAP version 14\n1..%d\n", PLAN);
	test_recorder();
	test_reader();
	test_tune();
	test_guarantee();
	return any_failed;
}
