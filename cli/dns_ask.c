/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_ask.c - one DNS question of a person, and its answer in words
 */
#include "cli/dns_ask.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "cli/policy_ask.h"
#include "resolver/name_map.h"
#include "rules/rules_target.h"

#define NEEDED_MAX	2048
#define REVERSE_SIZE	80	/* 32 nibbles with dots, "ip6.arpa", NUL */

/* --- the question --------------------------------------------------------------- */

static void reverse_text(const struct ip_addr *a, char out[REVERSE_SIZE])
{
	static const char hex[] = "0123456789abcdef";
	size_t at = 0;
	int n;

	if (a->family == IP_V4) {
		n = snprintf(out, REVERSE_SIZE, "%u.%u.%u.%u.in-addr.arpa",
			     a->b[3], a->b[2], a->b[1], a->b[0]);
		REQUIRE(n > 0 && n < REVERSE_SIZE);
		return;
	}
	for (int i = 15; i >= 0; i--) {
		out[at++] = hex[a->b[i] & 15];
		out[at++] = '.';
		out[at++] = hex[a->b[i] >> 4];
		out[at++] = '.';
	}
	n = snprintf(out + at, REVERSE_SIZE - at, "ip6.arpa");
	REQUIRE(n > 0 && (size_t)n < REVERSE_SIZE - at);
}

/* As a stub resolver would: the text's bytes, less one dot at its end. */
static int name_from(struct str text, struct dns_name *ret)
{
	if (text.n > 0 && text.p[text.n - 1] == '.')
		text.n--;
	return dns_name_from_text(text, ret);
}

int dns_ask_parse(const char *name, const char *type, struct dns_ask *ret,
		  const char **ret_why)
{
	char reverse[REVERSE_SIZE];
	struct ip_addr addr = { .family = IP_NONE };
	uint16_t qtype = DNS_TYPE_A;
	struct dns_name wire;

	if (ip_addr_parse(str_from(name), &addr) == 0) {
		reverse_text(&addr, reverse);
		name = reverse;
		qtype = DNS_TYPE_PTR;
	}
	if (!*name || name_from(str_from(name), &wire)) {
		*ret_why = "is no DNS name: labels of 1 to 63 bytes between "
			   "dots, 253 bytes in all";
		return -EINVAL;
	}
	if (type && dns_type_from_text(str_from(type), &qtype)) {
		*ret_why = "is no type of DNS records: write A, AAAA, TXT, ... "
			   "or TYPE64";
		return -EINVAL;
	}
	dns_question_about(&wire, qtype, &ret->q);
	return 0;
}

void dns_ask_hostname(const char *name, struct dns_ask *ask)
{
	dns_local_hostname(name, &ask->hostname);
}

/* --- the answer ------------------------------------------------------------------- */

void dns_ask(const struct ruleset *rs, const struct dns_ask *ask,
	     struct dns_told *ret)
{
	const struct dns_local_names names = {
		.hostname = &ask->hostname, .rules = rs,
	};
	const struct dns_judgement *j = &ret->j;

	ret->by = dns_judge(&names, &ask->q, ask->now, &ret->host, &ret->j);
	if (ret->by == DNS_JUDGE_WORLD || ret->by == DNS_JUDGE_NO_IPV6) {
		ret->refused = false;
		ret->observed = j->verdict.would_deny;
	} else {
		ret->observed = false;
		ret->refused = ret->by != DNS_JUDGE_LOCAL ||
			       j->local.kind == DNS_LOCAL_SHUT;
	}
}

/* Reverse names of synthetic addresses hang on what the run has asked for. */
static bool hangs_on_run(const struct dns_told *t)
{
	return t->by == DNS_JUDGE_LOCAL && t->j.rcode == DNS_NXDOMAIN &&
	       name_map_is_synthetic(&t->j.local.behind);
}

static bool is_error(const struct dns_told *t)
{
	return !t->refused && t->by != DNS_JUDGE_WORLD &&
	       t->j.rcode != DNS_NOERROR;
}

bool dns_told_good(const struct dns_told *t)
{
	return !t->refused && !t->observed && !is_error(t);
}

static enum reason reason_of(const struct dns_told *t)
{
	return t->by == DNS_JUDGE_WORLD || t->observed ? t->j.verdict.reason :
							 t->j.reason;
}

/* The extended error that the reply carries; 0: none. */
static unsigned ede_of(const struct dns_told *t)
{
	return t->refused || is_error(t) ? reason_info(t->j.reason)->ede : 0;
}

/* --- words ------------------------------------------------------------------------ */

/* Of those that a question can come to before anybody is asked. */
static const char *rcode_word(enum dns_rcode rcode)
{
	if (rcode == DNS_NXDOMAIN)
		return "NXDOMAIN";
	return rcode == DNS_REFUSED ? "REFUSED" : "NOERROR";
}

/* RFC 8914 4, of those that reasons have. */
static const char *ede_word(unsigned ede)
{
	switch (ede) {
	case 15:
		return "Blocked";
	case 17:
		return "Filtered";
	case 18:
		return "Prohibited";
	default:
		return "Other";
	}
}

static const char *by_word(enum dns_judge by)
{
	static const char *const words[DNS_JUDGES] = {
		[DNS_JUDGE_CLASS] = "class", [DNS_JUDGE_TYPE] = "type",
		[DNS_JUDGE_ROOT] = "root", [DNS_JUDGE_NO_HOST] = "no_host",
		[DNS_JUDGE_LOCAL] = "local", [DNS_JUDGE_POLICY] = "policy",
		[DNS_JUDGE_TYPE_OFF] = "type_off",
		[DNS_JUDGE_NO_IPV6] = "no_ipv6",
		[DNS_JUDGE_WORLD] = "world",
	};

	return words[by];
}

static bool is_ancestor(const struct dns_told *t)
{
	return t->by == DNS_JUDGE_POLICY && t->j.name == RULES_NAME_ANCESTOR;
}

static const char *why_words(const struct dns_told *t)
{
	static const char *const words[DNS_JUDGES] = {
		[DNS_JUDGE_CLASS] = "only the class IN is answered",
		[DNS_JUDGE_TYPE] = "a type of questions and of the protocol, "
			"or a mere channel: it is never answered",
		[DNS_JUDGE_ROOT] = "the root is there, and has nothing to say",
		[DNS_JUDGE_NO_HOST] = "no rule can allow it: a host's name has "
			"labels of letters, digits, '-' and '_', and is no "
			"number",
		[DNS_JUDGE_LOCAL] = "in this tree only the sandbox's own names "
			"are there",
		[DNS_JUDGE_TYPE_OFF] = "the name is allowed, records of this "
			"type are not",
		[DNS_JUDGE_NO_IPV6] = "names have no IPv6 addresses: 'ipv6 = "
			"off' in [dns]",
	};

	if (is_ancestor(t) && t->j.reason == REASON_HOST_DENIED)
		return "a deny rule has it; names below it are allowed, so "
		       "that it is there and empty (RFC 8020)";
	if (is_ancestor(t))
		return "no rule allows this host; one allows a name below it, "
		       "so that it is there and empty (RFC 8020)";
	if (t->by == DNS_JUDGE_LOCAL && t->j.local.kind == DNS_LOCAL_SHUT)
		return "names in this tree are never asked about outside";
	return words[t->by] ? words[t->by] :
			      reason_info(reason_of(t))->sentence;
}

/* Is there more to say than which rule allows it? */
static bool is_to_explain(const struct dns_told *t)
{
	return (!dns_told_good(t) || t->by == DNS_JUDGE_NO_IPV6) &&
	       !hangs_on_run(t);
}

/* What an allowed question of type A or AAAA is answered with. */
static const char *gift_words(const struct ruleset *rs, uint16_t type)
{
	if (rules_dns(rs)->answers == RULES_ANSWERS_REAL)
		return "those of its addresses that pass";
	return type == DNS_TYPE_A ?
		"an address of the sandbox's own out of " NAME_MAP_V4_PREFIX :
		"an address of the sandbox's own out of " NAME_MAP_V6_PREFIX;
}

static bool is_address_type(uint16_t type)
{
	return type == DNS_TYPE_A || type == DNS_TYPE_AAAA;
}

static int records_text(const struct ruleset *rs, const struct dns_ask *ask,
			const struct dns_told *t, struct buf *out)
{
	const struct dns_local *l = &t->j.local;
	char text[DNS_TEXT_MAX + 1];
	size_t n;

	if (t->by == DNS_JUDGE_WORLD)
		return buf_printf(out, "%s", is_address_type(ask->q.type) ?
				  gift_words(rs, ask->q.type) :
				  "the records that the world has");
	if (t->by == DNS_JUDGE_LOCAL && l->kind == DNS_LOCAL_ADDRESS) {
		static_assert(sizeof(text) >= IP_TEXT_SIZE, "room");
		ip_addr_text(&l->addr, text);
		return buf_printf(out, "%s", text);
	}
	if (t->by == DNS_JUDGE_LOCAL && l->kind == DNS_LOCAL_PTR) {
		(void)dns_name_text(&l->ptr, text, &n);
		return buf_printf(out, "%s", text);
	}
	return buf_printf(out, "empty");
}

static int answer_line(const struct ruleset *rs, const struct dns_ask *ask,
		       const struct dns_told *t, struct buf *out)
{
	enum dns_rcode rcode = t->by == DNS_JUDGE_WORLD ? DNS_NOERROR :
							   t->j.rcode;
	unsigned ede = ede_of(t);
	int e;

	if (hangs_on_run(t))
		return buf_printf(out, "  answer    NOERROR with the name that "
				  "the run was given it for, else NXDOMAIN\n");
	e = buf_printf(out, "  answer    %s", rcode_word(rcode));
	if (!e && rcode == DNS_NOERROR)
		e = buf_printf(out, ", ");
	if (!e && rcode == DNS_NOERROR)
		e = records_text(rs, ask, t, out);
	if (!e && ede)
		e = buf_printf(out, ", with extended error %u (%s): %s", ede,
			       ede_word(ede), reason_word(t->j.reason));
	return e ? e : buf_add_char(out, '\n');
}

#define UNKNOWN_MAX	4

/* Through which proxy the name's flows go, as the policy says; or NULL. */
static const char *parent_of(const struct dns_told *t)
{
	const char *parent = t->j.verdict.parent;

	return t->by == DNS_JUDGE_WORLD && parent &&
	       strcmp(parent, RULES_PARENT_NONE) != 0 ? parent : NULL;
}

/* What only the world, the machine or a run can say. */
static size_t unknown(const struct ruleset *rs, const struct dns_ask *ask,
		      const struct dns_told *t, const char *ret[UNKNOWN_MAX])
{
	size_t n = 0;

	if (hangs_on_run(t))
		ret[n++] = "whether this run was given the address, and for "
			   "which name";
	if (t->by != DNS_JUDGE_WORLD)
		return n;
	if (parent_of(t) && is_address_type(ask->q.type))
		ret[n++] = "whether anybody is asked here: a parent with "
			   "'resolve = parent' looks names up itself, and the "
			   "answer is given at once";
	ret[n++] = "whether the name exists, and what it has";
	if (is_address_type(ask->q.type))
		ret[n++] = "whether one of its addresses passes: each is "
			   "judged by its class and the rule's 'addresses'";
	if (ask->q.type == DNS_TYPE_AAAA &&
	    rules_dns(rs)->ipv6 == RULES_IPV6_AUTO)
		ret[n++] = "whether this machine has an IPv6 route: without "
			   "one the answer is empty ('ipv6 = auto')";
	return n;
}

/* What no host's name has, first of all; false: it is not about one byte. */
static bool odd_byte(const struct dns_ask *ask, unsigned *ret)
{
	const struct dns_name *name = &ask->q.name;

	for (size_t at = 0; name->b[at]; at += (size_t)name->b[at] + 1) {
		for (size_t i = 1; i <= name->b[at]; i++) {
			uint8_t c = name->b[at + i];

			*ret = c;
			if (!ascii_is_digit((char)c) && c != '-' && c != '_' &&
			    !(c >= 'a' && c <= 'z'))
				return true;
		}
	}
	return false;
}

/* It cannot be seen in the name's line when it could steer a terminal. */
static int odd_row(const struct dns_ask *ask, const struct dns_told *t,
		   struct buf *out)
{
	unsigned c;

	if (t->by != DNS_JUDGE_NO_HOST || !odd_byte(ask, &c))
		return 0;
	if (c == ' ')
		return buf_printf(out, "  odd       a blank\n");
	if (c > ' ' && c < 0x7f)
		return buf_printf(out, "  odd       '%c'\n", (char)c);
	return buf_printf(out, "  odd       the byte 0x%02x, %s\n", c,
			  c < 0x80 ? "a control character" :
			  "of a letter above ASCII, or of none");
}

static bool has_letters_above_ascii(const struct dns_ask *ask)
{
	struct str text = dns_question_text(&ask->q);

	for (size_t i = 0; i < text.n; i++) {
		if ((unsigned char)text.p[i] >= 0x80)
			return true;
	}
	return false;
}

static int propose(const struct dns_told *t, struct buf *out)
{
	const struct rules_target target = { .host = t->host };
	const char *why = rules_target_fault(&target);

	if (why)
		return buf_printf(out, "another host: '%s' %s", t->host.p, why);
	return buf_printf(out, "a rule for it:\n[allow NAME]\nhosts = %s\n"
			  "reason = ...", t->host.p);
}

/* In the place of what is no name of a host. */
static int needed_name_text(const struct dns_ask *ask, struct buf *out)
{
	struct str text = dns_question_text(&ask->q);

	if (has_letters_above_ascii(ask))
		return buf_printf(out, "the name as programs ask for it, with "
				  "A-labels: 'xn--...'");
	if (str_chr(text, ':') < text.n || str_chr(text, '/') < text.n)
		return buf_printf(out, "the name alone; of a URL or a port it "
				  "is 'penstock policy explain' that tells");
	if (str_chr(text, '*') < text.n)
		return buf_printf(out, "one name below it: no program asks for "
				  "a wildcard");
	return 0;
}

/* In lines; nothing when nothing would do. */
static int needed_text(const struct dns_ask *ask, const struct dns_told *t,
		       struct buf *out)
{
	char type[DNS_TYPE_TEXT_SIZE];
	const char *words = policy_needed_words(reason_of(t));
	const char *qtype = dns_type_text(ask->q.type, type);

	if (t->by == DNS_JUDGE_TYPE_OFF && rules_type_bit(ask->q.type))
		return buf_printf(out, "'types = %s' in a rule for this name, "
				  "or in [dns]", qtype);
	if (t->by == DNS_JUDGE_TYPE_OFF)
		return buf_printf(out, "nothing that a policy can say");
	if (t->by == DNS_JUDGE_LOCAL && ask->q.type == DNS_TYPE_PTR &&
	    t->j.local.kind == DNS_LOCAL_REVERSE)
		return buf_printf(out, "a rule with this name among its "
				  "'hosts', and 'types = PTR'");
	if (t->by == DNS_JUDGE_NO_HOST)
		return needed_name_text(ask, out);
	if (t->by != DNS_JUDGE_POLICY && t->by != DNS_JUDGE_WORLD)
		return 0;
	if (reason_of(t) != REASON_HOST_NOT_ALLOWED)
		return words ? buf_printf(out, "%s", words) : 0;
	return propose(t, out);
}

static int needed_row(const struct dns_ask *ask, const struct dns_told *t,
		      struct buf *out)
{
	CLEANUP(buf_done) struct buf needed = BUF_INIT(NEEDED_MAX);
	int e = needed_text(ask, t, &needed);

	return e || needed.n == 0 ? e :
	       policy_needed_row(buf_str(&needed), out);
}

static int verdict_line(const struct ruleset *rs, const struct dns_told *t,
			struct buf *out)
{
	int e;

	if (t->observed)
		return buf_printf(out, "observed: %s would refuse, but the "
				  "policy or the rule only observes\n",
				  reason_word(reason_of(t)));
	if (t->refused)
		return buf_printf(out, "refused: %s\n",
				  reason_word(t->j.reason));
	if (hangs_on_run(t))
		return buf_printf(out, "answered here: as the run has it\n");
	if (t->by == DNS_JUDGE_LOCAL)
		return buf_printf(out, "answered here: %s\n", is_error(t) ?
				  reason_word(t->j.reason) :
				  "it is of the sandbox itself");
	e = buf_printf(out, "allowed by ");
	if (!e)
		e = policy_rule_text(rs, t->j.verdict.rule_number, out);
	return e ? e : buf_add_char(out, '\n');
}

static int rule_line(const struct ruleset *rs, const struct dns_told *t,
		     struct buf *out)
{
	struct rules_rule_info info;
	size_t number = t->j.verdict.rule_number;
	int e;

	if (t->by < DNS_JUDGE_POLICY)
		return 0;
	if (number == 0)
		return buf_printf(out, "  rule      none\n");
	rules_rule_info(rs, number, &info);
	e = buf_printf(out, "  rule      ");
	if (!e)
		e = policy_rule_text(rs, number, out);
	if (!e && info.reason)
		e = buf_printf(out, ": %s", info.reason);
	return e ? e : buf_add_char(out, '\n');
}

/* The name as it is judged, or as it was asked when no rule can speak of it;
 * what could steer a terminal is shown as '?'. */
static int name_line(const struct dns_ask *ask, const struct dns_told *t,
		     struct buf *out)
{
	struct str text = t->host.n ? host_name_str(&t->host) :
				      dns_question_text(&ask->q);
	int e = buf_printf(out, "  name      ");

	for (size_t i = 0; i < text.n && !e; i++) {
		unsigned char c = (unsigned char)text.p[i];

		e = buf_add_char(out, c > ' ' && c < 0x7f ? (char)c : '?');
	}
	return e ? e : buf_printf(out, "%s\n", text.n ? "" : ".");
}

static int rows(const struct ruleset *rs, const struct dns_ask *ask,
		const struct dns_told *t, struct buf *out)
{
	const char *open[UNKNOWN_MAX];
	size_t n = unknown(rs, ask, t, open);
	char type[DNS_TYPE_TEXT_SIZE];
	int e = name_line(ask, t, out);

	if (!e)
		e = buf_printf(out, "  type      %s\n",
			       dns_type_text(ask->q.type, type));
	if (!e)
		e = answer_line(rs, ask, t, out);
	if (!e)
		e = buf_printf(out, "  asks      %s\n",
			       t->by == DNS_JUDGE_WORLD ?
			       "the servers of this machine, for name and type "
			       "alone" : "nobody");
	if (!e)
		e = rule_line(rs, t, out);
	if (!e && parent_of(t))
		e = buf_printf(out, "  parent    %s\n", parent_of(t));
	for (size_t i = 0; i < n && !e; i++)
		e = buf_printf(out, "  %-8s  %s\n", i ? "" : "unknown", open[i]);
	return e;
}

int dns_told_text(const struct ruleset *rs, const struct dns_ask *ask,
		  const struct dns_told *t, struct buf *out)
{
	int e = verdict_line(rs, t, out);

	if (!e)
		e = rows(rs, ask, t, out);
	if (e || !is_to_explain(t))
		return e;
	e = odd_row(ask, t, out);
	if (!e)
		e = buf_printf(out, "  why       %s\n", why_words(t));
	return e ? e : needed_row(ask, t, out);
}

/* --- JSON --------------------------------------------------------------------------- */

static void answers_json(const struct dns_told *t, struct json *j)
{
	const struct dns_local *l = &t->j.local;
	char text[DNS_TEXT_MAX + 1];
	size_t n;

	json_array_begin(j, "answers");
	if (l->kind == DNS_LOCAL_ADDRESS) {
		ip_addr_text(&l->addr, text);
		json_cstr(j, NULL, text);
	} else if (l->kind == DNS_LOCAL_PTR) {
		(void)dns_name_text(&l->ptr, text, &n);
		json_str(j, NULL, str_make(text, n));
	}
	json_array_end(j);
}

/* What hangs on the world or on a run has no rcode yet. */
static void reply_json(const struct dns_told *t, struct json *j)
{
	unsigned ede = ede_of(t);

	if (t->by == DNS_JUDGE_WORLD || hangs_on_run(t))
		return;
	json_cstr(j, "rcode", rcode_word(t->j.rcode));
	if (ede)
		json_uint(j, "ede", ede);
	if (t->by == DNS_JUDGE_LOCAL)
		answers_json(t, j);
}

static void unknown_json(const struct ruleset *rs, const struct dns_ask *ask,
			 const struct dns_told *t, struct json *j)
{
	const char *open[UNKNOWN_MAX];
	size_t n = unknown(rs, ask, t, open);

	if (n == 0)
		return;
	json_array_begin(j, "unknown");
	for (size_t i = 0; i < n; i++)
		json_cstr(j, NULL, open[i]);
	json_array_end(j);
}

void dns_told_json(const struct ruleset *rs, const struct dns_ask *ask,
		   const struct dns_told *t, struct json *j)
{
	CLEANUP(buf_done) struct buf needed = BUF_INIT(NEEDED_MAX);
	char type[DNS_TYPE_TEXT_SIZE];

	json_cstr(j, "verdict", t->observed ? "observe" : t->refused ? "deny" :
		  is_error(t) ? "error" : "allow");
	json_cstr(j, "reason", reason_word(reason_of(t)));
	json_str(j, "name", t->host.n ? host_name_str(&t->host) :
				        dns_question_text(&ask->q));
	json_cstr(j, "type", dns_type_text(ask->q.type, type));
	json_cstr(j, "by", by_word(t->by));
	json_bool(j, "asks", t->by == DNS_JUDGE_WORLD);
	reply_json(t, j);
	policy_rule_json(rs, t->j.verdict.rule_number, j);
	if (parent_of(t))
		json_cstr(j, "parent", parent_of(t));
	unknown_json(rs, ask, t, j);
	if (is_to_explain(t)) {
		json_cstr(j, "why", why_words(t));
		if (needed_text(ask, t, &needed) == 0)
			json_str_opt(j, "needed", buf_str(&needed));
	}
}
