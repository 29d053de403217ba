/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the selftests of rental memory share: where the pages of a file lie, who takes the area
 * away, and who leaves too little memory.
 */
#ifndef RENTAL_UTIL_H
#define RENTAL_UTIL_H

#include "../cma/cma_util.h"

#define KPF_MLOCKED	33	/* include/linux/kernel-page-flags.h */
#define SELDOM		20	/* of so many written pages one was held */

struct kind {
	struct volume_kind volume;
	bool large;		/* folios of several pages where readahead asks for them */
};

extern const struct kind kinds[];
extern const unsigned int nr_kinds;
const struct kind *kind_named(const char *name);

extern struct area area;	/* of policy rental */

/* Begins each test: there is such an area, it has this scheme, and three quarters are idle. */
void begin(const char *scheme);
void set_scheme(const char *scheme);

/*
 * What is read from here on is on the list of one CPU until it is on the LRU lists, and whoever
 * is to write to it empties that list. Another CPU's stays full while that does not run, and each
 * page of it is held for as long.
 */
void one_list(void);
unsigned long count_of(const char *counter);

/*
 * Lent pages that were to be written to: those that left before, those that stayed because
 * somebody held them, or for want of memory for a copy; and those that were found dirty, which
 * are no others.
 */
struct writes {
	unsigned long replaced, held, no_memory, slipped;
};

struct writes writes_so_far(void);			/* while nobody writes */
/* Since then few were held, none were written to without a reason, nor for want of memory. */
void expect_seldom_held(const struct volume *v, const struct writes *before, bool memory_fails);

/* A read access */
static inline void touch_page(const char *at)
{
	asm volatile("" : : "r" (*at));
}

/*
 * Frame numbers of the first pages of a file, 0: not in the page cache. Who is looked at does not
 * become active or younger by it, and what is evicted just then stays evicted.
 */
void find_pages(int fd, u64 *pfns, size_t pages);
bool in_area(u64 pfn);
unsigned long frame_in_area(u64 pfn);			/* its number there */
/* Of a page that stays what it is: the kernel looks at it without a reference. */
unsigned long lent_pages(int fd, size_t pages);		/* of the first ones */
void expect_lent(int fd, size_t pages);			/* or nothing would be tested */

/* Pages of the area that are dirty, being written or not of the page cache */
unsigned long area_unclean(void);
void expect_clean(void);				/* there are none of these */
void wait_until_clean(void);				/* what somebody held moves out */

/* Out of the page cache: what is read next comes from the disk. */
void forget(int fd);
size_t pages_in(size_t bytes);

/*
 * Files on a volume, of whole pieces of 128 KiB, that hold version 1 of their content: stamp().
 * None of a new one is in the page cache; all of a lent one is, in frames of the area.
 */
int file_made(const struct volume *v, const char *name, unsigned int id, size_t bytes);
int file_lent(const struct volume *v, const char *name, unsigned int id, size_t bytes);
void file_written(int fd, unsigned int id, size_t bytes);
void file_check(int fd, unsigned int id, size_t bytes);
char *map_fd(int fd, size_t bytes, int prot);			/* shared */
void map_check(const char *map, unsigned int id, size_t bytes);
void touch_pages(const char *map, size_t bytes);

/* From the disk, since it had read @before bytes: no more than these pages, and metadata */
void expect_few_reads(const struct volume *v, unsigned long before, unsigned long pages);

/* A primary, as a descriptor to close */
int take(size_t pages);					/* -1: not to be had */
int take_all(void);					/* fails the test then */
unsigned long most(void);				/* pages that can be taken */

/* The sample driver, which has so many pages of the area from this one on while it is open */
int driver_open(unsigned long first, unsigned long pages);	/* -1: refused, with errno */
void expect_refused(unsigned long first, unsigned long pages, int error);

/*
 * A process that has all memory but so many KiB, until it is stopped. Who lacks memory then kills
 * it first.
 */
pid_t hog(unsigned long leave_kib);
pid_t hog_again(pid_t pid);				/* another one, if it was killed */

/*
 * Zones keep more free than their least for a while, where pages of different kinds came into one
 * block: that comes and goes. Not between these two.
 */
void boosts_end(void);
void boosts_restore(void);

#endif
