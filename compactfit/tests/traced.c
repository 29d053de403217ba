/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What test_traces.c records: calls of sizes that nobody else asks for. It ends as badly as a program
 * can: its parts by _exit(), exec and SIGKILL.
 */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 60000 /* enough for a lock that is missing to show, mostly */

static void require(int holds)
{
	if (!holds)
		_exit(1);
}

/* volatile: compilers know malloc() and free(), and leave out what nobody needs */
static void *volatile kept;
static void *shared[64];

/* Allocate, resize and free, in turns with the other threads; addresses go back and forth. */
static void *hammer(void *argument)
{
	unsigned int state = (unsigned int)(uintptr_t)argument, i;

	for (i = 0; i < ROUNDS; i++) {
		void *object = malloc(50001), *other;

		state = state * 1103515245 + 12345;
		if (state >> 16 & 1)
			object = realloc(object, 50002);
		require(object != NULL);
		other = __atomic_exchange_n(&shared[state >> 20 & 63], object, __ATOMIC_ACQ_REL);
		free(other);
	}
	return NULL;
}

static void calls(void)
{
	void *object, *second = NULL;

	object = malloc(71001);
	object = realloc(object, 71002);
	require(malloc_usable_size(object) >= 71002);
	kept = object;
	free(object);
	kept = calloc(3, 24001);
	kept = reallocarray(kept, 2, 36002);
	require(!reallocarray(kept, (size_t)-1 / 2, 3)); /* changes nothing */
	second = malloc(72900); /* keeps what is allocated next from being where kept was */
	require(!realloc(kept, 0)); /* frees */
	kept = realloc(NULL, 73001);
	require(!malloc((size_t)-1 / 4)); /* leaves no record */
	require(!realloc(kept, (size_t)-1 / 4));
	free(kept);
	free(second);
	require(!posix_memalign(&second, 256, 74001));
	free(second);
	second = aligned_alloc(64, 74048);
	free(second);
	second = memalign(4096, 74003);
	require(!((uintptr_t)second & 4095));
	free(second);
	kept = malloc(75001); /* is never freed */
	free(NULL);
}

int main(int argc, char **argv)
{
	pthread_t threads[4];
	uintptr_t i;
	pid_t child;
	int status;

	if (argc == 2) {
		kept = malloc(77001);
		raise(SIGKILL);
	}
	calls();
	for (i = 0; i < 4; i++)
		require(!pthread_create(&threads[i], NULL, hammer, (void *)(i + 1)));
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	for (i = 0; i < 64; i++)
		free(shared[i]);
	child = fork();
	if (!child) {
		free(kept); /* inherited */
		kept = malloc(76001);
		child = fork();
		if (!child) {
			execl("/proc/self/exe", argv[0], "again", NULL);
			_exit(2);
		}
		waitpid(child, &status, 0);
		_exit(!WIFSIGNALED(status));
	}
	waitpid(child, &status, 0);
	require(WIFEXITED(status) && !WEXITSTATUS(status));
	kept = malloc(75002);
	_exit(0);
}
