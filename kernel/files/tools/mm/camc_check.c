// SPDX-License-Identifier: GPL-2.0-only
/*
 * camc check: the colors of the pages that a process has. The map is computed by this program's
 * own code from /proc/PID/pagemap, so it is a second opinion on what the kernel hands out.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "camc.h"

#define ENTRIES		4096		/* of pagemap that are read at once */
/* Of an entry, see Documentation/admin-guide/mm/pagemap.rst */
#define PRESENT		(2ULL << 62)
#define SWAPPED		(2ULL << 61)
#define OF_FILE		(2ULL << 60)
#define EXCLUSIVE	(2ULL << 55)
#define FRAME		((2ULL << 54) - 1)
#define KPF_ZERO_PAGE	24

enum kind { HEAP, STACK, DATA, TEXT, ANONYMOUS, FILES, KINDS };

static const char * const kind_names[KINDS] = {
	"heap", "stack", "data", "text", "anonymous", "file",
};

struct tally {
	u64 pages;
	u64 right;
	u64 wrong;
	u64 zero;	/* reads of memory that was never written: one page for all */
	u64 swapped;
};

struct vma {
	u64 start;
	u64 end;
	enum kind kind;
	bool skipped;	/* pages of the kernel's own */
};

struct checker {
	const struct camc_map *map;
	struct set right;
	struct tally tally[KINDS];
	u64 found[CAMC_COLORS];
	u64 outside;	/* of the map and of memory: they are of devices */
	u64 unmapped;	/* of memory that the map lacks */
	u64 zero_frame;
	int flags;	/* of frames: /proc/kpageflags */
};

/* The words of a line of /proc/PID/maps; @name is empty if there is none. */
struct line {
	char *range;
	char *mode;
	char *device;
	char *inode;
	char *name;
};

static bool split_line(char *text, struct line *line)
{
	line->range = next_word(&text);
	line->mode = next_word(&text);
	if (!line->range || !line->mode || !next_word(&text))
		return false;
	line->device = next_word(&text);
	line->inode = next_word(&text);
	line->name = text + strspn(text, " \t");
	return line->inode;
}

static bool of_file(const struct line *line)
{
	return strcmp(line->inode, "0");
}

/* Has the file of this line a mapping with code, so that it is a program or a library? */
static bool has_code(const struct line *lines, unsigned int count, const struct line *file)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		if (lines[i].mode[2] == 'x' && !strcmp(lines[i].inode, file->inode) &&
		    !strcmp(lines[i].device, file->device))
			return true;
	return false;
}

static enum kind kind_of(const struct line *lines, unsigned int count, unsigned int i,
			 const struct vma *before)
{
	const struct line *line = &lines[i];

	if (!of_file(line)) {
		if (!strcmp(line->name, "[heap]"))
			return HEAP;
		if (!strncmp(line->name, "[stack", 6))
			return STACK;
		/* what a program's data lacks in its file lies behind it */
		if (!*line->name && i && before[-1].kind == DATA && before[-1].end == before->start)
			return DATA;
		return ANONYMOUS;
	}
	if (line->mode[3] == 's' || !has_code(lines, count, line))
		return FILES;
	return line->mode[1] == 'w' ? DATA : TEXT;
}

/* The mappings of a process; the caller frees them. */
static unsigned int read_vmas(const char *pid, struct vma **vmas)
{
	char *text = read_text(path_of("/proc/%s/maps", pid)), *rest = text, *word;
	struct line *lines = NULL;
	unsigned int count = 0, i;

	if (!text && (errno == EACCES || errno == EPERM))
		die("process %s is of another user: run as root", pid);
	if (!text)
		die("there is no process %s", pid);
	while ((word = strsep(&rest, "\n"))) {
		lines = allocate(lines, (count + 1) * sizeof(*lines));
		if (split_line(word, &lines[count]))
			count++;
	}
	*vmas = allocate(NULL, (count + 1) * sizeof(**vmas));
	for (i = 0; i < count; i++) {
		struct vma *vma = &(*vmas)[i];
		char *end = strchr(lines[i].range, '-');

		if (end)
			*end++ = '\0';
		if (!end || !parse_hex(lines[i].range, &vma->start) || !parse_hex(end, &vma->end) ||
		    vma->start >= vma->end || strlen(lines[i].mode) < 4)
			die("/proc/%s/maps is not as expected", pid);
		vma->kind = kind_of(lines, count, i, vma);
		vma->skipped = !strncmp(lines[i].name, "[v", 2);	/* vdso, vvar, vsyscall */
	}
	free(lines);
	free(text);
	return count;
}

static bool is_zero(struct checker *checker, u64 frame)
{
	u64 flags;

	if (frame == checker->zero_frame)
		return true;
	if (checker->flags < 0 ||
	    pread(checker->flags, &flags, sizeof(flags), frame * sizeof(flags)) != sizeof(flags) ||
	    !(flags >> KPF_ZERO_PAGE & 1))
		return false;
	checker->zero_frame = frame;
	return true;
}

static void tally_page(struct checker *checker, enum kind kind, u64 entry)
{
	struct tally *tally = &checker->tally[kind];
	u64 frame = entry & FRAME, address;
	bool right = false;
	unsigned int color;

	if (entry & SWAPPED)
		tally->swapped++;
	if (!(entry & PRESENT))
		return;
	if (!frame)
		die("/proc/PID/pagemap hides where pages are: run as root");
	/* the page of zeroes is of no file, and nobody's alone */
	if (!(entry & (OF_FILE | EXCLUSIVE)) && is_zero(checker, frame)) {
		tally->zero++;
		return;
	}
	address = frame * sysconf(_SC_PAGESIZE);
	color = map_color(checker->map, address);
	if (color != CAMC_NOWHERE) {
		checker->found[color]++;
		right = has(&checker->right, color);
	} else if (is_memory(address)) {
		checker->unmapped++;
	} else {
		checker->outside++;
		return;
	}
	tally->pages++;
	tally->right += right;
	tally->wrong += !right;
}

static void tally_vma(struct checker *checker, const struct vma *vma, int pagemap, const char *pid)
{
	static u64 entries[ENTRIES];
	u64 page = vma->start / sysconf(_SC_PAGESIZE), last = vma->end / sysconf(_SC_PAGESIZE);

	while (page < last) {
		u64 count = last - page < ENTRIES ? last - page : ENTRIES, i;
		ssize_t got = pread(pagemap, entries, count * sizeof(*entries),
				    page * sizeof(*entries));

		if (got < (ssize_t)sizeof(*entries))
			die("process %s ended while it was checked", pid);
		count = got / sizeof(*entries);
		for (i = 0; i < count; i++)
			tally_page(checker, vma->kind, entries[i]);
		page += count;
	}
}

/* The colors that a process's threads have; false if it is not colored. */
static bool colors_of(u64 tgid, struct set *colors)
{
	struct table table;
	bool any = false;
	unsigned int i, word;

	read_table(&table);
	for (i = 0; i < table.nr_tasks; i++) {
		const struct owner *owner;

		if (table.tasks[i].tgid != tgid)
			continue;
		owner = owner_of(&table, table.tasks[i].id);
		for (word = 0; owner && word < CAMC_COLORS / 64; word++)
			colors->bits[word] |= owner->colors.bits[word];
		any = any || owner;
	}
	free_table(&table);
	return any;
}

static void print_check(const struct checker *checker, const char *pid, const struct tally *total)
{
	const char *comma = "";
	unsigned int i;

	printf("process %s, map ", pid);
	put_plain(checker->map->name, stdout);
	printf(", its colors: ");
	print_list(&checker->right);
	printf("\n%-10s %9s %9s %9s %9s %9s\n", "", "pages", "right", "wrong", "zero", "swapped");
	for (i = 0; i <= KINDS; i++) {
		const struct tally *tally = i < KINDS ? &checker->tally[i] : total;

		printf("%-10s %9llu %9llu %9llu %9llu %9llu\n", i < KINDS ? kind_names[i] : "total",
		       tally->pages, tally->right, tally->wrong, tally->zero, tally->swapped);
	}
	printf("pages by color: ");
	for (i = 0; i < CAMC_COLORS; i++) {
		if (!checker->found[i])
			continue;
		printf("%s%u: %llu", comma, i, checker->found[i]);
		comma = ", ";
	}
	if (checker->unmapped) {
		printf("%sof memory outside of the map: %llu", comma, checker->unmapped);
		comma = ", ";
	}
	if (checker->outside)
		printf("%sof devices: %llu", comma, checker->outside);
	putchar('\n');
}

static void print_tally(const struct tally *tally)
{
	printf("{\"pages\": %llu, \"right\": %llu, \"wrong\": %llu, ", tally->pages, tally->right,
	       tally->wrong);
	printf("\"zero\": %llu, \"swapped\": %llu}", tally->zero, tally->swapped);
}

static void print_check_json(const struct checker *checker, const char *pid,
			     const struct tally *total)
{
	const char *comma = "";
	unsigned int i;

	printf("{\"pid\": %s, \"map\": ", pid);
	print_string(checker->map->name);
	printf(", \"colors\": ");
	print_json_list(&checker->right);
	printf(", \"kinds\": {");
	for (i = 0; i < KINDS; i++) {
		printf("%s\"%s\": ", i ? ", " : "", kind_names[i]);
		print_tally(&checker->tally[i]);
	}
	printf("}, \"total\": ");
	print_tally(total);
	printf(", \"by_color\": {");
	for (i = 0; i < CAMC_COLORS; i++) {
		if (!checker->found[i])
			continue;
		printf("%s\"%u\": %llu", comma, i, checker->found[i]);
		comma = ", ";
	}
	printf("}, \"unmapped\": %llu, \"outside\": %llu}\n", checker->unmapped,
	       checker->outside);
}

int check_process(const char *pid)
{
	static struct checker checker;
	struct tally total = { 0 };
	unsigned int count, i;
	struct vma *vmas;
	char bad[32];
	int pagemap;
	u64 number;

	if (!parse_decimal(pid, INT_MAX, &number))
		die("check %s: a number of a process", pid);
	checker.map = map_to_check();
	if (options.colors && !parse_list(options.colors, &checker.right, bad, sizeof(bad)))
		die("--colors %s: %s: a list of colors as 0,4-7, each below %u", options.colors,
		    bad, CAMC_COLORS);
	count = read_vmas(pid, &vmas);
	if (!options.colors && (!has_camc() || !colors_of(number, &checker.right)))
		die("process %s has no colors: give some by --colors to check for", pid);
	pagemap = open(path_of("/proc/%s/pagemap", pid), O_RDONLY | O_CLOEXEC);
	if (pagemap < 0)
		die("/proc/%s/pagemap: %s: run as root", pid, strerror(errno));
	checker.flags = open(path_of("/proc/kpageflags"), O_RDONLY | O_CLOEXEC);
	for (i = 0; i < count; i++)
		if (!vmas[i].skipped)
			tally_vma(&checker, &vmas[i], pagemap, pid);
	free(vmas);
	for (i = 0; i < KINDS; i++) {
		total.pages += checker.tally[i].pages;
		total.right += checker.tally[i].right;
		total.wrong += checker.tally[i].wrong;
		total.zero += checker.tally[i].zero;
		total.swapped += checker.tally[i].swapped;
	}
	if (options.json)
		print_check_json(&checker, pid, &total);
	else
		print_check(&checker, pid, &total);
	return total.wrong ? 1 : 0;
}
