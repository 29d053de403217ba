// SPDX-License-Identifier: GPL-2.0-only
/*
 * A primary gets the whole area while its frames are lent, whoever uses the pages meanwhile, and
 * the files hold what they held.
 *
 * What becomes of the pages depends on how they are used, and on the scheme: most are dropped,
 * mlocked ones move to other memory, under "adaptive" so do those in use. A page that somebody
 * pins is the one reason to refuse the area: soon, nothing is lost for it, and the log tells which
 * page it was. Then where pages go that reclaim would evict, and that a memory cgroup smaller than
 * the area lives.
 */
#include <fcntl.h>
#include <linux/kernel-page-flags.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include "rental_util.h"

#define PAGE(n)		((off_t)(n) * (off_t)page_size)
#define CHUNK		KIB(128)	/* of writes */
#define FEW		64	/* pages that others have there may come and go */
#define TAKES		3
#define WORKERS		2
#define WORKER_BYTES	MIB(2)
#define REFUSED_MS	5000
#define WAITS		1200	/* of 50 ms */
#define GROUP		CGROUP_ROOT "/rental-selftest"
#define GROUP_LIMIT	MIB(8)

static const struct kind *kind;
static struct volume volume;
static const char *scheme;	/* of this test */
static unsigned long slipped;	/* before it */

/* Files have version 1 of their content, but for what is told in a model */

static void set_up(const char *with)
{
	need_volume(&volume);
	begin(with);
	slipped = count_of("slipped");
}

static void none_slipped(void)
{
	if (count_of("slipped") != slipped)
		fail("%lu pages were found dirty in the area", count_of("slipped") - slipped);
}

/* Pages that are clean */

static int to_parent[2];
static int child_fd;
static size_t child_bytes;

static void tell_parent(void)
{
	char byte = 0;

	MUST(write(to_parent[1], &byte, 1));
}

static void child_maps(void)
{
	touch_pages(map_fd(child_fd, child_bytes, PROT_READ), child_bytes);
	tell_parent();
	for (;;)
		pause();
}

static void child_reads_in_group(void)
{
	MUST(-!!write_file(GROUP "/cgroup.procs", "%d", getpid()));
	file_check(child_fd, 1, child_bytes);
	child_maps();
}

/* A child that has done its work, but lives on */
static pid_t child_that(void (*fn)(void), int fd, size_t bytes)
{
	char byte;
	pid_t pid;

	child_fd = fd;
	child_bytes = bytes;
	MUST(pipe(to_parent));
	pid = background(fn);
	close(to_parent[1]);
	if (MUST(read(to_parent[0], &byte, 1)) != 1)
		fail("the child did not do its work");
	return pid;
}

static bool some_large(int fd, size_t pages)
{
	u64 *pfns = page_buffer(pages * sizeof(*pfns));
	bool large = false;

	find_pages(fd, pfns, pages);
	for (size_t i = 0; i < pages && !large; i++)
		large = page_flags(pfns[i]) & FLAG(KPF_COMPOUND_TAIL);
	munmap(pfns, pages * sizeof(*pfns));
	return large;
}

static void clean_pages(void)
{
	size_t bytes = MIB(8), pages = pages_in(bytes);
	unsigned long discarded;
	int fd, buffer;
	pid_t other;
	char *map;

	set_up("lazy");
	fd = file_lent(&volume, "file", 1, bytes);
	if (kind->large && !some_large(fd, pages))
		fail("no large folio is lent: nothing is tested");
	map = map_fd(fd, bytes / 2, PROT_READ);
	touch_pages(map, bytes / 2);
	other = child_that(child_maps, fd, bytes / 4);

	discarded = count_of("discarded");
	buffer = take_all();
	if (count_of("lent"))
		fail("%lu pages are still lent", count_of("lent"));
	if (count_of("discarded") - discarded < pages)
		fail("of %zu pages %lu were discarded", pages, count_of("discarded") - discarded);
	map_check(map, 1, bytes / 2);
	file_check(fd, 1, bytes);
	if (lent_pages(fd, pages))
		fail("a primary has the area, and pages of the file lie there");
	close(buffer);

	stop(other);
	munmap(map, bytes / 2);
	forget(fd);
	file_check(fd, 1, bytes);
	expect_lent(fd, pages);
	expect_clean();
	none_slipped();
}

/* They may not go, not even for a moment. */
static void mlocked_pages(void)
{
	size_t bytes = MIB(1), pages = pages_in(bytes);
	u64 *pfns = page_buffer(pages * sizeof(*pfns));
	unsigned long moved, disk;
	int fd, buffer;
	char *map;

	set_up("lazy");
	fd = file_made(&volume, "file", 1, bytes);
	map = map_fd(fd, bytes, PROT_READ);
	MUST(mlock(map, bytes));
	expect_lent(fd, pages);
	moved = count_of("moved_out");
	disk = disk_reads(&volume);
	buffer = take_all();
	find_pages(fd, pfns, pages);
	for (size_t i = 0; i < pages; i++) {
		if (!pfns[i])
			fail("mlocked page %zu was dropped", i);
		if (in_area(pfns[i]))
			fail("mlocked page %zu lies in what a primary has", i);
		/* the kernel remembers it of single pages only */
		if (!kind->large && !(page_flags(pfns[i]) & FLAG(KPF_MLOCKED)))
			fail("page %zu is not mlocked any more", i);
	}
	if (count_of("moved_out") - moved < pages)
		fail("of %zu mlocked pages %lu were moved", pages, count_of("moved_out") - moved);
	expect_few_reads(&volume, disk, 0);
	map_check(map, 1, bytes);
	close(buffer);
	none_slipped();
}

/* Of files, by this process, each with one entry for all of it */
static unsigned long huge_kib(void)
{
	FILE *file = fopen("/proc/self/smaps_rollup", "re");
	unsigned long kib = 0;
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "FilePmdMapped: %lu", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib;
}

/* A lent file, of which the kernel is asked to map as much with one entry as it can */
static char *map_huge(int fd, size_t bytes)
{
	size_t huge, room;
	char *at;

	if (!read_number("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", &huge))
		lack("thp", "no huge pages");
	room = bytes + huge;
	at = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	at += huge - (unsigned long)at % huge;
	if (mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	MUST(madvise(at, bytes, MADV_HUGEPAGE));
	forget(fd);
	touch_pages(at, bytes);
	expect_lent(fd, pages_in(bytes));
	if (!huge_kib())
		lack("thp", "no huge page of a file is mapped as such");
	return at;
}

/* A primary takes huge pages that are mapped by one entry, as they are, written to and mlocked. */
static void huge_pages(void)
{
	size_t bytes = MIB(4), pages = pages_in(bytes);
	u64 *pfns = page_buffer(pages * sizeof(*pfns));
	unsigned long replaced;
	int fd, buffer;
	char *map;

	set_up("lazy");
	fd = file_made(&volume, "file", 1, bytes);
	map = map_huge(fd, bytes);
	buffer = take_all();
	if (lent_pages(fd, pages))
		fail("a primary has the area, and pages of the file lie there");
	map_check(map, 1, bytes);
	close(buffer);
	munmap(map, bytes);

	map = map_huge(fd, bytes);
	replaced = count_of("replaced");
	__atomic_store_n(map, *map, __ATOMIC_RELAXED); /* what was there */
	if (count_of("replaced") == replaced)
		fail("a page was written to, and none was replaced");
	map_check(map, 1, bytes);
	munmap(map, bytes);

	map = map_huge(fd, bytes);
	MUST(mlock(map, bytes));
	buffer = take_all();
	find_pages(fd, pfns, pages);
	for (size_t i = 0; i < pages; i++)
		if (!pfns[i] || in_area(pfns[i]))
			fail("mlocked page %zu %s", i, pfns[i] ? "lies in what a primary has" :
			     "was dropped");
	map_check(map, 1, bytes);
	close(buffer);
	file_check(fd, 1, bytes);
	none_slipped();
}

static unsigned long group_number(const char *name)
{
	unsigned long number;
	char path[128];

	snprintf(path, sizeof(path), GROUP "/%s", name);
	if (!read_number(path, &number))
		fail("%s: no number", path);
	return number;
}

static void group_new(void)
{
	rmdir(GROUP);
	MUST(mkdir(GROUP, 0700));
	/* Or it lives on swap. */
	write_file(GROUP "/memory.swap.max", "0");
}

/* What is dropped is not charged any more. */
static void pages_of_a_group(void)
{
	unsigned long before, after;
	size_t bytes = MIB(4);
	int fd, buffer;
	pid_t pid;

	set_up("lazy");
	fd = file_made(&volume, "file", 1, bytes);
	group_new();
	pid = child_that(child_reads_in_group, fd, bytes);
	expect_lent(fd, pages_in(bytes));
	before = group_number("memory.current");
	buffer = take_all();
	after = group_number("memory.current");
	if (after + bytes / 2 > before)
		fail("of a group's %zu bytes in the area %ld were uncharged", bytes,
		     (long)(before - after));
	stop(pid);
	close(buffer);
	file_check(fd, 1, bytes);
	MUST(rmdir(GROUP));
	none_slipped();
}

/* Pages that are used meanwhile */

static int worker_fds[WORKERS];
static unsigned int worker;

static void reads(void)
{
	unsigned int id = worker + 1;
	int fd = worker_fds[worker];
	char *map = map_fd(fd, WORKER_BYTES, PROT_READ), *got = page_buffer(page_size);
	char *want = page_buffer(page_size);
	u64 rnd = id;

	for (unsigned int step = 1;; step++) {
		off_t off = PAGE(random_below(&rnd, WORKER_BYTES / page_size));

		/* what was read while there was no area is not lent */
		if (step % 1024 == 0) {
			munmap(map, WORKER_BYTES);
			posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
			map = map_fd(fd, WORKER_BYTES, PROT_READ);
		}
		stamp(want, off, page_size, id, 1);
		if (random_below(&rnd, 2)) {
			expect("mapped", off, map + off, want, page_size);
		} else {
			pread_all(fd, got, page_size, off);
			expect("read", off, got, want, page_size);
		}
	}
}

/* Reads what it is not going to write at once, so that it is lent. */
static void writes(void)
{
	unsigned int id = worker + 1, version = 1;
	int fd = worker_fds[worker];
	char *map = map_fd(fd, WORKER_BYTES, PROT_READ | PROT_WRITE);
	char *model = page_buffer(WORKER_BYTES), *got = page_buffer(WORKER_BYTES);
	u64 rnd = id;

	stamp(model, 0, WORKER_BYTES, id, version);
	for (unsigned long turn = 0;; turn++) {
		off_t off = random_below(&rnd, WORKER_BYTES - CHUNK);
		size_t len = 1 + random_below(&rnd, CHUNK);

		if (turn % 16 == 0) {
			MUST(fsync(fd));
			MUST(madvise(map, WORKER_BYTES, MADV_DONTNEED));
			posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
			pread_all(fd, got, WORKER_BYTES, 0);
			expect("read", 0, got, model, WORKER_BYTES);
		}
		stamp(model + off, off, len, id, ++version);
		if (random_below(&rnd, 2))
			memcpy(map + off, model + off, len);
		else
			pwrite_all(fd, model + off, len, off);
		expect("mapped", off, map + off, model + off, len);
	}
}

/* A quarter of their pages at least */
static void wait_until_lent(void)
{
	size_t pages = pages_in(WORKER_BYTES);

	for (int waits = 0; waits < WAITS; waits++) {
		unsigned long lent = 0;

		for (unsigned int i = 0; i < WORKERS; i++)
			lent += lent_pages(worker_fds[i], pages);
		if (lent >= WORKERS * pages / 4)
			return;
		usleep(10000);
	}
	fail("few of the pages are lent: nothing is tested");
}

static void taken_while(void (*work)(void), struct writes *before)
{
	pid_t pids[WORKERS];
	char name[32];

	set_up("lazy");
	*before = writes_so_far();
	for (worker = 0; worker < WORKERS; worker++) {
		snprintf(name, sizeof(name), "worker%u", worker);
		worker_fds[worker] = file_made(&volume, name, worker + 1, WORKER_BYTES);
		pids[worker] = background(work);
	}
	for (unsigned int i = 0; i < (soaking() ? 1000 : TAKES); i++) {
		int buffer;

		wait_until_lent();
		wait_until_clean();
		buffer = take_all();
		usleep(20000);
		close(buffer);
	}
	for (worker = 0; worker < WORKERS; worker++)
		stop(pids[worker]);
	wait_until_clean();
}

static void read_meanwhile(void)
{
	struct writes before;

	taken_while(reads, &before);
	none_slipped();
}

/*
 * Who writes to a page that a return or this process just looks at may write to it where it is,
 * but not for long. That is to be seldom.
 */
static void written_meanwhile(void)
{
	struct writes before;

	taken_while(writes, &before);
	expect_seldom_held(&volume, &before, false);
}

/* Schemes */

static const char * const schemes[] = { "noclean", "clean", "lazy", "adaptive" };

/* Every seventh page, but for those that may not be on a list of reclaim's yet */
static unsigned int write_some(int fd, char *model, size_t bytes)
{
	char *map = map_fd(fd, bytes, PROT_READ | PROT_WRITE);
	unsigned int count = 0;

	for (size_t page = 0; page < bytes / page_size - FEW; page += 7, count++) {
		off_t off = PAGE(page) + 100;

		stamp(model + off, off, 1000, 1, 2);
		if (count % 2)
			pwrite_all(fd, model + off, 1000, off);
		else
			memcpy(map + off, model + off, 1000);
	}
	munmap(map, bytes);
	return count;
}

static void expect_model(int fd, const char *model, size_t bytes)
{
	char *got = page_buffer(bytes);

	pread_all(fd, got, bytes, 0);
	expect("file", 0, got, model, bytes);
	munmap(got, bytes);
}

static void scheme_returns(void)
{
	bool clean = strcmp(scheme, "noclean");
	size_t bytes = MIB(2);
	char *model = page_buffer(bytes);
	unsigned long moved, unclean;
	unsigned int written;
	int fd, buffer;

	one_list();
	set_up(scheme);
	stamp(model, 0, bytes, 1, 1);
	fd = file_lent(&volume, "file", 1, bytes);
	written = write_some(fd, model, bytes);
	unclean = area_unclean();
	if (clean ? unclean : unclean < written / 2)
		fail("of %u pages that were written to %lu are lent", written, unclean);
	moved = count_of("moved_out");
	buffer = take_all();
	if (!clean && count_of("moved_out") == moved)
		fail("no dirty page was moved");
	expect_model(fd, model, bytes);
	close(buffer);
	expect_model(fd, model, bytes);
	forget(fd);
	expect_model(fd, model, bytes);
	none_slipped();
}

/* What may not be there any more leaves. */
static void scheme_switched(void)
{
	size_t bytes = MIB(2);
	char *model = page_buffer(bytes);
	int fd;

	set_up("noclean");
	stamp(model, 0, bytes, 1, 1);
	fd = file_lent(&volume, "file", 1, bytes);
	write_some(fd, model, bytes);
	if (!area_unclean())
		fail("no page that was written to is lent: nothing is tested");
	set_scheme("clean");
	wait_until_clean();
	expect_model(fd, model, bytes);
	close(take_all());
	forget(fd);
	expect_model(fd, model, bytes);
	none_slipped();
}

static void scheme_refused(void)
{
	char path[PATH_MAX], word[32];

	for (unsigned int i = 0; i < ARRAY_SIZE(schemes); i++) {
		int ret;

		set_up(schemes[i]);
		snprintf(path, sizeof(path), CMA_SYSFS "/%s/scheme", area.name);
		ret = write_file(path, "cleanest");
		if (ret != -EINVAL)
			fail("an unknown scheme: %s", ret ? strerror(-ret) : "accepted");
		if (!read_word(path, word, sizeof(word)) || strcmp(word, schemes[i]))
			fail("the scheme is '%s' instead of '%s'", word, schemes[i]);
	}
}

static void vmstat_agrees(void)
{
	static const char * const names[] = {
		"lends", "taken_over", "replaced", "slipped", "held", "no_memory", "discarded",
		"moved_out", "activated", "returns", "busy", "no_run",
	};

	set_up("lazy");
	for (unsigned int i = 0; i < ARRAY_SIZE(names); i++) {
		char event[32];

		snprintf(event, sizeof(event), "rental_%s", names[i]);
		event_expect(event, count_of, names[i]);
	}
}

/* Limits of dirty pages and what is told as available know that an eviction gives no memory. */
static void not_available(void)
{
	size_t bytes = MIB(32);
	long available, dirty, few = bytes / 4 / KIB(1);
	int fd;

	set_up("lazy");
	fd = file_lent(&volume, "file", 1, bytes);
	available = memory_kib("MemAvailable:");
	dirty = vm_event("nr_dirty_threshold");
	/* Nothing is lost with them; meanwhile others may free memory. */
	forget(fd);
	available -= memory_kib("MemAvailable:");
	dirty -= vm_event("nr_dirty_threshold");
	if (available > few)
		fail("beside %zu KiB that are lent %ld more are available", bytes / KIB(1),
		     available);
	/* a fifth, by default */
	if (dirty * (long)page_size / (long)KIB(1) > few / 5)
		fail("beside %zu KiB that are lent %ld more pages may be dirty", bytes / KIB(1),
		     dirty);
}

/* More than once, so that they are active, or young */
static void use_pages(int fd, unsigned int id, size_t bytes)
{
	char *map = map_fd(fd, bytes, PROT_READ);

	touch_pages(map, bytes);
	munmap(map, bytes);
	for (int reads = 0; reads < 3; reads++)
		file_check(fd, id, bytes);
}

/* Pages that were used more than once stay in memory, those that were not are dropped. */
static void adaptive(void)
{
	size_t bytes = MIB(4), pages = pages_in(bytes);
	unsigned long activated, discarded, disk;
	struct cachestat cs;
	int used, once, buffer;

	set_up("adaptive");
	used = file_made(&volume, "file", 1, bytes);
	once = file_made(&volume, "once", 2, bytes);
	use_pages(used, 1, bytes);
	file_check(once, 2, bytes);
	expect_lent(used, pages);
	expect_lent(once, pages);

	activated = count_of("activated");
	discarded = count_of("discarded");
	disk = disk_reads(&volume);
	buffer = take_all();
	activated = count_of("activated") - activated;
	discarded = count_of("discarded") - discarded;
	diag("%lu pages were moved, %lu discarded", activated, discarded);
	if (lent_pages(used, pages) || lent_pages(once, pages))
		fail("a primary has the area, and pages of files lie there");
	if (activated + FEW < pages)
		fail("of %zu pages in use %lu were moved", pages, activated);
	file_check(used, 1, bytes);
	expect_few_reads(&volume, disk, FEW);
	/* of the generations all may count as young */
	page_cache_state(once, &cs);
	if (!multi_gen() && (cs.nr_cache > FEW || discarded + FEW < pages))
		fail("of %zu pages not in use %lu were discarded, %llu are left", pages, discarded,
		     (unsigned long long)cs.nr_cache);
	file_check(once, 2, bytes);
	close(buffer);
	none_slipped();
}

#define TRIES	10	/* to have memory as a test needs it */
#define ROOM_KIB	1024	/* that there is without reclaim, or up to twice as much */

/* What zones keep free: their "min", "low" or "high" */
static unsigned long watermarks_kib(const char *which)
{
	FILE *file = fopen("/proc/zoneinfo", "r");
	unsigned long pages = 0, nr;
	char line[128], word[16];

	if (!file)
		fail("/proc/zoneinfo: %s", strerror(errno));
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, " %15s %lu", word, &nr) == 2 && !strcmp(word, which))
			pages += nr;
	fclose(file);
	return pages * page_size / KIB(1);
}

static pid_t hog_until(unsigned long leave_kib)
{
	pid_t pid = hog(leave_kib);

	for (int waits = 0; memory_kib("MemFree:") > leave_kib + ROOM_KIB; waits++) {
		if (waits == WAITS)
			fail("%lu KiB are free", memory_kib("MemFree:"));
		usleep(50000);
	}
	return pid;
}

/*
 * Take the area, then stop who left little memory: how many pages were moved for it, or evicted?
 * None if there was no memory for the heap's own table, and the area was not asked.
 */
static int take_all_beside(pid_t early, pid_t late, unsigned long *activated, unsigned long *stolen)
{
	unsigned long refused = count_of("alloc_pages_fail");
	int buffer;

	*activated = count_of("activated");
	*stolen = vm_event("pgsteal_direct");
	buffer = take(most());
	*activated = count_of("activated") - *activated;
	*stolen = vm_event("pgsteal_direct") - *stolen;
	stop(early);
	stop(late);
	if (count_of("alloc_pages_fail") != refused)
		fail("the area could not be taken");
	if (buffer < 0)
		*activated = *stolen = 0;
	diag("%lu pages were moved, %lu evicted", *activated, *stolen);
	return buffer;
}

/* Room for pages in use is made, once, of clean pages of files. */
static void adaptive_makes_room(void)
{
	size_t bytes = MIB(8), pages = pages_in(bytes);
	unsigned long activated, stolen, leave, lent;
	int used, other, buffer;
	pid_t early, late;

	set_up("adaptive");
	used = file_made(&volume, "file", 1, bytes);
	other = file_made(&volume, "other", 2, 2 * bytes);
	leave = watermarks_kib("high") + ROOM_KIB;
	for (int tries = 1;; tries++) {
		drop_cached(1);
		early = hog_until(leave + 2 * bytes / KIB(1));
		/* so that what is read lies elsewhere */
		buffer = take_all();
		file_check(other, 2, 2 * bytes);
		close(buffer);
		use_pages(used, 1, bytes);
		expect_lent(used, pages);
		late = hog_until(leave);
		lent = count_of("lent");
		buffer = take_all_beside(early, late, &activated, &stolen);
		/* Large ones find no room in pieces; without reclaim a quarter has room. */
		if (lent <= pages + FEW && activated >= pages / 8 * 3 && stolen >= pages / 4)
			break;
		/* kswapd was at work: what it looks at moves into the area, or is not in reach */
		if (buffer >= 0)
			close(buffer);
		if (tries == TRIES)
			fail("of %zu pages in use, %lu lent, %lu were moved, %lu evicted", pages,
			     lent, activated, stolen);
	}
	file_check(used, 1, bytes);
	file_check(other, 2, 2 * bytes);
	close(buffer);
	none_slipped();
}

#define LRU_GEN	"/sys/kernel/debug/lru_gen"

/* Of all lists of pages begins a new generation, but of those of groups that died. */
static void age_pages(void)
{
	unsigned int memcg = 0, node = 0, nr = 0, aged = 0;
	unsigned long seq, age;
	FILE *file = fopen(LRU_GEN, "re");
	char line[256], all[64][64];

	if (!file)
		lack("debugfs", "no " LRU_GEN);
	while (fgets(line, sizeof(line), file) && nr < ARRAY_SIZE(all) - 1) {
		if (sscanf(line, " memcg %u", &memcg) == 1)
			continue;
		if (sscanf(line, " node %u", &node) == 1)
			nr++;
		else if (sscanf(line, " %lu %lu", &seq, &age) == 2 && nr)
			/* the last one counts */
			snprintf(all[nr], sizeof(all[nr]), "+ %u %u %lu 0 1", memcg, node, seq);
	}
	fclose(file);
	for (; nr; nr--) {
		int ret = write_file(LRU_GEN, "%s", all[nr]);

		if (ret && ret != -EINVAL)
			fail("'%s': %s", all[nr], strerror(-ret));
		aged += !ret;
	}
	if (!aged)
		fail("no list of pages has a new generation");
}

/* Room is made behind a generation whose pages are all lent. */
static void adaptive_makes_room_behind(void)
{
	size_t bytes = MIB(8), pages = pages_in(bytes);
	unsigned long activated, stolen, leave;
	int used, other, oldest, buffer;
	pid_t early, late;
	char *map;

	set_up("adaptive");
	if (!multi_gen())
		skip("the other LRU has no generations");
	used = file_made(&volume, "file", 1, bytes);
	other = file_made(&volume, "other", 2, 2 * bytes);
	oldest = file_made(&volume, "oldest", 3, KIB(512));
	leave = watermarks_kib("high") + ROOM_KIB;
	for (int tries = 1;; tries++) {
		drop_cached(1);
		early = hog_until(leave + 2 * bytes / KIB(1));
		file_check(oldest, 3, KIB(512));
		expect_lent(oldest, pages_in(KIB(512)));
		age_pages();
		age_pages();
		/* what is written to lies elsewhere */
		file_written(other, 2, 2 * bytes);
		MUST(fsync(other));
		map = map_fd(used, bytes, PROT_READ);
		touch_pages(map, bytes);
		expect_lent(used, pages);
		late = hog_until(leave);
		buffer = take_all_beside(early, late, &activated, &stolen);
		munmap(map, bytes);
		if (stolen >= pages / 4)
			break;
		if (buffer >= 0)
			close(buffer); /* as above */
		if (tries == TRIES)
			fail("of %zu pages in use %lu were moved, %lu evicted", pages, activated,
			     stolen);
	}
	file_check(used, 1, bytes);
	file_check(other, 2, 2 * bytes);
	close(buffer);
	none_slipped();
}

/* Pins */

#define PINNED	100	/* page of the file */

/* The log says of a large folio where its first page is, in memory and in the file. */
static void expect_told(int log, int fd, const u64 *pfns, size_t page)
{
	char line[1024];
	struct stat st;

	MUST(fstat(fd, &st));
	while (page && page_flags(pfns[page]) & FLAG(KPF_COMPOUND_TAIL))
		page--;
	snprintf(line, sizeof(line),
		 "%s: not returned: page 0x%llx of %s, inode %llu, offset %zu, held", area.name,
		 (unsigned long long)pfns[page], volume.dev + strlen("/dev/"),
		 (unsigned long long)st.st_ino, page);
	if (!log_has(log, "rental: ", line))
		fail("the log does not say '%s'", line);
}

static void refused_for_pin(bool mapped)
{
	size_t bytes = MIB(4), pages = pages_in(bytes);
	u64 *pfns = page_buffer(pages * sizeof(*pfns)), start;
	unsigned long lent, discarded, busy, disk, ms, limit = REFUSED_MS;
	int ends[2], fd, log, buffer;
	off_t off = PAGE(PINNED);

	set_up("lazy");
	/* what is lent afterwards is known */
	close(take_all());
	fd = file_lent(&volume, "file", 1, bytes);
	MUST(pipe(ends));
	if (mapped) {
		char *map = map_fd(fd, bytes, PROT_READ);
		struct iovec iov = { .iov_base = map + off, .iov_len = page_size };

		MUST(vmsplice(ends[1], &iov, 1, 0));
		munmap(map, bytes);
	} else {
		MUST(splice(fd, &off, ends[1], NULL, page_size, 0));
	}

	lent = count_of("lent");
	discarded = count_of("discarded");
	busy = count_of("busy");
	disk = disk_reads(&volume);
	log = log_open(SEEK_END);
	start = now_ns();
	buffer = take(most());
	ms = (now_ns() - start) / 1000000;
	if (buffer >= 0)
		fail("the area was taken when a page of it was in use");
	diag("refused after %lu ms: %s", ms, strerror(errno));
	if (slow_kernel())
		limit *= 10;
	if (ms > limit)
		fail("it took %lu ms to refuse", ms);
	if (count_of("busy") == busy)
		fail("nobody counted that");
	if (count_of("discarded") - discarded > FEW || count_of("lent") + FEW < lent)
		fail("of %lu lent pages %lu are left, %lu were discarded", lent, count_of("lent"),
		     count_of("discarded") - discarded);
	file_check(fd, 1, bytes);
	expect_few_reads(&volume, disk, 0);
	expect_lent(fd, pages);
	find_pages(fd, pfns, pages);
	expect_told(log, fd, pfns, PINNED);

	/* There is room beside it. */
	buffer = take(area.pages / 4);
	if (buffer < 0)
		fail("for a page in use a quarter of the area could not be had: %s",
		     strerror(errno));
	close(buffer);
	close(ends[0]);
	close(ends[1]);
	close(take_all());
	file_check(fd, 1, bytes);
	none_slipped();
}

/* The kernel's mm/gup_test.h, which is not installed */
struct pin_longterm_test {
	__u64 addr, size;
	__u32 flags;
};

#define PIN_LONGTERM_TEST_FLAG_USE_FAST	2
#define PIN_LONGTERM_TEST_START		_IOW('g', 7, struct pin_longterm_test)
#define PIN_LONGTERM_TEST_STOP		_IO('g', 8)
#define PIN_LONGTERM_TEST_READ		_IOW('g', 9, __u64)
#define GUP_TEST			"/sys/kernel/debug/gup_test"

/* As RDMA has it: the pages are in the device's hands for as long as it likes. */
static void pinned_for_long(void)
{
	size_t bytes = MIB(4), pages = pages_in(bytes);
	struct pin_longterm_test pin = { .size = bytes };
	int gup = open(GUP_TEST, O_RDWR | O_CLOEXEC), fd;
	char *map, *got = page_buffer(bytes);
	__u64 to = (unsigned long)got;

	if (gup < 0)
		lack("gup_test", "no %s (CONFIG_GUP_TEST)", GUP_TEST);
	set_up("lazy");
	fd = file_made(&volume, "file", 1, bytes);
	for (unsigned int fast = 0; fast < 2; fast++) {
		int buffer;

		forget(fd);
		file_check(fd, 1, bytes);
		expect_lent(fd, pages);
		map = map_fd(fd, bytes, PROT_READ);
		pin.addr = (unsigned long)map;
		pin.flags = fast ? PIN_LONGTERM_TEST_FLAG_USE_FAST : 0;
		MUST(ioctl(gup, PIN_LONGTERM_TEST_START, &pin));
		if (lent_pages(fd, pages))
			fail("%lu pinned pages are lent", lent_pages(fd, pages));
		buffer = take_all();
		MUST(ioctl(gup, PIN_LONGTERM_TEST_READ, &to));
		map_check(got, 1, bytes);
		close(buffer);
		MUST(ioctl(gup, PIN_LONGTERM_TEST_STOP));
		munmap(map, bytes);
	}
	none_slipped();
}

static void pinned_by_vmsplice(void)
{
	refused_for_pin(true);
}

static void pinned_by_splice(void)
{
	refused_for_pin(false);
}

/* Compaction */

#define COMPACT		"/proc/sys/vm/compact_memory"
#define SCATTERED	4	/* one of so many pages is in use */
#define LEFT_KIB	(32 << 10)	/* while they all are */

/* Has pages all over memory, and leaves room between them. */
static void child_scatters(void)
{
	size_t bytes = (memory_kib("MemFree:") - LEFT_KIB) * KIB(1) / page_size * page_size;
	char *mem = page_buffer(bytes);

	write_file("/proc/self/oom_score_adj", "1000");
	MUST(madvise(mem, bytes, MADV_NOHUGEPAGE));
	for (size_t off = 0; off < bytes; off += page_size)
		mem[off] = 1;
	for (size_t off = 0; off < bytes; off += page_size)
		if (off / page_size % SCATTERED)
			MUST(madvise(mem + off, page_size, MADV_DONTNEED));
	tell_parent();
	for (;;)
		pause();
}

/* Does the area lie in the lower half of its zone? */
static bool area_low(void)
{
	unsigned long end = area_debug(&area, "base_pfn") + area.pages, spanned = 0, nr;
	FILE *file = fopen("/proc/zoneinfo", "r");
	char line[128];
	bool low = false;

	if (!file)
		fail("/proc/zoneinfo: %s", strerror(errno));
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, " spanned %lu", &nr) == 1)
			spanned = nr;
		else if (sscanf(line, " start_pfn: %lu", &nr) == 1 && nr < end)
			low = end < nr + spanned / 2;
	}
	fclose(file);
	return low;
}

/*
 * What is in use at the beginning of a zone moves to the room at its end, but not into blocks that
 * are free as a whole, until all that is left of that lies before it: at three quarters of a zone
 * where one of four pages is in use.
 */
static void compacted(void)
{
	size_t bytes = MIB(8), pages = pages_in(bytes), compared = 0;
	u64 *before = page_buffer(pages * sizeof(u64)), *after = page_buffer(pages * sizeof(u64));
	pid_t pid;
	int fd;

	set_up("lazy");
	if (!area_low())
		skip("compaction does not come to the area");
	close(take_all());
	fd = file_lent(&volume, "file", 1, bytes);
	pid = child_that(child_scatters, -1, 0);
	find_pages(fd, before, pages);
	MUST(-!!write_file(COMPACT, "1"));
	find_pages(fd, after, pages);
	stop(pid);
	for (size_t i = 0; i < pages; i++) {
		/* evicted for what the child has */
		if (!before[i] || !after[i])
			continue;
		if (after[i] != before[i])
			fail("page %zu of %zu was in frame 0x%llx, and is in 0x%llx", i, pages,
			     (unsigned long long)before[i], (unsigned long long)after[i]);
		compared++;
	}
	if (compared < pages / 2)
		fail("of %zu pages only %zu are in memory: nothing is tested", pages, compared);
	file_check(fd, 1, bytes);
	none_slipped();
}

/* A driver whose device has its place in memory */

static unsigned long lent_between(const u64 *pfns, size_t pages, unsigned long first,
				  unsigned long end)
{
	unsigned long count = 0;

	for (size_t i = 0; i < pages; i++)
		count += in_area(pfns[i]) && frame_in_area(pfns[i]) >= first &&
			 frame_in_area(pfns[i]) < end;
	return count;
}

/* It gets its range, and nothing beside it is lost, but the rest of a large folio. */
static void driver_opens(void)
{
	size_t bytes = MIB(8), pages = pages_in(bytes);
	u64 *before = page_buffer(pages * sizeof(u64)), *after = page_buffer(pages * sizeof(u64));
	unsigned long first = ULONG_MAX, end, inside;
	size_t half;
	int fd, device;
	char *map;

	set_up("lazy");
	close(take_all());
	fd = file_lent(&volume, "file", 1, bytes);
	find_pages(fd, before, pages);
	for (size_t i = 0; i < pages; i++)
		first = MIN(first, frame_in_area(before[i]));
	half = pages / 2;
	end = first + half + 1; /* an odd number of them */
	inside = lent_between(before, pages, first, end);

	device = MUST(driver_open(first, end - first));
	find_pages(fd, after, pages);
	for (size_t i = 0; i < pages; i++) {
		if (frame_in_area(before[i]) >= first && frame_in_area(before[i]) < end) {
			if (after[i])
				fail("page %zu was in the device's way, and is in memory", i);
		} else if (after[i] != before[i] && !kind->large) {
			fail("page %zu was in nobody's way, and is gone", i);
		}
	}
	diag("%lu pages were in its way", inside);
	map = mmap(NULL, (end - first) * page_size, PROT_READ | PROT_WRITE, MAP_SHARED, device, 0);
	if (map == MAP_FAILED)
		fail("mmap of the device: %s", strerror(errno));
	for (size_t i = 0; i < (end - first) * page_size; i++)
		if (map[i])
			fail("byte %zu of what the device has is %#x, as another left it", i,
			     map[i]);
	memset(map, 0x5a, (end - first) * page_size);
	file_check(fd, 1, bytes);
	find_pages(fd, after, pages);
	if (lent_between(after, pages, first, end))
		fail("what the device has is lent");
	for (size_t i = 0; i < (end - first) * page_size; i++)
		if (map[i] != 0x5a)
			fail("byte %zu of the device's memory is %#x", i, map[i]);
	munmap(map, (end - first) * page_size);
	close(device);

	/* All of the area is lent again, now and the next time. */
	close(take_all());
	forget(fd);
	file_check(fd, 1, bytes);
	expect_lent(fd, pages);
	none_slipped();
}

/* What is not there, or somebody has, is refused, and changes nothing. */
static void driver_refused(void)
{
	unsigned long lent;
	int fd, buffer;

	set_up("lazy");
	close(take_all());
	buffer = take(1);
	fd = file_lent(&volume, "file", 1, MIB(1));
	lent = count_of("lent");
	expect_refused(0, 0, EINVAL);
	expect_refused(0, area.pages + 1, EINVAL);
	expect_refused(area.pages, 1, EINVAL);
	expect_refused(1, area.pages, EINVAL);
	expect_refused(~0ul, 1, EINVAL);
	expect_refused(1, ~0ul, EINVAL);
	expect_refused(0, area.pages, EBUSY);
	if (count_of("lent") < lent)
		fail("%lu pages are lent, of %lu", count_of("lent"), lent);
	close(buffer);
	close(MUST(driver_open(0, area.pages)));
	close(take_all());
	file_check(fd, 1, MIB(1));
}

/* Full memory */

/* What reclaim would evict lies in the area then, unless memory ends, when lent pages go, too. */
static bool is_taken_over(const char *fields)
{
	unsigned long ino, index, from, to;
	unsigned int maj, min, order;

	return sscanf(fields, "dev=%u:%u ino=%lx index=%lu pfn=0x%lx to=0x%lx order=%u", &maj, &min,
		      &ino, &index, &from, &to, &order) == 7 && !in_area(from) && in_area(to);
}

static void lazy_migration(void)
{
	size_t bytes = MIB(8), pages = pages_in(bytes);
	unsigned long before, taken_over = 0, lent, disk, looks;
	int fd, buffer;
	pid_t pid;

	set_up("lazy");
	fd = file_made(&volume, "file", 1, bytes);
	drop_cached(1);
	/* so that what is read lies elsewhere */
	buffer = take_all();
	file_check(fd, 1, bytes);
	if (lent_pages(fd, pages))
		fail("a primary has the area, and pages of the file lie there");
	close(buffer);

	before = count_of("taken_over");
	disk = disk_reads(&volume);
	events_begin("rental");
	pid = hog(0);
	for (int waits = 1; waits < WAITS && taken_over < pages / 4 * 3; waits++) {
		usleep(50000);
		taken_over = count_of("taken_over") - before;
		pid = hog_again(pid);
	}
	stop(pid);
	events_end("rental");
	taken_over = count_of("taken_over") - before;
	looks = disk_reads(&volume);
	lent = lent_pages(fd, pages);
	/* what is evicted while one looks for it */
	disk += disk_reads(&volume) - looks;
	diag("%lu pages were taken over, %lu of the %zu of the file", taken_over, lent, pages);
	if (taken_over < pages / 4 * 3 || taken_over + FEW < lent)
		fail("pages that were to be evicted were not taken over");
	if (!events("rental_take_over", is_taken_over))
		fail("rental_take_over told nothing of them");
	file_check(fd, 1, bytes);
	expect_few_reads(&volume, disk, pages - lent + FEW);
	expect_clean();
	close(take_all());
	file_check(fd, 1, bytes);
	none_slipped();
}

#define SWAPPINESS	"/proc/sys/vm/swappiness"
#define SCALE		"/proc/sys/vm/watermark_scale_factor"
#define SWAP_BYTES	MIB(24)

/* It gives up where it was in vain for long, until others reclaim what is not lent. */
static void kswapd_hopes(void)
{
	int fd = MUST(volume_file(&volume, "written", O_RDWR | O_CREAT | O_TRUNC));
	char *bytes = page_buffer(MIB(1));

	memset(bytes, 1, MIB(1));
	pwrite_all(fd, bytes, MIB(1), 0);
	MUST(fsync(fd));
	push_out(MIB(1));
	close(fd);
}

/*
 * Memory is swapped when there is nothing else, with lent pages on the lists of files, too: those
 * stay. All is done by kswapd, which never evicts them; with this swappiness it swaps if there are
 * but few files. So memory ends between the watermarks that wake it and that others wait at.
 */
static void swaps_beside_lent(void)
{
	unsigned long out, swappiness, scale, leave, lent;
	size_t bytes = MIB(16), pages = pages_in(bytes);
	char path[64];
	pid_t pid;
	int fd;

	set_up("lazy");
	if (multi_gen())
		skip("the other LRU weighs by generations");
	fd = file_made(&volume, "swap", 3, SWAP_BYTES);
	MUST(fchmod(fd, 0600));
	close(fd);
	snprintf(path, sizeof(path), "%s/swap", volume.dir);
	MUST(make_swap(path));
	if (!read_number(SWAPPINESS, &swappiness) || !read_number(SCALE, &scale))
		fail("no settings of memory");
	close(take_all());
	if (swapon(path, 0))
		lack("swap", "swapon: %s", strerror(errno));
	MUST(-!!write_file(SWAPPINESS, "0"));
	MUST(-!!write_file(SCALE, "300"));
	leave = (watermarks_kib("min") + watermarks_kib("low")) / 2;
	for (int tries = 1;; tries++) {
		fd = file_lent(&volume, "file", 1, bytes);
		out = vm_event("pswpout");
		pid = hog(leave);
		for (int waits = 0; waits < WAITS / TRIES && vm_event("pswpout") - out < FEW;
		     waits++)
			usleep(50000);
		out = vm_event("pswpout") - out;
		lent = lent_pages(fd, pages);
		stop(pid);
		if (out >= FEW || tries == TRIES)
			break;
		close(fd);
		kswapd_hopes();
	}
	write_file(SCALE, "%lu", scale);
	write_file(SWAPPINESS, "%lu", swappiness);
	MUST(swapoff(path));
	diag("%lu pages were swapped out, %lu of %zu are lent", out, lent, pages);
	if (out < FEW)
		fail("%lu pages were swapped out", out);
	if (lent < pages - FEW)
		fail("%lu of %zu pages are lent", lent, pages);
	file_check(fd, 1, bytes);
}

static void child_reads_much(void)
{
	MUST(-!!write_file(GROUP "/cgroup.procs", "%d", getpid()));
	for (int reads = 0; reads < 3; reads++)
		file_check(child_fd, 1, child_bytes);
}

/* Lent pages are charged as others are, and a group gets rid of them as of others. */
static void small_group(void)
{
	unsigned long lends, killed;

	set_up("lazy");
	child_bytes = 3 * GROUP_LIMIT;
	child_fd = file_made(&volume, "file", 1, child_bytes);
	group_new();
	MUST(-!!write_file(GROUP "/memory.max", "%zu", GROUP_LIMIT));
	lends = count_of("lends");
	wait_for(background(child_reads_much));
	lends = count_of("lends") - lends;
	killed = event_in(GROUP "/memory.events", "oom_kill");
	if (killed)
		fail("%lu processes of the group were killed", killed);
	if (lends < child_bytes / page_size)
		fail("%lu pages were lent: nothing is tested", lends);
	MUST(rmdir(GROUP));
	none_slipped();
}

/* What is traced */

static struct stat status;		/* of the file */
static unsigned long replaced;		/* pages of its */

static bool is_replaced(const char *fields)
{
	unsigned long ino, index, from, to;
	unsigned int maj, min, order;

	if (sscanf(fields, "dev=%u:%u ino=%lx index=%lu pfn=0x%lx to=0x%lx order=%u", &maj, &min,
		   &ino, &index, &from, &to, &order) != 7 || maj != major(status.st_dev) ||
	    min != minor(status.st_dev) || ino != status.st_ino || !in_area(from) || in_area(to))
		return false;
	replaced += 1ul << order;
	return true;
}

static bool is_return(const char *fields)
{
	unsigned long long ns;
	unsigned long frame, count;
	char name[64];
	int ret;

	return sscanf(fields, "area=%63s frame=%lu count=%lu ret=%d ns=%llu", name, &frame, &count,
		      &ret, &ns) == 5 && !strcmp(name, area.name) && !ret &&
	       frame + count <= area.pages && ns;
}

static void traced(void)
{
	size_t bytes = MIB(2), written = bytes / 2;
	char *content = page_buffer(written);
	int fd;

	one_list();
	set_up("lazy");
	fd = file_lent(&volume, "file", 1, bytes);
	MUST(fstat(fd, &status));
	stamp(content, 0, written, 1, 1);
	events_begin("rental");
	for (size_t at = 0; at < written; at += page_size)
		pwrite_all(fd, content + at, page_size, at);
	close(take_all());
	events_end("rental");
	events("rental_replace", is_replaced);
	if (replaced < pages_in(written))
		fail("%lu of %zu pages were told by rental_replace", replaced, pages_in(written));
	if (!events("rental_return", is_return))
		fail("rental_return told nothing of a primary that took the area");
	file_check(fd, 1, bytes);
}

static const struct test {
	void (*fn)(void);
	const char *name;
	bool few;		/* not on every filesystem */
} tests[] = {
	{ traced, "what is replaced, and a return, are told by tracepoints", true },
	{ clean_pages, "a primary takes clean pages, mapped and not", false },
	{ mlocked_pages, "a primary takes mlocked pages, which stay in memory", false },
	{ pages_of_a_group, "a primary takes pages of a memory cgroup", false },
	{ read_meanwhile, "a primary takes pages that others read", false },
	{ written_meanwhile, "a primary takes pages that others write to", false },
	{ adaptive, "pages in use stay in memory under scheme adaptive", true },
	{ adaptive_makes_room, "room is made for pages in use under scheme adaptive", true },
	{ adaptive_makes_room_behind, "room is made of more than the oldest generation", true },
	{ pinned_by_vmsplice, "a page in a pipe, by vmsplice(), is found before others go", true },
	{ pinned_by_splice, "a page in a pipe, by splice(), is found before others go", true },
	{ pinned_for_long, "pages that are pinned for long have left the area", true },
	{ compacted, "compaction leaves lent pages where they are", true },
	{ driver_opens, "a driver takes its place, and nothing beside it", true },
	{ driver_refused, "a driver is refused what is not there, or taken", true },
	{ lazy_migration, "pages that were to be evicted are lent frames", true },
	{ swaps_beside_lent, "memory is swapped beside lent pages", true },
	{ small_group, "a memory cgroup smaller than the area reads much", true },
	{ scheme_switched, "dirty pages leave when the scheme is clean again", true },
};

static const char * const on[] = { "ext4", "xfs with large folios", "f2fs", "btrfs" };

#define ON_FEW	2	/* the first ones */

static void run_schemes(void)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(schemes); i++) {
		scheme = schemes[i];
		run(scheme_returns, NEED_NOTHING,
		    "scheme %s: a primary takes pages some of which were written to", scheme);
	}
	run(scheme_refused, NEED_NOTHING, "an unknown scheme is refused and changes nothing");
	run(vmstat_agrees, NEED_NOTHING, "vmstat agrees with the counters of the area");
	run(not_available, NEED_NOTHING, "lent pages are no memory that is available");
}

static bool is_run(unsigned int test, unsigned int k)
{
	unsigned int kinds = tests[test].few ? ON_FEW : ARRAY_SIZE(on);

	return k < kinds && has_turn(test, k, kinds);
}

int main(void)
{
	unsigned int count = ARRAY_SIZE(schemes) + 4;

	for (unsigned int i = 0; i < ARRAY_SIZE(tests); i++)
		for (unsigned int k = 0; k < ARRAY_SIZE(on); k++)
			count += is_run(i, k);
	start(count);
	boosts_end();
	for (unsigned int k = 0; k < ARRAY_SIZE(on); k++) {
		kind = kind_named(on[k]);
		volume_open(&volume, &kind->volume);
		for (unsigned int i = 0; i < ARRAY_SIZE(tests); i++)
			if (is_run(i, k))
				run(tests[i].fn, NEED_NOTHING, "%s: %s", on[k], tests[i].name);
		if (kind->large)
			run(huge_pages, NEED_NOTHING,
			    "%s: a primary takes huge pages, written to and mlocked", on[k]);
		if (!k)
			run_schemes();
		volume_close(&volume);
	}
	boosts_restore();
	return finish();
}
