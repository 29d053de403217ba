/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * replay TRACE ALLOCATOR K [SAMPLE]: what a real program allocates, on one allocator, as JSON.
 *
 * The trace is replayed several times: to find the least memory in which nothing fails, to watch the
 * footprint, to count instructions of SAMPLE calls (in windows of consecutive ones, evenly spread), for
 * the time. Zeroing is not asked for. An alignment of more than 16 is had by asking for so much more,
 * as there is no call for it that all allocators have. Compact-fit and the process's allocators change
 * the size of an object; for all others, some of which could, another one is allocated, the content
 * copied uncounted, and the first one freed.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "../tools/trace.h"
#include "allocators.h"
#include "count.h"

#define ALIGNMENT 65536u
#define AMPLE 16u /* times the peak: who fails in that much memory has failed */
#define USUAL 2u /* times the peak: memory in which footprint, instructions and time are taken */
#define PRECISE 100u /* the least memory is found to 1 / this of it */
#define WINDOW 100u /* calls */
#define SAMPLE 2000u
#define MOMENTS 200u /* at which the footprint is looked at */
#define TIMES 3u /* the best of so many replays, or of one that takes long */
#define LONG 0.5 /* seconds */

static const struct allocator *a;
static unsigned int k;
static struct trace trace;
static size_t limit = SIZE_MAX; /* of an object; larger ones are refused, and left out */
static char *arena;
static uint64_t call_cost[2]; /* instructions of calling an allocator that does nothing */

/* A live object of the trace. */
static struct object {
	uint64_t object; /* 0: none, it was refused */
	uint64_t size;
	uint8_t tag; /* what its bytes are */
} *objects;

enum kind { MALLOC, FREE, REALLOC, KINDS };
static const char *const kinds[KINDS] = { "malloc", "free", "realloc" };

struct costs {
	double *instructions;
	size_t nr;
	uint64_t copied; /* bytes, all in all */
};

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(stderr, "replay: ");
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\n");
	exit(2);
}

/* Memory that is not of the allocator that is looked at. */
static void *take(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		die("there is not enough memory");
	return memory;
}

static bool begin(size_t memory)
{
	memset(objects, 0, trace.slots * sizeof(*objects));
	return a->begin(arena, memory, &(struct setup){ .k = k });
}

/* ------ calls ------------------------------------------------------------------------------------- */

static size_t size_of(const struct trace_call *call)
{
	size_t size = call->size ? call->size : 1, align = (size_t)1 << call->shift;

	/* compact-fit aligns an object to what divides its size, up to 16 */
	return align > 16 ? size + align - 16 : (size + align - 1) & ~(align - 1);
}

static void *at(uint64_t object, size_t offset, size_t size, size_t *length)
{
	if (a->handles)
		return a->handles->at(object, offset, length);
	*length = size - offset;
	return (char *)(uintptr_t)object + offset;
}

static void fill(struct object *object, uint8_t tag)
{
	size_t offset, length;
	char *bytes;

	object->tag = tag;
	for (offset = 0; offset < object->size; offset += length) {
		bytes = at(object->object, offset, object->size, &length);
		if (length > object->size - offset)
			length = object->size - offset;
		memset(bytes, tag, length);
	}
}

/* Is the content of the first @size bytes what it was filled with? */
static void check(const struct object *object, size_t size)
{
	size_t length;
	const uint8_t *first = at(object->object, 0, object->size, &length);
	const uint8_t *last = at(object->object, size - 1, object->size, &length);

	if (*first != object->tag || *last != object->tag)
		die("%s lost the content of an object", a->title);
}

/* What is done beside calling the allocator. */
struct way {
	bool filled; /* objects are filled, and looked at later */
	bool counted;
	uint64_t instructions, copied;
};

#define STEPPED(way, call)               \
	do {                             \
		if ((way)->counted) {    \
			count_copied();  \
			count_begin();   \
			call;            \
			count_end();     \
		} else {                 \
			call;            \
		}                        \
	} while (0)

/* @cost: of the call itself */
static void note(struct way *way, uint64_t cost)
{
	if (!way->counted)
		return;
	way->instructions += count_taken() - cost;
	way->copied += count_copied();
}

__attribute__((noinline)) static uint64_t do_alloc(const struct allocator *which, struct way *way,
						   size_t size)
{
	uint64_t object;

	STEPPED(way, object = which->alloc(size));
	note(way, call_cost[0]);
	return object;
}

__attribute__((noinline)) static void do_release(const struct allocator *which, struct way *way,
						 uint64_t object)
{
	STEPPED(way, which->release(object));
	note(way, call_cost[1]);
}

__attribute__((noinline)) static uint64_t do_resize(struct way *way, uint64_t object, size_t size)
{
	STEPPED(way, object = a->resize(object, size));
	note(way, call_cost[0]);
	return object;
}

static void copy(uint64_t from, uint64_t to, size_t size)
{
	size_t offset, length, here;
	void *source, *target;

	for (offset = 0; offset < size; offset += length) {
		source = at(from, offset, size, &length);
		target = at(to, offset, size, &here);
		if (here < length)
			length = here;
		memcpy(target, source, length < size - offset ? length : size - offset);
	}
}

/* Returns whether there was memory for it. *done: what was done, KINDS: nothing. */
static bool perform(const struct trace_call *call, struct way *way, uint8_t tag, enum kind *done)
{
	struct object *object = &objects[call->object];
	size_t size = size_of(call), kept;
	uint64_t result;

	*done = KINDS;
	if (call->operation == TRACE_RESIZE && object->object && size <= limit) {
		*done = REALLOC;
		kept = size < object->size ? size : object->size;
		if (a->resize) {
			result = do_resize(way, object->object, size);
		} else {
			result = do_alloc(a, way, size);
			if (result) {
				copy(object->object, result, kept);
				do_release(a, way, object->object);
			}
		}
		if (!result)
			return false;
		object->object = result;
		object->size = size;
		if (way->filled) {
			check(object, kept);
			fill(object, tag);
		}
		return true;
	}
	/* what is resized from or to a size that is refused, is freed or allocated */
	if (object->object && (call->operation == TRACE_FREE || call->operation == TRACE_RESIZE)) {
		*done = FREE;
		if (way->filled)
			check(object, object->size);
		do_release(a, way, object->object);
		object->object = 0;
	} else if (call->operation != TRACE_FREE && size <= limit) {
		*done = MALLOC;
		object->object = do_alloc(a, way, size);
		object->size = size;
		if (!object->object)
			return false;
		if (way->filled)
			fill(object, tag);
	}
	return true;
}

static void release_rest(void)
{
	size_t i;

	for (i = 0; i < trace.slots; i++) {
		if (objects[i].object)
			a->release(objects[i].object);
		objects[i].object = 0;
	}
}

/* ------ replays ----------------------------------------------------------------------------------- */

/* Live bytes at once at most, and at the end, without what is refused. */
static void payload(uint64_t *peak, uint64_t *last, uint64_t *refused)
{
	uint64_t live = 0;
	size_t i;

	*peak = 0;
	*refused = 0;
	memset(objects, 0, trace.slots * sizeof(*objects));
	for (i = 0; i < trace.nr_calls; i++) {
		const struct trace_call *call = &trace.calls[i];
		size_t size = size_of(call);

		live -= objects[call->object].size;
		objects[call->object].size = 0;
		if (call->operation == TRACE_FREE)
			continue;
		if (size > limit) {
			++*refused;
			continue;
		}
		objects[call->object].size = size;
		live += size;
		if (live > *peak)
			*peak = live;
	}
	*last = live;
}

/* Does it work in so much memory? */
static bool suffices(size_t memory)
{
	struct way way = { 0 };
	enum kind done;
	size_t i;

	if (!begin(memory))
		return false;
	for (i = 0; i < trace.nr_calls; i++)
		if (!perform(&trace.calls[i], &way, 0, &done))
			return false;
	return true;
}

/* 0: not in the ample one either. */
static size_t least_memory(uint64_t peak, size_t ample)
{
	size_t low = peak & ~(size_t)15, high = ample;

	if (!suffices(ample))
		return 0;
	while (high - low > high / PRECISE && high - low > 4096) {
		size_t middle = (low + (high - low) / 2) & ~(size_t)15;

		if (high > 4 * low) /* it is rarely much */
			middle = 2 * low;
		if (suffices(middle))
			high = middle;
		else
			low = middle;
	}
	return high;
}

static uint64_t resident(void)
{
	FILE *file = fopen("/proc/self/smaps_rollup", "r");
	unsigned long long kib = 0;
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, "Rss:", 4)) {
			kib = strtoull(line + 4, NULL, 10);
			break;
		}
	if (!file)
		die("/proc/self/smaps_rollup is missing: it needs Linux 4.14");
	fclose(file);
	return kib << 10;
}

struct footprint {
	uint64_t peak, last; /* bytes that are resident, beyond those at the beginning */
	size_t largest; /* block to be had at the end */
	size_t failed;
};

static struct footprint footprint(size_t memory)
{
	struct way way = { .filled = true };
	struct footprint found = { 0 };
	size_t i, step = trace.nr_calls / MOMENTS + 1, low = 0, high = memory;
	uint64_t before, now, object;
	enum kind done;

	resident(); /* stdio's buffers are there now */
	before = resident();
	if (!begin(memory))
		die("%s does not start", a->title);
	for (i = 0; i < trace.nr_calls; i++) {
		found.failed += !perform(&trace.calls[i], &way, (uint8_t)i, &done);
		if (i % step && i + 1 < trace.nr_calls)
			continue;
		now = resident();
		now = now > before ? now - before : 0;
		if (now > found.peak)
			found.peak = now;
		found.last = now;
	}
	if (a->bounded) {
		while (low + 1 < high) {
			size_t middle = low + (high - low) / 2;

			object = middle <= limit ? a->alloc(middle) : 0;
			if (object) {
				a->release(object);
				low = middle;
			} else {
				high = middle;
			}
		}
		found.largest = low;
	}
	release_rest();
	return found;
}

static void count(size_t memory, size_t sample, struct costs *costs)
{
	size_t windows = sample / WINDOW, window = 0, i, first;
	struct way way = { 0 };
	enum kind done;

	if (!windows)
		windows = 1;
	if (!begin(memory))
		die("%s does not start", a->title);
	for (i = 0; i < trace.nr_calls; i++) {
		first = (size_t)((double)trace.nr_calls / (double)windows * (double)window);
		if (i >= first + WINDOW) {
			window++;
			first = (size_t)((double)trace.nr_calls / (double)windows * (double)window);
		}
		way.counted = i >= first && window < windows;
		way.instructions = 0;
		way.copied = 0;
		if (perform(&trace.calls[i], &way, 0, &done) && way.counted && done != KINDS) {
			/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): one that counts has room */
			costs[done].instructions[costs[done].nr++] = (double)way.instructions;
			costs[done].copied += way.copied;
		}
	}
	release_rest();
}

static double seconds(size_t memory)
{
	struct timespec from, to;
	struct way way = { 0 };
	double best = 0, taken;
	unsigned int time;
	enum kind done;
	size_t i;

	for (time = 0; time < TIMES; time++) {
		if (!begin(memory))
			die("%s does not start", a->title);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
		for (i = 0; i < trace.nr_calls; i++)
			perform(&trace.calls[i], &way, 0, &done);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
		release_rest();
		taken = (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
		if (!time || taken < best)
			best = taken;
		if (taken > LONG)
			break;
	}
	return best;
}

/* ------ output ------------------------------------------------------------------------------------ */

static int ascending(const void *left, const void *right)
{
	double l = *(const double *)left, r = *(const double *)right;

	return (l > r) - (l < r);
}

static void print_costs(const char *name, struct costs *costs)
{
	double sum = 0, squares = 0, mean;
	size_t nr = costs->nr, i, rank;

	if (!nr) {
		printf(", \"%s\": null", name);
		return;
	}
	qsort(costs->instructions, nr, sizeof(*costs->instructions), ascending);
	for (i = 0; i < nr; i++)
		sum += costs->instructions[i];
	mean = sum / (double)nr;
	for (i = 0; i < nr; i++)
		squares += (costs->instructions[i] - mean) * (costs->instructions[i] - mean);
	printf(", \"%s\": {\"count\": %zu, \"mean\": %.1f, \"sd\": %.1f, \"max\": %.0f, "
	       "\"copied\": %" PRIu64,
	       name, nr, mean, sqrt(squares / (double)nr), costs->instructions[nr - 1], costs->copied);
	/* of fewer than a thousand it is just the dearest */
	rank = (size_t)ceil(0.999 * (double)nr);
	if (nr < 1000)
		printf(", \"p999\": null}");
	else
		printf(", \"p999\": %.0f}", costs->instructions[rank - 1]);
}

static void print_known(const char *name, bool known, uint64_t value)
{
	if (known)
		printf(", \"%s\": %" PRIu64, name, value);
	else
		printf(", \"%s\": null", name);
}

static void calibrate(void)
{
	struct way way = { .counted = true };

	count_setup();
	do_alloc(a->call, &way, 8);
	call_cost[0] = way.instructions;
	way.instructions = 0;
	do_release(a->call, &way, 8);
	call_cost[1] = way.instructions;
}

int main(int argc, char **argv)
{
	size_t sample = SAMPLE, ample, least = 0, memory;
	struct costs costs[KINDS] = { 0 };
	uint64_t peak, last, refused;
	struct footprint found;
	unsigned int kind;
	const char *wrong;
	double taken;

	if (argc == 5)
		sample = strtoul(argv[4], NULL, 10);
	if ((argc != 4 && argc != 5) || !sample) {
		fprintf(stderr, "usage: replay TRACE ALLOCATOR K [SAMPLE]\n");
		return 1;
	}
	a = allocator_named(argv[2]);
	if (!a)
		die("there is no allocator %s: bench list names them", argv[2]);
	k = (unsigned int)strtoul(argv[3], NULL, 0);
	allocator_preload(a, argv);
	if (trace_load(argv[1], &trace, &wrong))
		die("%s: %s", argv[1], wrong);
	calibrate();

	objects = take(trace.slots * sizeof(*objects));
	for (kind = 0; kind < KINDS; kind++)
		costs[kind].instructions = take(trace.nr_calls * sizeof(double));
	ample = (AMPLE * trace.peak + (4u << 20)) & ~(size_t)(ALIGNMENT - 1);
	arena = take(ample + ALIGNMENT);
	arena += ALIGNMENT - ((uintptr_t)arena & (ALIGNMENT - 1));
	if (!begin(ample))
		die("%s does not start: is its package installed?", a->title);
	if (a->handles && a->handles->max_size)
		limit = a->handles->max_size();
	payload(&peak, &last, &refused);
	memory = (USUAL * peak + (1u << 20)) & ~(size_t)(ALIGNMENT - 1);
	if (a->bounded) {
		least = least_memory(peak, ample);
		if (!least)
			memory = ample;
		else if (least > memory)
			memory = least;
		/* what was touched is not resident any more */
		madvise(arena, ample, MADV_DONTNEED);
	}
	found = footprint(memory);
	count(memory, sample, costs);
	taken = seconds(memory);

	printf("{\"allocator\": \"%s\", \"k\": %u, \"calls\": %zu, \"objects\": %zu, \"slots\": %zu, "
	       "\"refused\": %" PRIu64 ", \"peak\": %" PRIu64 ", \"last\": %" PRIu64,
	       a->name, k, trace.nr_calls, trace.objects, trace.slots, refused, peak, last);
	print_known("least_memory", least, least);
	print_known("memory", a->bounded, memory);
	print_known("largest", a->bounded, found.largest);
	printf(", \"failed\": %zu, \"footprint\": {\"peak\": %" PRIu64 ", \"last\": %" PRIu64
	       "}, \"seconds\": %.6f",
	       found.failed, found.peak, found.last, taken);
	for (kind = 0; kind < KINDS; kind++)
		print_costs(kinds[kind], &costs[kind]);
	printf("}\n");
	return 0;
}
