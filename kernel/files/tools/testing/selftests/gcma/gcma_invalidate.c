// SPDX-License-Identifier: GPL-2.0-only
/*
 * What changes the content of a file behind the page cache also ends the tenants that reclaim
 * left there.
 *
 * Every test evicts a file, which on a gcma area makes tenants of its pages, then changes it,
 * and compares it with a model. The order follows the audit in Documentation/mm/gcma.rst: direct
 * I/O, block devices, readers of shadow entries, mappings that are refused, invalidation,
 * truncation, swap, encryption. Points that user space cannot reach (races inside a transition,
 * quarantine, hot-remove) are tested by KUnit.
 */
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <linux/fscrypt.h>
#include <linux/loop.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../cma/cma_ring.h"
#include "../cma/cma_util.h"

#ifndef BLOCK_URING_CMD_DISCARD /* linux/blkdev.h, since 6.12 */
#define BLOCK_URING_CMD_DISCARD	_IO(0x12, 0)
#endif

#define PAGES		16
#define BYTES		(PAGES * page_size)
#define BYTES_MAX	(4 * BYTES)
#define ACTIVE_BYTES	(64 * BYTES)
#define FLUSH_BYTES	MIB(4)
#define FLUSH_ROUNDS	16

static struct volume volume;

/* A file and what should be in it; beyond size the model is zero. */
struct subject {
	char name[32];
	unsigned int id;
	int fd;
	char *model, *got;
	off_t size;
};

static void subject_evict(struct subject *s)
{
	evict_to_area(s->fd);
}

static void subject_create(struct subject *s, unsigned int id)
{
	snprintf(s->name, sizeof(s->name), "subject%u", id);
	s->id = id;
	s->size = BYTES;
	s->model = page_buffer(BYTES_MAX);
	s->got = page_buffer(BYTES_MAX);
	s->fd = MUST(volume_file(&volume, s->name, O_RDWR | O_CREAT | O_TRUNC));
	stamp(s->model, 0, s->size, id, 1);
	/* folios of order 0 */
	for (off_t off = 0; off < s->size; off += page_size)
		pwrite_all(s->fd, s->model + off, page_size, off);
	subject_evict(s);
}

static void subject_new(struct subject *s, unsigned int id)
{
	need_volume(&volume);
	subject_create(s, id);
}

static void subject_stamp(struct subject *s, off_t off, size_t len, unsigned int version)
{
	stamp(s->model + off, off, len, s->id, version);
	if ((off_t)(off + len) > s->size)
		s->size = off + len;
}

static void subject_resize(struct subject *s, off_t size)
{
	if (size < s->size)
		memset(s->model + size, 0, s->size - size);
	s->size = size;
}

static int subject_direct(struct subject *s)
{
	return MUST(volume_file(&volume, s->name, O_RDWR | O_DIRECT));
}

static void subject_read(struct subject *s, const char *what)
{
	pread_all(s->fd, s->got, s->size, 0);
	expect(what, 0, s->got, s->model, s->size);
}

/* By read, by mmap up to the end of the last page, and both again after another eviction. */
static void subject_compare(struct subject *s, const char *what)
{
	size_t mapped = (s->size + page_size - 1) / page_size * page_size;
	char *map;

	subject_read(s, what);
	if (!s->size)
		return;
	map = mmap(NULL, mapped, PROT_READ, MAP_SHARED, s->fd, 0);
	if (map == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	expect(what, 0, map, s->model, mapped);
	munmap(map, mapped);
}

static void subject_check(struct subject *s)
{
	struct stat st;

	MUST(fstat(s->fd, &st));
	if (st.st_size != s->size)
		fail("the size is %lld instead of %lld", (long long)st.st_size, (long long)s->size);
	subject_compare(s, "after the change");
	evict(s->fd);
	subject_compare(s, "after another eviction");
}

/* The next read of the whole file comes from the disk. */
static void subject_must_read_disk(struct subject *s)
{
	unsigned long loads = counter("loads"), disk = disk_reads(&volume);

	subject_read(s, "read");
	disk = disk_reads(&volume) - disk;
	loads = counter("loads") - loads;
	if (disk < (unsigned long)s->size || loads >= PAGES)
		fail("of %lld bytes %lu came from the disk; %lu pages were loaded",
		     (long long)s->size, disk, loads);
}

/* Direct I/O */

static void direct_write(void)
{
	off_t off = 3 * page_size;
	struct subject s;
	int direct;

	subject_new(&s, 1);
	direct = subject_direct(&s);
	subject_stamp(&s, off, 5 * page_size, 2);
	memcpy(s.got, s.model + off, 5 * page_size);
	pwrite_all(direct, s.got, 5 * page_size, off);
	subject_check(&s);
}

/* Sectors smaller than the page: the rest of the page stays. */
static void direct_write_sectors(void)
{
	off_t off = 2 * page_size + 512;
	struct subject s;
	int direct;

	subject_new(&s, 2);
	direct = subject_direct(&s);
	subject_stamp(&s, off, 1536, 2);
	memcpy(s.got, s.model + off, 1536);
	pwrite_all(direct, s.got, 1536, off);
	subject_check(&s);
}

static void direct_append(void)
{
	struct subject s;
	int direct;

	subject_new(&s, 3);
	direct = subject_direct(&s);
	subject_stamp(&s, BYTES, 2 * page_size, 2);
	memcpy(s.got, s.model + BYTES, 2 * page_size);
	pwrite_all(direct, s.got, 2 * page_size, BYTES);
	subject_check(&s);
}

/* All of it, past the page cache, and wait for the end */
static void subject_write_async(struct subject *s)
{
	struct iocb iocb = { 0 }, *iocbs = &iocb;
	aio_context_t context = 0;
	struct io_event event;

	if (syscall(SYS_io_setup, 1, &context))
		lack("aio", "io_setup: %s", strerror(errno));
	subject_stamp(s, 0, BYTES, 2);
	memcpy(s->got, s->model, BYTES);
	iocb.aio_lio_opcode = IOCB_CMD_PWRITE;
	iocb.aio_fildes = subject_direct(s);
	iocb.aio_buf = (uintptr_t)s->got;
	iocb.aio_nbytes = BYTES;
	MUST(syscall(SYS_io_submit, context, 1, &iocbs));
	MUST(syscall(SYS_io_getevents, context, 1, 1, &event, NULL));
	if (event.res != (long long)BYTES)
		fail("the write returned %lld", (long long)event.res);
	close(iocb.aio_fildes);
}

static void async_direct_write(void)
{
	struct subject s;

	subject_new(&s, 4);
	subject_write_async(&s);
	subject_check(&s);
}

/* Buffered and mapped writes: the part of the page that is not written is loaded. */

static void small_write(void)
{
	struct subject s;

	subject_new(&s, 5);
	for (unsigned int page = 0; page < PAGES; page += 3) {
		off_t off = page * page_size + 100 + page;

		subject_stamp(&s, off, 777, 2);
		pwrite_all(s.fd, s.model + off, 777, off);
	}
	subject_check(&s);
}

static void append(void)
{
	struct subject s;

	subject_new(&s, 6);
	MUST(ftruncate(s.fd, 3 * page_size + 10));
	subject_resize(&s, 3 * page_size + 10);
	for (int round = 2; round < 6; round++) {
		off_t end = s.size;

		evict(s.fd);
		subject_stamp(&s, end, 1111, round);
		pwrite_all(s.fd, s.model + end, 1111, end);
		subject_check(&s);
	}
}

static void mapped_write(void)
{
	struct subject s;
	char *map;

	subject_new(&s, 7);
	map = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, s.fd, 0);
	if (map == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	for (unsigned int page = 1; page < PAGES; page += 2) {
		off_t off = page * page_size + 50;

		subject_stamp(&s, off, 2000, 2);
		memcpy(map + off, s.model + off, 2000);
	}
	munmap(map, BYTES);
	subject_check(&s);
}

/* Truncation */

static void truncate_extend(void)
{
	/* inside a page off and on block boundaries, on a page boundary, nothing left */
	const off_t cuts[] = { 13 * page_size + 123, 11 * page_size + 1024, 9 * page_size + 3072,
			       7 * page_size, 5, 0 };
	struct subject s;

	subject_new(&s, 8);
	for (unsigned int i = 0; i < ARRAY_SIZE(cuts); i++) {
		subject_evict(&s);
		MUST(ftruncate(s.fd, cuts[i]));
		subject_resize(&s, cuts[i]);
		MUST(ftruncate(s.fd, BYTES));
		subject_resize(&s, BYTES);
		subject_check(&s);
	}
}

static void truncate_write_behind(void)
{
	off_t cut = 4 * page_size + 10, off = 9 * page_size + 2000;
	struct subject s;

	subject_new(&s, 9);
	MUST(ftruncate(s.fd, cut));
	subject_resize(&s, cut);
	subject_stamp(&s, off, 500, 2);
	pwrite_all(s.fd, s.model + off, 500, off);
	subject_check(&s);
}

static void open_truncates(void)
{
	struct subject s;

	subject_new(&s, 10);
	close(MUST(volume_file(&volume, s.name, O_WRONLY | O_TRUNC)));
	MUST(ftruncate(s.fd, BYTES));
	memset(s.model, 0, BYTES);
	subject_check(&s);
}

/* Ranges of a file */

static void change_range(struct subject *s, int mode, off_t off, size_t len)
{
	if (fallocate(s->fd, mode, off, len)) {
		if (errno == EOPNOTSUPP)
			skip("the filesystem has no such operation");
		fail("fallocate: %s", strerror(errno));
	}
}

static void zero_parts(int mode, unsigned int id)
{
	/* inside a page, across pages with odd edges, blocks of 1 KiB, whole pages */
	const struct { off_t off; size_t len; } parts[] = {
		{ 100, 1000 }, { 2 * page_size - 5, page_size + 11 },
		{ 5 * page_size + 1024, page_size + 1024 }, { 8 * page_size, 3 * page_size },
	};
	struct subject s;

	subject_new(&s, id);
	for (unsigned int i = 0; i < ARRAY_SIZE(parts); i++) {
		subject_evict(&s);
		change_range(&s, mode | FALLOC_FL_KEEP_SIZE, parts[i].off, parts[i].len);
		memset(s.model + parts[i].off, 0, parts[i].len);
		subject_check(&s);
	}
}

static void punch_hole(void)
{
	zero_parts(FALLOC_FL_PUNCH_HOLE, 11);
}

static void zero_range(void)
{
	zero_parts(FALLOC_FL_ZERO_RANGE, 12);
}

static size_t block_size(int fd)
{
	struct statvfs vfs;

	MUST(fstatvfs(fd, &vfs));
	return vfs.f_bsize;
}

static void collapse_range(void)
{
	struct subject s;
	size_t len;
	off_t off;

	subject_new(&s, 13);
	len = 3 * block_size(s.fd);
	off = 2 * block_size(s.fd);
	change_range(&s, FALLOC_FL_COLLAPSE_RANGE, off, len);
	memmove(s.model + off, s.model + off + len, BYTES - off - len);
	subject_resize(&s, BYTES - len);
	subject_check(&s);
}

static void insert_range(void)
{
	struct subject s;
	size_t len;
	off_t off;

	subject_new(&s, 14);
	len = 3 * block_size(s.fd);
	off = 5 * block_size(s.fd);
	change_range(&s, FALLOC_FL_INSERT_RANGE, off, len);
	memmove(s.model + off + len, s.model + off, BYTES - off);
	memset(s.model + off, 0, len);
	s.size += len;
	subject_check(&s);
}

/* Shared and exchanged blocks */

static void clone_over(void)
{
	struct file_clone_range range = { 0 };
	struct subject from, to;

	subject_new(&from, 15);
	subject_create(&to, 16);
	range.src_fd = from.fd;
	range.src_offset = 2 * page_size;
	range.src_length = 6 * page_size;
	range.dest_offset = 4 * page_size;
	if (ioctl(to.fd, FICLONERANGE, &range)) {
		if (errno == EOPNOTSUPP || errno == ENOTTY)
			skip("the filesystem has no such operation");
		fail("FICLONERANGE: %s", strerror(errno));
	}
	memcpy(to.model + range.dest_offset, from.model + range.src_offset, range.src_length);
	subject_check(&to);
	subject_check(&from);

	/* Copy on write of what is shared, both sides evicted */
	subject_stamp(&from, 3 * page_size + 7, page_size, 2);
	pwrite_all(from.fd, from.model + 3 * page_size + 7, page_size, 3 * page_size + 7);
	subject_check(&from);
	subject_check(&to);
}

static void dedupe(void)
{
	char space[sizeof(struct file_dedupe_range) +
		   sizeof(struct file_dedupe_range_info)] = { 0 };
	struct file_dedupe_range *range = (void *)space;
	struct subject from, to;

	subject_new(&from, 17);
	subject_create(&to, 18);
	/* the same bytes in both, then evicted */
	memcpy(to.model + 4 * page_size, from.model + 4 * page_size, 4 * page_size);
	pwrite_all(to.fd, to.model + 4 * page_size, 4 * page_size, 4 * page_size);
	evict(to.fd);
	range->src_offset = 4 * page_size;
	range->src_length = 8 * page_size;
	range->dest_count = 1;
	range->info[0].dest_fd = to.fd;
	range->info[0].dest_offset = 4 * page_size;
	if (ioctl(from.fd, FIDEDUPERANGE, range)) {
		if (errno == EOPNOTSUPP || errno == ENOTTY)
			skip("the filesystem has no such operation");
		fail("FIDEDUPERANGE: %s", strerror(errno));
	}
	if (range->info[0].status != FILE_DEDUPE_RANGE_DIFFERS)
		fail("ranges that differ were found equal (%d)", range->info[0].status);
	evict(to.fd);
	range->src_length = 4 * page_size;
	MUST(ioctl(from.fd, FIDEDUPERANGE, range));
	if (range->info[0].status)
		fail("ranges that are equal were not deduplicated (%d)", range->info[0].status);
	subject_check(&to);
	subject_check(&from);
}

static void copy_range(void)
{
	loff_t in = page_size + 100, out = 3 * page_size + 500;
	size_t len = 7 * page_size + 33;
	struct subject from, to;

	subject_new(&from, 19);
	subject_create(&to, 20);
	memcpy(to.model + out, from.model + in, len);
	while (len)
		len -= MUST(copy_file_range(from.fd, &in, to.fd, &out, len, 0));
	subject_check(&to);
	subject_check(&from);
}

struct move_extent {
	u32 reserved, donor_fd;
	u64 orig_start, donor_start, len, moved_len;
};

struct f2fs_move_range {
	u32 dst_fd;
	u64 pos_in, pos_out, len;
};

#define EXT4_IOC_MOVE_EXT	_IOWR('f', 15, struct move_extent)
#define F2FS_IOC_MOVE_RANGE	_IOWR(0xf5, 9, struct f2fs_move_range)

/* Each filesystem has its own way to give a file the blocks of another. */
static void exchange_ext4(struct subject *a, struct subject *b)
{
	size_t blocks = BYTES / block_size(a->fd);
	struct move_extent move = { .donor_fd = b->fd, .orig_start = blocks / 4,
				    .donor_start = blocks / 4, .len = blocks / 2 };

	MUST(ioctl(a->fd, EXT4_IOC_MOVE_EXT, &move));
	/*
	 * The content goes with the blocks: a looks the same. Of what b has then nothing is
	 * promised, but its own blocks are gone, and its pages were not resident.
	 */
	subject_check(a);
	pread_all(b->fd, b->got, BYTES, 0);
	for (size_t at = BYTES / 4; at < BYTES / 4 * 3; at += page_size)
		if (!memcmp(b->got + at, b->model + at, page_size))
			fail("the donor still has what it had at 0x%zx", at);
}

static void exchange_xfs(struct subject *a, struct subject *b)
{
	char *model = a->model;

	if (shell("xfs_io -c 'swapext %s/%s' %s/%s", volume.dir, b->name, volume.dir, a->name))
		lack("xfs", "xfs_io swapext does not work here");
	a->model = b->model;
	b->model = model;
	subject_check(a);
	subject_check(b);
}

static void exchange_f2fs(struct subject *a, struct subject *b)
{
	struct f2fs_move_range move = { .dst_fd = b->fd, .pos_in = 2 * page_size,
					.pos_out = 4 * page_size, .len = 6 * page_size };

	/* Blocks that no checkpoint knows yet change hands, others are copied. */
	stamp(a->model, 0, BYTES, a->id, 2);
	pwrite_all(a->fd, a->model, BYTES, 0);
	MUST(fsync(a->fd));
	MUST(ioctl(a->fd, F2FS_IOC_MOVE_RANGE, &move));
	memcpy(b->model + move.pos_out, a->model + move.pos_in, move.len);
	/* of the source nothing is promised */
	subject_check(b);
}

static void exchange(void)
{
	struct subject a, b;

	subject_new(&a, 21);
	subject_create(&b, 22);
	if (!strcmp(volume.kind->type, "ext4"))
		exchange_ext4(&a, &b);
	else if (!strcmp(volume.kind->type, "xfs"))
		exchange_xfs(&a, &b);
	else
		exchange_f2fs(&a, &b);
}

/* Inodes and mounts */

static void unlink_reuse(void)
{
	unsigned int reused = 0;
	char path[128];

	need_volume(&volume);
	for (int round = 0; round < 8; round++) {
		struct subject s;
		struct stat before, after;

		subject_create(&s, 23);
		MUST(fstat(s.fd, &before));
		close(s.fd);
		snprintf(path, sizeof(path), "%s/%s", volume.dir, s.name);
		MUST(unlink(path));
		s.fd = MUST(volume_file(&volume, s.name, O_RDWR | O_CREAT | O_EXCL));
		MUST(ftruncate(s.fd, BYTES));
		MUST(fstat(s.fd, &after));
		reused += before.st_ino == after.st_ino;
		memset(s.model, 0, BYTES);
		subject_check(&s);
		close(s.fd);
		MUST(unlink(path));
	}
	diag("%u of 8 inode numbers were reused", reused);
}

static void closed_and_reopened(void)
{
	struct subject s;

	subject_new(&s, 24);
	close(s.fd);
	push_out(MIB(1));
	drop_cached(2);
	s.fd = MUST(volume_file(&volume, s.name, O_RDWR));
	subject_check(&s);
}

static void changed_while_unmounted(void)
{
	struct subject s;
	off_t at;

	subject_new(&s, 25);
	at = data_offset(s.fd, BYTES);
	subject_read(&s, "before");
	subject_evict(&s);
	close(s.fd);
	volume_umount(&volume);
	subject_stamp(&s, page_size, 5 * page_size, 2);
	pwrite_all(volume.loop, s.model + page_size, 5 * page_size, at + page_size);
	MUST(fsync(volume.loop));
	MUST(volume_mount(&volume) ? 0 : -1);
	s.fd = MUST(volume_file(&volume, s.name, O_RDWR));
	subject_check(&s);
}

#define SMALL_FILES	500

static int small_file(unsigned int i, int flags)
{
	char name[32];

	snprintf(name, sizeof(name), "small%u", i);
	return MUST(volume_file(&volume, name, flags));
}

static void small_stamp(char *buf, unsigned int i)
{
	stamp(buf, 0, 100 + i, 1000 + i, 1);
}

static void small_files_create(void)
{
	char want[1000];

	for (unsigned int i = 0; i < SMALL_FILES; i++) {
		int fd = small_file(i, O_RDWR | O_CREAT | O_TRUNC);

		small_stamp(want, i);
		pwrite_all(fd, want, 100 + i, 0);
		close(fd);
	}
	sync();
}

static void small_files_check(void)
{
	char want[1000], got[1000];

	for (unsigned int i = 0; i < SMALL_FILES; i++) {
		int fd = small_file(i, O_RDONLY);

		small_stamp(want, i);
		pread_all(fd, got, 100 + i, 0);
		expect("small file", 0, got, want, 100 + i);
		close(fd);
	}
}

/*
 * Inodes whose mappings hold nothing but tenants, some of them less than a block, inline where
 * there is such a thing. Reclaim takes inodes too, and with them what they have, unless they are
 * open.
 */
static void small_files(void)
{
	int fds[SMALL_FILES];

	need_volume(&volume);
	small_files_create();
	/* What was written may be uptodate in part: read from the disk it is as a whole. */
	drop_cached(1);
	small_files_check();
	for (unsigned int i = 0; i < SMALL_FILES; i++)
		fds[i] = small_file(i, O_RDONLY);
	push_out(MIB(4));
	for (unsigned int i = 0; i < SMALL_FILES; i++)
		close(fds[i]);
	small_files_check();
	for (int round = 0; round < 2; round++) {
		push_out(MIB(4));
		drop_cached(2);
		small_files_check();
	}
}

/* Asking and telling the page cache */

/* A node of the page cache that has nothing but evicted pages goes, and copies with it. */
static void dropped_nodes(void)
{
	unsigned long dropped = counter("dropped");
	struct subject s;

	subject_new(&s, 42);
	shrink_nodes(vm_event("workingset_nodes") + PAGES);
	dropped = counter("dropped") - dropped;
	if (dropped < PAGES)
		fail("%lu of %u copies were dropped", dropped, PAGES);
	subject_must_read_disk(&s);
}

static void dropped_caches(void)
{
	struct subject s;

	subject_new(&s, 26);
	drop_cached(1);
	subject_must_read_disk(&s);
}

static void dropped_pages(void)
{
	struct subject s;

	subject_new(&s, 27);
	subject_read(&s, "before");
	drop_cached(1);
	subject_must_read_disk(&s);
}

static void advised_away(void)
{
	struct subject s;

	subject_new(&s, 28);
	if (posix_fadvise(s.fd, 0, 0, POSIX_FADV_DONTNEED))
		fail("posix_fadvise");
	subject_must_read_disk(&s);
}

static void advised_pages(void)
{
	struct subject s;

	subject_new(&s, 29);
	subject_read(&s, "before");
	if (posix_fadvise(s.fd, 0, 0, POSIX_FADV_DONTNEED))
		fail("posix_fadvise");
	subject_must_read_disk(&s);
}

static void cachestat_counts(void)
{
	struct cachestat cs;
	struct subject s;

	subject_new(&s, 30);
	page_cache_state(s.fd, &cs);
	if (cs.nr_cache || cs.nr_dirty || cs.nr_writeback)
		fail("an evicted file has %llu pages in the cache",
		     (unsigned long long)cs.nr_cache);
	if (cs.nr_evicted != PAGES || cs.nr_recently_evicted > cs.nr_evicted)
		fail("of %zu evicted pages %llu are told evicted, %llu recently", PAGES * (size_t)1,
		     (unsigned long long)cs.nr_evicted, (unsigned long long)cs.nr_recently_evicted);
	subject_read(&s, "read");
	page_cache_state(s.fd, &cs);
	if (cs.nr_cache != PAGES || cs.nr_evicted || cs.nr_recently_evicted)
		fail("of %u resident pages %llu are told cached, %llu evicted", PAGES,
		     (unsigned long long)cs.nr_cache, (unsigned long long)cs.nr_evicted);
}

static void read_until_active(const char *name, char *buf, size_t bytes)
{
	int fd = MUST(volume_file(&volume, name, O_RDWR | O_CREAT | O_TRUNC));

	for (size_t off = 0; off < bytes; off += page_size)
		pwrite_all(fd, buf + off, page_size, off);
	MUST(fsync(fd));
	for (int reads = 0; reads < 4; reads++)
		pread_all(fd, buf, bytes, 0);
	close(fd);
}

/*
 * With more active pages than were evicted since, a page evicted last is one of the working set.
 * The eviction may have to take the active pages too: then again.
 */
static void cachestat_recent(void)
{
	struct cachestat cs;
	struct subject s;
	char *buf;

	need_volume(&volume);
	if (multi_gen())
		skip("recent is what the oldest generation lost, and which that is, is chance");
	buf = page_buffer(ACTIVE_BYTES);
	for (int tries = 0; tries < 10; tries++) {
		read_until_active("active", buf, ACTIVE_BYTES);
		subject_new(&s, 38);
		flush_statistics();
		page_cache_state(s.fd, &cs);
		if (cs.nr_recently_evicted == PAGES)
			return;
		close(s.fd);
	}
	fail("of %u pages evicted just now %llu are told evicted, %llu recently", PAGES,
	     (unsigned long long)cs.nr_evicted, (unsigned long long)cs.nr_recently_evicted);
}

static unsigned int resident(char *map)
{
	unsigned char in_core[PAGES];
	unsigned int count = 0;

	MUST(mincore(map, BYTES, in_core));
	for (unsigned int i = 0; i < PAGES; i++)
		count += in_core[i] & 1;
	return count;
}

static void mincore_and_readahead(void)
{
	struct subject s;
	char *map;

	subject_new(&s, 31);
	map = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, s.fd, 0);
	if (map == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	if (resident(map))
		fail("%u evicted pages are told resident", resident(map));
	MUST(readahead(s.fd, 0, BYTES));
	expect("mapped", 0, map, s.model, BYTES);
	if (resident(map) != PAGES)
		fail("of %u pages read %u are told resident", PAGES, resident(map));
}

static void refaults_count(void)
{
	unsigned long before;
	struct subject s;

	subject_new(&s, 32);
	before = vm_event("workingset_refault_file");
	subject_read(&s, "read");
	before = vm_event("workingset_refault_file") - before;
	if (before < PAGES)
		fail("%u pages came back and %lu refaults were counted", PAGES, before);
}

/* Tenants have shadows of the LRU that evicted them: there, and back. */
static void lru_switched(void)
{
	bool generations = multi_gen();
	struct subject s;

	subject_new(&s, 39);
	for (int turn = 1; turn <= 2; turn++) {
		generations = !generations;
		if (write_file("/sys/kernel/mm/lru_gen/enabled", generations ? "y" : "n"))
			lack("generations", "there is no other LRU");
		subject_read(&s, "under the other LRU");
		subject_evict(&s);
	}
	subject_read(&s, "back again");
}

/* Block devices */

static void device_new(struct subject *s, unsigned int id)
{
	volume = (struct volume){ .image = "/tmp/device", .loop = -1 };
	unlink(volume.image);
	loop_open(&volume, MIB(4));
	need_volume(&volume);
	snprintf(volume.dir, sizeof(volume.dir), "/dev");
	snprintf(s->name, sizeof(s->name), "%.16s", volume.dev + strlen("/dev/"));
	s->id = id;
	s->size = BYTES;
	s->fd = volume.loop;
	s->model = page_buffer(BYTES_MAX);
	s->got = page_buffer(BYTES_MAX);
	stamp(s->model, 0, s->size, id, 1);
	pwrite_all(s->fd, s->model, s->size, 0);
	evict(s->fd);
	subject_read(s, "before");
	evict(s->fd);
}

static void device_check(struct subject *s)
{
	subject_read(s, "after the change");
	evict(s->fd);
	subject_read(s, "after another eviction");
}

static void device_direct_write(void)
{
	struct subject s;

	device_new(&s, 33);
	subject_stamp(&s, 2 * page_size, 3 * page_size, 2);
	memcpy(s.got, s.model + 2 * page_size, 3 * page_size);
	pwrite_all(subject_direct(&s), s.got, 3 * page_size, 2 * page_size);
	device_check(&s);
	/* and goes to the area as before */
	subject_evict(&s);
}

/* Some of @s was read in and is evicted: by now no page of its device may be kept. */
static void device_keeps_nothing(struct subject *s)
{
	unsigned long disk;

	subject_read(s, "after the change");
	evict(s->fd);
	disk = disk_reads(&volume);
	subject_read(s, "after another eviction");
	disk = disk_reads(&volume) - disk;
	if (disk < (unsigned long)s->size)
		fail("of %lld bytes %lu came from the device", (long long)s->size, disk);
}

/* Nobody would tell that what is read meanwhile is of before. */
static void device_async_write(void)
{
	struct subject s;

	device_new(&s, 41);
	subject_write_async(&s);
	device_keeps_nothing(&s);
}

static void device_async_discard(void)
{
	u64 range[2] = { 2 * page_size, 4 * page_size };
	struct io_uring_sqe sqe = {
		.opcode = IORING_OP_URING_CMD, .cmd_op = BLOCK_URING_CMD_DISCARD,
		.addr = range[0], .addr3 = range[1],
	};
	struct subject s;
	int result;

	device_new(&s, 42);
	ring_open();
	sqe.fd = s.fd;
	result = ring_do(&sqe);
	if (result)
		fail("a discard by io_uring returned %d", result);
	memset(s.model + range[0], 0, range[1]);
	device_keeps_nothing(&s);
}

/* When nobody has it open any more, nothing is on its way to it either. */
static void device_opened_anew(void)
{
	struct loop_info64 info;
	unsigned long disk;
	struct subject s;

	device_new(&s, 43);
	subject_write_async(&s);
	/* it would go with its last close */
	MUST(ioctl(s.fd, LOOP_GET_STATUS64, &info));
	info.lo_flags &= ~LO_FLAGS_AUTOCLEAR;
	MUST(ioctl(s.fd, LOOP_SET_STATUS64, &info));
	close(s.fd);
	s.fd = MUST(open(volume.dev, O_RDWR | O_CLOEXEC));
	volume.loop = s.fd;
	info.lo_flags |= LO_FLAGS_AUTOCLEAR;
	MUST(ioctl(s.fd, LOOP_SET_STATUS64, &info));
	subject_read(&s, "after the change");
	evict_to_area(s.fd);
	disk = disk_reads(&volume);
	subject_read(&s, "after another eviction");
	disk = disk_reads(&volume) - disk;
	if (disk)
		fail("%lu bytes came from the device", disk);
}

static void device_small_write(void)
{
	struct subject s;

	device_new(&s, 34);
	subject_stamp(&s, 3 * page_size + 99, 700, 2);
	pwrite_all(s.fd, s.model + 3 * page_size + 99, 700, 3 * page_size + 99);
	device_check(&s);
}

static void device_discard(void)
{
	u64 range[2] = { 2 * page_size, 4 * page_size };
	struct subject s;

	device_new(&s, 35);
	/* a loop device on tmpfs reads zeroes where it was discarded */
	MUST(ioctl(s.fd, BLKDISCARD, range));
	memset(s.model + range[0], 0, range[1]);
	device_check(&s);
}

static void device_zeroout(void)
{
	u64 range[2] = { 5 * page_size, 3 * page_size };
	struct subject s;

	device_new(&s, 36);
	MUST(ioctl(s.fd, BLKZEROOUT, range));
	memset(s.model + range[0], 0, range[1]);
	device_check(&s);
}

static void device_fallocate(void)
{
	struct subject s;

	device_new(&s, 37);
	change_range(&s, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, page_size, 2 * page_size);
	memset(s.model + page_size, 0, 2 * page_size);
	device_check(&s);
}

/*
 * The medium changes behind the block layer: what BLKFLSBUF and the loop driver's ioctls are
 * for.
 */
static void image_stamp(struct subject *s, const char *image, off_t at)
{
	int fd = MUST(open(image, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));

	subject_stamp(s, 0, BYTES, 2);
	pwrite_all(fd, s->model, BYTES, at);
	MUST(ftruncate(fd, MIB(4)));
	close(fd);
}

static void device_flush(void)
{
	struct subject s;

	device_new(&s, 38);
	image_stamp(&s, volume.image, 0);
	MUST(ioctl(s.fd, BLKFLSBUF, 0));
	device_check(&s);
}

static struct {
	atomic_int step; /* 1: the reader is there; 2: and begins */
} *flush;

static void load_half(void)
{
	int fd = MUST(open(volume.dev, O_RDONLY | O_CLOEXEC));
	char *got = page_buffer(page_size);

	run_on(1);
	MUST(posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM));
	flush->step = 1;
	while (flush->step != 2)
		;
	for (size_t at = FLUSH_BYTES / 2; at < FLUSH_BYTES; at += page_size)
		pread_all(fd, got, page_size, at);
}

/*
 * Others load pages amid BLKFLSBUF, which are on their way to an LRU list of another CPU then.
 * Only the page that the reader is at stays, as without an area: if its CPU stands still long
 * enough, it is in use from before the tenants are dropped until all is done.
 */
static void device_flush_amid(void)
{
	char *before = page_buffer(FLUSH_BYTES), *want = page_buffer(FLUSH_BYTES);
	char *got = page_buffer(FLUSH_BYTES);
	unsigned int amid = 0, used = 0;
	unsigned long loads;
	struct subject s;
	pid_t pid = -1;
	int fd, image;

	/* the reader's, then its own */
	run_on(1);
	run_on(0);
	device_new(&s, 41);
	fd = s.fd;
	image = MUST(open(volume.image, O_WRONLY | O_CLOEXEC));
	flush = mmap(NULL, page_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (flush == MAP_FAILED)
		fail("no memory: %s", strerror(errno));
	for (unsigned int round = 1; round <= FLUSH_ROUNDS; round++) {
		size_t at;

		memcpy(before, want, FLUSH_BYTES);
		stamp(want, 0, FLUSH_BYTES, 41, round);
		pwrite_all(image, want, FLUSH_BYTES, 0);
		loads = counter("loads");
		if (round > 1)
			flush->step = 2;
		MUST(ioctl(fd, BLKFLSBUF, 0));
		if (round > 1)
			MUST(waitpid(pid, NULL, 0));
		loads = counter("loads") - loads;
		amid += loads && loads < FLUSH_BYTES / page_size / 2;
		pread_all(fd, got, FLUSH_BYTES, 0);
		at = FLUSH_BYTES / 2;
		while (round > 1 && at < FLUSH_BYTES && !memcmp(got + at, want + at, page_size))
			at += page_size;
		if (round > 1 && at < FLUSH_BYTES && !memcmp(got + at, before + at, page_size)) {
			used++;
			memcpy(got + at, want + at, page_size);
		}
		expect("the device", 0, got, want, FLUSH_BYTES);
		/* nobody uses it now, and nothing of it was kept */
		MUST(ioctl(fd, BLKFLSBUF, 0));
		pread_all(fd, got, FLUSH_BYTES, 0);
		expect("the device without readers", 0, got, want, FLUSH_BYTES);
		evict(fd);
		flush->step = 0;
		pid = background(load_half);
		while (!flush->step)
			usleep(1000);
	}
	flush->step = 2;
	MUST(waitpid(pid, NULL, 0));
	printf("# pages were loaded amid %u of %u invalidations, of %u one was in use\n", amid,
	       FLUSH_ROUNDS - 1, used);
	if (!amid)
		fail("no invalidation met a load: nothing is tested");
	if (used > FLUSH_ROUNDS / 2)
		fail("that is too often to be chance");
}

static void loop_offset(void)
{
	struct loop_info64 info;
	struct subject s;

	device_new(&s, 39);
	image_stamp(&s, volume.image, MIB(1));
	MUST(ioctl(s.fd, LOOP_GET_STATUS64, &info));
	info.lo_offset = MIB(1);
	MUST(ioctl(s.fd, LOOP_SET_STATUS64, &info));
	device_check(&s);
}

static void loop_other_image(void)
{
	struct subject s;
	int image;

	device_new(&s, 40);
	image_stamp(&s, "/tmp/other", 0);
	/* the device is cleared at its last close */
	MUST(ioctl(s.fd, LOOP_CLR_FD));
	close(s.fd);
	s.fd = MUST(open(volume.dev, O_RDWR | O_CLOEXEC));
	image = MUST(open("/tmp/other", O_RDWR | O_CLOEXEC));
	MUST(ioctl(s.fd, LOOP_SET_FD, image));
	device_check(&s);
	ioctl(s.fd, LOOP_CLR_FD);
}

/* Mappings that must not have tenants */

static void refused(struct subject *s, const char *what)
{
	unsigned long loads, disk;

	subject_read(s, "before");
	evict(s->fd);
	loads = counter("loads");
	disk = disk_reads(&volume);
	subject_read(s, what);
	if (disk_reads(&volume) - disk < (unsigned long)s->size ||
	    counter("loads") - loads >= PAGES)
		fail("%s came back from the area", what);
}

static void subject_create_plain(struct subject *s, const char *name, unsigned int id)
{
	snprintf(s->name, sizeof(s->name), "%s", name);
	s->id = id;
	s->size = BYTES;
	s->model = page_buffer(BYTES_MAX);
	s->got = page_buffer(BYTES_MAX);
	stamp(s->model, 0, BYTES, id, 1);
	s->fd = MUST(volume_file(&volume, name, O_RDWR | O_CREAT | O_TRUNC));
	pwrite_all(s->fd, s->model, BYTES, 0);
	evict(s->fd);
}

static const struct volume_kind btrfs = {
	.name = "btrfs", .type = "btrfs", .mkfs = "mkfs.btrfs -q -f -M %s",
};

static void refused_btrfs(void)
{
	struct subject s;

	volume_open(&volume, &btrfs);
	need_volume(&volume);
	subject_create_plain(&s, "file", 41);
	refused(&s, "a page of btrfs");
}

/* Mount point, then a directory that is encrypted with a key of our own */
static int encrypted_directory(struct fscrypt_remove_key_arg *remove)
{
	char space[sizeof(struct fscrypt_add_key_arg) + FSCRYPT_MAX_KEY_SIZE] = { 0 };
	struct fscrypt_add_key_arg *add = (void *)space;
	struct fscrypt_policy_v2 policy = {
		.version = FSCRYPT_POLICY_V2,
		.contents_encryption_mode = FSCRYPT_MODE_AES_256_XTS,
		.filenames_encryption_mode = FSCRYPT_MODE_AES_256_CTS,
		.flags = FSCRYPT_POLICY_FLAGS_PAD_32,
	};
	char path[64];
	int root, dir;

	root = MUST(open(volume.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	add->key_spec.type = FSCRYPT_KEY_SPEC_TYPE_IDENTIFIER;
	add->raw_size = FSCRYPT_MAX_KEY_SIZE;
	for (int i = 0; i < FSCRYPT_MAX_KEY_SIZE; i++)
		add->raw[i] = i * 7;
	if (ioctl(root, FS_IOC_ADD_ENCRYPTION_KEY, add))
		lack("encryption", "no encryption: %s", strerror(errno));
	memcpy(policy.master_key_identifier, add->key_spec.u.identifier,
	       FSCRYPT_KEY_IDENTIFIER_SIZE);
	remove->key_spec = add->key_spec;
	snprintf(path, sizeof(path), "%s/secret", volume.dir);
	MUST(mkdir(path, 0700));
	dir = MUST(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	if (ioctl(dir, FS_IOC_SET_ENCRYPTION_POLICY, &policy))
		lack("encryption", "no encryption: %s", strerror(errno));
	close(dir);
	return root;
}

static void refused_encrypted(void)
{
	struct fscrypt_remove_key_arg remove = { 0 };
	struct subject s;
	int root;

	volume_open(&volume, &volume_kinds[0]);
	need_volume(&volume);
	root = encrypted_directory(&remove);
	subject_create_plain(&s, "secret/file", 42);
	refused(&s, "a page of an encrypted file");
	close(s.fd);
	MUST(ioctl(root, FS_IOC_REMOVE_ENCRYPTION_KEY, &remove));
	if (volume_file(&volume, s.name, O_RDONLY) >= 0)
		fail("the file can be opened without its key");
}

/*
 * Swap: pushed out by MADV_PAGEOUT, back by touching. Pages that wait in the list of a CPU to
 * go on the LRU are not pushed out, and MADV_PAGEOUT empties the list of its own CPU only.
 */
static void swap_and_compare(const char *device, char *map, size_t bytes)
{
	unsigned long out = vm_event("pswpout"), stores = counter("stores");
	char *want = page_buffer(bytes);

	run_on(0);
	stamp(want, 0, bytes, 43, 1);
	memcpy(map, want, bytes);
	for (int round = 0; round < 3; round++) {
		MUST(madvise(map, bytes, MADV_PAGEOUT));
		expect("swapped memory", 0, map, want, bytes);
	}
	out = vm_event("pswpout") - out;
	stores = counter("stores") - stores;
	MUST(swapoff(device));
	if (out < bytes / page_size)
		fail("only %lu pages were swapped out", out);
	diag("%lu pages swapped out, %lu pages stored", out, stores);
}

static void swap_file(void)
{
	size_t bytes = MIB(1);
	char *map, path[64];
	struct subject s;

	need_volume(&volume);
	subject_new(&s, 44);
	subject_resize(&s, BYTES);
	for (off_t off = BYTES; off < (off_t)(4 * bytes); off += page_size)
		pwrite_all(s.fd, s.model, page_size, off);
	snprintf(path, sizeof(path), "%s/%s", volume.dir, s.name);
	MUST(fchmod(s.fd, 0600));
	MUST(make_swap(path));
	evict(s.fd);
	close(s.fd);
	if (swapon(path, 0))
		lack("swap", "swapon: %s", strerror(errno));
	map = page_buffer(bytes);
	swap_and_compare(path, map, bytes);
}

static void swapped_tmpfs(void)
{
	size_t bytes = MIB(2);
	char *map;
	int fd;

	if (write_file("/sys/block/zram0/disksize", "%zu", 4 * bytes))
		lack("zram", "no zram to swap to");
	MUST(make_swap("/dev/zram0"));
	MUST(swapon("/dev/zram0", 0));
	mkdir("/tmp/swappable", 0700);
	MUST(mount("tmpfs", "/tmp/swappable", "tmpfs", 0, NULL));
	fd = MUST(open("/tmp/swappable/file", O_RDWR | O_CREAT | O_CLOEXEC, 0600));
	MUST(ftruncate(fd, bytes));
	map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	swap_and_compare("/dev/zram0", map, bytes);
	write_file("/sys/block/zram0/reset", "1");
}

struct test {
	void (*fn)(void);
	const char *name;
};

static const struct test on_volumes[] = {
	{ direct_write, "a direct write to evicted pages is read next" },
	{ direct_write_sectors, "a direct write of sectors keeps the rest of an evicted page" },
	{ direct_append, "a direct write behind the end of an evicted file appends" },
	{ async_direct_write, "an async direct write to evicted pages is read next" },
	{ small_write, "a small write keeps the rest of an evicted page" },
	{ append, "appending to an evicted last page keeps what it held" },
	{ mapped_write, "writes through mmap to pages that came back reach the file" },
	{ truncate_extend, "an evicted file that is cut and extended is zero behind the cut" },
	{ truncate_write_behind, "a write far behind the cut leaves zeroes in between" },
	{ open_truncates, "nothing of an evicted file comes back after O_TRUNC" },
	{ punch_hole, "holes punched into evicted pages read zero" },
	{ zero_range, "ranges of evicted pages that were zeroed read zero" },
	{ collapse_range, "collapsing a range moves the evicted pages behind it" },
	{ insert_range, "inserting a range moves the evicted pages behind it" },
	{ clone_over, "a clone over evicted pages replaces them" },
	{ dedupe, "deduplication compares and shares evicted pages rightly" },
	{ copy_range, "copying into evicted pages replaces them" },
	{ exchange, "exchanging blocks of evicted files exchanges what is read" },
	{ unlink_reuse, "a new file with a reused inode has nothing of the evicted one" },
	{ closed_and_reopened, "a file that was evicted, closed and dropped reads the same" },
	{ changed_while_unmounted, "what changed while it was unmounted is read then" },
	{ small_files, "hundreds of evicted small files keep their content" },
	{ dropped_pages, "pages dropped by drop_caches do not go to the area" },
	{ advised_pages, "pages dropped by POSIX_FADV_DONTNEED do not go to the area" },
	{ cachestat_counts, "cachestat counts evicted pages as evicted" },
	{ mincore_and_readahead, "mincore sees evicted pages only after readahead" },
	{ refaults_count, "evicted pages that come back count as refaults" },
	{ swap_file, "a swap file whose pages were evicted swaps rightly" },
	{ lru_switched, "pages that were evicted by another LRU keep their content" },
};

/* Nothing is to be loaded. */
static const struct test on_volumes_dropped[] = {
	{ dropped_nodes, "what the shrinker of nodes drops is dropped from the area too" },
	{ dropped_caches, "drop_caches drops evicted pages from the area too" },
	{ advised_away, "POSIX_FADV_DONTNEED drops evicted pages from the area too" },
	{ cachestat_recent, "cachestat knows pages of the working set that were evicted" },
};

static const struct test on_devices[] = {
	{ device_direct_write, "a direct write to evicted pages is read next" },
	{ device_async_write, "of a device that is written to asynchronously nothing is kept" },
	{ device_async_discard, "of a device that is discarded asynchronously nothing is kept" },
	{ device_opened_anew, "of a device that was closed since pages are kept again" },
	{ device_small_write, "a small write keeps the rest of an evicted page" },
	{ device_discard, "discarded evicted pages read zero" },
	{ device_zeroout, "evicted pages that were zeroed out read zero" },
	{ device_fallocate, "a hole punched into evicted pages reads zero" },
	{ device_flush, "after BLKFLSBUF a changed medium is read anew" },
	{ device_flush_amid, "and what others load meanwhile is not what it was" },
	{ loop_offset, "a loop device with another offset is read anew" },
	{ loop_other_image, "a loop device with another image is read anew" },
};

/* Nothing is to be stored. */
static const struct test without_tenants[] = {
	{ refused_btrfs, "a filesystem without one block device has no tenants" },
	{ refused_encrypted, "an encrypted file has no tenants" },
	{ swapped_tmpfs, "a tmpfs file that was swapped out keeps its content" },
};

static void run_all(const struct test *tests, unsigned int number, enum need need,
		    const char *where)
{
	for (unsigned int i = 0; i < number; i++)
		run(tests[i].fn, need, "%s%s%s", where, *where ? ": " : "", tests[i].name);
}

/* The tests on a kind of filesystem: how many, or, if @go, what becomes of them */
static unsigned int volume_tests(unsigned int k, unsigned int kinds, bool go)
{
	unsigned int nr = 0, at = 0;

	for (unsigned int i = 0; i < ARRAY_SIZE(on_volumes); i++) {
		if (!has_turn(at++, k, kinds))
			continue;
		nr++;
		if (go)
			run_all(on_volumes + i, 1, NEED_LOADS, volume_kinds[k].name);
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(on_volumes_dropped); i++) {
		if (!has_turn(at++, k, kinds))
			continue;
		nr++;
		if (go)
			run_all(on_volumes_dropped + i, 1, NEED_STORES, volume_kinds[k].name);
	}
	return nr;
}

int main(void)
{
	unsigned int kinds = 0, nr = 0;

	while (kinds < nr_volume_kinds && !volume_kinds[kinds].readonly)
		kinds++;
	for (unsigned int k = 0; k < kinds; k++)
		nr += volume_tests(k, kinds, false);
	start(nr + ARRAY_SIZE(on_devices) + ARRAY_SIZE(without_tenants));
	for (unsigned int k = 0; k < kinds; k++) {
		volume_open(&volume, &volume_kinds[k]);
		volume_tests(k, kinds, true);
		volume_close(&volume);
	}
	run_all(on_devices, ARRAY_SIZE(on_devices), NEED_LOADS, "block device");
	run_all(without_tenants, ARRAY_SIZE(without_tenants), NEED_NOTHING, "");
	return finish();
}
