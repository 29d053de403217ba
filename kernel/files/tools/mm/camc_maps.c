// SPDX-License-Identifier: GPL-2.0-only
/* camc map: finding, showing, checking and loading address maps. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "camc.h"

#define MAPS		"/usr/share/camc/maps"
#define PCI		"/sys/bus/pci/devices/0000:00:"

static void print_size(u64 bytes)
{
	static const char units[] = "KMGT";
	unsigned int unit = 0;

	bytes >>= 10;
	while (unit < 3 && bytes && !(bytes & 1023)) {
		bytes >>= 10;
		unit++;
	}
	printf("%llu %ciB", bytes, units[unit]);
}

static struct camc_map map;
static struct camc_memory memory;
static struct camc_count counts;
static char error[CAMC_ERROR];

static unsigned int page_shift(void)
{
	u64 size = options.page_size ? parse_bytes(options.page_size, "--page-size") :
		   (u64)sysconf(_SC_PAGESIZE);

	if (size & (size - 1) || size < 1024 || size > 4 << 20)
		die("--page-size %s: a power of two from 1K to 4M", options.page_size);
	return __builtin_ctzll(size);
}

static const char *maps_folder(void)
{
	const char *folder = getenv("CAMC_MAPS");

	return folder && *folder ? folder : MAPS;
}

/* The text of a map: a file, or one of those that are shipped by its name. */
static char *find_map(const char *name)
{
	char path[PATH_MAX];
	char *text = read_text(name);

	if (text)
		return text;
	if (errno != ENOENT || strchr(name, '/'))
		die("%s: %s", name, strerror(errno));
	if (snprintf(path, sizeof(path), "%s/%s.map", maps_folder(), name) >= PATH_MAX)
		die("%s: a name is longer than %d bytes", name, PATH_MAX);
	text = read_text(path);
	if (!text)
		die("there is no file %s, and no map of that name in %s: see camc map list", name,
		    maps_folder());
	return text;
}

/*
 * Which machine is this? A line, or several if it has several names, that "# machine:" lines of
 * shipped maps may have.
 */
static void machine(char *words, size_t size)
{
	static const char * const fields[] = { "vendor_id", "cpu family", "model" };
	int file = open(path_of("/proc/device-tree/compatible"), O_RDONLY | O_CLOEXEC);
	char *text, *rest, *line;
	size_t length = 0;
	unsigned int i;
	ssize_t got;

	memset(words, 0, size);
	if (file >= 0) {
		/* strings that end with zeroes: the board, then families that it belongs to */
		got = read(file, words, size - 1);
		close(file);
		for (; got > 0; got--)
			if (!words[got - 1])
				words[got - 1] = '\n';
		return;
	}
	text = read_text(path_of("/proc/cpuinfo"));
	rest = text;
	/* one processor's lines, in this order */
	for (i = 0; i < 3 && rest && (line = strsep(&rest, "\n")); ) {
		char *value = strchr(line, ':');
		size_t name = strlen(fields[i]);

		if (!value || strncmp(line, fields[i], name) ||
		    line[name + strspn(line + name, "\t ")] != ':')
			continue;
		value += 1 + strspn(value + 1, " ");
		length += snprintf(words + length, size - length, "%s%s", i ? " " : "", value);
		i++;
		if (length >= size)
			break;
	}
	free(text);
}

static bool is_machine(const char *this, const char *wanted)
{
	size_t length = strlen(wanted);

	for (; *this; this += strcspn(this, "\n"), this += *this == '\n')
		if (strcspn(this, "\n") == length && !strncmp(this, wanted, length))
			return true;
	return false;
}

/* The value of a comment such as "# about: text". */
static const char *comment(const char *line, const char *key)
{
	size_t length = strlen(key);

	if (strncmp(line, "# ", 2) || strncmp(line + 2, key, length) || line[length + 2] != ':')
		return NULL;
	return line + length + 3 + strspn(line + length + 3, " ");
}

/* Is the map for this machine, as far as it tells? */
static bool is_for(char *text, const char *this)
{
	bool any = false;
	char *line;

	while ((line = strsep(&text, "\n"))) {
		const char *wanted = comment(line, "machine");

		if (wanted && is_machine(this, wanted))
			return true;
		any = any || wanted;
	}
	return !any;
}

static void parse_map(const char *name, bool here)
{
	char this[256], *text = find_map(name);
	int failed = registers_text(text) ? registers_parse(&map, text, error) :
		     map_parse(&map, text, error);

	if (failed)
		die("%s: %s", name, error);
	machine(this, sizeof(this));
	if (here && !options.force && !is_for(text, this))
		die("%s: the map is for another machine, by its machine lines; --force tries it",
		    name);
	free(text);
}

static u64 read_at(const char *path, off_t offset, size_t size)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	u64 value = 0;

	/* registers and this program's processors are little-endian */
	if (file >= 0 && pread(file, &value, size, offset) != (ssize_t)size)
		value = 0;
	if (file >= 0)
		close(file);
	return value;
}

static void read_chipset(struct camc_chipset *chipset)
{
	const char *bridge = path_of(PCI "00.0/config");

	if (read_at(bridge, 0, 2) == 0x8086) {
		chipset->tom = read_at(bridge, 0xa0, 8) & 0x7ffff00000ULL;
		chipset->tolud = read_at(bridge, 0xbc, 4) & 0xfff00000ULL;
	}
	chipset->top_mem = read_at(path_of("/dev/cpu/0/msr"), 0xc001001aLL, 8) & 0xfffffff800000ULL;
}

/* Memory of this machine, or false: @error says why. */
static bool read_memory(void)
{
	char *text = read_text(path_of("/proc/iomem"));
	bool good;

	if (!text)
		return !fail(error, "/proc/iomem: %s", strerror(errno));
	good = !memory_parse(&memory, text, page_shift(), error);
	free(text);
	return good;
}

static void report_merge(const struct camc_map *before, FILE *file)
{
	unsigned int was = map_bits(before), is = map_bits(&map);
	const struct camc_region *region = map.region;
	unsigned int shift = page_shift();

	if (was == is)
		return;
	put_plain(map.name, file);
	fprintf(file,
		": each page of %u KiB is spread over %u banks, so %u of its %u bits of color remain (%u controller, %u rank, %u bank): banks that pages share are one color\n",
		1U << (shift - 10), 1U << (was - is), is, was, region->counts[0],
		region->counts[1], region->counts[2]);
}

/*
 * From a file's name to a map that the kernel would take. @known: is memory, for all that needs
 * it? With @need it has to be.
 */
static void prepare(const char *name, bool need, bool *known, FILE *report)
{
	static struct camc_map before;
	struct camc_chipset chipset = { 0 };

	parse_map(name, need);
	*known = read_memory();
	if (!*known && (need || map.region[0].to_end))
		die("%s", error);
	read_chipset(&chipset);
	if (map_place(&map, *known ? &memory : NULL, &chipset, page_shift(), error) ||
	    map_check(&map, *known ? &memory : NULL, page_shift(), error))
		die("%s: %s", name, error);
	before = map;
	if (map_eliminate(&map, page_shift(), error) ||
	    (*known && map_count(&map, &memory, page_shift(), &counts, error)))
		die("%s: %s", name, error);
	report_merge(&before, report);
}

static void print_bits(u64 bits)
{
	const char *caret = "";

	for (; bits; bits &= bits - 1) {
		printf("%s%d", caret, __builtin_ctzll(bits));
		caret = " ^ ";
	}
}

static void print_region(const struct camc_region *region)
{
	unsigned int bits = map_bits(&map), i, mask = 0;

	printf("  %llx-%llx node %u (colors %u to %u)", region->start, region->end, region->node,
	       region->node << bits, ((region->node + 1) << bits) - 1);
	if (region->offset)
		printf(", offset %llx", region->offset);
	putchar('\n');
	for (i = 0; i < CAMC_CLASSES; i++) {
		unsigned int last = mask + region->counts[i];

		for (; mask < last; mask++) {
			printf("    %-10s  bit ", camc_class_names[i]);
			print_bits(region->masks[mask].bits);
			putchar('\n');
		}
	}
}

static void print_amounts(void)
{
	u64 least = ~0ULL, most = 0;
	unsigned int color, empty = 0;

	for (color = 0; color < counts.colors; color++) {
		u64 bytes = counts.pages[color] << page_shift();

		if (!bytes) {
			empty++;
			continue;
		}
		if (bytes < least)
			least = bytes;
		if (bytes > most)
			most = bytes;
	}
	printf("%u colors with ", counts.colors - empty);
	print_size(least);
	if (most != least) {
		printf(" to ");
		print_size(most);
	}
	if (empty)
		printf(" of memory each, %u without\n", empty);
	else
		printf(" of memory each\n");
}

static void show_map(bool known)
{
	unsigned int i;

	put_plain(map.name, stdout);
	putchar('\n');
	for (i = 0; i < map.regions; i++)
		print_region(&map.region[i]);
	if (known) {
		print_amounts();
		return;
	}
	printf("how much memory each color has is not known: ");
	put_plain(error, stdout);
	putchar('\n');
}

struct shipped {
	char name[NAME_MAX + 1];
	char about[128];
	bool here;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct shipped *)a)->name, ((const struct shipped *)b)->name);
}

/* The maps in the folder; the caller frees them. */
static unsigned int list_maps(struct shipped **list)
{
	struct dirent *entry;
	unsigned int count = 0;
	char this[256], path[PATH_MAX];
	DIR *folder = opendir(maps_folder());

	*list = NULL;
	machine(this, sizeof(this));
	while (folder && (entry = readdir(folder))) {
		size_t length = strlen(entry->d_name);
		struct shipped *one;
		char *text, *rest, *line;

		if (length < 5 || strcmp(entry->d_name + length - 4, ".map") ||
		    snprintf(path, sizeof(path), "%s/%s", maps_folder(), entry->d_name) >= PATH_MAX)
			continue;
		text = read_text(path);
		if (!text)
			continue;
		*list = allocate(*list, (count + 1) * sizeof(**list));
		one = &(*list)[count++];
		memset(one, 0, sizeof(*one));
		memcpy(one->name, entry->d_name, length - 4);
		rest = text;
		while ((line = strsep(&rest, "\n"))) {
			const char *about = comment(line, "about");
			const char *wanted = comment(line, "machine");

			if (about)
				snprintf(one->about, sizeof(one->about), "%s", about);
			if (wanted && is_machine(this, wanted))
				one->here = true;
		}
		free(text);
	}
	if (folder)
		closedir(folder);
	if (count)
		qsort(*list, count, sizeof(**list), by_name);
	return count;
}

static void print_shipped(const struct shipped *one)
{
	int length = put_plain(one->name, stdout);

	printf("%*s ", length < 40 ? 40 - length : 0, "");
	put_plain(one->about, stdout);
	putchar('\n');
}

static int map_list(void)
{
	struct shipped *list;
	unsigned int count = list_maps(&list), i;

	if (!count)
		die("there are no maps in %s", maps_folder());
	for (i = 0; i < count; i++) {
		printf("%c ", list[i].here ? '*' : ' ');
		print_shipped(&list[i]);
	}
	printf("\n* was published for this processor or board; memory modules matter too\n");
	free(list);
	return 0;
}

/* Where a machine's map stands, if nobody has published it. */
static const struct need {
	const char *machine;	/* begins so */
	const char *text;
} needs[] = {
	{
		"AuthenticAMD 16 ",
		"its registers have all of it: camc map dump >FILE as root, then camc map check FILE",
	}, {
		"AuthenticAMD 21 ",
		"it has registers like family 10h (PCI 00:18.1 40h to 7ch, f0h; 00:18.2 40h to 6ch, 80h, 94h, 110h, 114h) with more bits: see AMD's BIOS and Kernel Developer's Guide for it",
	}, {
		"AuthenticAMD ",
		"it needs the DRAM address map of the data fabric (drivers/ras/amd/atl in Linux shows the registers), the hashes of bank groups, banks and chip selects of the memory controllers (see AMD's Processor Programming Reference), and TOP_MEM (MSR c001001ah)",
	}, {
		"GenuineIntel ",
		"desktop and mobile: it needs the channel hash and the organisation of memory from MCHBAR (PCI 00:00.0 48h; MAD_INTER_CHANNEL 5000h to MAD_DIMM 5010h, CHANNEL_HASH 5024h), TOM and TOLUD (a0h, bch); servers: SAD, TAD and RIR registers (drivers/edac/sb_edac.c, skx_common.c); which bits make a bank Intel does not tell",
	}, {
		"",
		"it needs the address map registers of the DRAM controller, from the manual of the chip (for example ADDRMAP0 to 11 of Synopsys' controller, drivers/edac/synopsys_edac.c)",
	},
};

static int explain_need(void)
{
	const struct need *need = needs;
	unsigned int count, i;
	struct shipped *list;
	char this[256];
	bool any = false;

	machine(this, sizeof(this));
	printf("no map is loaded%s\n", has_camc() ? "" : "; this kernel has no memory coloring");
	count = list_maps(&list);
	for (i = 0; i < count; i++) {
		if (!list[i].here)
			continue;
		if (!any)
			puts("published for this processor or board, with the memory told:");
		printf("  ");
		print_shipped(&list[i]);
		any = true;
	}
	free(list);
	while (strncmp(this, need->machine, strlen(need->machine)))
		need++;
	if (!any) {
		printf("no map is shipped for this machine: ");
		this[strcspn(this, "\n")] = '\0';
		put_plain(*this ? this : "unknown", stdout);
		putchar('\n');
	}
	printf("to make one: %s\n", need->text);
	puts("else measure it: row buffer conflicts tell which addresses share a bank (DRAMA, by");
	puts("Pessl and others, USENIX Security 2016), and write it in the language of camc(8)");
	return 0;
}

/*
 * The smallest page that this program takes: no kernel has smaller blocks. What its own largest is,
 * CONFIG_ARCH_FORCE_MAX_ORDER, is not known here.
 */
#define LEAST_SHIFT	10

/*
 * The map that is loaded; false: none is. The kernel has checked its own, also that regions are
 * multiples of its largest block, but not what CAMC_ROOT has. Without masks there is nothing to
 * eliminate.
 */
static bool read_loaded(void)
{
	static const struct camc_chipset none;
	char *text = has_camc() ? read_text(path_of(SYSFS "map")) : NULL;
	bool some = text && *text;

	if (some && (map_parse(&map, text, error) ||
		     map_place(&map, NULL, &none, page_shift(), error) ||
		     map_check(&map, NULL, LEAST_SHIFT, error) ||
		     (map_bits(&map) && map_eliminate(&map, page_shift(), error))))
		die("the loaded map: %s", error);
	free(text);
	return some;
}

static int map_show(const char *name)
{
	bool known;

	if (name) {
		prepare(name, false, &known, stdout);
		show_map(known);
		return 0;
	}
	if (!read_loaded())
		return explain_need();
	known = read_memory() && !map_count(&map, &memory, page_shift(), &counts, error);
	show_map(known);
	return 0;
}

static int check_map(const char *name)
{
	bool known;

	prepare(name, true, &known, stdout);
	put_plain(map.name, stdout);
	printf(" fits this machine: ");
	print_amounts();
	return 0;
}

static void convert(const char *name, bool need, char *text)
{
	bool known;

	prepare(name, need, &known, stderr);
	if (!known) {
		put_plain(map.name, stderr);
		fprintf(stderr, ": whether it covers memory is not known: ");
		put_plain(error, stderr);
		fputc('\n', stderr);
	}
	if (map_render(&map, text, CAMC_TEXT + 1, error))
		die("%s: %s", name, error);
}

static int map_convert(const char *name)
{
	char text[CAMC_TEXT + 1];

	convert(name, false, text);
	fputs(text, stdout);
	return 0;
}

static int map_load(const char *name)
{
	char text[CAMC_TEXT + 1], *loaded;
	ssize_t written;
	int file;

	need_camc();
	loaded = read_text(path_of(SYSFS "map"));
	if (loaded && *loaded)
		die("a map is loaded already (%.*s): it stays until the machine boots",
		    (int)strcspn(loaded, "\n"), loaded);
	free(loaded);
	convert(name, true, text);
	file = open(path_of(SYSFS "map"), O_WRONLY | O_CLOEXEC);
	written = file < 0 ? -1 : write(file, text, strlen(text));
	if (written == (ssize_t)strlen(text)) {
		close(file);
		put_plain(map.name, stdout);
		printf(" is loaded: ");
		print_amounts();
		return 0;
	}
	switch (written < 0 ? errno : EIO) {
	case EACCES:
	case EPERM:
		die("loading a map needs CAP_SYS_ADMIN: run as root");
	case EBUSY:
		die("somebody loaded another map meanwhile: it stays until the machine boots");
	case EINVAL:
		die("%s: the kernel refused it: dmesg tells why, in a line \"camc: map:\"", name);
	default:
		die("%s: the kernel did not take it: %s", name, strerror(errno));
	}
}

/* The colors of physical addresses, one a line; "-" for those outside of the map. */
static int print_colors(char **arguments)
{
	unsigned int color;
	u64 address;
	bool known;

	prepare(*arguments++, false, &known, stderr);
	for (; *arguments; arguments++) {
		if (!parse_hex(*arguments, &address))
			die("color %s: a hexadecimal physical address", *arguments);
		color = map_color(&map, address);
		if (color == CAMC_NOWHERE)
			puts("-");
		else
			printf("%u\n", color);
	}
	return 0;
}

/* The registers that registers_parse() wants, of AMD family 10h. */
static int map_dump(void)
{
	const struct camc_registers *some;
	unsigned int node, offset;
	bool any = false;
	char this[256];

	machine(this, sizeof(this));
	if (strncmp(this, "AuthenticAMD 16 ", 16))
		die("registers are known of AMD family 10h only: see camc map show");
	printf("registers amd-10h this-machine\n");
	for (node = 0; node < 8; node++) {
		if (access(path_of(PCI "%02x.1/config", 0x18 + node), F_OK))
			continue;
		printf("node %u\n", node);
		for (some = camc_registers; some < camc_registers + CAMC_REGISTERS; some++) {
			char *path = path_of(PCI "%02x.%u/config", 0x18 + node, some->function);
			int file = open(path, O_RDONLY | O_CLOEXEC);
			unsigned int value;

			for (offset = some->first; offset <= some->last; offset += 4) {
				if (file < 0 || pread(file, &value, 4, offset) != 4)
					die("%s: cannot read offset %x: run as root", path, offset);
				printf("F%ux%03X %08x\n", some->function, offset, value);
			}
			close(file);
			any = true;
		}
	}
	if (!any)
		die("there is no PCI device 00:18.1 or above");
	return 0;
}

/* Is there memory at this address? Dies if that is not known. */
bool is_memory(u64 address)
{
	static bool known;
	unsigned int i;

	if (!known && !read_memory())
		die("pages are outside of the map, of memory or of devices: %s", error);
	known = true;
	for (i = 0; i < memory.ranges; i++)
		if (address >= memory.range[i].start && address < memory.range[i].end)
			return true;
	return false;
}

/* The map to check by: a file's, or the one that is loaded. */
const struct camc_map *map_to_check(void)
{
	bool known;

	if (options.map) {
		prepare(options.map, false, &known, stderr);
		return &map;
	}
	need_camc();
	if (!read_loaded())
		die("no address map is loaded: camc map load MAP, or give one by --map");
	return &map;
}

int map_command(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*one)(const char *map);
		int (*none)(void);
	} commands[] = {
		{ "show", map_show, NULL }, { "check", check_map, NULL },
		{ "convert", map_convert, NULL }, { "load", map_load, NULL },
		{ "list", NULL, map_list }, { "dump", NULL, map_dump },
	};
	unsigned int i;

	for (i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		if (argc < 1 || strcmp(argv[0], commands[i].name))
			continue;
		if (commands[i].none && argc == 1)
			return commands[i].none();
		if (commands[i].one && argc == 2)
			return commands[i].one(argv[1]);
		if (commands[i].one == map_show && argc == 1)
			return map_show(NULL);
		usage(stderr);
	}
	if (!argc)
		return map_show(NULL);
	if (argc > 2 && !strcmp(argv[0], "color"))
		return print_colors(argv + 1);
	usage(stderr);
}
