/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query_policy.c - from what was refused to a policy text that a person reviews
 *
 * Of refusals only those become rules that a rule for a host can lift.  An address class
 * is never opened here, whatever was asked for: who wants that writes it by hand
 * with a reason.  Names come from records, so each is checked again before it
 * becomes a part of a policy.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "audit/query.h"
#include "base/ip_addr.h"
#include "base/mem.h"
#include "base/str.h"
#include "rules/host_idn.h"

#define NAME_MAX_BYTES	253	/* RFC 1035 2.3.4, without the root's dot */
#define RUN_SHOWN_MAX	40
#define RULE_NAME_MAX	42	/* so that "allow NAME" is within INI_SECTION_MAX */
#define PORTS_MAX	64	/* of one rule: a scan is not a wish */
#define WILDCARD_MIN	3	/* hosts below one name that ask for a wildcard */

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

/* --- which rows become rules ------------------------------------------------ */

struct maker {
	const struct query_summary *s;
	const struct query_wish *wish;
	struct buf *out;
	/*
	 * By row: whose rule it is.  The host itself, or the part of it behind
	 * "*."; NULL: none.
	 */
	const char **host;
	bool *wild;
};

/* Wished for, and a rule with this host and port lets it pass. */
static bool is_about_policy(const struct query_row *r,
			    const struct query_wish *wish)
{
	enum reason why = reason_by_word(str_from(r->reason));

	if (!r->refused && !r->would_deny)
		return wish->reached;
	if (r->refused && !wish->refused)
		return false;
	return why == REASON_HOST_NOT_ALLOWED || why == REASON_PORT_NOT_ALLOWED;
}

static bool is_lookup(const struct query_row *r)
{
	return str_eq(str_from(r->transport), STR("dns"));
}

static bool can_allow(const struct query_row *r, const struct query_wish *wish)
{
	bool tcp = str_eq(str_from(r->transport), STR("tcp"));

	return is_about_policy(r, wish) && is_host(str_from(r->host)) &&
	       (is_lookup(r) || (tcp && r->port != 0));
}

/* What is behind the first dot, where a wildcard over it may stand. */
static const char *parent_of(const char *host)
{
	const char *dot = strchr(host, '.');

	/* No policy may open every name below com or co.uk. */
	return dot && strchr(dot + 1, '.') &&
	       !host_is_public_suffix(str_from(dot + 1)) ? dot + 1 : NULL;
}

/* Distinct hosts right below the parent of row @i. */
static size_t count_siblings(const struct maker *m, size_t i)
{
	const char *parent = parent_of(m->s->row[i].host);
	size_t n = 0;

	for (size_t k = 0; k < m->s->n; k++) {
		const char *other = m->host[k] ? parent_of(m->host[k]) : NULL;
		bool seen = false;

		if (!other || strcmp(other, parent) != 0)
			continue;
		for (size_t before = 0; before < k && !seen; before++)
			seen = m->host[before] &&
			       strcmp(m->host[before], m->host[k]) == 0;
		n += !seen;
	}
	return n;
}

static void widen(struct maker *m)
{
	for (size_t i = 0; i < m->s->n; i++) {
		if (m->host[i] && parent_of(m->host[i]))
			m->wild[i] = count_siblings(m, i) >= WILDCARD_MIN;
	}
	for (size_t i = 0; i < m->s->n; i++) {
		if (m->wild[i])
			m->host[i] = parent_of(m->host[i]);
	}
}

static bool same_rule(const struct maker *m, size_t a, size_t b)
{
	return m->host[a] && m->host[b] && m->wild[a] == m->wild[b] &&
	       strcmp(m->host[a], m->host[b]) == 0;
}

/* Did an earlier row already make this one's rule? */
static bool is_repeat(const struct maker *m, size_t i)
{
	for (size_t k = 0; k < i; k++) {
		if (same_rule(m, k, i))
			return true;
	}
	return false;
}

static bool port_seen(const struct maker *m, size_t from, size_t to)
{
	for (size_t k = from; k < to; k++) {
		if (same_rule(m, k, to) &&
		    m->s->row[k].port == m->s->row[to].port)
			return true;
	}
	return false;
}

/* --- writing them ------------------------------------------------------------- */

static int put_evidence(const struct maker *m, size_t i)
{
	const struct query_row *r = &m->s->row[i];
	const char *did = r->refused ? "refused" : r->would_deny ?
			  "let through" : "reached";
	int err = buf_printf(m->out, ";");

	if (err == 0 && m->wild[i])
		err = buf_printf(m->out, " %s:", r->host);
	if (err == 0 && is_lookup(r))
		return buf_printf(m->out, " only looked up, the port is not "
				  "known: %s x%" PRIu64 "\n", r->reason,
				  r->count);
	if (err == 0)
		err = buf_printf(m->out, " port %u: %s x%" PRIu64 ", %s%s%"
				 PRIu64 " bytes up, %" PRIu64 " down\n",
				 (unsigned)r->port, did, r->count, r->reason,
				 r->reason[0] ? ", " : "", r->bytes_up,
				 r->bytes_down);
	return err;
}

static int put_ports(const struct maker *m, size_t i)
{
	unsigned n = 0;
	int err = 0;

	for (size_t k = i; k < m->s->n && err == 0; k++) {
		if (!same_rule(m, k, i) || is_lookup(&m->s->row[k]) ||
		    port_seen(m, i, k))
			continue;
		if (n == PORTS_MAX)
			return buf_printf(m->out,
					  "\n; and more ports, not written\n");
		err = buf_printf(m->out, n > 0 ? " %u" : "ports = %u",
				 (unsigned)m->s->row[k].port);
		n++;
	}
	if (err == 0 && n > 0)
		err = buf_add_char(m->out, '\n');
	return err;
}

static int put_head(const struct maker *m, size_t i)
{
	const char *below = m->wild[i] ? "below-" : "";

	/* Hosts are in lower case, so HOST-n is nobody's. */
	if (strlen(m->host[i]) + strlen(below) <= RULE_NAME_MAX)
		return buf_printf(m->out, "[allow %s%s]\n", below, m->host[i]);
	return buf_printf(m->out, "[allow HOST-%zu]\n", i + 1);
}

/* The rule of row @i, from it and all rows behind it. */
static int put_rule(const struct maker *m, size_t i)
{
	int err = buf_add_char(m->out, '\n');

	for (size_t k = i; k < m->s->n && err == 0; k++) {
		if (same_rule(m, k, i))
			err = put_evidence(m, k);
	}
	if (err == 0)
		err = put_head(m, i);
	if (err == 0)
		err = buf_printf(m->out, "hosts = %s%s\n", m->wild[i] ? "*." :
				 "", m->host[i]);
	if (err == 0)
		err = put_ports(m, i);
	if (err == 0)
		err = buf_printf(m->out, "reason = seen in run %s; review "
				 "before use\n", m->wish->run);
	return err;
}

/* What is not written, as a comment, so that nobody wonders. */
static int put_left_out(const struct maker *m, const struct query_row *r)
{
	struct str host = str_from(r->host);
	struct ip_addr addr;
	bool literal = ip_addr_parse(host, &addr) == 0;
	const char *why = r->reason;

	if (!r->refused && !r->would_deny)
		why = literal ? "reached by its address: write it by hand, "
				"with 'addresses' and a 'reason'" : "reached";
	else if (reason_by_word(str_from(why)) == REASONS)
		why = "-";
	return buf_printf(m->out, "; not written: %s port %u, %s\n",
			  literal || is_host(host) ? r->host : "(no name)",
			  (unsigned)r->port, why);
}

static int put_all(const struct maker *m)
{
	const char *run = m->wish->run;
	int err = buf_printf(m->out, "; What run %s %s: a proposal to review, "
			     "not a policy.\n; Delete what is not wanted; say "
			     "in 'reason' why the rest is.\n\n[policy]\n"
			     "name = run-%s\n", run, m->wish->reached ?
			     "needed" : "was refused, or would have been", run);

	for (size_t i = 0; i < m->s->n && err == 0; i++) {
		if (m->host[i] && !is_repeat(m, i))
			err = put_rule(m, i);
	}
	if (err == 0)
		err = buf_add_char(m->out, '\n');
	for (size_t i = 0; i < m->s->n && err == 0; i++) {
		const struct query_row *r = &m->s->row[i];

		if (!m->host[i] && (r->refused || r->would_deny ||
				    m->wish->reached))
			err = put_left_out(m, r);
	}
	return err;
}

/* "7f3a91", or "-" for what could not be a run's id. */
static const char *checked_run(const char *run)
{
	struct str s = str_from(run);

	if (s.n > RUN_SHOWN_MAX || !is_host(s))
		return "-";
	return run;
}

int query_policy(const struct query_summary *s, const struct query_wish *wish,
		 struct buf *out)
{
	struct query_wish checked = *wish;
	struct maker m = { .s = s, .wish = &checked, .out = out };
	int err = -ENOMEM;

	checked.run = checked_run(wish->run);
	m.host = mem_new_array(s->n + 1, sizeof(*m.host));
	m.wild = mem_new_array(s->n + 1, sizeof(*m.wild));
	if (m.host && m.wild) {
		for (size_t i = 0; i < s->n; i++) {
			if (can_allow(&s->row[i], &checked))
				m.host[i] = s->row[i].host;
		}
		if (wish->wildcards)
			widen(&m);
		err = put_all(&m);
	}
	mem_free(m.host);
	mem_free(m.wild);
	return err;
}
