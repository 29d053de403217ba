/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Looks for a malloc or a free that takes more instructions than tools/ceilings.h says: makes heaps by
 * random operations, counts one more, and keeps what made it dearer (hill climbing). In KTAP.
 *
 *	search_ceilings [SECONDS [SEED]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../bench/count.h"
#include "../bench/xorshift.h"
#include "../tools/ceilings.h"
#include "compactfit.h"

#define SECONDS 60
#define STEPS 96 /* of a history */
#define LIVE 65536u
#define AT_LEAST 16 /* histories of each climb, however slow the machine */
#define PATIENCE 250 /* histories in a row that are no dearer: begin anew */
#define FREED 64u /* handles of freed objects that are kept, to be freed again */
#define CLASSES 4u /* size-classes that a history is about */
#define ENGINES (sizeof(engines) / sizeof(engines[0]))

enum kind {
	TAKE, /* one object; rows, or pages of them */
	TAKE_PINNED,
	TAKE_MANY,
	GIVE,
	GIVE_MANY,
	PIN,
	PIN_MANY,
	UNPIN,
	RESIZE,
	REMOTE,
	USE_UP_SLOTS,
	USE_UP_PAGES,
	KINDS,
	GIVE_AGAIN = KINDS, /* the last step's alone */
};

struct step {
	uint8_t kind;
	uint8_t class; /* one of those of the history */
	uint16_t which; /* which object, or how many */
};

struct history {
	uint16_t classes[CLASSES];
	uint16_t nr;
	struct step steps[STEPS];
	struct step last; /* TAKE, GIVE or GIVE_AGAIN: what is counted */
};

struct object {
	cf_handle handle;
	uint8_t class;
	bool pinned;
};

static struct cf_heap *heap;
static void *memory;
static struct object *live;
static uint32_t nr_live;
static uint64_t seed;
static uint64_t call[2]; /* instructions of a call */
static bool pins;
static size_t beside; /* of objects that were freed remotely, the largest size; 0: none */
static cf_handle freed[FREED]; /* the last ones */
static uint32_t nr_freed;
static struct {
	uint64_t most;
	uint64_t tried;
	struct history history;
} found[OPERATIONS];

static uint32_t below(uint32_t limit)
{
	return (uint32_t)((xorshift(&seed) >> 32) * limit >> 32);
}

/* ------ a history --------------------------------------------------------------------------------- */

static size_t size_of(const struct history *history, uint8_t class)
{
	return cf_class_size(heap, history->classes[class]);
}

static bool take(const struct history *history, uint8_t class, bool pinned)
{
	struct object *object = &live[nr_live];

	if (nr_live == LIVE || cf_malloc(heap, size_of(history, class), &object->handle))
		return false;
	object->class = class;
	object->pinned = pinned;
	if (pinned) {
		cf_pin(heap, object->handle);
		pins = true;
	}
	nr_live++;
	return true;
}

static void forget(uint32_t which)
{
	live[which] = live[--nr_live];
}

static void give(uint32_t which)
{
	if (cf_free(heap, live[which].handle))
		return;
	freed[nr_freed++ % FREED] = live[which].handle;
	forget(which);
}

static void pin(uint32_t which)
{
	if (!live[which].pinned && !cf_pin(heap, live[which].handle)) {
		live[which].pinned = true;
		pins = true;
	}
}

/* Use up all slots that there are but @left. */
static void use_up_slots(const struct history *history, const struct engine *engine, uint8_t class,
			 uint32_t left)
{
	uint32_t slots = (uint32_t)cf_max_contiguous(heap) / (engine->config.wide ? 8 : 4);
	struct cf_stats stats;

	if (engine->config.engine == CF_NONMOVING)
		return;
	cf_get_stats(heap, &stats);
	left = (uint32_t)(stats.handle_pages * slots - stats.objects > left ?
			  stats.handle_pages * slots - stats.objects - left : 0);
	while (left-- && take(history, class, false))
		;
}

/* All pages but @left. */
static void use_up_pages(const struct history *history, uint32_t left)
{
	struct cf_stats stats;

	for (;;) {
		cf_get_stats(heap, &stats);
		if (stats.free_pages <= left || !take(history, CLASSES - 1, false))
			break;
	}
}

static void follow(const struct history *history, const struct engine *engine, struct step step)
{
	uint32_t which = nr_live ? step.which % nr_live : 0, many = step.which % 2200, i;
	size_t size;

	switch (step.kind) {
	case TAKE:
	case TAKE_PINNED:
		take(history, step.class, step.kind == TAKE_PINNED);
		break;
	case TAKE_MANY: /* often whole rows or pages, less a few, or one more */
		if (many & 1)
			many = cf_class_per_page(heap, history->classes[step.class]) + many % 5 - 2;
		else if (many & 2)
			many = many / 32 * 32 + 1;
		for (i = 0; i < many && take(history, step.class, step.which >> 15); i++)
			;
		break;
	case GIVE:
		if (nr_live)
			give(which);
		break;
	case GIVE_MANY:
		for (i = 0; i < many && which < nr_live; i++)
			give(which);
		break;
	case PIN:
		if (nr_live)
			pin(which);
		break;
	case PIN_MANY:
		for (i = 0; i < many && which + i < nr_live; i++)
			pin(which + i);
		break;
	case UNPIN:
		if (nr_live && live[which].pinned && !cf_unpin(heap, live[which].handle))
			live[which].pinned = false;
		break;
	case RESIZE:
		if (nr_live && !cf_realloc(heap, live[which].handle, size_of(history, step.class)))
			live[which].class = step.class;
		break;
	case REMOTE:
		if (!nr_live)
			break;
		size = cf_usable_size(heap, live[which].handle);
		if (!cf_free_remote(heap, live[which].handle)) {
			if (beside < size)
				beside = size;
			forget(which);
		}
		break;
	case USE_UP_SLOTS:
		use_up_slots(history, engine, step.class, step.which % 4);
		break;
	case USE_UP_PAGES:
		use_up_pages(history, step.which % 4);
		break;
	}
}

/* ------ counting ---------------------------------------------------------------------------------- */

__attribute__((noinline)) static int no_malloc(struct cf_heap *of, size_t size, cf_handle *handle)
{
	__asm__ volatile("" ::"r"(of), "r"(size), "r"(handle) : "memory");
	return 0;
}

__attribute__((noinline)) static int no_free(struct cf_heap *of, cf_handle handle)
{
	__asm__ volatile("" ::"r"(of), "r"(handle.slot) : "memory");
	return 0;
}

__attribute__((noinline)) static uint64_t count_malloc(int (*function)(struct cf_heap *, size_t,
									cf_handle *),
						       size_t size, cf_handle *handle)
{
	count_begin();
	function(heap, size, handle);
	count_end();
	return count_taken();
}

__attribute__((noinline)) static uint64_t count_free(int (*function)(struct cf_heap *, cf_handle),
						     cf_handle handle, int *status)
{
	int result;

	count_begin();
	result = function(heap, handle);
	count_end();
	*status = result;
	return count_taken();
}

/* What the history's last operation takes, beyond what its block-frames do; and which kind it is of. */
static uint64_t cost_of(const struct history *history, const struct engine *engine,
			enum operation *operation)
{
	struct cf_stats before, after;
	uint64_t cost, blocks;
	cf_handle handle;
	uint32_t i, which;
	size_t size;
	int status;

	heap = cf_init(memory, CEILINGS_MEMORY, &engine->config);
	nr_live = 0;
	nr_freed = 0;
	beside = 0;
	pins = false;
	for (i = 0; i < history->nr; i++)
		follow(history, engine, history->steps[i]);
	if (history->last.kind == TAKE) {
		size = size_of(history, history->last.class);
		cost = count_malloc(cf_malloc, size, &handle) - call[0];
		*operation = pins ? PINNED_MALLOC : MALLOC;
	} else if (history->last.kind == GIVE_AGAIN ? nr_freed : nr_live) {
		if (history->last.kind == GIVE_AGAIN) {
			handle = freed[history->last.which % (nr_freed < FREED ? nr_freed : FREED)];
		} else {
			which = history->last.which % nr_live;
			handle = live[which].handle;
		}
		/* it may have been larger once; and that of a stale handle is another object's in time */
		size = cf_usable_size(heap, handle);
		cf_get_stats(heap, &before);
		cost = count_free(cf_free, handle, &status) - call[1];
		cf_get_stats(heap, &after);
		*operation = before.moves == after.moves ? FREE : FREE_MOVING;
		if (pins)
			*operation = PINNED_FREE;
		if (status)
			*operation = REFUSED_FREE;
	} else {
		return 0;
	}
	/* the operation may have freed that one besides */
	blocks = (size > beside ? size : beside) / CF_BLOCK_SIZE;
	blocks *= engine->ceiling[*operation].block;
	return cost > blocks ? cost - blocks : 0;
}

/* ------ climbing ---------------------------------------------------------------------------------- */

static struct step any_step(bool pinning)
{
	struct step step;

	do {
		step.kind = (uint8_t)below(KINDS);
	} while (!pinning && (step.kind == TAKE_PINNED || step.kind == PIN ||
			      step.kind == PIN_MANY || step.kind == UNPIN));
	step.class = (uint8_t)below(CLASSES);
	step.which = (uint16_t)below(65536);
	if (!pinning)
		step.which &= 0x7fff;
	return step;
}

static struct history any_history(bool pinning)
{
	struct history history = { .nr = (uint16_t)(2 + below(STEPS / 4)) };
	uint32_t i;

	for (i = 0; i < CLASSES; i++)
		history.classes[i] = (uint16_t)below(cf_class_count(heap));
	history.classes[CLASSES - 1] = (uint16_t)(cf_class_count(heap) - 1);
	for (i = 0; i < history.nr; i++)
		history.steps[i] = any_step(pinning);
	history.last = any_step(pinning);
	return history;
}

/* A few changes: of a step, of one number of it; a step more, one less, one elsewhere. */
static void change(struct history *history, bool pinning)
{
	uint32_t changes = 1 + below(4), at, to;

	while (changes--) {
		at = below(history->nr);
		switch (below(8)) {
		case 0:
			history->steps[at] = any_step(pinning);
			break;
		case 1:
			history->steps[at].which =
				(uint16_t)((history->steps[at].which & 0x8000) |
					   ((history->steps[at].which + below(5) - 2) & 0x7fff));
			break;
		case 2:
			history->steps[at].class = (uint8_t)below(CLASSES);
			break;
		case 3:
			if (history->nr < STEPS) {
				memmove(&history->steps[at + 1], &history->steps[at],
					(history->nr - at) * sizeof(history->steps[0]));
				history->nr++;
				history->steps[at] = any_step(pinning);
			}
			break;
		case 4:
			if (history->nr > 1) {
				history->nr--;
				memmove(&history->steps[at], &history->steps[at + 1],
					(history->nr - at) * sizeof(history->steps[0]));
			}
			break;
		case 5:
			to = below(history->nr);
			history->steps[to] = history->steps[at];
			break;
		case 6:
			history->last.which = (uint16_t)below(0x8000);
			break;
		default:
			history->classes[below(CLASSES - 1)] =
				(uint16_t)below(cf_class_count(heap));
			break;
		}
	}
}

static void note(enum operation operation, uint64_t cost, const struct history *history)
{
	found[operation].tried++;
	if (cost > found[operation].most) {
		found[operation].most = cost;
		found[operation].history = *history;
	}
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Climb from a new history until nothing of the operation wanted is dearer for long, or time is up. */
static void climb(const struct engine *engine, enum operation wanted, double end)
{
	bool pinning = wanted >= PINNED_MALLOC;
	enum operation operation = MALLOC;
	struct history best, other;
	uint64_t most = 0, cost;
	uint32_t tries;

	heap = cf_init(memory, CEILINGS_MEMORY, &engine->config);
	best = any_history(pinning);
	best.last.kind = wanted == MALLOC || wanted == PINNED_MALLOC ? TAKE : GIVE;
	if (wanted == REFUSED_FREE)
		best.last.kind = GIVE_AGAIN;
	for (tries = 0; tries < PATIENCE && (tries < AT_LEAST || now() < end); tries++) {
		other = best;
		change(&other, pinning);
		cost = cost_of(&other, engine, &operation);
		if (!cost)
			continue;
		note(operation, cost, &other);
		if (cost > most)
			tries = 0;
		/* whatever it is at first; from then on of the kind that is wanted */
		if (cost >= most || operation == wanted) {
			if (operation == wanted && cost < most)
				continue;
			most = operation == wanted ? cost : 0;
			best = other;
		}
	}
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? strtod(argv[1], NULL) : SECONDS, end;
	static const char *const names[OPERATIONS] = CEILINGS_NAMES;
	size_t number = 0, wrong = 0, nr = ENGINES, e, operation;
	double slice = seconds / (double)(nr * OPERATIONS);
	cf_handle handle = { 0, 0 };
	int status;

	seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	memory = aligned_alloc(CEILINGS_ALIGNMENT, CEILINGS_MEMORY);
	live = calloc(LIVE, sizeof(*live));
	memset(memory, 0x5a, CEILINGS_MEMORY);
	count_setup();
	call[0] = count_malloc(no_malloc, 8, &handle);
	call[1] = count_free(no_free, handle, &status);
	printf("TAP version 14\n1..%zu\n", ENGINES * OPERATIONS);
	for (e = 0; e < ENGINES; e++) {
		memset(found, 0, sizeof(found));
		for (operation = 0; operation < OPERATIONS; operation++)
			for (end = now() + slice; engines[e].ceiling[operation].constant &&
						  (now() < end || !found[operation].tried);)
				climb(&engines[e], (enum operation)operation, end);
		for (operation = 0; operation < OPERATIONS; operation++) {
			unsigned int ceiling = engines[e].ceiling[operation].constant;
			bool holds = !found[operation].tried == !ceiling &&
				     found[operation].most <= ceiling;

			printf("# %llu tried, the dearest takes %llu\n",
			       (unsigned long long)found[operation].tried,
			       (unsigned long long)found[operation].most);
			printf("%sok %zu %s, %s: a search finds none above %u instructions\n",
			       holds ? "" : "not ", ++number, engines[e].name, names[operation],
			       ceiling);
			wrong += !holds;
		}
		fflush(stdout);
	}
	free(memory);
	free(live);
	return wrong != 0;
}
