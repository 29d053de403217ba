// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory coloring beside an area that is lent: its frames have any color, so that a task which has
 * colors gets none, and pages of a color that somebody has are not moved there.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "rental_util.h"

#define MAP		"/sys/kernel/mm/camc/map"
#define WAITS		400

static struct volume volume;

#if __has_include(<linux/camc.h>)
#include <linux/camc.h>

#define COLORS		16

static const char map[] =
	"map test\nregion 0-10000000000\nbank 22000\nbank 44000\nbank 88000\nbank 110000\n";

static void set_up(void)
{
	int fd = open(MAP, O_WRONLY);

	if (fd < 0)
		lack("coloring", "no memory coloring (CONFIG_CAMC)");
	if (write(fd, map, sizeof(map) - 1) < 0 && errno != EBUSY)
		fail("the map: %s", strerror(errno));
	close(fd);
	need_volume(&volume);
	begin("lazy");
}

/* The area is not to be had for this one read: nothing of the file lies there. */
static int file_elsewhere(const char *name, unsigned int id, size_t bytes)
{
	int fd = file_made(&volume, name, id, bytes), buffer = take_all();

	file_check(fd, id, bytes);
	if (lent_pages(fd, pages_in(bytes)))
		fail("a primary has the area, and pages of the file lie there");
	close(buffer);
	return fd;
}

/* Children have them, too. */
static void have_colors(unsigned int nr)
{
	struct camc_policy policy = {
		.flags = CAMC_AUTO | CAMC_FORK, .nr_colors = nr, .node = CAMC_NODE_LOCAL,
	};

	if (prctl(PR_CAMC, CAMC_SET, &policy, sizeof(policy), 0))
		fail("%u colors: %s", nr, strerror(errno));
}

static void have_no_colors(void)
{
	if (prctl(PR_CAMC, CAMC_CLEAR, 0, 0, 0))
		fail("no colors: %s", strerror(errno));
}

static void reads_elsewhere(void)
{
	size_t bytes = MIB(1);
	unsigned long lends;
	int fd;

	set_up();
	fd = file_made(&volume, "file", 1, bytes);
	have_colors(1);
	lends = count_of("lends");
	file_check(fd, 1, bytes);
	have_no_colors();
	if (lent_pages(fd, pages_in(bytes)))
		fail("%lu pages that a colored task read lie in the area",
		     lent_pages(fd, pages_in(bytes)));
	diag("%lu frames were lent meanwhile", count_of("lends") - lends);
	/* it would have been */
	file_lent(&volume, "other", 2, bytes);
}

static void child_lives(void)
{
	for (;;)
		pause();
}

static void stays_elsewhere(void)
{
	size_t bytes = MIB(8), pages = pages_in(bytes);
	unsigned long before, taken_over = 0, wrong = 0;
	int colored, other;
	pid_t owner, pid;

	set_up();
	have_colors(COLORS / 2);
	owner = background(child_lives);
	colored = file_elsewhere("colored", 1, bytes);
	have_no_colors();
	/* half of these pages are of other colors */
	other = file_elsewhere("other", 2, bytes);
	before = count_of("taken_over");
	pid = hog(0);
	for (int waits = 1; waits < WAITS && taken_over < pages / 4; waits++) {
		usleep(50000);
		taken_over = count_of("taken_over") - before;
		wrong = MAX(wrong, lent_pages(colored, pages));
		pid = hog_again(pid);
	}
	stop(pid);
	stop(owner);
	diag("%lu pages were taken over, %lu of taken colors", taken_over, wrong);
	if (wrong)
		fail("pages of taken colors were moved to the area");
	if (taken_over < pages / 4)
		fail("few pages were taken over: nothing is tested");
	file_check(colored, 1, bytes);
	file_check(other, 2, bytes);
}
#else
static void reads_elsewhere(void)
{
	lack("coloring", "no memory coloring (CONFIG_CAMC)");
}

static void stays_elsewhere(void)
{
	lack("coloring", "no memory coloring (CONFIG_CAMC)");
}
#endif

int main(void)
{
	const struct kind *kind = kind_named("ext4");

	start(2);
	volume_open(&volume, &kind->volume);
	run(reads_elsewhere, NEED_NOTHING, "what a colored task reads is not in lent frames");
	run(stays_elsewhere, NEED_NOTHING, "pages of taken colors are not moved to lent frames");
	volume_close(&volume);
	return finish();
}
