/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Policies of CMA areas: what an area is used for while nobody has allocated it.
 * See Documentation/admin-guide/mm/cma_policy.rst.
 */
#ifndef _LINUX_CMA_POLICY_H
#define _LINUX_CMA_POLICY_H

struct cma;

#ifdef CONFIG_CMA_RESERVE
void cma_set_policy(struct cma *cma, const char *policy);
#else
static inline void cma_set_policy(struct cma *cma, const char *policy) { }
#endif

#endif /* _LINUX_CMA_POLICY_H */
