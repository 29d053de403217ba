/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What mm/camc_map.c takes of Linux, so that its reader of maps runs here: as the kernel has it on
 * x86-64, with one zone of memory that is all there. Included before that file; the headers that
 * it names are empty.
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char kernel_log[8192];	/* the last line */

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint64_t u64, __u64;
typedef uint32_t __u32;
typedef int32_t __s32;
typedef u64 phys_addr_t;

#define PAGE_SHIFT		12
#define PAGE_SIZE		(1UL << PAGE_SHIFT)
#define PAGE_MASK		(~(PAGE_SIZE - 1))
#define MAX_PAGE_ORDER		10
#define NR_PAGE_ORDERS		(MAX_PAGE_ORDER + 1)
#define PFN_PHYS(pfn)		((phys_addr_t)(pfn) << PAGE_SHIFT)
#define PHYS_PFN(address)	((unsigned long)((address) >> PAGE_SHIFT))
#define pageblock_nr_pages	512UL
#define pageblock_start_pfn(pfn) ((pfn) & ~(pageblock_nr_pages - 1))

#define BIT(bit)		(1UL << (bit))
#define BIT_ULL(bit)		(1ULL << (bit))
#define GENMASK_ULL(high, low)	(~0ULL << (low) & ~0ULL >> (63 - (high)))
#define IS_ALIGNED(x, to)	(!((x) & ((to) - 1)))
#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))
#define max(a, b)		((a) > (b) ? (a) : (b))
#define BITS_PER_LONG		64
#define BITS_TO_LONGS(bits)	(((bits) + 63) / 64)
#define DECLARE_BITMAP(name, bits) unsigned long name[BITS_TO_LONGS(bits)]

#define __ffs(word)		((unsigned int)__builtin_ctzl(word))
#define __fls(word)		((unsigned int)(63 - __builtin_clzl(word)))
#define test_bit(bit, map)	((map)[(bit) / 64] >> (bit) % 64 & 1)
#define set_bit(bit, map)	((void)((map)[(bit) / 64] |= BIT((bit) % 64)))
#define bitmap_copy(to, from, bits) memcpy(to, from, BITS_TO_LONGS(bits) * sizeof(long))
#define for_each_set_bit(bit, map, bits) \
	for ((bit) = 0; (bit) < (bits); (bit)++) \
		if (test_bit(bit, map))

#define GFP_KERNEL		0
#define kstrdup(text, gfp)	strdup(text)
#define kvzalloc(size, gfp)	calloc(1, size)
#define kfree(memory)		free(memory)
#define kvfree(memory)		free(memory)
#define struct_size(of, array, nr) (sizeof(*(of)) + (nr) * sizeof((of)->array[0]))
#define ERR_PTR(error)		((void *)(long)(error))
#define IS_ERR(pointer)		((unsigned long)(pointer) >= -4095UL)
#define sort(base, nr, size, compare, swap) qsort(base, nr, size, compare)
#define pr_err(fmt, ...)	snprintf(kernel_log, sizeof(kernel_log), pr_fmt(fmt), ##__VA_ARGS__)

/* What the rest of mm/camc.h names */
struct list_head { struct list_head *next, *prev; };
struct mutex { int unused; };
struct rcu_head { int unused; };
typedef struct { int refs; } refcount_t;
typedef struct { long counter; } atomic_long_t;
#define atomic_long_inc(of)	((void)(of)->counter++)
#define smp_load_acquire(of)	(*(of))

struct zone { unsigned long zone_start_pfn, end; };
struct page;
#define for_each_populated_zone(zone) for ((zone) = NULL; (zone);)
#define zone_end_pfn(zone)	((zone)->end)
#define pfn_to_online_page(pfn)	((struct page *)NULL)
#define PageReserved(page)	false
#define cond_resched()		((void)0)
#define get_online_mems()	((void)0)
#define put_online_mems()	((void)0)

/* lib/string.c, lib/string_helpers.c, lib/kstrtox.c */
#define strscpy(to, from)	(strlen(from) < sizeof(to) ? \
				 (int)strlen(strcpy(to, from)) : -E2BIG)

static inline char *skip_spaces(const char *text)
{
	while (isspace((unsigned char)*text))
		text++;
	return (char *)text;
}

static inline int match_string(const char * const *words, size_t nr, const char *word)
{
	for (size_t i = 0; i < nr; i++)
		if (!strcmp(words[i], word))
			return i;
	return -EINVAL;
}

/* A sign +, 0x before hexadecimal digits, and one end of a line at the end: these are taken. */
static inline int kstrtou64(const char *text, unsigned int base, u64 *value)
{
	u64 result = 0;
	int digits = 0;

	text += *text == '+';
	if (base == 16 && text[0] == '0' && tolower((unsigned char)text[1]) == 'x')
		text += 2;
	for (;; text++, digits++) {
		int c = tolower((unsigned char)*text);
		unsigned int digit = c >= '0' && c <= '9' ? c - '0' :
				     c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;

		if (digit >= base)
			break;
		if (__builtin_mul_overflow(result, (u64)base, &result) ||
		    __builtin_add_overflow(result, (u64)digit, &result))
			return -ERANGE;
	}
	text += digits && *text == '\n';
	if (!digits || *text)
		return -EINVAL;
	*value = result;
	return 0;
}

static inline int kstrtouint(const char *text, unsigned int base, unsigned int *value)
{
	u64 found;
	int err = kstrtou64(text, base, &found);

	if (err || found > UINT_MAX)
		return err ? err : -ERANGE;
	*value = found;
	return 0;
}
