// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * evictions FILE < trace_pipe
 *
 * Shorten the events mm_filemap_add_to_page_cache and
 * mm_filemap_delete_from_page_cache of FILE to "+PAGE" and "-PAGE", hexadecimal,
 * one a line; "!" is a line written to trace_marker, and "end" there the end.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static unsigned long field(const char *line, const char *name, int base)
{
	const char *at = strstr(line, name);

	return at ? strtoul(at + strlen(name), NULL, base) : 0;
}

int main(int argc, char **argv)
{
	static char line[4096];
	struct stat st;

	if (argc != 2 || stat(argv[1], &st))
		err(2, "usage: evictions FILE");
	while (fgets(line, sizeof(line), stdin)) {
		int add = !!strstr(line, "mm_filemap_add_to_page_cache:");

		if (strstr(line, "tracing_mark_write: end"))
			break;
		if (strstr(line, "tracing_mark_write:"))
			puts("!");
		else if ((add || strstr(line, "mm_filemap_delete_from_page_cache:")) &&
			 field(line, " ino ", 16) == st.st_ino)
			printf("%c%lx\n", add ? '+' : '-',
			       field(line, " ofs=", 10) >> 12);
	}
	return 0;
}
