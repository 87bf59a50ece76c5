/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay.c - records of one run that two processes make, in one numbering
 *
 * A daemon that has handed a run over still has flows of it that were open.
 * Its records of them reach the process that has the run now as finished lines,
 * through a pipe, and are given numbers here, where all others of the run get
 * theirs: who reads the file sees one order without a gap.  A line is from
 * another process: but for its number it is written as it came, and so it has
 * to look like one of ours first.
 */
#include "audit/relay.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "audit/sink.h"

/* As record_render() begins each line. */
#define HEAD	"{\"v\":1,\"ts\":\""
#define SEQ	"\",\"seq\":"
#define TS_MAX	40
#define DIGITS	20		/* of 64 bits */

static bool is_ts(char c)
{
	return ascii_is_digit(c) || c == '-' || c == ':' || c == '.' ||
	       c == 'T' || c == 'Z';
}

/* One line of printable bytes, an object from its first to its last. */
static bool is_one_line(struct str line)
{
	size_t i;

	if (line.n < 2 || line.n >= RECORD_LINE_MAX ||
	    line.p[line.n - 1] != '}')
		return false;
	for (i = 0; i < line.n; i++)
		if ((unsigned char)line.p[i] < 0x20)
			return false;
	return true;
}

/* Where the digits of its number are. */
static bool find_seq(struct str line, size_t *ret_from, size_t *ret_to)
{
	size_t at = sizeof(HEAD) - 1, from;

	if (!str_starts(line, STR(HEAD)))
		return false;
	while (at < line.n && at < TS_MAX && is_ts(line.p[at]))
		at++;
	if (!str_starts(str_make(line.p + at, line.n - at), STR(SEQ)))
		return false;
	from = at + sizeof(SEQ) - 1;
	for (at = from; at < line.n && ascii_is_digit(line.p[at]); at++)
		;
	if (at == from || at - from > DIGITS || at == line.n ||
	    line.p[at] != ',')
		return false;
	*ret_from = from;
	*ret_to = at;
	return true;
}

int audit_renumber(struct str line, uint64_t seq, struct buf *out)
{
	size_t from, to, before = out->n;
	char digits[DIGITS + 1];
	int n, err;

	if (!is_one_line(line) || !find_seq(line, &from, &to))
		return -EPROTO;
	n = snprintf(digits, sizeof(digits), "%" PRIu64, seq);
	REQUIRE(n > 0 && (size_t)n < sizeof(digits));
	if (from + (size_t)n + (line.n - to) >= RECORD_LINE_MAX)
		return -EPROTO;
	err = buf_add(out, line.p, from);
	if (err == 0)
		err = buf_add(out, digits, (size_t)n);
	if (err == 0)
		err = buf_add(out, line.p + to, line.n - to);
	if (err == 0)
		err = buf_add_char(out, '\n');
	if (err < 0)
		out->n = before;
	return err;
}

int audit_relay(struct audit_sink *s, struct str line)
{
	bool down = atomic_load(&s->down), was_empty;
	size_t before;
	int err = 0;

	REQUIRE(!s->of);
	sink_lock(&s->lock);
	before = s->fill.n;
	if (!down && !s->dropping)
		err = sink_add_gap(s);
	if (err == 0 && !s->dropping)
		err = audit_renumber(line, s->seq + 1, &s->fill);
	if (err == 0)
		s->seq++;
	if (err < 0 && err != -EPROTO) {
		s->lost++;
		s->lost_ever++;
	}
	atomic_store(&s->queued, s->fill.n);
	was_empty = before == 0 && s->fill.n > 0;
	sink_unlock(&s->lock);
	if (was_empty)
		writer_call(s);
	return err;
}

void audit_resume(struct audit_sink *s, uint64_t seq)
{
	sink_lock(&s->lock);
	REQUIRE(s->seq == 0 && s->fill.n == 0);
	s->seq = seq;
	s->written = seq;
	/* The thread compares with it, and touches it when there is a line. */
	s->drain_seq = seq;
	sink_unlock(&s->lock);
}
