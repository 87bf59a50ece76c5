/* SPDX-License-Identifier: Apache-2.0 */
/*
 * odd_name.c - host names that are not worth writing into a policy
 *
 * Data leaves in names: each lookup carries some of it as a label, below a
 * domain whose servers are the attacker's.  Such names were refused, and a
 * summary that proposes to allow them would undo that with one paste.
 */
#include "cli/odd_name.h"

#include <string.h>

#include "base/str.h"
#include "rules/host_name.h"
#include "rules/rules_target.h"

#define LABEL_LONG	40	/* people's labels are shorter */
#define TURNS_LABEL	12	/* from this length on the turns count ... */
#define TURNS_MAX	4	/* ... from letter to digit and back */
#define HARSH_LABEL	20	/* and from this one the consonants ... */
#define HARSH_RUN	7	/* ... in a row */

static bool is_vowel(char c)
{
	return c != '\0' && strchr("aeiouy", c);
}

/* How often a letter stands beside a digit. */
static unsigned turns(struct str label)
{
	unsigned n = 0;

	for (size_t i = 1; i < label.n; i++) {
		char a = label.p[i - 1], b = label.p[i];

		if (a != '-' && b != '-' && a != '_' && b != '_' &&
		    ascii_is_digit(a) != ascii_is_digit(b))
			n++;
	}
	return n;
}

static size_t harsh_run(struct str label)
{
	size_t run = 0, most = 0;

	for (size_t i = 0; i < label.n; i++) {
		char c = label.p[i];

		run = c >= 'a' && c <= 'z' && !is_vowel(c) ? run + 1 : 0;
		most = MAX(most, run);
	}
	return most;
}

static bool odd_label(struct str label)
{
	if (label.n >= LABEL_LONG)
		return true;
	/* Punycode is odd to look at by its nature. */
	if (str_starts(label, STR("xn--")))
		return false;
	return (label.n >= TURNS_LABEL && turns(label) > TURNS_MAX) ||
	       (label.n >= HARSH_LABEL && harsh_run(label) >= HARSH_RUN);
}

bool odd_name(const char *host)
{
	struct str rest = str_from(host), label;

	while (str_cut(&rest, '.', &label)) {
		if (odd_label(label))
			return true;
	}
	return false;
}

/* Behind the first label; NULL where that is a top-level domain. */
static const char *parent_of(const char *host)
{
	const char *dot = strchr(host, '.');

	return dot && strchr(dot + 1, '.') ? dot + 1 : NULL;
}

bool odd_siblings(const struct query_summary *q, const struct query_row *row)
{
	const char *parent = parent_of(row->host), *before = "";
	unsigned n = 0;

	for (size_t i = 0; parent && i < q->n; i++) {
		const struct query_row *r = &q->row[i];
		const char *its = r->refused ? parent_of(r->host) : NULL;

		/* Rows of one host mostly stand together: count it once. */
		if (!its || strcmp(its, parent) != 0 ||
		    strcmp(r->host, before) == 0)
			continue;
		before = r->host;
		if (++n > ODD_SIBLINGS_MAX)
			return true;
	}
	return false;
}

static bool is_below(struct str name, struct str top)
{
	return str_eq(name, top) ||
	       (name.n > top.n && str_ends(name, top) &&
		name.p[name.n - top.n - 1] == '.');
}

bool vain_name(const char *host)
{
	/* ICANN's for private use (metadata.google.internal among them), RFC
	 * 8375, Google's other one, and the reverse trees, which are closed. */
	static const char *const tops[] = {
		"internal", "home.arpa", "metadata.goog", "in-addr.arpa",
		"ip6.arpa",
	};
	struct rules_target t;
	const char *why;
	struct str name;

	if (rules_target_parse(str_from(host), &t, &why) || t.host.n == 0 ||
	    rules_target_fault(&t))
		return true;
	name = host_name_str(&t.host);
	for (size_t i = 0; i < ARRAY_SIZE(tops); i++)
		if (is_below(name, str_from(tops[i])))
			return true;
	return host_name_is_local(name);
}
