/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#define _GNU_SOURCE
#include "trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEAD UINT32_MAX

struct reader {
	const uint8_t *at, *end;
	bool cut; /* the file ended in a record */
	const char *wrong;
};

/* An object by its number. */
struct object {
	uint64_t size;
	uint32_t slot; /* DEAD: freed */
};

/* What has no limit but memory: an array that grows, in pages of its own. */
static bool grow(void **array, size_t nr, size_t *room, size_t bytes)
{
	size_t more = *room ? 2 * *room : 4096;
	void *larger;

	if (nr < *room)
		return true;
	if (*room)
		larger = mremap(*array, *room * bytes, more * bytes, MREMAP_MAYMOVE);
	else
		larger = mmap(NULL, more * bytes, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (larger == MAP_FAILED)
		return false;
	*array = larger;
	*room = more;
	return true;
}

static void discard(void *array, size_t room, size_t bytes)
{
	if (room)
		munmap(array, room * bytes);
}

static uint32_t little(const uint8_t *bytes)
{
	return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
	       (uint32_t)bytes[3] << 24;
}

static uint64_t number(struct reader *reader)
{
	uint64_t value = 0;
	unsigned int shift;

	for (shift = 0; shift < 64; shift += 7) {
		uint8_t byte;

		if (reader->at == reader->end) {
			reader->cut = true;
			return 0;
		}
		byte = *reader->at++;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	reader->wrong = "a number has more than 64 bits";
	return 0;
}

static const char *read_header(const uint8_t *bytes, size_t size, struct trace *trace,
			       struct reader *reader)
{
	size_t header, i, room = sizeof(trace->command) - 1;

	if (size < TRACE_FIXED || memcmp(bytes, TRACE_MAGIC, 8) != 0)
		return "this is no trace of allocations";
	if (little(bytes + 8) != TRACE_VERSION)
		return "this trace is of another version than 1";
	header = little(bytes + 12);
	if (header < TRACE_FIXED || header > size)
		return "the header of this trace is damaged";
	trace->process = little(bytes + 16);
	trace->parent = little(bytes + 20);
	for (i = 0; i < room && TRACE_FIXED + i < header; i++) {
		uint8_t c = bytes[TRACE_FIXED + i];

		trace->command[i] = (char)(c < ' ' || c > '~' ? ' ' : c);
	}
	while (i && trace->command[i - 1] == ' ')
		i--;
	trace->command[i] = 0;
	reader->at = bytes + header;
	reader->end = bytes + size;
	return NULL;
}

struct tables {
	struct object *objects; /* by number */
	uint32_t *free; /* slots */
	size_t room_objects, room_free, nr_free;
};

/* One record; @tables knows what is live. Returns false at the end. */
static bool read_record(struct reader *reader, struct trace *trace, struct tables *tables,
			uint64_t *thread)
{
	struct trace_call call = { .thread = (uint16_t)*thread };
	struct object *object = NULL;
	uint64_t back, shift = 0;

	if (reader->at == reader->end)
		return false;
	call.operation = *reader->at++;
	switch (call.operation) {
	case TRACE_END:
		return false;
	case TRACE_THREAD:
		*thread = number(reader);
		if (*thread >= trace->threads && *thread < UINT32_MAX)
			trace->threads = (unsigned int)*thread + 1;
		return !reader->cut && !reader->wrong;
	case TRACE_ALIGNED:
		shift = number(reader);
		break;
	case TRACE_FREE:
	case TRACE_RESIZE:
		back = number(reader);
		if (reader->cut)
			return false;
		if (back && back <= trace->objects)
			object = &tables->objects[trace->objects - back];
		if (!object || object->slot == DEAD) {
			reader->wrong = "this trace is damaged: it frees what is not allocated";
			return false;
		}
		break;
	case TRACE_ALLOC:
	case TRACE_ZEROED:
		break;
	default:
		reader->wrong = "this trace is damaged: it has an unknown kind of record";
		return false;
	}
	if (call.operation != TRACE_FREE)
		call.size = number(reader);
	if (reader->cut)
		return false;
	if (shift > 62 || call.size > (uint64_t)1 << 62) {
		reader->wrong = "this trace is damaged: an object is larger than any can be";
		return false;
	}
	call.shift = (uint8_t)shift;
	if (!object) {
		if (!grow((void **)&tables->objects, trace->objects, &tables->room_objects,
			  sizeof(*tables->objects)) ||
		    trace->objects == DEAD) {
			reader->wrong = "there is not enough memory for this trace";
			return false;
		}
		object = &tables->objects[trace->objects++];
		object->size = 0;
		if (tables->nr_free)
			object->slot = tables->free[--tables->nr_free];
		else
			object->slot = (uint32_t)trace->slots++;
	}
	call.object = object->slot;
	trace->live += call.size - object->size;
	if (trace->live > trace->peak)
		trace->peak = trace->live;
	if (call.operation == TRACE_FREE) {
		call.size = object->size;
		object->slot = DEAD;
		/* without memory for the list the slot is not used again */
		if (grow((void **)&tables->free, tables->nr_free, &tables->room_free,
			 sizeof(*tables->free)))
			tables->free[tables->nr_free++] = call.object;
	} else {
		object->size = call.size;
	}
	if (!grow((void **)&trace->calls, trace->nr_calls, &trace->room, sizeof(*trace->calls))) {
		reader->wrong = "there is not enough memory for this trace";
		return false;
	}
	trace->calls[trace->nr_calls++] = call;
	return !reader->wrong;
}

int trace_load(const char *path, struct trace *trace, const char **error)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe does not wait */
	struct reader reader = { 0 };
	struct tables tables = { 0 };
	uint64_t thread = 0;
	struct stat status;
	void *bytes;

	*trace = (struct trace){ .threads = 1 };
	if (fd < 0 || fstat(fd, &status)) {
		*error = strerror(errno);
		if (fd >= 0)
			close(fd);
		return -1;
	}
	/* what has no size, be it empty or a device, is none either */
	bytes = status.st_size <= 0 ? MAP_FAILED :
		mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (bytes == MAP_FAILED) {
		*error = "this is no trace of allocations";
		return -1;
	}
	reader.wrong = read_header(bytes, (size_t)status.st_size, trace, &reader);
	while (!reader.wrong && read_record(&reader, trace, &tables, &thread))
		;
	if (!reader.wrong && !trace->nr_calls)
		reader.wrong = "this trace has no calls";
	munmap(bytes, (size_t)status.st_size);
	discard(tables.objects, tables.room_objects, sizeof(*tables.objects));
	discard(tables.free, tables.room_free, sizeof(*tables.free));
	if (reader.wrong) {
		trace_unload(trace);
		*error = reader.wrong;
		return -1;
	}
	return 0;
}

void trace_unload(struct trace *trace)
{
	discard(trace->calls, trace->room, sizeof(*trace->calls));
	*trace = (struct trace){ 0 };
}
