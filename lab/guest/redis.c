// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Clients of a redis-server that listens at a Unix socket.
 *
 * redis fill SOCKET KEYS SEED		set as many keys, each to VALUE bytes
 * redis zipf SOCKET KEYS SEED READS	read them, Zipf-distributed, and check what they are
 * redis benchmark SOCKET KEYS SEED N	redis-benchmark: set and get keys at random, N times each
 *
 * All but the first print the number of requests and the cycles that they took.
 */
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "draw.h"

#define VALUE	1000
#define KEY	"key:%012lu"	/* as redis-benchmark calls them */
#define AT_ONCE	32		/* keys are set */

static FILE *to, *from;

static void connect_to(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)))
		err(1, "%s", path);
	to = fdopen(fd, "w");
	from = fdopen(dup(fd), "r");
	if (!to || !from)
		err(1, "%s", path);
}

/* A third of it is no use to compress. */
static void value_of(unsigned long key, char *value)
{
	uint64_t state = key;
	int i;

	for (i = 0; i < VALUE; i++)
		value[i] = i < VALUE / 3 ? 'a' + draw(&state) % 26 : 'A' + key % 26;
}

static void expect(const char *answer)
{
	char line[64];

	if (!fgets(line, sizeof(line), from) || strcmp(line, answer))
		errx(1, "redis says %s", line);
}

static void fill(unsigned long keys)
{
	unsigned long key, answered = 0;
	char value[VALUE];

	for (key = 0; key < keys; key++) {
		value_of(key, value);
		fprintf(to, "SET " KEY " %.*s\r\n", key, VALUE, value);
		if ((key + 1) % AT_ONCE && key + 1 < keys)
			continue;
		fflush(to);
		for (; answered <= key; answered++)
			expect("+OK\r\n");
	}
}

static void zipf(unsigned long keys, uint64_t seed, unsigned long reads)
{
	const double *sums = zipf_sums(keys);
	char value[VALUE], got[VALUE], header[16];

	snprintf(header, sizeof(header), "$%d\r\n", VALUE);
	for (; reads; reads--) {
		unsigned long key = zipf_rank(&seed, sums, keys) * SPREAD % keys;

		fprintf(to, "GET " KEY "\r\n", key);
		fflush(to);
		expect(header);
		value_of(key, value);
		if (fread(got, VALUE, 1, from) != 1 || memcmp(got, value, VALUE))
			errx(1, "key %lu is not what was set", key);
		expect("\r\n");
	}
}

static void benchmark(char *socket, char *keys, char *requests)
{
	char value[16];
	int status;

	snprintf(value, sizeof(value), "%d", VALUE);
	if (!fork()) {
		if (!freopen("/dev/null", "w", stdout))
			err(1, "/dev/null");
		execlp("redis-benchmark", "redis-benchmark", "-s", socket, "-r", keys, "-d", value,
		       "-n", requests, "-t", "set,get", "-q", NULL);
		err(1, "redis-benchmark");
	}
	if (wait(&status) < 0 || status)
		errx(1, "redis-benchmark failed");
}

int main(int argc, char **argv)
{
	unsigned long long start;

	if (argc < 5)
		errx(2, "usage: redis fill|zipf|benchmark SOCKET KEYS SEED [REQUESTS]");
	connect_to(argv[2]);
	if (!strcmp(argv[1], "fill")) {
		fill(strtoul(argv[3], NULL, 0));
		return 0;
	}
	if (argc < 6)
		errx(2, "how many requests?");
	start = cycles_now();
	if (!strcmp(argv[1], "zipf"))
		zipf(strtoul(argv[3], NULL, 0), strtoul(argv[4], NULL, 0),
		     strtoul(argv[5], NULL, 0));
	else if (!strcmp(argv[1], "benchmark"))
		benchmark(argv[2], argv[3], argv[5]);
	else
		errx(2, "unknown job %s", argv[1]);
	printf("%s %llu\n", argv[5], cycles_now() - start);
	return 0;
}
