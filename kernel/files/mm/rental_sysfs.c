// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rental memory: /sys/kernel/mm/cma/<area>/
 *
 * See Documentation/ABI/testing/sysfs-kernel-mm-cma.
 */

#include <linux/cma.h>
#include <linux/kobject.h>
#include <linux/string.h>
#include <linux/sysfs.h>
#include <linux/workqueue.h>

#include "rental.h"

static struct rental *rental_of_kobj(struct kobject *kobj)
{
	return rental_of(container_of(kobj, struct cma_kobject, kobj)->cma);
}

/* A file for each counter. */
static ssize_t counter_show(struct kobject *kobj, struct kobj_attribute *attr,
			    char *buf);

static struct kobj_attribute rental_counter_attrs[RENTAL_NR_COUNTERS] = {
#define RENTAL_COUNTER(name) __ATTR(name, 0444, counter_show, NULL),
#include <linux/rental_counters.h>
};

static ssize_t counter_show(struct kobject *kobj, struct kobj_attribute *attr,
			    char *buf)
{
	enum vm_event_item item = RENTAL_lends + (attr - rental_counter_attrs);

	return sysfs_emit(buf, "%ld\n", rental_counter(rental_of_kobj(kobj), item));
}

static ssize_t lent_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%lu\n", READ_ONCE(rental_of_kobj(kobj)->nr_lent));
}

static struct kobj_attribute lent_attr = __ATTR_RO(lent);

static const char * const rental_schemes[] = {
	[RENTAL_NOCLEAN]	= "noclean",
	[RENTAL_CLEAN]		= "clean",
	[RENTAL_LAZY]		= "lazy",
	[RENTAL_ADAPTIVE]	= "adaptive",
};

static ssize_t scheme_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%s\n", rental_schemes[READ_ONCE(rental_of_kobj(kobj)->scheme)]);
}

static ssize_t scheme_store(struct kobject *kobj, struct kobj_attribute *attr,
			    const char *buf, size_t len)
{
	struct rental *r = rental_of_kobj(kobj);
	int ret = sysfs_match_string(rental_schemes, buf);

	if (ret < 0)
		return ret;
	WRITE_ONCE(r->scheme, ret);
	/* What is dirty because it was allowed */
	mod_delayed_work(system_wq, &r->clean_work, 0);
	return len;
}

static struct kobj_attribute scheme_attr = __ATTR_RW(scheme);

static struct attribute *rental_attrs[] = {
#define RENTAL_COUNTER(name) &rental_counter_attrs[RENTAL_##name - RENTAL_lends].attr,
#include <linux/rental_counters.h>
	&lent_attr.attr,
	&scheme_attr.attr,
	NULL,
};

static const struct attribute_group rental_group = {
	.attrs = rental_attrs,
};

static int __init rental_sysfs_add(struct cma *cma, void *unused)
{
	/* no kobject: cma_sysfs_init() failed */
	return cma->cma_kobj && rental_of(cma) ?
	       sysfs_create_group(&cma->cma_kobj->kobj, &rental_group) : 0;
}

static int __init rental_sysfs_init(void)
{
	return cma_for_each_area(rental_sysfs_add, NULL);
}
device_initcall(rental_sysfs_init);
