// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guaranteed contiguous memory: tenants that were swapped out
 *
 * A page leaves the swap cache only after it was written to its slot, or to a frame
 * instead (see gcma_dirty.c), and is the slot's content as long as the slot is in use. The
 * slot's place in the swap cache, where the shadow of the page stands, is all the index
 * that a copy of it needs: it is cleared when the slot is freed, and replaced when a folio
 * is added for the slot.
 *
 * Nothing invalidates the content of a slot that is in use. Who has SWAP_HAS_CACHE of a
 * slot is alone with it, so a load needs no second look: unlike in the page cache, nobody
 * could have changed, read or removed the page since.
 *
 * Copies are refused of pages that are read again without I/O: those that are all zeroes,
 * and those in zswap. What zswap writes back to the device passes through the swap cache
 * once more, and is offered then.
 */

#include <linux/swap.h>
#include <linux/swapops.h>
#include <linux/zswap.h>

#include "gcma.h"
#include "internal.h"
#include "swap.h"

/* Is a folio of the swap cache read again without I/O? Its pages have that in common. */
bool gcma_swap_cheap(const struct folio *folio)
{
	swp_entry_t entry = folio->swap;
	bool zeroes;

	swap_zeromap_batch(entry, 1, &zeroes);
	return zeroes || zswap_holds(entry);
}

/* Is a folio of the swap cache read again as fast as from memory? */
bool gcma_swap_fast(const struct folio *folio)
{
	/* Other flags change. */
	return data_race(swp_swap_info(folio->swap)->flags & SWP_SYNCHRONOUS_IO);
}

void *__gcma_swap_load(struct folio *folio, swp_entry_t entry)
{
	struct address_space *mapping = swap_address_space(entry);
	pgoff_t index = swap_cache_index(entry);
	long nr = folio_nr_pages(folio), i;
	void *shadow = NULL, *there, *filled;

	if (gcma_dirty_load(mapping, folio, index, &shadow))
		return shadow;
	/* Before those that are left are dropped; each counts, as each is offered */
	for (i = 0; nr > 1 && i < nr; i++) {
		there = xa_load(&mapping->i_pages, index + i);
		if (gcma_is_tenant(there) && !gcma_alive(there))
			gcma_miss(there, mapping, index + i);
	}
	filled = gcma_fill(mapping, folio, index, &shadow);
	if (filled) {
		folio_mark_uptodate(folio);
		gcma_put_all(filled, GCMA_loads);
	} else if (!shadow && nr == 1) {
		there = xa_load(&mapping->i_pages, index);
		if (gcma_is_tenant(there) && !gcma_alive(there))
			gcma_miss(there, mapping, index);
	}
	return shadow;
}

void *__gcma_swap_added(struct address_space *mapping, pgoff_t index, void *entry,
			const struct folio *folio, void *shadow)
{
	struct gcma *g = NULL;
	u32 frame;

	shadow = shadow ?: gcma_shadow(entry, false);
	if (gcma_is_tenant(entry))
		g = gcma_claim(entry, &frame, mapping, index);
	if (g)
		gcma_put(g, frame, folio_test_uptodate(folio) ? GCMA_loads : GCMA_dropped);
	return shadow;
}

bool __gcma_swap_alive(swp_entry_t entry)
{
	/* Readahead looks at slots of other devices, too. */
	struct swap_info_struct *si = get_swap_device(entry);
	bool alive;

	if (!si)
		return false;
	alive = gcma_alive(xa_load(&swap_address_space(entry)->i_pages,
				   swap_cache_index(entry)));
	put_swap_device(si);
	return alive;
}

bool __gcma_swap_over(swp_entry_t entry)
{
	struct swap_info_struct *si = get_swap_device(entry);
	bool over;

	if (!si)
		return false;
	over = gcma_give_up(swap_address_space(entry), swap_cache_index(entry));
	put_swap_device(si);
	return over;
}
