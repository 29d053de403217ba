// SPDX-License-Identifier: GPL-2.0-only
/*
 * An allocation does not fail while there is a free run, whoever holds references to pages.
 *
 *	gcma_pins [-N allocations]
 *
 * Pages of files and of anonymous memory wait in pipes (splice, vmsplice), each with a reference
 * that nobody gives back on demand: on a movable area they end up in the area and cannot be
 * migrated. Long-term pins would prove nothing, they migrate away from the area first.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../cma/cma_util.h"

#define HOLDERS		2
#define PIPES		32
#define PIPE_PAGES	128
#define FULL_SECONDS	120	/* until memory is full, on a slow machine */
#define MOVABLE_SECONDS	20	/* a movable area may take long to fail */

static unsigned int allocations;
static struct volume volume;
static struct area area;
static size_t file_bytes;

struct pipe {
	int in, out;
};

/* Take a few pages out, so that the references move all the time. */
static void drain(struct pipe *pipe, char *buf, size_t bytes)
{
	ssize_t part;

	while (bytes && (part = read(pipe->out, buf, MIN(bytes, KIB(64)))) > 0)
		bytes -= part;
}

static void fill_from_file(struct pipe *pipe, int fd, u64 *rnd)
{
	off_t off = random_below(rnd, file_bytes / page_size) * page_size;

	while (splice(fd, &off, pipe->in, NULL, 8 * page_size, SPLICE_F_NONBLOCK) > 0)
		off = random_below(rnd, file_bytes / page_size) * page_size;
}

/* Memory that is used once: its pages live on in the pipe. */
static void fill_from_memory(struct pipe *pipe)
{
	size_t bytes = 16 * page_size;
	ssize_t part;

	do {
		struct iovec vec = { .iov_base = page_buffer(bytes), .iov_len = bytes };

		memset(vec.iov_base, 0x5a, bytes);
		part = vmsplice(pipe->in, &vec, 1, SPLICE_F_NONBLOCK);
		munmap(vec.iov_base, bytes);
	} while (part > 0);
}

static void hold(void)
{
	u64 rnd = getpid();
	struct pipe pipes[PIPES];
	char *buf = page_buffer(KIB(64));
	int fd = MUST(volume_file(&volume, "sparse", O_RDONLY));

	for (unsigned int i = 0; i < PIPES; i++) {
		int ends[2];

		MUST(pipe2(ends, O_NONBLOCK | O_CLOEXEC));
		pipes[i] = (struct pipe){ .in = ends[1], .out = ends[0] };
		MUST(fcntl(pipes[i].in, F_SETPIPE_SZ, PIPE_PAGES * page_size));
	}
	for (unsigned long turn = 0;; turn++) {
		struct pipe *pipe = &pipes[turn < PIPES ? turn : random_below(&rnd, PIPES)];

		drain(pipe, buf, random_below(&rnd, PIPE_PAGES) * page_size);
		if (random_below(&rnd, 2))
			fill_from_file(pipe, fd, &rnd);
		else
			fill_from_memory(pipe);
		if (turn >= PIPES)
			usleep(2000);
	}
}

/* More page cache than there is free memory, without a disk's worth of reads: holes. */
static void fill_cache(void)
{
	char *buf = page_buffer(MIB(1));
	int fd = MUST(volume_file(&volume, "sparse", O_RDONLY));

	for (;;) {
		for (off_t off = 0; off < (off_t)file_bytes; off += MIB(1))
			pread_all(fd, buf, MIB(1), off);
		sleep(1);
	}
}

/* Pages of the file have to leave memory, or the area has no part in it. */
static bool memory_is_full(unsigned long stores)
{
	if (area.gcma)
		return counter("stores") > stores;
	return memory_kib("MemFree:") <= file_bytes / KIB(1) / 8 ||
	       memory_kib("Cached:") >= file_bytes / KIB(1);
}

/* True if the area gave the pages; they are given back at once. */
static bool allocate(const char *bench, int heap, unsigned long pages)
{
	char line[80];
	int buffer;

	if (bench) {
		unsigned int ok = 0;
		int ret = write_file(bench, "%lu 1", pages);

		if (ret || !read_word(bench, line, sizeof(line)) ||
		    sscanf(line, "%*u %*u %u", &ok) != 1)
			fail("%s: %s", bench, ret ? strerror(-ret) : line);
		return ok;
	}
	buffer = heap_alloc(heap, pages * page_size);
	if (buffer < 0)
		return false;
	close(buffer);
	return true;
}

static void no_failures(void)
{
	unsigned long tried = 0, failed = 0, stores = counter("stores"), longest;
	pid_t holders[HOLDERS], filler;
	u64 rnd = 1, start;
	char bench[512];
	int heap = -1;

	need_volume(&volume);
	need_area(&area);
	snprintf(bench, sizeof(bench), CMA_DEBUGFS "/%s/bench_alloc", area.name);
	if (access(bench, R_OK | W_OK)) {
		heap = area_heap(&area);
		if (heap < 0)
			lack("heap", "area %s has neither bench_alloc nor a dma-buf heap",
			     area.name);
	}
	longest = area_debug(&area, "maxchunk");

	file_bytes = MIB(memory_kib("MemFree:") >> 10);
	MUST(ftruncate(MUST(volume_file(&volume, "sparse", O_RDWR | O_CREAT)), file_bytes));
	filler = background(fill_cache);
	/* without a store in all that time the test fails: nothing was tested */
	for (unsigned int i = 0; i < FULL_SECONDS * 10 && !memory_is_full(stores); i++)
		usleep(100000);
	for (unsigned int i = 0; i < HOLDERS; i++)
		holders[i] = background(hold);
	sleep(1);

	start = now_ns();
	while (tried < allocations) {
		if (!area.gcma && now_ns() - start > MOVABLE_SECONDS * 1000000000ull)
			break;
		tried++;
		failed += !allocate(heap < 0 ? bench : NULL, heap,
				    1 + random_below(&rnd, MIN(longest, area.pages / 8)));
	}
	for (unsigned int i = 0; i < HOLDERS; i++)
		stop(holders[i]);
	stop(filler);
	diag("of %lu allocations %lu failed", tried, failed);
	need_gcma();
	if (failed)
		fail("%lu of %lu allocations failed", failed, tried);
}

int main(int argc, char **argv)
{
	int c;

	allocations = soaking() ? 10000 : short_form() ? 40 : 500;
	while ((c = getopt(argc, argv, "N:")) != -1) {
		if (c != 'N')
			return EXIT_FAILURE;
		allocations = strtoul(optarg, NULL, 0);
	}
	start(1);
	volume_open(&volume, &volume_kinds[0]);
	run(no_failures, NEED_STORES,
	    "no allocation fails while a free run exists, though pipes hold pages");
	volume_close(&volume);
	return finish();
}
