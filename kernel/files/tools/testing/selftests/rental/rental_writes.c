// SPDX-License-Identifier: GPL-2.0-only
/*
 * A page that is written to does not lie in the area, whichever way it is written.
 *
 * Every test reads a file into lent frames, writes to it in one way, and looks where its pages are
 * then: those that were written to have left the area, the others have not, and nothing there is
 * dirty. What the file holds is compared with a model by read, by mmap, and once more from the
 * disk. Neither may a page have slipped through: one that is found dirty in the area is moved out,
 * but also counted. Only who holds a page, as a pipe does, keeps it there, for as long.
 *
 * Written is by system calls, through mappings, by who has another's memory in his hands (ptrace,
 * direct I/O, io_uring), by loop devices and swap files that lie on the file, and by the filesystem
 * itself, which zeroes parts of pages and moves blocks. Pages of a block device are never lent:
 * filesystems change them by buffer heads, which no hook sees.
 */
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../cma/cma_ring.h"
#include "rental_util.h"

#ifndef UFFD_FEATURE_WP_ASYNC
#define UFFD_FEATURE_WP_ASYNC	0x8000
#endif

#define PAGES		16
#define PAGES_MAX	(2 * PAGES)
#define PAGE(n)		((off_t)(n) * (off_t)page_size)
#define SIZE		(PAGE(PAGES) - 1000)	/* the last page is not full */
#define SWAP_FILE	MIB(4)
#define SWAPPED		KIB(512)
#define WRITERS		4
#define WRITTEN_ROUNDS	9

static const struct kind *kind;
static struct volume volume;

/* The file that is written to, and what should be in it; beyond size the model is zero. */
static struct {
	int fd;
	char *model, *got;
	off_t size;
	bool written[PAGES_MAX];	/* they may not be lent */
	bool others_stay;		/* lent, where they are */
	bool held;			/* some pages were, when they were written to */
	unsigned long slipped;
} file;

static char *maps[4];	/* of it; mapped pages cannot be dropped */
static unsigned int nr_maps;

/* Another one, to write from: its bytes are file 2, version 1. */
static struct {
	int fd;
	char *bytes;
} source;

static int create(const char *name, const char *bytes, size_t len)
{
	int fd = MUST(volume_file(&volume, name, O_RDWR | O_CREAT | O_TRUNC));

	for (size_t off = 0; off < len; off += page_size)
		pwrite_all(fd, bytes + off, MIN(page_size, len - off), off);
	return fd;
}

static void run_anywhere(void)
{
	cpu_set_t cpus;

	memset(&cpus, 0xff, sizeof(cpus));
	MUST(sched_setaffinity(0, sizeof(cpus), &cpus));
}

/* Single pages, so that one of them leaves alone, but where large folios are what is tested. */
static void read_file(void)
{
	size_t piece = kind->large ? (size_t)file.size : page_size;

	if (posix_fadvise(file.fd, 0, 0, kind->large ? POSIX_FADV_NORMAL : POSIX_FADV_RANDOM))
		fail("posix_fadvise");
	for (off_t off = 0; off < file.size; off += piece)
		pread_all(file.fd, file.got + off, MIN(piece, (size_t)(file.size - off)), off);
}

static void lend(void)
{
	forget(file.fd);
	read_file();
	expect_lent(file.fd, pages_in(file.size));
	memset(file.written, 0, sizeof(file.written));
	file.others_stay = !kind->large;
}

static void file_new(void)
{
	one_list();
	need_volume(&volume);
	begin("lazy");
	file.size = SIZE;
	file.model = page_buffer(PAGE(PAGES_MAX));
	file.got = page_buffer(PAGE(PAGES_MAX));
	stamp(file.model, 0, SIZE, 1, 1);
	file.fd = create("file", file.model, SIZE);
	file.slipped = count_of("slipped");
	lend();
}

static void source_new(void)
{
	source.bytes = page_buffer(PAGE(PAGES));
	stamp(source.bytes, 0, PAGE(PAGES), 2, 1);
	source.fd = create("source", source.bytes, PAGE(PAGES));
	forget(source.fd);
}

static void mark(off_t off, size_t len)
{
	for (off_t page = off / PAGE(1); page <= (off + (off_t)len - 1) / PAGE(1); page++)
		file.written[page] = true;
	file.size = MAX(file.size, off + (off_t)len);
}

/* This is going to be written: from a buffer, or the next version of what is there. */
static void will_be(off_t off, const void *bytes, size_t len)
{
	memcpy(file.model + off, bytes, len);
	mark(off, len);
}

static const char *next_version(off_t off, size_t len)
{
	stamp(file.model + off, off, len, 1, 2);
	mark(off, len);
	return file.model + off;
}

static void check_places(void)
{
	u64 pfns[PAGES_MAX];
	size_t pages = pages_in(file.size);

	find_pages(file.fd, pfns, pages);
	for (size_t i = 0; i < pages; i++) {
		if (file.written[i] && in_area(pfns[i]))
			fail("page %zu was written to and is lent, flags 0x%llx", i,
			     (unsigned long long)page_flags(pfns[i]));
		if (!file.written[i] && file.others_stay && !in_area(pfns[i]))
			fail("page %zu is not lent any more, but %s", i,
			     pfns[i] ? "elsewhere" : "dropped");
	}
}

static void compare(const char *what)
{
	size_t mapped = pages_in(file.size) * page_size;
	char *map;

	pread_all(file.fd, file.got, file.size, 0);
	expect(what, 0, file.got, file.model, file.size);
	if (!file.size)
		return;
	map = mmap(NULL, mapped, PROT_READ, MAP_SHARED, file.fd, 0);
	if (map == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	expect(what, 0, map, file.model, mapped);
	munmap(map, mapped);
}

/*
 * Written to while somebody held them, who lets go of them now: they move out. What the journal
 * holds is written out before that, and may stay.
 */
static void check_moved(void)
{
	if (strstr(kind->volume.name, "journaled")) {
		MUST(fsync(file.fd));
		memset(file.written, 0, sizeof(file.written));
		file.others_stay = false;
	}
	wait_until_clean();
	file.slipped = count_of("slipped");
	file.held = false;
}

static void check_clean(void)
{
	unsigned long slipped = count_of("slipped") - file.slipped;

	if (slipped)
		fail("%lu pages were found dirty in the area", slipped);
	expect_clean();
}

static void check(void)
{
	struct stat st;

	if (file.held)
		check_moved();
	check_places();
	MUST(fstat(file.fd, &st));
	if (st.st_size != file.size)
		fail("the size is %lld instead of %lld", (long long)st.st_size,
		     (long long)file.size);
	compare("after the write");
	check_clean();
	while (nr_maps)
		munmap(maps[--nr_maps], PAGE(PAGES));
	forget(file.fd);
	compare("from the disk");
	check_clean();
}

/* System calls */

static void write_parts(void)
{
	file_new();
	for (unsigned int page = 0; page < PAGES - 1; page += 3) {
		off_t off = PAGE(page) + 100 + page;

		pwrite_all(file.fd, next_version(off, 777), 777, off);
	}
	check();
}

static void write_whole(void)
{
	file_new();
	pwrite_all(file.fd, next_version(PAGE(2), PAGE(1)), PAGE(1), PAGE(2));
	pwrite_all(file.fd, next_version(PAGE(5), PAGE(4)), PAGE(4), PAGE(5));
	check();
}

/*
 * Pages that were read more than once wait on a list of their CPU until there are more to put
 * among those in use; the list holds them.
 */
static void write_read_often(int reader, int writer)
{
	unsigned long held;

	file_new();
	for (int tries = 1;; tries++) {
		run_on(reader);
		for (int round = 0; round < 4; round++)
			pread_all(file.fd, file.got, PAGE(1), PAGE(6));
		run_on(writer);
		held = count_of("held");
		pwrite_all(file.fd, next_version(PAGE(6) + 9, 99), 99, PAGE(6) + 9);
		/* The other CPU had no turn for as long as the kernel waits for it. */
		if (reader == writer || count_of("held") == held || tries == 3)
			break;
		file.held = true;
		check();
		lend();
	}
	check();
}

static void write_read_here(void)
{
	write_read_often(0, 0);
}

static void write_read_elsewhere(void)
{
	write_read_often(1, 0);
}

static void write_across(void)
{
	file_new();
	pwrite_all(file.fd, next_version(PAGE(4) - 5, PAGE(3)), PAGE(3), PAGE(4) - 5);
	check();
}

static void append(void)
{
	file_new();
	pwrite_all(file.fd, next_version(SIZE, 300), 300, SIZE);
	pwrite_all(file.fd, next_version(file.size, 1111), 1111, SIZE + 300);
	check();
}

static void write_gathered(void)
{
	struct iovec iov[4];
	off_t off = PAGE(3) + 7, at = off;

	file_new();
	for (unsigned int i = 0; i < ARRAY_SIZE(iov); i++) {
		iov[i].iov_len = 1234 + i * 1001;
		iov[i].iov_base = (void *)next_version(at, iov[i].iov_len);
		at += iov[i].iov_len;
	}
	if (MUST(pwritev(file.fd, iov, ARRAY_SIZE(iov), off)) != at - off)
		fail("pwritev was short");
	check();
}

#define AT_ONCE	100	/* tries */

/*
 * Without waiting, behind a write to page 9 that may wait: a filesystem sends back who would have
 * to note a new time of the last change.
 */
static bool write_at_once(off_t off, size_t len)
{
	struct iovec iov = { .iov_base = (void *)next_version(off, len), .iov_len = len };

	mark(PAGE(9), 1);
	for (int tries = 0; tries < AT_ONCE; tries++) {
		pwrite_all(file.fd, file.model + PAGE(9), 1, PAGE(9));
		if (syscall(SYS_pwritev2, file.fd, &iov, 1ul, (unsigned long)off, 0ul,
			    RWF_NOWAIT) == (long)len)
			return true;
		if (errno != EAGAIN)
			break;
	}
	return false;
}

/* Who must not wait is not sent back from a page that nobody has. */
static void write_nowait(void)
{
	file_new();
	if (write_at_once(PAGE(9) + 100, 777)) {
		if (!write_at_once(PAGE(3) + 100, 777))
			fail("a write that must not wait, to a lent page: %s", strerror(errno));
	} else if (!strcmp(kind->volume.type, "xfs")) {
		fail("a write that must not wait: %s", strerror(errno));
	} else {
		diag("the filesystem has no such writes: %s", strerror(errno));
		pwrite_all(file.fd, file.model + PAGE(9) + 100, 777, PAGE(9) + 100);
	}
	check();
}

static void write_direct(void)
{
	int direct;

	file_new();
	direct = MUST(volume_file(&volume, "file", O_WRONLY | O_DIRECT));
	memcpy(file.got, next_version(PAGE(6), PAGE(3)), PAGE(3));
	pwrite_all(direct, file.got, PAGE(3), PAGE(6));
	check();
}

static void copy_range(void)
{
	loff_t in = 100, out = PAGE(3) + 500;
	size_t len = PAGE(4) + 33;

	file_new();
	source_new();
	will_be(out, source.bytes + in, len);
	while (len)
		len -= MUST(copy_file_range(source.fd, &in, file.fd, &out, len, 0));
	check();
}

static void send_file(void)
{
	off_t in = 700, out = PAGE(8) + 11;
	size_t len = PAGE(2) + 500;

	file_new();
	source_new();
	will_be(out, source.bytes + in, len);
	MUST(lseek(file.fd, out, SEEK_SET));
	while (len)
		len -= MUST(sendfile(file.fd, source.fd, &in, len));
	check();
}

/* Mappings */

static char *map_file(int prot, int flags)
{
	char *map = mmap(NULL, PAGE(PAGES), prot, flags, file.fd, 0);

	if (map == MAP_FAILED || nr_maps == ARRAY_SIZE(maps))
		fail("mmap: %s", strerror(errno));
	maps[nr_maps++] = map;
	return map;
}

static char *map_shared(void)
{
	return map_file(PROT_READ | PROT_WRITE, MAP_SHARED);
}

static void touch(const char *map)
{
	for (unsigned int page = 0; page < PAGES; page++)
		touch_page(map + PAGE(page));
}

static void write_map(char *map, off_t off, size_t len)
{
	memcpy(map + off, next_version(off, len), len);
}

static void map_read_before(void)
{
	char *map;

	file_new();
	map = map_shared();
	touch(map);
	for (unsigned int page = 1; page < PAGES - 1; page += 4)
		write_map(map, PAGE(page) + 50, 2000);
	check();
}

static void map_at_once(void)
{
	char *map;

	file_new();
	map = map_shared();
	for (unsigned int page = 0; page < PAGES - 1; page += 5)
		write_map(map, PAGE(page) + 60, 1000);
	write_map(map, PAGE(PAGES - 1) + 60, 1000);
	check();
}

static char *shared_map;

/* In a process of its own: with a mapping of its own, or that of the parent */
static void child_maps_and_writes(void)
{
	char *map = map_shared();

	touch(map);
	write_map(map, PAGE(3) + 10, 1000);
	expect("the other's mapping", 0, map, file.model, SIZE);
}

static void child_writes(void)
{
	touch(shared_map);
	write_map(shared_map, PAGE(3) + 10, 1000);
	expect("the parent's mapping", 0, shared_map, file.model, SIZE);
}

static void two_write(void (*child)(void))
{
	file_new();
	shared_map = map_shared();
	touch(shared_map);
	wait_for(background(child));
	next_version(PAGE(3) + 10, 1000);
	expect("what the other wrote", 0, shared_map, file.model, SIZE);
	write_map(shared_map, PAGE(3) + 500, 1000);
	write_map(shared_map, PAGE(6) + 500, 1000);
	check();
}

static void map_two_processes(void)
{
	two_write(child_maps_and_writes);
}

static void map_after_fork(void)
{
	two_write(child_writes);
}

static int from_parent[2], to_parent[2];

/* Has the page mapped while the parent writes to it. */
static void child_watches(void)
{
	char *map = map_shared();
	char byte = 0;

	touch(map);
	MUST(write(to_parent[1], &byte, 1));
	MUST(read(from_parent[0], &byte, 1));
	expect("in another process", 0, map, file.model, SIZE);
}

static void map_watched(void)
{
	char byte = 0;
	pid_t pid;

	file_new();
	MUST(pipe(from_parent));
	MUST(pipe(to_parent));
	/* the child is to know what is going to be written */
	next_version(PAGE(5) + 1, 3000);
	next_version(PAGE(9) + 1, 3000);
	pid = background(child_watches);
	MUST(read(to_parent[0], &byte, 1));
	shared_map = map_shared();
	memcpy(shared_map + PAGE(5) + 1, file.model + PAGE(5) + 1, 3000);
	pwrite_all(file.fd, file.model + PAGE(9) + 1, 3000, PAGE(9) + 1);
	MUST(write(from_parent[1], &byte, 1));
	wait_for(pid);
	check();
}

static atomic_uint writers_came;

static void *write_with_others(void *arg)
{
	unsigned long self = (unsigned long)arg;
	size_t len = page_size / WRITERS;

	for (unsigned int page = 0; page < PAGES - 1; page++) {
		off_t off = PAGE(page) + self * len;

		atomic_fetch_add(&writers_came, 1);
		while (atomic_load(&writers_came) < (page + 1) * WRITERS)
			sched_yield();
		memcpy(shared_map + off, file.model + off, len);
	}
	return NULL;
}

/*
 * Several threads are at the same page at the same moment, and each waits for the others'
 * reference. Who loses his CPU before he waits for the lock is not waited for long: seldom.
 */
static void map_by_threads(void)
{
	pthread_t threads[WRITERS];
	unsigned long slipped;

	file_new();
	run_anywhere();
	slipped = count_of("slipped");
	for (unsigned int round = 0; round < WRITTEN_ROUNDS; round++) {
		stamp(file.model, 0, PAGE(PAGES - 1), 1, 2 + round);
		mark(0, PAGE(PAGES - 1));
		shared_map = map_shared();
		/* a fault on a page that is there, one that finds it, one that reads it */
		if (round % 3 == 1) {
			touch(shared_map);
		} else if (round % 3 == 2) {
			forget(file.fd);
			file.others_stay = false;
		}
		atomic_store(&writers_came, 0);
		for (unsigned long i = 0; i < WRITERS; i++)
			if (pthread_create(&threads[i], NULL, write_with_others, (void *)i))
				fail("no thread");
		for (unsigned int i = 0; i < WRITERS; i++)
			pthread_join(threads[i], NULL);
		file.held = true;
		check();
		lend();
	}
	slipped = count_of("slipped") - slipped;
	diag("%lu pages were written to in the area", slipped);
	if (slipped > WRITTEN_ROUNDS * PAGES / SELDOM)
		fail("that is not seldom");
}

static void map_made_writable(void)
{
	char *map;

	file_new();
	map = map_file(PROT_READ, MAP_SHARED);
	touch(map);
	MUST(mprotect(map, PAGE(PAGES), PROT_READ | PROT_WRITE));
	write_map(map, PAGE(7) + 3, 999);
	MUST(mprotect(map, PAGE(PAGES), PROT_READ));
	MUST(mprotect(map, PAGE(PAGES), PROT_READ | PROT_WRITE));
	write_map(map, PAGE(8) + 3, 999);
	check();
}

static void map_populated(void)
{
	char *map;

	file_new();
	map = map_shared();
	touch(map);
	MUST(madvise(map + PAGE(4), PAGE(3), MADV_POPULATE_WRITE));
	mark(PAGE(4), PAGE(3));
	check();
}

static void map_locked(void)
{
	char *map;

	file_new();
	map = map_shared();
	MUST(mlock(map, PAGE(PAGES)));
	expect_lent(file.fd, PAGES);
	write_map(map, PAGE(2) + 9, 1500);
	pwrite_all(file.fd, next_version(PAGE(9) + 9, 1500), 1500, PAGE(9) + 9);
	MUST(munlock(map, PAGE(PAGES)));
	check();
}

/* Pages that were written out are clean again, and written to again. */
static void map_synced(void)
{
	char *map;

	file_new();
	map = map_shared();
	touch(map);
	write_map(map, PAGE(1) + 100, 500);
	MUST(msync(map, PAGE(PAGES), MS_SYNC));
	check_places();
	write_map(map, PAGE(1) + 700, 500);
	write_map(map, PAGE(2) + 700, 500);
	MUST(fsync(file.fd));
	check_places();
	write_map(map, PAGE(2) + 1300, 500);
	check();
}

static void read_into_map(void)
{
	char *map;

	file_new();
	source_new();
	map = map_shared();
	touch(map);
	will_be(PAGE(3) + 77, source.bytes + 10, PAGE(2));
	pread_all(source.fd, map + PAGE(3) + 77, PAGE(2), 10);
	check();
}

/* From itself: who reads and who writes is the same, on the same page. */
static void map_to_itself(void)
{
	char *map;

	file_new();
	map = map_shared();
	touch(map);
	memcpy(file.got, file.model + PAGE(2), 1000);
	will_be(PAGE(2) + 2000, file.got, 1000);
	pwrite_all(file.fd, map + PAGE(2), 1000, PAGE(2) + 2000);
	memcpy(file.got, file.model + PAGE(7) + 10, PAGE(1));
	will_be(PAGE(9) + 20, file.got, PAGE(1));
	pwrite_all(file.fd, map + PAGE(7) + 10, PAGE(1), PAGE(9) + 20);
	check();
}

/* Writes to a private mapping are no writes to the file: its pages stay where they are. */
static char *private_map;

static void child_writes_private(void)
{
	private_map[PAGE(6) + 1] = 1;
	private_map[PAGE(8) + 1] = 1;
	if (private_map[PAGE(8)] != 7)
		fail("a private mapping has lost what was written to it");
}

static void map_private(void)
{
	file_new();
	private_map = map_file(PROT_READ | PROT_WRITE, MAP_PRIVATE);
	for (unsigned int page = 0; page < 4; page++)
		touch_page(private_map + PAGE(page));
	for (unsigned int page = 2; page < 10; page += 2)
		private_map[PAGE(page)] = 7;
	MUST(madvise(private_map + PAGE(11), PAGE(2), MADV_POPULATE_WRITE));
	wait_for(background(child_writes_private));
	for (unsigned int page = 2; page < 10; page += 2)
		if (private_map[PAGE(page)] != 7 || private_map[PAGE(page) + 1] !=
						    file.model[PAGE(page) + 1])
			fail("page %u of the private mapping is not what was written to it", page);
	file.others_stay = true;
	check();
}

/* Pipes */

static void make_pipe(int *ends)
{
	MUST(pipe(ends));
	MUST(fcntl(ends[0], F_SETPIPE_SZ, PAGE(PAGES)));
}

static void fill(int in, const char *bytes, size_t len)
{
	for (size_t done = 0; done < len;)
		done += MUST(write(in, bytes + done, len - done));
}

static void splice_all(int from, off_t *from_off, int to, off_t *to_off, size_t len)
{
	while (len) {
		ssize_t part = MUST(splice(from, from_off, to, to_off, len, 0));

		if (!part)
			fail("splice found nothing");
		len -= part;
	}
}

static void splice_written(void)
{
	size_t len = PAGE(2) + 300;
	off_t out = PAGE(4) + 123;
	int ends[2];

	file_new();
	make_pipe(ends);
	fill(ends[1], next_version(out, len), len);
	splice_all(ends[0], NULL, file.fd, &out, len);
	check();
}

/* The pages in the pipe are those of the page cache, lent ones, too. */
static void splice_from_file(void)
{
	off_t in = PAGE(1) + 10, out = PAGE(5) + 400;
	size_t len = PAGE(3);
	int ends[2];

	file_new();
	source_new();
	make_pipe(ends);
	will_be(out, source.bytes + in, len);
	splice_all(source.fd, &in, ends[1], NULL, len);
	splice_all(ends[0], NULL, file.fd, &out, len);
	check();
}

static void splice_within(void)
{
	off_t in = PAGE(2), out = PAGE(2) + 2000;
	int ends[2];

	file_new();
	file.held = true; /* by the pipe */
	make_pipe(ends);
	memcpy(file.got, file.model + in, 1000);
	will_be(out, file.got, 1000);
	splice_all(file.fd, &in, ends[1], NULL, 1000);
	splice_all(ends[0], NULL, file.fd, &out, 1000);
	in = PAGE(6);
	out = PAGE(10);
	memcpy(file.got, file.model + in, PAGE(2));
	will_be(out, file.got, PAGE(2));
	splice_all(file.fd, &in, ends[1], NULL, PAGE(2));
	splice_all(ends[0], NULL, file.fd, &out, PAGE(2));
	check();
}

static void tee_written(void)
{
	off_t out = PAGE(3) + 1, again = PAGE(11) + 2000;
	int ends[2], others[2];
	size_t len = 1500;

	file_new();
	make_pipe(ends);
	make_pipe(others);
	will_be(again, next_version(out, len), len);
	fill(ends[1], file.model + out, len);
	if (MUST(tee(ends[0], others[1], len, 0)) != (ssize_t)len)
		fail("tee was short");
	splice_all(ends[0], NULL, file.fd, &out, len);
	splice_all(others[0], NULL, file.fd, &again, len);
	check();
}

static void vmsplice_all(int fd, char *at, size_t len)
{
	while (len) {
		struct iovec iov = { .iov_base = at, .iov_len = len };
		ssize_t part = MUST(vmsplice(fd, &iov, 1, 0));

		if (!part)
			fail("vmsplice found nothing");
		at += part;
		len -= part;
	}
}

static void vmsplice_out(void)
{
	off_t out = PAGE(5) + 5;
	size_t len = PAGE(2);
	int ends[2];

	file_new();
	make_pipe(ends);
	memcpy(file.got, next_version(out, len), len);
	vmsplice_all(ends[1], file.got, len);
	splice_all(ends[0], NULL, file.fd, &out, len);
	check();
}

static void vmsplice_in(void)
{
	off_t off = PAGE(7) + 31;
	size_t len = PAGE(1) + 100;
	int ends[2];
	char *map;

	file_new();
	make_pipe(ends);
	map = map_shared();
	touch(map);
	fill(ends[1], next_version(off, len), len);
	vmsplice_all(ends[0], map + off, len);
	check();
}

/*
 * While a page waits in a pipe somebody writes to it. What comes out of the pipe may be what was
 * before, or what was written.
 */
static unsigned long told_dirty;	/* pages */

static bool is_dirty(const char *fields)
{
	const char *order = strstr(fields, " order=");

	told_dirty += order ? 1ul << atoi(order + strlen(" order=")) : 0;
	return order;
}

static void written_in_pipe(void)
{
	off_t in = PAGE(5);
	unsigned long slipped;
	int ends[2];
	char *map, *was;

	file_new();
	file.held = true; /* by the pipe */
	slipped = count_of("slipped");
	make_pipe(ends);
	map = map_shared();
	touch(map);
	was = page_buffer(PAGE(2));
	memcpy(was, file.model + in, PAGE(2));
	splice_all(file.fd, &in, ends[1], NULL, PAGE(1));
	vmsplice_all(ends[1], map + PAGE(6), PAGE(1));
	events_begin("rental");
	pwrite_all(file.fd, next_version(PAGE(5), PAGE(1)), PAGE(1), PAGE(5));
	write_map(map, PAGE(6), PAGE(1));
	events_end("rental");
	slipped = count_of("slipped") - slipped;
	events("rental_slipped", is_dirty);
	if (!slipped || told_dirty != slipped)
		fail("%lu pages became dirty, %lu were told", slipped, told_dirty);
	for (unsigned int page = 0; page < 2; page++) {
		for (ssize_t done = 0; done < PAGE(1);)
			done += MUST(read(ends[0], file.got + done, PAGE(1) - done));
		if (memcmp(file.got, was + PAGE(page), PAGE(1)))
			expect("from the pipe", PAGE(5 + page), file.got,
			       file.model + PAGE(5 + page), PAGE(1));
	}
	check();
}

/* Direct I/O and io_uring: pages of mappings in the hands of the block layer */

static int source_direct(void)
{
	source_new();
	return MUST(volume_file(&volume, "source", O_RDONLY | O_DIRECT));
}

static void read_direct_into_map(void)
{
	int direct;
	char *map;

	file_new();
	direct = source_direct();
	map = map_shared();
	touch(map);
	will_be(PAGE(3), source.bytes + PAGE(1), PAGE(2));
	pread_all(direct, map + PAGE(3), PAGE(2), PAGE(1));
	/* parts of pages */
	will_be(PAGE(8) + 512, source.bytes, PAGE(1));
	pread_all(direct, map + PAGE(8) + 512, PAGE(1), 0);
	check();
}

static void uring_read(void)
{
	int direct;
	char *map;

	file_new();
	direct = source_direct();
	ring_open();
	map = map_shared();
	touch(map);
	will_be(PAGE(4), source.bytes + PAGE(2), PAGE(2));
	ring_must(IORING_OP_READ, direct, map + PAGE(4), PAGE(2), PAGE(2));
	will_be(PAGE(9) + 9, source.bytes + 5, 3000);
	ring_must(IORING_OP_READ, source.fd, map + PAGE(9) + 9, 3000, 5);
	check();
}

/*
 * Fixed buffers are pinned for long and written to without a fault: where a filesystem has to
 * know of writes, pages of its files cannot be such. What a private mapping has instead can.
 */
static void uring_fixed_map(void)
{
	int direct;
	char *map;

	file_new();
	direct = source_direct();
	ring_open();
	map = map_shared();
	touch(map);
	if (!ring_register(map + PAGE(4), PAGE(2))) {
		mark(PAGE(4), PAGE(2));
		will_be(PAGE(4), source.bytes + PAGE(2), PAGE(2));
		ring_must(IORING_OP_READ_FIXED, direct, map + PAGE(4), PAGE(2), PAGE(2));
		ring_unregister();
	} else if (errno != EFAULT && errno != EOPNOTSUPP) {
		fail("a mapped file as fixed buffer: %s", strerror(errno));
	} else {
		diag("mapped pages of the file cannot be fixed buffers");
	}
	private_map = map_file(PROT_READ | PROT_WRITE, MAP_PRIVATE);
	touch(private_map);
	MUST(ring_register(private_map + PAGE(8), PAGE(2)));
	ring_must(IORING_OP_READ_FIXED, direct, private_map + PAGE(8), PAGE(2), 0);
	expect("the private mapping", 0, private_map + PAGE(8), source.bytes, PAGE(2));
	check();
}

static void uring_write_fixed(void)
{
	off_t off = PAGE(6) + 99;

	file_new();
	ring_open();
	MUST(ring_register(file.got, PAGE(4)));
	memcpy(file.got, next_version(off, PAGE(1)), PAGE(1));
	ring_must(IORING_OP_WRITE_FIXED, file.fd, file.got, PAGE(1), off);
	memcpy(file.got, next_version(PAGE(11), PAGE(2)), PAGE(2));
	ring_must(IORING_OP_WRITE, file.fd, file.got, PAGE(2), PAGE(11));
	check();
}

/* Another's memory */

static void child_waits(void)
{
	char byte = 0;

	touch(shared_map);
	touch(private_map);
	MUST(write(to_parent[1], &byte, 1));
	for (;;)
		pause();
}

/* With a shared and a private mapping of the file, at the addresses that this process knows */
static pid_t victim(void)
{
	char byte;
	pid_t pid;

	file_new();
	shared_map = map_shared();
	private_map = map_file(PROT_READ, MAP_PRIVATE);
	MUST(pipe(to_parent));
	pid = background(child_waits);
	MUST(read(to_parent[0], &byte, 1));
	return pid;
}

static void poke(pid_t pid, char *at, const char *bytes)
{
	long word;

	memcpy(&word, bytes, sizeof(word));
	MUST(ptrace(PTRACE_POKEDATA, pid, at, word));
}

static void ptraced(void)
{
	pid_t pid = victim();

	MUST(ptrace(PTRACE_ATTACH, pid, NULL, NULL));
	MUST(waitpid(pid, NULL, 0));
	poke(pid, shared_map + PAGE(3) + 64, next_version(PAGE(3) + 64, sizeof(long)));
	/* across two pages */
	poke(pid, shared_map + PAGE(6) - 4, next_version(PAGE(6) - 4, sizeof(long)));
	/* breakpoints are written like this: not to the file */
	poke(pid, private_map + PAGE(9) + 8, "breakpt");
	MUST(ptrace(PTRACE_DETACH, pid, NULL, NULL));
	stop(pid);
	check();
}

static void proc_mem(void)
{
	pid_t pid = victim();
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = MUST(open(path, O_RDWR | O_CLOEXEC));
	pwrite_all(fd, next_version(PAGE(4) + 2000, PAGE(2)), PAGE(2),
		   (off_t)(uintptr_t)(shared_map + PAGE(4) + 2000));
	stop(pid);
	check();
}

static void process_vm(void)
{
	off_t off = PAGE(2) + 300;
	struct iovec here = { .iov_len = PAGE(2) }, there = { .iov_len = PAGE(2) };
	pid_t pid = victim();
	ssize_t written;

	here.iov_base = (void *)next_version(off, PAGE(2));
	there.iov_base = shared_map + off;
	written = process_vm_writev(pid, &here, 1, &there, 1, 0);
	if (written < 0 && errno != EFAULT)
		skip("process_vm_writev (CONFIG_CROSS_MEMORY_ATTACH): %s", strerror(errno));
	if (written != PAGE(2))
		fail("process_vm_writev wrote %zd bytes: %s", written, strerror(errno));
	stop(pid);
	check();
}

/* Of the ways of userfaultfd the one that is for mappings of files. */
static void userfault(void)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_WP_ASYNC };
	struct uffdio_register area_of_map = { .mode = UFFDIO_REGISTER_MODE_WP };
	struct uffdio_writeprotect protect = { .mode = UFFDIO_WRITEPROTECT_MODE_WP };
	int fd;
	char *map;

	file_new();
	fd = syscall(SYS_userfaultfd, O_CLOEXEC);
	if (fd < 0)
		lack("userfaultfd", "userfaultfd: %s", strerror(errno));
	if (ioctl(fd, UFFDIO_API, &api))
		skip("no asynchronous write protection (CONFIG_PTE_MARKER_UFFD_WP)");
	map = map_shared();
	touch(map);
	area_of_map.range.start = (uintptr_t)map;
	area_of_map.range.len = PAGE(PAGES);
	protect.range = area_of_map.range;
	MUST(ioctl(fd, UFFDIO_REGISTER, &area_of_map));
	MUST(ioctl(fd, UFFDIO_WRITEPROTECT, &protect));
	write_map(map, PAGE(2) + 5, 800);
	pwrite_all(file.fd, next_version(PAGE(5) + 5, 800), 800, PAGE(5) + 5);
	write_map(map, PAGE(5) + 1000, 800);
	check();
}

/* The filesystem's own writes: parts of pages, where it has to keep the rest */

static void change_range(int mode, off_t off, size_t len)
{
	if (fallocate(file.fd, mode, off, len)) {
		if (errno == EOPNOTSUPP)
			skip("the filesystem has no such operation");
		fail("fallocate: %s", strerror(errno));
	}
}

/* Of the range what is not a whole page */
static void mark_edges(off_t off, size_t len)
{
	off_t end = off + len;

	if (off % PAGE(1))
		file.written[off / PAGE(1)] = true;
	if (end % PAGE(1))
		file.written[end / PAGE(1)] = true;
}

static void zero_parts(int mode)
{
	/* inside a page, across pages with odd edges, to the end of the file */
	const struct { off_t off; size_t len; } parts[] = {
		{ 100, 1000 }, { PAGE(2) - 5, PAGE(1) + 11 }, { PAGE(5) + 1023, PAGE(3) + 1001 },
		{ PAGE(12) + 1, SIZE - PAGE(12) - 1 },
	};

	file_new();
	for (unsigned int i = 0; i < ARRAY_SIZE(parts); i++) {
		if (i)
			lend();
		/* whole pages of the range are dropped, and those beside it may be */
		file.others_stay = false;
		change_range(mode | FALLOC_FL_KEEP_SIZE, parts[i].off, parts[i].len);
		memset(file.model + parts[i].off, 0, parts[i].len);
		mark_edges(parts[i].off, parts[i].len);
		check();
	}
}

static void punch_hole(void)
{
	zero_parts(FALLOC_FL_PUNCH_HOLE);
}

static void zero_range(void)
{
	zero_parts(FALLOC_FL_ZERO_RANGE);
}

static size_t block_size(void)
{
	struct statvfs vfs;

	MUST(fstatvfs(file.fd, &vfs));
	return vfs.f_bsize;
}

static void collapse_range(void)
{
	size_t block, len;
	off_t off;

	file_new();
	block = block_size();
	off = 3 * block;
	len = 5 * block;
	file.others_stay = false;
	change_range(FALLOC_FL_COLLAPSE_RANGE, off, len);
	memmove(file.model + off, file.model + off + len, SIZE - off - len);
	memset(file.model + SIZE - len, 0, len);
	file.size -= len;
	check();
}

static void insert_range(void)
{
	size_t block, len;
	off_t off;

	file_new();
	block = block_size();
	off = 5 * block;
	len = 3 * block;
	file.others_stay = false;
	change_range(FALLOC_FL_INSERT_RANGE, off, len);
	memmove(file.model + off + len, file.model + off, SIZE - off);
	memset(file.model + off, 0, len);
	file.size += len;
	check();
}

static void truncate_extend(void)
{
	/* inside a page off and on block boundaries, on a page boundary, nothing left */
	const off_t cuts[] = { PAGE(13) + 123, PAGE(11) + 1024, PAGE(9) + 3072, PAGE(7), 5, 0 };

	file_new();
	for (unsigned int i = 0; i < ARRAY_SIZE(cuts); i++) {
		if (i)
			lend();
		file.others_stay = false;
		MUST(ftruncate(file.fd, cuts[i]));
		memset(file.model + cuts[i], 0, file.size - cuts[i]);
		file.size = cuts[i];
		/* btrfs writes the page when the file grows again */
		if (cuts[i] % 1024 && strcmp(kind->volume.type, "btrfs"))
			mark_edges(cuts[i], 0);
		check_places();
		compare("after the cut");
		check_clean();
		MUST(ftruncate(file.fd, SIZE));
		file.size = SIZE;
		check();
	}
}

/* Behind the end of the file, in its last page: what is between is zeroed. */
static void write_behind_end(void)
{
	off_t off = SIZE + 500;

	file_new();
	pwrite_all(file.fd, next_version(off, 300), 300, off);
	check();
}

struct move_extent {
	u32 reserved, donor_fd;
	u64 orig_start, donor_start, len, moved_len;
};

struct btrfs_defrag_range {
	u64 start, len, flags;
	u32 extent_thresh, compress_type, unused[4];
};

#define EXT4_IOC_MOVE_EXT		_IOWR('f', 15, struct move_extent)
#define BTRFS_IOC_DEFRAG_RANGE		_IOW(0x94, 16, struct btrfs_defrag_range)
#define F2FS_IOC_GARBAGE_COLLECT	_IOW(0xf5, 6, u32)

static void move_blocks_ext4(void)
{
	u64 blocks = PAGE(PAGES - 1) / block_size();
	struct move_extent move = { .orig_start = blocks / 4, .donor_start = blocks / 4,
				    .len = blocks / 2 };

	source_new();
	move.donor_fd = source.fd;
	if (ioctl(file.fd, EXT4_IOC_MOVE_EXT, &move)) {
		if (errno == EOPNOTSUPP)
			skip("the filesystem has no such operation");
		fail("EXT4_IOC_MOVE_EXT: %s", strerror(errno));
	}
}

/* Shared blocks become the file's own by writing its pages, as they are. */
static void move_blocks_xfs(void)
{
	int fd = MUST(volume_file(&volume, "clone", O_RDWR | O_CREAT | O_TRUNC));

	MUST(ioctl(fd, FICLONE, file.fd));
	read_file();
	expect_lent(file.fd, PAGES);
	change_range(FALLOC_FL_UNSHARE_RANGE, 0, SIZE);
	mark(0, SIZE);
}

/* Pieces, of which the filesystem makes one by writing them again */
static void move_blocks_btrfs(void)
{
	struct btrfs_defrag_range range = { .len = -1ull };

	for (unsigned int page = 0; page < PAGES - 1; page += 2) {
		pwrite_all(file.fd, file.model + PAGE(page), PAGE(1), PAGE(page));
		MUST(fsync(file.fd));
	}
	lend();
	MUST(ioctl(file.fd, BTRFS_IOC_DEFRAG_RANGE, &range));
}

/* Its segments may have nothing to collect. */
static void move_blocks_f2fs(void)
{
	u32 sync = 1;

	if (ioctl(file.fd, F2FS_IOC_GARBAGE_COLLECT, &sync))
		diag("no garbage was collected: %s", strerror(errno));
}

static void blocks_moved(void)
{
	unsigned long replaced;

	file_new();
	replaced = count_of("replaced");
	if (!strcmp(kind->volume.type, "ext4"))
		move_blocks_ext4();
	else if (!strcmp(kind->volume.type, "xfs"))
		move_blocks_xfs();
	else if (!strcmp(kind->volume.type, "btrfs"))
		move_blocks_btrfs();
	else
		move_blocks_f2fs();
	diag("%lu pages were replaced", count_of("replaced") - replaced);
	file.others_stay = false;
	check();
}

/* Devices that lie on the file */

static void loop_device(void)
{
	struct volume loop = { .loop = -1 };
	int direct;

	file_new();
	snprintf(loop.image, sizeof(loop.image), "%.20s/file", volume.dir);
	loop_open(&loop, 0);
	need_volume(&loop);
	pwrite_all(loop.loop, next_version(PAGE(2) + 512, 1536), 1536, PAGE(2) + 512);
	MUST(fsync(loop.loop));
	direct = MUST(open(loop.dev, O_RDWR | O_DIRECT | O_CLOEXEC));
	memcpy(file.got, next_version(PAGE(7) + 1024, PAGE(1)), PAGE(1));
	pwrite_all(direct, file.got, PAGE(1), PAGE(7) + 1024);
	MUST(fsync(direct));
	/* the device writes whole pages, of which only a part was written to */
	mark(PAGE(2), PAGE(1));
	close(direct);
	close(loop.loop);
	check();
}

/* Swapping writes the blocks of the file behind the page cache, and no page of it. */
static void swap_file(void)
{
	char path[64], *map, *want;
	unsigned long out, slipped;
	int fd;

	one_list();
	need_volume(&volume);
	if (!strcmp(kind->volume.type, "btrfs"))
		skip("btrfs swaps only to files that it does not copy on write");
	begin("lazy");
	slipped = count_of("slipped");
	want = page_buffer(SWAP_FILE);
	fd = create("swap", want, SWAP_FILE);
	MUST(fchmod(fd, 0600));
	forget(fd);
	pread_all(fd, want, SWAP_FILE, 0);
	expect_lent(fd, pages_in(SWAP_FILE));
	snprintf(path, sizeof(path), "%s/swap", volume.dir);
	MUST(make_swap(path));
	MUST(fsync(fd));
	expect_clean();
	close(fd);
	if (swapon(path, 0))
		lack("swap", "swapon: %s", strerror(errno));
	map = page_buffer(SWAPPED);
	out = vm_event("pswpout");
	stamp(want, 0, SWAPPED, 3, 1);
	for (int round = 0; round < 3; round++) {
		memcpy(map, want, SWAPPED);
		MUST(madvise(map, SWAPPED, MADV_PAGEOUT));
		expect("swapped memory", 0, map, want, SWAPPED);
	}
	out = vm_event("pswpout") - out;
	MUST(swapoff(path));
	if (!out)
		fail("nothing was swapped out");
	expect_clean();
	if (count_of("slipped") != slipped)
		fail("%lu pages were found dirty in the area", count_of("slipped") - slipped);
	diag("%lu pages were swapped out", out);
}

/* Block devices: who reads and who evicts lends frames to pages of files, and never to theirs. */

#define DEVICE_BYTES	MIB(1)
#define DEVICE_PAGES	pages_in(DEVICE_BYTES)
#define RECLAIM_BYTES	MIB(12)	/* short lists are scanned when others gave too little */
#define RECLAIM_TRIES	30

static void expect_not_lent(int fd, const char *when)
{
	u64 *pfns = page_buffer(DEVICE_PAGES * sizeof(*pfns));

	find_pages(fd, pfns, DEVICE_PAGES);
	for (size_t i = 0; i < DEVICE_PAGES; i++) {
		if (!pfns[i])
			fail("%s: page %zu of the device is not in memory: nothing is tested",
			     when, i);
		if (in_area(pfns[i]))
			fail("%s: page %zu of the device is lent", when, i);
	}
	munmap(pfns, DEVICE_PAGES * sizeof(*pfns));
}

/* With readahead, and without */
static void read_device(int fd)
{
	static const struct {
		const char *name;
		int file, map;
	} advice[] = {
		{ "in order", POSIX_FADV_NORMAL, MADV_NORMAL },
		{ "at random", POSIX_FADV_RANDOM, MADV_RANDOM },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(advice); i++) {
		char *map;

		forget(fd);
		if (posix_fadvise(fd, 0, 0, advice[i].file))
			fail("posix_fadvise");
		file_check(fd, 4, DEVICE_BYTES);
		expect_not_lent(fd, advice[i].name);

		forget(fd);
		map = map_fd(fd, DEVICE_BYTES, PROT_READ);
		MUST(madvise(map, DEVICE_BYTES, advice[i].map));
		map_check(map, 4, DEVICE_BYTES);
		munmap(map, DEVICE_BYTES);
		expect_not_lent(fd, advice[i].name);
	}
}

/*
 * By reclaim for all, which would have a file's page in the area instead. The last pages that were
 * read may be on a list of their CPU, which is this one.
 */
static void evict_device(int fd)
{
	struct cachestat cs;

	for (int tries = 0;; tries++) {
		int ret;

		if (lent_pages(fd, DEVICE_PAGES))
			fail("%lu pages of the device are lent instead of evicted",
			     lent_pages(fd, DEVICE_PAGES));
		page_cache_state(fd, &cs);
		if (!cs.nr_cache)
			return;
		if (tries == RECLAIM_TRIES)
			fail("%llu pages of the device stay in the page cache",
			     (unsigned long long)cs.nr_cache);
		ret = write_file(CGROUP_ROOT "/memory.reclaim", "%zu", RECLAIM_BYTES);
		if (ret && ret != -EAGAIN)
			fail("memory.reclaim: %s", strerror(-ret));
	}
}

static void stamp_device(char *model, off_t off, size_t len)
{
	stamp(model + off, off, len, 4, 2);
}

static void compare_device(int fd, const char *model, const char *what)
{
	char *got = page_buffer(DEVICE_BYTES);

	pread_all(fd, got, DEVICE_BYTES, 0);
	expect(what, 0, got, model, DEVICE_BYTES);
	munmap(got, DEVICE_BYTES);
	expect_not_lent(fd, what);
}

/* Parts of blocks, several pages, and by a mapping */
static void write_device(int fd)
{
	char *model = page_buffer(DEVICE_BYTES), *map;

	stamp(model, 0, DEVICE_BYTES, 4, 1);
	for (size_t page = 0; page < DEVICE_PAGES; page += 3) {
		off_t off = PAGE(page) + 100 + page;

		stamp_device(model, off, 777);
		pwrite_all(fd, model + off, 777, off);
	}
	stamp_device(model, PAGE(40) - 5, PAGE(3));
	pwrite_all(fd, model + PAGE(40) - 5, PAGE(3), PAGE(40) - 5);
	stamp_device(model, PAGE(71) + 50, 2000);
	map = map_fd(fd, DEVICE_BYTES, PROT_READ | PROT_WRITE);
	memcpy(map + PAGE(71) + 50, model + PAGE(71) + 50, 2000);
	compare_device(fd, model, "after the write");
	expect("mapped", 0, map, model, DEVICE_BYTES);
	munmap(map, DEVICE_BYTES);
	forget(fd);
	compare_device(fd, model, "from the disk");
}

static void block_device(void)
{
	struct volume device = { .image = "/tmp/device", .loop = -1 };
	unsigned long slipped;
	int other, buffer;

	need_volume(&volume);
	loop_open(&device, DEVICE_BYTES);
	need_volume(&device);
	run_on(0);
	begin("lazy");
	slipped = count_of("slipped");
	file_written(device.loop, 4, DEVICE_BYTES);
	file_lent(&volume, "file", 1, DEVICE_BYTES); /* as a file is read now */
	read_device(device.loop);

	other = file_made(&volume, "other", 2, DEVICE_BYTES);
	drop_cached(1);
	/* so that what is read lies elsewhere */
	buffer = take_all();
	file_check(other, 2, DEVICE_BYTES);
	if (lent_pages(other, DEVICE_PAGES))
		fail("a primary has the area, and pages of the file lie there");
	file_check(device.loop, 4, DEVICE_BYTES);
	close(buffer);
	expect_not_lent(device.loop, "before reclaim");
	evict_device(device.loop);
	if (lent_pages(other, DEVICE_PAGES) < DEVICE_PAGES / 2)
		fail("of %zu pages of a file %lu are lent instead of evicted: nothing is tested",
		     DEVICE_PAGES, lent_pages(other, DEVICE_PAGES));

	file_check(device.loop, 4, DEVICE_BYTES);
	write_device(device.loop);
	file_check(other, 2, DEVICE_BYTES);
	if (count_of("slipped") != slipped)
		fail("%lu pages were found dirty in the area", count_of("slipped") - slipped);
	expect_clean();
}

static const struct test {
	void (*fn)(void);
	const char *name;
} tests[] = {
	{ write_parts, "write() of parts of pages" },
	{ write_whole, "write() of whole pages" },
	{ write_read_here, "write() after the page was read often" },
	{ write_read_elsewhere, "write() after the page was read often on another CPU" },
	{ write_across, "write() across pages" },
	{ append, "write() at the end of the file" },
	{ write_behind_end, "write() behind the end of the file" },
	{ write_gathered, "pwritev()" },
	{ write_direct, "a direct write" },
	{ copy_range, "copy_file_range()" },
	{ send_file, "sendfile()" },
	{ map_read_before, "a mapping that was read before" },
	{ map_at_once, "a mapping that was not read before" },
	{ map_two_processes, "mappings of two processes" },
	{ map_after_fork, "a mapping that was inherited" },
	{ map_watched, "one process while another has the pages mapped" },
	{ map_by_threads, "threads that are at the same page at the same moment" },
	{ map_made_writable, "a mapping that was made writable" },
	{ map_populated, "MADV_POPULATE_WRITE" },
	{ map_locked, "a mapping that is mlocked" },
	{ map_synced, "a mapping between msync() and fsync()" },
	{ map_private, "a private mapping, which is no write to the file" },
	{ map_to_itself, "write() from a mapping of the same page" },
	{ read_into_map, "read() into a mapping" },
	{ splice_written, "splice() from a pipe" },
	{ splice_from_file, "splice() of pages of another file" },
	{ splice_within, "splice() within the file" },
	{ tee_written, "tee()" },
	{ vmsplice_out, "vmsplice() to a pipe and splice() from there" },
	{ vmsplice_in, "vmsplice() from a pipe into a mapping" },
	{ written_in_pipe, "write() while the pages wait in a pipe" },
	{ read_direct_into_map, "a direct read into a mapping" },
	{ uring_read, "io_uring, reading into a mapping" },
	{ uring_fixed_map, "io_uring, with mappings as fixed buffers" },
	{ uring_write_fixed, "io_uring, writing from a fixed buffer" },
	{ ptraced, "PTRACE_POKEDATA" },
	{ proc_mem, "/proc/<pid>/mem" },
	{ process_vm, "process_vm_writev()" },
	{ userfault, "a mapping that userfaultfd protects" },
	{ punch_hole, "holes with odd edges" },
	{ zero_range, "zeroed ranges with odd edges" },
	{ collapse_range, "a range that collapses" },
	{ insert_range, "a range that is inserted" },
	{ truncate_extend, "truncations to odd sizes" },
	{ blocks_moved, "the filesystem, which moves blocks" },
	{ loop_device, "a loop device on the file" },
	{ swap_file, "swapping to the file" },
	{ write_nowait, "pwritev2() that must not wait" },
};

static bool is_run(unsigned int test, unsigned int k)
{
	/* in the short form on one that moves blocks, which ext4 with journaled data does not */
	return has_turn(tests[test].fn == blocks_moved ? test + 1 : test, k, nr_kinds);
}

int main(void)
{
	unsigned int nr = 1;

	for (unsigned int k = 0; k < nr_kinds; k++)
		for (unsigned int i = 0; i < ARRAY_SIZE(tests); i++)
			nr += is_run(i, k);
	start(nr);
	for (unsigned int k = 0; k < nr_kinds; k++) {
		kind = kinds + k;
		volume_open(&volume, &kind->volume);
		for (unsigned int i = 0; i < ARRAY_SIZE(tests); i++)
			if (is_run(i, k))
				run(tests[i].fn, NEED_NOTHING,
				    "%s: no lent page is written to by %s", kind->volume.name,
				    tests[i].name);
		if (!k)
			run(block_device, NEED_NOTHING,
			    "no page of a block device is lent: read, written or to be evicted");
		volume_close(&volume);
	}
	return finish();
}
