// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the evaluations of rental memory do in a guest. FILE is one that `job fill` made: each page
 * says which it is, and that is checked. DEBUG is the area's folder in debugfs. Times are in ns,
 * which are instructions in an exact guest whose CPU does not idle.
 *
 * rental return DEBUG FILE PAGES STATE COUNT [RECLAIM]
 *	read the first PAGES of FILE once, bring those of them that lie in the area into STATE, and
 *	have COUNT pages of it, the first ones, returned. With RECLAIM, the memory.reclaim of our
 *	group, all that was read is evicted first. Prints what the kernel measured, "COUNT ALLOC
 *	RELEASE OK", and "used N", pages of the range that held FILE, and "lost N", those of FILE
 *	that are not in memory any more
 * rental write FILE PAGES HOW
 *	read PAGES once, then write to each, by "write", by "write-mapped" while they are mapped, or
 *	by "store" through the mapping. Prints "PAGES CYCLES"
 * rental returns DEBUG FILE MIB PAGES TIMES SEED
 *	so many times: drop all clean cache, read MIB of FILE, but for a time only, which is longer
 *	at first, wait for a random time, have PAGES returned, and lend them again. Each prints
 *	"NS OK DIRTY WRITEBACK FREE": the time until they are there, however often that is tried,
 *	whether once was enough, and how many pages of the machine were dirty and under writeback
 *	just before, and how many of stock CMA's areas were free
 * rental take DEBUG PAGES
 *	have PAGES returned, and lend them again: "NS OK DIRTY WRITEBACK FREE", as above
 * rental time COMMAND...	run it: "ns N" that it took, "cpu_us N" of CPU
 * rental hog MIB		use so much anonymous memory: "held", then sleep until killed
 * rental oom			use more and more until killed: "ns N" and "pages N"
 * rental grow FILE MIB SEED REQUESTS HOG_MIB
 *	read 16 KiB of MIB at random so often, and use HOG_MIB of memory in equal steps meanwhile
 * rental sparse FILE PAGES	make FILE, of holes, and read PAGES of it, none beside another
 * rental faults FILE MIB SEED REQUESTS KIB
 *	touch pages of a mapping at random, each read by itself, while the kernel keeps KIB free
 * rental image FILE MIB	make a picture
 * rental apps DEBUG FILE LIB_PAGES ALIVE SEED <APPS
 *	start applications; see there
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "draw.h"

#define PAGE		4096UL
#define MIB_PAGES	256UL
#define NS		1000000000UL
#define REQUEST		4UL		/* pages */
#define CHUNK		16UL
#define NODE_PAGES	64UL		/* of a file, which a node of its tree has */
#define MAPPINGS	4
#define PFN		((1UL << 55) - 1) /* in pagemap */
#define NOWHERE		(~0UL)
#define OOM_PAGES	(1UL << 20)

/* Who does not get his memory tries again for so long. */
#define PATIENCE_NS	5000000000UL

/* At most, before a return; in the shorter time a card reads 250 MB, if nobody else uses it */
#define FIRST_NS	15000000000UL
#define REFILL_NS	6000000000UL
#define PAUSE_NS	200000000UL

static char buf[CHUNK * PAGE];
static uint64_t state;			/* of the random numbers */

static unsigned long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NS + t.tv_nsec;
}

static unsigned long number(const char *text)
{
	return strtoul(text, NULL, 0);
}

static int open_at(const char *folder, const char *name, int flags)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s%s%s", folder, *name ? "/" : "", name);
	fd = open(path, flags, 0600);
	if (fd < 0)
		err(1, "%s", path);
	return fd;
}

/* False: the file did not take it. */
static int tell(const char *folder, const char *name, unsigned long value)
{
	int fd = open_at(folder, name, O_WRONLY), ok;

	ok = dprintf(fd, "%lu", value) > 0;
	close(fd);
	return ok;
}

static unsigned long ask(const char *folder, const char *name)
{
	int fd = open_at(folder, name, O_RDONLY);
	ssize_t len = read(fd, buf, sizeof(buf) - 1);

	if (len <= 0)
		err(1, "%s", name);
	buf[len] = 0;
	close(fd);
	return number(buf);
}

static void get(int fd, unsigned long page, unsigned long count)
{
	if (pread(fd, buf, count * PAGE, page * PAGE) != (ssize_t)(count * PAGE))
		err(1, "read of page %lu", page);
	if (*(unsigned long *)buf != page)
		errx(1, "page %lu is not what it was", page);
}

static void put(int fd, unsigned long page)
{
	get(fd, page, 1);
	if (pwrite(fd, buf, PAGE, page * PAGE) != PAGE)
		err(1, "write of page %lu", page);
}

static void *map(int fd, unsigned long page, unsigned long pages, int prot, int flags)
{
	void *memory = mmap(NULL, pages * PAGE, prot, flags, fd, page * PAGE);

	if (memory == MAP_FAILED)
		err(1, "mmap of %lu pages", pages);
	return memory;
}

static char *anonymous(unsigned long pages)
{
	return map(-1, 0, pages, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
}

static void touch(volatile const char *memory, unsigned long page)
{
	(void)memory[page * PAGE];
}

static void use(volatile char *memory, unsigned long page)
{
	memory[page * PAGE] = 1;
}

/* ------ one return, all pages of the area in one state ----------------- */

static int file;
static unsigned long pages;		/* of the file */
static unsigned long *frames;		/* of each page: from the beginning of the area */

/* Who is touched in such a mapping does not count as in use when it is unmapped. */
static char *map_file(int prot)
{
	char *memory = map(file, 0, pages, prot, MAP_SHARED);

	madvise(memory, pages * PAGE, MADV_RANDOM);
	return memory;
}

static void read_once(void)
{
	unsigned long page;

	for (page = 0; page < pages; page++)
		get(file, page, 1);
}

/* Where does each page lie? Those that do not lie in the area are dropped. */
static void find_frames(const char *debug)
{
	unsigned long base = ask(debug, "base_pfn"), count = ask(debug, "count"), page, entry;
	char *memory = map_file(PROT_READ);
	int pagemap = open_at("/proc/self", "pagemap", O_RDONLY);

	frames = malloc(pages * sizeof(*frames));
	for (page = 0; page < pages; page++) {
		touch(memory, page);
		if (pread(pagemap, &entry, 8, ((unsigned long)memory / PAGE + page) * 8) != 8)
			err(1, "pagemap");
		frames[page] = (entry & PFN) - base;
		if (frames[page] >= count)
			frames[page] = NOWHERE;
	}
	close(pagemap);
	munmap(memory, pages * PAGE);
	for (page = 0; page < pages; page++)
		if (frames[page] == NOWHERE)
			posix_fadvise(file, page * PAGE, PAGE, POSIX_FADV_DONTNEED);
}

/* A pipe's reference to the page that is nearest to a frame, until we exit */
static void pin(unsigned long frame)
{
	unsigned long page, distance, nearest = NOWHERE;
	off_t at = 0;
	int end[2];

	for (page = 0; page < pages; page++) {
		distance = labs((long)(frames[page] - frame));
		if (frames[page] != NOWHERE && distance < nearest) {
			nearest = distance;
			at = page * PAGE;
		}
	}
	if (pipe(end) || splice(file, &at, end[1], NULL, PAGE, 0) != PAGE)
		err(1, "splice");
}

static void bring_into(const char *wanted, unsigned long count)
{
	unsigned long page, mappings = 0, step = 1, i;
	char *memory[MAPPINGS];

	if (!strcmp(wanted, "pinned-first"))
		pin(0);
	else if (!strcmp(wanted, "pinned-middle"))
		pin(count / 2);
	else if (!strcmp(wanted, "pinned-last"))
		pin(count - 1);
	else if (!strcmp(wanted, "mapped") || !strcmp(wanted, "locked"))
		mappings = 1;
	else if (!strcmp(wanted, "mapped-4"))
		mappings = MAPPINGS;
	else if (!strcmp(wanted, "half-mapped"))
		mappings = 1, step = 2;
	else if (strcmp(wanted, "clean") && strcmp(wanted, "active"))
		errx(2, "unknown state %s", wanted);
	for (i = 0; i < mappings; i++)
		memory[i] = map_file(PROT_READ);
	for (page = 0; page < pages; page++) {
		if (frames[page] == NOWHERE)
			continue;
		for (i = 0; i < mappings && frames[page] % step == 0; i++)
			touch(memory[i], page);
		if (!strcmp(wanted, "locked") && mlock(memory[0] + page * PAGE, PAGE))
			err(1, "mlock");
		/* it was read once already */
		for (i = 0; i < 2 && !strcmp(wanted, "active"); i++)
			get(file, page, 1);
	}
}

static void evict(const char *reclaim)
{
	int tries;

	/* fewer pages than asked for: an error */
	for (tries = 0; tries < 3; tries++)
		tell(reclaim, "", pages * PAGE);
}

static unsigned long resident(void)
{
	unsigned char *in = malloc(pages);
	char *memory = map_file(PROT_READ);
	unsigned long page, sum = 0;

	if (mincore(memory, pages * PAGE, in))
		err(1, "mincore");
	for (page = 0; page < pages; page++)
		sum += in[page] & 1;
	munmap(memory, pages * PAGE);
	free(in);
	return sum;
}

static void return_range(const char *debug, unsigned long count)
{
	int fd = open_at(debug, "bench_alloc", O_RDWR);
	ssize_t len;

	if (dprintf(fd, "%lu 1", count) < 0)
		err(1, "bench_alloc");
	len = pread(fd, buf, sizeof(buf), 0);
	if (len <= 0)
		err(1, "bench_alloc");
	printf("%lu %.*s", count, (int)len, buf);
	close(fd);
}

static void return_one(char **arg)
{
	unsigned long count = number(arg[4]), used = 0, page, before;

	file = open_at(arg[1], "", O_RDONLY);
	pages = number(arg[2]);
	posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
	if (strcmp(arg[3], "idle")) {
		read_once();
		if (arg[5])
			evict(arg[5]);
		else
			find_frames(arg[0]);
	}
	if (frames) {
		bring_into(arg[3], count);
		for (page = 0; page < pages; page++)
			used += frames[page] < count;
	}
	before = resident();
	return_range(arg[0], count);
	printf("used %lu\nlost %lu\n", used, before - resident());
	if (frames)
		read_once();
}

/* ------ writes ---------------------------------------------------------- */

static void write_all(char **arg)
{
	int store = !strcmp(arg[2], "store"), mapped = store || !strcmp(arg[2], "write-mapped");
	unsigned long page, start, cycles;
	volatile char *memory = NULL;

	if (!mapped && strcmp(arg[2], "write"))
		errx(2, "how: %s?", arg[2]);
	file = open_at(arg[0], "", O_RDWR);
	pages = number(arg[1]);
	posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
	read_once();
	if (mapped)
		memory = map_file(PROT_READ | PROT_WRITE);
	for (page = 0; mapped && page < pages; page++)
		touch(memory, page);
	start = cycles_now();
	for (page = 0; page < pages; page++) {
		/* what is there already */
		if (store)
			memory[page * PAGE] = page;
		else if (pwrite(file, &page, sizeof(page), page * PAGE) != sizeof(page))
			err(1, "write of page %lu", page);
	}
	cycles = cycles_now() - start;
	read_once();
	if (fsync(file))
		err(1, "fsync");
	printf("%lu %lu\n", pages, cycles);
}

/* ------ returns beside a load ------------------------------------------- */

struct found {
	unsigned long dirty, writeback, free;
};

/* What a return is about to find: pages of the whole machine, of which the area has some. */
static struct found look(void)
{
	FILE *in = fopen("/proc/vmstat", "r");
	unsigned long value, seen = 0;
	struct found found;
	char name[64];

	if (!in)
		err(1, "vmstat");
	while (fscanf(in, "%63s %lu", name, &value) == 2) {
		if (!strcmp(name, "nr_dirty"))
			found.dirty = value, seen++;
		else if (!strcmp(name, "nr_writeback"))
			found.writeback = value, seen++;
		else if (!strcmp(name, "nr_free_cma"))
			found.free = value, seen++;
	}
	fclose(in);
	if (seen != 3)
		errx(1, "vmstat: what is dirty, written back, and free?");
	return found;
}

static void print_return(unsigned long ns, int ok, const struct found *found)
{
	printf("%lu %d %lu %lu %lu\n", ns, ok, found->dirty, found->writeback, found->free);
}

/*
 * Pages [0, count) of the area, or any others if they cannot be had: added to @held. The time until
 * they are there, in ns: a device has no use for an error, however fast it comes. @ok becomes 0 if
 * the first try fails.
 */
static unsigned long take(const char *debug, unsigned long count, unsigned long *held, int *ok)
{
	unsigned long start = now();

	while (!tell(debug, "alloc", count)) {
		*ok = 0;
		if (now() - start > PATIENCE_NS)
			return now() - start;
	}
	*held += count;
	return now() - start;
}

static void sleep_ns(unsigned long ns)
{
	struct timespec t = { ns / NS, ns % NS };

	nanosleep(&t, NULL);
}

static void returns(char **arg)
{
	unsigned long mib = number(arg[2]), count = number(arg[3]), times = number(arg[4]), page = 0;
	int fd = open_at(arg[1], "", O_RDONLY), ok;
	unsigned long i, done, start, ns, held;
	struct found found;

	state = number(arg[5]);
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (i = 0; i < times; i++) {
		tell("/proc/sys/vm", "drop_caches", 1);
		start = now();
		/* others write to the file: its content does not matter */
		for (done = 0; done < mib * MIB_PAGES &&
			       now() - start < (i ? REFILL_NS : FIRST_NS); done += CHUNK) {
			if (pread(fd, buf, sizeof(buf), page * PAGE) < 0)
				err(1, "read");
			page = (page + CHUNK) % (mib * MIB_PAGES);
		}
		sleep_ns(draw(&state) % PAUSE_NS);
		ok = 1;
		held = 0;
		found = look();
		ns = take(arg[0], count, &held, &ok);
		if (held)
			tell(arg[0], "free", held);
		print_return(ns, ok, &found);
	}
}

static void take_once(char **arg)
{
	struct found found = look();
	unsigned long held = 0, ns;
	int ok = 1;

	ns = take(arg[0], number(arg[1]), &held, &ok);
	if (held)
		tell(arg[0], "free", held);
	print_return(ns, ok, &found);
}

/* ------ beside other programs ------------------------------------------- */

static int time_command(char **arg)
{
	unsigned long start = now();
	struct rusage usage;
	int status;
	pid_t child;

	child = fork();
	if (child < 0)
		err(1, "fork");
	if (!child) {
		execvp(arg[0], arg);
		err(1, "%s", arg[0]);
	}
	if (wait4(child, &status, 0, &usage) < 0)
		err(1, "wait");
	printf("ns %lu\ncpu_us %lu\n", now() - start,
	       (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000UL +
	       usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
	return !WIFEXITED(status) || WEXITSTATUS(status);
}

static void hog(char **arg)
{
	unsigned long count = number(arg[0]) * MIB_PAGES, page;
	char *memory = anonymous(count);

	for (page = 0; page < count; page++)
		use(memory, page);
	puts("held");
	fflush(stdout);
	pause();
}

static void be_killed(const char *score)
{
	int fd = open_at("/proc/self", "oom_score_adj", O_WRONLY);

	if (write(fd, score, strlen(score)) < 0)
		err(1, "oom_score_adj");
	close(fd);
}

static void oom(void)
{
	volatile unsigned long *used = map(-1, 0, 1, PROT_READ | PROT_WRITE,
					   MAP_SHARED | MAP_ANONYMOUS);
	unsigned long start = now();
	char *memory;
	int status;
	pid_t child;

	be_killed("-1000");
	child = fork();
	if (child < 0)
		err(1, "fork");
	if (!child) {
		be_killed("1000");
		memory = anonymous(OOM_PAGES);
		for (*used = 0; *used < OOM_PAGES; ++*used)
			use(memory, *used);
		_exit(0);
	}
	if (waitpid(child, &status, 0) < 0 || !WIFSIGNALED(status))
		errx(1, "memory was enough");
	printf("ns %lu\npages %lu\n", now() - start, *used);
}

static void grow(char **arg)
{
	unsigned long requests = number(arg[3]), most = number(arg[4]) * MIB_PAGES, used = 0, i;
	unsigned long places = number(arg[1]) * MIB_PAGES / REQUEST, start = now();
	int fd = open_at(arg[0], "", O_RDONLY);
	char *memory = anonymous(most);

	posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
	state = number(arg[2]);
	for (i = 0; i < requests; i++) {
		get(fd, draw(&state) % places * REQUEST, REQUEST);
		for (; used < most * (i + 1) / requests; used++)
			use(memory, used);
	}
	printf("ns %lu\n", now() - start);
}

#define IMAGE_WIDTH	4096UL

/* Each page that is read takes a node of the tree of the file's pages, of other memory. */
static void sparse(char **arg)
{
	unsigned long count = number(arg[1]), start = now(), i;
	int fd = open_at(arg[0], "", O_RDWR | O_CREAT | O_TRUNC);

	if (ftruncate(fd, count * NODE_PAGES * PAGE))
		err(1, "ftruncate");
	posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
	for (i = 0; i < count; i++)
		if (pread(fd, buf, PAGE, i * NODE_PAGES * PAGE) != PAGE)
			err(1, "read of page %lu", i);
	printf("ns %lu\n", now() - start);
}

/* With so much to be kept free that nothing may be allocated but what the area has. */
static void faults(char **arg)
{
	unsigned long count = number(arg[1]) * MIB_PAGES, requests = number(arg[3]), start, i;
	unsigned long kib = ask("/proc/sys/vm", "min_free_kbytes");
	int fd = open_at(arg[0], "", O_RDONLY), status;
	char *memory;
	pid_t child;

	state = number(arg[2]);
	be_killed("-1000");
	child = fork();
	if (child < 0)
		err(1, "fork");
	if (mlockall(MCL_CURRENT))
		err(1, "mlockall");
	if (!child) {
		be_killed("1000");
		memory = map(fd, 0, count, PROT_READ, MAP_SHARED);
		if (madvise(memory, count * PAGE, MADV_RANDOM))
			err(1, "madvise");
		for (i = 0; i < count; i++)
			touch(memory, i); /* it has its page tables, and nodes of the file's tree */
		start = now();
		tell("/proc/sys/vm", "min_free_kbytes", number(arg[4]));
		for (i = 0; i < requests; i++)
			touch(memory, draw(&state) % count);
		tell("/proc/sys/vm", "min_free_kbytes", kib);
		printf("ns %lu\n", now() - start);
		exit(0);
	}
	if (waitpid(child, &status, 0) < 0)
		err(1, "wait");
	tell("/proc/sys/vm", "min_free_kbytes", kib);
	if (status)
		errx(1, "it was killed");
}

static void image(char **arg)
{
	unsigned long height = number(arg[1]) * MIB_PAGES * PAGE / IMAGE_WIDTH / 3, x, y;
	static unsigned char row[IMAGE_WIDTH * 3];
	FILE *out = fopen(arg[0], "w");

	if (!out)
		err(1, "%s", arg[0]);
	fprintf(out, "P6\n%lu %lu\n255\n", IMAGE_WIDTH, height);
	for (y = 0; y < height; y++) {
		for (x = 0; x < sizeof(row); x++)
			row[x] = ((x / 12 + y / 2) & 0x7f) | (x * y & 7);
		fwrite(row, sizeof(row), 1, out);
	}
	if (fclose(out))
		err(1, "%s", arg[0]);
}

/* ------ applications ----------------------------------------------------- */

/*
 * APPS has a line for each, "NAME TEXT DATA ANON WRITES [DEVICE...]", all but the name in pages. An
 * application is started, and does ACTIVITIES: in each it maps pages of the libraries that all
 * share, the popular ones often, a part of its own text, reads a part of its data, writes to some
 * pages of that, and uses a part of its memory. Of a DEVICE it has that many pages meanwhile.
 * Then the user goes back to another one. At most ALIVE applications live: the oldest is ended.
 *
 * FILE has the libraries, then the text and data of each application. Prints "activity NAME WHICH
 * NS", WHICH 0 is the start, "back" that of an application that was there; "return NAME " and what
 * other returns print.
 */
#define ACTIVITIES	4
#define CLUSTER		8UL	/* pages of the libraries that are used together */
#define CLUSTERS	48	/* that an activity uses */
#define APPS		64
#define DEVICES		4

static struct app {
	char name[32];
	unsigned long first, text, data, anon, writes, device[DEVICES];
	char *libraries, *code, *memory;
} apps[APPS];

static unsigned long library_pages;

static void start_app(struct app *app)
{
	app->libraries = map(file, 0, library_pages, PROT_READ, MAP_PRIVATE);
	app->code = map(file, app->first, app->text, PROT_READ, MAP_PRIVATE);
	app->memory = anonymous(app->anon);
}

static void end_app(struct app *app)
{
	munmap(app->libraries, library_pages * PAGE);
	munmap(app->code, app->text * PAGE);
	munmap(app->memory, app->anon * PAGE);
}

static void activity(struct app *app, unsigned long which)
{
	static double *sums;
	unsigned long clusters = library_pages / CLUSTER, i, page, at;

	if (!sums)
		sums = zipf_sums(clusters);
	for (i = 0; i < CLUSTERS; i++) {
		page = zipf_rank(&state, sums, clusters) * SPREAD % clusters * CLUSTER;
		for (at = 0; at < CLUSTER; at++)
			touch(app->libraries, page + at);
	}
	for (i = app->text * which / ACTIVITIES; i < app->text * (which + 1) / ACTIVITIES; i++)
		touch(app->code, i);
	page = app->first + app->text + app->data * which / ACTIVITIES;
	for (i = 0; i + CHUNK <= app->data / ACTIVITIES; i += CHUNK)
		get(file, page + i, CHUNK);
	for (i = 0; i < app->writes; i++)
		put(file, page + i);
	for (i = app->anon * which / ACTIVITIES; i < app->anon * (which + 1) / ACTIVITIES; i++)
		use(app->memory, i);
}

static void run_app(const char *debug, struct app *app)
{
	unsigned long i, start, ns = 0, held = 0;
	struct found found;
	int ok = 1;

	if (app->device[0])
		found = look();
	for (i = 0; i < DEVICES && app->device[i]; i++)
		ns += take(debug, app->device[i], &held, &ok);
	if (i) {
		printf("return %s ", app->name);
		print_return(ns, ok, &found);
	}
	for (i = 0; i < ACTIVITIES; i++) {
		start = now();
		if (!i)
			start_app(app);
		activity(app, i);
		printf("activity %s %lu %lu\n", app->name, i, now() - start);
	}
	if (held)
		tell(debug, "free", held);
}

static void run_apps(char **arg)
{
	unsigned long number_of_apps = 0, oldest = 0, alive = number(arg[3]), next, start, i;
	struct app *app = apps;
	char line[256];

	/* to print is work, too: at the end */
	setvbuf(stdout, NULL, _IOFBF, 1 << 20);
	file = open_at(arg[1], "", O_RDWR);
	next = library_pages = number(arg[2]);
	state = number(arg[4]);
	for (; number_of_apps < APPS && fgets(line, sizeof(line), stdin); app++, number_of_apps++) {
		if (sscanf(line, "%31s %lu %lu %lu %lu %lu %lu", app->name, &app->text, &app->data,
			   &app->anon, &app->writes, &app->device[0], &app->device[1]) < 5)
			errx(2, "what application is %s?", line);
		app->first = next;
		next += app->text + app->data;
	}
	for (i = 0; i < number_of_apps; i++) {
		if (i - oldest == alive)
			end_app(&apps[oldest++]);
		run_app(arg[0], &apps[i]);
		if (i == oldest)
			continue;
		app = &apps[oldest + draw(&state) % (i - oldest)];
		start = now();
		activity(app, draw(&state) % ACTIVITIES);
		printf("activity %s back %lu\n", app->name, now() - start);
	}
}

int main(int argc, char **argv)
{
	const char *command = argc > 1 ? argv[1] : "";
	char **arg = argv + 2;

	if (!strcmp(command, "return") && argc >= 7)
		return_one(arg);
	else if (!strcmp(command, "write") && argc == 5)
		write_all(arg);
	else if (!strcmp(command, "returns") && argc == 8)
		returns(arg);
	else if (!strcmp(command, "take") && argc == 4)
		take_once(arg);
	else if (!strcmp(command, "time") && argc > 2)
		return time_command(arg);
	else if (!strcmp(command, "hog") && argc == 3)
		hog(arg);
	else if (!strcmp(command, "oom"))
		oom();
	else if (!strcmp(command, "grow") && argc == 7)
		grow(arg);
	else if (!strcmp(command, "sparse") && argc == 4)
		sparse(arg);
	else if (!strcmp(command, "faults") && argc == 7)
		faults(arg);
	else if (!strcmp(command, "image") && argc == 4)
		image(arg);
	else if (!strcmp(command, "apps") && argc == 7)
		run_apps(arg);
	else
		errx(2, "usage: see the top of rental.c");
	return 0;
}
