// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guaranteed contiguous memory: /sys/kernel/mm/cma/<area>/
 *
 * See Documentation/ABI/testing/sysfs-kernel-mm-cma.
 */

#include <linux/cma.h>
#include <linux/kobject.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "gcma.h"

static struct gcma *gcma_of_kobj(struct kobject *kobj)
{
	return gcma_of(container_of(kobj, struct cma_kobject, kobj)->cma);
}

/* A file for each counter. */
static ssize_t counter_show(struct kobject *kobj, struct kobj_attribute *attr,
			    char *buf);

static struct kobj_attribute gcma_counter_attrs[GCMA_NR_COUNTERS] = {
#define GCMA_COUNTER(name) __ATTR(name, 0444, counter_show, NULL),
#include <linux/gcma_counters.h>
};

static ssize_t counter_show(struct kobject *kobj, struct kobj_attribute *attr,
			    char *buf)
{
	enum vm_event_item item = GCMA_stores + (attr - gcma_counter_attrs);

	return sysfs_emit(buf, "%lu\n", gcma_counter(gcma_of_kobj(kobj), item));
}

/* Frames whose tenant can be loaded. O(area), a snapshot of moving things. */
static ssize_t gcma_show_tenants(struct kobject *kobj, char *buf, u32 swap)
{
	struct gcma *g = gcma_of_kobj(kobj);
	unsigned long frame, sum = 0;

	for (frame = 0; frame < g->cma->count; frame++) {
		u32 word = atomic_read(&g->frames[frame].word);

		sum += (word & GCMA_STATE_MASK) == GCMA_STORED &&
		       (word & GCMA_SWAP_BIT) == swap && !gcma_revoked(g, frame);
		cond_resched();
	}
	return sysfs_emit(buf, "%lu\n", sum);
}

static ssize_t tenants_file_show(struct kobject *kobj,
				 struct kobj_attribute *attr, char *buf)
{
	return gcma_show_tenants(kobj, buf, 0);
}

static ssize_t tenants_swap_show(struct kobject *kobj,
				 struct kobj_attribute *attr, char *buf)
{
	return gcma_show_tenants(kobj, buf, GCMA_SWAP_BIT);
}

static struct kobj_attribute tenants_file_attr = __ATTR_RO(tenants_file);
static struct kobj_attribute tenants_swap_attr = __ATTR_RO(tenants_swap);

static const char * const gcma_admissions[] = {
	[GCMA_ADMIT_ADAPTIVE]	= "adaptive",
	[GCMA_ADMIT_ALWAYS]	= "always",
	[GCMA_ADMIT_SELDOM]	= "seldom",
};

static ssize_t admission_show(struct kobject *kobj,
			      struct kobj_attribute *attr, char *buf)
{
	struct gcma *g = gcma_of_kobj(kobj);

	return sysfs_emit(buf, "%s\n",
			  gcma_admissions[READ_ONCE(g->admission)]);
}

static ssize_t admission_store(struct kobject *kobj,
			       struct kobj_attribute *attr, const char *buf,
			       size_t len)
{
	struct gcma *g = gcma_of_kobj(kobj);
	int ret = sysfs_match_string(gcma_admissions, buf);

	if (ret < 0)
		return ret;
	WRITE_ONCE(g->admission, ret);
	return len;
}

static struct kobj_attribute admission_attr = __ATTR_RW(admission);

#ifdef CONFIG_GCMA_DIRTY
static const char * const gcma_swap_policies[] = {
	[GCMA_WRITE_THROUGH]	= "write-through",
	[GCMA_WRITE_BACK]	= "write-back",
	[GCMA_PUT_BACK]		= "put-back",
	[GCMA_MOVE_ASIDE]	= "move-aside",
};

static ssize_t swap_policy_show(struct kobject *kobj,
				struct kobj_attribute *attr, char *buf)
{
	struct gcma *g = gcma_of_kobj(kobj);

	return sysfs_emit(buf, "%s\n", gcma_swap_policies[READ_ONCE(g->swap_policy)]);
}

static ssize_t swap_policy_store(struct kobject *kobj,
				 struct kobj_attribute *attr, const char *buf,
				 size_t len)
{
	int ret = sysfs_match_string(gcma_swap_policies, buf);

	if (ret >= 0)
		ret = gcma_set_swap_policy(gcma_of_kobj(kobj), ret);
	return ret < 0 ? ret : len;
}

static ssize_t dirty_max_show(struct kobject *kobj, struct kobj_attribute *attr,
			      char *buf)
{
	return sysfs_emit(buf, "%u\n", READ_ONCE(gcma_of_kobj(kobj)->dirty_max));
}

static ssize_t dirty_max_store(struct kobject *kobj,
			       struct kobj_attribute *attr, const char *buf,
			       size_t len)
{
	u32 max;
	int ret = kstrtou32(buf, 0, &max);

	if (!ret)
		ret = gcma_set_dirty_max(gcma_of_kobj(kobj), max);
	return ret < 0 ? ret : len;
}

static ssize_t tenants_dirty_show(struct kobject *kobj,
				  struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%lu\n", gcma_nr_dirty(gcma_of_kobj(kobj)));
}

static struct kobj_attribute swap_policy_attr = __ATTR_RW(swap_policy);
static struct kobj_attribute dirty_max_attr = __ATTR_RW(dirty_max);
static struct kobj_attribute tenants_dirty_attr = __ATTR_RO(tenants_dirty);
#endif

static struct attribute *gcma_attrs[] = {
#define GCMA_COUNTER(name) &gcma_counter_attrs[GCMA_##name - GCMA_stores].attr,
#include <linux/gcma_counters.h>
	&tenants_file_attr.attr,
	&tenants_swap_attr.attr,
	&admission_attr.attr,
#ifdef CONFIG_GCMA_DIRTY
	&swap_policy_attr.attr,
	&dirty_max_attr.attr,
	&tenants_dirty_attr.attr,
#endif
	NULL,
};

static umode_t gcma_attr_visible(struct kobject *kobj, struct attribute *attr,
				 int n)
{
	if (attr == &admission_attr.attr && !IS_ENABLED(CONFIG_GCMA_ADMISSION))
		return 0;
	if (attr == &tenants_swap_attr.attr && !IS_ENABLED(CONFIG_GCMA_SWAP))
		return 0;
	return attr->mode;
}

static const struct attribute_group gcma_group = {
	.attrs = gcma_attrs,
	.is_visible = gcma_attr_visible,
};

static int __init gcma_sysfs_add(struct cma *cma, void *unused)
{
	/* no kobject: cma_sysfs_init() failed */
	return cma->cma_kobj && gcma_of(cma) ?
	       sysfs_create_group(&cma->cma_kobj->kobj, &gcma_group) : 0;
}

static int __init gcma_sysfs_init(void)
{
	return cma_for_each_area(gcma_sysfs_add, NULL);
}
device_initcall(gcma_sysfs_init);
