/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Address maps of memory coloring (CAMC): which color, that is which bank of which memory
 * controller, a physical address has. For the language see camc(8), for what the kernel takes of
 * it Documentation/admin-guide/mm/camc.rst.
 *
 * A map goes this way, each step leaves it as it was if it fails:
 *
 *	map_parse() or registers_parse()	text, as shipped or dumped
 *	map_place()		"all" and "hoist" become the addresses of this machine
 *	map_check()		what no machine could have is refused
 *	map_eliminate()		colors that pages cannot tell apart are merged
 *	map_count()		how much memory each color has; refused if a bit never changes
 *	map_render()		text for the kernel
 *
 * Functions that can fail return 0, or -1 with one line in @error, of CAMC_ERROR bytes.
 */
#ifndef CAMC_MAP_H
#define CAMC_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef unsigned int u32;
typedef unsigned long long u64;	/* printed by %llx on every machine */

#define CAMC_NAME_MAX	63	/* as the kernel's map name */
#define CAMC_REGIONS	32	/* as the kernel */
#define CAMC_MASKS	16	/* a region of a file; the kernel takes CAMC_BITS */
#define CAMC_BITS	10	/* of the colors of one node, as the kernel */
#define CAMC_COLORS	1024	/* as CAMC_MAX_COLORS of <linux/camc.h> */
#define CAMC_TEXT	4095	/* the kernel takes one write of at most so many bytes */
#define CAMC_ADDRESS	52	/* bits of a physical address, as the kernel */
#define CAMC_RANGES	4096	/* ranges of memory that are read from /proc/iomem */
#define CAMC_ERROR	256
#define CAMC_NOWHERE	(~0U)	/* the color of an address that no region has */

enum camc_class { CAMC_CONTROLLER, CAMC_RANK, CAMC_BANK, CAMC_CLASSES };

#define fail(error, ...)	(snprintf(error, CAMC_ERROR, __VA_ARGS__), -1)

extern const char * const camc_class_names[CAMC_CLASSES];

/* What a chipset does with memory that would lie under the devices below 4 GiB. */
enum camc_hoist { HOIST_NONE, HOIST_INTEL, HOIST_AMD };

/**
 * struct camc_mask - one bit of a color: the parity of some address bits
 * @bits: these bits of physical address - region's offset
 * @of: bit i: mask i of the file's region is in it, before map_eliminate() its own only
 */
struct camc_mask {
	u64 bits;
	u32 of;
};

/**
 * struct camc_region - physical addresses of one node with the same masks
 * @start: first byte
 * @end: behind the last one; unused if @to_end
 * @offset: subtracted from an address before the masks see it, at most @start
 * @removed: bits that are squeezed out in the text; no mask has one of them
 * @node: memory controller, the leading digit of its colors
 * @to_end: END is "all": what there is of memory from @start on
 * @masks: most significant first: controller, rank, bank, @counts of each
 * @line: of the file, for messages
 */
struct camc_region {
	u64 start;
	u64 end;
	u64 offset;
	u64 removed;
	unsigned int node;
	bool to_end;
	enum camc_hoist hoist;
	unsigned int counts[CAMC_CLASSES];
	struct camc_mask masks[CAMC_MASKS];
	unsigned int line;
};

struct camc_map {
	char name[CAMC_NAME_MAX + 1];
	unsigned int regions;
	struct camc_region region[CAMC_REGIONS];
};

struct camc_range {
	u64 start;
	u64 end;		/* exclusive */
};

/* Memory, in order of addresses, ranges apart from each other. */
struct camc_memory {
	unsigned int ranges;
	struct camc_range range[CAMC_RANGES];
};

/**
 * struct camc_chipset - registers that say where memory below 4 GiB was moved to
 * @tolud: Intel: where memory ends below 4 GiB
 * @tom: Intel: how much memory there is
 * @top_mem: AMD: where memory ends below 4 GiB
 *
 * 0: unknown.
 */
struct camc_chipset {
	u64 tolud;
	u64 tom;
	u64 top_mem;
};

/**
 * struct camc_count - the memory of each color
 * @bits: of the colors of a node
 * @colors: colors there are: (largest node + 1) << @bits
 * @pages: pages of each
 */
struct camc_count {
	unsigned int bits;
	unsigned int colors;
	u64 pages[CAMC_COLORS];
};

int memory_parse(struct camc_memory *memory, const char *text, unsigned int page_shift,
		 char *error);
int map_parse(struct camc_map *map, const char *text, char *error);
int map_place(struct camc_map *map, const struct camc_memory *memory,
	      const struct camc_chipset *chipset, unsigned int page_shift, char *error);
int map_check(const struct camc_map *map, const struct camc_memory *memory,
	      unsigned int page_shift, char *error);
int map_eliminate(struct camc_map *map, unsigned int page_shift, char *error);
int map_count(const struct camc_map *map, const struct camc_memory *memory,
	      unsigned int page_shift, struct camc_count *count, char *error);
int map_render(const struct camc_map *map, char *text, size_t size, char *error);

/* Registers @first to @last of a function, 4 apart, of which a dump has all. */
struct camc_registers {
	unsigned int function;
	unsigned int first;
	unsigned int last;
};

#define CAMC_REGISTERS	10

extern const struct camc_registers camc_registers[CAMC_REGISTERS];

bool registers_text(const char *text);
int registers_parse(struct camc_map *map, const char *text, char *error);

u64 map_block(unsigned int page_shift);
unsigned int map_bits(const struct camc_map *map);
unsigned int map_color(const struct camc_map *map, u64 address);
const char *next_line(const char *text, char *line, size_t size);
char *next_word(char **rest);
bool has_control(const char *line);
bool parse_hex(const char *word, u64 *value);
bool parse_decimal(const char *word, u64 max, u64 *value);

#endif /* CAMC_MAP_H */
