/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query_policy.c - from what was refused to a policy text that a person reviews
 *
 * Only refusals that a rule for a host can lift become rules.  An address class
 * is never opened here, whatever was asked for: who wants that writes it by hand
 * with a reason.  Names come from records, so each is checked again before it
 * becomes a part of a policy.
 */
#include <errno.h>
#include <inttypes.h>

#include "audit/query.h"
#include "base/ip_addr.h"
#include "base/str.h"

#define NAME_MAX_BYTES	253	/* RFC 1035 2.3.4, without the root's dot */
#define RUN_SHOWN_MAX	40
#define RULE_NAME_MAX	42	/* so that "allow NAME" is within INI_SECTION_MAX */
#define PORTS_MAX	64	/* of one rule: a scan is not a wish */

/* Letters, digits and what stands between them: nothing that INI could read. */
static bool is_host(struct str s)
{
	struct ip_addr ignored;
	size_t i;

	if (s.n == 0 || s.n > NAME_MAX_BYTES || s.p[0] == '.' || s.p[0] == '-')
		return false;
	for (i = 0; i < s.n; i++) {
		char c = s.p[i];

		if (!(c >= 'a' && c <= 'z') && !ascii_is_digit(c) &&
		    c != '.' && c != '-' && c != '_')
			return false;
	}
	return ip_addr_parse(s, &ignored) < 0;
}

/* A refusal that a rule with this host and port would have lifted. */
static bool is_about_policy(const struct query_row *r)
{
	enum reason why = reason_by_word(str_from(r->reason));

	if (!r->refused && !r->would_deny)
		return false;
	return why == REASON_HOST_NOT_ALLOWED || why == REASON_PORT_NOT_ALLOWED;
}

static bool is_lookup(const struct query_row *r)
{
	return str_eq(str_from(r->transport), STR("dns"));
}

static bool can_allow(const struct query_row *r)
{
	bool tcp = str_eq(str_from(r->transport), STR("tcp"));

	return is_about_policy(r) && is_host(str_from(r->host)) &&
	       (is_lookup(r) || (tcp && r->port != 0));
}

static bool same_host(const struct query_row *a, const struct query_row *b)
{
	return str_eq(str_from(a->host), str_from(b->host));
}

/* Did an earlier row already make this one's rule? */
static bool is_repeat(const struct query_summary *s, size_t i)
{
	size_t k;

	for (k = 0; k < i; k++)
		if (can_allow(&s->row[k]) && same_host(&s->row[k], &s->row[i]))
			return true;
	return false;
}

static bool port_seen(const struct query_summary *s, size_t from, size_t to)
{
	size_t k;

	for (k = from; k < to; k++)
		if (can_allow(&s->row[k]) && same_host(&s->row[k], &s->row[to]) &&
		    s->row[k].port == s->row[to].port)
			return true;
	return false;
}

static int put_evidence(const struct query_row *r, struct buf *out)
{
	const char *did = r->refused ? "refused" : "let through";

	if (is_lookup(r))
		return buf_printf(out, "; only looked up, the port is not known: "
				  "%s x%" PRIu64 "\n", r->reason, r->count);
	return buf_printf(out, "; port %u: %s x%" PRIu64 ", %s, %" PRIu64
			  " bytes up, %" PRIu64 " down\n", (unsigned)r->port,
			  did, r->count, r->reason, r->bytes_up, r->bytes_down);
}

static int put_ports(const struct query_summary *s, size_t i, struct buf *out)
{
	unsigned n = 0;
	int err = 0;
	size_t k;

	for (k = i; k < s->n && err == 0; k++) {
		if (!can_allow(&s->row[k]) || is_lookup(&s->row[k]) ||
		    !same_host(&s->row[k], &s->row[i]) || port_seen(s, i, k))
			continue;
		if (n == PORTS_MAX)
			return buf_printf(out, "\n; and more ports, not written\n");
		err = buf_printf(out, n > 0 ? " %u" : "ports = %u",
				 (unsigned)s->row[k].port);
		n++;
	}
	if (err == 0 && n > 0)
		err = buf_add_char(out, '\n');
	return err;
}

/* The rule for the host of row @i, from it and all rows behind it. */
static int put_rule(const struct query_summary *s, size_t i, const char *run,
		    struct buf *out)
{
	const char *host = s->row[i].host;
	int err = buf_add_char(out, '\n');
	size_t k;

	for (k = i; k < s->n && err == 0; k++)
		if (can_allow(&s->row[k]) && same_host(&s->row[k], &s->row[i]))
			err = put_evidence(&s->row[k], out);
	if (err < 0)
		return err;
	/* Hosts are in lower case, so HOST-n is nobody's. */
	if (strlen(host) <= RULE_NAME_MAX)
		err = buf_printf(out, "[allow %s]\n", host);
	else
		err = buf_printf(out, "[allow HOST-%zu]\n", i + 1);
	if (err == 0)
		err = buf_printf(out, "hosts = %s\n", host);
	if (err == 0)
		err = put_ports(s, i, out);
	if (err == 0)
		err = buf_printf(out, "reason = seen in run %s; review before use\n",
				 run);
	return err;
}

/* What is not written, as a comment, so that nobody wonders. */
static int put_left_out(const struct query_row *r, struct buf *out)
{
	struct str host = str_from(r->host);
	struct ip_addr addr;
	bool known = is_host(host) || ip_addr_parse(host, &addr) == 0;

	return buf_printf(out, "; not written: %s port %u, %s\n",
			  known ? r->host : "(no name)", (unsigned)r->port,
			  reason_by_word(str_from(r->reason)) == REASONS ? "-" :
			  r->reason);
}

/* "7f3a91", or "-" for what could not be a run's id. */
static const char *checked_run(const char *run)
{
	struct str s = str_from(run);

	if (s.n > RUN_SHOWN_MAX || !is_host(s))
		return "-";
	return run;
}

/**
 * query_policy() - The policy text that would have allowed what was refused
 *                  or would have been: for `--write-policy`
 * @run:	its id, for the reasons and the name
 * @out:	text is appended; on failure it may hold a part
 *
 * One rule a host, its evidence as comments; nothing of an address class.
 * Return: 0, -ENOSPC or -ENOMEM
 */
int query_policy(const struct query_summary *s, const char *run,
		 struct buf *out)
{
	size_t i;
	int err;

	run = checked_run(run);
	err = buf_printf(out, "; What run %s was refused, or would have been: a "
			 "proposal to review, not a policy.\n"
			 "; Delete what is not wanted; say in 'reason' why the "
			 "rest is.\n\n[policy]\nname = run-%s\n", run, run);
	for (i = 0; i < s->n && err == 0; i++)
		if (can_allow(&s->row[i]) && !is_repeat(s, i))
			err = put_rule(s, i, run, out);
	if (err == 0)
		err = buf_add_char(out, '\n');
	for (i = 0; i < s->n && err == 0; i++)
		if ((s->row[i].refused || s->row[i].would_deny) &&
		    !can_allow(&s->row[i]))
			err = put_left_out(&s->row[i], out);
	return err;
}
