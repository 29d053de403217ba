// SPDX-License-Identifier: GPL-2.0-only
/* What the selftests of CMA areas share; see cma_util.h. */
#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/dma-heap.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#ifdef __GLIBC__
#if __GLIBC_PREREQ(2, 35)
#include <sys/rseq.h>
#endif
#endif
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cma_util.h"

#define EXIT_SKIP	4
#define TEST_SECONDS	300
#define SLOW_SECONDS	900
#define SOAK_SECONDS	7200
#define VOLUME_BYTES	MIB(96)
#define MAX_AREAS	16
#define EVICT_MORE	2048	/* pages */
#define EVICT_GENTLE	20	/* tries */
#define EVICT_TRIES	30

#ifndef __NR_cachestat
#define __NR_cachestat	451
#endif

size_t page_size;

/* Words and numbers */

void diag(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	printf("# ");
	vprintf(fmt, args);
	printf("\n");
	fflush(stdout);
	va_end(args);
}

bool read_word(const char *path, char *word, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len;

	if (fd < 0)
		return false;
	len = read(fd, word, size - 1);
	close(fd);
	if (len < 0)
		return false;
	word[len] = '\0';
	word[strcspn(word, "\n")] = '\0';
	return true;
}

bool read_number(const char *path, unsigned long *number)
{
	char word[64], *end;

	if (!read_word(path, word, sizeof(word)))
		return false;
	*number = strtoul(word, &end, 0);
	return end != word;
}

bool multi_gen(void)
{
	unsigned long enabled;

	return read_number("/sys/kernel/mm/lru_gen/enabled", &enabled) && (enabled & 1);
}

int write_file(const char *path, const char *fmt, ...)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int ret = 0;
	va_list args;

	if (fd < 0)
		return -errno;
	va_start(args, fmt);
	if (vdprintf(fd, fmt, args) < 0)
		ret = -errno;
	va_end(args);
	close(fd);
	return ret;
}

unsigned long event_in(const char *path, const char *key)
{
	FILE *file = fopen(path, "re");
	unsigned long number;
	char name[128];

	if (!file)
		fail("%s: %s", path, strerror(errno));
	while (fscanf(file, "%127s %lu", name, &number) == 2) {
		if (!strcmp(name, key)) {
			fclose(file);
			return number;
		}
	}
	fclose(file);
	fail("%s: no %s", path, key);
}

unsigned long vm_event(const char *key)
{
	/* fold what the CPUs still keep to themselves */
	write_file("/proc/sys/vm/stat_refresh", "1");
	return event_in("/proc/vmstat", key);
}

void event_expect(const char *key, unsigned long (*count)(const char *name), const char *name)
{
	unsigned long low, events, high;

	/* more than once: who is stopped between the two has counted in the area only */
	for (int tries = 0; tries < 100; tries++) {
		low = count(name);
		events = vm_event(key);
		high = count(name);
		if (events >= low && events <= high)
			return;
		usleep(10000);
	}
	fail("%s is %lu, %s %lu to %lu", key, events, name, low, high);
}

unsigned long memory_kib(const char *key)
{
	unsigned long kib = 0;
	FILE *file = fopen("/proc/meminfo", "re");
	char line[128];

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, key, strlen(key)))
			kib = strtoul(line + strlen(key), NULL, 10);
	if (file)
		fclose(file);
	return kib;
}

int shell(const char *fmt, ...)
{
	char cmd[512], full[600];
	va_list args;

	va_start(args, fmt);
	vsnprintf(cmd, sizeof(cmd), fmt, args);
	va_end(args);
	snprintf(full, sizeof(full), "{ %s; } >" SHELL_LOG " 2>&1 </dev/null", cmd);
	return system(full);
}

/* As mkswap(8), which cannot always be run on a machine that had no memory left. */
int make_swap(const char *path)
{
	static const char magic[] = "SWAPSPACE2";	/* union swap_header of the kernel */
	u32 header[page_size / sizeof(u32)];
	int fd, ret = 0;

	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	memset(header, 0, page_size);
	header[256] = 1;	/* version */
	header[257] = lseek(fd, 0, SEEK_END) / page_size - 1;	/* last page */
	memcpy((char *)header + page_size - strlen(magic), magic, strlen(magic));
	if (pwrite(fd, header, page_size, 0) != (ssize_t)page_size || fsync(fd))
		ret = -errno;
	close(fd);
	return ret;
}

void run_on(int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		skip("there is no CPU %d", cpu);
}

u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/* splitmix64: every seed, 0 too, starts a good sequence */
u64 random_below(u64 *state, u64 limit)
{
	u64 z = (*state += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return (z ^ (z >> 31)) % limit;
}

/* KTAP */

static struct {
	unsigned int number, passed, failed, skipped;
	char *reason;		/* shared with the test's process */
} results;

void fail(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	printf("# ");
	vprintf(fmt, args);
	printf("\n");
	fflush(stdout);
	va_end(args);
	_exit(EXIT_FAILURE);
}

void skip(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(results.reason, page_size, fmt, args);
	va_end(args);
	_exit(EXIT_SKIP);
}

/* What a machine may lack. Kinds of volumes are among it, by their types. */
static const char * const resources[] = {
	"admission", "aio", "area", "bench", "btrfs", "cachestat", "camera", "coloring", "debugfs",
	"dirty", "encryption", "erofs", "ext4", "f2fs", "faults", "gcma", "generations", "gup_test",
	"heap", "hibernation", "hugetlb", "io_uring", "kpageflags", "ksm", "loop", "nullblk",
	"poison", "policy", "rental", "sample", "shrinkers", "squashfs", "swap", "thp", "tracing",
	"userfaultfd", "xfs", "zram", "zswap",
};

static bool is_resource(const char *word)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(resources); i++)
		if (!strcmp(resources[i], word))
			return true;
	return false;
}

/* Is the word in GCMA_MUST? NULL: is any? */
static bool must_have(const char *wanted)
{
	const char *env = getenv("GCMA_MUST");
	char copy[512], *at = copy, *word;

	snprintf(copy, sizeof(copy), "%s", env ? env : "");
	while ((word = strsep(&at, " ")))
		if (wanted ? !strcmp(word, wanted) : *word)
			return true;
	return false;
}

static void check_must_have(void)
{
	const char *env = getenv("GCMA_MUST");
	char copy[512], *at = copy, *word;

	snprintf(copy, sizeof(copy), "%s", env ? env : "");
	while ((word = strsep(&at, " "))) {
		if (!*word || is_resource(word))
			continue;
		printf("Bail out! GCMA_MUST: no test knows '%s'\n", word);
		exit(EXIT_FAILURE);
	}
}

void lack(const char *resource, const char *fmt, ...)
{
	char text[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (!is_resource(resource))
		fail("'%s' is not in resources[]", resource);
	if (must_have(resource))
		fail("this machine must have %s: %s", resource, text);
	skip("%s", text);
}

long must(long ret, const char *call, const char *func, int line)
{
	if (ret < 0)
		fail("%s:%d: %s: %s", func, line, call, strerror(ret == -1 ? errno : -ret));
	return ret;
}

static pid_t fork_child(void)
{
	pid_t parent = getpid(), pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(EXIT_FAILURE);
	}
	return pid;
}

/* A test of tenants that never had one must not pass, nor if the area is of another policy. */
static void run_here(void (*fn)(void), enum need need)
{
	unsigned long stores = counter("stores"), loads = counter("loads");

	fn();
	stores = counter("stores") - stores;
	loads = counter("loads") - loads;
	if (need != NEED_NOTHING && (have_gcma() || must_have("gcma")) &&
	    (!stores || (need == NEED_LOADS && !loads)))
		fail("%lu pages were stored, %lu loaded: nothing was tested", stores, loads);
}

void run(void (*fn)(void), enum need need, const char *name, ...)
{
	unsigned int seconds = soaking() ? SOAK_SECONDS :
			       slow_kernel() ? SLOW_SECONDS : TEST_SECONDS;
	char text[256];
	va_list args;
	int status;
	pid_t pid;

	va_start(args, name);
	vsnprintf(text, sizeof(text), name, args);
	va_end(args);

	pid = fork_child();
	if (pid == 0) {
		alarm(seconds);
		run_here(fn, need);
		fflush(stdout);
		_exit(EXIT_SUCCESS);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		status = EXIT_FAILURE << 8;

	results.number++;
	if (status == 0) {
		results.passed++;
		printf("ok %u %s\n", results.number, text);
	} else if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SKIP) {
		results.skipped++;
		printf("ok %u %s # SKIP %s\n", results.number, text, results.reason);
	} else {
		results.failed++;
		if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
			diag("not done after %u s", seconds);
		else if (WIFSIGNALED(status))
			diag("killed by signal %d (since boot, %lu processes for lack of memory)",
			     WTERMSIG(status), vm_event("oom_kill"));
		printf("not ok %u %s\n", results.number, text);
	}
	fflush(stdout);
}

pid_t background(void (*fn)(void))
{
	pid_t pid = MUST(fork_child());

	if (pid == 0) {
		fn();
		fflush(stdout);
		_exit(EXIT_SUCCESS);
	}
	return pid;
}

void stop(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	MUST(waitpid(pid, &status, 0));
	if (WIFEXITED(status) && WEXITSTATUS(status))
		fail("a background process gave up");
}

void wait_for(pid_t pid)
{
	int status;

	MUST(waitpid(pid, &status, 0));
	if (WIFSIGNALED(status))
		fail("a background process was killed by signal %d", WTERMSIG(status));
	if (WEXITSTATUS(status))
		fail("a background process gave up");
}

/* Failing allocations: Documentation/fault-injection */

#define MAKE_IT_FAIL	"/proc/thread-self/make-it-fail"

/* Of each thread; stays open: to open a file takes memory. */
static __thread int make_it_fail = -1;

bool prepare_faults(void)
{
	static const char * const kinds[] = { "failslab", "fail_page_alloc" };
	static const char * const settings[][2] = {
		{ "task-filter", "Y" }, { "ignore-gfp-wait", "N" }, { "interval", "1" },
		{ "space", "0" }, { "times", "-1" }, { "verbose", "0" }, { "probability", "1" },
	};

	for (unsigned int k = 0; k < ARRAY_SIZE(kinds); k++) {
		for (unsigned int i = 0; i < ARRAY_SIZE(settings); i++) {
			char path[128];

			snprintf(path, sizeof(path), "/sys/kernel/debug/%s/%s", kinds[k],
				 settings[i][0]);
			if (write_file(path, "%s", settings[i][1]))
				return false;
		}
	}
	/* Or our own code is evicted, cannot be read again, and that is a SIGBUS. */
	return !access(MAKE_IT_FAIL, W_OK) && !mlockall(MCL_CURRENT);
}

#define RSEQ_AREA	32	/* bytes, and what is more comes in steps of as many */

/*
 * Whenever the kernel has preempted a thread it writes to what the C library registered with
 * rseq(2) for it. That page is copied if the process has forked, and without memory for the copy
 * the kernel sends SIGSEGV.
 */
static void leave_rseq(void)
{
#ifdef RSEQ_SIG
	unsigned int size = (__rseq_size + RSEQ_AREA - 1) / RSEQ_AREA * RSEQ_AREA;

	/* EINVAL: nor was it registered, as whoever made the thread had left it */
	if (size && syscall(__NR_rseq, (char *)__builtin_thread_pointer() + __rseq_offset, size,
			    RSEQ_FLAG_UNREGISTER, RSEQ_SIG) && errno != EINVAL)
		fail("rseq: %s", strerror(errno));
#endif
}

void fail_allocations(bool on)
{
	if (make_it_fail < 0) {
		make_it_fail = MUST(open(MAKE_IT_FAIL, O_WRONLY | O_CLOEXEC));
		leave_rseq();
	}
	MUST(pwrite(make_it_fail, on ? "1" : "0", 1, 0));
}

/* The log: Documentation/ABI/testing/dev-kmsg */

int log_open(int whence)
{
	int log = MUST(open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC));

	MUST(lseek(log, 0, whence));
	return log;
}

bool log_has(int log, const char *text, const char *more)
{
	char line[8192];
	ssize_t len;

	/* EPIPE: the next one was overwritten */
	while ((len = read(log, line, sizeof(line) - 1)) > 0 || (len < 0 && errno == EPIPE)) {
		if (len < 0)
			continue;
		line[len] = '\0';
		if (strstr(line, text) && strstr(line, more))
			return true;
	}
	return false;
}

/* Pages: Documentation/admin-guide/mm/pagemap.rst */

u64 page_flags(u64 pfn)
{
	int fd = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);
	u64 flags;

	if (fd < 0)
		lack("kpageflags", "/proc/kpageflags: %s", strerror(errno));
	pread_all(fd, &flags, sizeof(flags), pfn * sizeof(flags));
	close(fd);
	return flags;
}

static u64 pagemap_entry(const void *at)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	u64 entry;

	if (fd < 0)
		lack("kpageflags", "/proc/self/pagemap: %s", strerror(errno));
	pread_all(fd, &entry, sizeof(entry), (unsigned long)at / page_size * sizeof(entry));
	close(fd);
	return entry;
}

bool is_swapped(const void *at)
{
	return pagemap_entry(at) >> 62 & 1;
}

unsigned int swap_type(const void *at)
{
	return pagemap_entry(at) & 0x1f;
}

unsigned long swap_offset(const void *at)
{
	return pagemap_entry(at) >> 5 & ((1ul << 50) - 1);
}

/* Tracepoints: Documentation/trace/events.rst */

#define TRACING	"/sys/kernel/tracing/"

void events_begin(const char *system)
{
	char path[128];

	if (access(TRACING "trace", F_OK))
		mount("tracefs", TRACING, "tracefs", 0, NULL);
	snprintf(path, sizeof(path), TRACING "events/%s/enable", system);
	/* opening it so empties it */
	close(open(TRACING "trace", O_WRONLY | O_TRUNC | O_CLOEXEC));
	if (write_file(path, "1"))
		lack("tracing", "no %s (CONFIG_EVENT_TRACING)", path);
}

unsigned long events(const char *name, bool (*is)(const char *fields))
{
	FILE *trace = fopen(TRACING "trace", "re");
	char line[512], word[64], *found;
	unsigned long number = 0;

	if (!trace)
		fail(TRACING "trace: %s", strerror(errno));
	snprintf(word, sizeof(word), ": %s: ", name);
	while (fgets(line, sizeof(line), trace)) {
		found = strstr(line, word);
		number += found && is(found + strlen(word));
	}
	fclose(trace);
	return number;
}

void events_end(const char *system)
{
	char path[128];

	snprintf(path, sizeof(path), TRACING "events/%s/enable", system);
	MUST(write_file(path, "0"));
}

ssize_t transfer_failing(int file, bool write, char *at, size_t len, off_t off)
{
	size_t count = 0;
	ssize_t ret;
	bool again;

	fail_allocations(true);
	do {
		ret = write ? pwrite(file, at + count, len - count, off + count) :
			      pread(file, at + count, len - count, off + count);
		if (ret > 0)
			count += ret;
		/* EFAULT: the buffer had no page, or no page table */
		again = ret > 0 ||
			(ret < 0 && (errno == ENOMEM || errno == EIO || errno == EFAULT));
	} while (count < len && again);
	fail_allocations(false);
	return ret < 0 ? ret : (ssize_t)count;
}

/* Areas */

/* What tests write to */
static const char * const area_files[] = { "admission", "swap_policy", "dirty_max", "scheme" };

static struct {
	unsigned int nr;
	struct {
		char name[NAME_MAX + 1];
		char policy[32];
		char was[ARRAY_SIZE(area_files)][32];	/* to restore */
		bool gcma;
	} area[MAX_AREAS];
} areas;

static void areas_find(void)
{
	DIR *dir = opendir(CMA_SYSFS);
	struct dirent *entry;

	while (dir && areas.nr < MAX_AREAS && (entry = readdir(dir))) {
		char path[PATH_MAX];

		if (entry->d_name[0] == '.')
			continue;
		snprintf(areas.area[areas.nr].name, sizeof(areas.area[0].name), "%s",
			 entry->d_name);
		snprintf(path, sizeof(path), CMA_SYSFS "/%s/policy", entry->d_name);
		read_word(path, areas.area[areas.nr].policy, sizeof(areas.area[0].policy));
		areas.area[areas.nr].gcma = !strcmp(areas.area[areas.nr].policy, "gcma");
		areas.nr++;
	}
	if (dir)
		closedir(dir);
}

static bool area_read(unsigned int i, const char *name, char *word, size_t size)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), CMA_SYSFS "/%s/%s", areas.area[i].name, name);
	return read_word(path, word, size);
}

static int area_write(unsigned int i, const char *name, const char *word)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), CMA_SYSFS "/%s/%s", areas.area[i].name, name);
	/* areas of another policy have other files */
	return !areas.area[i].gcma && access(path, F_OK) ? 0 : write_file(path, "%s", word);
}

static void areas_keep(void)
{
	for (unsigned int i = 0; i < areas.nr; i++)
		for (unsigned int f = 0; f < ARRAY_SIZE(area_files); f++)
			area_read(i, area_files[f], areas.area[i].was[f],
				  sizeof(areas.area[i].was[f]));
}

void areas_restore(const char *name)
{
	for (unsigned int i = 0; i < areas.nr; i++)
		for (unsigned int f = 0; f < ARRAY_SIZE(area_files); f++)
			if (!strcmp(area_files[f], name) && areas.area[i].was[f][0])
				area_write(i, name, areas.area[i].was[f]);
}

int areas_write(const char *name, const char *fmt, ...)
{
	char word[64];
	int ret = 0;
	va_list args;

	va_start(args, fmt);
	vsnprintf(word, sizeof(word), fmt, args);
	va_end(args);
	for (unsigned int i = 0; i < areas.nr; i++) {
		int one = area_write(i, name, word);

		ret = one ? one : ret;
	}
	return ret;
}

bool areas_have(const char *name, const char *wanted)
{
	char word[64];

	for (unsigned int i = 0; i < areas.nr; i++)
		if (area_read(i, name, word, sizeof(word)) && !strcmp(word, wanted))
			return true;
	return false;
}

bool have_gcma(void)
{
	for (unsigned int i = 0; i < areas.nr; i++)
		if (areas.area[i].gcma)
			return true;
	return false;
}

void need_gcma(void)
{
	if (!have_gcma())
		lack("gcma", "no area has the policy gcma");
}

static unsigned long sysfs_number(const char *area, const char *name)
{
	char path[PATH_MAX];
	unsigned long number;

	snprintf(path, sizeof(path), CMA_SYSFS "/%s/%s", area, name);
	if (!read_number(path, &number))
		fail("%s: no number", path);
	return number;
}

unsigned long counter(const char *name)
{
	unsigned long sum = 0;

	for (unsigned int i = 0; i < areas.nr; i++)
		if (areas.area[i].gcma)
			sum += sysfs_number(areas.area[i].name, name);
	return sum;
}

bool areas_at_most(const char *some, const char *all)
{
	for (unsigned int i = 0; i < areas.nr; i++)
		if (areas.area[i].gcma && sysfs_number(areas.area[i].name, some) >
					  sysfs_number(areas.area[i].name, all))
			return false;
	return true;
}

/* The first area of a policy, or their number */
static unsigned int area_of(const char *policy)
{
	unsigned int i = 0;

	while (i < areas.nr && strcmp(areas.area[i].policy, policy))
		i++;
	return i;
}

static void area_describe(struct area *area, unsigned int i)
{
	snprintf(area->name, sizeof(area->name), "%s", areas.area[i].name);
	area->gcma = areas.area[i].gcma;
	area->pages = area_debug(area, "count");
}

void need_area(struct area *area)
{
	unsigned int i = area_of("gcma");

	if (!areas.nr)
		lack("area", "no CMA area (cma=)");
	area_describe(area, i < areas.nr ? i : 0);
}

void need_policy(struct area *area, const char *policy)
{
	unsigned int i = area_of(policy);

	if (i == areas.nr)
		lack(policy, "no area has the policy %s", policy);
	area_describe(area, i);
}

unsigned long area_number(const struct area *area, const char *name)
{
	return sysfs_number(area->name, name);
}

unsigned long area_debug(const struct area *area, const char *name)
{
	char path[PATH_MAX];
	unsigned long number;

	snprintf(path, sizeof(path), CMA_DEBUGFS "/%s/%s", area->name, name);
	if (!read_number(path, &number))
		lack("debugfs", "no %s (CONFIG_CMA_DEBUGFS)", path);
	return number;
}

struct letters area_letters(const struct area *area)
{
	struct letters letters = { };
	char path[PATH_MAX];
	FILE *file;
	int c;

	snprintf(path, sizeof(path), CMA_DEBUGFS "/%s/frames", area->name);
	file = fopen(path, "re");
	if (!file)
		lack("debugfs", "no %s (CONFIG_CMA_DEBUGFS)", path);
	while ((c = getc(file)) != EOF)
		letters.of[c] += c != '\n';
	fclose(file);
	return letters;
}

unsigned long area_free(const struct area *area)
{
	return area->pages - area_debug(area, "used");
}

/*
 * The dma-buf heap of the area: the name alone does not say which it is, so an allocation has to
 * show it.
 */
int area_heap(const struct area *area)
{
	DIR *dir = opendir("/dev/dma_heap");
	int heap = -1;
	struct dirent *entry;

	while (dir && heap < 0 && (entry = readdir(dir))) {
		unsigned long before = area_number(area, "alloc_pages_success");
		char path[PATH_MAX];
		int buffer;

		snprintf(path, sizeof(path), "/dev/dma_heap/%s", entry->d_name);
		if (entry->d_name[0] == '.')
			continue;
		heap = open(path, O_RDWR | O_CLOEXEC);
		if (heap < 0)
			continue;
		buffer = heap_alloc(heap, page_size);
		if (buffer >= 0)
			close(buffer);
		if (area_number(area, "alloc_pages_success") == before) {
			close(heap);
			heap = -1;
		}
	}
	if (dir)
		closedir(dir);
	return heap;
}

int heap_alloc(int heap, size_t bytes)
{
	struct dma_heap_allocation_data data = { .len = bytes, .fd_flags = O_RDWR | O_CLOEXEC };

	return ioctl(heap, DMA_HEAP_IOCTL_ALLOC, &data) ? -1 : (int)data.fd;
}

/* Memory cgroup and eviction */

static char cgroup[64];

static bool cgroup_enter(void)
{
	char path[128];

	mkdir(CGROUP_ROOT, 0700);
	if (mount("cgroup2", CGROUP_ROOT, "cgroup2", 0, NULL))
		return false;
	if (write_file(CGROUP_ROOT "/cgroup.subtree_control", "+memory"))
		return false;
	snprintf(cgroup, sizeof(cgroup), CGROUP_ROOT "/gcma-selftest-%d", getpid());
	if (mkdir(cgroup, 0700))
		return false;
	snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup);
	return write_file(path, "%d", getpid()) == 0;
}

static void cgroup_leave(void)
{
	write_file(CGROUP_ROOT "/cgroup.procs", "%d", getpid());
	rmdir(cgroup);
}

const char *cgroup_path(void)
{
	return cgroup;
}

void shrink_nodes(unsigned long nr)
{
	const char *const groups[] = { CGROUP_ROOT, cgroup };
	char path[128];
	struct stat group;
	glob_t found;

	if (glob("/sys/kernel/debug/shrinker/mm-shadow-*", 0, NULL, &found))
		lack("shrinkers", "no shrinkers in debugfs (CONFIG_SHRINKER_DEBUG)");
	snprintf(path, sizeof(path), "%s/scan", found.gl_pathv[0]);
	globfree(&found);
	for (unsigned int i = 0; i < ARRAY_SIZE(groups); i++) {
		int node, ret = 0;

		MUST(stat(groups[i], &group));
		for (node = 0; !ret; node++)
			ret = write_file(path, "%lu %d %lu", (unsigned long)group.st_ino, node, nr);
		if (node < 2 || ret != -EINVAL) /* no such node */
			fail("%s: %s", path, strerror(-ret));
	}
}

void page_cache_state(int fd, struct cachestat *cs)
{
	struct { u64 off, len; } whole = { 0, 0 };

	if (syscall(__NR_cachestat, fd, &whole, cs, 0))
		lack("cachestat", "cachestat(2): %s", strerror(errno));
}

unsigned long resident_pages(void *at, size_t bytes)
{
	size_t nr = bytes / page_size;
	unsigned char *there = malloc(nr);
	unsigned long count = 0;

	if (!there || mincore(at, bytes, there))
		fail("mincore: %s", strerror(errno));
	for (size_t i = 0; i < nr; i++)
		count += there[i] & 1;
	free(there);
	return count;
}

void flush_statistics(void)
{
	char path[128], word[64];

	snprintf(path, sizeof(path), "%s/memory.stat", cgroup);
	if (!read_word(path, word, sizeof(word)))
		fail("memory.stat cannot be read");
}

bool push_out(size_t bytes)
{
	char path[128];
	int ret;

	snprintf(path, sizeof(path), "%s/memory.reclaim", cgroup);
	ret = write_file(path, "%zu", bytes);
	if (ret && ret != -EAGAIN)
		fail("memory.reclaim: %s", strerror(-ret));
	return !ret;
}

unsigned long evict(int fd)
{
	unsigned long before = counter("stores");
	struct cachestat cs;

	for (int tries = 0; tries < EVICT_TRIES; tries++) {
		page_cache_state(fd, &cs);
		if (!cs.nr_cache)
			return counter("stores") - before;
		/* All of it: reclaim waits long where the group's dirty metadata is in its way. */
		syncfs(fd);
		/*
		 * At last more: a page may wait on another CPU to be put on the LRU lists, and
		 * reclaim drains those CPUs only when it cannot find enough elsewhere.
		 */
		push_out((cs.nr_cache + (tries < EVICT_GENTLE ? 0 : EVICT_MORE)) * page_size);
	}
	fail("%llu pages stay in the page cache (dirty %llu, under writeback %llu)",
	     (unsigned long long)cs.nr_cache, (unsigned long long)cs.nr_dirty,
	     (unsigned long long)cs.nr_writeback);
}

void evict_to_area(int fd)
{
	unsigned long stored = counter("stores");
	struct cachestat cs;

	page_cache_state(fd, &cs);
	evict(fd);
	/* kswapd may have begun before evict() */
	stored = counter("stores") - stored;
	if (have_gcma() && stored < cs.nr_cache)
		fail("of %llu evicted pages %lu went to the area", (unsigned long long)cs.nr_cache,
		     stored);
}

static void reclaim_loop(void)
{
	/* Looking for what is not there costs reclaim far more than taking what is. */
	for (;;)
		usleep(push_out(KIB(32)) ? 1000 : 50000);
}

pid_t reclaim_all_the_time(void)
{
	return background(reclaim_loop);
}

void drop_cached(int what)
{
	if (write_file("/proc/sys/vm/drop_caches", "%d", what))
		fail("drop_caches cannot be written");
}

/* Content */

void stamp(void *buf, off_t off, size_t len, unsigned int file, unsigned int version)
{
	u64 high = (u64)file << 48 | (u64)(version & 0xffff) << 32;
	off_t end = off + len;

	for (off_t pos = off; pos < end;) {
		u64 word = high | (u32)(pos >> 3);
		size_t part = MIN((off_t)(8 - (pos & 7)), end - pos);

		memcpy((char *)buf + (pos - off), (char *)&word + (pos & 7), part);
		pos += part;
	}
}

static void describe(char *text, size_t size, const char *buf, size_t at, off_t off, size_t len)
{
	size_t inside = (off + at) & 7;
	u64 word;

	if (inside > at || at - inside + 8 > len) {
		snprintf(text, size, "byte 0x%02x", (unsigned char)buf[at]);
		return;
	}
	memcpy(&word, buf + at - inside, 8);
	if (!word)
		snprintf(text, size, "zeroes");
	else
		snprintf(text, size, "file %u version %u offset 0x%llx", (unsigned int)(word >> 48),
			 (unsigned int)(word >> 32) & 0xffff, (unsigned long long)(u32)word << 3);
}

bool differs(const char *what, off_t off, const void *got, const void *want, size_t len)
{
	const char *g = got, *w = want;
	char gtext[80], wtext[80];
	size_t first, count = 0;

	if (!memcmp(got, want, len))
		return false;
	for (first = 0; g[first] == w[first];)
		first++;
	for (size_t i = first; i < len; i++)
		count += g[i] != w[i];
	describe(gtext, sizeof(gtext), g, first, off, len);
	describe(wtext, sizeof(wtext), w, first, off, len);
	diag("%s: at offset 0x%llx expected %s, got %s; %zu of %zu bytes differ", what,
	     (unsigned long long)(off + first), wtext, gtext, count, len);
	return true;
}

void expect(const char *what, off_t off, const void *got, const void *want, size_t len)
{
	if (differs(what, off, got, want, len))
		_exit(EXIT_FAILURE);
}

void pread_all(int fd, void *buf, size_t len, off_t off)
{
	for (size_t done = 0; done < len;) {
		ssize_t part = MUST(pread(fd, (char *)buf + done, len - done, off + done));

		if (!part)
			fail("end of file at 0x%llx", (unsigned long long)(off + done));
		done += part;
	}
}

void pwrite_all(int fd, const void *buf, size_t len, off_t off)
{
	for (size_t done = 0; done < len;)
		done += MUST(pwrite(fd, (const char *)buf + done, len - done, off + done));
}

void *page_buffer(size_t len)
{
	void *buf = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (buf == MAP_FAILED)
		fail("no memory for a buffer of %zu bytes", len);
	return buf;
}

/* Volumes */

#define MKFS_EXT4	"mkfs.ext4 -q -F -O encrypt "
#define MKFS_XFS	"mkfs.xfs --unsupported -q -f -m reflink=1 "
#define MKFS_SQUASHFS	"mksquashfs %2$s %1$s -quiet -no-progress -Xcompression-level 1"

const struct volume_kind volume_kinds[] = {
	{ .name = "ext4", .type = "ext4", .mkfs = MKFS_EXT4 "-b 4096 %s" },
	{ .name = "ext4 with 1 KiB blocks", .type = "ext4", .mkfs = MKFS_EXT4 "-b 1024 %s",
	  .variant = true },
	{ .name = "xfs", .type = "xfs", .mkfs = MKFS_XFS "%s" },
	{ .name = "xfs with 1 KiB blocks", .type = "xfs", .mkfs = MKFS_XFS "-b size=1024 %s",
	  .variant = true },
	{ .name = "f2fs", .type = "f2fs", .mkfs = "mkfs.f2fs -q -f %s" },
	{ .name = "erofs", .type = "erofs", .mkfs = "mkfs.erofs %s %s", .readonly = true },
	{ .name = "erofs with lz4", .type = "erofs", .mkfs = "mkfs.erofs -zlz4 %s %s",
	  .readonly = true, .variant = true },
	{ .name = "squashfs", .type = "squashfs", .mkfs = MKFS_SQUASHFS, .readonly = true },
};

const unsigned int nr_volume_kinds = ARRAY_SIZE(volume_kinds);

static void volume_is_missing(struct volume *v, const char *what)
{
	char line[100] = "";

	read_word(SHELL_LOG, line, sizeof(line));
	snprintf(v->missing, sizeof(v->missing), "%s: %s", what, line[0] ? line : strerror(errno));
}

/* bytes: size of a new image, 0 if the image is there */
bool loop_open(struct volume *v, size_t bytes)
{
	struct loop_config config = { .info.lo_flags = LO_FLAGS_AUTOCLEAR };
	int control, number;

	control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	if (control < 0)
		goto missing;
	/*
	 * A new one, for lockdep knows locks by their device: if it was frozen while it told user
	 * space of its size, and is then swapped to, that is reported as a deadlock.
	 */
	number = ioctl(control, LOOP_CTL_GET_FREE);
	if (number >= 0 && !ioctl(control, LOOP_CTL_REMOVE, number))
		number = ioctl(control, LOOP_CTL_GET_FREE);
	close(control);
	if (number < 0)
		goto missing;
	snprintf(v->dev, sizeof(v->dev), "/dev/loop%d", number);
	v->loop = open(v->dev, O_RDWR | O_CLOEXEC);
	config.fd = open(v->image, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (v->loop < 0 || (int)config.fd < 0)
		goto missing;
	if (bytes && ftruncate(config.fd, bytes))
		goto missing;
	if (ioctl(v->loop, LOOP_CONFIGURE, &config))
		goto missing;
	close(config.fd);
	return true;
missing:
	snprintf(v->missing, sizeof(v->missing), "no loop device: %s", strerror(errno));
	return false;
}

bool volume_mount(struct volume *v)
{
	return mount(v->dev, v->dir, v->kind->type, v->kind->readonly ? MS_RDONLY : 0,
		     NULL) == 0;
}

void volume_umount(struct volume *v)
{
	MUST(umount(v->dir));
}

static bool file_fill(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	char *buf = page_buffer(DATA_BYTES);
	bool done;

	if (fd < 0)
		return false;
	stamp(buf, 0, DATA_BYTES, 1, 1);
	done = write(fd, buf, DATA_BYTES) == (ssize_t)DATA_BYTES;
	close(fd);
	munmap(buf, DATA_BYTES);
	return done;
}

/* The files of a read-only volume */
static bool source_fill(const char *dir)
{
	char path[64], linked[64], another[64];

	snprintf(path, sizeof(path), "%s/data", dir);
	snprintf(linked, sizeof(linked), "%s/" LINKED, dir);
	snprintf(another, sizeof(another), "%s/another", dir);
	mkdir(dir, 0755);
	unlink(another);
	return file_fill(path) && file_fill(linked) && !link(linked, another);
}

void volume_open(struct volume *v, const struct volume_kind *kind)
{
	static unsigned int number;

	*v = (struct volume){ .kind = kind, .loop = -1 };
	snprintf(v->image, sizeof(v->image), "/tmp/image%u", number);
	snprintf(v->dir, sizeof(v->dir), "/tmp/mnt%u", number++);
	mkdir(v->dir, 0755);

	if (kind->readonly) {
		if (!source_fill("/tmp/source") || shell(kind->mkfs, v->image, "/tmp/source"))
			volume_is_missing(v, "mkfs");
		else
			loop_open(v, 0);
	} else if (loop_open(v, VOLUME_BYTES) && shell(kind->mkfs, v->dev)) {
		volume_is_missing(v, "mkfs");
	}
	if (!v->missing[0] && !volume_mount(v))
		snprintf(v->missing, sizeof(v->missing), "mount of %s: %s", kind->type,
			 strerror(errno));
}

void volume_close(struct volume *v)
{
	umount2(v->dir, MNT_DETACH);
	if (v->loop >= 0)
		close(v->loop);
	unlink(v->image);
}

unsigned long dirtied_at_most(const struct volume *v, unsigned long stay)
{
	return stay && (!v || !strcmp(v->kind->type, "f2fs")) ? ULONG_MAX : 2 * stay;
}

void need_volume(const struct volume *v)
{
	if (v->missing[0])
		lack(v->kind ? v->kind->type : "loop", "%s", v->missing);
}

int volume_file(const struct volume *v, const char *name, int flags)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", v->dir, name);
	return open(path, flags | O_CLOEXEC, 0600);
}

off_t data_offset(int fd, size_t bytes)
{
	char space[sizeof(struct fiemap) + sizeof(struct fiemap_extent)] = { 0 };
	struct fiemap *map = (void *)space;

	map->fm_length = bytes;
	map->fm_flags = FIEMAP_FLAG_SYNC;
	map->fm_extent_count = 1;
	MUST(ioctl(fd, FS_IOC_FIEMAP, map));
	if (map->fm_mapped_extents != 1 || map->fm_extents[0].fe_length < bytes)
		fail("the file is not in one piece");
	return map->fm_extents[0].fe_physical;
}

unsigned long disk_reads(const struct volume *v)
{
	unsigned long sectors = 0;
	char path[64], line[256];

	snprintf(path, sizeof(path), "/sys/block/%s/stat", v->dev + strlen("/dev/"));
	if (!read_word(path, line, sizeof(line)) || sscanf(line, "%*u %*u %lu", &sectors) != 1)
		fail("%s: no sector count", path);
	return sectors * 512;
}

/* The program's surroundings */

static void give_up(const char *why)
{
	if (must_have(NULL)) {
		printf("Bail out! %s\n", why);
		exit(EXIT_FAILURE);
	}
	printf("KTAP version 1\n1..0 # SKIP %s\n", why);
	exit(EXIT_SKIP);
}

bool soaking(void)
{
	const char *env = getenv("GCMA_SOAK");

	return env && !strcmp(env, "1");
}

bool slow_kernel(void)
{
	const char *env = getenv("GCMA_SLOW");

	return env && !strcmp(env, "1");
}

bool short_form(void)
{
	const char *env = getenv("GCMA_SHORT");

	return slow_kernel() || (env && !strcmp(env, "1"));
}

bool has_turn(unsigned int test, unsigned int kind, unsigned int kinds)
{
	return !short_form() || soaking() || test % kinds == kind;
}

void start(unsigned int tests)
{
	page_size = sysconf(_SC_PAGESIZE);
	check_must_have();
	setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
	if (geteuid())
		give_up("needs root");
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", "/tmp", "tmpfs", 0, "noswap"))
		give_up("no private mounts");
	if (access(CMA_DEBUGFS, F_OK))
		mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL);
	if (!cgroup_enter())
		give_up("no memory controller in cgroup v2");
	results.reason =
		mmap(NULL, page_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (results.reason == MAP_FAILED)
		give_up("no memory");
	areas_find();
	areas_keep();
	/* Adaptive admission is measured elsewhere; here a page that may be stored has to be. */
	areas_write("admission", "always");
	printf("KTAP version 1\n1..%u\n", tests);
	fflush(stdout);
}

int finish(void)
{
	for (unsigned int f = 0; f < ARRAY_SIZE(area_files); f++)
		areas_restore(area_files[f]);
	cgroup_leave();
	printf("# Totals: pass:%u fail:%u xfail:0 xpass:0 skip:%u error:0\n", results.passed,
	       results.failed, results.skipped);
	if (results.failed)
		return EXIT_FAILURE;
	return results.passed ? EXIT_SUCCESS : EXIT_SKIP;
}
