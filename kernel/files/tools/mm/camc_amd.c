// SPDX-License-Identifier: GPL-2.0-only
/*
 * Address maps of AMD family 10h (Opteron 6100, for example) from the registers of its memory
 * controllers: Algorithm 1 of Pan and Mueller, "NUMA-Aware Memory Coloring for Multicore
 * Real-Time Systems", done once for all addresses instead of for each.
 *
 * What each register does is taken from drivers/edac/amd64_edac.c, f1x_match_to_this_node() and
 * what it calls; rows and columns of bank address mappings from coreboot,
 * src/northbridge/amd/amdmct/mct_ddr3/mct_d.c, Tab_BankAddr, whose sizes are those of
 * ddr3_cs_size() in amd64_edac.c, and which agrees with Fig. 5 of the paper.
 *
 * A dump is text: "registers amd-10h NAME", then for each node "node N" and lines such as
 * "F2x110 00000001": function, offset and value of its PCI device, as in AMD's documentation.
 */
#include <stdlib.h>
#include <string.h>

#include "camc_map.h"

#define NODES		8
#define FUNCTIONS	4
#define REGISTERS	(0x200 / 4)
#define RANGES		8
#define CHIP_SELECTS	8
#define BANK_BITS	3	/* DDR3 has 8 banks */
#define FOUR_GIB	(4ULL << 30)
#define CS_BITS		0x1ff83fe0u	/* of base and mask registers, address bits >> 8 */
#define CS_LOW		0x003fffffULL	/* address bits 21:13 interleave chip selects */
#define PIECES		128

const struct camc_registers camc_registers[CAMC_REGISTERS] = {
	{ 1, 0x40, 0x7c }, { 1, 0xf0, 0xf0 }, { 1, 0x140, 0x17c }, { 2, 0x40, 0x6c },
	{ 2, 0x80, 0x80 }, { 2, 0x94, 0x94 }, { 2, 0x10c, 0x114 }, { 2, 0x140, 0x16c },
	{ 2, 0x180, 0x180 }, { 2, 0x194, 0x194 },
};

/* Columns of each bank address mapping, as a power of two; 0: reserved. */
static const unsigned char columns[16] = { 0, 10, 10, 0, 0, 10, 11, 10, 11, 11, 10, 11, 12 };

struct dump {
	u32 value[NODES][FUNCTIONS][REGISTERS];
	bool given[NODES][FUNCTIONS][REGISTERS];
	bool present[NODES];
};

/* Part of a node's memory with one formula; @channel and @rank are constant in it. */
struct piece {
	u64 start;
	u64 end;
	u64 offset;		/* from the address in the DCT, before bits are removed */
	u64 rank_masks[3];
	u64 bank_masks[BANK_BITS];
	unsigned int node;
	unsigned int channel;
	unsigned int rank;
};

/* A chip select, or several that are interleaved, and where it is in its DCT. */
struct chips {
	u64 base;
	u64 size;
	u64 low;		/* address bits that tell them apart */
	unsigned int seen;	/* bit i: there is one for value i of these bits */
	unsigned int first;	/* number of the first rank; value i is first + i */
	unsigned int bank_shift;
};

struct walk {
	struct dump dump;
	char *error;
	struct piece piece[PIECES];
	unsigned int pieces;
	unsigned int interleave;	/* nodes are, by so many bits */
	unsigned int rank_bits;
	u64 channel_mask;		/* channels are interleaved by these bits */
	unsigned int channels;		/* 1 or 2 */
};

static u32 get(const struct walk *walk, unsigned int node, unsigned int function,
	       unsigned int offset)
{
	return walk->dump.value[node][function][offset / 4];
}

/* The dump */

static int parse_register(struct dump *dump, int node, char *word, char *value,
			  unsigned int line, char *error)
{
	u64 offset, number;

	if (word[0] != 'F' || word[1] < '1' || word[1] >= '0' + FUNCTIONS || word[2] != 'x' ||
	    !parse_hex(word + 3, &offset) || offset >= REGISTERS * 4 || offset % 4)
		return fail(error, "line %u: %.20s is no register from F1x000 to F3x1FC", line,
			    word);
	if (!value || !parse_hex(value, &number) || number >> 32)
		return fail(error, "line %u: %.20s needs one hexadecimal value of 32 bits", line,
			    word);
	if (node < 0)
		return fail(error, "line %u: %.20s stands before \"node N\"", line, word);
	dump->value[node][word[1] - '0'][offset / 4] = number;
	dump->given[node][word[1] - '0'][offset / 4] = true;
	return 0;
}

/* A register that is missing is none that is 0. */
static int check_complete(const struct dump *dump, char *error)
{
	const struct camc_registers *some;
	unsigned int node, offset;

	for (node = 0; node < NODES; node++) {
		for (some = camc_registers; some < camc_registers + CAMC_REGISTERS; some++) {
			for (offset = some->first; offset <= some->last; offset += 4) {
				if (!dump->present[node] ||
				    dump->given[node][some->function][offset / 4])
					continue;
				return fail(error,
					    "node %u: the dump lacks F%ux%03X: camc map dump has all that is needed",
					    node, some->function, offset);
			}
		}
	}
	return 0;
}

static int parse_dump(struct dump *dump, char *name, const char *text, char *error)
{
	unsigned int number = 0;
	char line[256];
	int node = -1;

	*name = '\0';
	while ((text = next_line(text, line, sizeof(line)))) {
		char *rest = line, *word, *value;
		u64 which;

		number++;
		if (has_control(line))
			return fail(error, "line %u has a control character", number);
		word = next_word(&rest);
		value = word ? next_word(&rest) : NULL;
		if (!word)
			continue;
		if (!strcmp(word, "registers")) {
			char *given = next_word(&rest);

			if (!value || strcmp(value, "amd-10h") || !given ||
			    strlen(given) > CAMC_NAME_MAX)
				return fail(error,
					    "line %u: registers of amd-10h and a name are known",
					    number);
			memcpy(name, given, strlen(given) + 1);
		} else if (!strcmp(word, "node")) {
			if (!value || !parse_decimal(value, NODES - 1, &which))
				return fail(error, "line %u: nodes are 0 to %u", number, NODES - 1);
			node = which;
			dump->present[node] = true;
		} else if (parse_register(dump, node, word, value, number, error)) {
			return -1;
		}
		if (next_word(&rest))
			return fail(error, "line %u: too many words", number);
	}
	return 0;
}

/* Is it a dump of registers, and no map? */
bool registers_text(const char *text)
{
	char line[256];

	while ((text = next_line(text, line, sizeof(line)))) {
		char *rest = line, *word = next_word(&rest);

		if (word)
			return !strcmp(word, "registers");
	}
	return false;
}

/* One node */

/* Settings that would need other formulas are refused, not guessed. */
static int check_settings(const struct walk *walk, unsigned int node)
{
	char *error = walk->error;
	unsigned int dct;

	if (!walk->dump.present[node])
		return fail(error, "the dump has memory of node %u, but not its registers", node);
	if (get(walk, node, 2, 0x10c) & 1)
		return fail(error, "node %u: F2x10C swaps memory for graphics, which is unknown",
			    node);
	if (get(walk, node, 2, 0x110) & 1 << 4)
		return fail(error,
			    "node %u: F2x110 gangs the channels: switch it off in the firmware's setup",
			    node);
	if ((get(walk, node, 2, 0x110) & 5) == 5)
		return fail(error,
			    "node %u: F2x110 interleaves part of the channels only: switch channel interleaving off, or have channels of the same size",
			    node);
	for (dct = 0; dct < 2; dct++) {
		u32 high = get(walk, node, 2, 0x94 + 0x100 * dct);

		if (high & 1 << 22)
			return fail(error,
				    "node %u: F2x%X94 swizzles banks: camc does not know how; switch it off in the firmware's setup",
				    node, dct);
	}
	return 0;
}

/* Bits that are removed from an address before a DCT sees it, all below bit 16. */
static u64 removed_bits(const struct walk *walk, unsigned int node)
{
	u64 removed = ((1ULL << walk->interleave) - 1) << 12;
	u32 select = get(walk, node, 2, 0x110);

	if (select & 1 << 2) {
		switch (select >> 6 & 3) {
		case 0:
		case 2:
			return removed | 1 << 6;
		case 1:
			return removed | 1ULL << (12 + walk->interleave);
		case 3:
			return removed | 1 << 9;
		}
	}
	return removed;
}

/* f1x_determine_channel(): the address bits whose parity is the channel. */
static u64 channel_mask(const struct walk *walk, unsigned int node)
{
	u32 select = get(walk, node, 2, 0x110);

	if (!(select & 1 << 2))
		return 0;
	switch (select >> 6 & 3) {
	case 0:
		return 1 << 6;
	case 1:
		return 1ULL << (12 + walk->interleave);
	case 2:
		return 0x1f0000 | 1 << 6;
	default:
		return 0x1f0000 | 1 << 9;
	}
}

static u64 put_in(u64 bits, u64 removed)
{
	unsigned int bit;

	for (bit = 0; bit < 64; bit++)
		if (removed >> bit & 1)
			bits = (bits & ~((1ULL << bit) - 1)) << 1 | (bits & ((1ULL << bit) - 1));
	return bits;
}

static unsigned int squeeze(u64 address, u64 bits)
{
	unsigned int squeezed = 0, to = 0;

	for (; bits; bits &= bits - 1)
		squeezed |= (address >> __builtin_ctzll(bits) & 1) << to++;
	return squeezed;
}

static int by_base(const void *a, const void *b)
{
	const struct chips *x = a, *y = b;

	return x->base < y->base ? -1 : x->base > y->base;
}

/*
 * Ranks are numbered in the order of addresses, which is that of chip selects unless modules differ
 * in size; those that are interleaved with each other have the bits that tell them as theirs.
 */
static int number_ranks(const struct walk *walk, unsigned int node, struct chips *chips,
			unsigned int found)
{
	unsigned int rank = 0, count, i;

	qsort(chips, found, sizeof(*chips), by_base);
	for (i = 0; i < found; i++) {
		count = 1U << __builtin_popcountll(chips[i].low);
		if (chips[i].seen != (1U << count) - 1)
			return fail(walk->error,
				    "node %u: not all addresses have a chip select", node);
		if (i && chips[i - 1].base + chips[i - 1].size > chips[i].base)
			return fail(walk->error, "node %u: chip selects overlap", node);
		rank = (rank + count - 1) / count * count;
		chips[i].first = rank;
		rank += count;
	}
	if (rank > CHIP_SELECTS)
		return fail(walk->error, "node %u: ranks are interleaved in parts of odd sizes",
			    node);
	return found;
}

/*
 * The enabled chip selects of a DCT, those that are interleaved with each other together.
 *
 * Return: how many such there are, or -1.
 */
static int find_chips(const struct walk *walk, unsigned int node, unsigned int dct,
		      struct chips *chips)
{
	unsigned int cs, found = 0, i;
	char *error = walk->error;

	for (cs = 0; cs < CHIP_SELECTS; cs++) {
		u32 base_register = get(walk, node, 2, 0x40 + 0x100 * dct + 4 * cs);
		u32 mask_register = get(walk, node, 2, 0x60 + 0x100 * dct + 4 * (cs / 2));
		u64 compared = (u64)(CS_BITS & ~mask_register) << 8;
		u64 base = (u64)(base_register & CS_BITS) << 8 & compared;
		u64 high = compared & ~CS_LOW, low = compared & CS_LOW, size = high & -high;
		unsigned int mapping = get(walk, node, 2, 0x80 + 0x100 * dct) >> 4 * (cs / 2) & 15;
		struct chips *these;

		if (!(base_register & 1))
			continue;
		if (!(get(walk, node, 2, 0x94 + 0x100 * dct) & 1 << 8))
			return fail(error, "node %u: F2x%X94: DCT %u has no DDR3 memory", node, dct,
				    dct);
		if (!size || (high | (size - 1)) != (1ULL << 37) - 1 ||
		    __builtin_popcountll(low) > 3)
			return fail(error, "node %u: the mask of chip select %u of DCT %u has gaps",
				    node, cs, dct);
		if (!columns[mapping])
			return fail(error,
				    "node %u: F2x%X80 has the unknown bank address mapping %u",
				    node, dct, mapping);
		/* the bits that interleave are exchanged with high ones; those of banks stay */
		if (low & ((8ULL << (columns[mapping] + BANK_BITS)) - 1))
			return fail(error,
				    "node %u: chip select %u of DCT %u is told by bits of columns or banks",
				    node, cs, dct);
		for (i = 0; i < found && chips[i].base != (base & high); i++)
			;
		these = &chips[i];
		if (i == found) {
			*these = (struct chips){ .base = base & high, .size = size, .low = low,
						 .bank_shift = columns[mapping] + 3 };
			found++;
		}
		if (these->low != low || these->size != size ||
		    these->bank_shift != columns[mapping] + 3U ||
		    these->seen >> squeeze(base, low) & 1)
			return fail(error,
				    "node %u: chip select %u of DCT %u overlaps another one", node,
				    cs, dct);
		these->seen |= 1U << squeeze(base, low);
	}
	return number_ranks(walk, node, chips, found);
}

/*
 * What a node has of the addresses from @start to @end for one of its DCTs.
 * @offset: subtracted from them before bits are removed
 */
static int add_pieces(struct walk *walk, unsigned int node, unsigned int dct, u64 start, u64 end,
		      u64 offset)
{
	u64 removed = removed_bits(walk, node);
	unsigned int shift = __builtin_popcountll(removed), bit;
	struct chips chips[CHIP_SELECTS];
	int found = find_chips(walk, node, dct, chips), i;
	u64 low;

	for (i = 0; i < found; i++) {
		struct piece *piece = &walk->piece[walk->pieces];
		u64 first = offset + (chips[i].base << shift);
		u64 last = first + (chips[i].size << shift);

		if (first < start)
			first = start;
		if (last > end)
			last = end;
		if (first >= last)
			continue;
		if (walk->pieces == PIECES)
			return fail(walk->error, "memory is in more than %u pieces", PIECES);
		*piece = (struct piece){ .start = first, .end = last, .offset = offset,
					 .node = node, .channel = dct, .rank = chips[i].first };
		low = chips[i].low;
		for (bit = 0; low; bit++, low &= low - 1)
			piece->rank_masks[bit] = put_in(low & -low, removed);
		for (bit = 0; bit < BANK_BITS; bit++)
			piece->bank_masks[bit] =
				put_in(1ULL << (chips[i].bank_shift + bit), removed);
		walk->pieces++;
	}
	return found < 0 ? -1 : 0;
}

/*
 * Addresses that have one offset: those of the low range of DCTs, or of the high one.
 * f1x_get_norm_dct_addr(); where that compares DctSelBaseAddr with the hole's base it has
 * different units, meant is whether the high range begins below 4 GiB.
 */
static int add_range(struct walk *walk, unsigned int node, u64 base, u64 start, u64 end)
{
	u32 hole = get(walk, node, 1, 0xf0), select = get(walk, node, 2, 0x110);
	u64 hole_offset = (u64)(hole & 0xff80) << 16, offset = base;
	u64 high_start = (u64)(select & 0xfffff800) << 16;
	u64 high_offset = (u64)(get(walk, node, 2, 0x114) & 0xfffffc00) << 16;
	bool hoisted = (hole & 1) && start >= FOUR_GIB;
	unsigned int high_dct = select >> 1 & 1, dct;

	if (hoisted) {
		offset = hole_offset;
		if (high_start < FOUR_GIB)
			high_offset = hole_offset;
	}
	if (select & 1 << 2) {		/* interleaved: both have all of it */
		for (dct = 0; dct < 2; dct++)
			if (add_pieces(walk, node, dct, start, end, offset))
				return -1;
		return 0;
	}
	if (!(select & 1))
		return add_pieces(walk, node, 0, start, end, offset);
	if (start < high_start &&
	    add_pieces(walk, node, !high_dct, start, end < high_start ? end : high_start, offset))
		return -1;
	if (start < high_start)
		start = high_start;
	return start < end ? add_pieces(walk, node, high_dct, start, end, high_offset) : 0;
}

/* Algorithm 1: ranges of nodes, without the hole below 4 GiB. */
static int find_pieces(struct walk *walk, unsigned int reader)
{
	unsigned int i;

	for (i = 0; i < RANGES; i++) {
		u32 base_low = get(walk, reader, 1, 0x40 + 8 * i);
		u32 limit_low = get(walk, reader, 1, 0x44 + 8 * i);
		u64 base = (u64)(get(walk, reader, 1, 0x140 + 8 * i) & 0xff) << 40 |
			   (u64)(base_low & 0xffff0000) << 8;
		u64 end = ((u64)(get(walk, reader, 1, 0x144 + 8 * i) & 0xff) << 40 |
			   (u64)(limit_low & 0xffff0000) << 8) + (1 << 24);
		unsigned int enabled = base_low >> 8 & 7, which = limit_low >> 8 & 7;
		unsigned int node = limit_low & 7;
		u32 hole;

		if (!(base_low & 3))
			continue;
		if (enabled & (enabled + 1) || (enabled && node != which))
			return fail(walk->error,
				    "nodes are interleaved in another order than their numbers");
		walk->interleave = __builtin_popcount(enabled);
		if (end <= base)
			return fail(walk->error, "node %u: its range of addresses is empty", node);
		if (check_settings(walk, node))
			return -1;
		hole = get(walk, node, 1, 0xf0);
		if ((hole & 1) && base < FOUR_GIB && end > FOUR_GIB) {
			if (add_range(walk, node, base, base, hole & 0xff000000) ||
			    add_range(walk, node, base, FOUR_GIB, end))
				return -1;
		} else if (add_range(walk, node, base, base, end)) {
			return -1;
		}
	}
	if (!walk->pieces)
		return fail(walk->error, "no range of memory is enabled in F1x40 to F1x7C");
	return 0;
}

/* All of them as regions */

/* The channel with a node's first address is its channel 0. */
static void number_channels(struct walk *walk)
{
	unsigned int i, first[NODES];

	for (i = 0; i < NODES; i++)
		first[i] = CAMC_NOWHERE;
	for (i = 0; i < walk->pieces; i++) {
		struct piece *piece = &walk->piece[i];

		if (first[piece->node] == CAMC_NOWHERE)
			first[piece->node] = piece->channel;
		piece->channel ^= first[piece->node];
	}
}

/* With equal chip selects in order the rank is bits of the address; @shift: from which on. */
static bool ranks_in_order(const struct walk *walk, unsigned int *shift)
{
	struct chips chips[CHIP_SELECTS];
	unsigned int node, dct;
	int found, i;
	u64 size = 0;

	for (node = 0; node < NODES; node++) {
		for (dct = 0; walk->dump.present[node] && dct < 2; dct++) {
			found = find_chips(walk, node, dct, chips);
			if (found && found != 1 << walk->rank_bits)
				return false;
			for (i = 0; i < found; i++) {
				if (!size)
					size = chips[i].size;
				if (chips[i].low || chips[i].size != size ||
				    chips[i].base != size * i)
					return false;
			}
		}
	}
	*shift = size ? __builtin_ctzll(size) : 0;
	return size;
}

static unsigned int bits_for(unsigned int count)
{
	return count > 1 ? 32 - __builtin_clz(count - 1) : 0;
}

static void measure(struct walk *walk, unsigned int *top)
{
	unsigned int ranks = 0, channels = 0, i, bit;
	u64 end = 0;

	for (i = 0; i < walk->pieces; i++) {
		const struct piece *piece = &walk->piece[i];
		unsigned int most = piece->rank;

		for (bit = 0; bit < 3; bit++)
			if (piece->rank_masks[bit])
				most |= 1U << bit;
		if (most > ranks)
			ranks = most;
		channels |= 1U << piece->channel;
		if (piece->end - piece->offset > end)
			end = piece->end - piece->offset;
	}
	walk->rank_bits = bits_for(ranks + 1);
	walk->channels = channels == 3 ? 2 : 1;
	*top = 64 - __builtin_clzll(end - 1);
}

static void add_mask(struct camc_region *region, enum camc_class class, u64 bits)
{
	unsigned int count = region->counts[0] + region->counts[1] + region->counts[2];

	region->masks[count] = (struct camc_mask){ bits, 1U << count };
	region->counts[class]++;
}

static bool same_formula(const struct camc_region *a, const struct camc_region *b)
{
	return a->node == b->node && a->offset == b->offset &&
	       !memcmp(a->masks, b->masks, sizeof(a->masks));
}

/*
 * Pieces of one formula that lie behind each other are one region, as are those that two channels
 * or nodes share because they are interleaved.
 */
static int add_region(struct walk *walk, struct camc_map *map, const struct camc_region *region)
{
	unsigned int i;

	for (i = 0; i < map->regions; i++) {
		struct camc_region *other = &map->region[i];

		if (!same_formula(other, region))
			continue;
		if (other->start <= region->start && region->end <= other->end)
			return 0;
		if (other->end == region->start) {
			other->end = region->end;
			return 0;
		}
	}
	if (map->regions == CAMC_REGIONS)
		return fail(walk->error, "the map has more than %u regions", CAMC_REGIONS);
	map->region[map->regions] = *region;
	/* where it will stand in the text */
	map->region[map->regions].line = 2 + map->regions * (1 + map_bits(map));
	map->regions++;
	return 0;
}

/*
 * A bit of the color that is constant in a piece. If the parts of channels, or ranks, follow each
 * other as powers of two, it is a bit of the normalised address anyway; else one is made: there are
 * bits that no address has, and another offset leaves the bits below ALIKE, all that masks have,
 * but gives a piece one bit that all its addresses have, which masks of bits that are 1 get.
 * At most the piece is halved for it again and again. The first piece of a node has only zeroes.
 */
#define ALIKE		(4ULL << 20)	/* behind the bits of banks and interleaving */
#define NEVER		45		/* from this bit on no address has any */

static int fixed_region(struct walk *walk, struct camc_map *map, const struct piece *piece,
			u64 start, u64 *end)
{
	struct camc_region region = { .start = start, .node = piece->node };
	unsigned int ones = piece->channel | piece->rank << 1, bit, i;
	u64 always = 0;

	region.offset = piece->offset;
	*end = piece->end;
	if (ones) {
		/* starts and offsets are multiples of 8 MiB */
		if (start < ALIKE)
			return fail(walk->error, "node %u: its first memory is no rank 0",
				    piece->node);
		always = 2ULL << (62 - __builtin_clzll(start));
		region.offset = start - always;
		if (*end > start + always)
			*end = start + always;
	}
	region.end = *end;
	if (walk->channels > 1) {
		region.masks[0] = (struct camc_mask){
			(1ULL << NEVER) | (ones & 1 ? always : 0), 1 };
		region.counts[CAMC_CONTROLLER] = 1;
	}
	for (bit = walk->rank_bits; bit--; )
		add_mask(&region, CAMC_RANK, piece->rank_masks[bit] | 2ULL << (NEVER + bit) |
			 (ones >> (bit + 1) & 1 ? always : 0));
	for (i = BANK_BITS; i--; )
		add_mask(&region, CAMC_BANK, piece->bank_masks[i]);
	return add_region(walk, map, &region);
}

/* Pieces whose channel and rank are bits of the address; @top: of addresses in a DCT. */
static int plain_region(struct walk *walk, struct camc_map *map, const struct piece *piece,
			bool in_order, unsigned int rank_shift, unsigned int top)
{
	u64 interleaved = channel_mask(walk, piece->node);
	u64 removed = removed_bits(walk, piece->node);
	struct camc_region region = { .start = piece->start, .end = piece->end,
				      .offset = piece->offset, .node = piece->node };
	unsigned int bit;

	if (walk->interleave)
		region.node = 0;
	for (bit = walk->interleave; bit--; )
		add_mask(&region, CAMC_CONTROLLER, 1ULL << (12 + bit));
	if (interleaved) {
		add_mask(&region, CAMC_CONTROLLER, interleaved);
	} else if (walk->channels > 1) {
		add_mask(&region, CAMC_CONTROLLER, 1ULL << top);
		region.offset -= (u64)piece->channel << top;
	}
	for (bit = walk->rank_bits; bit--; )
		add_mask(&region, CAMC_RANK, in_order ?
			 put_in(1ULL << (rank_shift + bit), removed) : piece->rank_masks[bit]);
	for (bit = BANK_BITS; bit--; )
		add_mask(&region, CAMC_BANK, piece->bank_masks[bit]);
	return add_region(walk, map, &region);
}

/* Is all that is constant in pieces a bit of their addresses, so that they are plain regions? */
static bool is_plain(const struct walk *walk, bool in_order, unsigned int top)
{
	unsigned int i, bit;

	for (i = 0; i < walk->pieces; i++) {
		const struct piece *piece = &walk->piece[i];

		if (piece->channel && !channel_mask(walk, piece->node) &&
		    piece->offset < 1ULL << top)
			return false;
		if (in_order)
			continue;
		if (piece->rank)
			return false;
		for (bit = 0; bit < walk->rank_bits; bit++)
			if (!piece->rank_masks[bit])
				return false;
	}
	return true;
}

static int make_regions(struct walk *walk, struct camc_map *map)
{
	unsigned int top, rank_shift, i;
	bool in_order, plain;
	u64 start, end;

	number_channels(walk);
	measure(walk, &top);
	in_order = ranks_in_order(walk, &rank_shift);
	plain = is_plain(walk, in_order, top);
	for (i = 0; i < walk->pieces; i++) {
		const struct piece *piece = &walk->piece[i];

		if (plain) {
			if (plain_region(walk, map, piece, in_order, rank_shift, top))
				return -1;
			continue;
		}
		if (removed_bits(walk, piece->node))
			return fail(walk->error,
				    "node %u: interleaving of modules of different sizes has no form as regions",
				    piece->node);
		for (start = piece->start; start < piece->end; start = end)
			if (fixed_region(walk, map, piece, start, &end))
				return -1;
	}
	return 0;
}

/**
 * registers_parse - the map of a dump of registers
 *
 * Its masks may have bits below the page size, as channels may be interleaved by cache lines.
 */
int registers_parse(struct camc_map *map, const char *text, char *error)
{
	static struct walk walk;
	unsigned int reader;

	memset(&walk, 0, sizeof(walk));
	memset(map, 0, sizeof(*map));
	walk.error = error;
	if (parse_dump(&walk.dump, map->name, text, error))
		return -1;
	for (reader = 0; reader < NODES && !walk.dump.present[reader]; reader++)
		;
	if (reader == NODES)
		return fail(error, "the dump has no \"node N\"");
	if (check_complete(&walk.dump, error) || find_pieces(&walk, reader))
		return -1;
	return make_regions(&walk, map);
}
