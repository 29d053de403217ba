/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Records the allocations of a program, to be loaded before its libraries:
 *
 *	CF_TRACE=/folder LD_PRELOAD=/path/libcompactfit-record.so program
 *
 * writes /folder/program.PROCESS.cftrace, and a file more for each process that it starts; trace.h
 * describes them. Without CF_TRACE nothing is recorded. Linux, any libc or allocator that can be preloaded.
 *
 * The file is written through a shared mapping: so what was recorded is there however the process
 * ends, be it by _exit(), exec or SIGKILL. No descriptor stays open that the program could close or
 * mistake for one of its own; if the file cannot grow, recording ends and the program goes on.
 *
 * Calls are recorded one after the other, under a lock: an allocation after it was made, a free before.
 * So an address is never that of two objects in the trace. What an allocator or this library allocates for
 * itself meanwhile is not recorded.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "trace.h"

#define EXPORT __attribute__((visibility("default")))
#define WINDOW (256u << 10) /* bytes of the file that are mapped at once */
#define RECORD_MAX 64u /* more than two records can have */
#define FIRST_ENTRIES 4096u /* of the table; a power of two */
#define EARLY_BYTES 65536u

/* ------ the allocator that is recorded ------------------------------------------------------------ */

static struct {
	void *(*malloc)(size_t size);
	void *(*calloc)(size_t count, size_t size);
	void *(*realloc)(void *object, size_t size);
	void (*free)(void *object);
	int (*posix_memalign)(void **object, size_t align, size_t size);
	void *(*aligned_alloc)(size_t align, size_t size);
	void *(*memalign)(size_t align, size_t size);
	void *(*valloc)(size_t size);
	void *(*pvalloc)(size_t size);
} real;

static bool resolved;
static char early[EARLY_BYTES]; /* for what dlsym() allocates; zero, never used again */
static size_t early_used;

/* In this thread: nothing is to be recorded now. */
static __thread bool busy __attribute__((tls_model("initial-exec")));
static __thread unsigned int thread __attribute__((tls_model("initial-exec"))); /* 1 and up; 0: new */

#define RESOLVE(name) (*(void **)&real.name = dlsym(RTLD_NEXT, #name))

/* Is there an allocator to be called? The first call comes before there are threads. */
static bool ready(void)
{
	static bool resolving;

	if (resolved)
		return true;
	if (resolving)
		return false;
	resolving = true;
	RESOLVE(malloc);
	RESOLVE(calloc);
	RESOLVE(realloc);
	RESOLVE(free);
	RESOLVE(posix_memalign);
	RESOLVE(aligned_alloc);
	RESOLVE(memalign);
	RESOLVE(valloc);
	RESOLVE(pvalloc);
	resolved = true;
	return true;
}

static bool is_early(const void *object)
{
	return (uintptr_t)object - (uintptr_t)early < EARLY_BYTES;
}

static void *early_alloc(size_t size)
{
	size_t at = early_used;

	if (size > EARLY_BYTES - 16 - at)
		return NULL;
	early_used = (at + size + 15) & ~(size_t)15;
	return early + at;
}

/* ------ live objects: a table of addresses, open addressing --------------------------------------- */

struct entry {
	uintptr_t address; /* 0: none */
	uint64_t number;
	uint64_t size;
};

static struct entry *table;
static size_t entries, used; /* entries is a power of two */

static size_t place_of(uintptr_t address)
{
	return (size_t)((address * 0x9e3779b97f4a7c15u) >> 20) & (entries - 1);
}

/* The object's place, or the empty one where it would be. */
static size_t find(uintptr_t address)
{
	size_t at = place_of(address);

	while (table[at].address && table[at].address != address)
		at = (at + 1) & (entries - 1);
	return at;
}

static bool enlarge(void)
{
	size_t before = entries, i;
	struct entry *old = table, *more;

	entries = entries ? 2 * entries : FIRST_ENTRIES;
	more = mmap(NULL, entries * sizeof(*more), PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (more == MAP_FAILED) {
		entries = before;
		return false;
	}
	table = more;
	for (i = 0; i < before; i++)
		if (old[i].address)
			table[find(old[i].address)] = old[i];
	if (old)
		munmap(old, before * sizeof(*old));
	return true;
}

/* Empty a place, and close the gap: no entry may lie behind an empty place on its way. */
static void empty(size_t hole)
{
	size_t at = hole;

	for (;;) {
		at = (at + 1) & (entries - 1);
		if (!table[at].address)
			break;
		if (((at - place_of(table[at].address)) & (entries - 1)) >=
		    ((at - hole) & (entries - 1))) {
			table[hole] = table[at];
			hole = at;
		}
	}
	table[hole].address = 0;
	used--;
}

/* ------ the file ---------------------------------------------------------------------------------- */

static enum {
	UNKNOWN, /* whether there is to be a file */
	FORKED, /* there is to be one, of what the table holds to begin with */
	RECORDING,
	OFF,
} state;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char path[PATH_MAX];
static uint8_t *window, *at;
static off_t window_offset; /* in the file */
static uint64_t next_number;
static unsigned int threads, current_thread;

/* May the file have so many bytes? To ask for more than that would be SIGXFSZ. */
static bool may_grow(off_t size)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_FSIZE, &limit) && (rlim_t)size <= limit.rlim_cur;
}

/* Map what follows; there is room for two records then. */
static bool advance(void)
{
	long page = sysconf(_SC_PAGESIZE);
	off_t offset = window_offset + (window ? at - window : 0);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	void *map = MAP_FAILED;

	if (window)
		munmap(window, WINDOW);
	window = NULL;
	window_offset = offset & ~((off_t)page - 1);
	if (fd >= 0 && may_grow(window_offset + WINDOW) &&
	    !posix_fallocate(fd, 0, window_offset + WINDOW))
		map = mmap(NULL, WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED, fd, window_offset);
	if (fd >= 0)
		close(fd);
	if (map == MAP_FAILED) {
		state = OFF;
		return false;
	}
	window = map;
	at = window + (offset - window_offset);
	return true;
}

static void put_number(uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		*at++ = (uint8_t)(value | 0x80);
	*at++ = (uint8_t)value;
}

/* Begin a record. The byte that says what it is comes last, see end_record(). */
static uint8_t *begin_record(void)
{
	if (at + RECORD_MAX > window + WINDOW && !advance())
		return NULL;
	if (!thread)
		thread = ++threads;
	if (thread - 1 != current_thread) {
		current_thread = thread - 1;
		*at++ = TRACE_THREAD;
		put_number(current_thread);
	}
	return at++;
}

/* Whoever reads the file of a process that died sees the whole record or its end. */
static void end_record(uint8_t *first, enum trace_operation operation)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	*first = (uint8_t)operation;
}

static void put_free(uint64_t number)
{
	uint8_t *first = begin_record();

	if (!first)
		return;
	put_number(next_number - number);
	end_record(first, TRACE_FREE);
}

static void put_alloc(enum trace_operation operation, size_t align, size_t size)
{
	uint8_t *first = begin_record();

	if (!first)
		return;
	if (operation == TRACE_ALIGNED)
		put_number(align ? (uint64_t)__builtin_ctzl(align) : 0);
	put_number(size);
	end_record(first, operation);
	next_number++;
}

static void put_header(void)
{
	uint32_t numbers[4] = { TRACE_VERSION, 0, (uint32_t)getpid(), (uint32_t)getppid() };
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t length = 0, i;

	if (fd >= 0) {
		/* a page of it says enough */
		length = read(fd, at + TRACE_FIXED, 4000);
		close(fd);
	}
	numbers[1] = TRACE_FIXED + (uint32_t)(length > 0 ? length : 0);
	memcpy(at, TRACE_MAGIC, 8);
	for (i = 0; i < 16; i++)
		at[8 + i] = (uint8_t)(numbers[i / 4] >> 8 * (i % 4));
	at += numbers[1];
}

/* A new file in the folder. One process has several if it calls exec, each with its own number. */
static bool create(const char *folder)
{
	unsigned int number;
	int fd = -1;

	for (number = 1; fd < 0 && number < 10000; number++) {
		char more[16] = "";
		int length;

		if (number > 1)
			snprintf(more, sizeof(more), ".%u", number);
		length = snprintf(path, sizeof(path), "%s/%s.%d%s" TRACE_SUFFIX, folder,
				  program_invocation_short_name, (int)getpid(), more);
		if (length >= (int)sizeof(path))
			return false;
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		if (fd < 0 && errno != EEXIST)
			return false;
	}
	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static void before_fork(void)
{
	pthread_mutex_lock(&mutex);
	busy = true; /* handlers of others may allocate */
}

static void after_fork(void)
{
	busy = false;
	pthread_mutex_unlock(&mutex);
}

static void after_fork_in_child(void)
{
	if (state == RECORDING) {
		munmap(window, WINDOW);
		window = NULL;
		state = FORKED;
	}
	after_fork();
}

/* Open the file if there is to be one. Returns whether there is. */
static bool start(void)
{
	static char folder[PATH_MAX];
	bool forked = state == FORKED;
	const char *wanted;
	size_t i;

	if (!forked) {
		if (!environ) /* libc is not there yet */
			return false;
		wanted = getenv("CF_TRACE");
		state = OFF;
		if (!wanted || !realpath(wanted, folder) || !enlarge())
			return false;
		pthread_atfork(before_fork, after_fork, after_fork_in_child);
	}
	state = OFF;
	if (!create(folder))
		return false;
	window_offset = 0;
	threads = 0;
	thread = 0;
	current_thread = 0;
	next_number = 0;
	if (!advance())
		return false;
	state = RECORDING;
	put_header();
	for (i = 0; i < entries && state == RECORDING; i++)
		if (table[i].address) {
			table[i].number = next_number;
			put_alloc(TRACE_ALLOC, 0, table[i].size);
		}
	return state == RECORDING;
}

/* ------ what is recorded -------------------------------------------------------------------------- */

/* Returns whether to record; then unlock() has to be called. */
static bool lock(void)
{
	if (state == OFF)
		return false;
	pthread_mutex_lock(&mutex);
	if (state == RECORDING || (state != OFF && start()))
		return true;
	pthread_mutex_unlock(&mutex);
	return false;
}

static void unlock(void)
{
	pthread_mutex_unlock(&mutex);
}

/* The table learns of an object at an address. */
static void remember(void *object, uint64_t number, size_t size)
{
	size_t place = find((uintptr_t)object);

	if (table[place].address) {
		/* freed in a way that is not recorded, or it would not be here again */
		put_free(table[place].number);
	} else if (2 * ++used > entries) {
		if (!enlarge()) {
			state = OFF;
			return;
		}
		place = find((uintptr_t)object);
	}
	table[place] = (struct entry){ (uintptr_t)object, number, size };
}

/* Returns the object, for its callers' sake. */
static void *note_alloc(enum trace_operation operation, void *object, size_t align, size_t size)
{
	int error = errno;

	if (object && lock()) {
		remember(object, next_number, size);
		put_alloc(operation, align, size);
		unlock();
	}
	errno = error;
	return object;
}

static void note_free(void *object)
{
	int error = errno;
	size_t place;

	if (object && lock()) {
		place = find((uintptr_t)object);
		if (table[place].address) {
			put_free(table[place].number);
			empty(place);
		}
		unlock();
	}
	errno = error;
}

/* Until the new address is known nobody else can have the old one in the table. */
static struct entry forget(void *object)
{
	struct entry entry = { 0 };
	int error = errno;
	size_t place;

	if (lock()) {
		place = find((uintptr_t)object);
		if (table[place].address) {
			entry = table[place];
			empty(place);
		}
		unlock();
	}
	errno = error;
	return entry;
}

static void note_resize(struct entry old, void *object, size_t size)
{
	int error = errno;
	uint8_t *first;

	if (!old.address) {
		note_alloc(TRACE_ALLOC, object, 0, size);
	} else if (lock()) {
		if (object) {
			remember(object, old.number, size);
			first = begin_record();
			if (first) {
				put_number(next_number - old.number);
				put_number(size);
				end_record(first, TRACE_RESIZE);
			}
		} else if (!size) {
			put_free(old.number);
		} else {
			remember((void *)old.address, old.number, old.size);
		}
		unlock();
	}
	errno = error;
}

/* ------ what the program calls -------------------------------------------------------------------- */

EXPORT void *malloc(size_t size)
{
	void *object;

	if (!ready())
		return early_alloc(size);
	if (busy)
		return real.malloc(size);
	busy = true;
	object = note_alloc(TRACE_ALLOC, real.malloc(size), 0, size);
	busy = false;
	return object;
}

EXPORT void *calloc(size_t count, size_t size)
{
	void *object;

	if (!ready())
		return early_alloc(count * size); /* dlsym()'s: it does not overflow */
	if (busy)
		return real.calloc(count, size);
	busy = true;
	object = note_alloc(TRACE_ZEROED, real.calloc(count, size), 0, count * size);
	busy = false;
	return object;
}

EXPORT void free(void *object)
{
	if (is_early(object) || !ready())
		return;
	if (!busy) {
		busy = true;
		note_free(object);
		busy = false;
	}
	real.free(object);
}

EXPORT void *realloc(void *object, size_t size)
{
	struct entry old;
	void *moved;

	if (!object)
		return malloc(size);
	if (is_early(object)) {
		size_t room = (size_t)(early + EARLY_BYTES - (char *)object);

		moved = malloc(size);
		if (moved)
			memcpy(moved, object, size < room ? size : room);
		return moved;
	}
	if (busy)
		return real.realloc(object, size);
	busy = true;
	old = forget(object);
	moved = real.realloc(object, size);
	note_resize(old, moved, size);
	busy = false;
	return moved;
}

EXPORT void *reallocarray(void *object, size_t count, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(object, bytes);
}

EXPORT int posix_memalign(void **object, size_t align, size_t size)
{
	int status;

	if (!ready())
		return ENOMEM;
	if (busy)
		return real.posix_memalign(object, align, size);
	busy = true;
	status = real.posix_memalign(object, align, size);
	if (!status)
		note_alloc(TRACE_ALIGNED, *object, align, size);
	busy = false;
	return status;
}

/* @call: what allocates */
#define ALIGNED(call, align, size)                                           \
	do {                                                                 \
		void *object;                                                \
                                                                             \
		if (!ready())                                                \
			return NULL;                                         \
		if (busy)                                                    \
			return call;                                         \
		busy = true;                                                 \
		object = note_alloc(TRACE_ALIGNED, call, align, size);       \
		busy = false;                                                \
		return object;                                               \
	} while (0)

EXPORT void *aligned_alloc(size_t align, size_t size)
{
	ALIGNED(real.aligned_alloc(align, size), align, size);
}

EXPORT void *memalign(size_t align, size_t size)
{
	ALIGNED(real.memalign(align, size), align, size);
}

EXPORT void *valloc(size_t size)
{
	ALIGNED(real.valloc(size), (size_t)sysconf(_SC_PAGESIZE), size);
}

EXPORT void *pvalloc(size_t size)
{
	ALIGNED(real.pvalloc(size), (size_t)sysconf(_SC_PAGESIZE), size);
}
