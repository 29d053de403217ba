/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A heap for each thread, objects that go from thread to thread and are freed by remote frees: to be run
 * under ThreadSanitizer. In KTAP. Usage: test_threads [OPERATIONS]
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compactfit.h"

#define THREADS 4
#define HEAP_SIZE (1u << 20)
#define WAITING 64 /* objects that a thread's inbox holds */
#define RING 32 /* fewer: it gets full */

struct message {
	struct worker *owner; /* NULL: none */
	cf_handle handle;
	size_t size;
	unsigned char *at;
};

static struct worker {
	pthread_t thread;
	unsigned int number;
	struct cf_heap *heap;
	pthread_mutex_t lock; /* of the inbox */
	struct message inbox[WAITING];
	size_t nr;
	unsigned long received;
} workers[THREADS];

static unsigned long operations = 20000;
static atomic_bool failed;
static atomic_uint working = THREADS;

static unsigned char byte_of(const struct message *message, size_t i)
{
	return (unsigned char)(message->size * 7 + message->owner->number + i);
}

/* Its owner may wait for this thread in the same way. */
static void give_back(struct worker *self, const struct message *message)
{
	while (cf_free_remote(message->owner->heap, message->handle) == CF_EAGAIN) {
		cf_drain(self->heap, 1);
		sched_yield();
	}
}

/* Use an object that another thread sent. Was there one? */
static bool receive(struct worker *self)
{
	struct message message = { .owner = NULL };
	size_t i;

	pthread_mutex_lock(&self->lock);
	if (self->nr)
		message = self->inbox[--self->nr];
	pthread_mutex_unlock(&self->lock);
	if (!message.owner)
		return false;
	for (i = 0; i < message.size; i++)
		if (message.at[i] != byte_of(&message, i))
			failed = true;
	memset(message.at, 0, message.size);
	self->received++;
	give_back(self, &message);
	return true;
}

/* Was there room in the other's inbox? */
static bool hand_over(struct worker *to, const struct message *message)
{
	bool room;

	pthread_mutex_lock(&to->lock);
	room = to->nr < WAITING;
	if (room)
		to->inbox[to->nr++] = *message;
	pthread_mutex_unlock(&to->lock);
	return room;
}

static void *work(void *argument)
{
	struct worker *self = argument;
	unsigned int random = self->number + 1;
	struct message message;
	unsigned long i;
	size_t j;

	for (i = 0; i < operations; i++) {
		random = random * 1664525 + 1013904223;
		receive(self);
		message = (struct message){ .owner = self, .size = 1 + (random >> 8) % 500 };
		/* not its own memory alone: frees that wait are for the owner to do */
		while (cf_malloc(self->heap, message.size, &message.handle))
			if (!cf_drain(self->heap, 1) && !receive(self))
				sched_yield();
		if (cf_pin(self->heap, message.handle))
			failed = true;
		message.at = cf_deref(self->heap, message.handle, 0);
		for (j = 0; j < message.size; j++)
			message.at[j] = byte_of(&message, j);
		if (!hand_over(&workers[(random >> 24) % THREADS], &message))
			give_back(self, &message);
	}
	/* the others may wait for this one */
	working--;
	while (working)
		if (!cf_drain(self->heap, RING))
			sched_yield();
	return NULL;
}

int main(int argc, char **argv)
{
	static const struct cf_config config = { .remote_frees = RING };
	unsigned long received = 0;
	struct cf_stats stats;
	unsigned int i, j;

	if (argc > 1)
		operations = strtoul(argv[1], NULL, 0);
	for (i = 0; i < THREADS; i++) {
		workers[i].number = i;
		workers[i].heap = cf_init(malloc(HEAP_SIZE), HEAP_SIZE, &config);
		pthread_mutex_init(&workers[i].lock, NULL);
	}
	for (i = 0; i < THREADS; i++)
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	for (i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	/* what is still on its way; no ring is full when an object is given back */
	for (i = 0; i < THREADS; i++)
		do
			for (j = 0; j < THREADS; j++)
				cf_drain(workers[j].heap, RING);
		while (receive(&workers[i]));
	for (i = 0; i < THREADS; i++) {
		received += workers[i].received;
		cf_drain(workers[i].heap, SIZE_MAX);
		cf_get_stats(workers[i].heap, &stats);
		if (stats.objects || stats.remote_failed || cf_verify(workers[i].heap)) {
			printf("# heap %u: %zu objects left, %zu remote frees failed\n", i,
			       stats.objects, stats.remote_failed);
			failed = true;
		}
	}
	if (received < operations)
		failed = true;
	printf("TAP version 14\n1..1\n%sok 1 remote frees lose no object and no byte\n",
	       failed ? "not " : "");
	return failed;
}
