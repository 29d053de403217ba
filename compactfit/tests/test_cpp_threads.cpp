/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Threads that make and free objects of one heap, which has lock hooks: to be run under ThreadSanitizer.
 * In KTAP. Usage: test_cpp_threads [OPERATIONS]
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "compactfit.hpp"

namespace {

constexpr unsigned int threads = 4;
constexpr std::size_t memory = 1 << 20;
constexpr std::size_t live = 300; /* objects of a thread: a few pages in all */

struct message {
	explicit message(std::uint32_t of_number) : number(of_number), words()
	{
		for (std::uint32_t &word : words)
			word = of_number;
	}
	bool is(std::uint32_t what) const
	{
		for (std::uint32_t word : words)
			if (word != what)
				return false;
		return number == what;
	}
	std::uint32_t number;
	std::uint32_t words[15];
};

struct one {
	compactfit::handle<message> object;
	std::uint32_t number;
};

void lock(void *mutex)
{
	static_cast<std::mutex *>(mutex)->lock();
}

void unlock(void *mutex)
{
	static_cast<std::mutex *>(mutex)->unlock();
}

/* Makes an object in each step, and frees one of its own at random, which moves one of anybody's. */
void work(compactfit::heap &heap, unsigned int thread, unsigned long operations, unsigned long &wrong)
{
	std::vector<one> own;
	std::uint32_t random = thread + 1;

	for (unsigned long i = 0; i < operations; i++) {
		auto number = static_cast<std::uint32_t>(i * threads + thread);

		/* by a constructor that is a call, and by one that is none */
		if (i % 2 == 0)
			own.push_back({heap.make<message>(number), number});
		else
			own.push_back({heap.make<message>(message(number)), number});
		if (own.size() < live)
			continue;
		random = random * 1664525 + 1013904223;
		one &any = own[(random >> 8) % own.size()];
		{
			compactfit::pin<message> pinned(heap, any.object);

			if (!pinned || !pinned->is(any.number))
				wrong++;
		}
		if (heap.free(any.object) != CF_OK)
			wrong++;
		any = own.back();
		own.pop_back();
	}
	for (const one &each : own)
		if (heap.free(each.object) != CF_OK)
			wrong++;
}

} // namespace

int main(int argc, char **argv)
{
	unsigned long operations = argc > 1 ? std::strtoul(argv[1], nullptr, 0) : 20000;
	void *buffer = std::malloc(memory);
	cf_config config = cf_config();
	std::mutex mutex;
	std::vector<std::thread> all;
	unsigned long wrong[threads] = {}, sum = 0;
	cf_stats stats;

	config.lock = lock;
	config.unlock = unlock;
	config.lock_arg = &mutex;
	compactfit::heap heap(buffer, memory, config);
	if (!heap) {
		std::free(buffer);
		return 1;
	}
	for (unsigned int i = 0; i < threads; i++)
		all.emplace_back(work, std::ref(heap), i, operations, std::ref(wrong[i]));
	for (unsigned int i = 0; i < threads; i++) {
		all[i].join();
		sum += wrong[i];
	}
	cf_get_stats(heap.raw(), &stats);
	if (sum != 0)
		std::printf("# %lu objects were wrong\n", sum);
	bool good = sum == 0 && stats.objects == 0 && stats.moves != 0 &&
		    cf_verify(heap.raw()) == nullptr;
	std::printf("TAP version 14\n1..1\n%sok 1 objects are made while other threads move objects\n",
		    good ? "" : "not ");
	std::free(buffer);
	return good ? 0 : 1;
}
