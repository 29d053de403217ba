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

static ssize_t cma_show_pages(struct cma *cma, const unsigned long *bitmap,
			      bool set, char *buf)
{
	unsigned long bits = bitmap_weight(bitmap, cma_bitmap_maxno(cma));
	unsigned long pages = bits << cma->order_per_bit;

	return sysfs_emit(buf, "%lu\n", set ? pages : cma->count - pages);
}

static ssize_t policy_show(struct kobject *kobj, struct kobj_attribute *attr,
			   char *buf)
{
	return sysfs_emit(buf, "%s\n", cma_of(kobj)->policy->name);
}
static struct kobj_attribute policy_attr = __ATTR_RO(policy);

static ssize_t total_pages_show(struct kobject *kobj,
				struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%lu\n", cma_of(kobj)->count);
}
static struct kobj_attribute total_pages_attr = __ATTR_RO(total_pages);

static ssize_t available_pages_show(struct kobject *kobj,
				    struct kobj_attribute *attr, char *buf)
{
	struct cma *cma = cma_of(kobj);

	return cma_show_pages(cma, cma->bitmap, false, buf);
}
static struct kobj_attribute available_pages_attr = __ATTR_RO(available_pages);

static ssize_t quarantined_show(struct kobject *kobj,
				struct kobj_attribute *attr, char *buf)
{
	struct cma *cma = cma_of(kobj);

	return cma_show_pages(cma, cma->reserve->quarantine, true, buf);
}
static struct kobj_attribute quarantined_attr = __ATTR_RO(quarantined);

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
	/* no kobject: cma_sysfs_init() failed; no policy: the area is not active */
	return cma->cma_kobj && cma->policy ?
	       sysfs_create_group(&cma->cma_kobj->kobj, &cma_policy_group) : 0;
}

static int __init cma_policy_sysfs_init(void)
{
	return cma_for_each_area(cma_policy_sysfs_add, NULL);
}
device_initcall(cma_policy_sysfs_init);
