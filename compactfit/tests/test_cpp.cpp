/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Tests of the C++ header, in KTAP. */
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "compactfit.hpp"

namespace {

int number;
bool any_failed;

void result(bool good, const char *what)
{
	std::printf("%sok %d %s\n", good ? "" : "not ", ++number, what);
	any_failed |= !good;
}

struct point {
	point(int of_x, int of_y) : x(of_x), y(of_y) {}
	int x, y;
};

struct alignas(64) line {
	char bytes[64];
};

struct alignas(8) words {
	std::uint32_t word[4];
};

#ifdef __cpp_exceptions
struct thrower {
	explicit thrower(int code) : unused(0) { throw code; }
	int unused;
};

/* Does make() give the memory back? */
bool keeps_nothing(compactfit::heap &heap)
{
	cf_stats before, after;

	cf_get_stats(heap.raw(), &before);
	try {
		heap.make<thrower>(1);
		return false;
	} catch (int) {
	}
	cf_get_stats(heap.raw(), &after);
	return after.objects == before.objects && after.pinned == before.pinned;
}
#else
bool keeps_nothing(compactfit::heap &)
{
	return true;
}
#endif

struct large {
	char bytes[2 * CF_PAGE_SIZE];
};

/* Its constructor frees another object, which may move a third one: not the one that is made. */
struct successor {
	successor(compactfit::heap &heap, compactfit::handle<successor> before, std::uint32_t of_number)
		: number(of_number), words()
	{
		if (before)
			heap.free(before);
		for (std::uint32_t &word : words)
			word = of_number;
	}
	bool is(std::uint32_t what) const
	{
		return number == what && words[0] == what && words[1] == what && words[2] == what;
	}
	std::uint32_t number;
	std::uint32_t words[3];
};

/* Objects that are made while others are freed: as many as are not what was made. */
unsigned int spoilt_successors(compactfit::heap &heap)
{
	constexpr std::uint32_t count = 2000;
	static compactfit::handle<successor> all[count];
	unsigned int spoilt = 0;

	for (std::uint32_t i = 0; i < count; i++)
		all[i] = heap.make<successor>(heap, compactfit::handle<successor>(), i);
	for (std::uint32_t i = 0; i < count; i++)
		all[i] = heap.make<successor>(heap, all[i], i);
	for (std::uint32_t i = 0; i < count; i++) {
		const successor *object = heap.get(all[i]);

		if (object == nullptr || !object->is(i))
			spoilt++;
		heap.free(all[i]);
	}
	return spoilt;
}

constexpr std::size_t size = 1 << 20;

} // namespace

int main()
{
	void *buffer = std::malloc(size);
	cf_config config = {};
	config.pieces = true; // refused by make() and get() all the same
	compactfit::heap heap(buffer, size, config);

	std::printf("TAP version 14\n");
	result(static_cast<bool>(heap), "a heap is made");
	if (!heap) {
		std::free(buffer);
		return 1;
	}

	auto a = heap.make<point>(1, 2);
	auto b = heap.make<point>(3, 4);
	result(a && b && a != b && heap[a].y == 2 && heap.get(b)->x == 3, "objects are constructed");
	result(heap.free(a) == CF_OK && heap.get(a) == nullptr && heap.free(a) == CF_ESTALE,
	       "a freed object is not there any more");

	auto l = heap.make<line>();
	result(reinterpret_cast<std::uintptr_t>(heap.get(l)) % 64 == 0, "a type's alignment is kept");

	point *where = nullptr;
	{
		compactfit::pin<point> guard(heap, b);
		where = guard.get();
		result(guard && guard->y == 4 && heap.free(b) == CF_EPINNED, "a pin keeps its object");
	}
	result(where == heap.get(b) && heap.free(b) == CF_OK, "the pin ends with its scope");
	result(keeps_nothing(heap), "a constructor that throws leaves no object");
	result(spoilt_successors(heap) == 0 && cf_verify(heap.raw()) == nullptr,
	       "a constructor may free other objects");
	cf_handle odd[2];
	cf_malloc(heap.raw(), 20, &odd[0]);
	cf_malloc(heap.raw(), 20, &odd[1]);
	const words *first = heap.get(compactfit::handle<words>(odd[0]));
	const words *second = heap.get(compactfit::handle<words>(odd[1]));
	result((first == nullptr) != (second == nullptr),
	       "an object that is not aligned for a type is none of it");
	compactfit::pin<point> none(heap, a);
	result(!none, "what is not alive cannot be pinned");

	cf_handle pieces;
	cf_malloc(heap.raw(), sizeof(large), &pieces);
	compactfit::handle<large> in_pieces(pieces);
	{
		compactfit::pin<large> refused(heap, in_pieces);
		result(!heap.make<large>() && heap.get(in_pieces) == nullptr && !refused &&
			       heap.free(in_pieces) == CF_OK,
		       "an object in pieces is no object of a type");
	}

	cf_config nonmoving = cf_config();
	nonmoving.engine = CF_NONMOVING;
	result(!compactfit::heap(buffer, size, nonmoving), "a heap of pieces is refused");

	std::printf("1..%d\n", number);
	std::free(buffer);
	return any_failed ? 1 : 0;
}
