/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A server keeps sessions in a fixed memory: 200 bytes each, and a buffer of 4 KB for those that are
 * just sending. It shall never have to refuse the 40th sender, whoever came and went before.
 */
#include <compactfit.hpp>

#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

namespace {

constexpr std::size_t memory_size = 512 * 1024;
constexpr std::size_t senders = 40;

struct buffer {
	char bytes[4096];
};

/* Objects refer to each other by handles: nothing here has to change when one of them moves. */
struct session {
	unsigned int id;
	compactfit::handle<buffer> sending;
	char name[188];
};

alignas(16) unsigned char memory[memory_size];

/* What a device does: it is told an address, and uses it while other things go on. */
void transmit(compactfit::heap &heap, compactfit::handle<buffer> what,
	      const std::vector<compactfit::handle<session>> &leaving)
{
	compactfit::pin<buffer> pinned(heap, what);

	if (!pinned)
		return; /* there is no such buffer */
	std::strcpy(pinned->bytes, "hello");
	for (auto one : leaving) /* others may be moved now, but not this one */
		heap.free(one);
	std::printf("%zu sessions left while \"%s\" was sent\n", leaving.size(), pinned->bytes);
}

} // namespace

int main()
{
	compactfit::heap heap(memory, sizeof(memory));
	std::vector<compactfit::handle<session>> live, leaving;
	std::mt19937 random(1);

	if (!heap || cf_bound(heap.raw(), sizeof(buffer)) < senders)
		return 1;

	/*
	 * Sessions, until there is only memory left for the senders: that is asked, not guessed. One
	 * session more can take a page for itself and one for its handle, of three buffers each.
	 */
	for (unsigned int id = 0; cf_bound(heap.raw(), sizeof(buffer)) >= senders + 6; id++)
		live.push_back(heap.make<session>(session{id, {}, "somebody"}));
	std::printf("%zu sessions, and %zu buffers for certain\n", live.size(),
		    cf_bound(heap.raw(), sizeof(buffer)));

	/* Half of them leave, in no order, while a buffer is pinned; as many others come. */
	auto first = heap.make<buffer>();
	for (std::size_t left = live.size() / 2; left; left--) {
		auto &one = live[random() % live.size()];

		leaving.push_back(one);
		one = live.back();
		live.pop_back();
	}
	transmit(heap, first, leaving);
	for (std::size_t come = 0; come < leaving.size(); come++)
		live.push_back(heap.make<session>(session{unsigned(come), {}, "somebody"}));
	if (!live.back() || heap.get(leaving[0]))
		return 1; /* who left is known to have left, though the memory is used again */

	/* Now all the others want to send. */
	std::size_t sending = 1;
	for (; sending < senders; sending++) {
		auto one = heap.make<buffer>();

		if (!one)
			break;
		heap[live[sending]].sending = one;
	}
	std::printf("%zu of %zu senders have a buffer\n", sending, senders);
	return sending == senders ? 0 : 1;
}
