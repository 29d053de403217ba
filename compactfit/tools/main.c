/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * compactfit-tune TRACE [MEMORY]: K of each size-class for the program of a trace, the ceilings of its
 * operations (ceilings.h), and the memory that suffices, as JSON. MEMORY: bytes that the heap may have.
 * The heap is a moving one with pages of CF_PAGE_SIZE.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "ceilings.h"
#include "trace.h"
#include "tune.h"

static const struct engine *engine_of(bool wide, bool partial)
{
	const struct engine *engine = engines;

	/* the table has each of the four */
	while (engine->config.engine != CF_MOVING || engine->config.wide != wide ||
	       (engine->config.max_not_full > 1) != partial)
		engine++;
	return engine;
}

/* An ASCII text without control characters. */
static void print_text(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putchar('\\');
		putchar(*text);
	}
	putchar('"');
}

static void print_class(const struct tune_class *class, bool wide)
{
	const struct engine *engine = engine_of(wide, class->k > 1);
	unsigned int operation = class->may_move ? FREE_MOVING : FREE;

	printf("{\"size\": %zu, \"per_page\": %u, \"allocations\": %" PRIu64 ", \"peak\": %" PRIu64
	       ", \"max_count\": %" PRIu64 ", \"k\": %u, \"may_move\": %" PRIu64
	       ", \"pages\": %" PRIu64 ", \"malloc\": %u, \"free\": %u, \"copied\": %zu}",
	       class->size, class->per_page, class->allocations, class->peak, class->max_count,
	       class->k, class->may_move, class->pages, engine->ceiling[MALLOC].constant,
	       engine->ceiling[operation].constant, class->may_move ? class->size : 0);
}

int main(int argc, char **argv)
{
	uint64_t memory = 0;
	static struct tune tune;
	struct trace trace;
	const char *wrong;
	unsigned int i;
	char *end;

	if (argc == 3) {
		memory = strtoull(argv[2], &end, 10);
		if (*end || !memory)
			argc = 0;
	}
	if ((argc != 2 && argc != 3) || argv[1][0] == '-') {
		fprintf(stderr, "usage: compactfit-tune TRACE [MEMORY]\n"
				"TRACE: a file of libcompactfit-record.so; MEMORY: bytes that the "
				"heap may have\n");
		return 1;
	}
	if (trace_load(argv[1], &trace, &wrong)) {
		fprintf(stderr, "%s: %s\n", argv[1], wrong);
		return 1;
	}
	wrong = tune_trace(&trace, memory, &tune);
	if (wrong) {
		fprintf(stderr, "%s: %s\n", argv[1], wrong);
		return 1;
	}
	printf("{\"command\": ");
	print_text(trace.command);
	printf(", \"calls\": %zu, \"allocations\": %zu, \"threads\": %u, \"peak_slots\": %" PRIu64
	       ", \"large_pages\": %" PRIu64 ", \"max_size\": %zu"
	       ", \"peak_bytes\": %" PRIu64 ", \"refused\": %" PRIu64 ", \"refused_size\": %" PRIu64
	       ", \"wide\": %s, \"pages\": %" PRIu64 ", \"memory\": %" PRIu64
	       ", \"least_memory\": %" PRIu64 ", \"classes\": [",
	       trace.nr_calls, trace.objects, trace.threads, tune.peak, tune.large_pages,
	       tune.max_size, trace.peak, tune.refused,
	       tune.refused_size, tune.wide ? "true" : "false", tune.pages, tune.memory,
	       tune.least_memory);
	for (i = 0; i < tune.nr_classes; i++) {
		printf("%s", i ? ", " : "");
		print_class(&tune.classes[i], tune.wide);
	}
	printf("]}\n");
	trace_unload(&trace);
	return 0;
}
