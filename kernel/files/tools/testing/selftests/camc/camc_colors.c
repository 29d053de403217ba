// SPDX-License-Identifier: GPL-2.0-only
/*
 * The pages of a colored task have its colors.
 *
 * The program loads a map of its own, whose bank bits are XORs of two address bits, so that the
 * machine has 16 colors a node. Which color a page has is computed here, bit by bit, from its
 * frame number in /proc/<pid>/pagemap. Each test runs in a process of its own; after each, nobody
 * has colors, no page is left on a color list, and the free lists hold what the zone
 * counters say.
 *
 * Root only, and once per boot: a map stays loaded.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/camc.h>
#include <linux/capability.h>
#include <linux/f2fs.h>
#include <linux/io_uring.h>
#include <linux/userfaultfd.h>

#define BANKS		16
#define FEW		16
#define MIB(n)		((size_t)(n) << 20)
#define SYS		"/sys/kernel/mm/camc/"
#define CGROUPS		"/tmp/camc/cgroups"
#define CGROUP		CGROUPS "/camc"
#define HARD_OFFLINE	"/sys/devices/system/memory/hard_offline_page"
#define BLOCK		"/sys/devices/system/memory/memory%d"
#define BLOCK_PATH	128
#define AREA		"/sys/kernel/debug/cma/reserved/"
#define TREE		"/tmp/camc/tree"
#define TREE_FILES	2000
/* What tests change for a while; main() puts it back, however they end */
#define RT_RUNTIME	"/proc/sys/kernel/sched_rt_runtime_us"
#define QUEUE		"/proc/sys/net/unix/max_dgram_qlen"
#define MIN_FREE	"/proc/sys/vm/min_free_kbytes"
#define BOOST		"/proc/sys/vm/watermark_boost_factor"
#define RESERVE		"/proc/sys/vm/lowmem_reserve_ratio"
#define CORE_PATTERN	"/proc/sys/kernel/core_pattern"
#define LRU_GEN		"/sys/kernel/mm/lru_gen/enabled"
#define KPF_ANON	12	/* include/uapi/linux/kernel-page-flags.h */
#define KPF_ZERO_PAGE	24

/* Two nodes at most; the second one begins at this frame number. */
static unsigned int nodes = 1;
static uint64_t second_node = UINT64_MAX;
static size_t page;
static bool slow;		/* each access is checked: less of everything */
static char swap_device[32];

/* ------ frame ----------------------------------------------------------- */

#define __printf(fmt, args)	__attribute__((__format__(printf, fmt, args)))

static __printf(1, 2) noreturn void fail(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	printf("# ");
	vprintf(fmt, args);
	printf("\n");
	fflush(stdout);
	_exit(1);
}

static noreturn void skip(const char *why)
{
	printf("# SKIP: %s\n", why);
	fflush(stdout);
	_exit(4);
}

#define MUST(call) ({ \
	__typeof__(call) _ret = (call); \
	if ((long)_ret == -1) \
		fail("%s:%d: %s: %s", __func__, __LINE__, #call, strerror(errno)); \
	_ret; })
#define EXPECT(what) do { \
	if (!(what)) \
		fail("%s:%d: not so: %s (%s)", __func__, __LINE__, #what, strerror(errno)); \
	} while (0)

static ssize_t put_bytes(const char *path, const char *text, size_t size)
{
	int fd = open(path, O_WRONLY), saved;
	ssize_t ret;

	if (fd < 0)
		return -1;
	ret = write(fd, text, size);
	saved = errno;
	close(fd);
	errno = saved;
	return ret;
}

static ssize_t put(const char *path, const char *text)
{
	return put_bytes(path, text, strlen(text));
}

static ssize_t get(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY);
	ssize_t ret, at = 0;

	if (fd < 0)
		return -1;
	while ((ret = read(fd, buf + at, size - 1 - at)) > 0)
		at += ret;
	close(fd);
	buf[at] = 0;
	return ret < 0 ? ret : at;
}

static long number(const char *path)
{
	char buf[64];

	if (get(path, buf, sizeof(buf)) < 0)
		return -1;
	return atol(buf);
}

static long stat_of(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), SYS "stats/%s", name);
	return MUST(number(path));
}

/* The number behind a word at the beginning of a line */
static long field(const char *path, const char *word)
{
	static char buf[1 << 16];
	char *at = buf;

	MUST(get(path, buf, sizeof(buf)));
	while (at && strncmp(at, word, strlen(word))) {
		at = strchr(at, '\n');
		at = at ? at + 1 : NULL;
	}
	return at ? atol(at + strlen(word)) : -1;
}

/* Of all counters of /proc/vmstat that begin so */
static long sum_of(const char *prefix)
{
	static char buf[1 << 16];
	char *at, *line, *rest;
	long sum = 0;

	MUST(get("/proc/vmstat", buf, sizeof(buf)));
	for (line = strtok_r(buf, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		at = strchr(line, ' ');
		if (at && !strncmp(line, prefix, strlen(prefix)))
			sum += atol(at);
	}
	return sum;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static int wait_for(pid_t pid)
{
	int status;

	MUST(waitpid(pid, &status, 0));
	return status;
}

#define CHILD_OK(pid) do { \
	int _status = wait_for(pid); \
	if (_status) \
		fail("%s:%d: the child ended with %#x", __func__, __LINE__, _status); \
	} while (0)

/* ------ colors ---------------------------------------------------------- */

static const char *map_text(void)
{
	static char text[1024];
	static const char banks[] = "bank 22000\nbank 44000\nbank 88000\nbank 110000\n";

	if (nodes == 1)
		snprintf(text, sizeof(text), "map test # of this program\nregion 0-10000000000\n%s",
			 banks);
	else
		snprintf(text, sizeof(text),
			 "map test\nregion 0-%llx node 0\n%sregion %llx-10000000000 node 1\n%s",
			 (unsigned long long)second_node << 12, banks,
			 (unsigned long long)second_node << 12, banks);
	return text;
}

/* The same by arithmetic of our own */
static unsigned int color_of(uint64_t pfn)
{
	uint64_t a = pfn << 12;
	unsigned int bank = 0, i;

	for (i = 0; i < 4; i++)
		bank = bank << 1 | ((a >> (13 + i) & 1) ^ (a >> (17 + i) & 1));
	return bank + (pfn >= second_node ? BANKS : 0);
}

static uint64_t pfn_at(int pagemap, const void *at)
{
	uint64_t entry = 0;

	MUST(pread(pagemap, &entry, 8, (uintptr_t)at / page * 8));
	return entry >> 63 ? entry & ((1ull << 55) - 1) : 0;
}

static int open_pagemap(void)
{
	return MUST(open("/proc/self/pagemap", O_RDONLY));
}

static bool has_color(const struct camc_policy *policy, unsigned int color)
{
	return policy->colors[color / 64] >> (color % 64) & 1;
}

static void get_policy(struct camc_policy *policy)
{
	memset(policy, 0, sizeof(*policy));
	MUST(prctl(PR_CAMC, CAMC_GET, policy, sizeof(*policy), 0));
}

/* The page of zeroes is nobody's. */
static bool is_zero_page(uint64_t pfn)
{
	int fd = MUST(open("/proc/kpageflags", O_RDONLY));
	uint64_t flags = 0;

	MUST(pread(fd, &flags, 8, pfn * 8));
	close(fd);
	return flags >> KPF_ZERO_PAGE & 1;
}

struct count {
	unsigned long right, wrong;
};

/* Pages of a range that are there, by whether they have the colors of the thread */
static struct count count_pages(const void *at, size_t size)
{
	struct camc_policy policy;
	struct count count = { };
	int pagemap = open_pagemap();
	size_t i;

	get_policy(&policy);
	for (i = 0; i < size; i += page) {
		uint64_t pfn = pfn_at(pagemap, (const char *)at + i);

		if (pfn && has_color(&policy, color_of(pfn)))
			count.right++;
		else if (pfn && !is_zero_page(pfn))
			count.wrong++;
	}
	close(pagemap);
	return count;
}

static void expect_pure(const void *at, size_t size)
{
	struct count count = count_pages(at, size);

	if (count.wrong || count.right != size / page)
		fail("of %zu pages %lu have the colors, %lu others", size / page, count.right,
		     count.wrong);
}

static int on_node = CAMC_NODE_LOCAL;

static int try_auto(unsigned int nr, unsigned int flags)
{
	struct camc_policy policy = {
		.flags = CAMC_AUTO | flags, .nr_colors = nr, .node = on_node,
	};

	return prctl(PR_CAMC, CAMC_SET, &policy, sizeof(policy), 0);
}

static void set_auto(unsigned int nr, unsigned int flags)
{
	MUST(try_auto(nr, flags));
}

/* Those of bits 0 to 63 */
static int try_colors(uint64_t colors, unsigned int flags)
{
	struct camc_policy policy = {
		.flags = flags, .node = CAMC_NODE_LOCAL, .colors[0] = colors,
	};

	return prctl(PR_CAMC, CAMC_SET, &policy, sizeof(policy), 0);
}

static int try_color(unsigned int color, unsigned int flags)
{
	return try_colors(1ull << color, flags);
}

static void clear_colors(void)
{
	MUST(prctl(PR_CAMC, CAMC_CLEAR, 0, 0, 0));
}

static unsigned int nr_colors(void)
{
	struct camc_policy policy;

	get_policy(&policy);
	return policy.nr_colors;
}

/* Collects pages; how many there are then */
static unsigned int fill(unsigned int nr_pages)
{
	struct camc_policy policy = { .nr_pages = nr_pages };

	MUST(prctl(PR_CAMC, CAMC_FILL, &policy, sizeof(policy), 0));
	return policy.nr_pages;
}

static char *room(size_t size)
{
	return MUST(mmap(NULL, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
}

/* Each access is made, in this order. */
static void store(char *at, uint64_t value)
{
	*(uint64_t *)at = value;
	asm volatile("" : : : "memory");
}

static uint64_t load(const char *at)
{
	asm volatile("" : : : "memory");
	return *(const uint64_t *)at;
}

static void touch(char *at, size_t size)
{
	for (size_t i = 0; i < size; i += page)
		store(at + i, (uintptr_t)at + i);
}

static void expect_content(const char *at, size_t size)
{
	for (size_t i = 0; i < size; i += page)
		if (load(at + i) != (uintptr_t)at + i)
			fail("page %zu has changed", i / page);
}

static size_t some(void)
{
	return slow ? MIB(4) : MIB(16);
}

/* ------ maps ------------------------------------------------------------ */

static void test_bad_maps(void)
{
	static const char * const bad[] = {
		"", "map x\n", "region 0-10000000000\n", "map x\nregion 0-400000\nbank 2000\n",
		"map x\nregion 0-10000000000\nbank 2800\n",
		"map x\nregion 0-10000000000\nregion 400000-800000\n",
		"map x\nregion 0-10000000000\nbank 2000\nbank 4000\nbank 6000\n",
		"map x\nregion 0-10000000000\nbank 2000\nrank 4000\n",
	};
	char big[4200];
	pid_t pid;

	EXPECT(try_auto(1, 0) < 0 && errno == ENODEV);
	EXPECT(number(SYS "colors") == 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		if (!*bad[i])
			continue;	/* writes nothing */
		if (put(SYS "map", bad[i]) != -1 || errno != EINVAL)
			fail("map %zu was not refused: %s", i, strerror(errno));
	}
	/* text behind a byte of 0 */
	EXPECT(put_bytes(SYS "map", "map x\nregion 0-10000000000\n\0x", 28) == -1 &&
	       errno == EINVAL);
	memset(big, '#', sizeof(big) - 1);
	big[sizeof(big) - 1] = 0;
	EXPECT(put(SYS "map", big) == -1 && errno == ENOSPC);
	pid = MUST(fork());
	if (!pid) {
		int fd = MUST(open(SYS "map", O_WRONLY));

		MUST(setuid(65534));
		EXPECT(write(fd, "map x\n", 6) == -1 && errno == EPERM);
		_exit(0);
	}
	CHILD_OK(pid);
	EXPECT(number(SYS "colors") == 0);
}

static void test_load(void)
{
	char buf[1024];
	pid_t pid;

	EXPECT(put(SYS "map", map_text()) == (ssize_t)strlen(map_text()));
	MUST(get(SYS "map", buf, sizeof(buf)));
	EXPECT(!strcmp(buf, map_text()));
	EXPECT(number(SYS "colors") == (long)(BANKS * nodes));
	EXPECT(put(SYS "map", map_text()) == -1 && errno == EBUSY);
	/* Nobody else has colors unless root lets them. */
	pid = MUST(fork());
	if (!pid) {
		MUST(setresuid(65534, 65534, 65534));
		EXPECT(try_color(0, 0) == -1 && errno == EDQUOT && !nr_colors());
		EXPECT(put(SYS "limit", "1") == -1 && errno == EACCES);
		_exit(0);
	}
	CHILD_OK(pid);
	EXPECT(number(SYS "limit") == 0);
	/* from now on, for the tests below */
	snprintf(buf, sizeof(buf), "%u", BANKS * nodes / 2);
	MUST(put(SYS "limit", buf));
}

static void test_errors(void)
{
	struct { struct camc_policy policy; uint64_t more; } longer = { };
	struct camc_policy policy = { .flags = CAMC_AUTO, .nr_colors = 1, .node = -1 }, *fixed;
	struct camc_policy none = { };

#define REFUSED(error, ...) EXPECT(prctl(PR_CAMC, __VA_ARGS__) == -1 && errno == (error))
	REFUSED(EINVAL, 0, &policy, sizeof(policy), 0);
	REFUSED(EINVAL, 5, &policy, sizeof(policy), 0);
	REFUSED(EINVAL, CAMC_SET, &policy, sizeof(policy), 1);
	REFUSED(EINVAL, CAMC_SET, &policy, sizeof(policy) - 1, 0);
	REFUSED(EINVAL, CAMC_CLEAR, &policy, 0, 0);
	REFUSED(EFAULT, CAMC_SET, 8, sizeof(policy), 0);
	REFUSED(ESRCH, CAMC_FILL, &none, sizeof(none), 0);
	policy.flags |= 1 << 5;
	REFUSED(EINVAL, CAMC_SET, &policy, sizeof(policy), 0);
	policy.flags = CAMC_AUTO;
	policy.colors[0] = 1;
	REFUSED(EINVAL, CAMC_SET, &policy, sizeof(policy), 0);
	policy.colors[0] = 0;
	policy.nr_colors = 0;
	REFUSED(EINVAL, CAMC_SET, &policy, sizeof(policy), 0);
	policy.flags = 0;
	REFUSED(EINVAL, CAMC_SET, &policy, sizeof(policy), 0);
	policy.node = 1000;
	policy.colors[0] = 1;
	REFUSED(ERANGE, CAMC_SET, &policy, sizeof(policy), 0);
	policy.node = -1;
	policy.colors[0] |= 1ull << (BANKS * nodes);
	REFUSED(ERANGE, CAMC_SET, &policy, sizeof(policy), 0);
	policy.colors[0] = 0;
	policy.colors[15] = 1ull << 63;
	REFUSED(ERANGE, CAMC_SET, &policy, sizeof(policy), 0);
	longer.policy.flags = CAMC_AUTO;
	longer.policy.nr_colors = 2;
	longer.policy.node = -1;
	longer.more = 1;
	REFUSED(E2BIG, CAMC_SET, &longer, sizeof(longer), 0);
	EXPECT(nr_colors() == 0 && stat_of("taken") == 0);
	longer.more = 0;
	MUST(prctl(PR_CAMC, CAMC_SET, &longer, sizeof(longer), 0));
	EXPECT(longer.policy.nr_colors == 2 && nr_colors() == 2 && stat_of("taken") == 2);
	/* An error leaves what was there; an own color is no obstacle. */
	EXPECT(try_auto(BANKS + 1, 0) == -1 && errno == EBUSY && nr_colors() == 2);
	set_auto(BANKS, 0);
	EXPECT(nr_colors() == BANKS && stat_of("taken") == BANKS);
	/* So does a policy that cannot be written back, and one of the size of everything. */
	set_auto(2, 0);
	fixed = MUST(mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	fixed->flags = CAMC_AUTO;
	fixed->nr_colors = 1;
	fixed->node = CAMC_NODE_LOCAL;
	MUST(mprotect(fixed, page, PROT_READ));
	REFUSED(EFAULT, CAMC_SET, fixed, sizeof(*fixed), 0);
	REFUSED(E2BIG, CAMC_SET, fixed, 1ul << 40, 0);
	EXPECT(nr_colors() == 2 && stat_of("taken") == 2);
#undef REFUSED
}

/* What has no meaning yet is refused, so that it can get one. */
static void test_unused(void)
{
	static const struct camc_policy unused[] = {
		{ .flags = CAMC_STRICT }, { .flags = 1u << 31 }, { .nr_colors = 1 }, { .node = -1 },
		{ .colors[0] = 1 }, { .colors[CAMC_MAX_COLORS / 64 - 1] = 1ull << 63 },
		{ .nr_pages = 1 },	/* CAMC_FILL has a use for it */
	};
	size_t nr = sizeof(unused) / sizeof(*unused), i;
	struct camc_policy policy;

	set_auto(2, 0);
	for (i = 0; i < nr; i++) {
		policy = unused[i];
		if (prctl(PR_CAMC, CAMC_GET, &policy, sizeof(policy), 0) != -1 || errno != EINVAL)
			fail("CAMC_GET did not refuse %zu: %s", i, strerror(errno));
		/* nor is anything written */
		EXPECT(!memcmp(&policy, &unused[i], sizeof(policy)));
		policy.nr_pages = 1;
		if (i < nr - 1 && (prctl(PR_CAMC, CAMC_FILL, &policy, sizeof(policy), 0) != -1 ||
				   errno != EINVAL))
			fail("CAMC_FILL did not refuse %zu: %s", i, strerror(errno));
	}
	EXPECT(nr_colors() == 2 && fill(16) >= 16);
}

static void test_taken(void)
{
	int ready[2], end[2];
	char byte;
	pid_t pid;

	MUST(pipe(ready));
	MUST(pipe(end));
	pid = MUST(fork());
	if (!pid) {
		close(end[1]);
		MUST(try_color(3, 0));
		MUST(write(ready[1], "", 1));
		MUST(read(end[0], &byte, 1));
		_exit(0);
	}
	MUST(read(ready[0], &byte, 1));
	on_node = 0;
	EXPECT(try_color(3, 0) == -1 && errno == EBUSY && nr_colors() == 0);
	EXPECT(try_auto(BANKS, 0) == -1 && errno == EBUSY && nr_colors() == 0);
	MUST(try_color(3, CAMC_SHARE));
	set_auto(BANKS, CAMC_SHARE);
	EXPECT(nr_colors() == BANKS);
	set_auto(BANKS - 1, 0);
	EXPECT(try_color(3, 0) == -1);
	close(end[1]);
	CHILD_OK(pid);
	MUST(try_color(3, 0));
}

/* Whoever has some, and asks for a number of them, keeps those that it may keep. */
static void test_kept(void)
{
	struct camc_policy policy;

	on_node = 0;
	MUST(try_colors(1 << 3 | 1 << 9, 0));
	set_auto(1, 0);
	get_policy(&policy);
	EXPECT(policy.colors[0] == 1 << 3);
	MUST(try_colors(1 << 9, 0));
	set_auto(3, CAMC_SHARE);
	get_policy(&policy);
	EXPECT(policy.colors[0] == (1 << 9 | 1 << 0 | 1 << 1));
	set_auto(BANKS, 0);
	EXPECT(nr_colors() == BANKS);
	clear_colors();
	/* with all that the limit allows, too */
	MUST(setresuid(65534, 65534, 65534));
	MUST(try_colors(((1ull << BANKS / 2) - 1) << BANKS / 2, 0));
	set_auto(BANKS / 2, 0);
	get_policy(&policy);
	EXPECT(policy.colors[0] == ((1ull << BANKS / 2) - 1) << BANKS / 2);
}

/* A process has colors, of bits 0 to 63, until it is killed. */
static pid_t hold_colors(uint64_t colors, unsigned int flags)
{
	char byte = 0;
	int up[2];
	pid_t pid;

	MUST(pipe(up));
	pid = MUST(fork());
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		MUST(try_colors(colors, flags));
		MUST(write(up[1], &byte, 1));
		for (;;)
			pause();
	}
	EXPECT(read(up[0], &byte, 1) == 1);
	close(up[0]);
	close(up[1]);
	return pid;
}

static pid_t hold_color(unsigned int color, unsigned int flags)
{
	return hold_colors(1ull << color, flags);
}

static void release_color(pid_t pid)
{
	kill(pid, SIGKILL);
	wait_for(pid);
}

/* Who is not privileged shares the colors of those only that share theirs. */
static void share_unprivileged(void)
{
	struct camc_policy policy;

	MUST(setresuid(65534, 65534, 65534));
	EXPECT(try_color(3, CAMC_SHARE) == -1 && errno == EBUSY && nr_colors() == 0);
	MUST(try_color(4, CAMC_SHARE));
	EXPECT(try_color(4, 0) == -1 && errno == EBUSY);
	set_auto(BANKS - 1, CAMC_SHARE);
	EXPECT(try_auto(BANKS, CAMC_SHARE) == -1 && errno == EBUSY);
	get_policy(&policy);
	EXPECT(policy.nr_colors == BANKS - 1 && !has_color(&policy, 3));
	_exit(0);
}

static void test_share(void)
{
	pid_t alone = hold_color(3, 0), shared = hold_color(4, CAMC_SHARE), pid;
	char limit[16];
	int status;

	on_node = 0;
	/* one of two that have it */
	MUST(try_color(3, CAMC_SHARE));
	MUST(get(SYS "limit", limit, sizeof(limit)));
	MUST(put(SYS "limit", "1024"));
	pid = MUST(fork());
	if (!pid)
		share_unprivileged();
	status = wait_for(pid);
	MUST(put(SYS "limit", limit));
	EXPECT(!status);
	/* the one that did not share it has gone */
	release_color(alone);
	pid = MUST(fork());
	if (!pid) {
		MUST(setresuid(65534, 65534, 65534));
		MUST(try_color(3, CAMC_SHARE));
		_exit(0);
	}
	CHILD_OK(pid);
	release_color(shared);
	/* its own colors are no obstacle, however it had them */
	MUST(setresuid(65534, 65534, 65534));
	MUST(try_color(5, 0));
	MUST(try_color(5, CAMC_SHARE));
	MUST(try_color(5, 0));
}

static void test_limit(void)
{
	unsigned int limit = BANKS * nodes / 2;
	uint64_t half = (1ull << limit) - 1;

	MUST(setresuid(65534, 65534, 65534));
	EXPECT(try_auto(limit + 1, 0) == -1 && (errno == EDQUOT || nodes > 1));
	set_auto(BANKS / 2, 0);
	clear_colors();
	/* Until others have taken the place of its colors it has both, for as long as it likes. */
	MUST(try_colors(half, 0));
	EXPECT(try_colors(half << limit, 0) == -1 && errno == EDQUOT);
	EXPECT(try_colors(half << 1, 0) == -1 && errno == EDQUOT);
	EXPECT(nr_colors() == limit && stat_of("taken") == (long)limit);
	/* What it keeps is not more than before. */
	MUST(try_colors(half, CAMC_SHARE));
	MUST(try_colors(half >> 1, 0));
	MUST(try_colors(half >> 1 << 1, 0));
	EXPECT(try_colors(half << 2, 0) == -1 && errno == EDQUOT);
	clear_colors();
	MUST(try_colors(half << limit, 0));
}

/* So many colors, from bit @first on, are what the limit still allows. */
static void expect_left(unsigned int first, unsigned int nr)
{
	EXPECT(try_colors(((2ull << nr) - 1) << first, 0) == -1 && errno == EDQUOT);
	MUST(try_colors(((1ull << nr) - 1) << first, 0));
	clear_colors();
}

/* Exchanges colors for the same ones, and waits until the policy can be written back. */
static void *exchange(void *policy)
{
	struct camc_policy begin = *(struct camc_policy *)policy;

	MUST(prctl(PR_CAMC, CAMC_SET, &begin, sizeof(begin), 0));
	MUST(prctl(PR_CAMC, CAMC_SET, policy, sizeof(begin), 0));
	clear_colors();
	return NULL;
}

/* What a task keeps counts once while it has both, however long it makes that last, and after. */
static void test_limit_exchange(void)
{
	struct camc_policy *policy = (struct camc_policy *)room(page);
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register where = { .range = { (uintptr_t)policy, page } };
	struct uffdio_writeprotect protect = { .range = { (uintptr_t)policy, page } };
	unsigned int half = BANKS * nodes / 4;
	int faults = syscall(SYS_userfaultfd, O_CLOEXEC), status;
	struct uffd_msg fault;
	pthread_t thread;
	pid_t pid;

	if (faults < 0)
		skip("no userfaultfd");
	MUST(ioctl(faults, UFFDIO_API, &api));
	policy->node = CAMC_NODE_LOCAL;
	policy->colors[0] = (1ull << half) - 1;
	where.mode = UFFDIO_REGISTER_MODE_WP;
	MUST(ioctl(faults, UFFDIO_REGISTER, &where));
	protect.mode = UFFDIO_WRITEPROTECT_MODE_WP;
	MUST(ioctl(faults, UFFDIO_WRITEPROTECT, &protect));
	MUST(setresuid(65534, 65534, 65534));
	EXPECT(!pthread_create(&thread, NULL, exchange, policy));
	EXPECT(read(faults, &fault, sizeof(fault)) == sizeof(fault));
	pid = MUST(fork());
	if (!pid) {
		expect_left(half, half);
		_exit(0);
	}
	status = wait_for(pid);
	protect.mode = 0;
	MUST(ioctl(faults, UFFDIO_WRITEPROTECT, &protect));
	pthread_join(thread, NULL);
	EXPECT(!status);
	expect_left(0, 2 * half);
	/* nor when it keeps what it had, since the policy cannot be written back */
	MUST(try_colors((1ull << half) - 1, 0));
	MUST(mprotect(policy, page, PROT_READ));
	EXPECT(prctl(PR_CAMC, CAMC_SET, policy, sizeof(*policy), 0) == -1 && errno == EFAULT);
	pid = MUST(fork());
	if (!pid) {
		expect_left(half, half);
		_exit(0);
	}
	CHILD_OK(pid);
	clear_colors();
	expect_left(0, 2 * half);
}

static void drop_capability(unsigned int capability)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	MUST(syscall(SYS_capget, &header, data));
	data[capability / 32].effective &= ~(1u << capability % 32);
	data[capability / 32].permitted &= ~(1u << capability % 32);
	MUST(syscall(SYS_capset, &header, data));
}

/* Whose files these are is not enough: root in a container may lack the capabilities. */
static void test_limit_set(void)
{
	char limit[16], after[16];

	MUST(get(SYS "limit", limit, sizeof(limit)));
	MUST(put(SYS "limit", limit));
	drop_capability(CAP_SYS_RESOURCE);
	EXPECT(put(SYS "limit", "1024") == -1 && errno == EPERM);
	EXPECT(put(SYS "refill", "directed") > 0);
	drop_capability(CAP_SYS_ADMIN);
	EXPECT(put(SYS "refill", "walk") == -1 && errno == EPERM);
	MUST(get(SYS "limit", after, sizeof(after)));
	EXPECT(!strcmp(limit, after));
	/* and the limit holds */
	EXPECT(try_auto(BANKS * nodes / 2 + 1, 0) == -1 && (errno == EDQUOT || nodes > 1));
}

/* ------ what has its colors --------------------------------------------- */

static void test_anonymous(void)
{
	size_t size = some();
	char *at = room(size);
	unsigned long seen[2 * BANKS] = { };
	struct camc_policy policy;
	long allocated, placed;
	int pagemap;

	set_auto(1, 0);
	put("/proc/sys/vm/stat_refresh", "1");
	allocated = sum_of("pgalloc_");
	placed = sum_of("numa_hit") + sum_of("numa_miss");
	touch(at, size);
	put("/proc/sys/vm/stat_refresh", "1");
	allocated = sum_of("pgalloc_") - allocated;
	placed = sum_of("numa_hit") + sum_of("numa_miss") - placed;
	if (allocated < (long)(size / page) || placed < (long)(size / page))
		fail("of %zu pages %ld were counted when allocated, %ld where", size / page,
		     allocated, placed);
	expect_pure(at, size);
	/* Uncolored again: what is there stays. */
	clear_colors();
	expect_content(at, size);
	munmap(at, size);
	/* Each of four colors has its share. */
	set_auto(4, 0);
	at = room(size);
	touch(at, size);
	expect_pure(at, size);
	get_policy(&policy);
	pagemap = open_pagemap();
	for (size_t i = 0; i < size; i += page)
		seen[color_of(pfn_at(pagemap, at + i))]++;
	for (unsigned int i = 0; i < BANKS * nodes; i++)
		if (has_color(&policy, i))
			if (seen[i] < size / page / 16)
				fail("only %lu pages of color %u", seen[i], i);
}

/* What is on long lists is used first, and in turn: of each zone, of which the first is filled. */
static void test_turns(void)
{
	size_t size = 1024 * page, window = 128 * page;
	char *at = room(2 * size);
	struct camc_policy policy;
	long refills;
	int pagemap;

	set_auto(4, 0);
	get_policy(&policy);
	EXPECT(fill(4096) >= 4096);
	refills = stat_of("refills");
	touch(at, size);
	EXPECT(stat_of("refills") == refills);
	pagemap = open_pagemap();
	for (size_t i = 0; i < size; i += window) {
		unsigned int seen[2 * BANKS] = { };

		for (size_t j = i; j < i + window; j += page)
			seen[color_of(pfn_at(pagemap, at + j))]++;
		for (unsigned int color = 0; color < BANKS * nodes; color++)
			if (has_color(&policy, color) && seen[color] < 8)
				fail("%u of 128 pages from %zu on have color %u", seen[color],
				     i / page, color);
	}
	expect_pure(at, size);
}

/* In the program that was started: each mapping of its own file, heap and stack is right. */
static int inspect(const char *what)
{
	char line[512], kind[256];
	unsigned long kinds = 0;
	FILE *maps = fopen("/proc/self/maps", "r");
	static char data[8192] = { 1 }, bss[8192];
	char *heap = malloc(200000);

	if (!strcmp(what, "none"))
		return nr_colors() != 0;
	touch(data, sizeof(data));
	touch(bss, sizeof(bss));
	touch(heap, 190000);
	while (fgets(line, sizeof(line), maps)) {
		unsigned long start, end;
		struct count count;

		*kind = 0;
		if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %255s", &start, &end, kind) < 2)
			continue;
		if (*kind == '[' && strcmp(kind, "[heap]") && strcmp(kind, "[stack]"))
			continue;
		/* libraries may have been in the page cache before */
		if (*kind == '/' && !strstr(kind, "/camc/inspected"))
			continue;
		count = count_pages((void *)start, end - start);
		if (count.wrong)
			fail("%s: %lu pages are right, %lu wrong", *kind ? kind : "anonymous",
			     count.right, count.wrong);
		if (strstr(kind, "inspected"))
			kinds |= count.right ? 1 : 0;
		else if (!strcmp(kind, "[heap]"))
			kinds |= count.right ? 2 : 0;
		else if (!strcmp(kind, "[stack]"))
			kinds |= count.right ? 4 : 0;
	}
	if (kinds != 7)
		fail("not all kinds of mappings had pages: %lu", kinds);
	return 0;
}

static void copy_program(const char *to)
{
	char buf[65536];
	int from = MUST(open("/proc/self/exe", O_RDONLY));
	int fd = MUST(open(to, O_WRONLY | O_CREAT | O_TRUNC, 0755));
	ssize_t n;

	while ((n = MUST(read(from, buf, sizeof(buf)))) > 0)
		MUST(write(fd, buf, n));
	close(from);
	close(fd);
}

static void test_program(void)
{
	pid_t pid;

	set_auto(1, CAMC_FORK | CAMC_EXEC);
	copy_program("/tmp/camc/inspected");
	pid = MUST(fork());
	if (!pid) {
		execl("/tmp/camc/inspected", "inspected", "--inspect", "all", NULL);
		_exit(1);
	}
	CHILD_OK(pid);
	EXPECT(stat_of("taken") == 1);
	/* no CAMC_EXEC: the next program is not colored */
	set_auto(1, CAMC_FORK);
	pid = MUST(fork());
	if (!pid) {
		execl("/tmp/camc/inspected", "inspected", "--inspect", "none", NULL);
		_exit(1);
	}
	CHILD_OK(pid);
	unlink("/tmp/camc/inspected");
}

/* A program that has more privileges than who starts it has none of the colors that he took. */
static void test_secure(void)
{
	static const char program[] = "/tmp/camc/inspected";
	pid_t pid;

	copy_program(program);
	for (int given = 0; given < 2; given++) {
		for (int secure = 0; secure < 2; secure++) {
			MUST(chmod(program, secure ? 04755 : 0755));
			pid = MUST(fork());
			if (!pid) {
				if (given)
					MUST(try_color(5, CAMC_EXEC));
				MUST(setresuid(65534, 65534, 65534));
				if (!given)
					MUST(try_color(5, CAMC_EXEC));
				execl(program, "inspected", "--has",
				      secure && !given ? "0" : "32", NULL);
				_exit(1);
			}
			CHILD_OK(pid);
		}
	}
	unlink(program);
}

/* Without CAMC_FORK children have no colors, however they are made. */
static void test_spawn(void)
{
	char *const argv[] = { "inspected", "--has", "0", NULL };
	pid_t pid;

	copy_program("/tmp/camc/inspected");
	set_auto(1, CAMC_EXEC);
	EXPECT(!posix_spawn(&pid, "/tmp/camc/inspected", NULL, NULL, argv, environ));
	CHILD_OK(pid);
	pid = MUST(vfork());
	if (!pid) {
		execv("/tmp/camc/inspected", argv);
		_exit(1);
	}
	CHILD_OK(pid);
	EXPECT(nr_colors() == 1);
	unlink("/tmp/camc/inspected");
}

/* A child by vfork() that shares its parent's colors takes its own: those outlast execve(). */
static void test_vfork_mmap(void)
{
	static char has[32];
	char *const argv[] = { "inspected", "--has", has, NULL };
	pid_t pid;

	copy_program("/tmp/camc/inspected");
	set_auto(1, 0);
	pid = MUST(vfork());
	if (!pid) {
		struct camc_policy policy;

		if (mmap((void *)(CAMC_MMAP_ON + 2), 0, PROT_CAMC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			 0) == MAP_FAILED)
			_exit(2);
		get_policy(&policy);
		snprintf(has, sizeof(has), "%llu", (unsigned long long)policy.colors[0]);
		execv("/tmp/camc/inspected", argv);
		_exit(1);
	}
	CHILD_OK(pid);
	EXPECT(nr_colors() == 1);
	unlink("/tmp/camc/inspected");
}

static void test_fork(void)
{
	size_t size = some() / 4;
	char *at = room(size);
	pid_t pid;

	set_auto(1, 0);
	touch(at, size);
	pid = MUST(fork());
	if (!pid) {
		EXPECT(nr_colors() == 0);
		_exit(0);
	}
	CHILD_OK(pid);
	set_auto(1, CAMC_FORK);
	touch(at, size);
	pid = MUST(fork());
	if (!pid) {
		/* copies have the color too */
		EXPECT(nr_colors() == 1);
		for (size_t i = 0; i < size; i += page)
			at[i + 8]++;
		expect_pure(at, size);
		expect_content(at, size);
		/* another policy is the child's alone */
		set_auto(2, 0);
		_exit(nr_colors() != 2);
	}
	CHILD_OK(pid);
	EXPECT(nr_colors() == 1 && stat_of("taken") == 1);
	/* a child with other colors shares pages until it writes */
	pid = MUST(fork());
	if (!pid) {
		struct count count;

		set_auto(1, 0);
		count = count_pages(at, size);
		EXPECT(count.right == 0 && count.wrong == size / page);
		touch(at, size);
		expect_pure(at, size);
		_exit(0);
	}
	CHILD_OK(pid);
}

static void *thread_alone(void *arg)
{
	(void)arg;
	set_auto(2, 0);
	return (void *)(unsigned long)nr_colors();
}

static void *thread_touches(void *arg)
{
	char *at = room(MIB(1));

	(void)arg;
	if (nr_colors() != 1)
		return NULL;
	touch(at, MIB(1));
	expect_pure(at, MIB(1));
	munmap(at, MIB(1));
	return (void *)1;
}

static void test_threads(void)
{
	pthread_t threads[8];
	void *ret;
	int i;

	set_auto(1, 0);
	for (i = 0; i < 8; i++)
		EXPECT(!pthread_create(&threads[i], NULL, thread_touches, NULL));
	for (i = 0; i < 8; i++) {
		pthread_join(threads[i], &ret);
		EXPECT(ret == (void *)1);
	}
	EXPECT(!pthread_create(&threads[0], NULL, thread_alone, NULL));
	pthread_join(threads[0], &ret);
	EXPECT(ret == (void *)2 && nr_colors() == 1);
	/* the last thread that has the set exits without the others */
	EXPECT(!pthread_create(&threads[0], NULL, thread_touches, NULL));
	clear_colors();
	pthread_join(threads[0], &ret);
	for (i = 0; stat_of("taken") && i < 1000; i++)
		usleep(1000);
	EXPECT(stat_of("taken") == 0);
}

static void test_huge(void)
{
	size_t size = MIB(8);
	char *at;

	if (access("/sys/kernel/mm/transparent_hugepage", F_OK))
		skip("no THP");
	set_auto(1, 0);
	at = room(size);
	MUST(madvise(at, size, MADV_HUGEPAGE));
	touch(at, size);
	expect_pure(at, size);
	EXPECT(madvise(at, size, 25 /* MADV_COLLAPSE */) == -1);
	expect_pure(at, size);
}

static int thp_is_disabled(void)
{
	return MUST(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0));
}

/* Are they disabled in a child, and in the program that it starts? */
static void expect_thp_disabled(int child, const char *program)
{
	pid_t pid = MUST(fork());

	if (!pid) {
		EXPECT(thp_is_disabled() == child);
		execl("/tmp/camc/inspected", "inspected", "--thp", program, NULL);
		_exit(1);
	}
	CHILD_OK(pid);
}

/* A process has no huge pages for its colors, or because it said so, which is inherited. */
static void test_huge_inherited(void)
{
	char *const argv[] = { "inspected", "--thp", "0", NULL };
	pid_t pid;

	if (access("/sys/kernel/mm/transparent_hugepage", F_OK))
		skip("no THP");
	copy_program("/tmp/camc/inspected");
	EXPECT(!thp_is_disabled());
	set_auto(1, 0);
	EXPECT(thp_is_disabled());
	expect_thp_disabled(0, "0");
	EXPECT(!posix_spawn(&pid, "/tmp/camc/inspected", NULL, NULL, argv, environ));
	CHILD_OK(pid);
	set_auto(1, CAMC_FORK);
	expect_thp_disabled(1, "0");
	set_auto(1, CAMC_FORK | CAMC_EXEC);
	expect_thp_disabled(1, "1");
	clear_colors();
	EXPECT(thp_is_disabled());
	expect_thp_disabled(0, "0");
	MUST(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0));
	expect_thp_disabled(1, "1");
	set_auto(1, 0);
	expect_thp_disabled(1, "1");
	MUST(prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0));
	expect_thp_disabled(0, "0");
	unlink("/tmp/camc/inspected");
}

static bool fork_begins;

static void *thread_disables_thp(void *delay)
{
	while (!__atomic_load_n(&fork_begins, __ATOMIC_ACQUIRE))
		;
	usleep(*(unsigned int *)delay);
	MUST(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0));
	return NULL;
}

/* A thread makes it the process's own wish while another one forks: so or so, it is inherited. */
static void test_huge_race(void)
{
	const unsigned int rounds = 50;
	size_t size = 8 * some();
	char *at = room(size);
	unsigned int i, took;
	double begin;
	pid_t pid;

	if (access("/sys/kernel/mm/transparent_hugepage", F_OK))
		skip("no THP");
	set_auto(BANKS / 2, CAMC_FORK);
	touch(at, size);
	begin = now();
	pid = MUST(fork());
	if (!pid)
		_exit(0);
	took = (now() - begin) * 1e6;
	CHILD_OK(pid);
	for (i = 0; i < rounds; i++) {
		unsigned int delay = took / rounds * i;
		pthread_t thread;

		MUST(prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0));
		set_auto(BANKS / 2, CAMC_FORK);
		EXPECT(!pthread_create(&thread, NULL, thread_disables_thp, &delay));
		__atomic_store_n(&fork_begins, true, __ATOMIC_RELEASE);
		pid = MUST(fork());
		if (!pid) {
			EXPECT(nr_colors() == BANKS / 2);
			if (!thp_is_disabled())
				fail("round %u: the child has huge pages", i);
			_exit(0);
		}
		CHILD_OK(pid);
		pthread_join(thread, NULL);
		fork_begins = false;
	}
}

/* What a child by vfork() takes for itself changes nothing for its parent, whose memory it uses. */
static void test_huge_vfork(void)
{
	char *const argv[] = { "inspected", "--thp", "1", NULL };
	bool paper;
	pid_t pid;

	if (access("/sys/kernel/mm/transparent_hugepage", F_OK))
		skip("no THP");
	copy_program("/tmp/camc/inspected");
	for (int i = 0; i < 2; i++) {
		paper = i;
		pid = MUST(vfork());
		if (!pid) {
			if (paper && mmap((void *)(CAMC_MMAP_ON + 1), 0, PROT_CAMC,
					  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
				_exit(2);
			if (!paper && try_auto(1, CAMC_EXEC))
				_exit(3);
			execv("/tmp/camc/inspected", argv);
			_exit(1);
		}
		CHILD_OK(pid);
		EXPECT(nr_colors() == 0);
		if (thp_is_disabled())
			fail("the parent has no huge pages after %s", paper ? "mmap()" : "prctl()");
	}
	unlink("/tmp/camc/inspected");
}

static int takes_itself(void *arg)
{
	(void)arg;
	return try_auto(1, CAMC_EXEC) ? 2 : 0;
}

static int thread_takes(void *done)
{
	__atomic_store_n((int *)done, try_auto(1, CAMC_EXEC) ? -1 : 1, __ATOMIC_RELEASE);
	return 0;
}

/* The C library takes who calls it for his parent: so no thread of its. */
static int takes_by_thread(void *stack)
{
	int done = 0;

	if (clone(thread_takes, (char *)stack - MIB(1) / 2,
		  CLONE_VM | CLONE_SIGHAND | CLONE_THREAD, &done) < 0)
		return 3;
	while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE))
		usleep(1000);
	return done != 1;
}

/* Its own child has an address space of its own. */
static int takes_and_forks(void *arg)
{
	int status;
	pid_t pid;

	(void)arg;
	if (try_auto(1, CAMC_FORK))
		return 4;
	pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (!pid)
		_exit(nr_colors() != 1 || !thp_is_disabled());
	return waitpid(pid, &status, 0) != pid || status ? 5 : 0;
}

/* Whoever is in another's address space until execve(), and not only his child's first thread */
static void test_huge_clone(void)
{
	static const struct {
		int (*fn)(void *stack);
		int flags;
	} ways[] = {
		{ takes_itself, CLONE_PARENT },
		{ takes_by_thread, 0 },
		{ takes_and_forks, 0 },
	};
	size_t i;

	if (access("/sys/kernel/mm/transparent_hugepage", F_OK))
		skip("no THP");
	for (i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		/* whose child is ours, if it says so */
		pid_t pid = MUST(fork());

		if (!pid) {
			char *stack = room(MIB(1)) + MIB(1);

			MUST(clone(ways[i].fn, stack,
				   CLONE_VM | CLONE_VFORK | SIGCHLD | ways[i].flags, stack));
			if (thp_is_disabled())
				fail("the parent has no huge pages after way %zu", i);
			EXPECT(nr_colors() == 0);
			if (!(ways[i].flags & CLONE_PARENT))
				CHILD_OK(-1);
			_exit(0);
		}
		CHILD_OK(-1);
		if (ways[i].flags & CLONE_PARENT)
			CHILD_OK(-1);
	}
}

struct pipes {
	int up[2], down[2];
};

/* Takes colors when it is told to: has it no huge pages then? */
static int takes_alone(void *arg)
{
	struct pipes *pipes = arg;
	pid_t self = getpid();
	char byte;

	close(pipes->down[1]);
	if (write(pipes->up[1], &self, sizeof(self)) != sizeof(self) ||
	    read(pipes->down[0], &byte, 1) != 1)
		return 1;
	byte = !try_auto(1, CAMC_EXEC) && thp_is_disabled();
	return write(pipes->up[1], &byte, 1) != 1;
}

/* Reads all the time what is mapped below 4 GiB: as long as that the memory has one user more. */
static void look_at(int pagemap, int told)
{
	char *at = room(MIB(8));

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	EXPECT(pread(pagemap, at, MIB(8), 0) == (ssize_t)MIB(8));
	MUST(write(told, at, 1));
	while (pread(pagemap, at, MIB(8), 0) > 0)
		;
	_exit(0);
}

/* Whose parent, in whose memory he is, has gone is alone there, though somebody looks at it. */
static void test_huge_alone(void)
{
	pid_t pid, alone, reader;
	struct pipes pipes;
	char path[64], byte;
	int pagemap;

	if (access("/sys/kernel/mm/transparent_hugepage", F_OK))
		skip("no THP");
	MUST(pipe(pipes.up));
	MUST(pipe(pipes.down));
	pid = MUST(fork());
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		MUST(clone(takes_alone, room(MIB(1)) + MIB(1), CLONE_VM | CLONE_VFORK | SIGCHLD,
			   &pipes));
		_exit(1);
	}
	EXPECT(read(pipes.up[0], &alone, sizeof(alone)) == sizeof(alone));
	kill(pid, SIGKILL);
	EXPECT(WIFSIGNALED(wait_for(pid)));
	snprintf(path, sizeof(path), "/proc/%d/pagemap", alone);
	pagemap = MUST(open(path, O_RDONLY));
	reader = MUST(fork());
	if (!reader)
		look_at(pagemap, pipes.up[1]);
	close(pipes.up[1]);
	EXPECT(read(pipes.up[0], &byte, 1) == 1);
	MUST(write(pipes.down[1], &byte, 1));
	EXPECT(read(pipes.up[0], &byte, 1) == 1);
	kill(reader, SIGKILL);
	wait_for(reader);
	EXPECT(byte == 1);
}

/* Who has no colors makes no huge page of what he shares with a task that has some. */
static void test_huge_shared(void)
{
	char *at = room(MIB(4)), *shared;
	int up[2], down[2];
	char byte = 0;
	pid_t pid;

	if (access("/sys/kernel/mm/transparent_hugepage", F_OK))
		skip("no THP");
	at += -(uintptr_t)at % MIB(2);
	shared = MUST(mmap(at, MIB(2), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED,
			   -1, 0));
	MUST(pipe(up));
	MUST(pipe(down));
	pid = MUST(fork());
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		set_auto(1, 0);
		touch(shared, MIB(2));
		expect_pure(shared, MIB(2));
		MUST(write(up[1], &byte, 1));
		MUST(read(down[0], &byte, 1));
		expect_pure(shared, MIB(2));
		expect_content(shared, MIB(2));
		_exit(0);
	}
	EXPECT(read(up[0], &byte, 1) == 1);
	for (int i = 0; i < 3; i++)
		EXPECT(madvise(shared, MIB(2), 25 /* MADV_COLLAPSE */) == -1);
	MUST(write(down[1], &byte, 1));
	CHILD_OK(pid);
	/* it would have been one */
	if (madvise(shared, MIB(2), 25))
		skip("no huge pages of shared memory");
}

/* KSM looks at pages until the number in a file has become so large, or for some seconds. */
static void scan_until(const char *file, long value, const char *batch, const char *pause_ms)
{
	int i;

	MUST(put("/sys/kernel/mm/ksm/sleep_millisecs", pause_ms));
	MUST(put("/sys/kernel/mm/ksm/pages_to_scan", batch));
	MUST(put("/sys/kernel/mm/ksm/run", "1"));
	for (i = 0; i < 3000 && number(file) < value; i++)
		usleep(1000);
	MUST(put("/sys/kernel/mm/ksm/run", "0"));
}

#define FULL_SCANS "/sys/kernel/mm/ksm/full_scans"

/* At all that is mergeable, so many times */
static void scan(int times)
{
	scan_until(FULL_SCANS, number(FULL_SCANS) + times, "1000", "0");
}

static void test_merged(void)
{
	size_t size = MIB(1);
	char *at;

	if (access("/sys/kernel/mm/ksm/run", F_OK))
		skip("no KSM");
	set_auto(1, 0);
	at = room(size);
	memset(at, 0x5a, size);
	MUST(madvise(at, size, MADV_MERGEABLE));
	scan(3);
	expect_pure(at, size);
	EXPECT(number("/sys/kernel/mm/ksm/pages_sharing") == 0);
}

/* Pages that wait for their like are of a color that is taken now: they must not go on waiting. */
static void test_merged_before(void)
{
	size_t size = MIB(4), i;
	char *at;

	if (access("/sys/kernel/mm/ksm/run", F_OK))
		skip("no KSM");
	at = room(size);
	for (i = 0; i < size; i += page)
		*(size_t *)(at + i) = i + 1;
	MUST(madvise(at, size, MADV_MERGEABLE));
	MUST(put("/sys/kernel/mm/ksm/smart_scan", "0"));
	scan(3);
	EXPECT(number("/sys/kernel/mm/ksm/pages_unshared") > 0);
	set_auto(1, 0);
	scan(4);
	MUST(put("/sys/kernel/mm/ksm/run", "2"));
	EXPECT(number("/sys/kernel/mm/ksm/pages_unshared") == 0);
	MUST(put("/sys/kernel/mm/ksm/run", "0"));
	MUST(put("/sys/kernel/mm/ksm/smart_scan", "1"));
}

/* Of frames of a color, those that have an anonymous page which nobody maps: as if held for ever */
static size_t left_behind(const uint64_t *pfns, size_t nr, unsigned int color)
{
	int flags = MUST(open("/proc/kpageflags", O_RDONLY));
	int counts = MUST(open("/proc/kpagecount", O_RDONLY));
	uint64_t flag, count;
	size_t left = 0;

	for (size_t i = 0; i < nr; i++) {
		if (color_of(pfns[i]) != color)
			continue;
		MUST(pread(flags, &flag, 8, pfns[i] * 8));
		MUST(pread(counts, &count, 8, pfns[i] * 8));
		left += flag >> KPF_ANON & 1 && !count;
	}
	close(flags);
	close(counts);
	return left;
}

/*
 * The first half waits for its like, a color is taken, and KSM comes to the second half: pages of
 * that color are not given up for pages of others.
 */
static void test_merged_meanwhile(void)
{
	size_t half = MIB(2), i, first = 0, moved = 0, waiting = 0;
	static uint64_t pfns[512];
	int pagemap = open_pagemap(), color;
	char *at, byte = 0;
	int up[2], down[2];
	pid_t pid;

	if (access("/sys/kernel/mm/ksm/run", F_OK))
		skip("no KSM");
	at = room(half * 2);
	for (i = 0; i < half * 2; i += page)
		*(size_t *)(at + i) = i % half + 1;
	MUST(madvise(at, half * 2, MADV_NOHUGEPAGE));
	MUST(madvise(at, half * 2, MADV_MERGEABLE));
	MUST(put("/sys/kernel/mm/ksm/smart_scan", "0"));
	/* their checksums are known then, and some begin to wait in the next scan */
	scan_until(FULL_SCANS, number(FULL_SCANS) + 1, "16", "2");
	scan_until("/sys/kernel/mm/ksm/pages_unshared", 128, "16", "2");
	waiting = number("/sys/kernel/mm/ksm/pages_unshared");
	printf("# %zu pages wait\n", waiting);
	if (waiting < 64 || waiting > 448)
		skip("KSM could not be stopped between the halves");
	for (i = 0; i < half / page; i++)
		pfns[i] = pfn_at(pagemap, at + i * page);
	/* of two that are alike it takes the color of the one that waits */
	for (i = 0; i < 63 && color_of(pfns[i]) == color_of(pfn_at(pagemap, at + half + i * page));)
		i++;
	color = color_of(pfns[i]);
	MUST(pipe(up));
	MUST(pipe(down));
	pid = MUST(fork());
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		MUST(try_color(color, 0));
		MUST(write(up[1], &byte, 1));
		MUST(read(down[0], &byte, 1));
		_exit(0);
	}
	EXPECT(read(up[0], &byte, 1) == 1);
	scan(1);
	for (i = 0; i < half / page; i++) {
		first += color_of(pfns[i]) == (unsigned int)color;
		moved += color_of(pfns[i]) == (unsigned int)color &&
			 pfn_at(pagemap, at + i * page) != pfns[i];
	}
	printf("# %zu pages waited; %zu of a color that was taken, %zu of them are elsewhere\n",
	       waiting, first, moved);
	MUST(write(down[1], &byte, 1));
	MUST(put("/sys/kernel/mm/ksm/run", "2"));
	MUST(put("/sys/kernel/mm/ksm/run", "0"));
	MUST(put("/sys/kernel/mm/ksm/smart_scan", "1"));
	CHILD_OK(pid);
	EXPECT(first && !moved);
	munmap(at, half * 2);
	for (i = 0; i < 100 && left_behind(pfns, half / page, color); i++) {
		/* empties the lists of pages on their way to the LRU */
		MUST(put("/proc/sys/vm/compact_memory", "1"));
		usleep(20000);
	}
	EXPECT(!left_behind(pfns, half / page, color));
}

static size_t touch_to_the_end(char *at, size_t size);

/* Merged pages that cannot be had singly again, for want of colors, are not said to be. */
static void test_unmerge(void)
{
	size_t size = MIB(1);
	char *at, *most = room(MIB(1024));
	int pagemap = open_pagemap(), ret, error;
	long sharing;
	bool left;

	if (access("/sys/kernel/mm/ksm/run", F_OK))
		skip("no KSM");
	at = room(size);
	MUST(madvise(at, size, MADV_NOHUGEPAGE));
	memset(at, 0x5a, size);
	MUST(madvise(at, size, MADV_MERGEABLE));
	/* All of them: one that is left out, as somebody looks at it, keeps its color. */
	scan_until("/sys/kernel/mm/ksm/pages_sharing", size / page - 1, "1000", "0");
	sharing = number("/sys/kernel/mm/ksm/pages_sharing");
	set_auto(1, CAMC_STRICT);
	touch_to_the_end(most, MIB(1024));
	signal(SIGBUS, SIG_DFL);
	ret = madvise(at, size, MADV_UNMERGEABLE);
	error = errno;
	munmap(most, MIB(2));
	/* the page that all have may have moved */
	left = pfn_at(pagemap, at + size - page) == pfn_at(pagemap, at + size - 2 * page);
	printf("# %ld pages were merged; the last one %s: %s\n", sharing,
	       left ? "still is" : "is no more", ret ? strerror(error) : "no error");
	/* as madvise() has ENOMEM */
	EXPECT(sharing == (long)(size / page - 1));
	EXPECT(left && ret == -1 && error == EAGAIN);
	MUST(madvise(at, size, MADV_UNMERGEABLE));
	expect_pure(at, size);
	EXPECT(pfn_at(pagemap, at) != pfn_at(pagemap, at + size - page));
}

/* They are disabled before there are colors: also if these go again, since the mapping fails. */
static void test_huge_mmap(void)
{
	if (access("/sys/kernel/mm/transparent_hugepage", F_OK))
		skip("no THP");
	EXPECT(mmap((void *)(CAMC_MMAP_ON + BANKS * nodes + 1ul), page, PROT_READ | PROT_CAMC,
		    MAP_PRIVATE, -1, 0) == MAP_FAILED && errno == EBUSY);
	EXPECT(!thp_is_disabled());
	EXPECT(mmap((void *)(CAMC_MMAP_ON + 1), page, PROT_READ | PROT_CAMC, MAP_PRIVATE, -1, 0) ==
	       MAP_FAILED && errno == EBADF);
	EXPECT(thp_is_disabled() && nr_colors() == 0);
}

static void test_mmap(void)
{
	char *at = mmap((void *)(CAMC_MMAP_ON + 2), some(), PROT_READ | PROT_WRITE | PROT_CAMC,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(at != MAP_FAILED);
	EXPECT(nr_colors() == 2);
	touch(at, some());
	expect_pure(at, some());
	EXPECT(mmap((void *)CAMC_MMAP_OFF, 0, PROT_CAMC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == 0);
	EXPECT(nr_colors() == 0);
	EXPECT(mmap((void *)1, 0, PROT_CAMC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED &&
	       errno == EINVAL);
	EXPECT(mmap((void *)CAMC_MMAP_ON, 0, PROT_CAMC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == 0);
	EXPECT(nr_colors() == 1);
	/* What fails changes no color, and no address is overwritten. */
	EXPECT(mmap((void *)(CAMC_MMAP_ON + 2), page, PROT_READ | PROT_CAMC, MAP_PRIVATE, -1, 0) ==
	       MAP_FAILED && errno == EBADF);
	EXPECT(mmap((void *)CAMC_MMAP_OFF, page, PROT_READ | PROT_CAMC, MAP_PRIVATE, -1, 0) ==
	       MAP_FAILED && errno == EBADF);
	EXPECT(mmap((void *)(CAMC_MMAP_ON + 2), page, PROT_READ | PROT_CAMC,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED &&
	       errno == EINVAL);
	EXPECT(nr_colors() == 1 && stat_of("taken") == 1);
	/* Pages that come with the mapping have the new colors. */
	at = mmap((void *)(CAMC_MMAP_ON + 2), MIB(1), PROT_READ | PROT_WRITE | PROT_CAMC,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	EXPECT(at != MAP_FAILED && nr_colors() == 2);
	expect_pure(at, MIB(1));
}

/* Buffers that are registered are pinned for long: their pages are not movable. */
static void test_pinned(void)
{
	struct io_uring_params params = { };
	size_t size = MIB(1);
	struct iovec vec = { .iov_base = room(size), .iov_len = size };
	int ring = syscall(__NR_io_uring_setup, 4, &params);

	if (ring < 0)
		skip("no io_uring");
	set_auto(1, 0);
	MUST(syscall(__NR_io_uring_register, ring, IORING_REGISTER_BUFFERS, &vec, 1));
	expect_pure(vec.iov_base, size);
	close(ring);
}

/* Pages of CMA areas in zones that pinned pages may be in: a search there does not see all. */
static long pages_of_areas(void)
{
	FILE *file = fopen("/proc/zoneinfo", "r");
	char line[256], zone[32] = "";
	long sum = 0, nr;

	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "Node %*d, zone %31s", zone) != 1 &&
		    sscanf(line, " cma %ld", &nr) == 1 && strcmp(zone, "Movable"))
			sum += nr;
	}
	fclose(file);
	return sum;
}

/* Who pins pages at the end of its colors does not search the zone each time, either. */
static void test_pinned_end(void)
{
	struct io_uring_params params = { };
	char *at = room(MIB(1024)), *buf = room(32 * page);
	int ring = syscall(__NR_io_uring_setup, 4, &params), pinned = 0;
	long scanned;

	if (ring < 0)
		skip("no io_uring");
	if (pages_of_areas())
		skip("all zones have CMA areas");
	set_auto(1, CAMC_STRICT);
	touch_to_the_end(at, MIB(1024));
	signal(SIGBUS, SIG_DFL);
	/* What was found by faults that may have any page is forgotten. */
	usleep(1100000);
	scanned = stat_of("scanned");
	for (int i = 0; i < 20; i++) {
		struct iovec vec = { .iov_base = buf + i * page, .iov_len = page };

		pinned += !syscall(__NR_io_uring_register, ring, IORING_REGISTER_BUFFERS, &vec, 1);
	}
	scanned = stat_of("scanned") - scanned;
	munmap(at, MIB(1));
	printf("# %d of 20 pages were pinned, %ld were searched\n", pinned, scanned);
	EXPECT(pinned < 20 && scanned < 20l * 64 * 512 * (long)nodes);
	close(ring);
}

static void *write_colors(void *until)
{
	int fd = MUST(open(CGROUP "/memory.colors", O_WRONLY));

	while (now() < *(double *)until)
		MUST(pwrite(fd, "4-5 strict", 10, 0));
	close(fd);
	return NULL;
}

/* Two write the cgroup's own colors, while a task in it looks for a program that is not there. */
static void write_colors_together(void)
{
	double until = now() + 1;
	pthread_t thread;
	pid_t pid;

	pid = MUST(fork());
	if (!pid) {
		MUST(put(CGROUP "/below/cgroup.procs", "0"));
		while (now() < until)
			execl("/tmp/camc/not-there", "not-there", NULL);
		_exit(0);
	}
	EXPECT(!pthread_create(&thread, NULL, write_colors, &until));
	write_colors(&until);
	pthread_join(thread, NULL);
	CHILD_OK(pid);
}

/* What can be executed by its mode only */
static void write_program(const char *path)
{
	int fd = MUST(open(path, O_WRONLY | O_CREAT | O_TRUNC, 0755));

	MUST(write(fd, "\177nothing\n", 9));
	close(fd);
}

static void test_cgroup(void)
{
	char path[128], buf[256];
	pid_t pid;
	int fd;

	if (access(CGROUP "/memory.colors", F_OK))
		skip("no memory cgroup");
	snprintf(path, sizeof(path), CGROUP "/below");
	MUST(put(CGROUP "/cgroup.subtree_control", "+memory"));
	mkdir(path, 0755);
	EXPECT(put(CGROUP "/memory.colors", "x") == -1 && errno == EINVAL);
	EXPECT(put(CGROUP "/memory.colors", "auto") == -1 && errno == EINVAL);
	EXPECT(put(CGROUP "/memory.colors", "4-5\nstrict") == -1 && errno == EINVAL);
	EXPECT(put(CGROUP "/memory.colors", "1000") == -1 && errno == ERANGE);
	MUST(put(CGROUP "/memory.colors", "4-5 strict"));
	MUST(get(CGROUP "/memory.colors", buf, sizeof(buf)));
	EXPECT(!strcmp(buf, "4-5 strict\n"));
	EXPECT(stat_of("taken") == 2);
	/* Its own colors are free for it as long as no program has them. */
	MUST(put(CGROUP "/memory.colors", "4-6 strict"));
	EXPECT(stat_of("taken") == 3);
	MUST(put(CGROUP "/memory.colors", "4-5 strict"));
	MUST(put(CGROUP "/memory.colors", "4-5 strict"));
	EXPECT(stat_of("taken") == 2);
	write_colors_together();
	EXPECT(stat_of("taken") == 2);
	copy_program("/tmp/camc/inspected");
	pid = MUST(fork());
	if (!pid) {
		MUST(put(CGROUP "/below/cgroup.procs", "0"));
		EXPECT(nr_colors() == 0);
		execl("/tmp/camc/inspected", "inspected", "--has", "48", NULL);
		_exit(1);
	}
	CHILD_OK(pid);
	/* A program that is not there has no colors, and one that comes without any gets these. */
	pid = MUST(fork());
	if (!pid) {
		MUST(put(CGROUP "/below/cgroup.procs", "0"));
		execl("/tmp/camc/not-there", "not-there", NULL);
		EXPECT(nr_colors() == 0);
		/* nor one that is none, which is found out when it is read */
		write_program("/tmp/camc/garbage");
		execl("/tmp/camc/garbage", "garbage", NULL);
		EXPECT(errno == ENOEXEC && nr_colors() == 0 && stat_of("taken") == 2);
		MUST(try_color(7, 0));
		execl("/tmp/camc/not-there", "not-there", NULL);
		EXPECT(nr_colors() == 1);
		execl("/tmp/camc/inspected", "inspected", "--has", "48", NULL);
		_exit(1);
	}
	CHILD_OK(pid);
	/* A program that has them keeps them. */
	pid = MUST(fork());
	if (!pid) {
		MUST(put(CGROUP "/below/cgroup.procs", "0"));
		execl("/tmp/camc/inspected", "inspected", "--wait", NULL);
		_exit(1);
	}
	for (int i = 0; field("/proc/camc", "task ") < 0 && i < 5000; i++)
		usleep(1000);
	EXPECT(put(CGROUP "/memory.colors", "4-6 strict") == -1 && errno == EBUSY);
	MUST(get(CGROUP "/memory.colors", buf, sizeof(buf)));
	EXPECT(!strcmp(buf, "4-5 strict\n") && stat_of("taken") == 2);
	MUST(put(CGROUP "/memory.colors", "4-6 share"));
	EXPECT(stat_of("taken") == 3);
	kill(pid, SIGKILL);
	wait_for(pid);
	MUST(put(CGROUP "/memory.colors", "auto 3"));
	EXPECT(stat_of("taken") == 3);
	MUST(put(CGROUP "/memory.colors", "none"));
	EXPECT(stat_of("taken") == 0);
	/* The limit holds if who has opened the file is not privileged, or who writes. */
	MUST(get(SYS "limit", buf, sizeof(buf)));
	MUST(put(SYS "limit", "1"));
	MUST(chmod(CGROUP "/memory.colors", 0666));
	MUST(seteuid(65534));
	fd = MUST(open(CGROUP "/memory.colors", O_WRONLY));
	EXPECT(write(fd, "auto 2", 6) == -1 && errno == EDQUOT);
	MUST(seteuid(0));
	EXPECT(write(fd, "auto 2", 6) == -1 && errno == EDQUOT);
	MUST(write(fd, "auto 1", 6));
	/* its only one is given back at once, for another */
	MUST(write(fd, "5", 1));
	close(fd);
	MUST(chmod(CGROUP "/memory.colors", 0644));
	MUST(put(CGROUP "/memory.colors", "auto 2"));
	MUST(put(CGROUP "/memory.colors", "none"));
	MUST(put(SYS "limit", buf));
	MUST(put(CGROUP "/below/memory.colors", "7"));
	MUST(rmdir(path));
	for (int i = 0; stat_of("taken") && i < 5000; i++)
		usleep(1000);
	EXPECT(stat_of("taken") == 0);
	/* Disk bandwidth is controlled by memory: without memory it stays, and has no colors. */
	if (put(CGROUP "/cgroup.subtree_control", "+io") != -1) {
		mkdir(path, 0755);
		MUST(put(CGROUP "/below/memory.colors", "7"));
		MUST(put(CGROUP "/cgroup.subtree_control", "-memory"));
		EXPECT(stat_of("taken") == 0);
		MUST(put(CGROUP "/cgroup.subtree_control", "-io"));
		MUST(rmdir(path));
	} else {
		MUST(put(CGROUP "/cgroup.subtree_control", "-memory"));
	}
	unlink("/tmp/camc/inspected");
}

static void *thread_waits(void *barrier)
{
	pthread_barrier_wait(barrier);
	pthread_barrier_wait(barrier);
	return NULL;
}

/* Each thread has a line, and one only, in more than the kernel has room for at first. */
static void expect_threads(void)
{
	enum { THREADS = 150 };
	pthread_t threads[THREADS];
	pthread_barrier_t barrier;
	char buf[16384], want[64];
	unsigned int lines = 0;
	long last = 0;

	EXPECT(!pthread_barrier_init(&barrier, NULL, THREADS + 1));
	for (int i = 0; i < THREADS; i++)
		EXPECT(!pthread_create(&threads[i], NULL, thread_waits, &barrier));
	pthread_barrier_wait(&barrier);
	MUST(get("/proc/camc", buf, sizeof(buf)));
	snprintf(want, sizeof(want), "\ntask %d ", getpid());
	for (char *at = buf; (at = strstr(at, want)); lines++) {
		long thread;

		at += strlen(want);
		thread = atol(at);
		EXPECT(thread > last);
		last = thread;
	}
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	if (lines != THREADS + 1)
		fail("%u lines of %u threads", lines, THREADS + 1);
}

static void test_proc(void)
{
	char buf[8192], want[256];
	unsigned int id;
	char *at;

	MUST(try_color(9, CAMC_STRICT | CAMC_FORK));
	MUST(get("/proc/camc", buf, sizeof(buf)));
	at = strstr(buf, " strict,fork 9\n");
	EXPECT(at);
	while (at > buf && at[-1] != '\n')
		at--;
	EXPECT(sscanf(at, "set %u ", &id) == 1);
	snprintf(want, sizeof(want), "task %d %d %u ", getpid(), getpid(), id);
	at = strstr(buf, want);
	EXPECT(at);
	EXPECT(atol(at + strlen(want)) > 0 && strstr(at, " camc_colors\n"));
	expect_threads();
	/* A name is no line. */
	MUST(prctl(PR_SET_NAME, "a\nset 77 x", 0, 0, 0));
	MUST(get("/proc/camc", buf, sizeof(buf)));
	EXPECT(!strstr(buf, "\nset 77") && strstr(buf, " a\\nset 77 x\n"));
}

/* ------ at the end of the colors ---------------------------------------- */

static sigjmp_buf end_of_color;

static void on_sigbus(int sig)
{
	siglongjmp(end_of_color, sig);
}

/* Where the frame of a signal handler will be */
static void touch_stack(void)
{
	char frame[65536];

	for (size_t i = 0; i < sizeof(frame); i += 1024)
		store(frame + i, 1);
}

/* Touches until SIGBUS; how many pages that were */
static size_t touch_to_the_end(char *at, size_t size)
{
	static size_t done;

	touch_stack();
	done = 0;
	if (sigsetjmp(end_of_color, 1))
		return done / page;
	signal(SIGBUS, on_sigbus);
	for (; done < size; done += page)
		store(at + done, 1);
	return done / page;
}

/*
 * Trap 1: it ends by a signal, and nothing was reclaimed, from anybody. Trap 6: it had most. At the
 * end there is no page for anything new, so that nothing is printed before some are unmapped.
 */
static void test_strict_end(void)
{
	long swapped = field("/proc/vmstat", "pswpout ");
	long scanned = field("/proc/vmstat", "pgscan_direct ");
	long killed = field("/proc/vmstat", "oom_kill ");
	long stalled = sum_of("allocstall_");
	size_t size = MIB(1024), got, more = 0, free;
	char *at = room(size), *again = room(MIB(1));
	long first, second, exhausted;
	double begin, seconds;

	set_auto(1, CAMC_STRICT);
	free = field("/proc/meminfo", "MemFree:") / 4 / BANKS / nodes;
	first = stat_of("scanned");
	begin = now();
	got = touch_to_the_end(at, size);
	seconds = now() - begin;
	/* Trap 5: who goes on trying does not search the zone each time. */
	second = stat_of("scanned");
	for (int i = 0; i < 20; i++)
		more += touch_to_the_end(again + i * page, page);
	first = second - first;
	second = stat_of("scanned") - second;
	exhausted = stat_of("exhausted");
	swapped -= field("/proc/vmstat", "pswpout ");
	scanned -= field("/proc/vmstat", "pgscan_direct ");
	killed -= field("/proc/vmstat", "oom_kill ");
	stalled -= sum_of("allocstall_");
	signal(SIGBUS, SIG_DFL);
	munmap(at + (got - 256) * page, 256 * page);
	printf("# %zu pages in %.1f s, of about %zu free ones; searched %ld pages\n", got,
	       seconds, free, first);
	printf("# 20 more faults got %zu pages and searched %ld\n", more, second);
	EXPECT(got < size / page && got > free * 8 / 10);
	EXPECT(!swapped && !scanned && !killed && !stalled && exhausted > 0);
	EXPECT(more < 20 && second < 20l * 64 * 512 * (long)nodes);
	EXPECT(nr_colors() == 1);
	expect_pure(at, (got - 256) * page);
	/* What was freed is found again. */
	EXPECT(touch_to_the_end(again, MIB(1)) > 200);
}

/* What a task of no colors frees is found at once by who was at the end of these. */
static void test_freed_by_others(void)
{
	size_t held = MIB(16), got;
	char *at = room(MIB(1024)), *again = room(MIB(1));
	unsigned int color;
	int go[2], done[2];
	pid_t pid;

	MUST(pipe(go));
	MUST(pipe(done));
	pid = MUST(fork());
	if (!pid) {
		char *mine = room(held);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		MUST(madvise(mine, held, MADV_NOHUGEPAGE));
		touch(mine, held);
		color = color_of(pfn_at(open_pagemap(), mine));
		MUST(write(done[1], &color, sizeof(color)));
		EXPECT(read(go[0], &color, sizeof(color)) == sizeof(color));
		munmap(mine, held);
		MUST(write(done[1], &color, sizeof(color)));
		_exit(0);
	}
	EXPECT(read(done[0], &color, sizeof(color)) == sizeof(color));
	MUST(try_color(color, CAMC_STRICT));
	touch_to_the_end(at, MIB(1024));
	/* The end of one zone after the other is found, and remembered for a second. */
	while (touch_to_the_end(again, page))
		madvise(at, page, MADV_DONTNEED);
	MUST(write(go[1], &color, sizeof(color)));
	EXPECT(read(done[0], &color, sizeof(color)) == sizeof(color));
	got = touch_to_the_end(again, MIB(1));
	signal(SIGBUS, SIG_DFL);
	munmap(at, MIB(1));
	printf("# others freed %zu pages, and %zu of the color were found\n", held / page, got);
	EXPECT(got >= held / page / BANKS / 2);
	CHILD_OK(pid);
}

/* A droppable mapping, which older C libraries do not know */
static char *droppable(size_t size)
{
	return MUST(mmap(NULL, size, PROT_READ | PROT_WRITE, 0x08 | MAP_ANONYMOUS, -1, 0));
}

/* System calls fail by ENOMEM, and there is no signal. Nor do they try for ever. */
static void test_strict_call(void)
{
	char *at = room(MIB(1024)), *locked = room(FEW * page), *none = room(FEW * page);
	char *drop = droppable(FEW * page);
	int fd = MUST(open("/tmp/camc/file", O_RDWR | O_CREAT | O_TRUNC, 0600));
	int zero = MUST(open("/dev/zero", O_RDONLY));
	int saved, lock = 0, lock_error, read_error, drop_error;
	ssize_t ret = 0, got = page, dropped = page;
	char buf[4096] = { };

	set_auto(1, CAMC_STRICT);
	touch_to_the_end(at, MIB(1024));
	signal(SIGBUS, SIG_DFL);
	for (int i = 0; i < 2000 && ret >= 0; i++)
		ret = write(fd, buf, sizeof(buf));
	saved = errno;
	/* Somebody may still free a page or two. */
	for (int i = 0; i < FEW && !lock; i++)
		lock = mlock(locked + i * page, page);
	lock_error = errno;
	for (int i = 0; i < FEW && got > 0; i++)
		got = read(zero, none + i * page, page);
	read_error = errno;
	for (int i = 0; i < FEW && dropped > 0; i++)
		dropped = read(zero, drop + i * page, page);
	drop_error = errno;
	munmap(at, MIB(1));
	errno = saved;
	unlink("/tmp/camc/file");
	EXPECT(ret == -1 && (errno == ENOMEM || errno == ENOSPC));
	printf("# mlock() %d (%d), read() %zd (%d) and %zd (%d)\n", lock, lock_error, got,
	       read_error, dropped, drop_error);
	/* as mlock() has ENOMEM */
	EXPECT(lock == -1 && lock_error == EAGAIN);
	EXPECT(got == -1 && read_error == EFAULT);
	EXPECT(dropped == -1 && drop_error == EFAULT);
}

/* It ends by SIGBUS, and the core tells why: it is written whatever the colors. */
static void test_strict_core(void)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
	size_t *got = MUST(mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
				-1, 0));
	struct stat core = { };
	long foreign = stat_of("foreign");
	char path[64];
	int status;
	pid_t pid;

	if (put(CORE_PATTERN, "/tmp/camc/core.%p") < 0)
		skip("no core dumps");
	MUST(setrlimit(RLIMIT_CORE, &limit));
	*got = 0;
	pid = MUST(fork());
	if (!pid) {
		char *at = room(MIB(1024));

		set_auto(1, CAMC_STRICT);
		for (; *got < MIB(1024) / page; ++*got)
			store(at + *got * page, 1);
		_exit(0);
	}
	status = wait_for(pid);
	snprintf(path, sizeof(path), "/tmp/camc/core.%d", pid);
	stat(path, &core);
	unlink(path);
	printf("# of %zu pages %zu are in the core\n", *got, (size_t)core.st_blocks * 512 / page);
	EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS && WCOREDUMP(status));
	EXPECT((size_t)core.st_blocks * 512 / page > *got / 10 * 9);
	EXPECT(stat_of("foreign") > foreign);
}

static int ends;

static int end_when_told(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&ends, __ATOMIC_ACQUIRE))
		;
	return syscall(__NR_exit, 0);
}

/*
 * Who waits for a thread that ends is told, whatever the thread's colors: its word is in a page
 * that has to be copied first.
 */
static void test_strict_exit(void)
{
	int fd = MUST(open("/tmp/camc/file", O_RDWR | O_CREAT | O_TRUNC, 0600));
	char *at = room(MIB(1024)), *stack;
	int word = 1, *told;

	EXPECT(write(fd, &word, sizeof(word)) == sizeof(word));
	told = MUST(mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0));
	EXPECT(__atomic_load_n(told, __ATOMIC_ACQUIRE) == 1);
	unlink("/tmp/camc/file");
	stack = room(MIB(1));
	touch(stack, MIB(1));
	set_auto(1, CAMC_STRICT);
	ends = 0;
	MUST(clone(end_when_told, stack + MIB(1),
		   CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
		   CLONE_SYSVSEM | CLONE_CHILD_CLEARTID, NULL, NULL, NULL, told));
	touch_to_the_end(at, MIB(1024));
	signal(SIGBUS, SIG_DFL);
	__atomic_store_n(&ends, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 1000 && __atomic_load_n(told, __ATOMIC_ACQUIRE); i++)
		usleep(1000);
	word = __atomic_load_n(told, __ATOMIC_ACQUIRE);
	munmap(at, MIB(1));
	close(fd);
	EXPECT(!word);
}

/* Compressed pages of a zram disk are the kernel's: they need no color. */
static void test_strict_zram(void)
{
	char path[64], id[16], *buf, *at = room(MIB(1024));
	int control = open("/sys/class/zram-control/hot_add", O_RDONLY), fd;
	unsigned int failed = 0, number, i;

	if (control < 0 || read(control, id, sizeof(id)) <= 0)
		skip("no zram");
	close(control);
	number = atoi(id);
	snprintf(path, sizeof(path), "/sys/block/zram%u/disksize", number);
	MUST(put(path, "16M"));
	snprintf(path, sizeof(path), "/dev/zram%u", number);
	fd = MUST(open(path, O_RDWR | O_DIRECT));
	buf = aligned_alloc(65536, 65536);
	for (i = 0; i < 65536; i++)
		buf[i] = random();
	set_auto(1, CAMC_STRICT);
	touch_to_the_end(at, MIB(1024));
	signal(SIGBUS, SIG_DFL);
	for (i = 0; i < 64; i++)
		failed += pwrite(fd, buf, 65536, i * 65536) != 65536;
	munmap(at, MIB(1));
	close(fd);
	snprintf(path, sizeof(path), "%u", number);
	put("/sys/class/zram-control/hot_remove", path);
	EXPECT(failed == 0);
}

/* A new filesystem on a zram disk, which is mounted */
static int make_disk(const char *type, const char *size, const char *mkfs)
{
	int control = open("/sys/class/zram-control/hot_add", O_RDONLY);
	char path[128], id[16] = { };
	unsigned int number;

	if (control < 0 || read(control, id, sizeof(id) - 1) <= 0)
		skip("no zram");
	close(control);
	number = atoi(id);
	snprintf(path, sizeof(path), "/sys/block/zram%u/disksize", number);
	MUST(put(path, size));
	snprintf(path, sizeof(path), "%s /dev/zram%u >/dev/null 2>&1", mkfs, number);
	if (system(path))
		skip("no filesystem of that kind can be made");
	mkdir(TREE, 0755);
	snprintf(path, sizeof(path), "/dev/zram%u", number);
	if (mount(path, TREE, type, 0, NULL)) {
		if (errno == ENODEV)
			skip("the kernel does not know the filesystem");
		fail("%s is not mounted: %s", path, strerror(errno));
	}
	return number;
}

/* Nothing of it is in memory then. */
static void mount_again(unsigned int number, const char *type)
{
	char path[32];

	MUST(umount(TREE));
	snprintf(path, sizeof(path), "/dev/zram%u", number);
	MUST(mount(path, TREE, type, 0, NULL));
	MUST(put("/proc/sys/vm/drop_caches", "3"));
}

/* An ext4 with files in many directories, and one of many extents */
static int make_tree(void)
{
	int number = make_disk("ext4", "64M", "mkfs.ext4 -q -N 8192"), fd;
	char path[128];

	for (int i = 0; i < TREE_FILES; i++) {
		snprintf(path, sizeof(path), TREE "/%d", i % 10);
		mkdir(path, 0755);
		snprintf(path, sizeof(path), TREE "/%d/%d", i % 10, i % 200);
		mkdir(path, 0755);
		snprintf(path, sizeof(path), TREE "/%d/%d/%d", i % 10, i % 200, i);
		close(MUST(open(path, O_WRONLY | O_CREAT, 0600)));
	}
	fd = MUST(open(TREE "/data", O_WRONLY | O_CREAT, 0600));
	for (size_t i = 0; i < MIB(1); i += 2 * page)
		EXPECT(pwrite(fd, path, sizeof(path), i) == sizeof(path));
	MUST(ftruncate(fd, MIB(1)));
	close(fd);
	mount_again(number, "ext4");
	return number;
}

static void remove_tree(int number)
{
	char id[16];

	umount(TREE);
	snprintf(id, sizeof(id), "%d", number);
	put("/sys/class/zram-control/hot_remove", id);
}

/* How many files cannot be opened; nothing is read of them. */
static int open_files(void)
{
	char path[128];
	int failed = 0, fd;

	for (int i = 0; i < TREE_FILES; i += 3) {
		snprintf(path, sizeof(path), TREE "/%d/%d/%d", i % 10, i % 200, i);
		fd = open(path, O_RDONLY);
		failed += fd < 0;
		close(fd);
	}
	return failed;
}

/* The blocks of a filesystem are the kernel's: who opens files needs no color for them. */
static void test_strict_blocks(void)
{
	int tree = make_tree(), failed, fd;
	char *at = room(MIB(1024));
	long exhausted, foreign;
	off_t hole;

	set_auto(1, CAMC_STRICT);
	touch_to_the_end(at, MIB(1024));
	signal(SIGBUS, SIG_DFL);
	exhausted = stat_of("exhausted");
	foreign = stat_of("foreign");
	failed = open_files();
	fd = open(TREE "/data", O_RDONLY);
	hole = lseek(fd, 0, SEEK_HOLE);
	exhausted = stat_of("exhausted") - exhausted;
	foreign = stat_of("foreign") - foreign;
	munmap(at, MIB(1));
	close(fd);
	remove_tree(tree);
	printf("# %d files could not be opened, the first hole is at %ld\n", failed, (long)hole);
	printf("# %ld allocations failed, %ld got another color\n", exhausted, foreign);
	EXPECT(!failed && hole == (off_t)page && !exhausted && !foreign);
}

/* Who was without colors for a moment has them again. */
static void expect_colored(void)
{
	char *at = room(MIB(1) / 2);

	touch(at, MIB(1) / 2);
	expect_pure(at, MIB(1) / 2);
	munmap(at, MIB(1) / 2);
}

/* Cut by a task at the end of its colors, and as long as before: how much came back? */
static unsigned int cut_off(int fd)
{
	char *at = room(MIB(1024));
	static char buf[8192];
	unsigned int back = 0;
	int ret;

	set_auto(1, CAMC_STRICT);
	touch_to_the_end(at, MIB(1024));
	signal(SIGBUS, SIG_DFL);
	ret = ftruncate(fd, 100);
	ret |= ftruncate(fd, sizeof(buf));
	munmap(at, MIB(1));
	expect_colored();
	clear_colors();
	EXPECT(!ret && pread(fd, buf, sizeof(buf), 0) == sizeof(buf));
	for (size_t i = 0; i < sizeof(buf); i++) {
		EXPECT(i >= 100 || buf[i] == 'A');
		back += i >= 100 && buf[i];
	}
	return back;
}

/* What is cut off a file is gone, whether or not the task has a page to zero the rest in. */
static void cut_off_on(int disk)
{
	int fd = MUST(open(TREE "/cut", O_RDWR | O_CREAT, 0600));
	unsigned int back;
	char buf[8192];

	memset(buf, 'A', sizeof(buf));
	EXPECT(write(fd, buf, sizeof(buf)) == sizeof(buf));
	MUST(fsync(fd));
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	back = cut_off(fd);
	close(fd);
	remove_tree(disk);
	if (back)
		fail("%u bytes came back", back);
}

static void test_cut_off(void)
{
	cut_off_on(make_tree());
}

/* Large enough that no garbage is in the way of what is written */
static int make_f2fs(void)
{
	return make_disk("f2fs", "256M", "mkfs.f2fs -q -f");
}

static void test_cut_off_f2fs(void)
{
	cut_off_on(make_f2fs());
}

/* Are the pages of @buf in the file, from @behind on? */
static bool file_has(int fd, const char *buf, size_t size, off_t behind)
{
	char *at = room(page);
	bool same = true;

	for (size_t of = 0; of < size; of += page) {
		EXPECT(pread(fd, at, page, behind + of) == (ssize_t)page);
		same &= load(at) == load(buf + of);
	}
	munmap(at, page);
	return same;
}

/* Who has 2 MiB of his color left makes room at the beginning of a file, or takes it away. */
static int move_at_the_end(int fd, int mode)
{
	char *at = room(MIB(1024));
	int ret;

	set_auto(1, CAMC_STRICT);
	touch_to_the_end(at, MIB(1024));
	signal(SIGBUS, SIG_DFL);
	munmap(at, MIB(2));
	ret = fallocate(fd, mode, 0, MIB(1));
	munmap(at + MIB(2), MIB(1));
	expect_colored();
	clear_colors();
	munmap(at + MIB(3), MIB(1021));
	return ret;
}

/*
 * What fallocate() moves passes through the page cache, where each block needs two pages. Without
 * one for the second half the first would stay where it was moved to.
 */
static void test_moved_f2fs(void)
{
	int disk = make_f2fs(), fd;
	char *buf = room(MIB(6));

	touch(buf, MIB(6));
	fd = MUST(open(TREE "/data", O_RDWR | O_CREAT, 0600));
	EXPECT(write(fd, buf, MIB(6)) == MIB(6));
	close(fd);
	/* those that are in the last checkpoint are moved one by one */
	mount_again(disk, "f2fs");
	fd = MUST(open(TREE "/data", O_RDWR));
	EXPECT(!move_at_the_end(fd, FALLOC_FL_INSERT_RANGE));
	EXPECT(file_has(fd, buf, MIB(6), MIB(1)));
	close(fd);
	mount_again(disk, "f2fs");
	fd = MUST(open(TREE "/data", O_RDWR));
	EXPECT(!move_at_the_end(fd, FALLOC_FL_COLLAPSE_RANGE));
	EXPECT(file_has(fd, buf, MIB(6), 0));
	close(fd);
	remove_tree(disk);
	munmap(buf, MIB(6));
}

/*
 * Garbage of f2fs is collected by whoever writes when there is little free: what it moves is read
 * into memory, but no color is needed for that. Without a page for any block of a section this is
 * still in use afterwards, and a write would try again, for ever: here once, by a call for that.
 */
static void test_garbage(void)
{
	int disk = make_f2fs(), fd, ret, error;
	struct f2fs_gc_range range = { .sync = 1 };
	char *at = room(MIB(1024)), *buf = room(MIB(6));
	unsigned int block = 0;
	long exhausted;

	/* More than a section, which is 2 MiB; a part of it is garbage. */
	touch(buf, MIB(6));
	fd = MUST(open(TREE "/data", O_RDWR | O_CREAT, 0600));
	EXPECT(write(fd, buf, MIB(6)) == MIB(6));
	MUST(fsync(fd));
	MUST(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, MIB(1), MIB(1)));
	close(fd);
	mount_again(disk, "f2fs");
	fd = MUST(open(TREE "/data", O_RDONLY));
	MUST(ioctl(fd, FIBMAP, &block));
	EXPECT(block);
	range.start = block;
	set_auto(1, CAMC_STRICT);
	touch_to_the_end(at, MIB(1024));
	signal(SIGBUS, SIG_DFL);
	exhausted = stat_of("exhausted");
	ret = ioctl(fd, F2FS_IOC_GARBAGE_COLLECT_RANGE, &range);
	error = errno;
	exhausted = stat_of("exhausted") - exhausted;
	munmap(at, MIB(1));
	expect_colored();
	clear_colors();
	EXPECT(pread(fd, at + MIB(2), MIB(6), 0) == MIB(6));
	/* it is elsewhere, and what it was */
	range.start = block;
	block = 0;
	MUST(ioctl(fd, FIBMAP, &block));
	for (size_t i = 0; i < MIB(6); i += page)
		EXPECT(load(at + MIB(2) + i) == (i / MIB(1) == 1 ? 0 : load(buf + i)));
	close(fd);
	remove_tree(disk);
	printf("# %ld allocations failed; block %llu is %u now: %s\n", exhausted,
	       (unsigned long long)range.start, block, ret ? strerror(error) : "collected");
	EXPECT(!ret && !exhausted && block != range.start);
}

/* The same of a file of tmpfs that was swapped out */
static void test_cut_off_swapped(void)
{
	int fd = MUST(open("/tmp/camc/cut", O_RDWR | O_CREAT | O_TRUNC, 0600));
	long swapped = field("/proc/vmstat", "pswpout ");
	unsigned int back;
	char *at;

	if (access("/tmp/camc/swap-is-on", F_OK))
		skip("no zram to swap to");
	MUST(ftruncate(fd, 8192));
	at = MUST(mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	memset(at, 'A', 8192);
	MUST(madvise(at, 8192, 21 /* MADV_PAGEOUT */));
	swapped = field("/proc/vmstat", "pswpout ") - swapped;
	munmap(at, 8192);
	back = cut_off(fd);
	close(fd);
	unlink("/tmp/camc/cut");
	if (swapped < 2)
		skip("it was not swapped out");
	if (back)
		fail("%u bytes came back", back);
}

static void set_flags(unsigned int flags)
{
	struct camc_policy policy;

	get_policy(&policy);
	policy.flags = flags;
	MUST(prctl(PR_CAMC, CAMC_SET, &policy, sizeof(policy), 0));
}

/* To the end of a color that is not strict any more, but for @left pages */
static char *touch_nearly_all(size_t left)
{
	char *at = room(MIB(1024));

	set_auto(1, CAMC_STRICT);
	touch_to_the_end(at, MIB(1024));
	signal(SIGBUS, SIG_DFL);
	set_flags(0);
	munmap(at, left * page);
	return at + left * page;
}

/* Nor does who may have more colors take one for them. */
static void test_spill_blocks(void)
{
	int tree = make_tree(), failed;
	char *at = touch_nearly_all(4);
	long spilled = stat_of("spilled");

	failed = open_files();
	spilled = stat_of("spilled") - spilled;
	munmap(at, MIB(1));
	remove_tree(tree);
	printf("# %d files could not be opened, %ld more colors\n", failed, spilled);
	EXPECT(!failed && !spilled);
}

/* What is read ahead was not asked for: no color is taken for it. */
static void test_read_ahead(void)
{
	int tree = make_tree(), fd = MUST(open(TREE "/data", O_RDONLY));
	char *at = touch_nearly_all(4), byte;
	long spilled = stat_of("spilled"), exhausted = stat_of("exhausted");
	ssize_t got;

	posix_fadvise(fd, 0, MIB(1), POSIX_FADV_WILLNEED);
	spilled = stat_of("spilled") - spilled;
	exhausted = stat_of("exhausted") - exhausted;
	/* for this one it is */
	got = pread(fd, &byte, 1, MIB(1) - 1);
	munmap(at, MIB(1));
	close(fd);
	remove_tree(tree);
	printf("# %ld more colors, %ld allocations failed\n", spilled, exhausted);
	EXPECT(!spilled && !exhausted && got == 1 && nr_colors() == 2);
}

/* Nor for what a program says that it will need: that is a hint, of any number of pages. */
static void swap_ahead(int kind)
{
	long swapped = field("/proc/vmstat", "pswpout "), spilled, exhausted;
	char *ahead = MUST(mmap(NULL, MIB(1), PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS, -1, 0));
	char *at;

	touch(ahead, MIB(1));
	MUST(madvise(ahead, MIB(1), 21 /* MADV_PAGEOUT */));
	if (field("/proc/vmstat", "pswpout ") - swapped < (long)(MIB(1) / page / 2))
		skip("it was not swapped out");
	at = touch_nearly_all(4);
	spilled = stat_of("spilled");
	exhausted = stat_of("exhausted");
	MUST(madvise(ahead, MIB(1), MADV_WILLNEED));
	spilled = stat_of("spilled") - spilled;
	exhausted = stat_of("exhausted") - exhausted;
	munmap(at, MIB(1020));
	clear_colors();
	printf("# %ld more colors, %ld allocations failed\n", spilled, exhausted);
	EXPECT(!spilled && !exhausted);
	expect_content(ahead, MIB(1));
}

static void test_swap_ahead(void)
{
	if (access("/tmp/camc/swap-is-on", F_OK))
		skip("no zram to swap to");
	swap_ahead(MAP_PRIVATE);
	swap_ahead(MAP_SHARED);
}

static int read_all(const char *path)
{
	static char buf[1 << 16];
	int fd = open(path, O_RDONLY);
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) > 0)
		;
	return n < 0;
}

/* How a program of the cgroup ends that reads a file */
static int read_in_group(const char *path)
{
	pid_t pid;

	MUST(put("/proc/sys/vm/drop_caches", "3"));
	pid = MUST(fork());
	if (!pid) {
		MUST(put(CGROUP "/cgroup.procs", "0"));
		execl("/tmp/camc/inspected", "inspected", "--read", path, NULL);
		_exit(2);
	}
	return wait_for(pid);
}

/* A cgroup whose memory is bounded does not come to the end of its colors: its own cache goes. */
static void test_cgroup_bounded(void)
{
	static const char path[] = TREE "/sparse";
	int tree, fd, without, with;
	long exhausted, after;
	char bound[32];
	size_t share;

	if (access(CGROUP "/memory.colors", F_OK))
		skip("no memory cgroup");
	/* which drops the caches */
	tree = make_tree();
	share = (size_t)field("/proc/meminfo", "MemFree:") * 1024 / BANKS / nodes * 2;
	fd = MUST(open(path, O_WRONLY | O_CREAT, 0600));
	MUST(ftruncate(fd, share * 2));
	close(fd);
	copy_program("/tmp/camc/inspected");
	MUST(put(CGROUP "/memory.colors", "4-5 strict"));
	without = read_in_group(path);
	snprintf(bound, sizeof(bound), "%zu", share / 2);
	exhausted = stat_of("exhausted");
	with = put(CGROUP "/memory.max", bound) < 0 ? -1 : read_in_group(path);
	after = stat_of("exhausted");
	put(CGROUP "/memory.max", "max");
	put(CGROUP "/memory.colors", "none");
	unlink("/tmp/camc/inspected");
	remove_tree(tree);
	printf("# it ended with %#x without a bound, with %#x below one\n", without, with);
	EXPECT(without && !with && after == exhausted);
}

/* A task at its end, which tries again and again, leaves alone what others have collected. */
static void test_others(void)
{
	long drained, before;
	pid_t pid;

	set_auto(2, 0);
	MUST(put("/proc/sys/vm/drop_caches", "3"));
	EXPECT(fill(2048) >= 2048);
	before = stat_of("free");
	drained = stat_of("drained");
	pid = MUST(fork());
	if (!pid) {
		char *at = room(MIB(1024)), *again = room(page);
		size_t got;

		set_auto(1, CAMC_STRICT);
		got = touch_to_the_end(at, MIB(1024));
		EXPECT(got < MIB(1024) / page);
		for (int i = 0; i < 20; i++)
			touch_to_the_end(again, page);
		_exit(0);
	}
	CHILD_OK(pid);
	printf("# %ld pages were collected, %ld are left, %ld were drained\n", before,
	       stat_of("free"), stat_of("drained") - drained);
	EXPECT(stat_of("free") > 1900);
}

/* Where its memory policy lets it not go to its colors, nobody's memory is reclaimed for it. */
static void test_elsewhere(void)
{
	struct camc_policy policy = { .flags = CAMC_AUTO | CAMC_STRICT, .nr_colors = 1, .node = 1 };
	unsigned long mask = 1;
	char *at = room(MIB(1));
	long scanned;

	if (nodes < 2)
		skip("one node only");
	touch_stack();
	MUST(prctl(PR_CAMC, CAMC_SET, &policy, sizeof(policy), 0));
	MUST(syscall(__NR_mbind, at, MIB(1), 2 /* MPOL_BIND */, &mask, 64, 0));
	scanned = field("/proc/vmstat", "pgscan_direct ");
	for (int i = 0; i < 5; i++)
		EXPECT(touch_to_the_end(at, MIB(1)) == 0);
	EXPECT(field("/proc/vmstat", "pgscan_direct ") == scanned);
}

static long node_field(int node, const char *what)
{
	char path[64], word[64];

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/meminfo", node);
	snprintf(word, sizeof(word), "Node %d %s:", node, what);
	return field(path, word);
}

/*
 * So many percent of the way from the watermark min of a node to low, of all its zones, and what
 * these keep for requests that may have no other: KiB
 */
static long node_between(int node, long percent)
{
	FILE *file = fopen("/proc/zoneinfo", "r");
	long sum = 0, min = 0, low = 0, kept;
	char line[256], *at;
	int seen = -1;

	while (fgets(line, sizeof(line), file)) {
		sscanf(line, "Node %d", &seen);
		if (seen != node)
			continue;
		sscanf(line, " min %ld", &min);
		sscanf(line, " low %ld", &low);
		at = strstr(line, "protection: (");
		if (!at || !low)
			continue;
		/* the last one is that for the highest zone, and the largest */
		at = strrchr(line, ' ');
		kept = atol(at + 1);
		sum += min + (low - min) * percent / 100 + kept;
	}
	fclose(file);
	return sum * (long)page / 1024;
}

static long free_before;	/* of occupy() */

/*
 * Let a process have all memory of a node but @leave KiB, whatever is reclaimed. Returns when it
 * has been so for a while.
 */
static pid_t occupy(int node, long leave, bool locked)
{
	unsigned long mask = 1ul << node;
	int up[2], steady = 0;
	char byte = 0;
	pid_t pid;

	free_before = node_field(node, "MemFree");
	MUST(pipe(up));
	pid = MUST(fork());
	if (pid) {
		EXPECT(read(up[0], &byte, 1) == 1);
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	MUST(syscall(__NR_set_mempolicy, 2 /* MPOL_BIND */, &mask, 64));
	for (;;) {
		if (node_field(node, "MemFree") < leave) {
			if (++steady == 50) {
				MUST(write(up[1], &byte, 1));
				if (!locked)
					pause();
			}
			usleep(2000);
			continue;
		}
		touch(MUST(mmap(NULL, 32 * page, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | (locked ? MAP_LOCKED : 0), -1, 0)),
		      32 * page);
	}
}

static void give_up(pid_t pid, int node)
{
	/* or memory was not as short as it had to be */
	if (waitpid(pid, NULL, WNOHANG))
		fail("who had the memory was killed for it");
	kill(pid, SIGKILL);
	wait_for(pid);
	/* Multi-gen reclaim that looked at its pages just then frees them, in a worker. */
	for (int i = 0; i < 3000 && node_field(node, "MemFree") < free_before / 10 * 9; i++)
		usleep(10000);
}

#define TRACING "/sys/kernel/tracing/"
#define VMSCAN TRACING "events/vmscan/"

/* It is empty when it is opened so; what is written to it is ignored. */
static void empty_trace(void)
{
	close(MUST(open(TRACING "trace", O_WRONLY | O_TRUNC)));
}

static void trace(const char *event, const char *on)
{
	char path[128];

	mount("tracefs", TRACING, "tracefs", 0, NULL);
	snprintf(path, sizeof(path), VMSCAN "%s/enable", event);
	if (access(path, F_OK))
		skip("no events of reclaim");
	empty_trace();
	MUST(put(path, on));
}

/* kswapd of node 0 stays on a CPU that somebody else has, until that one is killed. */
static pid_t hold_up_kswapd(void)
{
	char path[64], name[32] = "";
	int kswapd = 0, up[2];
	char byte = 0;
	cpu_set_t cpu;
	pid_t pid;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		skip("one CPU only");
	while (strcmp(name, "kswapd0\n") && kswapd++ < 1000) {
		snprintf(path, sizeof(path), "/proc/%d/comm", kswapd);
		if (get(path, name, sizeof(name)) < 0)
			name[0] = 0;
	}
	CPU_ZERO(&cpu);
	CPU_SET(0, &cpu);
	MUST(sched_setaffinity(0, sizeof(cpu), &cpu));
	CPU_ZERO(&cpu);
	CPU_SET(1, &cpu);
	MUST(sched_setaffinity(kswapd, sizeof(cpu), &cpu));
	MUST(put(RT_RUNTIME, "-1"));
	MUST(pipe(up));
	pid = MUST(fork());
	if (!pid) {
		struct sched_param param = { .sched_priority = 1 };

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		MUST(sched_setaffinity(0, sizeof(cpu), &cpu));
		MUST(sched_setscheduler(0, SCHED_FIFO, &param));
		MUST(write(up[1], &byte, 1));
		for (;;)
			;
	}
	EXPECT(read(up[0], &byte, 1) == 1);
	return pid;
}

/* A field of a zone of a node, or (NULL) of the last one that is not movable, in pages */
static long node_zone_field(int node, const char *which, const char *what)
{
	FILE *file = fopen("/proc/zoneinfo", "r");
	char line[256], zone[32], word[32];
	bool here = false;
	long nr, value = 0;
	int seen;

	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "Node %d, zone %31s", &seen, zone) == 2)
			here = seen == node &&
			       (which ? !strcmp(zone, which) :
				strcmp(zone, "Movable") && strcmp(zone, "Device"));
		else if (here && sscanf(line, " %31s %ld", word, &nr) == 2 &&
			 !strcmp(word, what) && nr)
			value = nr;
	}
	fclose(file);
	return value;
}

static long field_of(const char *which, const char *what)
{
	return node_zone_field(0, which, what);
}

static long zone_field(const char *what)
{
	return field_of(NULL, what);
}

/* A ring to pin pages with, which are of one zone alone, for a test in which memory gets short */
static int pinning_ring(void)
{
	struct io_uring_params params = { };
	int ring = syscall(__NR_io_uring_setup, 4, &params);

	if (ring < 0)
		skip("no io_uring");
	if (nodes > 1)
		skip("for one node");
	if (slow)
		skip("this kernel needs memory of its own meanwhile");
	swapoff(swap_device);
	return ring;
}

static int pin(int ring, char *at)
{
	struct iovec vec = { .iov_base = at, .iov_len = page };

	return syscall(__NR_io_uring_register, ring, IORING_REGISTER_BUFFERS, &vec, 1);
}

/* What that needs later is there then. */
static void pin_once(int ring, char *at)
{
	touch(at, page);
	MUST(pin(ring, at));
	MUST(syscall(__NR_io_uring_register, ring, IORING_UNREGISTER_BUFFERS, NULL, 0));
}

/* The watermark min of the zone of pinned pages, above the pages that are free */
static void raise_min(long free)
{
	char text[32];

	snprintf(text, sizeof(text), "%ld", (free + 3072) * 4 * 33 / 32);
	MUST(put(MIN_FREE, text));
}

/*
 * What is on the color lists of a task is its own when pressure has brought it back, though nothing
 * else was reclaimed. Pinned pages are of one zone alone: others may have as much as they like.
 */
static void test_pressure(void)
{
	struct camc_policy policy = { .flags = CAMC_AUTO | CAMC_STRICT, .nr_colors = BANKS };
	int ring = pinning_ring(), failed;
	long before, after, exhausted, listed, left, min, low, space;
	char *buf, limit[32];
	pid_t spinner;

	/* All that it needs is mapped. */
	touch_stack();
	MUST(mlockall(MCL_CURRENT));
	buf = room(4 * page);
	space = field("/proc/meminfo", "MemFree:") - 160 * 1024;
	touch(room(space * 1024), space * 1024);
	pin_once(ring, buf);
	MUST(get(MIN_FREE, limit, sizeof(limit)));
	/* what others have is reclaimed as far as it can be */
	for (int i = 0; i < 5; i++) {
		put("/proc/sys/vm/drop_caches", "3");
		put(CGROUPS "/memory.reclaim", "256M");
	}
	MUST(prctl(PR_CAMC, CAMC_SET, &policy, sizeof(policy), 0));
	fill(48 * 256);
	listed = stat_of("free");
	spinner = hold_up_kswapd();
	before = zone_field("nr_free_pages");
	raise_min(before);
	min = zone_field("min");
	low = zone_field("low");
	exhausted = stat_of("exhausted");
	failed = pin(ring, buf + page);
	after = zone_field("nr_free_pages");
	left = stat_of("free");
	put(MIN_FREE, limit);
	kill(spinner, SIGKILL);
	exhausted = stat_of("exhausted") - exhausted;
	printf("# %ld pages on lists, then %ld; %ld free, then %ld, with marks of %ld and %ld\n",
	       listed, left, before, after, min, low);
	EXPECT(!failed && !exhausted);
}

/*
 * Who is at the end of its colors can pin what it has, though that may not stay where it is: it is
 * moved to any page. Those that are touched first are of the movable zone.
 */
static void test_pinned_moved(void)
{
	struct io_uring_params params = { };
	size_t size = MIB(1);
	struct iovec vec = { .iov_base = room(MIB(1024)), .iov_len = size };
	int ring = syscall(__NR_io_uring_setup, 4, &params), failed;
	struct count count;
	long lost;

	if (ring < 0)
		skip("no io_uring");
	if (!field_of("Movable", "managed"))
		skip("no zone of movable memory");
	set_auto(1, CAMC_STRICT);
	EXPECT(touch_to_the_end(vec.iov_base, MIB(1024)) > 2 * size / page);
	signal(SIGBUS, SIG_DFL);
	lost = stat_of("lost");
	failed = syscall(__NR_io_uring_register, ring, IORING_REGISTER_BUFFERS, &vec, 1);
	lost = stat_of("lost") - lost;
	count = count_pages(vec.iov_base, size);
	munmap((char *)vec.iov_base + size, size);
	expect_colored();
	printf("# %ld found no page of the color; then %lu had it, %lu others\n", lost, count.right,
	       count.wrong);
	EXPECT(!failed && lost && count.wrong && count.wrong + count.right == size / page);
	close(ring);
}

/* Events of a process that have these words; the second may be NULL */
static unsigned int count_events(pid_t pid, const char *word, const char *another)
{
	static char text[1 << 18];
	unsigned int count = 0;
	char who[32], *line;

	MUST(get(TRACING "trace", text, sizeof(text)));
	snprintf(who, sizeof(who), "-%d ", pid);
	for (line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		count += strstr(line, who) && strstr(line, word) &&
			 (!another || strstr(line, another));
	return count;
}

/* Somebody without colors, of whose frees none come to lists, has a group reclaim some memory. */
static pid_t reclaim(const char *file)
{
	pid_t pid = MUST(fork());

	if (!pid) {
		put(file, "4K");
		_exit(nr_colors() != 0);
	}
	CHILD_OK(pid);
	return pid;
}

/*
 * Who reclaims memory, in the least, has what is on lists first: he does not have to come to the
 * shrinker for it, which is asked where the root group has its turn. On both LRUs, and not for the
 * limit of a group.
 */
static void test_fill_reclaimed(void)
{
	static const char event[] = "mm_shrink_slab_start";
	unsigned int drained, shrunk, vain;
	pid_t pid;

	if (access(CGROUPS "/memory.reclaim", F_OK))
		skip("no memory cgroup");
	for (unsigned int generations = 0; generations < 2; generations++) {
		if (put(LRU_GEN, generations ? "y" : "n") < 0 && generations)
			break;
		set_auto(2, 0);
		EXPECT(fill(2048) >= 2048 && stat_of("free") > 1900);
		trace(event, "1");
		MUST(put(TRACING "events/camc/camc_drain/enable", "1"));
		vain = count_events(reclaim(CGROUP "/memory.reclaim"), "camc_drain", NULL);
		pid = reclaim(CGROUPS "/memory.reclaim");
		put(TRACING "events/camc/camc_drain/enable", "0");
		drained = count_events(pid, "camc_drain", NULL);
		shrunk = count_events(pid, event, "camc_shrink");
		trace(event, "0");
		printf("# %s: it drained %u times, the shrinker %u times; %ld are left\n",
		       generations ? "generations" : "classic", drained, shrunk, stat_of("free"));
		EXPECT(!vain && drained && !shrunk && stat_of("free") < 200);
		clear_colors();
	}
}

/* To the end of one color of node 1, while that node is short of memory */
static void take_there(void)
{
	struct camc_policy policy = { .flags = CAMC_AUTO | CAMC_STRICT, .nr_colors = 1, .node = 1 };
	char *at;

	/* what it needs at its end is its own before, and stays */
	touch_to_the_end(room(page), page);
	MUST(mlockall(MCL_CURRENT));
	at = room(MIB(192));
	MUST(prctl(PR_CAMC, CAMC_SET, &policy, sizeof(policy), 0));
	for (int i = 0; i < 3; i++)
		touch_to_the_end(at + i * MIB(64), MIB(64));
	_exit(0);
}

/* The node of its colors is short of memory that cannot be reclaimed: what is elsewhere stays. */
static void test_other_node(void)
{
	static const char event[] = "mm_vmscan_lru_shrink_inactive";
	unsigned int own = 0, others = 0;
	pid_t full, pid;

	if (nodes < 2)
		skip("one node only");
	full = occupy(1, node_between(1, 50), true);
	trace(event, "1");
	/* kswapd may have made room, and he who occupies it not have come to it yet */
	for (int i = 0; i < 10 && !own; i++) {
		pid = MUST(fork());
		if (!pid)
			take_there();
		CHILD_OK(pid);
		own += count_events(pid, event, "nid=1 ");
		others += count_events(pid, event, "nid=0 ");
	}
	trace(event, "0");
	give_up(full, 1);
	printf("# pages of its node were looked at %u times, of the other one %u times\n", own,
	       others);
	EXPECT(own && !others);
}

/* Who takes the last memory above the low watermark wakes kswapd, of that node only. */
static void test_kswapd(void)
{
	static const char event[] = "mm_vmscan_wakeup_kswapd";
	struct camc_policy policy = { .flags = CAMC_AUTO, .nr_colors = BANKS, .node = nodes - 1 };
	long between = node_between(policy.node, 25);
	unsigned int told, all;
	pid_t full, pid;
	char nid[16];

	full = occupy(policy.node, node_between(policy.node, 100) * 2, false);
	trace(event, "1");
	pid = MUST(fork());
	if (!pid) {
		/* no more than is above the min watermark */
		size_t size = (node_field(policy.node, "MemFree") - between) * 1024ul & -page;

		MUST(prctl(PR_CAMC, CAMC_SET, &policy, sizeof(policy), 0));
		touch(room(size), size);
		_exit(0);
	}
	CHILD_OK(pid);
	snprintf(nid, sizeof(nid), "nid=%d ", policy.node);
	told = count_events(pid, "GFP_HIGHUSER_MOVABLE", nid);
	all = count_events(pid, "GFP_HIGHUSER_MOVABLE", NULL);
	trace(event, "0");
	give_up(full, policy.node);
	printf("# it was woken %u times, that of another node %u times\n", told, all - told);
	EXPECT(told && all == told);
}

/* It has its answer at nobody's expense: nothing was reclaimed for it, and nobody killed. */
static void test_spill(void)
{
	long swapped = field("/proc/vmstat", "pswpout ");
	long scanned = field("/proc/vmstat", "pgscan_direct ");
	long killed = field("/proc/vmstat", "oom_kill ");
	double begin, seconds;
	size_t size;
	char *at;

	size = (size_t)field("/proc/meminfo", "MemFree:") * 1024 / BANKS / nodes * 5 / 2;
	size &= -page;
	at = room(size);
	set_auto(1, 0);
	begin = now();
	touch(at, size);
	seconds = now() - begin;
	swapped -= field("/proc/vmstat", "pswpout ");
	scanned -= field("/proc/vmstat", "pgscan_direct ");
	killed -= field("/proc/vmstat", "oom_kill ");
	expect_pure(at, size);
	expect_content(at, size);
	printf("# it has %u colors for %zu pages, after %.1f s\n", nr_colors(), size / page,
	       seconds);
	printf("# %ld pages swapped out, %ld scanned, %ld killed\n", -swapped, -scanned, -killed);
	EXPECT(nr_colors() >= 3 && nr_colors() <= 5);
	EXPECT(!swapped && !scanned && !killed);
	EXPECT(stat_of("taken") == (long)nr_colors());
}

/*
 * A process that has nearly all memory when it is told so, and the first to be killed: where to
 * tell it, and where to read that it has
 */
static pid_t hoard(int *tell, int *told)
{
	int down[2], up[2];
	char byte = 0;
	pid_t pid;

	MUST(pipe(down));
	MUST(pipe(up));
	pid = MUST(fork());
	if (!pid) {
		size_t size;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		MUST(put("/proc/self/oom_score_adj", "1000"));
		EXPECT(read(down[0], &byte, 1) == 1);
		size = (field("/proc/meminfo", "MemFree:") - 64 * 1024) * 1024ul;
		touch(room(size), size);
		MUST(write(up[1], &byte, 1));
		for (;;)
			pause();
	}
	*tell = down[1];
	*told = up[0];
	return pid;
}

/*
 * The color is used up, and memory is short. Somebody is killed for it, as for anybody; then there
 * is memory for one more color. Pinned pages are of one zone alone.
 */
static void test_spill_short(void)
{
	long killed = field("/proc/vmstat", "oom_kill ");
	int ring = pinning_ring(), tell, told, failed = 0;
	char *buf, *at, *rest, byte = 0, limit[32];
	unsigned int own;
	long free;
	pid_t hog;

	MUST(get(MIN_FREE, limit, sizeof(limit)));
	hog = hoard(&tell, &told);
	/* All that it needs is its own, and what pins pages has done so once. */
	zone_field("nr_free_pages");
	touch_stack();
	MUST(mlockall(MCL_CURRENT));
	rest = room(MIB(64));
	buf = room((1 + FEW) * page);
	pin_once(ring, buf);
	at = touch_nearly_all(0);
	MUST(write(tell, &byte, 1));
	EXPECT(read(told, &byte, 1) == 1);
	for (int i = 0; i < 5; i++)
		put("/proc/sys/vm/drop_caches", "3");
	free = zone_field("nr_free_pages");
	/* what was freed of it meanwhile */
	set_flags(CAMC_STRICT);
	touch_to_the_end(rest, MIB(64));
	signal(SIGBUS, SIG_DFL);
	set_flags(0);
	raise_min(free);
	own = nr_colors();
	/* as in test_strict_call() */
	for (int i = 1; i <= FEW && !failed && nr_colors() == own; i++) {
		/* those of the last turn; at first there are none */
		syscall(__NR_io_uring_register, ring, IORING_UNREGISTER_BUFFERS, NULL, 0);
		failed = pin(ring, buf + i * page);
	}
	put(MIN_FREE, limit);
	munmap(at, MIB(1));
	killed = field("/proc/vmstat", "oom_kill ") - killed;
	printf("# %ld killed, %u colors, then %u\n", killed, own, nr_colors());
	kill(hog, SIGKILL);
	wait_for(hog);
	EXPECT(own == 1 && !failed && killed == 1 && nr_colors() == 2);
}

/* Pins pages, one at a time, until that fails or the task has one more color. */
static void pin_pages(int ring, char *at, int most)
{
	for (int i = 0; i < most && nr_colors() == 1 && !pin(ring, at + i * page); i++)
		MUST(syscall(__NR_io_uring_register, ring, IORING_UNREGISTER_BUFFERS, NULL, 0));
}

/* Fills a node with cache that can be dropped, of a file that has no blocks. */
static void fill_with_cache(int node, const char *path)
{
	int fd = MUST(open(path, O_WRONLY | O_CREAT, 0600));
	unsigned long mask = 1ul << node;
	pid_t pid;

	MUST(ftruncate(fd, node_field(node, "MemFree") * 1024 + MIB(64)));
	close(fd);
	pid = MUST(fork());
	if (!pid) {
		MUST(syscall(__NR_set_mempolicy, 2 /* MPOL_BIND */, &mask, 64));
		_exit(read_all(path));
	}
	CHILD_OK(pid);
}

/*
 * Colors are left on one node only, which is short of memory, but not of cache: that goes for one
 * more color, and not if the task may have none. Nobody else wakes kswapd, which has made room
 * before the watermarks are raised. Pinned pages are of one zone alone.
 */
static void test_spill_node(void)
{
	static const char event[] = "mm_vmscan_lru_shrink_inactive";
	struct io_uring_params params = { };
	int ring = syscall(__NR_io_uring_setup, 4, &params), tree;
	unsigned int strict, own, others;
	struct camc_policy policy;
	long limit, free, min;
	char *buf, *at, text[32];
	pid_t holder;

	if (ring < 0)
		skip("no io_uring");
	if (nodes < 2)
		skip("one node only");
	if (!node_zone_field(1, NULL, "min"))
		skip("the other node has movable memory only");
	trace(event, "0");
	tree = make_tree();
	fill_with_cache(1, TREE "/sparse");
	holder = hold_colors((1 << BANKS) - 2, 0);
	/* All that it needs at its end is its own, and what pins pages has done so once. */
	limit = number(MIN_FREE);
	min = node_zone_field(1, NULL, "min");
	touch_stack();
	MUST(mlockall(MCL_CURRENT));
	at = room(MIB(1024));
	buf = room(1024 * page);
	pin_once(ring, buf);
	MUST(try_color(0, CAMC_STRICT));
	touch_to_the_end(at, MIB(1024));
	signal(SIGBUS, SIG_DFL);
	pin_pages(ring, buf + page, 512);
	/* a little less is free than has to be */
	free = node_zone_field(1, NULL, "nr_free_pages");
	snprintf(text, sizeof(text), "%ld", limit * (free + 128) / min + 8);
	MUST(put(MIN_FREE, text));
	min = node_zone_field(1, NULL, "min");
	trace(event, "1");
	pin_pages(ring, buf + 600 * page, 4);
	strict = count_events(getpid(), event, NULL);
	set_flags(0);
	pin_pages(ring, buf + 700 * page, 256);
	own = count_events(getpid(), event, "nid=1 ");
	others = count_events(getpid(), event, "nid=0 ");
	trace(event, "0");
	snprintf(text, sizeof(text), "%ld", limit);
	put(MIN_FREE, text);
	get_policy(&policy);
	munmap(at, MIB(1));
	release_color(holder);
	remove_tree(tree);
	printf("# %ld pages were free, with a mark of %ld; %u colors\n", free, min,
	       policy.nr_colors);
	printf("# its pages were looked at %u times, of the other node %u times, if strict %u\n",
	       own, others, strict);
	EXPECT(free < min && policy.nr_colors == 2 && policy.colors[0] >> BANKS);
	EXPECT(!strict && !others);
}

static void *thread_spills(void *at)
{
	for (size_t i = 0; nr_colors() == 1; i += page)
		store((char *)at + i, i);
	return NULL;
}

/* Threads that come to the end of their colors together get one more, which is for all. */
static void test_spill_threads(void)
{
	pthread_t threads[8];

	for (int round = 0; round < 3; round++) {
		size_t size = (size_t)field("/proc/meminfo", "MemFree:") * 1024 / BANKS * 2 & -page;
		char *at[8];

		set_auto(1, 0);
		for (int i = 0; i < 8; i++) {
			at[i] = room(size);
			EXPECT(!pthread_create(&threads[i], NULL, thread_spills, at[i]));
		}
		for (int i = 0; i < 8; i++)
			pthread_join(threads[i], NULL);
		if (nr_colors() != 2)
			fail("they got %u colors", nr_colors() - 1);
		for (int i = 0; i < 8; i++)
			munmap(at[i], size);
		clear_colors();
	}
}

/* Two tasks come to their end, one of which may have one more color, and exit. */
static void test_trace(void)
{
	static const char * const events[] = {
		"refill", "search", "spill", "exhausted", "drain", NULL
	};
	size_t share = (size_t)field("/proc/meminfo", "MemFree:") * 1024 / BANKS / nodes;

	if (access(TRACING "events/camc", F_OK))
		skip("no tracefs at " TRACING);
	empty_trace();
	MUST(put(TRACING "events/camc/enable", "1"));
	for (unsigned int flags = 0; flags <= CAMC_STRICT; flags += CAMC_STRICT) {
		pid_t pid = MUST(fork());

		if (!pid) {
			char *at = room(share * 2);

			set_auto(1, flags);
			touch_to_the_end(at, share * 2);
			_exit(0);
		}
		CHILD_OK(pid);
	}
	/* Who used up its colors may leave nothing to drain. */
	if (!MUST(fork())) {
		set_auto(1, 0);
		_exit(fill(64) < 64);
	}
	CHILD_OK(-1);
	MUST(put(TRACING "events/camc/enable", "0"));
	printf("# of %zu pages twice %ld colors were used up, %ld taken\n", share / page,
	       stat_of("exhausted"), stat_of("spilled"));
	for (unsigned int i = 0; events[i]; i++) {
		char command[256];

		snprintf(command, sizeof(command), "grep -q 'camc_%s: ' " TRACING "trace",
			 events[i]);
		if (system(command))
			fail("no event camc_%s", events[i]);
	}
}

/* Trap 2: memory that others need to be reclaimed by a colored task is not its own. */
static void test_swap(void)
{
	size_t size = some() * 2;
	long scanned = stat_of("exhausted");
	char *at;
	struct count count;

	if (access("/tmp/camc/swap-is-on", F_OK))
		skip("no zram to swap to");
	if (access(CGROUP "/memory.reclaim", F_OK))
		skip("no memory cgroup");
	MUST(put(CGROUP "/cgroup.procs", "0"));
	set_auto(1, CAMC_STRICT);
	at = room(size);
	touch(at, size);
	put(CGROUP "/memory.reclaim", slow ? "6M" : "24M");
	count = count_pages(at, size);
	EXPECT(count.wrong == 0 && count.right < size / page / 2);
	expect_content(at, size);
	expect_pure(at, size);
	EXPECT(stat_of("exhausted") == scanned);
}

/* ------ what moves pages ------------------------------------------------ */

/* Trap 3. Every other page is gone, so that there is something to compact. */
static void test_compaction(void)
{
	long moved = field("/proc/vmstat", "pgmigrate_success ");
	size_t size = some();
	char *at = room(size), *other = room(size * 2);

	touch(other, size * 2);
	set_auto(2, 0);
	touch(at, size);
	for (size_t i = 0; i < size * 2; i += 2 * page)
		madvise(other + i, page, MADV_DONTNEED);
	for (int i = 0; i < 3; i++)
		MUST(put("/proc/sys/vm/compact_memory", "1"));
	moved = field("/proc/vmstat", "pgmigrate_success ") - moved;
	printf("# %ld pages were moved\n", moved);
	EXPECT(moved > 0);
	expect_pure(at, size);
	expect_content(at, size);
}

/* Pages of zsmalloc move themselves, and are nobody's, whatever color they have. */
static void test_compaction_zram(void)
{
	int control = open("/sys/class/zram-control/hot_add", O_RDONLY), fd;
	char path[64], id[16] = { }, *buf;
	long lost, moved;
	int i;

	if (control < 0 || read(control, id, sizeof(id) - 1) <= 0)
		skip("no zram");
	close(control);
	snprintf(path, sizeof(path), "/sys/block/zram%d/disksize", atoi(id));
	MUST(put(path, "16M"));
	snprintf(path, sizeof(path), "/dev/zram%d", atoi(id));
	fd = MUST(open(path, O_RDWR | O_DIRECT));
	buf = aligned_alloc(65536, 65536);
	for (i = 0; i < 65536; i++)
		buf[i] = random();
	for (i = 0; i < 128; i++)
		EXPECT(pwrite(fd, buf, 65536, i * 65536) == 65536);
	/* all colors of the node: nothing else is moved there */
	set_auto(BANKS, 0);
	lost = stat_of("lost");
	moved = field("/proc/vmstat", "pgmigrate_success ");
	MUST(put("/proc/sys/vm/compact_memory", "1"));
	moved = field("/proc/vmstat", "pgmigrate_success ") - moved;
	lost = stat_of("lost") - lost;
	close(fd);
	MUST(put("/sys/class/zram-control/hot_remove", id));
	printf("# %ld pages were moved, %ld told as lost\n", moved, lost);
	EXPECT(!lost);
	if (!moved)
		skip("compaction moved nothing");
}

/*
 * Have most of memory, and give back one page of each four: no block of four is free there. Returns
 * how many blocks of four may be free elsewhere.
 */
static pid_t fragment(long *blocks)
{
	/* without what only the kernel may have, of each node */
	size_t size = field("/proc/meminfo", "MemFree:") * 1024 - nodes * MIB(32);
	int up[2];
	pid_t pid;

	MUST(pipe(up));
	pid = MUST(fork());
	if (!pid) {
		int pagemap = open_pagemap();
		char *at = room(size & -page);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		MUST(madvise(at, size & -page, MADV_NOHUGEPAGE));
		touch(at, size & -page);
		*blocks = field("/proc/meminfo", "MemFree:") / 16;
		for (size_t i = 0; i < (size & -page); i += page)
			if (!(pfn_at(pagemap, at + i) & 3))
				madvise(at + i, page, MADV_DONTNEED);
		MUST(write(up[1], blocks, sizeof(*blocks)));
		for (;;)
			pause();
	}
	close(up[1]);
	/* it may be killed */
	EXPECT(read(up[0], blocks, sizeof(*blocks)) == sizeof(*blocks));
	return pid;
}

/* Half of the colors, such that two pages of each aligned four have one of them */
static void take_halves(void)
{
	struct camc_policy policy = { .node = CAMC_NODE_LOCAL };

	for (unsigned int i = 0; i < BANKS * nodes; i++)
		policy.colors[0] |= i & BANKS / 2 ? 1ull << i : 0;
	MUST(prctl(PR_CAMC, CAMC_SET, &policy, sizeof(policy), 0));
}

static pid_t hold_halves(void)
{
	char byte = 0;
	int up[2];
	pid_t pid;

	MUST(pipe(up));
	pid = MUST(fork());
	if (!pid) {
		MUST(setresuid(65534, 65534, 65534));
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		take_halves();
		MUST(write(up[1], &byte, 1));
		for (;;)
			pause();
	}
	EXPECT(read(up[0], &byte, 1) == 1);
	return pid;
}

/* Until it has moved so many pages of taken colors, or that many blocks are had without */
#define MOVED		200
#define MORE_BLOCKS	16384

/* Blocks of a few pages, as messages of this size need, are had by compaction, without a kill. */
static void send_in_blocks(bool colored)
{
	long killed = field("/proc/vmstat", "oom_kill "), blocks, sent;
	long returned, moved, begin;
	int ends[2], room_for = 1 << 30;
	static char message[12000];
	char limit[32];
	pid_t holder, hog;

	if (slow)
		skip("this kernel needs memory of its own meanwhile");
	MUST(get(QUEUE, limit, sizeof(limit)));
	MUST(put(QUEUE, "1000000"));
	MUST(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));
	MUST(put(QUEUE, limit));
	MUST(setsockopt(ends[0], SOL_SOCKET, SO_SNDBUFFORCE, &room_for, sizeof(room_for)));
	swapoff(swap_device);
	/* Messages fall back on blocks of others, each of which would raise the watermarks. */
	MUST(put(BOOST, "0"));
	if (colored)
		take_halves();
	holder = colored ? 0 : hold_halves();
	hog = fragment(&blocks);
	returned = stat_of("returned");
	begin = stat_of("lost") + stat_of("kept");
	moved = 0;
	for (sent = 0; moved < MOVED && sent < blocks + MORE_BLOCKS; sent++) {
		if (send(ends[0], message, sizeof(message), MSG_DONTWAIT) < 0)
			break;
		if (!(sent % 64))
			moved = stat_of("lost") + stat_of("kept") - begin;
	}
	killed = field("/proc/vmstat", "oom_kill ") - killed;
	returned = stat_of("returned") - returned;
	close(ends[0]);
	close(ends[1]);
	kill(hog, SIGKILL);
	wait_for(hog);
	if (holder)
		release_color(holder);
	printf("# %ld messages, %ld blocks free before, %ld killed\n", sent, blocks, killed);
	printf("# of %ld pages that were moved %ld came to lists\n", moved, returned);
	EXPECT(moved >= MOVED && !killed);
	/* what is freed by it does not stay apart, in the way of the block */
	EXPECT(returned <= MOVED / 20);
}

/* Compaction leaves pages of taken colors alone, but not if somebody would be killed for it. */
static void test_compaction_needed(void)
{
	send_in_blocks(false);
}

/* What a colored task frees when it compacts is merged, though it has the task's colors. */
static void test_compaction_own(void)
{
	send_in_blocks(true);
}

static unsigned long area_base, area_pages;

static long of_area(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), AREA "%s", name);
	return number(path);
}

/* An area that others' movable pages are in; the node of the next set is its node. */
static void need_area(void)
{
	if (access(AREA, F_OK))
		skip("no CMA area");
	area_base = of_area("base_pfn");
	area_pages = of_area("count");
	on_node = area_base >= second_node;
}

static bool in_area(int pagemap, const void *at)
{
	return pfn_at(pagemap, at) - area_base < area_pages;
}

/* "alloc" or "free" */
static bool from_area(const char *what, unsigned long nr)
{
	char path[128], text[32];

	snprintf(path, sizeof(path), AREA "%s", what);
	snprintf(text, sizeof(text), "%lu", nr);
	return put(path, text) > 0;
}

/* Trap 4: the area is emptied, and what was in it keeps its color. */
static void test_cma(void)
{
	unsigned long inside = 0, freed = 0;
	long taken = 0, more;
	int pagemap = open_pagemap();
	char path[128], word[32], *at;
	size_t size, left;
	long kept, lost;

	need_area();
	/*
	 * Nearly all of these colors that its node has: what is in the area is used last. What is
	 * moved, of each color, needs a place in the rest; cache of others would have that.
	 */
	MUST(put("/proc/sys/vm/drop_caches", "3"));
	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/meminfo", on_node);
	snprintf(word, sizeof(word), "Node %d MemFree:", on_node);
	size = (size_t)field(path, word) * 1024 * 3 / 4;
	left = size / 32;
	if (left / page < area_pages / 8)
		fail("its node has %zu pages of the colors, no place to move to", size / page);
	size = (size - left) & -page;
	set_auto(BANKS * 3 / 4, 0);
	at = room(size);
	touch(at, size);
	for (size_t i = 0; i < size; i += page)
		inside += in_area(pagemap, at + i);
	if (!inside)
		fail("no page of the task is in the area");
	/* What it frees there is on lists, and free memory of the area all the same. */
	put("/proc/sys/vm/stat_refresh", "1");
	more = field("/proc/meminfo", "CmaFree:");
	for (size_t i = 0; i < size && freed < 512 && freed < inside / 2; i += page) {
		if (!in_area(pagemap, at + i))
			continue;
		MUST(madvise(at + i, page, MADV_DONTNEED));
		freed++;
	}
	put("/proc/sys/vm/stat_refresh", "1");
	more = (field("/proc/meminfo", "CmaFree:") - more) * 1024 / (long)page;
	printf("# %lu pages were freed in the area, %ld more are told to be free\n", freed, more);
	/* others free and allocate there, too */
	EXPECT(freed < 64 || more > (long)freed / 2);
	touch(at, size);
	kept = stat_of("kept");
	lost = stat_of("lost");
	/* until there was something to move */
	for (int i = 0; i < 16 && stat_of("kept") == kept; i++)
		taken += from_area("alloc", area_pages / 16) ? area_pages / 16 : 0;
	printf("# %lu of its pages were in the area, %ld taken; kept %ld, lost %ld\n", inside,
	       taken, stat_of("kept") - kept, stat_of("lost") - lost);
	EXPECT(taken);
	expect_content(at, size);
	expect_pure(at, size);
	EXPECT(stat_of("kept") > kept && stat_of("lost") == lost);
	EXPECT(from_area("free", taken));
}

/*
 * Whoever moves pages searches 1,024 pages for each at most, in the mean, and all zones twice,
 * which are not much larger than what they have, and a bit.
 */
static long most_searched(long moved)
{
	long all = field("/proc/meminfo", "MemTotal:") * 1024 / (long)page;

	return moved * 1024 + 2 * all * 5 / 4 + 16 * 1024;
}

/* Nor does who empties it search the zone for each page of a color that is used up. */
static void test_cma_used_up(void)
{
	unsigned long nr, inside = 0, taken = 0;
	int pagemap = open_pagemap();
	size_t got, size = (size_t)field("/proc/meminfo", "MemTotal:") * 1024 & -page;
	long lost, scanned, more, again;
	char *at = room(size);

	need_area();
	nr = area_pages / 16;
	/* so many that a search for each would show */
	set_auto(BANKS * 3 / 4, CAMC_STRICT);
	got = touch_to_the_end(at, size);
	/* What was found by faults is forgotten. */
	usleep(1100000);
	for (size_t i = 0; i < got * page; i += page)
		inside += in_area(pagemap, at + i);
	lost = stat_of("lost");
	scanned = stat_of("scanned");
	/* until there was something to move */
	for (int i = 0; i < 16 && stat_of("lost") < lost + 64; i++)
		taken += from_area("alloc", nr) ? nr : 0;
	lost = stat_of("lost") - lost;
	scanned = stat_of("scanned") - scanned;
	/* Half a minute later nothing is owed: a page is worth a search again. */
	sleep(31);
	again = stat_of("scanned");
	more = stat_of("lost");
	for (unsigned long i = 0; i < area_pages / FEW && stat_of("lost") == more; i++)
		taken += from_area("alloc", FEW) ? FEW : 0;
	again = stat_of("scanned") - again;
	more = stat_of("lost") - more;
	signal(SIGBUS, SIG_DFL);
	munmap(at, 256 * page);
	printf("# %lu of %zu pages were in the area, %lu of it taken\n", inside, got, taken);
	printf("# %ld were moved without their color, %ld were searched\n", lost, scanned);
	printf("# %ld and %ld half a minute later\n", more, again);
	EXPECT(got > 256 && got < size / page && lost >= 64 && scanned <= most_searched(lost));
	EXPECT(again > 0);
	for (size_t i = 256 * page; i < got * page; i += page)
		EXPECT(load(at + i) == 1);
	EXPECT(!taken || from_area("free", taken));
}

/* ------ lists ----------------------------------------------------------- */

static long free_of_nodes(void)
{
	long sum = 0;

	for (unsigned int node = 0; node < nodes; node++)
		sum += node_field(node, "MemFree");
	return sum;
}

/* Traps 8 and drains: what is on the lists is seen as free, and comes back under pressure. */
static void test_fill(void)
{
	long before, after, node_before, node_after, available, refilled = stat_of("refilled");
	unsigned int got;

	set_auto(2, 0);
	MUST(put("/proc/sys/vm/drop_caches", "3"));
	before = field("/proc/meminfo", "MemFree:");
	available = field("/proc/meminfo", "MemAvailable:");
	node_before = free_of_nodes();
	got = fill(2048);
	after = field("/proc/meminfo", "MemFree:");
	available -= field("/proc/meminfo", "MemAvailable:");
	node_after = free_of_nodes();
	/* some are used at once */
	if (got < 2048 || stat_of("free") < 1900)
		fail("%u pages were collected, %ld are on lists", got, stat_of("free"));
	EXPECT(stat_of("refilled") - refilled >= 2048);
	EXPECT(labs(before - after) < 3000);
	EXPECT(labs(available) < 3000 && labs(node_before - node_after) < 3000);
	MUST(put("/proc/sys/vm/drop_caches", "2"));
	EXPECT(stat_of("free") < 100);
	/* more than there may be; it may be dirtied as before */
	before = field("/proc/vmstat", "nr_dirty_threshold ");
	got = fill(1 << 30);
	after = field("/proc/vmstat", "nr_dirty_threshold ");
	EXPECT(got > 2048 && got < 1 << 20);
	printf("# %u pages on lists; limit of dirty ones %ld, then %ld\n", got, before, after);
	EXPECT(labs(before - after) < before / 50);
}

/* What the last report of memory in the kernel log has on color lists, in pages, or -1 */
static long reported(void)
{
	static const char word[] = " free_camc:";
	static char log[1 << 16];
	char *at = log, *last = NULL;
	long sum = 0;

	log[MUST(klogctl(3 /* read all */, log, sizeof(log) - 1))] = 0;
	while ((at = strstr(at, "Mem-Info:")))
		last = at++;
	if (!last || !strstr(last, word))
		return -1;
	for (at = strstr(last, word); at; at = strstr(at + 1, word))
		sum += atol(at + strlen(word));
	return sum * 1024 / (long)page;
}

/* The report that is read when there is no memory tells where it is. */
static void test_fill_reported(void)
{
	long listed, told;

	if (access("/proc/sysrq-trigger", W_OK))
		skip("no reports on demand");
	set_auto(2, 0);
	fill(2048);
	listed = stat_of("free");
	MUST(put("/proc/sysrq-trigger", "m"));
	told = reported();
	printf("# %ld pages were on lists, the report has %ld\n", listed, told);
	EXPECT(listed > 1900 && labs(told - listed) < 200);
}

/* Free blocks as large as a pageblock, or larger */
static long large_blocks(void)
{
	FILE *file = fopen("/proc/buddyinfo", "r");
	long sum = 0, nr, order;
	char line[512], *at;
	int skip_chars;

	while (fgets(line, sizeof(line), file)) {
		at = strstr(line, "zone");
		if (!at || sscanf(at, "zone %*s%n", &skip_chars) < 0)
			continue;
		at += skip_chars;
		for (order = 0; sscanf(at, "%ld%n", &nr, &skip_chars) == 1; order++) {
			sum += order >= 9 ? nr << (order - 9) : 0;
			at += skip_chars;
		}
	}
	fclose(file);
	return sum;
}

/* Who is not privileged breaks up no block that may become a huge page, only to have it ready. */
static void test_fill_unprivileged(void)
{
	unsigned int limited, all;
	long before, after;

	MUST(put("/proc/sys/vm/compact_memory", "1"));
	MUST(seteuid(65534));
	set_auto(2, 0);
	before = large_blocks();
	limited = fill(1 << 20);
	after = large_blocks();
	MUST(seteuid(0));
	all = fill(1 << 20);
	printf("# %ld large blocks, then %ld with %u pages on lists, then %ld with %u\n", before,
	       after, limited, large_blocks(), all);
	EXPECT(after >= before - 4 && all > limited);
}

/* What is kept for requests that may have no other memory is not collected: no fault gets it. */
static void test_fill_low(void)
{
	const char *zone = field_of("DMA", "managed") ? "DMA" : "DMA32";
	long before, after, all = field_of(zone, "managed");
	long above = field_of("Normal", "managed") + field_of("Movable", "managed");
	size_t size;

	if (!all || !above)
		skip("one zone only");
	on_node = 0;
	set_auto(BANKS, 0);
	MUST(put("/proc/sys/vm/drop_caches", "3"));
	MUST(put(RESERVE, "1 1 1 1"));
	/* It begins with these, and goes on where they have nothing left. */
	size = (field_of("Normal", "nr_free_pages") + field_of("Movable", "nr_free_pages")) * page;
	touch(room(size), size);
	before = field_of(zone, "nr_free_pages");
	fill(1 << 30);
	after = field_of(zone, "nr_free_pages");
	printf("# of %ld pages %ld were free, then %ld; %ld in zones above\n", all, before, after,
	       above);
	EXPECT(before > all / 4);
	/* What it keeps is as much as they have, by the ratio of 1. */
	EXPECT(after > before - before / 50 || after >= above);
}

/* Who has collected all that he may has taken nothing of what others may. */
static void test_fill_others(void)
{
	unsigned int got;
	int ready[2];
	char byte;
	pid_t pid;

	on_node = 0;
	MUST(pipe(ready));
	pid = MUST(fork());
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		set_auto(BANKS / 2, 0);
		fill(1 << 30);
		MUST(write(ready[1], "", 1));
		pause();
	}
	EXPECT(read(ready[0], &byte, 1) == 1);
	set_auto(2, 0);
	got = fill(512);
	kill(pid, SIGKILL);
	wait_for(pid);
	if (got < 512)
		fail("only %u pages are left to collect", got);
}

/* The next memory block that has only movable pages, and is online, or -1 */
static int movable_block(int i)
{
	char path[128], zones[64];

	while (++i < 4096) {
		snprintf(path, sizeof(path), BLOCK "/valid_zones", i);
		if (get(path, zones, sizeof(zones)) < 0)
			continue;
		snprintf(path, sizeof(path), BLOCK "/online", i);
		if (!strncmp(zones, "Movable", 7) && number(path) == 1)
			return i;
	}
	return -1;
}

static void on_alarm(int sig)
{
	(void)sig;
}

/*
 * A memory block that went offline, and is online again: its number, and the path of its state. One
 * with a hole never does, nor one of which the kernel has taken some at boot; and one with a page
 * that stays pinned goes on trying until a signal comes.
 */
static int block_that_goes(char *path)
{
	struct sigaction action = { .sa_handler = on_alarm };
	bool tries = false;
	int block = -1;
	ssize_t ret;

	sigaction(SIGALRM, &action, NULL);
	do {
		block = movable_block(block);
		if (block < 0 && tries)
			fail("no memory block goes offline");
		if (block < 0)
			skip("no memory block that can go offline");
		snprintf(path, BLOCK_PATH, BLOCK "/state", block);
		alarm(20);
		ret = put(path, "offline");
		tries |= ret < 0 && errno == EINTR;
		alarm(0);
	} while (ret < 0);
	MUST(put(path, "online_movable"));
	return block;
}

/* Memory goes offline, whenever somebody collects pages of it. Boot with movablecore=. */
static void test_offline(void)
{
	char path[BLOCK_PATH];
	int went = 0;
	ssize_t ret;

	block_that_goes(path);
	for (int i = 0; i < 12; i++) {
		pid_t pid = MUST(fork());

		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			set_auto(BANKS / 2, 0);
			usleep(i * 500);
			fill(1 << 20);
			pause();
		}
		/* It scans until there is nothing left in the block, or a signal comes. */
		alarm(20);
		ret = put(path, "offline");
		if (ret < 0 && errno == EINTR)
			fail("the block does not go offline");
		alarm(0);
		kill(pid, SIGKILL);
		wait_for(pid);
		if (ret > 0) {
			went++;
			MUST(put(path, "online_movable"));
		}
	}
	printf("# went offline %d times of 12\n", went);
	EXPECT(went > 0);
}

/* Memory that does not go offline after all is back at once, for who had found none left. */
static void test_back(void)
{
	/* of free memory as much as reaches into most of its blocks */
	size_t most = (field("/proc/meminfo", "MemFree:") / 8 * 7 * 1024) & ~(page - 1), got;
	char *some_pages = room(most), *at = some_pages, *all, *again = room(MIB(1));
	struct iovec iov = { .iov_len = page };
	int block, status, pagemap = open_pagemap();
	char path[BLOCK_PATH], text[64], byte;
	unsigned long long bytes;
	int ends[2], back[2], told;
	pid_t pid;

	MUST(get("/sys/devices/system/memory/block_size_bytes", text, sizeof(text)));
	bytes = strtoull(text, NULL, 16);
	block = block_that_goes(path);
	/* A page of it that cannot be moved */
	for (; at < some_pages + most; at += page) {
		store(at, 1);
		if ((pfn_at(pagemap, at) << 12) / bytes == (unsigned long long)block)
			break;
	}
	if (at == some_pages + most)
		skip("no page of such a block");
	on_node = color_of(pfn_at(pagemap, at)) / BANKS;
	/* Nothing else stays, or the child would have it, too, and memory be short. */
	munmap(some_pages, at - some_pages);
	munmap(at + page, some_pages + most - at - page);
	iov.iov_base = at;
	MUST(pipe(ends));
	MUST(pipe(back));
	MUST(vmsplice(ends[1], &iov, 1, 0));
	pid = MUST(fork());
	if (!pid) {
		close(back[0]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		MUST(write(back[1], "", 1));
		if (put(path, "offline") > 0) {
			MUST(put(path, "online_movable"));
			fail("a block with a pinned page went offline");
		}
		if (errno != EINTR)
			_exit(4);
		/* no exit, which frees pages that somebody may wait for */
		MUST(write(back[1], "", 1));
		for (;;)
			pause();
	}
	EXPECT(read(back[0], &byte, 1) == 1);
	usleep(500000);
	if (waitpid(pid, &status, WNOHANG)) {
		if (WIFEXITED(status) && WEXITSTATUS(status) == 4)
			skip("the block does not try to go offline");
		fail("the child ended with %#x", status);
	}
	close(back[1]);
	set_auto(1, CAMC_STRICT);
	all = room(MIB(1024));
	touch_to_the_end(all, MIB(1024));
	/* It is found that there are none, anew: this is believed for a second. */
	usleep(1200000);
	touch_to_the_end(again, MIB(1));
	kill(pid, SIGALRM);
	alarm(20);
	told = read(back[0], &byte, 1);
	alarm(0);
	got = touch_to_the_end(again, MIB(1));
	signal(SIGBUS, SIG_DFL);
	/* room for what is printed */
	munmap(all, MIB(1));
	printf("# %zu pages are back\n", got);
	EXPECT(told == 1 && got == MIB(1) / page);
	kill(pid, SIGKILL);
	EXPECT(WIFSIGNALED(wait_for(pid)));
}

/* A page that breaks while it is on a color list goes out of use, as any free page does. */
static void test_broken(void)
{
	long broken = field("/proc/meminfo", "HardwareCorrupted:");
	int pagemap = open_pagemap();
	char *at = room(MIB(1));
	char address[32];

	if (access(HARD_OFFLINE, W_OK))
		skip("no CONFIG_MEMORY_FAILURE");
	set_auto(1, 0);
	touch(at, MIB(1));
	snprintf(address, sizeof(address), "%#llx",
		 (unsigned long long)pfn_at(pagemap, at) << 12);
	munmap(at, MIB(1));
	EXPECT(stat_of("free") > 128);
	MUST(put(HARD_OFFLINE, address));
	EXPECT(field("/proc/meminfo", "HardwareCorrupted:") == broken + (long)page / 1024);
	touch(room(MIB(2)), MIB(2));
}

static void test_warm(void)
{
	size_t size = some() / 4;
	long refills = 0;
	char *at;

	set_auto(1, 0);
	for (int i = 0; i < 5; i++) {
		if (i == 1)
			refills = stat_of("refills");
		at = room(size);
		touch(at, size);
		expect_pure(at, size);
		munmap(at, size);
	}
	EXPECT(stat_of("refills") - refills < 20);
}

/* Trap 7: the refill of the paper does not file and drain the same pages for ever. */
static void test_walk(void)
{
	size_t size = (size_t)field("/proc/meminfo", "MemFree:") * 1024 / BANKS / nodes / 2;
	long drained = stat_of("drained");
	char *at;

	MUST(put(SYS "refill", "walk"));
	size &= -page;
	at = room(size);
	set_auto(1, 0);
	touch(at, size);
	expect_pure(at, size);
	munmap(at, size);
	clear_colors();
	MUST(put(SYS "refill", "directed"));
	EXPECT(put(SYS "refill", "x") == -1 && errno == EINVAL);
	printf("# %zu pages, %ld drained\n", size / page, stat_of("drained") - drained);
	EXPECT(stat_of("drained") - drained < (long)(MIB(1024) / page));
}

static void churn(unsigned int seed, double until)
{
	char *maps[8] = { };

	while (now() < until) {
		unsigned int i = rand_r(&seed) % 8, what = rand_r(&seed) % 10;

		if (what < 6) {
			if (maps[i])
				munmap(maps[i], MIB(1));
			maps[i] = room(MIB(1));
			touch(maps[i], MIB(1));
		} else if (what == 6) {
			try_auto(1 + rand_r(&seed) % 2, rand_r(&seed) % 2 ? CAMC_FORK : CAMC_SHARE);
		} else if (what == 7) {
			clear_colors();
		} else if (what == 8) {
			pid_t pid = fork();

			if (!pid) {
				for (i = 0; i < 8; i++)
					if (maps[i])
						touch(maps[i], MIB(1));
				_exit(0);
			}
			if (pid > 0)
				wait_for(pid);
		} else if (maps[i]) {
			struct count count;

			madvise(maps[i], MIB(1) / 2, MADV_DONTNEED);
			touch(maps[i], MIB(1) / 2);
			count = count_pages(maps[i], MIB(1) / 2);
			if (nr_colors() && count.wrong)
				fail("%lu wrong pages", count.wrong);
		}
		for (i = 0; i < 8; i++)
			if (maps[i] && *(uint64_t *)maps[i] != (uintptr_t)maps[i])
				fail("content of another");
	}
}

/* Tasks with and without colors, drains, compaction and a changing mode, all at the same time */
static void test_churn(void)
{
	double until = now() + 3;
	pid_t pids[4], helper;

	helper = MUST(fork());
	if (!helper) {
		while (now() < until) {
			put("/proc/sys/vm/drop_caches", "2");
			put("/proc/sys/vm/compact_memory", "1");
			put(SYS "refill", "walk");
			usleep(20000);
			put(SYS "refill", "directed");
			usleep(20000);
		}
		_exit(0);
	}
	for (unsigned int i = 0; i < 4; i++) {
		pids[i] = MUST(fork());
		if (!pids[i]) {
			churn(i, until);
			_exit(0);
		}
	}
	for (unsigned int i = 0; i < 4; i++)
		CHILD_OK(pids[i]);
	CHILD_OK(helper);
	MUST(put(SYS "refill", "directed"));
}

static void test_node(void)
{
	struct camc_policy policy = { .flags = CAMC_AUTO, .nr_colors = 2, .node = 1 };
	char *at = room(MIB(4));

	if (nodes < 2)
		skip("one node only");
	MUST(prctl(PR_CAMC, CAMC_SET, &policy, sizeof(policy), 0));
	EXPECT(!(policy.colors[0] & ((1 << BANKS) - 1)) && policy.node == 1);
	touch(at, MIB(4));
	expect_pure(at, MIB(4));
	/* one more color is one of the same node */
	touch(room(field("/proc/meminfo", "MemFree:") * 1024 / BANKS / nodes * 3 & -page),
	      field("/proc/meminfo", "MemFree:") * 1024 / BANKS / nodes * 3 & -page);
	get_policy(&policy);
	EXPECT(policy.nr_colors > 2 && !(policy.colors[0] & ((1 << BANKS) - 1)));
}

/* ------ between the tests ----------------------------------------------- */

/* Free pages by the lists of the buddy allocator less those of the counters: 0 if all is right */
static long lost_pages(void)
{
	char line[512];
	FILE *file = fopen("/proc/buddyinfo", "r");
	long sum = 0, counted;

	while (fgets(line, sizeof(line), file)) {
		char *at = strstr(line, "zone");
		int order = 0, skip_chars;
		char name[32];
		long nr;

		if (!at || sscanf(at, "zone %31s%n", name, &skip_chars) != 1)
			continue;
		at += skip_chars;
		while (sscanf(at, "%ld%n", &nr, &skip_chars) == 1) {
			sum += nr << order++;
			at += skip_chars;
		}
	}
	fclose(file);
	counted = field("/proc/vmstat", "nr_free_pages ");
	return sum - counted;
}

static struct {
	const char *path;
	char value[128];
} settings[] = {
	{ .path = RT_RUNTIME },
	{ .path = QUEUE },
	{ .path = MIN_FREE },
	{ .path = BOOST },
	{ .path = RESERVE },
	{ .path = CORE_PATTERN },
	{ .path = LRU_GEN },
};

static void save_settings(void)
{
	for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++)
		if (get(settings[i].path, settings[i].value, sizeof(settings[i].value)) < 0)
			*settings[i].value = 0;
}

static void restore_settings(void)
{
	char value[128];

	for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++)
		if (get(settings[i].path, value, sizeof(value)) > 0 &&
		    strcmp(value, settings[i].value))
			put(settings[i].path, settings[i].value);
	/* EBUSY if no test has switched it off */
	swapon(swap_device, 0);
	/* or its cache would be in the way of all that follow */
	umount2(TREE, MNT_DETACH);
}

/* Other tasks allocate and free in between: it has to be right once. */
static const char *judge_rest(void)
{
	for (int i = 0; i < 200; i++) {
		/* counters of each CPU are folded */
		put("/proc/sys/vm/stat_refresh", "1");
		if (!stat_of("taken") && !stat_of("free") && !lost_pages())
			return NULL;
		usleep(10000);
	}
	if (stat_of("taken"))
		return "colors are still taken";
	if (stat_of("free"))
		return "pages are still on color lists";
	return "the free lists do not hold what is counted";
}

static const struct {
	void (*fn)(void);
	const char *name;
} tests[] = {
	{ test_bad_maps, "a wrong map is refused and changes nothing" },
	{ test_load, "a map is loaded once and given back" },
	{ test_errors, "wrong policies are refused and change nothing" },
	{ test_unused, "what a call has no use for is refused" },
	{ test_taken, "a color that somebody has is not given again" },
	{ test_kept, "who asks for a number of colors keeps its own" },
	{ test_share, "who is not privileged shares with those that share" },
	{ test_limit, "unprivileged tasks have no more colors than the limit" },
	{ test_limit_exchange, "what a task keeps counts once when it exchanges colors" },
	{ test_limit_set, "root without the capability does not change the limit" },
	{ test_anonymous, "anonymous pages have the colors, each color its share" },
	{ test_turns, "colors are used in turn, however much is on their lists" },
	{ test_program, "all of a program that is started has the colors" },
	{ test_spawn, "spawned programs have no colors without CAMC_FORK" },
	{ test_fork, "children have the colors if the policy says so, and their copies too" },
	{ test_threads, "threads share colors, and the last one gives them back" },
	{ test_secure, "colors of a user do not reach programs that may do more" },
	{ test_vfork_mmap, "colors that a vforked child takes outlast execve()" },
	{ test_huge, "there are no huge pages" },
	{ test_huge_shared, "what colored tasks share with others becomes no huge page" },
	{ test_huge_inherited, "a process that is not colored inherits no lack of huge pages" },
	{ test_huge_race, "a child inherits it, whatever its parent's threads do meanwhile" },
	{ test_huge_vfork, "a vforked child that takes colors leaves its parent huge pages" },
	{ test_huge_clone, "whoever is in another's memory until execve() leaves it huge pages" },
	{ test_huge_alone, "who is left alone in another's memory has no huge pages" },
	{ test_huge_mmap, "mmap() disables huge pages before it colors a task" },
	{ test_merged, "KSM leaves colored pages alone" },
	{ test_merged_before, "KSM forgets pages whose color is taken" },
	{ test_merged_meanwhile, "KSM keeps pages whose color is taken while it scans" },
	{ test_unmerge, "KSM does not unmerge in vain" },
	{ test_pinned, "pages that are pinned for long have the colors" },
	{ test_mmap, "the mmap() call of the paper colors a task" },
	{ test_cgroup, "programs in a cgroup have its colors" },
	{ test_proc, "/proc/camc tells who has what" },
	{ test_fill, "pages on color lists are free memory" },
	{ test_fill_reported, "pages on color lists are told in reports of memory" },
	{ test_fill_unprivileged, "who is not privileged collects from small blocks only" },
	{ test_fill_low, "pages of zones that others need are not collected" },
	{ test_fill_others, "who has collected pages leaves others theirs" },
	{ test_offline, "memory goes offline while pages of it are collected" },
	{ test_warm, "pages that were freed are used again" },
	{ test_walk, "the refill of the paper finds the colors and is bounded" },
	{ test_freed_by_others, "at the end of its colors a task sees what others free" },
	{ test_strict_end, "a strict task gets SIGBUS at its end, at nobody's expense" },
	{ test_pinned_end, "who cannot pin pages at the end of its colors searches once" },
	{ test_pinned_moved, "who is at the end of its colors can pin what it has" },
	{ test_strict_core, "the core of such a task is whole" },
	{ test_strict_exit, "who waits for a thread that ends at its end is told" },
	{ test_strict_zram, "who has used up his colors can write to zram" },
	{ test_strict_blocks, "who has used up his colors can open files of ext4" },
	{ test_cut_off, "what is cut off a file of ext4 does not come back" },
	{ test_cut_off_f2fs, "what is cut off a file of f2fs does not come back" },
	{ test_cut_off_swapped, "what is cut off a swapped file does not come back" },
	{ test_moved_f2fs, "what is moved within a file of f2fs is moved as a whole" },
	{ test_garbage, "who has used up his colors can collect garbage of f2fs" },
	{ test_spill_blocks, "no color is taken for blocks of ext4" },
	{ test_read_ahead, "no color is taken for what is read ahead" },
	{ test_swap_ahead, "no color is taken for what madvise() swaps in" },
	{ test_cgroup_bounded, "a bound of memory keeps a cgroup from the end of its colors" },
	{ test_strict_call, "a system call of such a task fails" },
	{ test_others, "such a task leaves alone what others have collected" },
	{ test_elsewhere, "no memory is reclaimed where there is none of the colors" },
	{ test_kswapd, "kswapd is woken in time, and where memory is short only" },
	{ test_pressure, "pages that pressure brings back are still the task's" },
	{ test_fill_reclaimed, "who reclaims memory has what is on color lists first" },
	{ test_other_node, "memory is reclaimed where it is short only" },
	{ test_spill, "a task gets one more color, and another" },
	{ test_spill_short, "a task gets one more color when memory is short, too" },
	{ test_spill_node, "one more color is one of a node that is short of memory, too" },
	{ test_spill_threads, "threads of one set get one more color together" },
	{ test_trace, "what happens to colors is traced" },
	{ test_swap, "swapped pages come back in the colors" },
	{ test_compaction, "compaction leaves colored pages alone" },
	{ test_compaction_zram, "pages of zram that compaction moves are not lost" },
	{ test_compaction_needed, "nobody is killed for what compaction leaves alone" },
	{ test_compaction_own, "nor for what a task with colors compacts" },
	{ test_cma, "pages that CMA moves keep their colors" },
	{ test_cma_used_up, "who moves pages of used-up colors does not search for each" },
	{ test_node, "colors of another node" },
	{ test_churn, "nothing is lost in a race of tasks, drains and compaction" },
	{ test_back, "memory that stays online is back at once" },
	{ test_broken, "a page that breaks on a color list goes out of use" },
};

static void find_nodes(void)
{
	FILE *file = fopen("/proc/zoneinfo", "r");
	unsigned int node = 0, seen;
	unsigned long start;
	char line[256];

	slow = getenv("GCMA_SLOW") && atoi(getenv("GCMA_SLOW"));
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "Node %u", &seen) == 1)
			node = seen;
		if (sscanf(line, " start_pfn: %lu", &start) == 1 && start && node == 1 &&
		    start < second_node) {
			second_node = start;
			nodes = 2;
		}
	}
	/* regions are multiples of the largest block */
	if (nodes == 2)
		second_node &= ~1023ull;
	fclose(file);
}

static void prepare(void)
{
	char line[256];
	int zram;

	mkdir("/tmp/camc", 0755);
	mount("tmpfs", "/tmp/camc", "tmpfs", 0, NULL);
	mkdir(CGROUPS, 0755);
	if (!mount("cgroup", CGROUPS, "cgroup2", 0, NULL)) {
		put(CGROUPS "/cgroup.subtree_control", "+memory");
		put(CGROUPS "/cgroup.subtree_control", "+io");
		mkdir(CGROUP, 0755);
	}
	zram = open("/sys/class/zram-control/hot_add", O_RDONLY);
	if (zram >= 0) {
		char path[64];
		int number_of = 0;

		if (read(zram, line, sizeof(line)) > 0)
			number_of = atoi(line);
		close(zram);
		snprintf(path, sizeof(path), "/sys/block/zram%d/disksize", number_of);
		put(path, "128M");
		snprintf(swap_device, sizeof(swap_device), "/dev/zram%d", number_of);
		snprintf(line, sizeof(line), "mkswap %s >/dev/null 2>&1", swap_device);
		if (!system(line) && !swapon(swap_device, 0))
			close(open("/tmp/camc/swap-is-on", O_CREAT | O_WRONLY, 0600));
	}
}

int main(int argc, char **argv)
{
	unsigned int i, nr = sizeof(tests) / sizeof(*tests), failed = 0;
	const char *only = argc > 1 ? argv[1] : NULL;

	page = sysconf(_SC_PAGESIZE);
	if (argc == 3 && !strcmp(argv[1], "--thp"))
		return thp_is_disabled() != atoi(argv[2]);
	if (argc == 2 && !strcmp(argv[1], "--wait"))
		return pause();
	if (argc == 3 && !strcmp(argv[1], "--read"))
		return read_all(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "--has")) {
		struct camc_policy policy;

		get_policy(&policy);
		return policy.colors[0] != strtoull(argv[2], NULL, 10);
	}
	find_nodes();
	if (argc == 3 && !strcmp(argv[1], "--inspect"))
		return inspect(argv[2]);
	prepare();
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("TAP version 13\n1..%u\n", nr);
	/*
	 * What is reclaimed of this program and its libraries is read again, by who runs it: at the
	 * end of its colors there is no page for that, nor in a handler for the signal that tells.
	 */
	if (mlockall(MCL_CURRENT))
		printf("# the program may be evicted: %s\n", strerror(errno));
	if (access(SYS "map", F_OK)) {
		printf("Bail out! this kernel has no CONFIG_CAMC\n");
		return 4;
	}
	save_settings();
	for (i = 0; i < nr; i++) {
		const char *rest;
		int status;
		pid_t pid;

		if (only && i > 1 && !strstr(tests[i].name, only))
			continue;
		fflush(stdout);
		pid = fork();
		if (!pid) {
			tests[i].fn();
			fflush(stdout);
			_exit(0);
		}
		waitpid(pid, &status, 0);
		restore_settings();
		rest = judge_rest();
		if (rest)
			printf("# afterwards %s\n", rest);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 4 && !rest) {
			printf("ok %u %s # SKIP\n", i + 1, tests[i].name);
		} else if (status || rest) {
			printf("# status %#x\n", status);
			printf("not ok %u %s\n", i + 1, tests[i].name);
			failed++;
		} else {
			printf("ok %u %s\n", i + 1, tests[i].name);
		}
	}
	swapoff(swap_device);
	return failed != 0;
}
