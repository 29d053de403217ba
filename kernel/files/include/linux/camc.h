/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Controller- and bank-aware memory coloring (CAMC): what the page allocator and others call
 *
 * Each hook is a static branch as long as nobody has colors. See Documentation/mm/camc.rst.
 */
#ifndef _LINUX_CAMC_H
#define _LINUX_CAMC_H

#include <linux/jump_label_ratelimit.h>
#include <linux/mm_types.h>
#include <linux/mmzone.h>
#include <linux/pagevec.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/sched/coredump.h>
#include <uapi/linux/camc.h>

struct mem_cgroup;

#ifdef CONFIG_CAMC

extern struct static_key_false_deferred camc_key;

/* What only mm/page_alloc.c can do; each is called with zone->lock held, interrupts off. */
void camc_buddy_del(struct zone *zone, struct page *page, unsigned int order, int mt);
void camc_buddy_add(struct zone *zone, struct page *page, unsigned int order, int mt);
void camc_buddy_account(struct zone *zone, int nr_pages, int mt);
void camc_buddy_free(struct zone *zone, struct page *page, int mt);

/* The pages of a zone's per-CPU lists go to the free lists, some @batch in a hold of a lock. */
void camc_pcp_drain(struct zone *zone, int batch);

struct page *camc_rmqueue(struct zone *zone, gfp_t gfp, unsigned int alloc_flags);
bool __camc_free(struct zone *zone, struct page *page);
void __camc_free_folios(struct folio_batch *folios);
void __camc_freed(struct zone *zone, unsigned long pfn, unsigned int order);
void __camc_forget(struct zone *zone);
void camc_drain(struct zone *zone);
void __camc_drain_node(int nid, int highest);
bool camc_taken(unsigned long pfn);
bool camc_has_memory(const struct zone *zone);
bool camc_owns(const struct page *page);
bool camc_candidates(unsigned long *colors, bool any_node);
unsigned int camc_nr_own(void);
bool camc_adopt(const struct page *page, unsigned int had);
void camc_foreign(void);
void camc_lost(void);
void camc_exhausted(void);
void camc_drain_pcp(void);
vm_fault_t __camc_fault(vm_fault_t fault);
struct folio *__camc_migration_target(struct folio *src, gfp_t gfp, int nid, nodemask_t *nodes);
void camc_fork(struct task_struct *child, unsigned long clone_flags);
unsigned long __camc_mm_flags(const struct task_struct *task, unsigned long flags);
void __camc_exit(struct task_struct *task);
bool __camc_exec_begin(void);
void camc_exec_failed(void);
void __camc_exec(bool secure);
void camc_memcg_reset(struct mem_cgroup *memcg);
long camc_prctl(unsigned long op, unsigned long policy, unsigned long size, unsigned long zero);
unsigned long camc_mmap(unsigned long action, unsigned long len, unsigned long prot,
			unsigned long flags, unsigned long fd, unsigned long pgoff);

/* Free memory that NR_FREE_PAGES does not have, in pages */
unsigned long camc_nr_free(void);
unsigned long camc_nr_free_node(int nid);
unsigned long camc_nr_free_zone(const struct zone *zone);
/* ... and NR_FREE_CMA_PAGES */
unsigned long camc_nr_free_cma(void);

static inline bool camc_enabled(void)
{
	return static_branch_unlikely(&camc_key.key);
}

/* Allocate from other colors than the task's own; NULL: from any page. Returns those before. */
static inline const unsigned long *camc_use_colors(const unsigned long *colors)
{
	const unsigned long *before = current->camc_colors;

	current->camc_colors = colors;
	return before;
}

/* Swapped-out pages that are read ahead: no trouble is taken for their colors, as for files' */
static inline gfp_t camc_ahead(gfp_t gfp)
{
	return camc_enabled() && current->camc ? gfp | __GFP_NORETRY | __GFP_NOWARN : gfp;
}

/* Do the colors that are allocated from differ from the task's own? These begin its set. */
static inline bool camc_uses_others(void)
{
	return current->camc_colors != (const unsigned long *)current->camc;
}

/*
 * Is a request, if the task has colors, one for a page of its address space? For pages that are
 * pinned for long, current_gfp_context() has made movable requests unmovable; __GFP_HIGHMEM
 * tells them from those for page tables. Who uses other colors knows what it asks for.
 */
static inline bool camc_for_user(gfp_t gfp, int migratetype)
{
	return migratetype == MIGRATE_MOVABLE || camc_uses_others() ||
	       (current->flags & PF_MEMALLOC_PIN && gfp & __GFP_HIGHMEM);
}

/*
 * Has a request to be met from color lists? Only the task's own, not what it asks for while it
 * reclaims memory of others (PF_MEMALLOC).
 */
static inline bool camc_colored(gfp_t gfp, unsigned int order, int migratetype)
{
	return camc_enabled() && !order && unlikely(current->camc_colors) &&
	       in_task() && !(current->flags & PF_MEMALLOC) && camc_for_user(gfp, migratetype);
}

/* Large folios have pages of many colors: who can do without gets none. */
static inline bool camc_refuses(gfp_t gfp, unsigned int order)
{
	return camc_enabled() && order && unlikely(current->camc_colors) && in_task() &&
	       (gfp & (__GFP_MOVABLE | __GFP_NOWARN | __GFP_RETRY_MAYFAIL | __GFP_NOFAIL)) ==
	       (__GFP_MOVABLE | __GFP_NOWARN);
}

/* A page that has passed free_pages_prepare(): true if it was taken. */
static inline bool camc_free(struct zone *zone, struct page *page, unsigned int order)
{
	return camc_enabled() && !order && unlikely(current->camc) && in_task() &&
	       __camc_free(zone, page);
}

/* The same for a batch, whose folios have their order in ->private. */
static inline void camc_free_folios(struct folio_batch *folios)
{
	if (camc_enabled() && unlikely(current->camc) && in_task())
		__camc_free_folios(folios);
}

/* A block comes to the free lists; zone->lock is held. */
static inline void camc_freed(struct zone *zone, unsigned long pfn, unsigned int order)
{
	if (camc_enabled() && unlikely(zone->camc_watch))
		__camc_freed(zone, pfn, order);
}

/* Free blocks come back from a type that tasks do not allocate from; zone->lock is held. */
static inline void camc_freed_block(struct zone *zone)
{
	if (camc_enabled() && unlikely(zone->camc_watch))
		__camc_forget(zone);
}

/* Memory of the node's zones up to @highest is about to be reclaimed. May sleep. */
static inline void camc_drain_node(int nid, int highest)
{
	if (camc_enabled())
		__camc_drain_node(nid, highest);
}

static inline bool camc_keeps_color(unsigned long pfn)
{
	return camc_enabled() && camc_taken(pfn);
}

/* The page at @pfn is about to be moved to one of any color. */
static inline void camc_moves(unsigned long pfn)
{
	if (camc_keeps_color(pfn))
		camc_lost();
}

/* What failed before is not this fault's. */
static inline void camc_fault_begin(void)
{
	if (camc_enabled())
		current->camc_failed = false;
}

static inline vm_fault_t camc_fault(vm_fault_t fault)
{
	if (camc_enabled() && unlikely(fault & VM_FAULT_OOM))
		return __camc_fault(fault);
	return fault;
}

/*
 * In mm->flags, behind those of <linux/sched/coredump.h>: MMF_DISABLE_THP is set for the colors
 * alone. A new address space, by fork() or execve(), has it if it is a colored task's.
 */
#define MMF_CAMC_NO_THP		32

/*
 * Those of a new address space that @task, the current one or its child, gets, by the current
 * one's, which others may change meanwhile: they are looked at once. A colored child by vfork() has
 * left those of its parent as they were: its own children are not to inherit that.
 */
static inline unsigned long camc_mm_flags(const struct task_struct *task, unsigned long flags)
{
	if (flags & BIT(MMF_CAMC_NO_THP) || unlikely(current->camc && current->camc_vforked))
		return __camc_mm_flags(task, flags);
	return mmf_init_flags(flags);
}

/* The program itself chooses; mmap_lock is held for writing. */
static inline void camc_thp_chosen(struct mm_struct *mm)
{
	clear_bit(MMF_CAMC_NO_THP, &mm->flags);
}

static inline void camc_exit(struct task_struct *task)
{
	if (unlikely(task->camc))
		__camc_exit(task);
}

/* True: the task got colors of its cgroup for it, and camc_exec_failed() takes them back. */
static inline bool camc_exec_begin(void)
{
	return camc_enabled() && __camc_exec_begin();
}

static inline void camc_exec(bool secure)
{
	current->camc_vforked = false;
	if (unlikely(current->camc))
		__camc_exec(secure);
}

#else

static inline bool camc_enabled(void)
{
	return false;
}

static inline bool camc_colored(gfp_t gfp, unsigned int order, int migratetype)
{
	return false;
}

static inline bool camc_refuses(gfp_t gfp, unsigned int order)
{
	return false;
}

static inline struct page *camc_rmqueue(struct zone *zone, gfp_t gfp, unsigned int alloc_flags)
{
	return NULL;
}

static inline bool camc_free(struct zone *zone, struct page *page, unsigned int order)
{
	return false;
}

static inline bool camc_keeps_color(unsigned long pfn)
{
	return false;
}

static inline vm_fault_t camc_fault(vm_fault_t fault)
{
	return fault;
}

static inline struct folio *__camc_migration_target(struct folio *src, gfp_t gfp, int nid,
						    nodemask_t *nodes)
{
	return NULL;
}

static inline long camc_prctl(unsigned long op, unsigned long policy, unsigned long size,
			      unsigned long zero)
{
	return -EINVAL;
}

static inline unsigned long camc_mmap(unsigned long action, unsigned long len, unsigned long prot,
				      unsigned long flags, unsigned long fd, unsigned long pgoff)
{
	return -ENODEV;
}

static inline unsigned long camc_mm_flags(const struct task_struct *task, unsigned long flags)
{
	return mmf_init_flags(flags);
}

static inline const unsigned long *camc_use_colors(const unsigned long *c) { return NULL; }
static inline gfp_t camc_ahead(gfp_t gfp) { return gfp; }
static inline void camc_free_folios(struct folio_batch *folios) { }
static inline void camc_moves(unsigned long pfn) { }
static inline void camc_freed(struct zone *zone, unsigned long pfn, unsigned int order) { }
static inline void camc_freed_block(struct zone *zone) { }
static inline void camc_drain(struct zone *zone) { }
static inline void camc_drain_node(int nid, int highest) { }
static inline void camc_fork(struct task_struct *child, unsigned long clone_flags) { }
static inline void camc_exit(struct task_struct *task) { }
static inline void camc_fault_begin(void) { }
static inline bool camc_exec_begin(void) { return false; }
static inline void camc_exec_failed(void) { }
static inline void camc_thp_chosen(struct mm_struct *mm) { }
static inline void camc_exec(bool secure) { }
static inline void camc_memcg_reset(struct mem_cgroup *memcg) { }
static inline unsigned long camc_nr_free(void) { return 0; }
static inline unsigned long camc_nr_free_node(int nid) { return 0; }
static inline unsigned long camc_nr_free_cma(void) { return 0; }

#endif /* CONFIG_CAMC */
#endif /* _LINUX_CAMC_H */
