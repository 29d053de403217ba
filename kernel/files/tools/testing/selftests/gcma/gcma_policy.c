// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every area has the policy that the command line gave it, and says so, and what else it says is
 * consistent.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../cma/cma_util.h"

static const char * const policies[] = { "none", "movable", "gcma", "rental" };

/* All areas, whatever their policy */
static unsigned int nr_areas;
static char names[16][NAME_MAX + 1];

static void find_areas(void)
{
	DIR *dir = opendir(CMA_SYSFS);
	struct dirent *entry;

	while (dir && nr_areas < ARRAY_SIZE(names) && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			snprintf(names[nr_areas++], sizeof(names[0]), "%s", entry->d_name);
	if (dir)
		closedir(dir);
}

static bool known(const char *policy)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(policies); i++)
		if (!strcmp(policy, policies[i]))
			return true;
	return false;
}

static bool area_word(const char *area, const char *file, char *word, size_t size)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), CMA_SYSFS "/%s/%s", area, file);
	return read_word(path, word, size);
}

static void need_policies(void)
{
	char word[32];

	if (!nr_areas)
		lack("area", "no CMA area (cma=)");
	if (!area_word(names[0], "policy", word, sizeof(word)))
		lack("policy", "this kernel has no policies (CONFIG_GCMA)");
}

/* The words of cma_policy= one after the other; the kernel takes the last that fits. */
static char *policy_words(void)
{
	static char cmdline[4096];
	char *at, *words = NULL;

	cmdline[0] = ' ';
	read_word("/proc/cmdline", cmdline + 1, sizeof(cmdline) - 1);
	for (at = cmdline; (at = strstr(at, " cma_policy=")); at++)
		words = at + strlen(" cma_policy=");
	if (words)
		words[strcspn(words, " ")] = '\0';
	return words;
}

static void expected_policy(const char *area, const char *words, char *policy, size_t size)
{
	char copy[512], *at = copy, *word;

	snprintf(policy, size, "movable");
	snprintf(copy, sizeof(copy), "%s", words ? words : "");
	while ((word = strsep(&at, ","))) {
		char *colon = strrchr(word, ':');

		if (colon)
			*colon = '\0';
		/* the default area is the one that cma= made */
		if (known(colon ? colon + 1 : word) && !strcmp(area, colon ? word : "reserved"))
			snprintf(policy, size, "%s", colon ? colon + 1 : word);
	}
}

static void as_on_command_line(void)
{
	const char *words = policy_words();

	need_policies();
	for (unsigned int i = 0; i < nr_areas; i++) {
		char policy[32], want[32];

		if (!area_word(names[i], "policy", policy, sizeof(policy)))
			fail("%s has no policy", names[i]);
		expected_policy(names[i], words, want, sizeof(want));
		if (strcmp(policy, want))
			fail("%s is %s, cma_policy=%s asks for %s", names[i], policy,
			     words ? words : "", want);
		diag("%s: %s", names[i], policy);
	}
}

static bool is_area(const char *name)
{
	for (unsigned int i = 0; i < nr_areas; i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

static void wrong_words_are_logged(void)
{
	char *words = policy_words(), *word;
	unsigned int wrong = 0;

	need_policies();
	while (words && (word = strsep(&words, ","))) {
		char *colon = strrchr(word, ':');
		bool right = known(colon ? colon + 1 : word);
		int log;

		if (colon)
			*colon = '\0';
		if (right && (!colon || is_area(word)))
			continue;
		wrong++;
		log = log_open(SEEK_SET);
		if (!log_has(log, "cma_policy", word))
			fail("the log says nothing about '%s'", word);
		close(log);
	}
	if (!wrong)
		skip("nothing wrong on the command line");
}

static unsigned long number_of(const char *area, const char *file)
{
	char word[64], *end;
	unsigned long n;

	if (!area_word(area, file, word, sizeof(word)))
		fail("%s has no %s", area, file);
	n = strtoul(word, &end, 10);
	if (end == word || *end)
		fail("%s of %s is '%s', not a number", file, area, word);
	return n;
}

static void page_counts(void)
{
	need_policies();
	for (unsigned int i = 0; i < nr_areas; i++) {
		unsigned long total = number_of(names[i], "total_pages"), count;
		unsigned long available = number_of(names[i], "available_pages");
		char path[PATH_MAX];

		snprintf(path, sizeof(path), CMA_DEBUGFS "/%s/count", names[i]);
		if (!read_number(path, &count))
			lack("debugfs", "no %s", path);
		if (count != total)
			fail("%s: total_pages %lu, count %lu", names[i], total, count);
		if (available > total)
			fail("%s: %lu of %lu pages are available", names[i], available, total);
	}
}

/* As in gcma_counters.h, and what areas say besides */
static const char * const counters[] = {
	"stores", "stores_swap", "stores_dirty", "loads", "loads_swap", "misses", "recycles",
	"dropped", "revoked", "moved_aside", "put_back", "written_back", "refused_fs",
	"refused_large", "refused_private", "refused_partial", "refused_cheap", "refused_failed",
	"refused_admission", "refused_busy", "refused_kept", "refused_passed",
};
static const char * const gauges[] = { "tenants_file", "quarantined" };

static void counter_expect(const char *area, const char *name)
{
	char path[PATH_MAX];
	struct stat st;

	number_of(area, name);
	snprintf(path, sizeof(path), CMA_SYSFS "/%s/%s", area, name);
	MUST(stat(path, &st));
	if ((st.st_mode & 0777) != 0444)
		fail("%s has mode %o", path, st.st_mode & 0777);
}

static void counters_of_gcma_areas(void)
{
	need_gcma();
	for (unsigned int i = 0; i < nr_areas; i++) {
		char policy[32];

		if (!area_word(names[i], "policy", policy, sizeof(policy)) ||
		    strcmp(policy, "gcma"))
			continue;
		for (unsigned int c = 0; c < ARRAY_SIZE(counters); c++)
			counter_expect(names[i], counters[c]);
		for (unsigned int g = 0; g < ARRAY_SIZE(gauges); g++)
			counter_expect(names[i], gauges[g]);
		if (number_of(names[i], "loads") > number_of(names[i], "stores"))
			fail("%s: more loads than stores", names[i]);
		if (number_of(names[i], "tenants_file") > number_of(names[i], "available_pages"))
			fail("%s: more tenants than available pages", names[i]);
	}
}

/* start() has set it to "always", finish() restores it. */
static void three_words(void)
{
	static const char * const words[] = { "adaptive", "seldom", "always" };
	char path[PATH_MAX], word[32];

	need_gcma();
	for (unsigned int i = 0; i < nr_areas; i++) {
		if (!area_word(names[i], "policy", word, sizeof(word)) || strcmp(word, "gcma"))
			continue;
		if (!area_word(names[i], "admission", word, sizeof(word)))
			lack("admission", "%s has no admission", names[i]);
		snprintf(path, sizeof(path), CMA_SYSFS "/%s/admission", names[i]);
		for (unsigned int w = 0; w < ARRAY_SIZE(words); w++) {
			if (write_file(path, "%s\n", words[w]))
				fail("%s cannot be set to %s", path, words[w]);
			area_word(names[i], "admission", word, sizeof(word));
			if (strcmp(word, words[w]))
				fail("%s was set to %s and is %s", path, words[w], word);
			if (write_file(path, "sometimes") != -EINVAL)
				fail("%s takes anything", path);
			area_word(names[i], "admission", word, sizeof(word));
			if (strcmp(word, words[w]))
				fail("a wrong word changed %s", path);
		}
	}
}

static void vmstat_agrees(void)
{
	need_gcma();
	for (unsigned int i = 0; i < ARRAY_SIZE(counters); i++) {
		char event[32];

		snprintf(event, sizeof(event), "gcma_%s", counters[i]);
		event_expect(event, counter, counters[i]);
	}
}

/* The frames' own flags */

#define KPF_BUDDY	10
#define KPF_RESERVED	32

static void frames_stay_out(void)
{
	int flags = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);
	unsigned long base, pages;
	struct area area;
	u64 *word;

	need_gcma();
	need_area(&area);
	if (flags < 0)
		lack("kpageflags", "no /proc/kpageflags");
	base = area_debug(&area, "base_pfn");
	pages = area.pages;
	word = page_buffer(pages * sizeof(*word));
	pread_all(flags, word, pages * sizeof(*word), base * sizeof(*word));
	for (unsigned long i = 0; i < pages; i++)
		if (word[i] & (1ull << KPF_BUDDY | 1ull << KPF_RESERVED))
			fail("frame %lu has flags 0x%llx", i, (unsigned long long)word[i]);
}

static void frame_map(void)
{
	unsigned long frames = 0, held;
	struct letters letters;
	struct area area;

	need_gcma();
	need_area(&area);
	letters = area_letters(&area);
	for (unsigned int c = 0; c < ARRAY_SIZE(letters.of); c++)
		frames += letters.of[c];
	held = letters.of['#'] + letters.of['Q'];
	if (frames != area.pages || area.pages - held != area_number(&area, "available_pages"))
		fail("of %lu frames %lu are shown, %lu held; %lu are available", area.pages, frames,
		     held, area_number(&area, "available_pages"));
	diag("%lu frames: %lu tenants, %lu held", frames, letters.of['T'], held);
}

int main(void)
{
	start(8);
	find_areas();
	run(as_on_command_line, NEED_NOTHING,
	    "every area has the policy of the command line, or movable");
	run(wrong_words_are_logged, NEED_NOTHING,
	    "what is wrong on the command line is in the log");
	run(page_counts, NEED_NOTHING, "every area tells its pages and how many are available");
	run(counters_of_gcma_areas, NEED_NOTHING,
	    "gcma areas have all counters, and they are consistent");
	run(three_words, NEED_NOTHING, "admission takes its three words and no other");
	run(vmstat_agrees, NEED_NOTHING, "vmstat agrees with the counters of the areas");
	run(frames_stay_out, NEED_NOTHING,
	    "no frame of a gcma area is reserved or in the buddy allocator");
	run(frame_map, NEED_NOTHING, "the frame map has a character for every frame");
	return finish();
}
