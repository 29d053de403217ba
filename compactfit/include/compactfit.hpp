/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * C++17 for compactfit.h: a handle that knows its type, and pins that end with their scope. No
 * exceptions, no RTTI, no standard library but its freestanding headers. What is not said here is as
 * compactfit.h says it.
 */
#ifndef COMPACTFIT_HPP
#define COMPACTFIT_HPP

#if __cplusplus < 201703L && (!defined(_MSVC_LANG) || _MSVC_LANG < 201703L)
#error "compactfit.hpp needs C++17: compile with -std=c++17 or later"
#endif

#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>

#include "compactfit.h"

#if defined(CF_WITH_PINS) && !CF_WITH_PINS
#error "compactfit.hpp pins objects while they are constructed: do not set CF_WITH_PINS=0"
#endif

namespace compactfit {

/*
 * Can the library move objects of type T? It copies their bytes, and nothing of theirs is called: so T is
 * trivially copyable. That alone is true of std::mutex and std::atomic too, which cannot be copied at all; so
 * T has to have a constructor that copies or moves it as bytes as well: one that takes anything, a template,
 * is none. (An array has none: make it a std::array.)
 * What no compiler can see is a type that may be copied and points into itself all the same.
 */
template <typename T>
inline constexpr bool is_movable_v =
	std::is_trivially_copyable_v<T> &&
	(std::is_trivially_copy_constructible_v<T> || std::is_trivially_move_constructible_v<T>);

/* An object of type T in a heap; a value, as cheap to copy as an integer. It owns nothing. */
template <typename T> class handle {
public:
	constexpr handle() = default;
	constexpr explicit handle(cf_handle raw) : raw_(raw) {}
	constexpr cf_handle raw() const { return raw_; }
	/* Was there ever an object? Whether there still is, only the heap knows. */
	constexpr explicit operator bool() const { return raw_.slot != 0; }
	friend constexpr bool operator==(handle a, handle b)
	{
		return a.raw_.slot == b.raw_.slot && a.raw_.stamp == b.raw_.stamp;
	}
	friend constexpr bool operator!=(handle a, handle b) { return !(a == b); }

private:
	cf_handle raw_ = {0, 0};
};

/*
 * A moving heap in a buffer. Objects are moved as bytes, so their types have to be is_movable_v; and they
 * end without a destructor.
 */
class heap {
public:
	/* @config must not ask for a non-moving heap: its objects are not contiguous. */
	heap(void *buffer, std::size_t size, const cf_config &config = cf_config())
		: heap_(config.engine == CF_MOVING ? cf_init(buffer, size, &config) : nullptr),
		  shared_(config.lock != nullptr)
	{
	}
	heap(const heap &) = delete;
	heap &operator=(const heap &) = delete;

	/* Is there a heap? If not, nothing else may be called. */
	explicit operator bool() const { return heap_ != nullptr; }
	cf_heap *raw() const { return heap_; }

	/*
	 * A new T made of @arguments, which are not references to objects of a heap with remote frees, unless
	 * pinned; false if there is no memory, or T is larger than a page.
	 *
	 * The object is pinned while it is constructed, for its constructor may free other objects, and in a heap
	 * with lock hooks other threads may: so for each make() that has begun and not ended, one page less than
	 * cf_bound() says may be had. Nothing is pinned where neither can be: without lock hooks, if T is constructed without a call (from a T, or
	 * from nothing if it needs no constructor). If the constructor throws, the object is freed again.
	 * O(1); O(sizeof(T)) if objects were freed while the constructor ran.
	 */
	template <typename T, typename... A> handle<T> make(A &&...arguments)
	{
		static_assert(is_movable_v<T>, "objects are moved as bytes");
		cf_handle raw;
		int status;
		if (sizeof(T) > cf_max_contiguous(heap_))
			return handle<T>();
		if constexpr (alignof(T) <= 16) /* of which sizeof(T) is a multiple */
			status = cf_malloc(heap_, sizeof(T), &raw);
		else
			status = cf_aligned_alloc(heap_, alignof(T), sizeof(T), &raw);
		const bool pinned = shared_ || !std::is_trivially_constructible_v<T, A...>;
		if (status != CF_OK || (pinned && cf_pin(heap_, raw) != CF_OK))
			return handle<T>();
#ifdef CF_DEBUG
		void *at = cf_at(heap_, raw, 0, nullptr); /* others change what cf_deref() checks without a lock */
#else
		void *at = cf_deref(heap_, raw, 0);
#endif
#ifdef __cpp_exceptions
		try {
			::new (at) T(std::forward<A>(arguments)...);
		} catch (...) {
			cf_unpin(heap_, raw); /* what is pinned cannot be freed */
			cf_free(heap_, raw);
			throw;
		}
#else
		::new (at) T(std::forward<A>(arguments)...);
#endif
		if (pinned)
			cf_unpin(heap_, raw);
		return handle<T>(raw);
	}

	template <typename T> cf_status free(handle<T> object)
	{
		return static_cast<cf_status>(cf_free(heap_, object.raw()));
	}

	/*
	 * The object, as long as cf_at() says; null if it is not alive, not in one piece, or can be
	 * no T: too small, or not aligned for one. O(1).
	 */
	template <typename T> T *get(handle<T> object) const
	{
		static_assert(is_movable_v<T>, "objects are moved as bytes");
		std::size_t length;
		void *at = cf_at(heap_, object.raw(), 0, &length);
		if (length < sizeof(T) || reinterpret_cast<std::uintptr_t>(at) % alignof(T))
			return nullptr;
		return static_cast<T *>(at);
	}

	/*
	 * The same, nothing checked: one load more than a plain pointer. With CF_DEBUG it is checked, for which the
	 * lock has to be held in a heap with hooks.
	 */
	template <typename T> T &operator[](handle<T> object) const
	{
		static_assert(is_movable_v<T>, "objects are moved as bytes");
		return *static_cast<T *>(cf_deref(heap_, object.raw(), 0));
	}

private:
	cf_heap *heap_;
	bool shared_; /* other threads may use it */
};

/*
 * Keeps an object alive and where it is, as long as this lives; or until cf_free_remote() frees the object, and
 * ends the pin: what another thread is to free is pinned with cf_pin() instead.
 */
template <typename T> class pin {
	static_assert(is_movable_v<T>, "objects are moved as bytes");

public:
	pin(heap &of, handle<T> object) : heap_(of.raw()), handle_(object.raw())
	{
		if (cf_pin(heap_, handle_) == CF_OK && !(object_ = of.get(object)))
			cf_unpin(heap_, handle_);
	}
	pin(const pin &) = delete;
	pin &operator=(const pin &) = delete;
	~pin()
	{
		if (object_)
			cf_unpin(heap_, handle_);
	}

	/* Null if the object was not alive, not in one piece, or pinned CF_MAX_PINS times. */
	T *get() const { return object_; }
	explicit operator bool() const { return object_ != nullptr; }
	T &operator*() const { return *object_; }
	T *operator->() const { return object_; }

private:
	cf_heap *heap_;
	cf_handle handle_;
	T *object_ = nullptr;
};

} // namespace compactfit

#endif
