/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_ask.c - one question of a person to a policy, and its answer in words
 */
#include "cli/policy_ask.h"

#include <string.h>

#include "cli/text.h"

#define NEEDED_MAX	2048

static bool is_request(const struct policy_ask *ask)
{
	const struct rules_protocol *scheme = ask->target.scheme;

	return scheme && scheme->speech != SPEECH_OPAQUE &&
	       (ask->target.path.n > 0 || ask->method.n > 0);
}

/* https:// to a rule for plain HTTP, or the other way round. */
static bool speaks_otherwise(const struct policy_ask *ask,
			     const struct rules_protocol *rule)
{
	const struct rules_protocol *scheme = ask->target.scheme;

	return scheme && rule && scheme->speech != rule->speech &&
	       scheme->speech != SPEECH_OPAQUE &&
	       rule->speech != SPEECH_OPAQUE;
}

static struct str method_of(const struct policy_ask *ask)
{
	return ask->method.n > 0 ? ask->method : STR("GET");
}

static struct str path_of(const struct policy_ask *ask)
{
	return ask->target.path.n > 0 ? ask->target.path : STR("/");
}

static struct rules_question question(const struct policy_ask *ask)
{
	const struct rules_target *t = &ask->target;

	return (struct rules_question){
		.host = host_name_str(&t->host),
		.addr = t->host.n == 0 ? &t->addr :
			ask->at.family != IP_NONE ? &ask->at : NULL,
		.port = t->port,
		.now = ask->now,
	};
}

void policy_ask(const struct ruleset *rs, const struct policy_ask *ask,
		struct policy_answer *ret)
{
	const struct rules_target *t = &ask->target;
	const struct rules_question q = question(ask);
	struct rules_answer *a = &ret->flow;

	if (t->scheme && t->scheme->speech == SPEECH_HTTP) {
		const struct rules_request request = {
			.flow = q,
			.method = method_of(ask),
			.target = path_of(ask),
		};

		rules_judge_request(rs, &request, a);
	} else {
		rules_judge(rs, &q, a);
	}
	if (a->reason == REASON_ALLOWED && speaks_otherwise(ask, a->protocol))
		a->reason = REASON_PROTOCOL_MISMATCH;
	ret->reason = a->reason;
	ret->observed = a->reason != REASON_ALLOWED && a->would_deny;
	ret->allowed = a->reason == REASON_ALLOWED || ret->observed;
}

/* --- words ------------------------------------------------------------------ */

static void target_text(const struct policy_ask *ask, char out[IP_TEXT_SIZE],
			const char **ret_host)
{
	*ret_host = ask->target.host.p;
	if (ask->target.host.n > 0)
		return;
	ip_addr_text(&ask->target.addr, out);
	*ret_host = out;
}

int policy_rule_text(const struct ruleset *rs, size_t number, struct buf *out)
{
	struct rules_rule_info info;

	rules_rule_info(rs, number, &info);
	return buf_printf(out, "[%s %s], %s:%u", info.deny ? "deny" : "allow",
			  info.name, info.file, info.line);
}

static bool is_class_refusal(const struct policy_answer *a)
{
	return reason_is_address_class(a->reason);
}

/* A rule that would do, ready to be copied. */
static int propose(const struct policy_ask *ask, bool classed, struct buf *out)
{
	const struct rules_target *t = &ask->target;
	bool address = t->host.n == 0;
	char text[IP_TEXT_SIZE], at[IP_TEXT_SIZE];
	const char *host, *why;
	int e;

	target_text(ask, text, &host);
	why = rules_target_fault(t);
	if (why)
		return buf_printf(out, "another %s: '%s' %s", address ?
				  "address" : "host", host, why);
	e = buf_printf(out, "a rule for it:\n[allow NAME]\n%s = %s\n",
		       address ? "addresses" : "hosts", host);
	if (!e && !address && classed) {
		ip_addr_text(&ask->at, at);
		e = buf_printf(out, "addresses = %s\n", at);
	}
	return e ? e : buf_printf(out, "ports = %u\nreason = ...", t->port);
}

/* A rule of a preset is not the reader's to change. */
static bool is_of_preset(const struct ruleset *rs, const struct rules_answer *a)
{
	struct rules_rule_info info;

	rules_rule_info(rs, a->rule_number, &info);
	return strncmp(info.file, "preset ", 7) == 0;
}

/* Name or address is in a rule, but not with this port. */
static int needed_port(const struct ruleset *rs, const struct policy_ask *ask,
		       bool classed, struct buf *out)
{
	const struct rules_question q = question(ask);
	struct rules_answer other;
	int e;

	if (!rules_other_port(rs, &q, &other) || is_of_preset(rs, &other))
		return propose(ask, classed, out);
	e = buf_printf(out, "%u among the 'ports' of ", ask->target.port);
	return e ? e : policy_rule_text(rs, other.rule_number, out);
}

static int needed_address(const struct ruleset *rs,
			  const struct policy_ask *ask,
			  const struct policy_answer *a, struct buf *out)
{
	char text[IP_TEXT_SIZE];
	int e;

	if (a->flow.rule_number == 0 || is_of_preset(rs, &a->flow))
		return propose(ask, is_class_refusal(a), out);
	ip_addr_text(ask->target.host.n == 0 ? &ask->target.addr : &ask->at,
		     text);
	if (a->reason == REASON_ADDRESS_NOT_ALLOWED)
		e = buf_printf(out, "%s among the 'addresses' of ", text);
	else if (a->reason == REASON_ADDRESS_METADATA ||
		 a->reason == REASON_ADDRESS_HOST)
		e = buf_printf(out, "'addresses' with %s itself, and a "
			       "'reason', in ", text);
	else
		e = buf_printf(out, "'addresses' with %s or its range, and a "
			       "'reason', in ", text);
	return e ? e : policy_rule_text(rs, a->flow.rule_number, out);
}

static const char *const needed_words[REASONS] = {
	[REASON_HOST_DENIED] = "that the deny rule goes or is narrowed: no "
		"allow lifts it",
	[REASON_ADDRESS_DENIED] = "that the deny rule goes or is narrowed: no "
		"allow lifts it",
	[REASON_RULE_EXPIRED] = "a later 'expires' in the rule, after a review",
	[REASON_PATH_NOT_ALLOWED] = "a 'paths' pattern that covers it, in a "
		"rule for this host",
	[REASON_PATH_AMBIGUOUS] = "a path that every origin reads alike: no "
		"encoded slashes or dots, no '..', '\\', '//' or ';'",
	[REASON_INSPECTION_REQUIRED] = "a rule without 'methods' and 'paths' "
		"for https, or plain http",
	[REASON_PROTOCOL_MISMATCH] = "a rule whose 'protocol' is that of the "
		"URL on this port",
};

const char *policy_needed_words(enum reason reason)
{
	return needed_words[reason];
}

/* In lines, of which the first goes on where it is shown. */
static int needed_text(const struct ruleset *rs, const struct policy_ask *ask,
		       const struct policy_answer *a, struct buf *out)
{
	const struct rules_question q = question(ask);
	const char *words = needed_words[a->reason];
	bool literal = ask->target.host.n == 0;
	bool classed = ask->at.family != IP_NONE &&
		       a->flow.klass != IP_PUBLIC;
	struct rules_answer other;

	if (words)
		return buf_printf(out, "%s", words);
	if (a->reason == REASON_METHOD_NOT_ALLOWED)
		return buf_printf(out, "%.*s among the 'methods' of a rule for "
				  "this host", STR_ARG(method_of(ask)));
	if (a->reason == REASON_HOST_NOT_ALLOWED)
		return propose(ask, classed, out);
	if (a->reason == REASON_PORT_NOT_ALLOWED ||
	    (literal && rules_other_port(rs, &q, &other)))
		return needed_port(rs, ask, classed, out);
	return needed_address(rs, ask, a, out);
}

int policy_needed_row(struct str needed, struct buf *out)
{
	struct str line;
	const char *before = "  needed    ";
	int e = 0;

	while (!e && str_cut(&needed, '\n', &line)) {
		e = buf_printf(out, "%s%.*s\n", before, STR_ARG(line));
		before = "            ";
	}
	return e;
}

static int needed_row(const struct ruleset *rs, const struct policy_ask *ask,
		      const struct policy_answer *a, struct buf *out)
{
	CLEANUP(buf_done) struct buf needed = BUF_INIT(NEEDED_MAX);
	int e = needed_text(rs, ask, a, &needed);

	return e ? e : policy_needed_row(buf_str(&needed), out);
}

static int verdict_line(const struct ruleset *rs,
			const struct policy_answer *a, struct buf *out)
{
	int e;

	if (a->observed)
		return buf_printf(out, "observed: %s would refuse, but the "
				  "policy or the rule only observes\n",
				  reason_word(a->reason));
	if (!a->allowed)
		return buf_printf(out, "refused: %s\n", reason_word(a->reason));
	e = buf_printf(out, "allowed by ");
	if (!e)
		e = policy_rule_text(rs, a->flow.rule_number, out);
	return e ? e : buf_add_char(out, '\n');
}

static int decided_line(const struct ruleset *rs,
			const struct policy_answer *a, struct buf *out)
{
	struct rules_rule_info info;
	int e;

	if (a->flow.rule_number == 0)
		return buf_printf(out, "  rule      none\n");
	rules_rule_info(rs, a->flow.rule_number, &info);
	e = buf_printf(out, "  rule      ");
	if (!e)
		e = policy_rule_text(rs, a->flow.rule_number, out);
	if (!e && info.reason)
		e = buf_printf(out, ": %s", info.reason);
	return e ? e : buf_add_char(out, '\n');
}

static int address_line(const struct policy_ask *ask,
			const struct policy_answer *a, struct buf *out)
{
	const struct ip_addr *addr = ask->target.host.n == 0 ?
				     &ask->target.addr : &ask->at;
	char text[IP_TEXT_SIZE];

	if (addr->family == IP_NONE)
		return !a->allowed ? 0 :
		       buf_printf(out, "  address   judged when the name is "
				  "resolved; to try one: --at ADDRESS\n");
	ip_addr_text(addr, text);
	return buf_printf(out, "  address   %s, %s\n", text,
			  ip_class_name(a->flow.klass));
}

/* How long what is allowed may be silent, and may last. */
static int times_line(const struct ruleset *rs, const struct policy_answer *a,
		      struct buf *out)
{
	const struct rules_times t = rules_times(rs, a->flow.rule_number);
	int e = 0;

	if (!a->allowed || (!t.idle_s && !t.flow_s))
		return 0;
	e = buf_printf(out, "  times     ");
	if (!e && t.idle_s)
		e = buf_printf(out, "idle_time %us", t.idle_s);
	if (!e && t.flow_s)
		e = buf_printf(out, "%sflow_time %us", t.idle_s ? ", " : "",
			       t.flow_s);
	return e ? e : buf_add_char(out, '\n');
}

static int rows(const struct ruleset *rs, const struct policy_ask *ask,
		const struct policy_answer *a, struct buf *out)
{
	const struct rules_target *t = &ask->target;
	char text[IP_TEXT_SIZE];
	const char *host;
	int e;

	target_text(ask, text, &host);
	e = buf_printf(out, "  host      %s\n  port      %u%s\n", host, t->port,
		       t->port_given ? "" : " (none was given)");
	if (!e && is_request(ask))
		e = buf_printf(out, "  request   %.*s %.*s%s\n",
			       STR_ARG(method_of(ask)), STR_ARG(path_of(ask)),
			       t->scheme->speech == SPEECH_TLS ?
			       " (inside TLS, not seen)" : "");
	if (!e && a->flow.protocol)
		e = buf_printf(out, "  protocol  %s\n", a->flow.protocol->name);
	if (!e)
		e = address_line(ask, a, out);
	if (!e && a->allowed && a->flow.parent)
		e = buf_printf(out, "  parent    %s\n", a->flow.parent);
	if (!e)
		e = times_line(rs, a, out);
	return e ? e : decided_line(rs, a, out);
}

int policy_answer_text(const struct ruleset *rs, const struct policy_ask *ask,
		       const struct policy_answer *a, struct buf *out)
{
	int e = verdict_line(rs, a, out);

	if (!e)
		e = rows(rs, ask, a, out);
	if (e || a->reason == REASON_ALLOWED)
		return e;
	e = buf_printf(out, "  why       %s\n",
		       reason_info(a->reason)->sentence);
	return e ? e : needed_row(rs, ask, a, out);
}

/* --- JSON --------------------------------------------------------------------- */

void policy_rule_json(const struct ruleset *rs, size_t number, struct json *j)
{
	struct rules_rule_info info;

	if (number == 0)
		return;
	rules_rule_info(rs, number, &info);
	json_object_begin(j, "rule");
	json_cstr(j, "name", info.name);
	json_bool(j, "deny", info.deny);
	json_cstr(j, "file", info.file);
	json_uint(j, "line", info.line);
	if (info.owner)
		json_cstr(j, "owner", info.owner);
	if (info.reason)
		json_cstr(j, "reason", info.reason);
	if (info.expires != RULES_NEVER)
		json_int(j, "expires", info.expires);
	json_object_end(j);
}

static void times_json(const struct ruleset *rs, const struct policy_answer *a,
		       struct json *j)
{
	const struct rules_times t = rules_times(rs, a->flow.rule_number);

	if (a->allowed && t.idle_s)
		json_uint(j, "idle_time_s", t.idle_s);
	if (a->allowed && t.flow_s)
		json_uint(j, "flow_time_s", t.flow_s);
}

static void needed_json(const struct ruleset *rs, const struct policy_ask *ask,
			const struct policy_answer *a, struct json *j)
{
	CLEANUP(buf_done) struct buf needed = BUF_INIT(NEEDED_MAX);

	if (a->reason != REASON_ALLOWED && needed_text(rs, ask, a, &needed) == 0)
		json_str(j, "needed", buf_str(&needed));
}

void policy_answer_json(const struct ruleset *rs, const struct policy_ask *ask,
			const struct policy_answer *a, struct json *j)
{
	char text[IP_TEXT_SIZE];
	const char *host;

	target_text(ask, text, &host);
	json_cstr(j, "verdict", a->observed ? "observe" :
		  a->allowed ? "allow" : "deny");
	json_cstr(j, "reason", reason_word(a->reason));
	json_cstr(j, "host", host);
	json_uint(j, "port", ask->target.port);
	if (a->flow.protocol)
		json_cstr(j, "protocol", a->flow.protocol->name);
	if (is_request(ask)) {
		json_str(j, "method", method_of(ask));
		json_str(j, "path", path_of(ask));
	}
	if (ask->at.family != IP_NONE) {
		ip_addr_text(&ask->at, text);
		json_cstr(j, "address", text);
	}
	if (a->allowed && a->flow.parent)
		json_cstr(j, "parent", a->flow.parent);
	times_json(rs, a, j);
	policy_rule_json(rs, a->flow.rule_number, j);
	needed_json(rs, ask, a, j);
}
