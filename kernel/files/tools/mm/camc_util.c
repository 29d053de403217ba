// SPDX-License-Identifier: GPL-2.0-only
/* camc: files, sets of colors, /proc/camc; see camc.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "camc.h"

#define FILE_MAX	(16 << 20)	/* of a file that is read whole */

struct options options;
int error_status = 2;

/* The bytes of the character of UTF-8 that @text begins with; 0: it is none, or a control */
static unsigned int character(const char *text)
{
	static const u32 least[] = { 0, 0, 0xa0, 0x800, 0x10000 };
	const unsigned char *byte = (const unsigned char *)text;
	unsigned int length, i;
	u32 code;

	if (*byte < 0x80)
		return *byte >= ' ' && *byte != 0x7f;
	if (*byte < 0xc0 || *byte > 0xf4)
		return 0;
	length = *byte >= 0xf0 ? 4 : *byte >= 0xe0 ? 3 : 2;
	code = *byte & (0x7f >> length);
	for (i = 1; i < length; i++) {
		if ((byte[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (byte[i] & 0x3f);
	}
	if (code < least[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return 0;
	return length;
}

/* What somebody else chose, for a terminal; returns how many bytes that were */
int put_plain(const char *text, FILE *file)
{
	int sum = 0;

	while (*text) {
		unsigned int length = character(text);

		if (length)
			sum += fprintf(file, "%.*s", (int)length, text);
		else
			sum += fprintf(file, "\\x%02x", (unsigned char)*text);
		text += length ? length : 1;
	}
	return sum;
}

/* Most of the messages have words of files, or names, in them. */
noreturn void die(const char *format, ...)
{
	static char message[3 * PATH_MAX];
	va_list arguments;

	fflush(stdout);
	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	fputs("camc: ", stderr);
	put_plain(message, stderr);
	fputc('\n', stderr);
	exit(error_status);
}

/* Files */

/* The path below CAMC_ROOT, which is another machine's copy of /proc, /sys and /dev. */
char *path_of(const char *format, ...)
{
	const char *root = getenv("CAMC_ROOT");
	static char path[PATH_MAX];
	int length = snprintf(path, sizeof(path), "%s", root ? root : "");
	va_list arguments;

	va_start(arguments, format);
	length += vsnprintf(path + length, length < PATH_MAX ? sizeof(path) - length : 0, format,
			    arguments);
	va_end(arguments);
	if (length >= PATH_MAX)
		die("a path is longer than %d bytes", PATH_MAX);
	return path;
}

void *allocate(void *memory, size_t size)
{
	memory = realloc(memory, size);
	if (!memory)
		die("out of memory");
	return memory;
}

/* The whole file as text, NULL with errno if it cannot be read. The caller frees it. */
char *read_text(const char *path)
{
	size_t length = 0, size = 1 << 16;
	int file = open(path, O_RDONLY | O_CLOEXEC);
	char *text;
	ssize_t got;

	if (file < 0)
		return NULL;
	text = allocate(NULL, size);
	while ((got = read(file, text + length, size - length - 1)) > 0) {
		length += got;
		if (length > FILE_MAX)
			die("%s is larger than 16 MiB", path);
		if (size - length < 2) {
			size *= 2;
			text = allocate(text, size);
		}
	}
	close(file);
	if (got < 0) {
		free(text);
		return NULL;
	}
	text[length] = '\0';
	if (strlen(text) != length)
		die("%s is no text", path);
	return text;
}

bool has_camc(void)
{
	return !access(path_of(SYSFS "map"), F_OK);
}

void need_camc(void)
{
	if (!has_camc())
		die("this kernel lacks CONFIG_CAMC: see GETTING CAMC in camc(8)");
}

u64 read_number(const char *name)
{
	char *text = read_text(path_of(SYSFS "%s", name));
	u64 value;

	if (!text)
		die(SYSFS "%s: %s", name, strerror(errno));
	text[strcspn(text, "\n")] = '\0';
	if (!parse_decimal(text, ~0ULL, &value))
		die(SYSFS "%s is no number", name);
	free(text);
	return value;
}

/* As JSON, whatever the bytes are */
void print_string(const char *text)
{
	unsigned int length;

	putchar('"');
	for (; *text; text += length ? length : 1) {
		length = character(text);
		if (!length && (unsigned char)*text < 0x80)
			printf("\\u%04x", *text);
		else if (!length)
			printf("\\ufffd");
		else if (*text == '"' || *text == '\\')
			printf("\\%c", *text);
		else
			printf("%.*s", (int)length, text);
	}
	putchar('"');
}

unsigned int parse_count(const char *word, const char *option)
{
	u64 number;

	if (!parse_decimal(word, INT_MAX, &number) || !number)
		die("%s %s: a number from 1 on", option, word);
	return number;
}

u64 parse_bytes(const char *word, const char *option)
{
	static const char units[] = "KMG";
	size_t length = strlen(word);
	const char *unit = length ? strchr(units, word[length - 1]) : NULL;
	char digits[16];
	u64 number;

	snprintf(digits, sizeof(digits), "%.*s", (int)(unit ? length - 1 : length), word);
	if (length >= sizeof(digits) || !parse_decimal(digits, INT_MAX, &number) || !number)
		die("%s %s: a size such as 65536, 64K, 16M, 1G", option, word);
	return unit ? number << 10 * (unit - units + 1) : number;
}

/* Sets of colors, as kernel and user write them: 0,4-7 */

bool has(const struct set *set, unsigned int color)
{
	return set->bits[color / 64] >> color % 64 & 1;
}

static void add(struct set *set, unsigned int color)
{
	set->bits[color / 64] |= 1ULL << color % 64;
}

/* Add the colors of a list; false if it is none. @bad: the word that is wrong. */
bool parse_list(const char *list, struct set *set, char *bad, size_t size)
{
	char *copy = strdup(list), *rest = copy, *word, *last;
	u64 from = 0, to = 0;
	bool good = copy && *copy;

	snprintf(bad, size, "it is empty");
	while (good && (word = strsep(&rest, ","))) {
		snprintf(bad, size, "%s", word);
		last = strchr(word, '-');
		if (last)
			*last++ = '\0';
		good = parse_decimal(word, CAMC_COLORS - 1, &from) &&
		       (!last || parse_decimal(last, CAMC_COLORS - 1, &to)) &&
		       (!last || from <= to);
		for (to = last ? to : from; good && from <= to; from++)
			add(set, from);
	}
	free(copy);
	return good;
}

void print_list(const struct set *set)
{
	const char *comma = "";
	unsigned int first, last;

	for (first = 0; first < CAMC_COLORS; first = last + 1) {
		last = first;
		if (!has(set, first))
			continue;
		while (last + 1 < CAMC_COLORS && has(set, last + 1))
			last++;
		if (last > first)
			printf("%s%u-%u", comma, first, last);
		else
			printf("%s%u", comma, first);
		comma = ",";
	}
}

void print_json_list(const struct set *set)
{
	const char *comma = "";
	unsigned int color;

	putchar('[');
	for (color = 0; color < CAMC_COLORS; color++) {
		if (has(set, color)) {
			printf("%s%u", comma, color);
			comma = ", ";
		}
	}
	putchar(']');
}

/* /proc/camc: who has what */

static void parse_owner(struct table *table, char *rest)
{
	char *id = next_word(&rest), *flags = next_word(&rest), *colors = next_word(&rest);
	struct owner *owner;
	char bad[32];

	table->owners = allocate(table->owners, (table->nr_owners + 1) * sizeof(*owner));
	owner = &table->owners[table->nr_owners++];
	memset(owner, 0, sizeof(*owner));
	if (!id || !parse_decimal(id, ~0ULL, &owner->id) || !flags ||
	    (colors && !parse_list(colors, &owner->colors, bad, sizeof(bad))))
		die("/proc/camc: a line of a set is not as expected: camc is of another version");
	snprintf(owner->flags, sizeof(owner->flags), "%s", flags);
}

static void parse_task(struct table *table, char *rest)
{
	char *words[4];
	struct task *task;
	unsigned int i;

	for (i = 0; i < 4; i++)
		words[i] = next_word(&rest);
	table->tasks = allocate(table->tasks, (table->nr_tasks + 1) * sizeof(*task));
	task = &table->tasks[table->nr_tasks++];
	if (!words[3] || !parse_decimal(words[0], ~0ULL, &task->tgid) ||
	    !parse_decimal(words[1], ~0ULL, &task->pid) ||
	    !parse_decimal(words[2], ~0ULL, &task->id) ||
	    !parse_decimal(words[3], ~0ULL, &task->pages))
		die("/proc/camc: a line of a task is not as expected: camc is of another version");
	snprintf(task->name, sizeof(task->name), "%s", rest);
}

/* Names of tasks may have any character but newline, also #, so lines are taken as they are. */
void read_table(struct table *table)
{
	char *text = read_text(path_of("/proc/camc")), *rest = text, *line;

	if (!text)
		die("/proc/camc: %s", strerror(errno));
	memset(table, 0, sizeof(*table));
	while ((line = strsep(&rest, "\n"))) {
		char *word = next_word(&line);

		if (word && !strcmp(word, "set"))
			parse_owner(table, line);
		else if (word && !strcmp(word, "task"))
			parse_task(table, line);
	}
	free(text);
}

void free_table(struct table *table)
{
	free(table->owners);
	free(table->tasks);
}

const struct owner *owner_of(const struct table *table, u64 id)
{
	unsigned int i;

	for (i = 0; i < table->nr_owners; i++)
		if (table->owners[i].id == id)
			return &table->owners[i];
	return NULL;
}

/* Some task with this set, for messages. */
const struct task *user_of(const struct table *table, u64 id)
{
	unsigned int i;

	for (i = 0; i < table->nr_tasks; i++)
		if (table->tasks[i].id == id)
			return &table->tasks[i];
	return NULL;
}
