/* SPDX-License-Identifier: GPL-2.0-only */
/* What the parts of camc share; see camc.c. */
#ifndef CAMC_H
#define CAMC_H

#include <stdnoreturn.h>

#include "camc_map.h"

#define SYSFS		"/sys/kernel/mm/camc/"

/* What became of the command line's options. */
struct options {
	const char *colors;
	const char *banks;
	const char *node;
	const char *prefill;
	const char *map;
	const char *page_size;
	const char *delay;
	bool strict;
	bool share;
	bool json;
	bool once;
	bool force;
};

extern struct options options;

extern int error_status;	/* that die() exits with */

/* The kernel's list of colors as 0,4-7 is one, too. */
struct set {
	u64 bits[CAMC_COLORS / 64];
};

/* /proc/camc: sets, and the threads that use them */
struct owner {
	u64 id;
	char flags[64];
	struct set colors;
};

struct task {
	u64 tgid;
	u64 pid;
	u64 id;
	u64 pages;
	char name[64];
};

struct table {
	struct owner *owners;
	unsigned int nr_owners;
	struct task *tasks;
	unsigned int nr_tasks;
};

noreturn void die(const char *format, ...);
void *allocate(void *memory, size_t size);
char *path_of(const char *format, ...);
char *read_text(const char *path);
bool has_camc(void);
void need_camc(void);
u64 read_number(const char *name);
unsigned int parse_count(const char *word, const char *option);
u64 parse_bytes(const char *word, const char *option);
void print_string(const char *text);
int put_plain(const char *text, FILE *file);

bool has(const struct set *set, unsigned int color);
bool parse_list(const char *list, struct set *set, char *bad, size_t size);
void print_list(const struct set *set);
void print_json_list(const struct set *set);

void read_table(struct table *table);
void free_table(struct table *table);
const struct owner *owner_of(const struct table *table, u64 id);
const struct task *user_of(const struct table *table, u64 id);

const struct camc_map *map_to_check(void);
bool is_memory(u64 address);
int map_command(int argc, char **argv);
int check_process(const char *pid);
noreturn void usage(FILE *file);

#endif /* CAMC_H */
