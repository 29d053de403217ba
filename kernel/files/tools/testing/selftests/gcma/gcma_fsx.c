// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random operations on one file against a model of it in memory, in the manner of fsx, while the
 * file's pages are reclaimed all the time.
 *
 *	gcma_fsx [-N operations] [-S seed] [-d directory | -t kind] [-f letters]
 *
 * Without -d every kind of volume is made and tested, or the one named with -t; read-only ones
 * with the reading operations only. -f chooses operations by the letters in ops[] below. A
 * failure prints the seed and the operations that led to it.
 */
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "../cma/cma_util.h"

#define FILE_MAX	KIB(128)	/* less than DATA_BYTES */
#define OP_MAX		KIB(16)
#define LOG_LEN		32

static struct {
	unsigned long ops;
	u64 seed;
	const char *dir;
	const char *kind;
	const char *letters;
} options;

/* Beyond size the model is zero, as the file is when it grows. */
static char *model, *buf;
static off_t size;

static struct volume volume;	/* unless options.dir */
static char path[256];
static int fd, direct;		/* direct: -1 where there is no O_DIRECT */
static bool readonly;
static size_t block;		/* of the filesystem */
static u64 rnd;
static unsigned long operations, done;	/* of this test */
static unsigned long refused;	/* direct transfers of this test */
static bool faults;		/* allocations of this test fail */

static struct {
	const char *name;
	off_t off, size;
	size_t len;
} history[LOG_LEN];

static void give_up(void)
{
	unsigned long first = done < LOG_LEN ? 0 : done - LOG_LEN + 1;

	for (unsigned long i = first; i <= done; i++)
		diag("%lu: %s 0x%llx + 0x%zx, size was 0x%llx", i, history[i % LOG_LEN].name,
		     (unsigned long long)history[i % LOG_LEN].off, history[i % LOG_LEN].len,
		     (unsigned long long)history[i % LOG_LEN].size);
	fail("seed %llu, operation %lu, file %s", (unsigned long long)options.seed, done, path);
}

/* A mapped page cannot be had. What this interrupts is a memory access. */
static void on_sigbus(int sig)
{
	struct stat st = {};

	(void)sig;
	fstat(fd, &st);
	diag("SIGBUS, size is 0x%llx and should be 0x%llx", (unsigned long long)st.st_size,
	     (unsigned long long)size);
	give_up();
}

static void check(const char *what, off_t off, const void *got, size_t len)
{
	if (differs(what, off, got, model + off, len))
		give_up();
}

static void check_count(const char *what, ssize_t got, size_t want)
{
	if (got == (ssize_t)want)
		return;
	diag("%s: %zd instead of %zu: %s", what, got, want, got < 0 ? strerror(errno) : "short");
	give_up();
}

static ssize_t transfer(bool write, char *at, size_t len, off_t off)
{
	if (faults)
		return transfer_failing(fd, write, at, len, off);
	return write ? pwrite(fd, at, len, off) : pread(fd, at, len, off);
}

static size_t align_down(size_t n, size_t to)
{
	return n / to * to;
}

static void open_file(void)
{
	int flags = (readonly ? O_RDONLY : O_RDWR) | O_CLOEXEC;

	fd = MUST(open(path, flags));
	direct = open(path, flags | O_DIRECT);
}

/*
 * The operations. Each is given a random range, of which it makes what it needs; history shows what
 * it was given. False: the filesystem does not have this operation.
 */
static struct {
	off_t off;
	size_t len;
} given;

static size_t inside(off_t *off, size_t len)
{
	if (!size)
		return 0;
	*off %= size;
	return MIN(len, (size_t)(size - *off));
}

static void grow(off_t end)
{
	if (end > size)
		size = end;
}

static void stamp_model(off_t off, size_t len)
{
	stamp(model + off, off, len, 1, done);
	grow(off + len);
}

static bool op_pread(void)
{
	off_t off = given.off;
	size_t len = given.len;
	size_t n = inside(&off, len);

	check_count("pread", transfer(false, buf, n, off), n);
	check("pread", off, buf, n);
	return true;
}

static bool op_read(void)
{
	off_t off = given.off;
	size_t len = given.len;
	size_t n = inside(&off, len);

	MUST(lseek(fd, off, SEEK_SET));
	if (faults)
		return op_pread();
	check_count("read", read(fd, buf, n), n);
	check("read", off, buf, n);
	return true;
}

static bool op_write(void)
{
	off_t off = given.off;
	size_t len = given.len;

	stamp_model(off, len);
	check_count("pwrite", transfer(true, model + off, len, off), len);
	return true;
}

static char *map(off_t off, size_t len, int prot)
{
	char *at = mmap(NULL, len, prot, MAP_SHARED, fd, off);

	if (at == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	return at;
}

/* Up to the end of the page: nothing but zeroes may lie behind the end of the file. */
static bool op_map_read(void)
{
	off_t off = given.off;
	size_t len = given.len;
	size_t n = inside(&off, len), to_page;
	char *at;

	if (!n)
		return true;
	n += off % page_size;
	off -= off % page_size;
	to_page = (n + page_size - 1) / page_size * page_size;
	at = map(off, n, PROT_READ);
	check("mapped read", off, at, to_page);
	munmap(at, n);
	return true;
}

static bool op_map_write(void)
{
	off_t off = given.off;
	size_t len = given.len;
	off_t start = off - off % page_size;
	size_t n = len + off % page_size;
	char *at;

	stamp_model(off, len);
	MUST(ftruncate(fd, size));
	at = map(start, n, PROT_READ | PROT_WRITE);
	memcpy(at + off % page_size, model + off, len);
	if (random_below(&rnd, 2))
		MUST(msync(at, n, MS_SYNC));
	munmap(at, n);
	return true;
}

static bool op_truncate(void)
{
	off_t off = given.off;

	if (off < size)
		memset(model + off, 0, size - off);
	size = off;
	MUST(ftruncate(fd, size));
	return true;
}

static bool allocate(int mode, off_t off, size_t len)
{
	if (!fallocate(fd, mode, off, len))
		return true;
	if (errno == EOPNOTSUPP)
		return false;
	diag("fallocate mode 0x%x: %s", mode, strerror(errno));
	give_up();
	return false;
}

static bool op_preallocate(void)
{
	off_t off = given.off;
	size_t len = given.len;
	bool keep = random_below(&rnd, 2);

	if (!allocate(keep ? FALLOC_FL_KEEP_SIZE : 0, off, len))
		return false;
	if (!keep)
		grow(off + len);
	return true;
}

static bool op_punch(void)
{
	off_t off = given.off;
	size_t len = given.len;
	size_t n = inside(&off, len);

	if (!n)
		return true;
	memset(model + off, 0, n);
	return allocate(FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off, n);
}

static bool op_zero(void)
{
	off_t off = given.off;
	size_t len = given.len;
	bool keep = random_below(&rnd, 2);

	if (!allocate(FALLOC_FL_ZERO_RANGE | (keep ? FALLOC_FL_KEEP_SIZE : 0), off, len))
		return false;
	memset(model + off, 0, len);
	if (!keep)
		grow(off + len);
	return true;
}

static bool op_collapse(void)
{
	off_t off = given.off;
	size_t len = given.len;

	off = align_down(off, block);
	len = align_down(len, block);
	if (!len || off + (off_t)len >= size)
		return true;
	if (!allocate(FALLOC_FL_COLLAPSE_RANGE, off, len))
		return false;
	memmove(model + off, model + off + len, size - off - len);
	memset(model + size - len, 0, len);
	size -= len;
	return true;
}

static bool op_insert(void)
{
	off_t off = given.off;
	size_t len = given.len;

	off = align_down(off, block);
	len = align_down(len, block);
	if (!len || off >= size || size + len > FILE_MAX)
		return true;
	if (!allocate(FALLOC_FL_INSERT_RANGE, off, len))
		return false;
	memmove(model + off + len, model + off, size - off);
	memset(model + off, 0, len);
	size += len;
	return true;
}

/* Half of the direct ranges are aligned to sectors only. */
static void align_direct(off_t *off, size_t *len)
{
	size_t to = random_below(&rnd, 2) ? 512 : page_size;

	*off = align_down(*off, to);
	*len = align_down(*len, to);
}

/*
 * XFS refuses direct I/O over a delayed allocation that has lost its dirty page ("Direct I/O
 * collision with buffered writes!"), with stock 6.12 too: go through the page cache then. That
 * is rare.
 */
static ssize_t direct_io(bool write, char *at, size_t len, off_t off)
{
	ssize_t ret = write ? pwrite(direct, at, len, off) : pread(direct, at, len, off);

	if (ret >= 0 || errno != EIO || !volume.kind || strcmp(volume.kind->type, "xfs") ||
	    ++refused > 1 + operations / 1000)
		return ret;
	return write ? pwrite(fd, at, len, off) : pread(fd, at, len, off);
}

static bool op_direct_read(void)
{
	off_t off = given.off;
	size_t len = given.len;
	ssize_t n;

	align_direct(&off, &len);
	if (!len || off >= size)
		return true;
	n = direct_io(false, buf, len, off);
	if (n < 0 && errno == EINVAL && readonly)
		return len % page_size;		/* sectors may be too fine, pages not */
	check_count("direct read", n, MIN(len, (size_t)(size - off)));
	check("direct read", off, buf, n);
	return true;
}

static bool op_direct_write(void)
{
	off_t off = given.off;
	size_t len = given.len;

	align_direct(&off, &len);
	if (!len)
		return true;
	stamp_model(off, len);
	memcpy(buf, model + off, len);
	check_count("direct write", direct_io(true, buf, len, off), len);
	return true;
}

static bool op_clone(void)
{
	off_t off = given.off;
	size_t len = given.len;
	struct file_clone_range range = { .src_fd = fd };
	off_t to = align_down(random_below(&rnd, FILE_MAX - OP_MAX), block);

	off = align_down(off, block);
	len = align_down(len, block);
	if (!len || off + (off_t)len > size || (off < to + (off_t)len && to < off + (off_t)len))
		return true;
	range.src_offset = off;
	range.src_length = len;
	range.dest_offset = to;
	if (ioctl(fd, FICLONERANGE, &range)) {
		if (errno == EOPNOTSUPP || errno == ENOTTY)
			return false;
		diag("clone to 0x%llx: %s", (unsigned long long)to, strerror(errno));
		give_up();
	}
	memcpy(model + to, model + off, len);
	grow(to + len);
	return true;
}

static bool op_sync(void)
{
	off_t off = given.off;
	size_t len = given.len;

	if (random_below(&rnd, 2))
		MUST(fsync(fd));
	else
		MUST(sync_file_range(fd, off, len,
				     SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
					     SYNC_FILE_RANGE_WAIT_AFTER));
	return true;
}

static bool op_advise(void)
{
	off_t off = given.off;
	size_t len = given.len;
	static const int advice[] = {
		POSIX_FADV_NORMAL, POSIX_FADV_RANDOM, POSIX_FADV_SEQUENTIAL, POSIX_FADV_WILLNEED,
		POSIX_FADV_DONTNEED,
	};

	posix_fadvise(fd, off, len, advice[random_below(&rnd, ARRAY_SIZE(advice))]);
	return true;
}

static bool op_reopen(void)
{
	close(fd);
	if (direct >= 0)
		close(direct);
	open_file();
	return true;
}

static bool op_drop(void)
{
	if (!random_below(&rnd, 32))
		drop_cached(1 + random_below(&rnd, 3));
	return true;
}

static bool op_evict(void)
{
	struct cachestat cs;

	if (!readonly)
		MUST(syncfs(fd));
	page_cache_state(fd, &cs);
	push_out(random_below(&rnd, cs.nr_cache + 1) * page_size);
	return true;
}

static struct op {
	char letter;
	const char *name;
	bool (*fn)(void);
	unsigned int weight;
	bool writes;
	bool missing;
} ops[] = {
	{ 'r', "read", op_read, .weight = 10 },
	{ 'r', "pread", op_pread, .weight = 10 },
	{ 'w', "write", op_write, .weight = 14, .writes = true },
	{ 'm', "mapped read", op_map_read, .weight = 10 },
	{ 'm', "mapped write", op_map_write, .weight = 7, .writes = true },
	{ 't', "truncate", op_truncate, .weight = 3, .writes = true },
	{ 'p', "preallocate", op_preallocate, .weight = 2, .writes = true },
	{ 'h', "punch hole", op_punch, .weight = 5, .writes = true },
	{ 'z', "zero range", op_zero, .weight = 4, .writes = true },
	{ 'c', "collapse range", op_collapse, .weight = 3, .writes = true },
	{ 'i', "insert range", op_insert, .weight = 3, .writes = true },
	{ 'd', "direct read", op_direct_read, .weight = 5 },
	{ 'd', "direct write", op_direct_write, .weight = 8, .writes = true },
	{ 'k', "clone range", op_clone, .weight = 5, .writes = true },
	{ 's', "sync", op_sync, .weight = 3, .writes = true },
	{ 'a', "advise", op_advise, .weight = 2 },
	{ 'o', "close and open", op_reopen, .weight = 1 },
	{ 'x', "drop caches", op_drop, .weight = 1 },
	{ 'e', "evict", op_evict, .weight = 5 },
};

static struct op *choose(void)
{
	for (;;) {
		unsigned int total = 0, at;
		struct op *op;

		for (op = ops; op < ops + ARRAY_SIZE(ops); op++)
			total += op->weight;
		at = random_below(&rnd, total);
		for (op = ops; at >= op->weight; op++)
			at -= op->weight;
		if (!op->missing && !(readonly && op->writes) &&
		    strchr(options.letters, op->letter))
			return op;
	}
}

static void step(void)
{
	struct op *op = choose();
	size_t limit = readonly ? DATA_BYTES : FILE_MAX;
	struct stat st;
	bool found;

	given.off = random_below(&rnd, limit);
	given.len = 1 + random_below(&rnd, MIN(OP_MAX, limit - given.off));

	history[done % LOG_LEN].name = op->name;
	history[done % LOG_LEN].off = given.off;
	history[done % LOG_LEN].len = given.len;
	history[done % LOG_LEN].size = size;
	found = op->fn();
	if (!found) {
		op->missing = true;
		diag("no %s here", op->name);
	}
	MUST(fstat(fd, &st));
	if (st.st_size != size) {
		diag("size is 0x%llx instead of 0x%llx", (unsigned long long)st.st_size,
		     (unsigned long long)size);
		give_up();
	}
}

static void check_whole(const char *what)
{
	pread_all(fd, buf, size, 0);
	check(what, 0, buf, size);
}

static void begin(const struct volume *v)
{
	struct statvfs vfs;

	readonly = v && v->kind->readonly;
	snprintf(path, sizeof(path), "%s/%s", v ? v->dir : options.dir,
		 readonly ? "data" : "gcma_fsx.data");
	model = page_buffer(DATA_BYTES);
	buf = page_buffer(DATA_BYTES);
	if (readonly) {
		size = DATA_BYTES;
		stamp(model, 0, DATA_BYTES, 1, 1);
	} else {
		close(MUST(open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)));
	}
	open_file();
	MUST(fstatvfs(fd, &vfs));
	block = vfs.f_bsize;
	for (struct op *op = ops; op < ops + ARRAY_SIZE(ops); op++)
		op->missing = op->letter == 'd' && direct < 0;
	rnd = options.seed;
}

static struct rented {
	unsigned long lends, slipped, held, no_memory;
} rented_so_far(void)
{
	return (struct rented){
		.lends = vm_event("rental_lends"),
		.slipped = vm_event("rental_slipped"),
		.held = vm_event("rental_held"),
		.no_memory = vm_event("rental_no_memory"),
	};
}

/* A page that becomes dirty where it is lent has a cause that is counted. */
static void check_rented(const struct volume *v, const struct rented *before)
{
	struct rented now = rented_so_far();
	unsigned long lends = now.lends - before->lends, slipped = now.slipped - before->slipped;
	unsigned long held = now.held - before->held;
	unsigned long no_memory = now.no_memory - before->no_memory;

	diag("%lu pages were lent, %lu became dirty there, %lu held, %lu without memory", lends,
	     slipped, held, no_memory);
	if (!lends && !options.dir)
		fail("no page was lent: nothing was tested");
	if (slipped > dirtied_at_most(v, held + no_memory))
		fail("%lu pages became dirty in the area, and %lu had a reason to stay", slipped,
		     held + no_memory);
}

static void fsx(void)
{
	struct volume *v = options.dir ? NULL : &volume;
	unsigned long stores = counter("stores"), loads = counter("loads");
	bool rental = areas_have("policy", "rental");
	struct rented rented = {};
	pid_t reclaimer;

	if (v)
		need_volume(v);
	signal(SIGBUS, on_sigbus);
	begin(v);
	if (rental)
		rented = rented_so_far();
	reclaimer = reclaim_all_the_time();
	for (done = 0; done < operations; done++)
		step();
	done--;
	stop(reclaimer);

	check_whole("whole file");
	evict(fd);
	check_whole("whole file after eviction");
	close(fd);
	if (direct >= 0)
		close(direct);
	if (v) {
		volume_umount(v);
		MUST(volume_mount(v) ? 0 : -1);
		open_file();
		check_whole("whole file after umount and mount");
	}
	stores = counter("stores") - stores;
	loads = counter("loads") - loads;
	diag("seed %llu: %lu operations, %lu stores, %lu loads, %lu direct transfers refused",
	     (unsigned long long)options.seed, operations, stores, loads, refused);
	if (rental)
		check_rented(v, &rented);
}

static bool may_lack_memory(const struct volume_kind *kind)
{
	return !options.kind && !kind->readonly && !kind->variant;
}

static void fsx_without_memory(void)
{
	if (!prepare_faults())
		lack("faults",
		     "this kernel injects no faults (CONFIG_FAILSLAB, CONFIG_FAIL_PAGE_ALLOC)");
	faults = true;
	fsx();
}

static void parse(int argc, char **argv)
{
	int c;

	options.ops = soaking() ? 1000000 : short_form() ? 500 : 2500;
	options.seed = soaking() ? now_ns() : 1;
	options.letters = "rwmtphzcidksaoxe";
	while ((c = getopt(argc, argv, "N:S:d:t:f:")) != -1) {
		if (c == 'N')
			options.ops = strtoul(optarg, NULL, 0);
		else if (c == 'S')
			options.seed = strtoull(optarg, NULL, 0);
		else if (c == 'd')
			options.dir = optarg;
		else if (c == 't')
			options.kind = optarg;
		else if (c == 'f')
			options.letters = optarg;
		else
			exit(EXIT_FAILURE);
	}
}

int main(int argc, char **argv)
{
	const char *test = "%s: the file is its model after %lu random operations";
	unsigned int tests = nr_volume_kinds;

	parse(argc, argv);
	for (unsigned int i = 0; i < nr_volume_kinds; i++)
		tests += may_lack_memory(&volume_kinds[i]);
	start(options.dir || options.kind ? 1 : tests);
	operations = options.ops;
	if (options.dir)
		run(fsx, NEED_NOTHING, test, options.dir, operations);
	for (const struct volume_kind *kind = volume_kinds;
	     !options.dir && kind < volume_kinds + nr_volume_kinds; kind++) {
		if (options.kind && strcmp(options.kind, kind->name))
			continue;
		if (!options.kind && kind->variant)
			operations = options.ops / 5;
		else
			operations = options.ops;
		volume_open(&volume, kind);
		run(fsx, NEED_LOADS, test, kind->name, operations);
		if (may_lack_memory(kind)) {
			operations = options.ops / 5;
			run(fsx_without_memory, NEED_LOADS,
			    "%s: the same after %lu while allocations fail", kind->name,
			    operations);
		}
		volume_close(&volume);
	}
	return finish();
}
