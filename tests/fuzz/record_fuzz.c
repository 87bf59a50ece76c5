/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_fuzz.c - any bytes as a file of records: they are read, summed up and
 *                 turned into a policy, and nothing of theirs gets into it that
 *                 could be read as more than was checked
 */
#include <stdint.h>
#include <stdlib.h>

#include "audit/query.h"
#include "audit/record.h"
#include "base/fd.h"
#include "base/mem.h"

#define POLICY_MAX	(8u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_plain(const char *s)
{
	for (; *s; s++)
		REQUIRE((unsigned char)*s >= 0x20 && (unsigned char)*s < 0x7f);
}

static bool on_flow(void *arg, const struct query_flow *f)
{
	unsigned *left = arg;

	check_plain(f->ts);
	check_plain(f->host);
	check_plain(f->reason);
	check_plain(f->rule);
	check_plain(f->dst_ip);
	return --*left > 0;
}

/* Lines of a policy begin in few ways; a name never makes another one. */
static void check_line(struct str line)
{
	static const char *const starts[] = {
		"; ", "[policy]", "name = ", "[allow ", "hosts = ", "ports = ",
		"reason = ",
	};
	size_t i;

	if (line.n == 0)
		return;
	for (i = 0; i < ARRAY_SIZE(starts); i++)
		if (str_starts(line, str_from(starts[i])))
			return;
	abort();
}

static void check_policy(const struct query_summary *s, bool all)
{
	const struct query_wish wish = {
		.run = "run", .refused = true, .reached = all, .wildcards = all,
	};
	struct buf out = BUF_INIT(POLICY_MAX);
	struct str rest, line;

	if (query_policy(s, &wish, &out) == 0) {
		rest = buf_str(&out);
		while (str_cut(&rest, '\n', &line))
			check_line(line);
	}
	buf_done(&out);
}

/* Bytes as a program in the sandbox would say them: always one whole line. */
static void check_render(struct str s)
{
	struct record_labels labels = { .run = "run" };
	struct record r = {
		.event = RECORD_HTTP, .host = s, .sni = s, .http_host = s,
		.method = s, .path = s, .dur_ms = -1,
	};
	struct buf out = BUF_INIT(RECORD_LINE_MAX);

	REQUIRE(record_render(&r, &labels, 1, 0, &out) == 0);
	REQUIRE(memchr(out.p, '\n', out.n) == out.p + out.n - 1);
	buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct query_summary s;
	unsigned left = 1000;
	uint64_t bad;
	int fd = -1;

	check_render(str_make(data, n));
	if (fd_memfd("records", str_make(data, n), &fd) < 0)
		return 0;
	if (query_summarise(fd, &s) == 0) {
		check_policy(&s, false);
		check_policy(&s, true);
		query_summary_done(&s);
	}
	REQUIRE(lseek(fd, 0, SEEK_SET) == 0);
	REQUIRE(query_each(fd, on_flow, &left, &bad) == 0);
	close(fd);
	return 0;
}
