// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * model [-c] <INPUT
 *
 * A small model of DRAM behind memory controllers, clock by clock: banks with a row buffer each, an
 * FR-FCFS scheduler with a cap for each channel, and closed-loop tasks. docs/dram.md tells what it
 * is, what its constants are and what it leaves out. All times are clocks of the memory's bus.
 *
 * INPUT, one statement a line:
 *
 * timing CL CWL BL RCD RP RAS RC RRD_S RRD_L FAW CCD_S CCD_L RTP WR WTR_S WTR_L RFC REFI RTRS
 *	BL is the clocks of a burst; REFI 0: no refresh
 * machine NODES CHANNELS RANKS GROUPS BANKS
 *	channels of a node, ranks of a channel, bank groups and banks of a rank
 * queues READS WRITES HIGH LOW CAP PATH
 *	entries of a channel's two queues; writes from HIGH on are written, down to LOW; requests
 *	that may overtake an older one; clocks from the core to the controller and back
 * core
 *	a core; the tasks that follow run on it, the highest priority first
 * task MLP THINK PERIOD START JOB N
 *	N accesses follow, done again and again: JOB reads of them each PERIOD, or without end if
 *	PERIOD is 0. At most MLP are under way, and THINK clocks pass between the end of one and the
 *	next that takes its place. It begins at START.
 * NODE CHANNEL RANK BANK ROW WRITE EXTRA
 *	an access. WRITE 1: a line is written back, for which nobody waits. EXTRA clocks each way,
 *	for the distance of the node
 * run WARM BATCH BATCHES
 *	until the first task has done so many batches of reads, after WARM reads that do not count
 * until CLOCKS
 *	or so long
 *
 * Prints for each task "latency TASK CLOCKS COUNT" (a histogram of reads), "batch TASK CLOCKS" (how
 * long so many reads took, all in turn), "job TASK RELEASE RESPONSE" (-1: it missed its deadline,
 * the end of its period), and with -c each command, "CLOCK NODE CHANNEL COMMAND RANK BANK ROW".
 */
#include <err.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEVER		INT64_MAX
#define MAX_CORES	1024
#define MAX_TASKS	1024
#define MAX_TASKS_OF_CORE 64
#define MAX_MLP		64
#define MAX_NODES	16
#define MAX_CHANNELS	8	/* of a node */
#define MAX_RANKS	4
#define MAX_BANKS	32	/* of a rank */
#define MAX_GROUPS	8
#define MAX_QUEUE	256
#define MAX_LATENCY	(1 << 17)	/* longer ones count as this */
#define FOUR		4	/* activates in a window of tFAW */

typedef int64_t clocks;

static struct {
	clocks cl, cwl, bl, rcd, rp, ras, rc, rrd_s, rrd_l, faw, ccd_s, ccd_l;
	clocks rtp, wr, wtr_s, wtr_l, rfc, refi, rtrs;
} t;
static int nodes, channels, ranks, groups, banks;
static int reads_max, writes_max, writes_high, writes_low, cap;
static clocks path;
static bool tell_commands;

struct access {
	uint8_t node, channel, rank, bank;
	bool write;
	uint32_t row;
	uint32_t extra;
};

struct request {
	const struct access *to;
	struct task *task;
	int slot;		/* of the task; none for a write */
	clocks issued, arrives;
	int overtaken;		/* while its row was open and the bus not ready for it */
};

/* One of the accesses that a task may have under way. */
struct slot {
	bool waiting;		/* for a command whose end is not known yet */
	clocks ready;		/* for its next access */
};

struct task {
	int mlp;
	clocks think, period, start;
	long job;		/* reads in it */
	struct access *accesses;
	long count, next;
	struct slot slots[MAX_MLP];
	int waiting, writing;
	/* the job */
	bool active;
	long left;		/* reads not issued yet */
	clocks release, finish;
	clocks next_release;
	/* what is told */
	long done;
	clocks batch_began;
	uint32_t *latencies;
	clocks longest;
};

struct core {
	struct task *tasks[MAX_TASKS_OF_CORE];
	int count;
	clocks issued;		/* one access a clock */
};

struct bank {
	int64_t row;		/* that is open; -1: none */
	clocks act, pre, column;	/* not before */
	int overtaken;		/* times that its oldest request was */
};

struct rank {
	struct bank banks[MAX_BANKS];
	clocks act, act_group[MAX_GROUPS];
	clocks read[MAX_GROUPS], write[MAX_GROUPS];
	clocks window[FOUR];	/* the last activates */
	int oldest;		/* of these */
	clocks refresh;		/* when it is due */
};

struct queue {
	struct request entries[MAX_QUEUE];	/* the oldest first */
	int count;
};

struct channel {
	int node, number;
	struct rank ranks[MAX_RANKS];
	struct queue reads, writes;
	bool draining;		/* writes, though there are reads */
	clocks wake;		/* nothing can be done before */
};

/* Requests on their way to a controller, and those that its channels have no room for. */
struct front {
	struct request *entries;
	int count, size;
};

static struct core cores[MAX_CORES];
static int core_count;
static struct task tasks[MAX_TASKS];
static int task_count;
static struct channel all[MAX_NODES][MAX_CHANNELS];
static struct front fronts[MAX_NODES];
static long warm, batch, batches;
static clocks until = NEVER;
static bool over;

static clocks later(clocks a, clocks b)
{
	return a > b ? a : b;
}

static clocks sooner(clocks a, clocks b)
{
	return a < b ? a : b;
}

static void at_least(clocks *when, clocks value)
{
	*when = later(*when, value);
}

/* Commands */

static void command(const struct channel *channel, clocks now, const char *name, int rank, int bank,
		    int64_t row)
{
	if (tell_commands)
		printf("%lld %d %d %s %d %d %lld\n", (long long)now, channel->node, channel->number,
		       name, rank, bank, (long long)row);
}

static int group_of(int bank)
{
	return bank % groups;
}

static clocks may_activate(const struct rank *rank, int bank)
{
	clocks when = later(rank->banks[bank].act, rank->act);

	when = later(when, rank->act_group[group_of(bank)]);
	return later(when, rank->window[rank->oldest] + t.faw);
}

static void activate(struct channel *channel, clocks now, int number, int bank, int64_t row)
{
	struct rank *rank = &channel->ranks[number];
	struct bank *it = &rank->banks[bank];

	command(channel, now, "ACT", number, bank, row);
	it->row = row;
	it->overtaken = 0;
	at_least(&it->act, now + t.rc);
	at_least(&it->pre, now + t.ras);
	at_least(&it->column, now + t.rcd);
	at_least(&rank->act, now + t.rrd_s);
	at_least(&rank->act_group[group_of(bank)], now + t.rrd_l);
	rank->window[rank->oldest] = now;
	rank->oldest = (rank->oldest + 1) % FOUR;
}

static void precharge(struct channel *channel, clocks now, int number, int bank)
{
	struct bank *it = &channel->ranks[number].banks[bank];

	command(channel, now, "PRE", number, bank, it->row);
	it->row = -1;
	at_least(&it->act, now + t.rp);
}

static clocks may_column(const struct rank *rank, int bank, bool write)
{
	const clocks *bus = write ? rank->write : rank->read;

	return later(rank->banks[bank].column, bus[group_of(bank)]);
}

/* What a column command lets the others of its channel do, and when. */
static void column(struct channel *channel, clocks now, int number, int bank, bool write)
{
	struct bank *it = &channel->ranks[number].banks[bank];
	clocks written = t.cwl + t.bl;	/* the end of a write's data */
	int r, g;

	command(channel, now, write ? "WR" : "RD", number, bank, it->row);
	at_least(&it->pre, write ? now + written + t.wr : now + t.rtp);
	for (r = 0; r < ranks; r++) {
		for (g = 0; g < groups; g++) {
			struct rank *other = &channel->ranks[r];
			bool same = g == group_of(bank);
			clocks ccd = same ? t.ccd_l : t.ccd_s;
			clocks wtr = same ? t.wtr_l : t.wtr_s;

			if (r != number) {	/* the bus changes hands */
				ccd = t.bl + t.rtrs;
				wtr = t.rtrs - t.cl;
			}
			at_least(&other->read[g], now + (write ? written + wtr : ccd));
			/* JESD79-3, -4: RL + BL / 2 + 2 - WL; of another rank: without a gap */
			at_least(&other->write[g],
				 now + (write ? ccd : t.cl + t.bl - t.cwl +
						(r == number ? 2 : t.rtrs)));
		}
	}
}

/* The scheduler of a channel: a command a clock */

/* Refresh what is due: close its banks, then all at once. Returns when it can go on. */
static clocks refresh(struct channel *channel, clocks now, int number)
{
	struct rank *rank = &channel->ranks[number];
	clocks when = NEVER, closed = 0;
	int open = 0, b;

	for (b = 0; b < banks; b++) {
		closed = later(closed, rank->banks[b].act);
		if (rank->banks[b].row < 0)
			continue;
		open++;
		if (rank->banks[b].pre <= now) {
			precharge(channel, now, number, b);
			return now;
		}
		when = sooner(when, rank->banks[b].pre);
	}
	if (open)
		return when;
	/* tRP after each precharge, tRC after each activate */
	if (closed > now)
		return closed;
	command(channel, now, "REF", number, 0, 0);
	at_least(&rank->act, now + t.rfc);
	rank->refresh += t.refi;
	return now;
}

static void complete(struct request *request, clocks now);

static void forget(struct queue *queue, int entry)
{
	queue->count--;
	memmove(&queue->entries[entry], &queue->entries[entry + 1],
		(queue->count - entry) * sizeof(*queue->entries));
}

/* Writes when there are many of them, until there are few, and while nobody reads. */
static struct queue *to_serve(struct channel *channel)
{
	int reads = channel->reads.count, writes = channel->writes.count;

	if (writes >= writes_high)
		channel->draining = true;
	else if (writes <= writes_low)
		channel->draining = false;
	return channel->draining || !reads ? &channel->writes : &channel->reads;
}

/*
 * First ready, first come, first served (Rixner et al., ISCA 2000): the oldest request whose row is
 * open, or else the oldest that a row can be opened or closed for. The oldest request of a bank is
 * overtaken by no more than @cap row hits of it (Mutlu and Moscibroda, MICRO 2007), and the oldest
 * whose row is open by no more than @cap others: those of the rank that has the bus, or of other
 * bank groups, are ready a clock or two before it each time.
 */
static void schedule(struct channel *channel, clocks now)
{
	struct queue *queue = to_serve(channel);
	bool write = queue == &channel->writes;
	/* of each bank: its oldest request, and whether its open row is still wanted */
	int first[MAX_RANKS][MAX_BANKS];
	bool wanted[MAX_RANKS][MAX_BANKS] = { { false } };
	struct request *waits = NULL;	/* for the bus, the oldest */
	clocks wake = NEVER, when;
	int r, i;

	for (r = 0; r < ranks; r++) {
		if (t.refi && channel->ranks[r].refresh <= now) {
			when = refresh(channel, now, r);
			if (when == now)
				goto issued;
			wake = sooner(wake, when);
		} else if (t.refi) {
			wake = sooner(wake, channel->ranks[r].refresh);
		}
	}
	memset(first, -1, sizeof(first));
	for (i = 0; i < queue->count; i++) {
		const struct access *to = queue->entries[i].to;
		struct rank *rank = &channel->ranks[to->rank];
		struct bank *bank = &rank->banks[to->bank];
		int *oldest = &first[to->rank][to->bank];

		if (*oldest < 0)
			*oldest = i;
		if (bank->row != to->row || (*oldest != i && bank->overtaken >= cap &&
					     queue->entries[*oldest].to->row != bank->row))
			continue;
		wanted[to->rank][to->bank] = true;
		if (t.refi && rank->refresh <= now)
			continue;
		when = may_column(rank, to->bank, write);
		if (when > now || (waits && waits->overtaken >= cap)) {
			wake = sooner(wake, later(when, now + 1));
			if (!waits)
				waits = &queue->entries[i];
			continue;
		}
		if (waits)
			waits->overtaken++;
		if (queue->entries[*oldest].to->row == bank->row)
			bank->overtaken = 0;
		else
			bank->overtaken++;
		column(channel, now, to->rank, to->bank, write);
		complete(&queue->entries[i], now);
		forget(queue, i);
		goto issued;
	}
	for (i = 0; i < queue->count; i++) {
		const struct access *to = queue->entries[i].to;
		struct rank *rank = &channel->ranks[to->rank];
		struct bank *bank = &rank->banks[to->bank];

		if (first[to->rank][to->bank] != i || wanted[to->rank][to->bank] ||
		    (t.refi && rank->refresh <= now))
			continue;
		when = bank->row < 0 ? may_activate(rank, to->bank) : bank->pre;
		if (when > now) {
			wake = sooner(wake, when);
			continue;
		}
		if (bank->row < 0)
			activate(channel, now, to->rank, to->bank, to->row);
		else
			precharge(channel, now, to->rank, to->bank);
		goto issued;
	}
	channel->wake = wake;
	return;
issued:
	channel->wake = now + 1;
}

/* The way from a core to a channel */

static void send(struct task *task, int slot, const struct access *to, clocks now)
{
	struct front *front = &fronts[to->node];
	struct request request = { to, task, slot, now, now + to->extra, 0 };
	int at;

	if (front->count == front->size) {
		front->size = 2 * front->size + 64;
		front->entries = realloc(front->entries, front->size * sizeof(*front->entries));
		if (!front->entries)
			err(1, "requests");
	}
	for (at = front->count++; at && front->entries[at - 1].arrives > request.arrives; at--)
		front->entries[at] = front->entries[at - 1];
	front->entries[at] = request;
}

/* In order: one that finds its queue full keeps those behind it waiting, whatever their channel. */
static clocks admit(int node, clocks now)
{
	struct front *front = &fronts[node];
	const struct access *to;
	struct channel *channel;
	struct queue *queue;

	if (!front->count)
		return NEVER;
	if (front->entries[0].arrives > now)
		return front->entries[0].arrives;
	to = front->entries[0].to;
	channel = &all[node][to->channel];
	queue = to->write ? &channel->writes : &channel->reads;
	if (queue->count == (to->write ? writes_max : reads_max))
		return NEVER;	/* until the channel has done something */
	queue->entries[queue->count++] = front->entries[0];
	channel->wake = sooner(channel->wake, now);
	front->count--;
	memmove(front->entries, front->entries + 1, front->count * sizeof(*front->entries));
	return front->count ? later(front->entries[0].arrives, now + 1) : NEVER;
}

/* Tasks */

static int number_of(const struct task *task)
{
	return task - tasks;
}

static void count_read(struct task *task, clocks issued, clocks done)
{
	clocks latency = sooner(done - issued, MAX_LATENCY - 1);

	task->done++;
	if (tasks[0].done <= warm) {
		task->batch_began = done;
		if (task != tasks)
			task->done = 0;
		return;
	}
	task->latencies[latency]++;
	task->longest = later(task->longest, latency);
	if (batch && (task->done - (task == tasks ? warm : 0)) % batch == 0) {
		printf("batch %d %lld\n", number_of(task), (long long)(done - task->batch_began));
		task->batch_began = done;
		if (task == tasks && !--batches)
			over = true;
	}
}

/* The command was given whose data is what the request is about. */
static void complete(struct request *request, clocks now)
{
	struct task *task = request->task;
	struct slot *slot;
	clocks done;

	if (request->to->write) {
		task->writing--;
		return;
	}
	slot = &task->slots[request->slot];
	done = now + t.cl + t.bl + path + request->to->extra;
	slot->waiting = false;
	slot->ready = done + task->think;
	task->waiting--;
	if (request->issued >= task->release)	/* or it is of a job that was given up */
		at_least(&task->finish, done);
	count_read(task, request->issued, done);
}

/* Begin and end jobs. Returns when there is something to do again. */
static clocks release(struct task *task, clocks now)
{
	bool late;

	if (!task->period) {
		task->active = now >= task->start;
		task->left = 1;
		return task->active ? NEVER : task->start;
	}
	late = task->active && now >= task->next_release;
	if (task->active && !task->left && !task->waiting && task->finish <= now) {
		printf("job %d %lld %lld\n", number_of(task), (long long)task->release,
		       (long long)(task->finish - task->release));
		task->active = late = false;
	}
	if (late)
		printf("job %d %lld -1\n", number_of(task), (long long)task->release);
	if (now >= task->next_release) {
		task->active = true;
		task->left = task->job;
		task->release = task->finish = task->next_release;
		task->next_release += task->period;
	}
	if (task->active && !task->left && !task->waiting)
		return sooner(task->next_release, task->finish);
	return task->next_release;
}

/* The accesses that a task can begin. Returns when it can begin another. */
static clocks issue(struct core *core, struct task *task, clocks now)
{
	clocks when = NEVER;
	int i;

	if (!task->left)
		return NEVER;
	if (core->issued >= now)
		return now + 1;
	for (i = 0; i < task->mlp; i++) {
		const struct access *to = &task->accesses[task->next];
		struct slot *slot = &task->slots[i];

		if (slot->waiting)
			continue;
		if (slot->ready > now) {
			when = sooner(when, slot->ready);
			continue;
		}
		if (to->write && task->writing >= writes_max)
			return NEVER;	/* until one of them is written */
		task->next = (task->next + 1) % task->count;
		core->issued = now;
		if (to->write) {
			task->writing++;
		} else {
			slot->waiting = true;
			task->waiting++;
			if (task->period)
				task->left--;
		}
		send(task, i, to, now);
		return now + 1;
	}
	return when;
}

static clocks run_core(struct core *core, clocks now)
{
	clocks when = NEVER;
	int i;

	for (i = 0; i < core->count; i++)
		when = sooner(when, release(core->tasks[i], now));
	for (i = 0; i < core->count; i++)
		if (core->tasks[i]->active)
			return sooner(when, issue(core, core->tasks[i], now));
	return when;
}

static void run(void)
{
	clocks now = 0, next;
	int n, c;

	while (!over && now < until) {
		next = NEVER;
		for (c = 0; c < core_count; c++)
			next = sooner(next, run_core(&cores[c], now));
		for (n = 0; n < nodes; n++) {
			next = sooner(next, admit(n, now));
			for (c = 0; c < channels; c++) {
				if (all[n][c].wake <= now)
					schedule(&all[n][c], now);
				next = sooner(next, all[n][c].wake);
			}
		}
		if (next == NEVER)
			errx(1, "nothing is left to do at clock %lld", (long long)now);
		now = later(next, now + 1);
	}
}

/* Input */

static long in_range(long value, long low, long high, const char *what)
{
	if (value < low || value > high)
		errx(2, "%s: %ld is not within %ld to %ld", what, value, low, high);
	return value;
}

static void read_accesses(struct task *task)
{
	int node, channel, rank, bank, write;
	unsigned int row, extra;
	bool reads = false;
	long i;

	task->accesses = calloc(task->count, sizeof(*task->accesses));
	if (!task->accesses)
		err(1, "accesses");
	for (i = 0; i < task->count; i++) {
		if (scanf("%d %d %d %d %u %d %u", &node, &channel, &rank, &bank, &row, &write,
			  &extra) != 7)
			errx(2, "access %ld of task %d cannot be read", i, number_of(task));
		task->accesses[i] = (struct access){
			.node = in_range(node, 0, nodes - 1, "node"),
			.channel = in_range(channel, 0, channels - 1, "channel"),
			.rank = in_range(rank, 0, ranks - 1, "rank"),
			.bank = in_range(bank, 0, banks - 1, "bank"),
			.row = row, .write = write, .extra = extra,
		};
		reads |= !write;
	}
	if (!reads)
		errx(2, "task %d only writes back: it would never wait", number_of(task));
}

static void read_task(void)
{
	struct task *task = &tasks[in_range(task_count++, 0, MAX_TASKS - 1, "task")];
	long long think, period, start;
	struct core *core;

	if (!core_count || !nodes)
		errx(2, "a task needs a machine and a core before it");
	core = &cores[core_count - 1];
	if (scanf("%d %lld %lld %lld %ld %ld", &task->mlp, &think, &period, &start, &task->job,
		  &task->count) != 6)
		errx(2, "task %d cannot be read", number_of(task));
	in_range(task->mlp, 1, MAX_MLP, "MLP");
	in_range(task->count, 1, 1L << 28, "accesses");
	task->think = in_range(think, 0, 1L << 40, "THINK");
	task->period = in_range(period, 0, 1L << 40, "PERIOD");
	task->start = task->next_release = in_range(start, 0, 1L << 40, "START");
	in_range(task->job, task->period ? 1 : 0, 1L << 40, "JOB");
	task->latencies = calloc(MAX_LATENCY, sizeof(*task->latencies));
	if (!task->latencies)
		err(1, "latencies");
	read_accesses(task);
	core->tasks[in_range(core->count++, 0, MAX_TASKS_OF_CORE - 1, "task of a core")] = task;
}

static void read_timing(void)
{
	clocks *values = (clocks *)&t;
	size_t i;
	long long value;

	for (i = 0; i < sizeof(t) / sizeof(clocks); i++) {
		if (scanf("%lld", &value) != 1)
			errx(2, "timing %zu cannot be read", i);
		values[i] = in_range(value, 0, 1L << 30, "timing");
	}
}

static void read_queues(void)
{
	long long value;

	if (scanf("%d %d %d %d %d %lld", &reads_max, &writes_max, &writes_high, &writes_low, &cap,
		  &value) != 6)
		errx(2, "queues cannot be read");
	in_range(reads_max, 1, MAX_QUEUE, "READS");
	in_range(writes_max, 1, MAX_QUEUE, "WRITES");
	in_range(writes_high, 1, writes_max, "HIGH");
	in_range(writes_low, 0, writes_high - 1, "LOW");
	in_range(cap, 0, 1L << 30, "CAP");
	path = in_range(value, 0, 1L << 20, "PATH");
}

static void read_input(void)
{
	char word[16];

	while (scanf("%15s", word) == 1) {
		if (!strcmp(word, "timing")) {
			read_timing();
		} else if (!strcmp(word, "machine")) {
			if (scanf("%d %d %d %d %d", &nodes, &channels, &ranks, &groups,
				  &banks) != 5)
				errx(2, "machine cannot be read");
			in_range(nodes, 1, MAX_NODES, "NODES");
			in_range(channels, 1, MAX_CHANNELS, "CHANNELS");
			in_range(ranks, 1, MAX_RANKS, "RANKS");
			in_range(groups, 1, MAX_GROUPS, "GROUPS");
			in_range(banks, groups, MAX_BANKS, "BANKS");
		} else if (!strcmp(word, "queues")) {
			read_queues();
		} else if (!strcmp(word, "core")) {
			in_range(core_count, 0, MAX_CORES - 1, "core");
			cores[core_count++].issued = -1;
		} else if (!strcmp(word, "task")) {
			read_task();
		} else if (!strcmp(word, "run")) {
			if (scanf("%ld %ld %ld", &warm, &batch, &batches) != 3)
				errx(2, "run cannot be read");
			in_range(warm, 0, 1L << 40, "WARM");
			in_range(batch, 1, 1L << 40, "BATCH");
			in_range(batches, 1, 1L << 40, "BATCHES");
		} else if (!strcmp(word, "until")) {
			long long value;

			if (scanf("%lld", &value) != 1)
				errx(2, "until cannot be read");
			until = in_range(value, 0, 1L << 50, "until");
		} else {
			errx(2, "unknown statement %s", word);
		}
	}
	if (!task_count || !t.bl || !reads_max || (until == NEVER && !batches))
		errx(2, "the input lacks timing, queues, tasks or an end");
}

static void begin(void)
{
	int n, c, r, b, i;

	for (n = 0; n < nodes; n++) {
		for (c = 0; c < channels; c++) {
			all[n][c].node = n;
			all[n][c].number = c;
			for (r = 0; r < ranks; r++) {
				struct rank *rank = &all[n][c].ranks[r];

				for (b = 0; b < banks; b++)
					rank->banks[b].row = -1;
				for (i = 0; i < FOUR; i++)
					rank->window[i] = -t.faw;
				/* ranks take turns */
				rank->refresh = t.refi * (r + 1) / ranks;
			}
		}
	}
}

int main(int argc, char **argv)
{
	int i, latency;

	if (argc > 2 || (argc == 2 && strcmp(argv[1], "-c")))
		errx(2, "usage: model [-c] <INPUT");
	tell_commands = argc == 2;
	read_input();
	begin();
	run();
	for (i = 0; i < task_count; i++)
		for (latency = 0; latency <= tasks[i].longest; latency++)
			if (tasks[i].latencies[latency])
				printf("latency %d %d %u\n", i, latency,
				       tasks[i].latencies[latency]);
	return 0;
}
