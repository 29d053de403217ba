// SPDX-License-Identifier: GPL-2.0-only
/*
 * camc: run programs on memory colors of their own, load and check address maps, see who has what.
 * See camc.8.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "../../include/uapi/linux/camc.h"
#include "camc.h"

/* camc run */

/* Say which color of the list is taken, and by whom. */
static noreturn void die_taken(const struct set *wanted, bool share)
{
	const char *what = share ? "take another: without CAP_SYS_RESOURCE all have to --share" :
				   "take another, or --share";
	struct table table;
	unsigned int i, color;

	read_table(&table);
	for (i = 0; i < table.nr_owners; i++) {
		const struct owner *owner = &table.owners[i];
		const struct task *task = user_of(&table, owner->id);

		for (color = 0; color < CAMC_COLORS; color++) {
			if (!has(wanted, color) || !has(&owner->colors, color))
				continue;
			if (task)
				die("process %llu (%s) has color %u: %s", task->tgid, task->name,
				    color, what);
			die("a memory cgroup has color %u: %s", color, what);
		}
	}
	die("a color of the list was taken: try again");
}

static noreturn void die_unset(const struct camc_policy *policy, const struct set *wanted,
			       int why)
{
	bool chosen = policy->flags & CAMC_AUTO;
	char where[32] = "this node";

	if (policy->node >= 0)
		snprintf(where, sizeof(where), "node %d", policy->node);
	switch (why) {
	case ENODEV:
		die("no address map is loaded: see camc map list, then camc map load MAP");
	case EBUSY:
		if (!chosen)
			die_taken(wanted, policy->flags & CAMC_SHARE);
		die("fewer than %u colors of %s are free (see camc top): take fewer%s",
		    policy->nr_colors, where,
		    policy->flags & CAMC_SHARE ? "" : ", or --share");
	case ERANGE:
		if (chosen)
			die("%s does not exist or has fewer than %u colors with memory", where,
			    policy->nr_colors);
		die("a color of the list has no memory, or the node does not exist: camc map show");
	case EDQUOT:
		if (!read_number("limit"))
			die("only root may have colors, as long as " SYSFS "limit is 0");
		die("users may have %llu colors together (" SYSFS "limit): take fewer, or be root",
		    read_number("limit"));
	default:
		die("the kernel refused the colors: %s", strerror(why));
	}
}

/* Collect free pages of the colors, so that the first faults find them. */
static void fill_pages(u64 bytes)
{
	u64 pages = (bytes + sysconf(_SC_PAGESIZE) - 1) / sysconf(_SC_PAGESIZE);
	struct camc_policy policy = { .nr_pages = pages };

	if (pages > INT_MAX)
		die("--prefill %s: that is more than %d pages", options.prefill, INT_MAX);
	if (prctl(PR_CAMC, CAMC_FILL, &policy, sizeof(policy), 0))
		die("--prefill: %s", strerror(errno));
	if (policy.nr_pages < pages)
		die("--prefill: got %u free pages of these colors, not %llu: see camc(8) for why",
		    policy.nr_pages, pages);
}

static void set_colors(const struct set *wanted, unsigned int number)
{
	struct camc_policy policy = {
		.flags = CAMC_FORK | CAMC_EXEC | (options.strict ? CAMC_STRICT : 0) |
			 (options.share ? CAMC_SHARE : 0) | (options.banks ? 0 : CAMC_AUTO),
		.nr_colors = options.banks ? 0 : number,
		.node = CAMC_NODE_LOCAL,
	};
	u64 node, bytes = 0;

	if (options.node) {
		if (!parse_decimal(options.node, INT_MAX, &node))
			die("--node %s: a number of a NUMA node", options.node);
		policy.node = node;
	}
	if (options.prefill)
		bytes = parse_bytes(options.prefill, "--prefill");
	if (options.banks)
		memcpy(policy.colors, wanted->bits, sizeof(policy.colors));
	if (prctl(PR_CAMC, CAMC_SET, &policy, sizeof(policy), 0))
		die_unset(&policy, wanted, errno);
	if (options.prefill)
		fill_pages(bytes);
}

static int run_command(char **command)
{
	struct set wanted = { { 0 } };
	unsigned int number = 1, color;
	char bad[32];
	u64 colors;

	error_status = 125;
	if (!*command)
		die("run what? camc run [--colors N | --banks LIST] -- COMMAND");
	if (options.colors && options.banks)
		die("--colors is how many, --banks is which: choose one");
	if (options.colors)
		number = parse_count(options.colors, "--colors");
	if (options.banks && !parse_list(options.banks, &wanted, bad, sizeof(bad)))
		die("--banks %s: %s: a list of colors as 0,4-7, each below %u", options.banks, bad,
		    CAMC_COLORS);
	need_camc();
	colors = read_number("colors");
	if (!colors)
		die("no address map is loaded: see camc map list, then camc map load MAP");
	if (number > colors)
		die("this machine has %llu colors, not %u", colors, number);
	for (color = colors; color < CAMC_COLORS; color++)
		if (has(&wanted, color))
			die("there is no color %u: this machine has 0 to %llu", color, colors - 1);
	set_colors(&wanted, number);
	execvp(command[0], command);
	error_status = errno == ENOENT ? 127 : 126;
	die("%s: %s", command[0], strerror(errno));
}

/* camc top */

static const char * const stats[] = {
	"free", "taken", "allocated", "refills", "refilled", "returned", "drained", "scanned",
	"spilled", "exhausted", "foreign", "kept", "lost",
};

#define STATS	(sizeof(stats) / sizeof(*stats))

static u64 read_stat(unsigned int stat)
{
	char name[32];

	snprintf(name, sizeof(name), "stats/%s", stats[stat]);
	return read_number(name);
}

/* Is this the first thread of its process that has the set? Processes are listed once a set. */
static bool is_first(const struct table *table, unsigned int task)
{
	unsigned int i;

	for (i = 0; i < task; i++)
		if (table->tasks[i].id == table->tasks[task].id &&
		    table->tasks[i].tgid == table->tasks[task].tgid)
			return false;
	return true;
}

static void print_top(const struct table *table)
{
	unsigned int i, j;

	printf("%llu colors; tasks without CAP_SYS_RESOURCE may take %llu together\n",
	       read_number("colors"), read_number("limit"));
	for (i = 0; i < STATS; i++)
		printf("%s%s %llu", i ? ", " : "", stats[i], read_stat(i));
	putchar('\n');
	for (i = 0; i < table->nr_owners; i++) {
		const struct owner *owner = &table->owners[i];

		printf("\nset %llu: ", owner->id);
		print_list(&owner->colors);
		printf(" (");
		put_plain(owner->flags, stdout);
		printf(")\n");
		if (user_of(table, owner->id))
			printf("%10s %10s  %s\n", "process", "pages", "name");
		else
			printf("%10s\n", "nobody");
		for (j = 0; j < table->nr_tasks; j++) {
			if (table->tasks[j].id != owner->id || !is_first(table, j))
				continue;
			printf("%10llu %10llu  ", table->tasks[j].tgid, table->tasks[j].pages);
			put_plain(table->tasks[j].name, stdout);
			putchar('\n');
		}
	}
}

static void print_flags(const char *flags)
{
	char copy[sizeof(((struct owner *)NULL)->flags)];
	char *rest = copy, *word;
	const char *comma = "";

	snprintf(copy, sizeof(copy), "%s", flags);
	putchar('[');
	while ((word = strsep(&rest, ","))) {
		printf("%s", comma);
		print_string(word);
		comma = ", ";
	}
	putchar(']');
}

static void print_top_json(const struct table *table)
{
	unsigned int i, j;

	printf("{\"colors\": %llu, \"limit\": %llu, \"stats\": {", read_number("colors"),
	       read_number("limit"));
	for (i = 0; i < STATS; i++)
		printf("%s\"%s\": %llu", i ? ", " : "", stats[i], read_stat(i));
	printf("}, \"sets\": [");
	for (i = 0; i < table->nr_owners; i++) {
		const struct owner *owner = &table->owners[i];
		const char *comma = "";

		printf("%s{\"id\": %llu, \"flags\": ", i ? ", " : "", owner->id);
		print_flags(owner->flags);
		printf(", \"colors\": ");
		print_json_list(&owner->colors);
		printf(", \"processes\": [");
		for (j = 0; j < table->nr_tasks; j++) {
			if (table->tasks[j].id != owner->id || !is_first(table, j))
				continue;
			printf("%s{\"pid\": %llu, \"pages\": %llu, \"name\": ", comma,
			       table->tasks[j].tgid, table->tasks[j].pages);
			print_string(table->tasks[j].name);
			putchar('}');
			comma = ", ";
		}
		printf("]}");
	}
	printf("]}\n");
}

/* Once, or again and again on a terminal. */
static int top(void)
{
	unsigned int delay = options.delay ? parse_count(options.delay, "--delay") : 2;
	bool live = isatty(STDOUT_FILENO) && !options.once && !options.json;
	struct table table;

	need_camc();
	do {
		read_table(&table);
		if (live)
			printf("\033[H\033[2J");
		if (options.json)
			print_top_json(&table);
		else
			print_top(&table);
		fflush(stdout);
		free_table(&table);
	} while (live && !sleep(delay));
	return 0;
}

/* The command line */

noreturn void usage(FILE *file)
{
	fputs("camc run [--colors N | --banks LIST] [--node N] [--strict] [--share]\n"
	      "         [--prefill SIZE] [--] COMMAND ...\n"
	      "camc map show [MAP]        camc map list         camc map dump\n"
	      "camc map check MAP         camc map convert MAP  camc map load MAP\n"
	      "camc map color MAP ADDRESS ...\n"
	      "         each: [--page-size SIZE]; check, load: [--force]\n"
	      "camc check [--json] [--map MAP] [--colors LIST] PID\n"
	      "camc top [--json] [--once] [--delay SECONDS]\n"
	      "MAP: a file, or a name that camc map list tells. See camc(8).\n", file);
	exit(file == stdout ? 0 : error_status);
}

enum {
	OPT_COLORS = 1, OPT_BANKS, OPT_NODE, OPT_STRICT, OPT_SHARE, OPT_PREFILL, OPT_PAGE_SIZE,
	OPT_JSON, OPT_MAP, OPT_ONCE, OPT_DELAY, OPT_FORCE, OPT_HELP,
};

static const struct option run_options[] = {
	{ "colors", required_argument, NULL, OPT_COLORS },
	{ "banks", required_argument, NULL, OPT_BANKS },
	{ "node", required_argument, NULL, OPT_NODE },
	{ "strict", no_argument, NULL, OPT_STRICT },
	{ "share", no_argument, NULL, OPT_SHARE },
	{ "prefill", required_argument, NULL, OPT_PREFILL },
	{ "help", no_argument, NULL, OPT_HELP },
	{ NULL, 0, NULL, 0 },
};

static const struct option map_options[] = {
	{ "page-size", required_argument, NULL, OPT_PAGE_SIZE },
	{ "force", no_argument, NULL, OPT_FORCE },
	{ "help", no_argument, NULL, OPT_HELP },
	{ NULL, 0, NULL, 0 },
};

static const struct option check_options[] = {
	{ "json", no_argument, NULL, OPT_JSON },
	{ "map", required_argument, NULL, OPT_MAP },
	{ "colors", required_argument, NULL, OPT_COLORS },
	{ "help", no_argument, NULL, OPT_HELP },
	{ NULL, 0, NULL, 0 },
};

static const struct option top_options[] = {
	{ "json", no_argument, NULL, OPT_JSON },
	{ "once", no_argument, NULL, OPT_ONCE },
	{ "delay", required_argument, NULL, OPT_DELAY },
	{ "help", no_argument, NULL, OPT_HELP },
	{ NULL, 0, NULL, 0 },
};

static void set_option(int option)
{
	switch (option) {
	case OPT_COLORS:
		options.colors = optarg;
		break;
	case OPT_BANKS:
		options.banks = optarg;
		break;
	case OPT_NODE:
		options.node = optarg;
		break;
	case OPT_STRICT:
		options.strict = true;
		break;
	case OPT_SHARE:
		options.share = true;
		break;
	case OPT_PREFILL:
		options.prefill = optarg;
		break;
	case OPT_PAGE_SIZE:
		options.page_size = optarg;
		break;
	case OPT_JSON:
		options.json = true;
		break;
	case OPT_MAP:
		options.map = optarg;
		break;
	case OPT_ONCE:
		options.once = true;
		break;
	case OPT_DELAY:
		options.delay = optarg;
		break;
	case OPT_FORCE:
		options.force = true;
		break;
	case OPT_HELP:
		usage(stdout);
	default:
		usage(stderr);
	}
}

int main(int argc, char **argv)
{
	const struct option *table = NULL;
	const char *verb = argc > 1 ? argv[1] : "";
	int option;

	if (!strcmp(verb, "run")) {
		table = run_options;
		error_status = 125;
	} else if (!strcmp(verb, "map")) {
		table = map_options;
	} else if (!strcmp(verb, "check")) {
		table = check_options;
	} else if (!strcmp(verb, "top")) {
		table = top_options;
	} else {
		usage(!strcmp(verb, "--help") || !strcmp(verb, "help") ? stdout : stderr);
	}
	argv++;
	argc--;
	/* what stands behind a command is the command's */
	while ((option = getopt_long(argc, argv, table == run_options ? "+" : "", table,
				     NULL)) != -1)
		set_option(option);
	argv += optind;
	argc -= optind;
	if (table == run_options)
		return run_command(argv);
	if (table == map_options)
		return map_command(argc, argv);
	if (table == check_options && argc == 1)
		return check_process(argv[0]);
	if (table == top_options && !argc)
		return top();
	usage(stderr);
}
