/* SPDX-License-Identifier: Apache-2.0 */
/*
 * match.c - what a decision costs, and a host of a list, and its loading
 *
 *	match LIST OTHERS RULES
 *
 * LIST and OTHERS are files of hosts, one a line.  The hosts of LIST are
 * allowed: by one rule that names the list, or RULES > 1, by so many rules with
 * a part of the hosts each.  Says one line of JSON.
 *
 * Loading is rules_compile() from the text in memory; what the process has
 * grown by is taken when the text has been given back.
 *
 * Each decision is timed by itself: the time stamp counter is read behind a
 * fence on each side, what the same costs around nothing (the median of many)
 * is taken off, and ticks become nanoseconds by CLOCK_MONOTONIC over the whole
 * run.  Medians and 99th percentiles are of these.  "many" is the mean of
 * decisions one behind the other with no fence, by the CPU's time.  "busy"
 * reads through BUSY_BYTES of other memory before each decision, so that
 * neither table, code nor question are near.
 *
 * "read" is one read of memory that is in no cache, timed like a decision: what
 * the machine makes any decision over a large table wait, at least.
 *
 * Names are asked in random order.  A name is copied to the stack first, as it
 * would lie when it comes from a request.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "rules/rules.h"

#define DECISIONS	200000
#define BUSY_DECISIONS	2000
#define BUSY_BYTES	(8u << 20)
#define CHASE_BYTES	((size_t)64 << 20)
#define HOSTS_A_LINE	7000		/* bytes */
#define RULES_TEXT	(64u << 20)

static void die(const char *what)
{
	fprintf(stderr, "match: %s\n", what);
	exit(1);
}

/* --- clocks --------------------------------------------------------------- */

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#if defined(__x86_64__)
static inline uint64_t ticks(void)
{
	uint32_t lo, hi;

	__asm__ volatile("lfence\n\trdtsc\n\tlfence" : "=a"(lo), "=d"(hi) : :
			 "memory");
	return (uint64_t)hi << 32 | lo;
}
#else
static inline uint64_t ticks(void)
{
	return now_ns(CLOCK_MONOTONIC);
}
#endif

static int ticks_cmp(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static uint32_t empty_ticks(void)
{
	static uint32_t t[DECISIONS];

	for (size_t i = 0; i < DECISIONS; i++) {
		uint64_t before = ticks();

		t[i] = (uint32_t)(ticks() - before);
	}
	qsort(t, DECISIONS, sizeof(t[0]), ticks_cmp);
	return t[DECISIONS / 2];
}

/* --- files and memory ----------------------------------------------------- */

static struct str map_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *p;

	if (fd < 0 || fstat(fd, &st) < 0)
		die(path);
	p = mmap(NULL, (size_t)st.st_size, PROT_READ,
		 MAP_PRIVATE | MAP_POPULATE, fd, 0);
	if (p == MAP_FAILED)
		die(path);
	close(fd);
	return str_make(p, (size_t)st.st_size);
}

static void unmap(struct str text)
{
	munmap((void *)(uintptr_t)text.p, text.n);
}

/* In KiB: "VmRSS:" or "VmHWM:". */
static unsigned long memory_kb(const char *what)
{
	unsigned long kb = 0;
	char line[128];
	FILE *f = fopen("/proc/self/status", "re");

	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, what, strlen(what)) == 0)
			kb = strtoul(line + strlen(what), NULL, 10);
	}
	if (f)
		fclose(f);
	return kb;
}

/* --- the policy ----------------------------------------------------------- */

static void add(struct buf *b, struct str s)
{
	if (buf_add(b, s.p, s.n) < 0)
		die("the policy does not fit");
}

/* All hosts of @list, an equal part in each of @rules rules. */
static void write_rules(struct str list, size_t n, size_t rules, struct buf *b)
{
	size_t each = (n + rules - 1) / rules, line = 0, i = 0;
	struct str host;

	while (str_cut(&list, '\n', &host)) {
		if (i++ % each == 0) {
			if (buf_printf(b, "\n[allow r%zu]\nhosts =", i) < 0)
				die("the policy does not fit");
			line = 0;
		} else if (line > HOSTS_A_LINE) {
			add(b, STR("\nhosts ="));
			line = 0;
		}
		add(b, STR(" "));
		add(b, host);
		line += host.n + 1;
	}
	add(b, STR("\n"));
}

static void on_diag(void *arg, const struct rules_diag *d)
{
	(void)arg;
	fprintf(stderr, "match: %s:%u: %s\n", d->file, d->line, d->message);
}

struct load {
	double seconds, cpu_seconds;
	unsigned long grown_kb, peak_kb;
};

static struct ruleset *load(const char *path, size_t n, size_t rules,
			    struct load *ret)
{
	static const struct str one = STR("[allow list]\nhosts = @list\n");
	struct buf text = BUF_INIT(RULES_TEXT);
	struct rules_source source[2] = {
		{ .name = "policy", .text = one },
		{ .name = "list", .kind = RULES_SOURCE_HOSTS, .parent = 1,
		  .line = 2, .word = STR("@list") },
	};
	unsigned long before = memory_kb("VmRSS:");
	struct ruleset *rs = NULL;
	uint64_t wall, cpu;
	struct str list = map_file(path);

	if (rules > 1) {
		write_rules(list, n, rules, &text);
		source[0].text = buf_str(&text);
	}
	source[1].text = list;
	wall = now_ns(CLOCK_MONOTONIC);
	cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	if (rules_compile(source, rules > 1 ? 1 : 2, on_diag, NULL, &rs) < 0)
		die("the policy is refused");
	ret->seconds = (double)(now_ns(CLOCK_MONOTONIC) - wall) / 1e9;
	ret->cpu_seconds = (double)(now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu) /
			   1e9;
	buf_done(&text);
	unmap(list);
	ret->grown_kb = memory_kb("VmRSS:") - before;
	ret->peak_kb = memory_kb("VmHWM:") - before;
	return rs;
}

/* --- asking --------------------------------------------------------------- */

struct names {
	struct str *name;
	size_t n;
};

static struct names names_of(struct str text)
{
	struct names v = { 0 };
	struct str line;

	for (size_t i = 0; i < text.n; i++)
		v.n += text.p[i] == '\n';
	v.name = mem_new_array(v.n, sizeof(v.name[0]));
	if (!v.name)
		die("out of memory");
	v.n = 0;
	while (str_cut(&text, '\n', &line))
		v.name[v.n++] = line;
	return v;
}

static uint64_t seed = 0x9e3779b97f4a7c15;

static size_t draw(size_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (size_t)(seed >> 11) % below;
}

struct timed {
	uint32_t median, p99;		/* ticks */
	double many;			/* ns */
	unsigned long allowed;
};

static void take_percentiles(uint32_t *t, size_t n, struct timed *ret)
{
	qsort(t, n, sizeof(t[0]), ticks_cmp);
	ret->median = t[n / 2];
	ret->p99 = t[n - n / 100 - 1];
}

struct asked {
	char name[DECISIONS][256];
	uint8_t n[DECISIONS];
};

static void draw_names(struct asked *a, const struct names *names,
		       const char *front)
{
	size_t front_n = strlen(front);

	for (size_t i = 0; i < DECISIONS; i++) {
		struct str name = names->name[draw(names->n)];

		if (front_n + name.n > 253)
			die("a name is too long");
		memcpy(a->name[i], front, front_n);
		memcpy(a->name[i] + front_n, name.p, name.n);
		a->n[i] = (uint8_t)(front_n + name.n);
	}
}

static unsigned decide(const struct ruleset *rs, struct str host)
{
	struct rules_question q = { .host = host, .port = 443, .now = 1 };
	struct rules_answer answer;

	rules_judge(rs, &q, &answer);
	return answer.reason == REASON_ALLOWED;
}

static void be_busy(void)
{
	static unsigned char other[BUSY_BYTES];

	for (size_t i = 0; i < sizeof(other); i += 64)
		((volatile unsigned char *)other)[i]++;
}

static struct timed time_them(const struct ruleset *rs, const struct asked *a,
			      size_t n, bool busy)
{
	static uint32_t t[DECISIONS];
	struct timed ret = { 0 };
	uint64_t begin;

	for (size_t i = 0; i < n; i++) {
		char host[256];
		uint64_t before;

		if (busy)
			be_busy();
		memcpy(host, a->name[i], sizeof(host));
		before = ticks();
		ret.allowed += decide(rs, str_make(host, a->n[i]));
		t[i] = (uint32_t)(ticks() - before);
	}
	take_percentiles(t, n, &ret);
	begin = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	for (size_t i = 0; i < n; i++)
		(void)decide(rs, str_make(a->name[i], a->n[i]));
	ret.many = (double)(now_ns(CLOCK_PROCESS_CPUTIME_ID) - begin) /
		   (double)n;
	return ret;
}

/* A circle through all lines of CHASE_BYTES, in large pages. */
static char *make_circle(void)
{
	const size_t n = CHASE_BYTES / 64;
	char *block = mem_new(CHASE_BYTES);
	uint32_t *order = mem_new_array(n, sizeof(*order));

	if (!block || !order)
		die("out of memory");
	mem_prefer_large_pages(block, CHASE_BYTES);
	for (size_t i = 0; i < n; i++)
		order[i] = (uint32_t)i;
	/* Sattolo's shuffle: one circle through all lines. */
	for (size_t i = n - 1; i > 0; i--) {
		size_t k = draw(i);
		uint32_t kept = order[i];

		order[i] = order[k];
		order[k] = kept;
	}
	for (size_t i = 0; i < n; i++)
		memcpy(block + 64 * i, &order[i], sizeof(order[i]));
	mem_free(order);
	return block;
}

/*
 * What one read costs that hangs on the one before: no decision that needs
 * memory can be faster than one of these.  @ret: each timed as decisions are.
 */
static double memory_ns(struct timed *ret)
{
	static uint32_t t[DECISIONS];
	const size_t n = CHASE_BYTES / 64;
	char *block = make_circle();
	uint32_t at = 0, start;
	uint64_t begin;
	double ns;

	for (size_t i = 0; i < DECISIONS; i++) {
		uint64_t before = ticks();

		memcpy(&at, block + 64 * (size_t)at, sizeof(at));
		t[i] = (uint32_t)(ticks() - before);
	}
	take_percentiles(t, DECISIONS, ret);
	start = at;
	begin = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	for (size_t i = 0; i < n; i++)
		memcpy(&at, block + 64 * (size_t)at, sizeof(at));
	ns = (double)(now_ns(CLOCK_PROCESS_CPUTIME_ID) - begin) / (double)n;
	/* It is back where it began: the reads cannot be left out. */
	if (at != start)
		die("the circle is none");
	mem_free(block);
	return ns;
}

struct measure {
	const char *word;
	const struct names *names;
	const char *front;
	size_t n;
	bool busy;
	struct timed timed;
};

int main(int argc, char **argv)
{
	static struct asked asked;
	static struct names listed, others;
	struct measure m[] = {
		{ .word = "hit", .names = &listed, .front = "" },
		{ .word = "miss", .names = &others, .front = "" },
		{ .word = "deep", .names = &listed, .front = "a.bc.def.ghij." },
		{ .word = "busy", .names = &listed, .front = "", .busy = true },
	};
	uint64_t tick0 = ticks(), ns0 = now_ns(CLOCK_MONOTONIC);
	struct ruleset *rs;
	struct load l;
	struct timed read;
	uint32_t empty;
	double ns, chase;

	if (argc != 4)
		die("usage: match LIST OTHERS RULES");
	/* The counting of lines is not a part of loading. */
	listed = names_of(map_file(argv[1]));
	others = names_of(map_file(argv[2]));
	memset(&asked, 1, sizeof(asked));
	rs = load(argv[1], listed.n, strtoul(argv[3], NULL, 10), &l);
	empty = empty_ticks();
	for (size_t i = 0; i < ARRAY_SIZE(m); i++) {
		draw_names(&asked, m[i].names, m[i].front);
		m[i].timed = time_them(rs, &asked, m[i].busy ? BUSY_DECISIONS :
				       DECISIONS, m[i].busy);
	}
	ns = (double)(now_ns(CLOCK_MONOTONIC) - ns0) /
	     (double)(ticks() - tick0);
	printf("{\"hosts\": %zu, \"rules\": %zu, \"load_s\": %.4f, "
	       "\"load_cpu_s\": %.4f, \"grown_kb\": %lu, \"peak_kb\": %lu",
	       listed.n, rules_count(rs), l.seconds, l.cpu_seconds, l.grown_kb,
	       l.peak_kb);
	for (size_t i = 0; i < ARRAY_SIZE(m); i++)
		printf(", \"%s\": {\"median_ns\": %.1f, \"p99_ns\": %.1f, "
		       "\"many_ns\": %.1f, \"allowed\": %lu}", m[i].word,
		       ((double)m[i].timed.median - empty) * ns,
		       ((double)m[i].timed.p99 - empty) * ns, m[i].timed.many,
		       m[i].timed.allowed);
	chase = memory_ns(&read);
	printf(", \"empty_ns\": %.1f, \"memory_ns\": %.1f, \"read\": "
	       "{\"median_ns\": %.1f, \"p99_ns\": %.1f}}\n", empty * ns, chase,
	       ((double)read.median - empty) * ns,
	       ((double)read.p99 - empty) * ns);
	rules_unref(rs);
	return 0;
}
