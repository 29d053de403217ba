// SPDX-License-Identifier: GPL-2.0-only
/*
 * Policies of CMA areas: /sys/kernel/mm/cma/<area>/
 *
 * See Documentation/ABI/testing/sysfs-kernel-mm-cma.
 */

#include <linux/cma.h>
#include <linux/kobject.h>
#include <linux/sysfs.h>

#include "cma_reserve.h"

static struct cma *cma_of(struct kobject *kobj)
{
	return container_of(kobj, struct cma_kobject, kobj)->cma;
}

static unsigned long cma_pages(struct cma *cma, const unsigned long *bitmap)
{
	return (unsigned long)bitmap_weight(bitmap, cma_bitmap_maxno(cma)) <<
	       cma->order_per_bit;
}

static ssize_t policy_show(struct kobject *kobj, struct kobj_attribute *attr,
			   char *buf)
{
	return sysfs_emit(buf, "%s\n", cma_of(kobj)->policy->name);
}

static struct kobj_attribute policy_attr = __ATTR_RO(policy);

/* A file that shows one number, computed from @cma. */
#define CMA_NUMBER(_name, _number)					\
static ssize_t _name##_show(struct kobject *kobj,			\
			    struct kobj_attribute *attr, char *buf)	\
{									\
	struct cma *cma = cma_of(kobj);					\
									\
	return sysfs_emit(buf, "%lu\n", _number);			\
}									\
static struct kobj_attribute _name##_attr = __ATTR_RO(_name)

CMA_NUMBER(total_pages, cma->count);
CMA_NUMBER(available_pages, cma->count - cma_pages(cma, cma->bitmap));
CMA_NUMBER(quarantined, cma_pages(cma, cma->reserve->quarantine));

static struct attribute *cma_policy_attrs[] = {
	&policy_attr.attr,
	&total_pages_attr.attr,
	&available_pages_attr.attr,
	&quarantined_attr.attr,
	NULL,
};

static umode_t cma_attr_visible(struct kobject *kobj, struct attribute *attr,
				int n)
{
	if (attr == &quarantined_attr.attr && !cma_of(kobj)->reserve)
		return 0;
	return attr->mode;
}

static const struct attribute_group cma_policy_group = {
	.attrs = cma_policy_attrs,
	.is_visible = cma_attr_visible,
};

static int __init cma_policy_sysfs_add(struct cma *cma, void *unused)
{
	/* no kobject: cma_sysfs_init() failed; no pages: the area is not active */
	return cma->cma_kobj && cma->count ?
	       sysfs_create_group(&cma->cma_kobj->kobj, &cma_policy_group) : 0;
}

static int __init cma_policy_sysfs_init(void)
{
	return cma_for_each_area(cma_policy_sysfs_add, NULL);
}
device_initcall(cma_policy_sysfs_init);
