/* SPDX-License-Identifier: GPL-2.0-only */
/* A ring of io_uring, for one operation at a time. */
#ifndef CMA_RING_H
#define CMA_RING_H

#include <linux/io_uring.h>
#include <sys/types.h>

void ring_open(void);			/* without io_uring the test is over */
int ring_do(const struct io_uring_sqe *sqe);	/* to its end; returns the result */
void ring_must(int opcode, int fd, void *at, size_t len, off_t off);
int ring_register(void *at, size_t len);	/* as the only fixed buffer; 0, or -1 and errno */
void ring_unregister(void);

#endif
