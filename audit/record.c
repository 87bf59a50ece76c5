/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.c - one event becomes one line of JSON, never longer than promised
 *
 * What a program in the sandbox says (names, paths, methods) is hostile: it is
 * escaped by base/json.h, where one byte can become six.  A line is therefore
 * made with the widest limits of the table below first, and made again with
 * narrower ones as long as it does not fit into RECORD_LINE_MAX; with the last
 * ones it always does.  What had to be cut is marked by "cut":true.
 */
#include "audit/record.h"

#include <assert.h>
#include <errno.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/json.h"

/* Labels and words of our own: cut as well, should one ever be longer. */
#define RUN_MAX		40
#define LABEL_MAX	64
#define POLICY_MAX	96
#define WORD_MAX	16

/* How many bytes of each hostile value are kept, from wide to narrow. */
static const struct limits {
	size_t name;		/* host, SNI, Host */
	size_t path;
	size_t rule;
	size_t method;
	size_t answers;
	size_t error;
	size_t parent;
} limits[] = {
	{ 255, 1024, 64, 32, 32, 1024, 32 },
	{ 255,  256, 64, 32, 16,  512, 32 },
	{ 128,  128, 64, 16,  8,  256, 32 },
	{  32,   32, 42, 16,  4,   12,  8 },
};

/*
 * The narrowest line with every byte escaped as \u00NN: strings six times
 * their size, all keys with their punctuation, numbers and addresses.  What
 * policy_reload alone has is longer than what run_end alone has.
 */
#define KEYS_MAX	570
#define NUMBERS_MAX	(4 * 20 + 8 * 11)	/* of 64 bits, of 32 */
#define FIXED_MAX	(CLOCK_RFC3339_SIZE + 2 * ID_TEXT_SIZE + \
			 2 * IP_TEXT_SIZE + IP_ENDPOINT_TEXT_SIZE + 64)
static_assert(6 * (RUN_MAX + LABEL_MAX + POLICY_MAX + 4 * WORD_MAX +
		   3 * 32 + 32 + 42 + 16 + 12 + 8) + 4 * (IP_TEXT_SIZE + 3) +
	      KEYS_MAX + NUMBERS_MAX + FIXED_MAX + 1 <= RECORD_LINE_MAX,
	      "the narrowest line always fits");

static const char *const event_words[] = {
	[RECORD_FLOW_OPEN]  = "flow_open",
	[RECORD_FLOW_CLOSE] = "flow_close",
	[RECORD_FLOW_DENY]  = "flow_deny",
	[RECORD_HTTP]       = "http",
	[RECORD_DNS]        = "dns",
	[RECORD_RUN_START]  = "run_start",
	[RECORD_RUN_END]    = "run_end",
	[RECORD_LOG_GAP]    = "log_gap",
	[RECORD_POLICY]     = "policy_reload",
	[RECORD_POLICY_FAILED] = "policy_reload_failed",
	[RECORD_LIMIT]      = "limit",
};
static_assert(ARRAY_SIZE(event_words) == RECORD_EVENTS, "name every event");

static const char *const act_words[] = {
	[RECORD_ALLOW]      = "allow",
	[RECORD_DENY]       = "deny",
	[RECORD_WOULD_DENY] = "would_deny",
	[RECORD_ERROR]      = "error",
	[RECORD_ACT_NONE]   = "none",
};

static const char *const via_words[] = {
	[RECORD_VIA_NONE]        = "",
	[RECORD_VIA_CONNECT]     = "connect",
	[RECORD_VIA_FORWARD]     = "forward",
	[RECORD_VIA_TRANSPARENT] = "transparent",
	[RECORD_VIA_SOCKS]       = "socks",
	[RECORD_VIA_DNS]         = "dns",
	[RECORD_VIA_FIREWALL]    = "firewall",
};

/* The word of "ev". */
const char *record_event_word(enum record_event e)
{
	REQUIRE((unsigned)e < ARRAY_SIZE(event_words));
	return event_words[e];
}

/* The word of "act"; "none" for a record that decides nothing. */
const char *record_act_word(enum record_act a)
{
	REQUIRE((unsigned)a < ARRAY_SIZE(act_words));
	return act_words[a];
}

/* The word of "via"; "" for none. */
const char *record_via_word(enum record_via v)
{
	REQUIRE((unsigned)v < ARRAY_SIZE(via_words));
	return via_words[v];
}

/* A line in the making. */
struct line {
	struct json j;
	const struct limits *limit;
	bool cut;
};

static bool is_flow(const struct record *r)
{
	return r->event == RECORD_FLOW_OPEN || r->event == RECORD_FLOW_CLOSE ||
	       r->event == RECORD_FLOW_DENY;
}

static bool is_about_run(const struct record *r)
{
	return r->event == RECORD_RUN_START || r->event == RECORD_RUN_END ||
	       r->event == RECORD_LOG_GAP || r->event == RECORD_POLICY ||
	       r->event == RECORD_POLICY_FAILED || r->event == RECORD_LIMIT;
}

static bool has_totals(const struct record *r)
{
	return r->event == RECORD_FLOW_CLOSE || r->event == RECORD_HTTP ||
	       r->event == RECORD_RUN_END;
}

static bool is_zero_id(const struct id *id)
{
	static const struct id zero;

	return memcmp(id, &zero, sizeof(zero)) == 0;
}

/* At most @max bytes of @s, never a part of a UTF-8 sequence at the end. */
static struct str cut_to(struct line *l, struct str s, size_t max)
{
	size_t n = max;

	if (s.n <= max)
		return s;
	l->cut = true;
	while (n > 0 && max - n < 3 && ((unsigned char)s.p[n] & 0xc0) == 0x80)
		n--;
	/* A run of stray continuation bytes is not a sequence: keep it. */
	if (((unsigned char)s.p[n] & 0xc0) == 0x80)
		n = max;
	return str_make(s.p, n);
}

/* Readers have signed numbers of 64 bits. */
static void put_uint(struct line *l, const char *key, uint64_t v)
{
	json_uint(&l->j, key, MIN(v, (uint64_t)INT64_MAX));
}

/* Nothing when empty. */
static void put_str(struct line *l, const char *key, struct str s, size_t max)
{
	json_str_opt(&l->j, key, cut_to(l, s, max));
}

static void put_word(struct line *l, const char *key, const char *word,
		     size_t max)
{
	put_str(l, key, str_from(word), max);
}

static void put_id(struct line *l, const char *key, const struct id *id)
{
	char text[ID_TEXT_SIZE];

	if (is_zero_id(id))
		return;
	id_text(id, text);
	json_cstr(&l->j, key, text);
}

static void put_addr(struct line *l, const char *key, const struct ip_addr *a)
{
	char text[IP_TEXT_SIZE];

	if (a->family == IP_NONE)
		return;
	ip_addr_text(a, text);
	json_cstr(&l->j, key, text);
}

static void put_labels(struct line *l, const struct record_labels *labels)
{
	if (labels->members.n) {
		json_members(&l->j, labels->members);
		l->cut |= labels->members_cut;
		return;
	}
	put_word(l, "policy", labels->policy, POLICY_MAX);
	if (labels->generation)
		json_uint(&l->j, "gen", labels->generation);
	put_word(l, "mode", labels->mode, WORD_MAX);
	put_word(l, "run", labels->run, RUN_MAX);
	put_word(l, "sandbox", labels->sandbox, LABEL_MAX);
}

static_assert(6 * (POLICY_MAX + WORD_MAX + RUN_MAX + LABEL_MAX) + 100 <=
	      RECORD_LABELS_MAX, "labels always fit");

void record_labels_render(struct record_labels *labels,
			  char out[RECORD_LABELS_MAX + 1])
{
	struct buf text = { out, 0, RECORD_LABELS_MAX, RECORD_LABELS_MAX, NULL };
	struct line l = { .limit = &limits[0] };
	int err;

	labels->members = STR_NONE;
	json_begin(&l.j, &text);
	json_object_begin(&l.j, NULL);
	put_labels(&l, labels);
	json_object_end(&l.j);
	err = json_end(&l.j);
	REQUIRE(err == 0 && text.n >= 2);
	labels->members = str_make(out + 1, text.n - 2);
	labels->members_cut = l.cut;
}

/* What was decided, why, and by which rule. */
static void put_verdict(struct line *l, const struct record *r)
{
	json_cstr(&l->j, "ev", record_event_word(r->event));
	json_cstr(&l->j, "act", record_act_word(r->act));
	if (!is_about_run(r) || r->reason != REASON_ALLOWED)
		json_cstr(&l->j, "reason", reason_word(r->reason));
	if (r->rule && r->rule[0])
		put_word(l, "rule", r->rule, l->limit->rule);
	else if (!is_about_run(r))
		json_null_value(&l->j, "rule");
}

static void put_ends(struct line *l, const struct record *r)
{
	char text[IP_ENDPOINT_TEXT_SIZE];

	put_str(l, "host", r->host, l->limit->name);
	if (r->src.addr.family != IP_NONE) {
		ip_endpoint_text(&r->src, text);
		json_cstr(&l->j, "src", text);
	}
	put_addr(l, "asked", &r->asked);
	put_addr(l, "dst_ip", &r->dst.addr);
	if (is_flow(r) || r->dst.port != 0)
		json_uint(&l->j, "dst_port", r->dst.port);
	put_str(l, "parent", str_from(r->parent), l->limit->parent);
	put_word(l, "resolved", r->resolved, WORD_MAX);
	if (r->parent_status > 0)
		json_int(&l->j, "parent_status", r->parent_status);
	if (is_flow(r) && !r->transport)
		json_cstr(&l->j, "transport", "tcp");
	else
		put_word(l, "transport", r->transport, WORD_MAX);
	put_word(l, "proto", r->proto, WORD_MAX);
}

/* The path as sent, up to where a query or fragment would begin. */
static struct str bare_path(struct str path)
{
	size_t n = 0;

	while (n < path.n && path.p[n] != '?' && path.p[n] != '#')
		n++;
	return str_make(path.p, n);
}

static void put_request(struct line *l, const struct record *r)
{
	put_str(l, "sni", r->sni, l->limit->name);
	put_str(l, "http_host", r->http_host, l->limit->name);
	put_str(l, "method", r->method, l->limit->method);
	put_str(l, "path", bare_path(r->path), l->limit->path);
	if (r->status > 0)
		json_int(&l->j, "status", r->status);
}

static void put_dns(struct line *l, const struct record *r)
{
	size_t i, n = MIN(r->nanswers, l->limit->answers);

	put_word(l, "qtype", r->qtype, WORD_MAX);
	if (r->event == RECORD_DNS && r->rcode >= 0)
		json_int(&l->j, "rcode", r->rcode);
	if (n > 0) {
		json_array_begin(&l->j, "answers");
		for (i = 0; i < n; i++)
			put_addr(l, NULL, &r->answers[i]);
		json_array_end(&l->j);
	}
	if (n < r->nanswers)
		l->cut = true;
	put_id(l, "dns", &r->dns);
}

static void put_totals(struct line *l, const struct record *r)
{
	if (has_totals(r) || r->bytes_up != 0 || r->bytes_down != 0) {
		put_uint(l, "bytes_up", r->bytes_up);
		put_uint(l, "bytes_down", r->bytes_down);
	}
	if (r->dur_ms >= 0 && r->event != RECORD_FLOW_OPEN &&
	    r->event != RECORD_RUN_START && r->event != RECORD_LOG_GAP)
		json_int(&l->j, "dur_ms", r->dur_ms);
	/* Of a question even one: it came on top of those recorded before. */
	if (r->count > 1 || r->event == RECORD_LOG_GAP ||
	    (r->count == 1 && r->event == RECORD_DNS))
		json_uint(&l->j, "count", r->count);
	if (r->event == RECORD_RUN_END)
		put_uint(l, "over_budget", r->over_budget);
	if (r->memory_peak)
		put_uint(l, "memory_peak", r->memory_peak);
	if (r->event == RECORD_POLICY) {
		json_uint(&l->j, "flows_kept", r->flows_kept);
		json_uint(&l->j, "flows_ended", r->flows_ended);
	}
	put_str(l, "error", r->error, l->limit->error);
	if (r->internal)
		json_bool(&l->j, "internal", true);
}

static int render_within(const struct record *r,
			 const struct record_labels *labels, uint64_t seq,
			 int64_t wall_us, const struct limits *limit,
			 struct buf *out)
{
	struct line l = { .limit = limit };
	char ts[CLOCK_RFC3339_SIZE];
	int err;

	clock_rfc3339(wall_us, ts);
	json_begin(&l.j, out);
	json_object_begin(&l.j, NULL);
	json_uint(&l.j, "v", RECORD_VERSION);
	json_cstr(&l.j, "ts", ts);
	put_uint(&l, "seq", seq);
	put_id(&l, "id", &r->id);
	put_verdict(&l, r);
	put_labels(&l, labels);
	put_word(&l, "via", record_via_word(r->via), WORD_MAX);
	put_ends(&l, r);
	put_request(&l, r);
	put_dns(&l, r);
	put_totals(&l, r);
	if (l.cut)
		json_bool(&l.j, "cut", true);
	json_object_end(&l.j);
	err = json_end(&l.j);
	if (err < 0)
		return err;
	return buf_add_char(out, '\n');
}

/**
 * record_render() - Append one JSON line, newline included
 * @r:		the event
 * @labels:	of its run
 * @seq:	its number in its sink
 * @wall_us:	when it happened, microseconds since the epoch
 * @out:	as it was when there is no room
 *
 * The line is made on the stack, so that a line which had to be made twice
 * leaves no trace in @out.  No allocation but what @out itself may need.
 * Return: 0, -ENOSPC or -ENOMEM (@out is full or cannot grow)
 */
int record_render(const struct record *r, const struct record_labels *labels,
		  uint64_t seq, int64_t wall_us, struct buf *out)
{
	char room[RECORD_LINE_MAX + 1];	/* a buf wants room for a NUL */
	struct buf line = { room, 0, RECORD_LINE_MAX, RECORD_LINE_MAX, NULL };
	int err = -ENOSPC;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(limits) && err == -ENOSPC; i++) {
		buf_reset(&line);
		err = render_within(r, labels, seq, wall_us, &limits[i], &line);
	}
	REQUIRE(err == 0);
	return buf_add_str(out, buf_str(&line));
}
