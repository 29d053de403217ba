// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guaranteed contiguous memory: /sys/kernel/mm/cma/<area>/
 *
 * See Documentation/ABI/testing/sysfs-kernel-mm-cma.
 */

#include <linux/cma.h>
#include <linux/kobject.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "gcma.h"

static struct cma *gcma_to_cma(struct kobject *kobj)
{
	return container_of(kobj, struct cma_kobject, kobj)->cma;
}

/* A file that shows one number, computed from @cma. */
#define GCMA_NUMBER(_name, _number)					\
static ssize_t _name##_show(struct kobject *kobj,			\
			    struct kobj_attribute *attr, char *buf)	\
{									\
	struct cma *cma = gcma_to_cma(kobj);				\
									\
	return sysfs_emit(buf, "%lu\n", _number);			\
}									\
static struct kobj_attribute _name##_attr = __ATTR_RO(_name)

#define GCMA_COUNTER(_name, _item) \
	GCMA_NUMBER(_name, gcma_stat(cma->gcma, _item))

static unsigned long gcma_pages(struct cma *cma, const unsigned long *bitmap)
{
	return (unsigned long)bitmap_weight(bitmap, cma_bitmap_maxno(cma)) <<
	       cma->order_per_bit;
}

/* ------ areas of every policy ----------------------------------------- */

static ssize_t policy_show(struct kobject *kobj, struct kobj_attribute *attr,
			   char *buf)
{
	return sysfs_emit(buf, "%s\n", gcma_policies[gcma_to_cma(kobj)->policy]);
}

static struct kobj_attribute policy_attr = __ATTR_RO(policy);

GCMA_NUMBER(total_pages, cma->count);
GCMA_NUMBER(available_pages, cma->count - gcma_pages(cma, cma->bitmap));

/* ------ areas of policies none and gcma ------------------------------- */

GCMA_NUMBER(quarantined, gcma_pages(cma, cma->gcma->quarantine));
GCMA_NUMBER(tenants_file, gcma_count_tenants(cma->gcma));
GCMA_COUNTER(stores, GCMA_STORES);
GCMA_COUNTER(loads, GCMA_LOADS);
GCMA_COUNTER(misses, GCMA_MISSES);
GCMA_COUNTER(recycles, GCMA_RECYCLES);
GCMA_COUNTER(dropped, GCMA_DROPPED);
GCMA_COUNTER(revoked, GCMA_REVOKED);
GCMA_COUNTER(refused_fs, GCMA_REFUSED_FS);
GCMA_COUNTER(refused_large, GCMA_REFUSED_LARGE);
GCMA_COUNTER(refused_private, GCMA_REFUSED_PRIVATE);
GCMA_COUNTER(refused_admission, GCMA_REFUSED_ADMISSION);
GCMA_COUNTER(refused_busy, GCMA_REFUSED_BUSY);

static const char * const gcma_admissions[] = {
	[GCMA_ADMIT_ADAPTIVE]	= "adaptive",
	[GCMA_ADMIT_ALWAYS]	= "always",
	[GCMA_ADMIT_SELDOM]	= "seldom",
};

static ssize_t admission_show(struct kobject *kobj,
			      struct kobj_attribute *attr, char *buf)
{
	struct gcma *g = gcma_to_cma(kobj)->gcma;

	return sysfs_emit(buf, "%s\n",
			  gcma_admissions[READ_ONCE(g->admission)]);
}

static ssize_t admission_store(struct kobject *kobj,
			       struct kobj_attribute *attr, const char *buf,
			       size_t len)
{
	struct gcma *g = gcma_to_cma(kobj)->gcma;
	int ret = sysfs_match_string(gcma_admissions, buf);

	if (ret < 0)
		return ret;
	WRITE_ONCE(g->admission, ret);
	return len;
}

static struct kobj_attribute admission_attr = __ATTR_RW(admission);

/* So many files from the first on has an area of policy movable, of none. */
#define GCMA_ATTRS_MOVABLE	3
#define GCMA_ATTRS_NONE		4

static struct attribute *gcma_attrs[] = {
	&policy_attr.attr,
	&total_pages_attr.attr,
	&available_pages_attr.attr,
	&quarantined_attr.attr,
	&tenants_file_attr.attr,
	&stores_attr.attr,
	&loads_attr.attr,
	&misses_attr.attr,
	&recycles_attr.attr,
	&dropped_attr.attr,
	&revoked_attr.attr,
	&refused_fs_attr.attr,
	&refused_large_attr.attr,
	&refused_private_attr.attr,
	&refused_admission_attr.attr,
	&refused_busy_attr.attr,
	&admission_attr.attr,
	NULL,
};

static umode_t gcma_attr_visible(struct kobject *kobj, struct attribute *attr,
				 int n)
{
	struct gcma *g = gcma_to_cma(kobj)->gcma;
	int shown = !g ? GCMA_ATTRS_MOVABLE :
			 g->nr_frames ? INT_MAX : GCMA_ATTRS_NONE;

	return n < shown ? attr->mode : 0;
}

static const struct attribute_group gcma_group = {
	.attrs = gcma_attrs,
	.is_visible = gcma_attr_visible,
};

static int __init gcma_sysfs_add(struct cma *cma, void *unused)
{
	/* NULL if cma_sysfs_init() failed */
	return cma->cma_kobj ?
	       sysfs_create_group(&cma->cma_kobj->kobj, &gcma_group) : 0;
}

static int __init gcma_sysfs_init(void)
{
	return cma_for_each_area(gcma_sysfs_add, NULL);
}
device_initcall(gcma_sysfs_init);
