// SPDX-License-Identifier: GPL-2.0-only
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "cma_ring.h"
#include "cma_util.h"

static struct {
	int fd;
	struct io_uring_params params;
	char *sq, *cq;
	struct io_uring_sqe *sqes;
} ring;

static char *ring_map(size_t len, off_t what)
{
	void *at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.fd,
			what);

	if (at == MAP_FAILED)
		fail("mmap of a ring: %s", strerror(errno));
	return at;
}

void ring_open(void)
{
	struct io_uring_params *p = &ring.params;

	ring.fd = syscall(SYS_io_uring_setup, 4, p);
	if (ring.fd < 0)
		lack("io_uring", "io_uring_setup: %s", strerror(errno));
	ring.sq = ring_map(p->sq_off.array + p->sq_entries * sizeof(u32), IORING_OFF_SQ_RING);
	ring.cq = ring_map(p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe),
			   IORING_OFF_CQ_RING);
	ring.sqes = (void *)ring_map(p->sq_entries * sizeof(*ring.sqes), IORING_OFF_SQES);
}

static u32 *ring_word(char *base, u32 offset)
{
	return (u32 *)(base + offset);
}

int ring_do(const struct io_uring_sqe *sqe)
{
	const struct io_uring_params *p = &ring.params;
	u32 tail = *ring_word(ring.sq, p->sq_off.tail);
	u32 head = *ring_word(ring.cq, p->cq_off.head);
	const struct io_uring_cqe *cqes = (void *)(ring.cq + p->cq_off.cqes);
	u32 slot = tail & *ring_word(ring.sq, p->sq_off.ring_mask);
	int result;

	ring.sqes[slot] = *sqe;
	ring_word(ring.sq, p->sq_off.array)[slot] = slot;
	__atomic_store_n(ring_word(ring.sq, p->sq_off.tail), tail + 1, __ATOMIC_RELEASE);
	MUST(syscall(SYS_io_uring_enter, ring.fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0));
	if (__atomic_load_n(ring_word(ring.cq, p->cq_off.tail), __ATOMIC_ACQUIRE) == head)
		fail("io_uring_enter returned without a result");
	result = cqes[head & *ring_word(ring.cq, p->cq_off.ring_mask)].res;
	__atomic_store_n(ring_word(ring.cq, p->cq_off.head), head + 1, __ATOMIC_RELEASE);
	return result;
}

void ring_must(int opcode, int fd, void *at, size_t len, off_t off)
{
	const struct io_uring_sqe sqe = {
		.opcode = opcode, .fd = fd, .addr = (uintptr_t)at, .len = len, .off = off,
	};
	int result = ring_do(&sqe);

	if (result != (int)len)
		fail("io_uring operation %d of %zu bytes returned %d", opcode, len, result);
}

int ring_register(void *at, size_t len)
{
	struct iovec iov = { .iov_base = at, .iov_len = len };

	return syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_BUFFERS, &iov, 1);
}

void ring_unregister(void)
{
	MUST(syscall(SYS_io_uring_register, ring.fd, IORING_UNREGISTER_BUFFERS, NULL, 0));
}
