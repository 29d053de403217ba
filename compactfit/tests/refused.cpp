/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Types that the C++ header has to refuse, since objects of theirs cannot be moved as bytes. This does not
 * compile: the test is that the compiler finds each line that is marked, and no other.
 */
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "compactfit.hpp"

namespace {

using compactfit::handle;
using compactfit::pin;

/* Trivially copyable, as a class that cannot be copied is; and points into itself. */
struct node {
	node() : next(this) {}
	node(const node &) = delete;
	node &operator=(const node &) = delete;
	node *next;
};

/* The same behind a constructor that takes anything, so that it seems to be one that moves. */
struct guarded {
	template <typename... A> explicit guarded(A &&...) : next(this) {}
	guarded(const guarded &) = delete;
	guarded &operator=(const guarded &) = default;
	guarded *next;
};

struct shape {
	virtual int area() const = 0;
};

struct square : shape {
	int area() const override { return side * side; }
	int side = 1;
};

struct moved_only {
	moved_only() = default;
	moved_only(moved_only &&) = default;
	moved_only &operator=(moved_only &&) = default;
	int number = 0;
};

struct copied_only {
	copied_only() = default;
	copied_only(const copied_only &) = default;
	copied_only(copied_only &&) = delete;
	int number = 0;
};

/* Members may have types that are not complete yet. */
struct link {
	handle<link> next;
	std::array<int, 4> numbers;
};

} // namespace

void refused(compactfit::heap &heap)
{
	heap.make<std::mutex>(); /* refused */
	heap.get(handle<std::mutex>()); /* refused */
	heap[handle<std::mutex>()].lock(); /* refused */
	pin<std::mutex> a(heap, handle<std::mutex>()); /* refused */

	heap.make<std::atomic<int>>(1); /* refused */
	heap.get(handle<std::atomic<int>>()); /* refused */
	heap[handle<std::atomic<int>>()] = 1; /* refused */
	pin<std::atomic<int>> b(heap, handle<std::atomic<int>>()); /* refused */

	heap.make<node>(); /* refused */
	heap.get(handle<node>()); /* refused */
	heap[handle<node>()].next = nullptr; /* refused */
	pin<node> c(heap, handle<node>()); /* refused */

	heap.make<guarded>(); /* refused */
	heap.get(handle<guarded>()); /* refused */
	heap[handle<guarded>()].next = nullptr; /* refused */
	pin<guarded> g(heap, handle<guarded>()); /* refused */

	heap.make<std::string>("text"); /* refused */
	heap.get(handle<std::string>()); /* refused */
	heap[handle<std::string>()].clear(); /* refused */
	pin<std::string> d(heap, handle<std::string>()); /* refused */

	heap.make<square>(); /* refused */
	heap.get(handle<const square>()); /* refused */
	heap[handle<shape>()].area(); /* refused */
	pin<volatile square> e(heap, handle<volatile square>()); /* refused */

	heap.make<int[4]>(); /* refused */
	heap.get(handle<const int[4]>()); /* refused */
	heap[handle<int[2][2]>()][0][0] = 1; /* refused */
	pin<int[]> f(heap, handle<int[]>()); /* refused */
}

void accepted(compactfit::heap &heap)
{
	auto number = heap.make<const int>(1);
	auto moved = heap.make<moved_only>();
	auto copied = heap.make<copied_only>();
	auto whole = heap.make<link>();
	pin<const link> pinned(heap, handle<const link>(whole.raw()));

	heap[whole].next = whole;
	heap[copied].number = *heap.get(number) + heap.get(moved)->number;
}
