/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the selftests of CMA areas share: KTAP, eviction on demand, the counters of the areas,
 * volumes, and content that says of every byte whose it is.
 */
#ifndef CMA_UTIL_H
#define CMA_UTIL_H

#include <errno.h>
#include <limits.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/param.h>
#include <sys/types.h>

typedef __u64 u64;
typedef __u32 u32;

#define __printf(fmt, args)	__attribute__((format(printf, fmt, args)))
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define KIB(n)		((size_t)(n) << 10)
#define MIB(n)		((size_t)(n) << 20)

/* A system call that has to succeed for the test to mean anything. */
#define MUST(call)	must((call), #call, __func__, __LINE__)
long must(long ret, const char *call, const char *func, int line);

/* Are the tests to run for hours? GCMA_SOAK=1 says so; options may then say otherwise. */
bool soaking(void);

/* Is each access to memory checked, and all ten times as slow? GCMA_SLOW=1 says so. */
bool slow_kernel(void);

/* Is less of everything to be done? On such a kernel, and where GCMA_SHORT=1 says so. */
bool short_form(void);

/* In that form a test has one of the kinds of what it is for, which is another for the next. */
bool has_turn(unsigned int test, unsigned int kind, unsigned int kinds);

/* What gcma areas have to do during a test, which proves nothing otherwise. */
enum need {
	NEED_LOADS,	/* and stores: what is loaded was stored */
	NEED_STORES,
	NEED_NOTHING,
};

/*
 * KTAP. start() makes the surroundings of the program: private mounts, an empty tmpfs on /tmp
 * that is never swapped (the images of volumes lie there, also of those that hold swap files), a
 * memory cgroup of its own, admission "always" in every gcma area. Each test then runs in a
 * process of its own, which ends in fail(), in skip(), in lack() or by returning; finish() undoes
 * what outlives the program and gives its exit status.
 *
 * skip() is for a test that does not apply: the filesystem has no such operation. lack() is for
 * one that cannot be made here, because the machine lacks what one of the words in resources[]
 * stands for. That is a skip too, unless GCMA_MUST names the word, as whoever made the machine
 * may do: then it is a failure.
 */
void start(unsigned int tests);
__printf(3, 4) void run(void (*fn)(void), enum need need, const char *name, ...);
int finish(void);
__printf(1, 2) void diag(const char *fmt, ...);
__printf(1, 2) noreturn void fail(const char *fmt, ...);
__printf(1, 2) noreturn void skip(const char *fmt, ...);
__printf(2, 3) noreturn void lack(const char *resource, const char *fmt, ...);

extern size_t page_size;

/*
 * A child that lives no longer than the test and works until it is stopped, or waited for; a
 * failure in it fails the test.
 */
pid_t background(void (*fn)(void));
void stop(pid_t pid);
void wait_for(pid_t pid);

/* One number, or one word, of a file of procfs, sysfs or debugfs. */
bool read_word(const char *path, char *word, size_t size);
bool read_number(const char *path, unsigned long *number);
bool multi_gen(void);		/* is reclaim the multi-generational one? */
unsigned long event_in(const char *path, const char *key);	/* one of several numbers */
unsigned long vm_event(const char *key);
/* An event of /proc/vmstat is what the areas' files have, whoever is at work meanwhile */
void event_expect(const char *key, unsigned long (*count)(const char *name), const char *name);
unsigned long memory_kib(const char *key);			/* of /proc/meminfo, with colon */
__printf(2, 3) int write_file(const char *path, const char *fmt, ...);
#define SHELL_LOG	"/tmp/shell.log"	/* the output of the last shell() */
__printf(1, 2) int shell(const char *fmt, ...);
int make_swap(const char *path);	/* a device or a file */
void run_on(int cpu);		/* this thread; skips the test if there is none */
u64 now_ns(void);
u64 random_below(u64 *state, u64 limit);

/*
 * Failing allocations: of those of this thread one in a hundred fails while it asks for that.
 * prepare_faults() comes first in each process that does and returns false if the kernel cannot
 * inject them.
 */
bool prepare_faults(void);
void fail_allocations(bool on);

/* The flags of a frame, and whether and where page tables of this process have a page in swap. */
#define FLAG(kpf)	(1ull << (kpf))
u64 page_flags(u64 pfn);
bool is_swapped(const void *at);
unsigned int swap_type(const void *at);		/* which device */
unsigned long swap_offset(const void *at);	/* which slot of it */

/*
 * Tracepoints. events_begin() turns those of a system on and forgets what was traced before;
 * events() counts those of a name since then whose fields are as @is says.
 */
void events_begin(const char *system);
unsigned long events(const char *name, bool (*is)(const char *fields));
void events_end(const char *system);

/*
 * The kernel's log, open at its beginning (SEEK_SET) or its end (SEEK_END). log_has() reads on
 * from there: is there a line with both texts?
 */
int log_open(int whence);
bool log_has(int log, const char *text, const char *more);

/*
 * pread() or pwrite() while they fail, which they do not for ever: until all is done, of which
 * there was a part before one failed. Filesystems may call it an I/O error.
 */
ssize_t transfer_failing(int file, bool write, char *at, size_t len, off_t off);

/* The areas. counter() is the sum over all gcma areas, 0 without one. */
#define CMA_SYSFS	"/sys/kernel/mm/cma"
#define CMA_DEBUGFS	"/sys/kernel/debug/cma"
bool have_gcma(void);
void need_gcma(void);
unsigned long counter(const char *name);

/*
 * Writes to a file of all gcma areas, and of others that have it, and returns the last error, if
 * there is one. finish() restores admission, swap_policy, dirty_max and scheme; areas_restore()
 * does it earlier.
 */
__printf(2, 3) int areas_write(const char *name, const char *fmt, ...);
void areas_restore(const char *name);
bool areas_have(const char *name, const char *wanted);	/* one of them */
bool areas_at_most(const char *some, const char *all);	/* in each gcma area */

/* One area to allocate from. */
struct area {
	char name[NAME_MAX + 1];
	bool gcma;
	unsigned long pages;
};

void need_area(struct area *area);	/* a gcma area if there is one, else the first */
void need_policy(struct area *area, const char *policy);	/* which is a resource, too */
unsigned long area_number(const struct area *area, const char *name);
unsigned long area_debug(const struct area *area, const char *name);
unsigned long area_free(const struct area *area);

/* How many frames of the area are used for what: see Documentation/admin-guide/mm/cma_policy.rst */
struct letters {
	unsigned long of[UCHAR_MAX + 1];
};

struct letters area_letters(const struct area *area);
int area_heap(const struct area *area);
int heap_alloc(int heap, size_t bytes);

#define CGROUP_ROOT	"/tmp/cgroup"	/* cgroup v2, with the memory controller */
const char *cgroup_path(void);		/* of this process, and all that it starts */

/*
 * The shrinker of nodes that have nothing but shadows looks at @nr of them: those of slots are
 * nobody's, those of files are of the group that read them.
 */
void shrink_nodes(unsigned long nr);

/* Eviction of everything that a file has in the page cache, by reclaim. */
struct cachestat {
	u64 nr_cache;
	u64 nr_dirty;
	u64 nr_writeback;
	u64 nr_evicted;
	u64 nr_recently_evicted;
};

void page_cache_state(int fd, struct cachestat *cs);
bool push_out(size_t bytes);		/* false if there is less to reclaim */
/* Pages of anonymous memory, or of tmpfs, that are mapped or in the swap cache */
unsigned long resident_pages(void *at, size_t bytes);
void flush_statistics(void);		/* of the group, if they are many: else up to 2 s late */
unsigned long evict(int fd);		/* returns the pages stored meanwhile */
void evict_to_area(int fd);		/* fails if gcma did not take them all */
pid_t reclaim_all_the_time(void);
void drop_cached(int what);

/* Content: every 8 bytes name the file, the version and the offset they were written for. */
void stamp(void *buf, off_t off, size_t len, unsigned int file, unsigned int version);
bool differs(const char *what, off_t off, const void *got, const void *want, size_t len);
void expect(const char *what, off_t off, const void *got, const void *want, size_t len);
void pread_all(int fd, void *buf, size_t len, off_t off);
void pwrite_all(int fd, const void *buf, size_t len, off_t off);
void *page_buffer(size_t len);

/* Volumes: filesystems on loop devices whose images lie in memory. */
struct volume_kind {
	const char *name;
	const char *type;
	const char *mkfs;	/* format: the device; read-only kinds: the image and its source */
	bool readonly;
	bool variant;		/* of a kind above it: random tests need not be as long */
};

extern const struct volume_kind volume_kinds[];
extern const unsigned int nr_volume_kinds;

struct volume {
	const struct volume_kind *kind;
	char image[32];
	char dev[32];
	char dir[32];
	int loop;		/* open loop device, -1 without */
	char missing[160];	/* why there is no volume */
};

#define DATA_BYTES	MIB(1)	/* "data" on a read-only volume is stamp(file 1, version 1), */
#define LINKED		"linked" /* and so is that, which has two names */

bool loop_open(struct volume *v, size_t bytes);
void volume_open(struct volume *v, const struct volume_kind *kind);
void volume_close(struct volume *v);
bool volume_mount(struct volume *v);
void volume_umount(struct volume *v);
void need_volume(const struct volume *v);

/*
 * How often pages may become dirty that could not leave before they were written to: once more
 * each, if the filesystem puts off to write it; on f2fs as long as a checkpoint is under way. On
 * a @v of NULL nobody knows.
 */
unsigned long dirtied_at_most(const struct volume *v, unsigned long stay);
int volume_file(const struct volume *v, const char *name, int flags);
off_t data_offset(int fd, size_t bytes);	/* on the device; fails if in pieces */
unsigned long disk_reads(const struct volume *v);	/* bytes */

#endif
