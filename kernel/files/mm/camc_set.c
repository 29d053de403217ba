// SPDX-License-Identifier: GPL-2.0-only
/*
 * CAMC: who has which colors, and how programs and administrators say so
 *
 * A set of colors is shared by references: of each thread that has it (current->camc), and of a
 * memory cgroup. Only the thread itself changes its reference, so that it may use it without a
 * lock; what it inherits is copied by fork, before the child runs. The last reference gives the
 * colors back. A set can only grow.
 *
 * camc_mutex protects @camc_users, the list of sets, what is in them and which one a cgroup has.
 * It is taken in page faults, and nothing is allocated or freed with it held.
 */

#define pr_fmt(fmt) "camc: " fmt

#include <linux/camc.h>
#include <linux/cgroup.h>
#include <linux/kobject.h>
#include <linux/memcontrol.h>
#include <linux/mman.h>
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/proc_fs.h>
#include <linux/rcupdate.h>
#include <linux/rcupdate_wait.h>
#include <linux/sched/coredump.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/syscalls.h>
#include <linux/sysfs.h>
#include <linux/uaccess.h>

#include <trace/events/camc.h>

#include "camc.h"

#define CAMC_SET_FLAGS		(CAMC_STRICT | CAMC_FORK | CAMC_EXEC | CAMC_SHARE)

/* See above; a leaf but for zone->lock */
DEFINE_MUTEX(camc_mutex);
LIST_HEAD(camc_sets);

/* How many colors sets of tasks without CAP_SYS_RESOURCE may have together, and have */
static unsigned int camc_limit;
static unsigned int camc_nr_limited;

static unsigned int camc_last_id;

/* How many sets have each color; written under camc_mutex. And how many of them do not share. */
static unsigned int camc_users[CAMC_MAX_COLORS];
static unsigned int camc_alone[CAMC_MAX_COLORS];

/* ------ who has what ---------------------------------------------------- */

/* Has anybody the color of the page? It may change at once. */
bool camc_taken(unsigned long pfn)
{
	unsigned int color = camc_map_color(camc_map, pfn);

	return color != CAMC_NO_COLOR && READ_ONCE(camc_users[color]);
}

/* Pages that a node (NUMA_NO_NODE: the machine) has of a color: O(zones) */
static unsigned long camc_total(unsigned int color, int nid)
{
	unsigned long sum = 0;
	struct zone *zone;

	for_each_populated_zone(zone)
		if (zone->camc && (nid == NUMA_NO_NODE || zone_to_nid(zone) == nid))
			sum += zone->camc->total[color];
	return sum;
}

unsigned int camc_nr_taken(void)
{
	unsigned int color, sum = 0;

	for (color = 0; color < CAMC_MAX_COLORS; color++)
		sum += !!READ_ONCE(camc_users[color]);
	return sum;
}

static void camc_use(struct camc_set *set, unsigned int color)
{
	WRITE_ONCE(camc_users[color], camc_users[color] + 1);
	camc_alone[color] += !(set->flags & CAMC_SHARE);
	camc_nr_limited += set->limited;
}

static void camc_unuse(struct camc_set *set, unsigned int color)
{
	WRITE_ONCE(camc_users[color], camc_users[color] - 1);
	camc_alone[color] -= !(set->flags & CAMC_SHARE);
	camc_nr_limited -= set->limited;
}

/* How many sets have a color, but for one (or NULL) that is about to be given back */
static unsigned int camc_others(unsigned int color, const struct camc_set *old)
{
	return camc_users[color] - (old && test_bit(color, old->colors));
}

/*
 * May the set have a color for all that others have it? It has to ask for it; and whoever is not
 * privileged needs that all of these share: they may rely on its memory.
 */
static bool camc_may_have(const struct camc_set *set, unsigned int color,
			  const struct camc_set *old)
{
	unsigned int alone = camc_alone[color];

	if (!camc_others(color, old))
		return true;
	if (old && test_bit(color, old->colors))
		alone -= !(old->flags & CAMC_SHARE);
	return set->flags & CAMC_SHARE && !(set->limited && alone);
}

/*
 * Add @nr colors of the set's node that the fewest sets have, those of the old one first: they have
 * the task's pages, and no more are taken until it is given back. O(colors), with CAMC_SHARE * sets
 */
static int camc_choose(struct camc_set *set, unsigned int nr, const struct camc_set *old)
{
	unsigned int i, color, users, level = 0, next, all = camc_map->nr_colors;

	for (; nr; level = next) {
		next = UINT_MAX;
		/* twice: what the old one has, then all else */
		for (i = old ? 0 : all; nr && i < 2 * all; i++) {
			bool own = i < all;

			color = i % all;
			if (old && test_bit(color, old->colors) != own)
				continue;
			if (!camc_total(color, set->nid) || !camc_may_have(set, color, old))
				continue;
			users = camc_others(color, old);
			if (users == level) {
				__set_bit(color, set->colors);
				nr--;
			} else if (users > level) {
				next = min(next, users);
			}
		}
		if (nr && next == UINT_MAX)
			return -EBUSY;
	}
	return 0;
}

/*
 * How many more colors limited sets have together when this one has its own as well. Of the old one
 * all are given back if it is gone before anybody else may look (@at_once). Else both are there for
 * as long as their owner likes, who may have a write to his policy or a fault of his mapping wait:
 * then only what both have is not more than before.
 */
static int camc_more(const struct camc_set *set, const struct camc_set *old, bool at_once)
{
	int nr = bitmap_weight(set->colors, CAMC_MAX_COLORS);

	if (!old || !old->limited)
		return nr;
	if (at_once)
		return nr - (int)bitmap_weight(old->colors, CAMC_MAX_COLORS);
	return nr - (int)bitmap_weight_and(set->colors, old->colors, CAMC_MAX_COLORS);
}

/* Who has no more than before is within the limit, even if that is lower by now. */
static int camc_check(const struct camc_set *set, const struct camc_set *old, bool at_once)
{
	int more = camc_more(set, old, at_once);
	unsigned int color;

	for_each_set_bit(color, set->colors, CAMC_MAX_COLORS) {
		if (color >= camc_map->nr_colors || !camc_total(color, NUMA_NO_NODE))
			return -ERANGE;
		if (!camc_may_have(set, color, old))
			return -EBUSY;
	}
	if (set->limited && more > 0 && camc_nr_limited + more > camc_limit)
		return -EDQUOT;
	return 0;
}

/*
 * How many limited colors both sets of an exchange have. It stays so until one of them is gone: one
 * more color, which nobody had, is of one of them only.
 */
static unsigned int camc_twice(const struct camc_set *set)
{
	if (!set->other || !set->limited || !set->other->limited)
		return 0;
	return bitmap_weight_and(set->colors, set->other->colors, CAMC_MAX_COLORS);
}

static void camc_use_all(struct camc_set *set, bool use)
{
	unsigned int color;

	for_each_set_bit(color, set->colors, CAMC_MAX_COLORS)
		use ? camc_use(set, color) : camc_unuse(set, color);
}

/* Which colors the set gets by the policy, if it may have these. Called with camc_mutex held. */
static int camc_find_colors(struct camc_set *set, const struct camc_policy *policy,
			    const struct camc_set *old, bool at_once)
{
	int err = 0;

	if (policy->flags & CAMC_AUTO) {
		bitmap_zero(set->colors, CAMC_MAX_COLORS);
		err = camc_choose(set, policy->nr_colors, old);
	}
	return err ?: camc_check(set, old, at_once);
}

/*
 * Before a set takes colors, switch the static branch on: but for what will be refused, code is not
 * patched on all CPUs. If there are sets, it is on. May sleep.
 */
static int camc_begin(struct camc_set *set, const struct camc_policy *policy)
{
	int err = 0;

	scoped_guard(mutex, &camc_mutex)
		if (list_empty(&camc_sets))
			err = camc_find_colors(set, policy, NULL, false);
	if (!err)
		static_branch_deferred_inc(&camc_key);
	return err;
}

/*
 * Called with camc_mutex held, and the static branch on. It may have been off a moment before,
 * with nobody who sees what is freed: so the first set begins with no color known to be used up.
 * @at_once: the caller gives the old set back before it releases the mutex. If it does not, it
 * gives either of them back later, and what both have counts once until then: nobody gets the old
 * set meanwhile from a task that is here and does not fork.
 */
static int camc_take_colors(struct camc_set *set, const struct camc_policy *policy,
			    struct camc_set *old, bool at_once)
{
	int err;

	/* If nobody else has the old set, its colors are free to choose; else none come back. */
	if (old && refcount_read(&old->ref) > 1)
		old = NULL;
	err = camc_find_colors(set, policy, old, at_once);
	if (!err) {
		if (list_empty(&camc_sets))
			camc_forget_all();
		camc_use_all(set, true);
		if (old && !at_once) {
			set->other = old;
			old->other = set;
			camc_nr_limited -= camc_twice(set);
		}
		set->id = ++camc_last_id;
		list_add_tail(&set->siblings, &camc_sets);
	}
	return err;
}

/* Is the policy in itself right? */
static int camc_check_policy(const struct camc_policy *policy)
{
	bool some = memchr_inv(policy->colors, 0, sizeof(policy->colors));

	if (policy->flags & ~(CAMC_SET_FLAGS | CAMC_AUTO) || policy->nr_pages)
		return -EINVAL;
	if (policy->flags & CAMC_AUTO ? some || !policy->nr_colors : !some)
		return -EINVAL;
	if (policy->nr_colors > CAMC_MAX_COLORS)
		return policy->flags & CAMC_AUTO ? -EBUSY : -EINVAL;
	if (policy->node != CAMC_NODE_LOCAL &&
	    (policy->node < 0 || policy->node >= MAX_NUMNODES || !node_online(policy->node)))
		return -ERANGE;
	return 0;
}

/* A set that nobody knows yet and that has taken no color: to be freed by kfree() */
static struct camc_set *camc_set_alloc(const struct camc_policy *policy, bool limited)
{
	struct camc_set *set;
	unsigned int i;
	int err;

	if (!camc_loaded())
		return ERR_PTR(-ENODEV);
	err = camc_check_policy(policy);
	if (err)
		return ERR_PTR(err);
	set = kzalloc(sizeof(*set), GFP_KERNEL);
	if (!set)
		return ERR_PTR(-ENOMEM);
	refcount_set(&set->ref, 1);
	set->flags = policy->flags & CAMC_SET_FLAGS;
	set->limited = limited;
	set->nid = policy->node == CAMC_NODE_LOCAL ? numa_mem_id() : policy->node;
	for (i = 0; i < CAMC_MAX_COLORS; i++)
		if (policy->colors[i / 64] & BIT_ULL(i % 64))
			__set_bit(i, set->colors);
	return set;
}

/**
 * camc_set_create - a set of colors, with one reference
 * @policy: what is wanted
 * @old: what the caller gives back later, or NULL
 * @limited: whoever asks has no CAP_SYS_RESOURCE
 *
 * May sleep. Errors as prctl(PR_CAMC, CAMC_SET) has them; then nothing has changed. O(colors),
 * with CAMC_AUTO and CAMC_SHARE O(colors * sets).
 */
struct camc_set *camc_set_create(const struct camc_policy *policy, struct camc_set *old,
				 bool limited)
{
	struct camc_set *set = camc_set_alloc(policy, limited);
	int err;

	if (IS_ERR(set))
		return set;
	err = camc_begin(set, policy);
	if (err)
		goto free;
	mutex_lock(&camc_mutex);
	err = camc_take_colors(set, policy, old, false);
	mutex_unlock(&camc_mutex);
	if (!err)
		return set;
	static_branch_slow_dec_deferred(&camc_key);
free:
	kfree(set);
	return ERR_PTR(err);
}

/* Nobody has the set any more, nor its colors. Called with camc_mutex held. */
static void camc_set_gone(struct camc_set *set, unsigned long *free)
{
	unsigned int color;

	list_del(&set->siblings);
	camc_nr_limited += camc_twice(set);
	if (set->other)
		set->other->other = NULL;
	camc_use_all(set, false);
	/* And what a search for one more color, a migration, or mode "walk" left of others */
	for (color = 0; color < CAMC_MAX_COLORS; color++)
		__assign_bit(color, free, !camc_users[color]);
}

/* Afterwards, without it: bring the free pages of the colors home. May sleep. */
static void camc_set_free(struct camc_set *set, const unsigned long *free)
{
	camc_drain_colors(free);
	static_branch_slow_dec_deferred(&camc_key);
	kfree_rcu(set, rcu);
}

/* Give a reference back. May sleep. */
void camc_set_put(struct camc_set *set)
{
	DECLARE_BITMAP(free, CAMC_MAX_COLORS);

	if (!refcount_dec_and_mutex_lock(&set->ref, &camc_mutex))
		return;
	camc_set_gone(set, free);
	mutex_unlock(&camc_mutex);
	camc_set_free(set, free);
}

/* ------ one more color -------------------------------------------------- */

/*
 * From which colors the task may get one more, in bits of @colors: of its node, or of all. False:
 * there are none. May sleep.
 */
bool camc_candidates(unsigned long *colors, bool any_node)
{
	struct camc_set *set = current->camc;
	unsigned int color;
	bool some = false;

	bitmap_zero(colors, CAMC_MAX_COLORS);
	if (set->flags & CAMC_STRICT)
		return false;
	guard(mutex)(&camc_mutex);
	if (set->limited && camc_nr_limited >= camc_limit)
		return false;
	for (color = 0; color < camc_map->nr_colors; color++) {
		if (!camc_users[color] && camc_total(color, any_node ? NUMA_NO_NODE : set->nid)) {
			__set_bit(color, colors);
			some = true;
		}
	}
	return some;
}

unsigned int camc_nr_own(void)
{
	return bitmap_weight(current->camc->colors, CAMC_MAX_COLORS);
}

/*
 * The color of this page, which was a candidate, is the task's from now on. False: it is taken, or
 * another thread of the set, which had @had, was faster: one more color will do for all of them.
 */
bool camc_adopt(const struct page *page, unsigned int had)
{
	unsigned int color = camc_map_color(camc_map, page_to_pfn(page));
	struct camc_set *set = current->camc;

	guard(mutex)(&camc_mutex);
	if (test_bit(color, set->colors))
		return true;
	if (camc_nr_own() > had)
		return false;
	if (camc_users[color] || (set->limited && camc_nr_limited >= camc_limit))
		return false;
	camc_use(set, color);
	set_bit(color, set->colors);
	camc_count(CAMC_SPILLED);
	trace_camc_spill(set->id, color);
	return true;
}

/* ------ fork, exec, exit ------------------------------------------------ */

/* The task, which is the current one or does not run yet, allocates from this set, or NULL. */
static void camc_attach(struct task_struct *task, struct camc_set *set)
{
	static_assert(!offsetof(struct camc_set, colors)); /* for camc_uses_others() */

	/* Pairs with camc_show_task(), which looks into the set. */
	smp_store_release(&task->camc, set);
	task->camc_colors = set ? set->colors : NULL;
}

/*
 * khugepaged has to leave the process alone: the kernel's threads have no colors. This comes before
 * the colors do, or what the task touches first may be a huge page by then. It stays, whatever
 * comes of the colors: another thread may rely on it. Who borrows the address space of another one
 * until execve() must not change it, unless no other task is left there (mm_users has who reads his
 * /proc as well), and gets no huge page meanwhile. in_vfork() does not know all of these: not his
 * threads, nor who was made for the parent's parent (CLONE_PARENT).
 */
static void camc_disable_thp(struct mm_struct *mm)
{
	if (current->camc_vforked && !current_is_single_threaded())
		return;
	mmap_write_lock(mm);
	/* Both at once: mm_init() reads them without the lock. */
	if (!test_bit(MMF_DISABLE_THP, &mm->flags))
		set_mask_bits(&mm->flags, 0, BIT(MMF_DISABLE_THP) | BIT(MMF_CAMC_NO_THP));
	mmap_write_unlock(mm);
}

/*
 * Of a parent that has no huge pages for its colors alone, only a child that will have them, too,
 * inherits that: at once, since khugepaged may see the new address space before fork() is done.
 * execve() begins without. What is disabled without the bit is the program's own wish.
 */
unsigned long __camc_mm_flags(const struct task_struct *task, unsigned long flags)
{
	bool colored = task != current && task->camc && task->camc->flags & CAMC_FORK;
	bool ours = flags & BIT(MMF_CAMC_NO_THP);

	flags = mmf_init_flags(flags);
	/* The bit, too: MMF_INIT_MASK is an int that is negative, and has all from 31 on. */
	if (ours)
		flags &= ~(BIT(MMF_DISABLE_THP) | BIT(MMF_CAMC_NO_THP));
	if (colored && !(flags & BIT(MMF_DISABLE_THP)))
		flags |= BIT(MMF_DISABLE_THP) | BIT(MMF_CAMC_NO_THP);
	return flags;
}

/* Where fork cannot fail any more. A child by vfork() shares until execve(), as a thread does. */
void camc_fork(struct task_struct *child, unsigned long clone_flags)
{
	struct camc_set *set = child->camc;

	if (set && !(clone_flags & CLONE_VM || set->flags & CAMC_FORK))
		set = NULL;
	child->camc_debt = 0;
	if (!(clone_flags & CLONE_THREAD))
		child->camc_borrowed = set && !(set->flags & CAMC_FORK);
	/* Else the same: a thread of his is where he is. */
	if (!(clone_flags & CLONE_VM))
		child->camc_vforked = false;
	else if (clone_flags & CLONE_VFORK && !(clone_flags & CLONE_THREAD))
		child->camc_vforked = true;
	if (set)
		refcount_inc(&set->ref);
	camc_attach(child, set);
}

static void camc_change(struct task_struct *task, struct camc_set *set)
{
	struct camc_set *old = task->camc;

	camc_attach(task, set);
	task->camc_failed = false;
	task->camc_borrowed = false;
	if (old)
		camc_set_put(old);
}

/* After exit_mm(), whose pages go back as those of a colored task */
void __camc_exit(struct task_struct *task)
{
	camc_change(task, NULL);
}

#ifdef CONFIG_MEMCG
/* A reference to the set of the nearest cgroup that has one, or NULL */
static struct camc_set *camc_memcg_get(void)
{
	struct mem_cgroup *memcg;
	struct camc_set *set;

	/* The only user of a set may take its colors for another one: nobody else gets it then. */
	guard(mutex)(&camc_mutex);
	guard(rcu)();
	memcg = mem_cgroup_from_task(current);
	while (memcg && !memcg->camc)
		memcg = parent_mem_cgroup(memcg);
	if (!memcg)
		return NULL;
	set = memcg->camc;
	refcount_inc(&set->ref);
	return set;
}
#else
static struct camc_set *camc_memcg_get(void)
{
	return NULL;
}
#endif

/* Before the new program gets its first page, which holds its arguments */
bool __camc_exec_begin(void)
{
	if (current->camc)
		return false;
	camc_attach(current, camc_memcg_get());
	return current->camc;
}

/* There is no new program: as before. */
void camc_exec_failed(void)
{
	camc_change(current, NULL);
}

/*
 * The task has its new address space. Colors that a user took himself do not reach a program that
 * has more privileges than he (@secure): he could choose where it is the first to have no page.
 */
void __camc_exec(bool secure)
{
	const struct camc_set *set = current->camc;

	/* What does not outlast the old program makes place for the colors of its cgroup. */
	if (current->camc_borrowed || !(set->flags & CAMC_EXEC) || (secure && set->limited))
		camc_change(current, camc_memcg_get());
	if (current->camc)
		camc_disable_thp(current->mm);
}

/* ------ prctl, mmap ----------------------------------------------------- */

static void camc_describe(const struct camc_set *set, struct camc_policy *policy)
{
	unsigned int color;

	memset(policy, 0, sizeof(*policy));
	policy->node = CAMC_NODE_LOCAL;
	if (!set)
		return;
	policy->flags = set->flags;
	policy->node = set->nid;
	for_each_set_bit(color, set->colors, CAMC_MAX_COLORS) {
		policy->colors[color / 64] |= BIT_ULL(color % 64);
		policy->nr_colors++;
	}
}

/* Within the limit the capability is not needed: an audit need not hear of each who lacks it. */
static bool camc_limited(void)
{
	return !ns_capable_noaudit(&init_user_ns, CAP_SYS_RESOURCE);
}

/* The policy is written back before anything is changed: it may be where it cannot be. */
static long camc_set_current(struct camc_policy *policy, void __user *user)
{
	struct camc_set *set = camc_set_create(policy, current->camc, camc_limited());

	if (IS_ERR(set))
		return PTR_ERR(set);
	camc_describe(set, policy);
	if (copy_to_user(user, policy, sizeof(*policy))) {
		camc_set_put(set);
		return -EFAULT;
	}
	if (current->mm)
		camc_disable_thp(current->mm);
	camc_change(current, set);
	return 0;
}

long camc_prctl(unsigned long op, unsigned long arg, unsigned long size, unsigned long zero)
{
	void __user *user = (void __user *)arg;
	struct camc_policy policy;
	unsigned long nr_pages = 0;
	int err;

	if (zero || op < CAMC_SET || op > CAMC_FILL)
		return -EINVAL;
	if (op == CAMC_CLEAR) {
		if (arg || size)
			return -EINVAL;
		camc_change(current, NULL);
		return 0;
	}
	if (size < CAMC_POLICY_SIZE_VER0)
		return -EINVAL;
	if (size > PAGE_SIZE)
		return -E2BIG;
	BUILD_BUG_ON(sizeof(policy) != CAMC_POLICY_SIZE_VER0);
	err = copy_struct_from_user(&policy, sizeof(policy), user, size);
	if (err)
		return err;
	if (!camc_loaded())
		return -ENODEV;
	if (op == CAMC_SET)
		return camc_set_current(&policy, user);
	if (op == CAMC_FILL) {
		nr_pages = policy.nr_pages;
		policy.nr_pages = 0;
	}
	/* What means nothing is 0, so that it may mean something one day. */
	if (memchr_inv(&policy, 0, sizeof(policy)))
		return -EINVAL;
	if (op == CAMC_FILL) {
		if (!current->camc)
			return -ESRCH;
		nr_pages = camc_fill(current->camc->colors, nr_pages, camc_limited());
	}
	camc_describe(current->camc, &policy);
	policy.nr_pages = nr_pages;
	return copy_to_user(user, &policy, sizeof(policy)) ? -EFAULT : 0;
}

/*
 * The call of the paper: see PROT_CAMC. The old colors are kept until the mapping is made, which
 * may get its pages at once, in the new ones.
 */
unsigned long camc_mmap(unsigned long action, unsigned long len, unsigned long prot,
			unsigned long flags, unsigned long fd, unsigned long pgoff)
{
	struct camc_policy policy = {
		.flags = CAMC_AUTO | CAMC_FORK | CAMC_EXEC,
		.node = CAMC_NODE_LOCAL,
	};
	struct camc_set *set = NULL, *old = current->camc;
	unsigned long ret = 0;

	/* The address says something else. */
	if (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE))
		return -EINVAL;
	if (action != CAMC_MMAP_OFF) {
		if (action < CAMC_MMAP_ON || action >= CAMC_MMAP_ON + CAMC_MAX_COLORS)
			return -EINVAL;
		policy.nr_colors = max(action - CAMC_MMAP_ON, 1UL);
		set = camc_set_create(&policy, old, camc_limited());
		if (IS_ERR(set))
			return PTR_ERR(set);
		camc_disable_thp(current->mm);
	}
	camc_attach(current, set);
	if (len)
		ret = ksys_mmap_pgoff(0, len, prot & ~PROT_CAMC, flags, fd, pgoff);
	if (IS_ERR_VALUE(ret)) {
		camc_attach(current, old);
		old = set;
	} else {
		current->camc_failed = false;
		current->camc_borrowed = false;
	}
	if (old)
		camc_set_put(old);
	return ret;
}

/* ------ memory cgroups -------------------------------------------------- */

#ifdef CONFIG_MEMCG
/* @set is the cgroup's from now on, with colors by @policy; or none, for NULL. */
static int camc_memcg_change(struct mem_cgroup *memcg, struct camc_set *set,
			     const struct camc_policy *policy)
{
	DECLARE_BITMAP(free, CAMC_MAX_COLORS);
	struct camc_set *old;
	bool gone = false;
	int err = 0;

	mutex_lock(&camc_mutex);
	old = memcg->camc;
	if (set)
		err = camc_take_colors(set, policy, old, true);
	if (!err) {
		memcg->camc = set;
		/* at once, or the next writer finds them taken */
		gone = old && refcount_dec_and_test(&old->ref);
	}
	if (gone)
		camc_set_gone(old, free);
	mutex_unlock(&camc_mutex);
	if (gone)
		camc_set_free(old, free);
	return err;
}

/* When the cgroup is removed, or memory is not controlled there any more: css may stay for long. */
void camc_memcg_reset(struct mem_cgroup *memcg)
{
	camc_memcg_change(memcg, NULL, NULL);
}

static int camc_parse_policy(char *text, struct camc_policy *policy)
{
	DECLARE_BITMAP(colors, CAMC_MAX_COLORS);
	unsigned int color;
	char *word = strsep(&text, " ");

	*policy = (struct camc_policy){ .flags = CAMC_FORK | CAMC_EXEC, .node = CAMC_NODE_LOCAL };
	if (!strcmp(word, "auto")) {
		word = strsep(&text, " ");
		if (!word || kstrtou32(word, 10, &policy->nr_colors))
			return -EINVAL;
		policy->flags |= CAMC_AUTO;
	} else {
		if (bitmap_parselist(word, colors, CAMC_MAX_COLORS))
			return -EINVAL;
		for_each_set_bit(color, colors, CAMC_MAX_COLORS)
			policy->colors[color / 64] |= BIT_ULL(color % 64);
	}
	while ((word = strsep(&text, " "))) {
		if (!strcmp(word, "strict"))
			policy->flags |= CAMC_STRICT;
		else if (!strcmp(word, "share"))
			policy->flags |= CAMC_SHARE;
		else if (*word)
			return -EINVAL;
	}
	return 0;
}

static ssize_t camc_memcg_write(struct kernfs_open_file *of, char *buf, size_t nbytes, loff_t off)
{
	struct mem_cgroup *memcg = mem_cgroup_from_css(of_css(of));
	struct camc_policy policy;
	struct camc_set *set;
	bool limited;
	int err;

	if (strlen(buf) != nbytes)
		return -EINVAL;
	buf = strstrip(buf);
	if (!strcmp(buf, "none")) {
		camc_memcg_reset(memcg);
		return nbytes;
	}
	/* a list of bits ends with its line */
	err = strchr(buf, '\n') ? -EINVAL : camc_parse_policy(buf, &policy);
	if (err)
		return err;
	/* also of who opened the file: a privileged task may only write for it */
	limited = camc_limited() || !file_ns_capable(of->file, &init_user_ns, CAP_SYS_RESOURCE);
	set = camc_set_alloc(&policy, limited);
	if (IS_ERR(set))
		return PTR_ERR(set);
	set->cgroup = true;
	/* Before a program may get it, and not with the mutex. */
	err = camc_begin(set, &policy);
	if (err)
		goto free;
	err = camc_memcg_change(memcg, set, &policy);
	if (!err)
		return nbytes;
	static_branch_slow_dec_deferred(&camc_key);
free:
	kfree(set);
	return err;
}

static int camc_memcg_show(struct seq_file *m, void *v)
{
	struct mem_cgroup *memcg = mem_cgroup_from_seq(m);
	struct camc_set *set;

	guard(mutex)(&camc_mutex);
	set = memcg->camc;
	if (set)
		seq_printf(m, "%*pbl%s%s\n", CAMC_MAX_COLORS, set->colors,
			   set->flags & CAMC_STRICT ? " strict" : "",
			   set->flags & CAMC_SHARE ? " share" : "");
	else
		seq_puts(m, "none\n");
	return 0;
}

static struct cftype camc_memcg_files[] = {
	{
		.name = "colors",
		.flags = CFTYPE_NOT_ON_ROOT,
		.seq_show = camc_memcg_show,
		.write = camc_memcg_write,
	},
	{ }
};

static void __init camc_memcg_init(void)
{
	WARN_ON(cgroup_add_dfl_cftypes(&memory_cgrp_subsys, camc_memcg_files));
}
#else
static void __init camc_memcg_init(void) { }
#endif

/* ------ /proc/camc ------------------------------------------------------ */

static void camc_show_set(struct seq_file *m, const struct camc_set *set)
{
	seq_printf(m, "set %u %s%s%s%s%s %*pbl\n", set->id,
		   set->flags & CAMC_STRICT ? "strict" : "spill",
		   set->flags & CAMC_FORK ? ",fork" : "", set->flags & CAMC_EXEC ? ",exec" : "",
		   set->flags & CAMC_SHARE ? ",share" : "", set->cgroup ? ",cgroup" : "",
		   CAMC_MAX_COLORS, set->colors);
}

static void camc_show_task(struct seq_file *m, struct task_struct *task, struct pid_namespace *ns)
{
	const struct camc_set *set = READ_ONCE(task->camc);
	unsigned long pages = 0;

	if (!set)
		return;
	task_lock(task);
	if (task->mm)
		pages = get_mm_rss(task->mm);
	seq_printf(m, "task %d %d %u %lu ", task_tgid_nr_ns(task, ns),
		   task_pid_nr_ns(task, ns), set->id, pages);
	/* whose own choice it is: no line of another */
	seq_escape_str(m, task->comm, ESCAPE_SPACE | ESCAPE_SPECIAL, "\n\\");
	seq_putc(m, '\n');
	task_unlock(task);
}

static int camc_proc_show(struct seq_file *m, void *v)
{
	struct pid_namespace *ns = proc_pid_ns(file_inode(m->file)->i_sb);
	struct camc_set *set;
	struct pid *pid;
	int nr = 1;

	mutex_lock(&camc_mutex);
	list_for_each_entry(set, &camc_sets, siblings)
		camc_show_set(m, set);
	mutex_unlock(&camc_mutex);

	/* Anybody may read it, and have many threads: preemption is off for one at a time. */
	rcu_read_lock();
	while (!seq_has_overflowed(m) && (pid = find_ge_pid(nr, ns))) {
		struct task_struct *task = pid_task(pid, PIDTYPE_PID);

		nr = pid_nr_ns(pid, ns) + 1;
		if (task)
			camc_show_task(m, task, ns);
		cond_resched_rcu();
	}
	rcu_read_unlock();
	return 0;
}

/* ------ /sys/kernel/mm/camc --------------------------------------------- */

/* One writer of a map at a time */
static DEFINE_MUTEX(camc_load_mutex);
static char *camc_text;		/* of the map, as it was written */

static ssize_t map_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	guard(mutex)(&camc_load_mutex);
	return sysfs_emit(buf, "%s", camc_text ?: "");
}

static int camc_map_load(const char *buf)
{
	struct camc_map *map;
	char *text;
	int err;

	guard(mutex)(&camc_load_mutex);
	if (camc_map)
		return -EBUSY;
	text = kstrdup(buf, GFP_KERNEL);
	if (!text)
		return -ENOMEM;
	map = camc_map_parse(text);
	err = PTR_ERR_OR_ZERO(map);
	if (!err) {
		err = camc_map_check(map);
		if (!err)
			err = camc_load(map);
		if (err)
			kvfree(map);
	}
	if (err) {
		kfree(text);
		return err;
	}
	camc_text = text;
	pr_info("map %s: %u colors\n", map->name, map->nr_colors);
	return 0;
}

static ssize_t map_store(struct kobject *kobj, struct kobj_attribute *attr, const char *buf,
			 size_t count)
{
	int err;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (count >= 4096)
		return -ENOSPC;
	if (strlen(buf) != count) {
		pr_err("map: a byte of 0 in it: write text\n");
		return -EINVAL;
	}
	err = camc_map_load(buf);
	return err ?: count;
}

static ssize_t colors_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	const struct camc_map *map = camc_loaded();

	return sysfs_emit(buf, "%u\n", map ? map->nr_colors : 0);
}

static ssize_t refill_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, READ_ONCE(camc_refill_mode) == CAMC_WALK ? "directed [walk]\n" :
									 "[directed] walk\n");
}

static ssize_t refill_store(struct kobject *kobj, struct kobj_attribute *attr, const char *buf,
			    size_t count)
{
	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (sysfs_streq(buf, "directed"))
		WRITE_ONCE(camc_refill_mode, CAMC_DIRECTED);
	else if (sysfs_streq(buf, "walk"))
		WRITE_ONCE(camc_refill_mode, CAMC_WALK);
	else
		return -EINVAL;
	return count;
}

static ssize_t limit_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", READ_ONCE(camc_limit));
}

static ssize_t limit_store(struct kobject *kobj, struct kobj_attribute *attr, const char *buf,
			   size_t count)
{
	unsigned int limit;
	int err;

	/* Not by the owner of the file alone: it is what those without the capability may have. */
	if (!capable(CAP_SYS_RESOURCE))
		return -EPERM;
	err = kstrtouint(buf, 10, &limit);
	if (err)
		return err;
	guard(mutex)(&camc_mutex);
	WRITE_ONCE(camc_limit, limit);
	return count;
}

static struct kobj_attribute camc_map_attr = __ATTR_RW(map);
static struct kobj_attribute camc_colors_attr = __ATTR_RO(colors);
static struct kobj_attribute camc_refill_attr = __ATTR_RW(refill);
static struct kobj_attribute camc_limit_attr = __ATTR_RW(limit);

static const struct attribute *const camc_attrs[] = {
	&camc_map_attr.attr, &camc_colors_attr.attr, &camc_refill_attr.attr,
	&camc_limit_attr.attr, NULL,
};

static const char * const camc_stat_names[] = {
	"free", "taken",
	"allocated", "refills", "refilled", "returned", "drained", "scanned",	/* camc_zone_stat */
	"spilled", "exhausted", "foreign", "kept", "lost",			/* camc_event */
};

#define CAMC_NR_STATS	ARRAY_SIZE(camc_stat_names)

static struct kobj_attribute camc_stats[CAMC_NR_STATS];

static unsigned long camc_stat(unsigned int stat)
{
	unsigned long sum = 0;
	struct zone *zone;

	BUILD_BUG_ON(CAMC_NR_STATS != 2 + CAMC_NR_ZONE_STATS + CAMC_NR_EVENTS);
	if (stat == 1)
		return camc_nr_taken();
	if (stat >= 2 + CAMC_NR_ZONE_STATS)
		return atomic_long_read(&camc_events[stat - 2 - CAMC_NR_ZONE_STATS]);
	for_each_populated_zone(zone) {
		struct camc_zone *cz = zone->camc;

		if (cz) /* they change as we add */
			sum += data_race(stat ? cz->stats[stat - 2] : cz->nr);
	}
	return sum;
}

static ssize_t stat_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%lu\n", camc_stat(attr - camc_stats));
}

static int __init camc_stats_init(struct kobject *camc)
{
	struct kobject *stats = kobject_create_and_add("stats", camc);
	unsigned int i;
	int err = -ENOMEM;

	for (i = 0; stats && i < CAMC_NR_STATS; i++) {
		struct kobj_attribute *attr = &camc_stats[i];

		sysfs_attr_init(&attr->attr);
		attr->attr.name = camc_stat_names[i];
		attr->attr.mode = 0444;
		attr->show = stat_show;
		err = sysfs_create_file(stats, &attr->attr);
		if (err)
			break;
	}
	return err;
}

static int __init camc_init(void)
{
	struct kobject *camc = kobject_create_and_add("camc", mm_kobj);
	int err;

	if (!camc)
		return -ENOMEM;
	err = sysfs_create_files(camc, (const struct attribute **)camc_attrs);
	if (!err)
		err = camc_stats_init(camc);
	if (err) {
		kobject_put(camc);
		return err;
	}
	proc_create_single("camc", 0444, NULL, camc_proc_show);
	camc_memcg_init();
	return 0;
}
subsys_initcall(camc_init);
