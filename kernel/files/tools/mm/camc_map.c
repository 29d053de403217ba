// SPDX-License-Identifier: GPL-2.0-only
/*
 * Address maps of memory coloring (CAMC): reading, GF(2) algebra, writing; see camc_map.h.
 *
 * All masks are kept as bits of (physical address - offset). The text squeezes out removed bits
 * first; the parity of the squeezed address and a mask is the parity of the address and the mask
 * with zeroes put in, so that the squeezing is done once, to the masks.
 */
#include <stdlib.h>
#include <string.h>

#include "camc_map.h"

#define LINE_SIZE	256
#define ADDRESS_END	(2ULL << (CAMC_ADDRESS - 1))
#define FOUR_GIB	(4ULL << 30)
/*
 * Ranges of memory with less between them share a region: what has no memory has no color, and the
 * kernel wants to know of the rest of a section of its memory map, too. That is what it keeps
 * or lacks as a whole: 128 MiB on x86-64 and arm64, 512 MiB with pages of 64 KiB.
 */
#define HOLE		(1024ULL << 20)
#define SECTION		(128ULL << 20)

const char * const camc_class_names[CAMC_CLASSES] = { "controller", "rank", "bank" };

/* Words and numbers */

/**
 * next_line - copy a line without its comment
 * @text: where it begins
 * @line: gets it, cut if it is too long; such a line is longer than any statement
 *
 * Return: where the next line begins, NULL if there was none.
 */
const char *next_line(const char *text, char *line, size_t size)
{
	size_t length = strcspn(text, "\n");
	size_t kept = length < size ? length : size - 1;

	if (!*text)
		return NULL;
	memcpy(line, text, kept);
	line[kept] = '\0';
	line[strcspn(line, "#")] = '\0';
	return text + length + (text[length] == '\n');
}

/* The next word of a line, NULL at its end. */
char *next_word(char **rest)
{
	char *word = *rest + strspn(*rest, " \t\r");
	size_t length = strcspn(word, " \t\r");

	if (!length)
		return NULL;
	*rest = word + length;
	if (**rest)
		*(*rest)++ = '\0';
	return word;
}

/*
 * Has a line control characters, those of UTF-8 among them? They are part of no statement, and a
 * name with some would tell a terminal what to do.
 */
bool has_control(const char *line)
{
	const unsigned char *byte = (const unsigned char *)line;

	for (; *byte; byte++)
		if ((*byte < ' ' && *byte != '\t' && *byte != '\r') || *byte == 0x7f ||
		    (*byte == 0xc2 && byte[1] >= 0x80 && byte[1] < 0xa0))
			return true;
	return false;
}

/* A hexadecimal number of up to 64 bits, with or without 0x, and nothing else. */
bool parse_hex(const char *word, u64 *value)
{
	if (word[0] == '0' && (word[1] == 'x' || word[1] == 'X'))
		word += 2;
	if (!*word || strlen(word) > 16 || word[strspn(word, "0123456789abcdefABCDEF")])
		return false;
	*value = strtoull(word, NULL, 16);
	return true;
}

/* A decimal number up to @max, and nothing else. */
bool parse_decimal(const char *word, u64 max, u64 *value)
{
	if (!*word || strlen(word) > 18 || word[strspn(word, "0123456789")])
		return false;
	*value = strtoull(word, NULL, 10);
	return *value <= max;
}

/* Bits */

/* Mask of a squeezed address -> mask of the address: bits move up past removed ones. */
static bool deposit(u64 mask, u64 removed, u64 *bits)
{
	unsigned int bit;

	*bits = 0;
	for (bit = 0; bit < 64 && mask; bit++) {
		if (removed >> bit & 1)
			continue;
		*bits |= (mask & 1) << bit;
		mask >>= 1;
	}
	return !mask;
}

/* The reverse. */
static u64 extract(u64 bits, u64 removed)
{
	unsigned int bit, to = 0;
	u64 mask = 0;

	for (bit = 0; bit < 64; bit++) {
		if (removed >> bit & 1)
			continue;
		mask |= (bits >> bit & 1) << to++;
	}
	return mask;
}

static unsigned int parity(u64 bits)
{
	return __builtin_parityll(bits);
}

static unsigned int region_bits(const struct camc_region *region)
{
	return region->counts[CAMC_CONTROLLER] + region->counts[CAMC_RANK] +
	       region->counts[CAMC_BANK];
}

static enum camc_class class_of(const struct camc_region *region, unsigned int mask)
{
	if (mask < region->counts[CAMC_CONTROLLER])
		return CAMC_CONTROLLER;
	mask -= region->counts[CAMC_CONTROLLER];
	return mask < region->counts[CAMC_RANK] ? CAMC_RANK : CAMC_BANK;
}

/* Memory */

static int add_range(struct camc_memory *memory, u64 start, u64 end,
		     char *error)
{
	struct camc_range *range = memory->range;
	unsigned int i = memory->ranges;

	if (i == CAMC_RANGES)
		return fail(error, "/proc/iomem has more than %u ranges of memory", CAMC_RANGES);
	while (i && range[i - 1].start > start) {
		range[i] = range[i - 1];
		i--;
	}
	range[i] = (struct camc_range){ start, end };
	memory->ranges++;
	return 0;
}

static void merge_ranges(struct camc_memory *memory)
{
	struct camc_range *range = memory->range;
	unsigned int from, to = 0;

	for (from = 1; from < memory->ranges; from++) {
		if (range[from].start > range[to].end)
			range[++to] = range[from];
		else if (range[from].end > range[to].end)
			range[to].end = range[from].end;
	}
	if (memory->ranges)
		memory->ranges = to + 1;
}

/**
 * memory_parse - the ranges of memory in /proc/iomem, whole pages of them
 *
 * Lines are "START-END : NAME", END inclusive; memory is named "System RAM", on the first level
 * or, if it was hot-added, below its device. Readers without CAP_SYS_ADMIN see zeroes.
 */
int memory_parse(struct camc_memory *memory, const char *text, unsigned int page_shift,
		 char *error)
{
	u64 page = 1ULL << page_shift, start, end;
	bool hidden = false;
	char line[LINE_SIZE];

	memory->ranges = 0;
	while ((text = next_line(text, line, sizeof(line)))) {
		char *rest = line, *first, *last, *word;

		first = next_word(&rest);
		word = first ? next_word(&rest) : NULL;
		if (!word || strcmp(word, ":") || strncmp(rest, "System RAM", 10))
			continue;
		last = strchr(first, '-');
		if (!last)
			continue;
		*last++ = '\0';
		if (!parse_hex(first, &start) || !parse_hex(last, &end) || end < start)
			return fail(error, "/proc/iomem: %s-%s is no range of addresses", first,
				    last);
		if (!end) {
			hidden = true;
			continue;
		}
		if (end >= ADDRESS_END)
			return fail(error, "/proc/iomem: %s is beyond 52 bits", last);
		start = (start + page - 1) & ~(page - 1);
		end = (end + 1) & ~(page - 1);
		if (start < end && add_range(memory, start, end, error))
			return -1;
	}
	if (!memory->ranges)
		return fail(error, hidden ?
			    "/proc/iomem hides the addresses of memory: run as root" :
			    "/proc/iomem lists no System RAM");
	merge_ranges(memory);
	return 0;
}

/* Reading a map */

static int parse_removed(struct camc_region *region, char *fields, char *error)
{
	unsigned int line = region->line;
	char *field, *low;
	u64 hi, lo;

	while ((field = strsep(&fields, ","))) {
		low = strchr(field, ':');
		if (low)
			*low++ = '\0';
		if (!low || !parse_decimal(field, CAMC_ADDRESS - 1, &hi) ||
		    !parse_decimal(low, CAMC_ADDRESS - 1, &lo) || lo > hi)
			return fail(error,
				    "line %u: remove takes fields as 13:12,6:6, decimal, up to %d",
				    line, CAMC_ADDRESS - 1);
		for (; lo <= hi; lo++) {
			if (region->removed >> lo & 1)
				return fail(error, "line %u: bit %llu is removed twice",
					    line, lo);
			region->removed |= 1ULL << lo;
		}
	}
	return 0;
}

static int parse_option(struct camc_region *region, const char *word, char *value,
			char *error)
{
	unsigned int line = region->line;
	u64 number;

	if (!value)
		return fail(error, "line %u: %s needs a value", line, word);
	if (!strcmp(word, "node")) {
		if (!parse_decimal(value, CAMC_COLORS - 1, &number))
			return fail(error, "line %u: node %s: a decimal number up to %u", line,
				    value, CAMC_COLORS - 1);
		region->node = number;
	} else if (!strcmp(word, "offset")) {
		if (!parse_hex(value, &region->offset))
			return fail(error, "line %u: offset %s is no hexadecimal number", line,
				    value);
	} else if (!strcmp(word, "remove")) {
		return parse_removed(region, value, error);
	} else if (!strcmp(word, "hoist") && region->to_end) {
		if (!strcmp(value, "intel"))
			region->hoist = HOIST_INTEL;
		else if (!strcmp(value, "amd"))
			region->hoist = HOIST_AMD;
		else
			return fail(error, "line %u: hoist %s: intel or amd", line, value);
	} else {
		return fail(error, "line %u: unknown word %s: node, offset, remove%s", line, word,
			    region->to_end ? ", hoist" : "");
	}
	return 0;
}

static int parse_region(struct camc_map *map, char *rest, unsigned int line,
			char *error)
{
	static const char * const once[] = { "node", "offset", "remove", "hoist" };
	struct camc_region *region = &map->region[map->regions];
	char *range = next_word(&rest), *end, *word;
	unsigned int seen = 0, i;

	if (map->regions == CAMC_REGIONS)
		return fail(error, "line %u: more than %u regions", line, CAMC_REGIONS);
	memset(region, 0, sizeof(*region));
	region->line = line;
	end = range ? strchr(range, '-') : NULL;
	if (!end)
		return fail(error, "line %u: region needs START-END", line);
	*end++ = '\0';
	region->to_end = !strcmp(end, "all");
	if (!parse_hex(range, &region->start) ||
	    (!region->to_end && !parse_hex(end, &region->end)))
		return fail(error, "line %u: region %s-%s: two hexadecimal addresses", line, range,
			    end);
	if (!region->to_end && region->start >= region->end)
		return fail(error, "line %u: region %s-%s is empty: END lies behind the last byte",
			    line, range, end);
	if (region->start >= ADDRESS_END || (!region->to_end && region->end > ADDRESS_END))
		return fail(error, "line %u: region %s-%s: addresses have 52 bits", line, range,
			    end);
	while ((word = next_word(&rest))) {
		for (i = 0; i < 4; i++) {
			if (strcmp(word, once[i]))
				continue;
			if (seen >> i & 1)
				return fail(error, "line %u: %s stands twice", line, word);
			seen |= 1U << i;
		}
		if (parse_option(region, word, next_word(&rest), error))
			return -1;
	}
	map->regions++;
	return 0;
}

static int parse_mask(struct camc_map *map, enum camc_class class, char *rest, unsigned int line,
		      char *error)
{
	char *value = next_word(&rest);
	struct camc_region *region;
	struct camc_mask *mask;
	enum camc_class later;
	unsigned int bits;
	u64 number;

	if (!map->regions)
		return fail(error, "line %u: %s belongs to a region: none stands before it", line,
			    camc_class_names[class]);
	region = &map->region[map->regions - 1];
	bits = region_bits(region);
	if (bits == CAMC_MASKS)
		return fail(error, "line %u: a region has more than %u masks", line, CAMC_MASKS);
	for (later = class + 1; later < CAMC_CLASSES; later++)
		if (region->counts[later])
			return fail(error, "line %u: %s stands behind %s: controller, rank, bank",
				    line, camc_class_names[class], camc_class_names[later]);
	if (!value || !parse_hex(value, &number) || !number || next_word(&rest))
		return fail(error, "line %u: %s needs one hexadecimal mask that is not 0", line,
			    camc_class_names[class]);
	mask = &region->masks[bits];
	if (!deposit(number, region->removed, &mask->bits) || mask->bits >= ADDRESS_END)
		return fail(error, "line %u: mask %s has bits beyond the address", line, value);
	mask->of = 1U << bits;
	region->counts[class]++;
	return 0;
}

static int parse_statement(struct camc_map *map, char *rest, unsigned int line,
			   char *error)
{
	char *word = next_word(&rest);
	enum camc_class class;

	if (!word)
		return 0;
	if (!strcmp(word, "map")) {
		char *name = next_word(&rest);

		if (*map->name)
			return fail(error, "line %u: a second map: one a file", line);
		if (!name || next_word(&rest) || strlen(name) > CAMC_NAME_MAX)
			return fail(error, "line %u: map needs a name of up to %u characters",
				    line, CAMC_NAME_MAX);
		memcpy(map->name, name, strlen(name) + 1);
		return 0;
	}
	if (!*map->name)
		return fail(error, "line %u: %.20s: a map begins with \"map NAME\"", line, word);
	if (!strcmp(word, "region"))
		return parse_region(map, rest, line, error);
	for (class = 0; class < CAMC_CLASSES; class++)
		if (!strcmp(word, camc_class_names[class]))
			return parse_mask(map, class, rest, line, error);
	return fail(error, "line %u: unknown statement %.20s: region, controller, rank or bank",
		    line, word);
}

/* All regions have the same numbers of masks, or a color would not mean the same everywhere. */
static int check_counts(const struct camc_map *map, char *error)
{
	const struct camc_region *first = map->region, *region;

	if (!*map->name)
		return fail(error, "this is no map: it begins with \"map NAME\"");
	if (!map->regions)
		return fail(error, "the map has no region");
	for (region = first; region < first + map->regions; region++)
		if (memcmp(region->counts, first->counts, sizeof(first->counts)))
			return fail(error,
				    "line %u: the region has %u, %u, %u controller, rank, bank masks; that of line %u has %u, %u, %u: all have the same",
				    region->line, region->counts[0], region->counts[1],
				    region->counts[2], first->line, first->counts[0],
				    first->counts[1], first->counts[2]);
	return 0;
}

/**
 * map_parse - read a map's text
 *
 * Complexity: linear in the text.
 */
int map_parse(struct camc_map *map, const char *text, char *error)
{
	char line[LINE_SIZE];
	unsigned int number = 0;

	memset(map, 0, sizeof(*map));
	while ((text = next_line(text, line, sizeof(line)))) {
		number++;
		if (strlen(line) == sizeof(line) - 1)
			return fail(error, "line %u is too long", number);
		if (has_control(line))
			return fail(error, "line %u has a control character", number);
		if (parse_statement(map, line, number, error))
			return -1;
	}
	return check_counts(map, error);
}

/* Placing it in this machine */

/*
 * What regions are multiples of: the largest block of the buddy allocator, PAGE_SIZE <<
 * MAX_PAGE_ORDER, as x86-64 and arm64 have it.
 */
u64 map_block(unsigned int page_shift)
{
	switch (page_shift) {
	case 14:
		return 32ULL << 20;
	case 16:
		return 512ULL << 20;
	default:
		return 1024ULL << page_shift;
	}
}

static u64 round_up(u64 address, u64 multiple)
{
	return (address + multiple - 1) / multiple * multiple;
}

/*
 * The address from which on memory was moved, and how far. Intel: what lies between TOLUD and
 * 4 GiB appears from TOM on, or from 4 GiB if there is less memory (the reverse of
 * mem_addr_to_sys_addr() of drivers/edac/igen6_edac.c). AMD: everything behind TOP_MEM appears
 * from 4 GiB on.
 */
static int find_hoist(const struct camc_region *region, const struct camc_chipset *chipset,
		      u64 block, u64 *from, u64 *by, char *error)
{
	const char *names = "TOLUD and TOM";

	*from = ADDRESS_END;
	*by = 0;
	switch (region->hoist) {
	case HOIST_NONE:
		return 0;
	case HOIST_INTEL:
		if (!chipset->tolud || !chipset->tom)
			return fail(error,
				    "line %u: hoist intel needs TOLUD and TOM (PCI 00:00.0, bch and a0h): run as root",
				    region->line);
		*from = chipset->tom > FOUR_GIB ? chipset->tom : FOUR_GIB;
		*by = *from - chipset->tolud;
		break;
	case HOIST_AMD:
		if (!chipset->top_mem)
			return fail(error,
				    "line %u: hoist amd needs TOP_MEM (MSR c001001ah): modprobe msr, run as root",
				    region->line);
		*from = FOUR_GIB;
		*by = FOUR_GIB - chipset->top_mem;
		names = "TOP_MEM";
		break;
	}
	if (chipset->top_mem > FOUR_GIB || *from % block || *by % block)
		return fail(error,
			    "line %u: %s of this machine are no multiples of %llu MiB: change the size of the graphics memory in the firmware's setup",
			    region->line, names, block >> 20);
	return 0;
}

static int place(struct camc_map *map, const struct camc_region *template, u64 start,
		 u64 end, u64 offset, char *error)
{
	struct camc_region *region = &map->region[map->regions];

	if (map->regions == CAMC_REGIONS)
		return fail(error,
			    "line %u: memory has so many holes that there are more than %u regions",
			    template->line, CAMC_REGIONS);
	*region = *template;
	region->to_end = false;
	region->start = start;
	region->end = end;
	region->offset += offset;
	map->regions++;
	return 0;
}

/* The regions of one that reaches to the end of memory: one for each part without large holes. */
static int place_all(struct camc_map *map, const struct camc_region *template,
		     const struct camc_memory *memory, const struct camc_chipset *chipset,
		     u64 block, char *error)
{
	const struct camc_range *range = memory->range, *last = range + memory->ranges;
	u64 section = block > SECTION ? block : SECTION;
	unsigned int before = map->regions;
	u64 from, by;

	if (template->start % block)
		return fail(error, "line %u: START is no multiple of %llu MiB", template->line,
			    block >> 20);
	if (find_hoist(template, chipset, block, &from, &by, error))
		return -1;
	while (range < last) {
		u64 start = range->start / section * section;
		u64 end = round_up(range->end, section);

		while (++range < last && range->start / section * section < end + HOLE)
			end = round_up(range->end, section);
		if (start < template->start)
			start = template->start;
		if (start < end && start < from &&
		    place(map, template, start, end < from ? end : from, 0, error))
			return -1;
		if (start < from)
			start = from;
		if (start < end && place(map, template, start, end, by, error))
			return -1;
	}
	if (map->regions == before)
		return fail(error, "line %u: there is no memory from %llx on", template->line,
			    template->start);
	return 0;
}

/**
 * map_place - give regions that reach to the end of memory the addresses that memory has
 * @memory: NULL: unknown, then there must be no such regions
 */
int map_place(struct camc_map *map, const struct camc_memory *memory,
	      const struct camc_chipset *chipset, unsigned int page_shift, char *error)
{
	static struct camc_map placed;
	const struct camc_region *region;

	placed = *map;
	placed.regions = 0;
	for (region = map->region; region < map->region + map->regions; region++) {
		if (!region->to_end) {
			if (place(&placed, region, region->start, region->end, 0, error))
				return -1;
		} else if (!memory) {
			return fail(error, "line %u: END is all: where memory ends is not known",
				    region->line);
		} else if (place_all(&placed, region, memory, chipset, map_block(page_shift),
				     error)) {
			return -1;
		}
	}
	*map = placed;
	return 0;
}

/* Checking */

static int by_start(const void *a, const void *b)
{
	const struct camc_region *x = *(const struct camc_region * const *)a;
	const struct camc_region *y = *(const struct camc_region * const *)b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* A row of a matrix over GF(2) in echelon form; @of: which rows were added up to it. */
struct row {
	u64 bits;
	u32 of;
};

/*
 * Add rows of the @count in @rows to @row until it has none of their leading bits. Each has a
 * leading bit that rows before it lack, so one pass in order is enough.
 */
static void reduce(struct row *row, const struct row *rows, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++) {
		if (row->bits & rows[i].bits & -rows[i].bits) {
			row->bits ^= rows[i].bits;
			row->of ^= rows[i].of;
		}
	}
}

static int check_independent(const struct camc_region *region, char *error)
{
	unsigned int bits = region_bits(region), i, length;
	struct row rows[CAMC_MASKS];
	char names[128];

	for (i = 0; i < bits; i++) {
		rows[i] = (struct row){ region->masks[i].bits, 1U << i };
		reduce(&rows[i], rows, i);
		if (rows[i].bits)
			continue;
		length = 0;
		rows[i].of &= ~(1U << i);
		for (; rows[i].of; rows[i].of &= rows[i].of - 1)
			length += snprintf(names + length, sizeof(names) - length, "%s%u",
					   length ? ", " : "", __builtin_ctz(rows[i].of) + 1);
		return fail(error,
			    "line %u: the region is rank-deficient: mask %u is the XOR of mask %s, so half of the colors cannot occur",
			    region->line, i + 1, names);
	}
	return 0;
}

static int check_cover(const struct camc_region **sorted, unsigned int regions,
		       const struct camc_memory *memory, char *error)
{
	unsigned int i, j = 0;

	for (i = 0; i < memory->ranges; i++) {
		u64 start = memory->range[i].start, end = memory->range[i].end;

		while (start < end) {
			while (j < regions && sorted[j]->end <= start)
				j++;
			if (j == regions || sorted[j]->start > start) {
				if (j < regions && sorted[j]->start < end)
					end = sorted[j]->start;
				return fail(error,
					    "memory at %llx-%llx is in no region: the map is for another machine",
					    start, end);
			}
			start = sorted[j]->end;
		}
	}
	return 0;
}

/**
 * map_check - refuse maps that overlap, do not cover @memory (NULL: any), or are rank-deficient
 *
 * The map is placed.
 */
int map_check(const struct camc_map *map, const struct camc_memory *memory,
	      unsigned int page_shift, char *error)
{
	const struct camc_region *sorted[CAMC_REGIONS], *region;
	u64 block = map_block(page_shift);
	unsigned int i;

	for (i = 0; i < map->regions; i++) {
		region = &map->region[i];
		sorted[i] = region;
		if (region->start % block || region->end % block || region->offset % block)
			return fail(error,
				    "line %u: START, END and OFF of a region are multiples of %llu MiB (%llx)",
				    region->line, block >> 20, block);
		if (region->offset > region->start)
			return fail(error, "line %u: OFF is larger than START", region->line);
		if (check_independent(region, error))
			return -1;
	}
	qsort(sorted, map->regions, sizeof(*sorted), by_start);
	for (i = 1; i < map->regions; i++)
		if (sorted[i]->start < sorted[i - 1]->end)
			return fail(error, "the regions of lines %u and %u overlap at %llx",
				    sorted[i - 1]->line, sorted[i]->line, sorted[i]->start);
	return memory ? check_cover(sorted, map->regions, memory, error) : 0;
}

/* Colors that pages have */

/*
 * A page is spread over all banks that its addresses reach, which is a coset of the space that the
 * low bits of the masks span. Pages are apart from each other iff a sum of masks without low bits
 * tells so, and those sums are a basis of all such: each mask is added to the ones before it until
 * its low bits are gone; if they never are, it tells nothing new and later masks may need it. The
 * order keeps classes as they are: a sum of controller masks is a controller mask still, one with
 * a rank mask in it is a rank mask.
 */
static void eliminate(struct camc_region *region, unsigned int page_shift)
{
	unsigned int bits = region_bits(region), lows = 0, kept = 0, i;
	struct camc_mask masks[CAMC_MASKS];
	unsigned int counts[CAMC_CLASSES] = { 0 };
	u64 low = (1ULL << page_shift) - 1;
	struct row rows[CAMC_MASKS], row;

	for (i = 0; i < bits; i++) {
		struct camc_mask mask = { 0, 0 };
		unsigned int j;

		row = (struct row){ region->masks[i].bits & low, 1U << i };
		reduce(&row, rows, lows);
		if (row.bits) {
			rows[lows++] = row;
			continue;
		}
		for (j = 0; j < bits; j++) {
			if (row.of >> j & 1) {
				mask.bits ^= region->masks[j].bits;
				mask.of ^= region->masks[j].of;
			}
		}
		counts[class_of(region, i)]++;
		masks[kept++] = mask;
	}
	memcpy(region->masks, masks, kept * sizeof(*masks));
	memcpy(region->counts, counts, sizeof(counts));
}

/**
 * map_eliminate - merge the colors that pages of 1 << @page_shift bytes cannot tell apart
 *
 * The map is checked. Afterwards no mask has bits below @page_shift, they are linearly independent
 * again, and two pages of one region have the same color iff they share a bank, else none.
 */
int map_eliminate(struct camc_map *map, unsigned int page_shift, char *error)
{
	static struct camc_map merged;
	const struct camc_region *first = merged.region, *region;
	unsigned int bits, i, nodes = 0;

	merged = *map;
	for (i = 0; i < merged.regions; i++) {
		eliminate(&merged.region[i], page_shift);
		if (merged.region[i].node >= nodes)
			nodes = merged.region[i].node + 1;
	}
	bits = region_bits(first);
	for (region = first; region < first + merged.regions; region++) {
		bool same = !memcmp(region->counts, first->counts, sizeof(first->counts));

		for (i = 0; same && i < bits; i++)
			same = region->masks[i].of == first->masks[i].of;
		if (!same)
			return fail(error,
				    "pages of the regions of lines %u and %u mix different banks: they cannot have common colors",
				    first->line, region->line);
	}
	if (!bits && nodes == 1)
		return fail(error,
			    "all colors are mixed within each page of %u KiB: there is nothing to color by",
			    1U << (page_shift - 10));
	if (bits > CAMC_BITS || (u64)nodes << bits > CAMC_COLORS)
		return fail(error, "%u nodes with %u bits of color: there are at most %u colors",
			    nodes, bits, CAMC_COLORS);
	*map = merged;
	return 0;
}

unsigned int map_bits(const struct camc_map *map)
{
	return region_bits(map->region);
}

static unsigned int color_of(const struct camc_region *region, u64 normal)
{
	unsigned int bits = region_bits(region), color = region->node, i;

	for (i = 0; i < bits; i++)
		color = color << 1 | parity(normal & region->masks[i].bits);
	return color;
}

/* The color of a physical address, CAMC_NOWHERE if no region has it. */
unsigned int map_color(const struct camc_map *map, u64 address)
{
	const struct camc_region *region;

	for (region = map->region; region < map->region + map->regions; region++)
		if (address >= region->start && address < region->end)
			return color_of(region, address - region->offset);
	return CAMC_NOWHERE;
}

/*
 * Count the pages of one aligned block of 1 << @shift bytes: its colors are a coset of the space
 * that the columns of its address bits span, each with the same number of pages.
 */
static void count_block(const struct camc_region *region, u64 normal, unsigned int shift,
			unsigned int page_shift, struct camc_count *count)
{
	unsigned int bits = region_bits(region), color = color_of(region, normal);
	struct row rows[CAMC_BITS];
	unsigned int rank = 0, bit, i;

	for (bit = page_shift; bit < shift && rank < bits; bit++) {
		struct row row = { color_of(region, 1ULL << bit) & ((1U << bits) - 1), 0 };

		reduce(&row, rows, rank);
		if (row.bits)
			rows[rank++] = row;
	}
	for (i = 0; i < 1U << rank; i++) {
		unsigned int sum = color;

		for (bit = 0; bit < rank; bit++)
			if (i >> bit & 1)
				sum ^= rows[bit].bits;
		count->pages[sum] += 1ULL << (shift - page_shift - rank);
	}
}

static void count_range(const struct camc_region *region, u64 start, u64 end,
			unsigned int page_shift, struct camc_count *count)
{
	u64 normal = start - region->offset, left = end - start;

	while (left) {
		unsigned int shift = normal ? __builtin_ctzll(normal) : 63;

		while (1ULL << shift > left)
			shift--;
		count_block(region, normal, shift, page_shift, count);
		normal += 1ULL << shift;
		left -= 1ULL << shift;
	}
}

/* A bit of the color that is the same in all memory of each node colors nothing. */
static int check_changes(const struct camc_map *map, const struct camc_count *count,
			 char *error)
{
	unsigned int color, changes = 0, first = CAMC_NOWHERE, i;

	for (color = 0; color < count->colors; color++) {
		if (!count->pages[color])
			continue;
		if (first == CAMC_NOWHERE || first >> count->bits != color >> count->bits)
			first = color;
		changes |= first ^ color;
	}
	for (i = 0; i < count->bits; i++) {
		const struct camc_region *region = map->region;

		if (changes >> (count->bits - 1 - i) & 1)
			continue;
		return fail(error,
			    "rank-deficient: %s %llx never changes in this machine's memory: the map is for another machine, or one with more memory",
			    camc_class_names[class_of(region, i)],
			    extract(region->masks[i].bits, region->removed));
	}
	return 0;
}

/**
 * map_count - the pages of each color
 *
 * The map is eliminated. Exact, without looking at single pages: a range of addresses is a few
 * aligned blocks. Complexity: O(ranges * 52 * colors).
 */
int map_count(const struct camc_map *map, const struct camc_memory *memory,
	      unsigned int page_shift, struct camc_count *count, char *error)
{
	unsigned int i, j;

	memset(count, 0, sizeof(*count));
	count->bits = map_bits(map);
	for (i = 0; i < map->regions; i++) {
		const struct camc_region *region = &map->region[i];

		if ((region->node + 1) << count->bits > count->colors)
			count->colors = (region->node + 1) << count->bits;
		for (j = 0; j < memory->ranges; j++) {
			u64 start = memory->range[j].start, end = memory->range[j].end;

			if (start < region->start)
				start = region->start;
			if (end > region->end)
				end = region->end;
			if (start < end)
				count_range(region, start, end, page_shift, count);
		}
	}
	return check_changes(map, count, error);
}

/* Writing a map */

static void render_region(const struct camc_region *region, FILE *file)
{
	unsigned int bits = region_bits(region), i;
	const char *comma = " remove ";
	int high, low;

	fprintf(file, "region %llx-", region->start);
	if (region->to_end)
		fputs("all", file);
	else
		fprintf(file, "%llx", region->end);
	if (region->node)
		fprintf(file, " node %u", region->node);
	if (region->offset)
		fprintf(file, " offset %llx", region->offset);
	for (high = 63; high >= 0; high = low - 1) {
		low = high;
		if (!(region->removed >> high & 1))
			continue;
		while (low && region->removed >> (low - 1) & 1)
			low--;
		fprintf(file, "%s%d:%d", comma, high, low);
		comma = ",";
	}
	if (region->hoist != HOIST_NONE && region->to_end)
		fprintf(file, " hoist %s", region->hoist == HOIST_INTEL ? "intel" : "amd");
	fputc('\n', file);
	for (i = 0; i < bits; i++)
		fprintf(file, "%s %llx\n", camc_class_names[class_of(region, i)],
			extract(region->masks[i].bits, region->removed));
}

/* The text of a map. It is an error if it is longer than the kernel takes or @size. */
int map_render(const struct camc_map *map, char *text, size_t size, char *error)
{
	char *buffer = NULL;
	size_t length = 0;
	unsigned int i;
	FILE *file = open_memstream(&buffer, &length);

	if (!file)
		return fail(error, "out of memory");
	fprintf(file, "map %s\n", map->name);
	for (i = 0; i < map->regions; i++)
		render_region(&map->region[i], file);
	if (fclose(file)) {
		free(buffer);
		return fail(error, "out of memory");
	}
	if (length > CAMC_TEXT || length >= size) {
		free(buffer);
		return fail(error, "the map has %zu bytes: the kernel takes %u", length, CAMC_TEXT);
	}
	memcpy(text, buffer, length + 1);
	free(buffer);
	return 0;
}
