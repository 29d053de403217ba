// SPDX-License-Identifier: GPL-2.0-only
/*
 * How a driver rents out the memory of its device
 *
 * /dev/rental-example stands for a video codec that needs a part of the default CMA area
 * while somebody has it open, at the same place each time. All that a driver does about
 * rental memory is in example_open() and example_release(); see
 * Documentation/mm/rental.rst. mmap() of the device shows the memory.
 */

#include <linux/cma.h>
#include <linux/dma-map-ops.h>
#include <linux/highmem.h>
#include <linux/init.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/rental.h>

static unsigned long first;
module_param(first, ulong, 0644);
MODULE_PARM_DESC(first, "first page of the device's memory, from the beginning of the area");

static unsigned long pages = 1024;
module_param(pages, ulong, 0644);
MODULE_PARM_DESC(pages, "how many pages it has");

static DEFINE_MUTEX(example_lock);
static unsigned int example_users;
static unsigned long example_first, example_pages; /* while there are users */

static phys_addr_t example_base(void)
{
	return cma_get_base(dev_get_cma_area(NULL)) + PFN_PHYS(example_first);
}

/* What is there is of other users' files, which nobody is to see by mmap(). */
static void example_clear(void)
{
	unsigned long pfn = PHYS_PFN(example_base()), end = pfn + example_pages;

	for (; pfn < end; pfn++) {
		clear_highpage(pfn_to_page(pfn));
		cond_resched();
	}
}

static int example_open(struct inode *inode, struct file *file)
{
	int ret = 0;

	mutex_lock(&example_lock);
	if (!example_users) {
		example_first = first;
		example_pages = pages;
		ret = return_memory(dev_get_cma_area(NULL), example_first, example_pages);
		if (!ret)
			example_clear();
	}
	if (!ret)
		example_users++;
	mutex_unlock(&example_lock);
	return ret;
}

static int example_release(struct inode *inode, struct file *file)
{
	mutex_lock(&example_lock);
	if (!--example_users)
		rent_memory(dev_get_cma_area(NULL), example_first, example_pages);
	mutex_unlock(&example_lock);
	return 0;
}

/* A mapping has the file open, so the memory is the device's as long as anybody sees it. */
static int example_mmap(struct file *file, struct vm_area_struct *vma)
{
	return vm_iomap_memory(vma, example_base(), PFN_PHYS(example_pages));
}

static const struct file_operations example_fops = {
	.owner = THIS_MODULE,
	.open = example_open,
	.release = example_release,
	.mmap = example_mmap,
};

static struct miscdevice example_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "rental-example",
	.fops = &example_fops,
};

builtin_misc_device(example_device);
