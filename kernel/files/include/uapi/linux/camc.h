/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * Controller- and bank-aware memory coloring (CAMC): the colors of a task
 *
 *	prctl(PR_CAMC, op, struct camc_policy *, size, 0)
 *
 * For meaning, errors and examples see Documentation/admin-guide/mm/camc.rst.
 */
#ifndef _UAPI_LINUX_CAMC_H
#define _UAPI_LINUX_CAMC_H

#include <linux/types.h>

#ifndef PR_CAMC
#define PR_CAMC			0x43414d43	/* "CAMC" */
#endif

/* The second argument */
#define CAMC_SET		1	/* the calling thread has these colors from now on */
#define CAMC_GET		2	/* which it has; none: nr_colors is 0 */
#define CAMC_CLEAR		3	/* none any more; the other arguments are 0 */
#define CAMC_FILL		4	/* have nr_pages free pages of its colors ready */

/* struct camc_policy.flags */
#define CAMC_STRICT		(1 << 0)	/* no other color: SIGBUS at the end */
#define CAMC_FORK		(1 << 1)	/* processes that it forks share its colors */
#define CAMC_EXEC		(1 << 2)	/* execve() keeps them */
#define CAMC_SHARE		(1 << 3)	/* its colors may be others', too */
#define CAMC_AUTO		(1 << 4)	/* the kernel chooses nr_colors of @node */

/* Colors are numbers below this one, on every machine. */
#define CAMC_MAX_COLORS		1024

/* struct camc_policy.node: the node of the CPU that the caller is on */
#define CAMC_NODE_LOCAL		(-1)

/**
 * struct camc_policy - what a thread may allocate from
 *
 * @flags: CAMC_STRICT and so on, none of them: 0
 * @nr_colors: with CAMC_AUTO how many to choose; else ignored by CAMC_SET, but never more than
 *	there is room for. On return how many the thread has.
 * @node: the NUMA node that CAMC_AUTO chooses of, and that one more color is looked for first
 * @nr_pages: CAMC_FILL: how many, on return how many there are; else 0
 * @colors: bit c % 64 of colors[c / 64] is color c. With CAMC_AUTO all 0; on return of every
 *	operation the colors that the thread has.
 *
 * CAMC_GET reads nothing of it, CAMC_FILL @nr_pages only: what they do not read is 0 (else EINVAL).
 *
 * The size tells versions apart, as with sched_setattr(): a longer one than the kernel knows is
 * accepted if the rest is 0 (else E2BIG), of a shorter one the rest is taken as 0, but it has at
 * least CAMC_POLICY_SIZE_VER0 bytes (else EINVAL).
 */
struct camc_policy {
	__u32 flags;
	__u32 nr_colors;
	__s32 node;
	__u32 nr_pages;
	__u64 colors[CAMC_MAX_COLORS / 64];
};

#define CAMC_POLICY_SIZE_VER0	144

/*
 * mmap(action + number of colors, length, prot | PROT_CAMC, flags, fd, offset): the call of the
 * paper. The colors, 1023 at most, are set as by CAMC_SET with CAMC_AUTO | CAMC_FORK | CAMC_EXEC,
 * then the mapping is made at any address; a length of 0 makes none and returns 0.
 */
#define PROT_CAMC		0x40000000
#define CAMC_MMAP_ON		0x10000
#define CAMC_MMAP_OFF		0x20000

#endif /* _UAPI_LINUX_CAMC_H */
