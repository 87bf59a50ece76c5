/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query_test.c - lines become records again, and records become answers
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "audit/query.h"
#include "audit/record.h"
#include "base/fd.h"
#include "base/mem.h"
#include "rules/rules.h"

#define WALL_US		1795995067412345

static const struct record_labels labels = {
	.run = "7f3a91", .policy = "p@sha256:0", .mode = "enforce",
};

/* A file of records in the making. */
struct file {
	struct buf text;
	uint64_t seq;
};

static int set_up(void **state)
{
	struct file *f = mem_new(sizeof(*f));

	if (!f)
		return -1;
	f->text = BUF_INIT(16u << 20);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct file *f = *state;

	buf_done(&f->text);
	mem_free(f);
	return 0;
}

static void raw(struct file *f, struct str bytes)
{
	assert_int_equal(buf_add_str(&f->text, bytes), 0);
}

static void put(struct file *f, struct record r)
{
	assert_int_equal(record_render(&r, &labels, ++f->seq, WALL_US, &f->text),
			 0);
}

static struct record record(enum record_event ev, enum record_act act,
			    enum reason why, const char *host, uint16_t port)
{
	return (struct record){
		.event = ev, .act = act, .reason = why,
		.via = RECORD_VIA_CONNECT, .host = str_from(host),
		.dst.port = port, .rcode = -1, .dur_ms = -1,
	};
}

static void opened(struct file *f, const char *host, uint16_t port)
{
	put(f, record(RECORD_FLOW_OPEN, RECORD_ALLOW, REASON_ALLOWED, host,
		      port));
}

static void closed(struct file *f, const char *host, uint16_t port,
		   uint64_t up, uint64_t down)
{
	struct record r = record(RECORD_FLOW_CLOSE, RECORD_ALLOW,
				 REASON_CLIENT_CLOSED, host, port);

	r.bytes_up = up;
	r.bytes_down = down;
	put(f, r);
}

static void denied(struct file *f, const char *host, uint16_t port,
		   enum reason why)
{
	put(f, record(RECORD_FLOW_DENY, RECORD_DENY, why, host, port));
}

static int fd_of(const struct file *f)
{
	int fd = -1;

	assert_int_equal(fd_memfd("records", buf_str(&f->text), &fd), 0);
	return fd;
}

static struct query_summary summary_of(const struct file *f)
{
	struct query_summary s;
	int fd = fd_of(f);

	assert_int_equal(query_summarise(fd, &s), 0);
	close(fd);
	return s;
}

static const struct query_row *row_of(const struct query_summary *s,
				      const char *host, bool refused)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		if (!strcmp(s->row[i].host, host) &&
		    s->row[i].refused == refused)
			return &s->row[i];
	return NULL;
}

static void an_empty_file_is_an_empty_summary(void **state)
{
	struct query_summary s = summary_of(*state);

	assert_int_equal(s.n, 0);
	assert_int_equal(s.records, 0);
	assert_false(s.ended);
	query_summary_done(&s);
}

static void flows_to_one_end_are_one_row_with_their_bytes(void **state)
{
	struct file *f = *state;
	struct query_summary s;
	const struct query_row *r;

	opened(f, "pypi.org", 443);
	opened(f, "pypi.org", 443);
	closed(f, "pypi.org", 443, 100, 40000);
	closed(f, "pypi.org", 443, 17, 1000);
	opened(f, "files.example", 443);	/* never closed: a crash */
	denied(f, "x.example", 443, REASON_HOST_NOT_ALLOWED);
	denied(f, "x.example", 443, REASON_HOST_NOT_ALLOWED);
	denied(f, "x.example", 80, REASON_HOST_NOT_ALLOWED);
	put(f, record(RECORD_RUN_END, RECORD_ACT_NONE, REASON_RUN_ENDED, "", 0));
	s = summary_of(f);
	assert_int_equal(s.n, 4);
	assert_string_equal(s.row[0].host, "pypi.org");	/* most bytes first */
	assert_int_equal(s.row[0].count, 2);
	assert_int_equal(s.row[0].bytes_up, 117);
	assert_int_equal(s.row[0].bytes_down, 41000);
	assert_string_equal(s.row[0].reason, "");
	assert_string_equal(s.row[0].transport, "tcp");
	assert_string_equal(s.row[1].host, "files.example");
	assert_int_equal(s.row[1].count, 1);
	assert_true(s.row[2].refused);			/* refused last */
	assert_int_equal(s.row[2].port, 443);		/* most often first */
	assert_int_equal(s.row[2].count, 2);
	assert_int_equal(s.row[3].port, 80);
	assert_true(s.ended);
	assert_int_equal(s.records, 9);
	r = row_of(&s, "x.example", true);
	assert_string_equal(r->reason, "host_not_allowed");
	query_summary_done(&s);
}

/* LOG-08: the last word about a flow is its close. */
static void a_flow_that_could_not_connect_counts_as_refused(void **state)
{
	struct file *f = *state;
	struct query_summary s;

	opened(f, "down.example", 443);
	put(f, record(RECORD_FLOW_CLOSE, RECORD_ERROR, REASON_CONNECT_REFUSED,
		      "down.example", 443));
	s = summary_of(f);
	assert_int_equal(s.n, 1);
	assert_true(s.row[0].refused);
	assert_string_equal(s.row[0].reason, "connect_refused");
	query_summary_done(&s);
}

static void a_request_that_failed_before_a_flow_counts(void **state)
{
	struct file *f = *state;
	struct query_summary s;
	struct record r = record(RECORD_HTTP, RECORD_ERROR, REASON_DNS_NXDOMAIN,
				 "none.example", 80);

	put(f, r);
	/* This one has a flow, whose close tells of it. */
	opened(f, "down.example", 80);
	r = record(RECORD_HTTP, RECORD_ERROR, REASON_CONNECT_REFUSED,
		   "down.example", 80);
	assert_int_equal(ip_addr_parse(STR("192.0.2.1"), &r.dst.addr), 0);
	put(f, r);
	r.event = RECORD_FLOW_CLOSE;
	put(f, r);
	s = summary_of(f);
	assert_int_equal(s.n, 2);
	for (size_t i = 0; i < s.n; i++) {
		assert_true(s.row[i].refused);
		assert_int_equal(s.row[i].count, 1);
	}
	assert_string_equal(s.row[0].host, "down.example");
	assert_string_equal(s.row[1].host, "none.example");
	query_summary_done(&s);
}

static void a_flow_that_was_cut_after_bytes_is_both(void **state)
{
	struct file *f = *state;
	struct query_summary s;
	struct record r = record(RECORD_FLOW_CLOSE, RECORD_DENY,
				 REASON_HOST_MISMATCH, "a.example", 80);

	opened(f, "a.example", 80);
	r.bytes_up = 50;
	put(f, r);
	s = summary_of(f);
	assert_int_equal(s.n, 2);
	assert_int_equal(row_of(&s, "a.example", false)->bytes_up, 50);
	assert_int_equal(row_of(&s, "a.example", true)->count, 1);
	query_summary_done(&s);
}

/* The request says it, and its flow's close, in either order: once. */
static void a_refused_request_is_told_once(void **state)
{
	struct file *f = *state;
	struct query_summary s;
	struct record request = record(RECORD_HTTP, RECORD_DENY,
				       REASON_FRAMING_INVALID, "a.example", 80);
	struct record close = record(RECORD_FLOW_CLOSE, RECORD_DENY,
				     REASON_FRAMING_INVALID, "a.example", 80);

	close.proto = "http";
	opened(f, "a.example", 80);
	put(f, request);
	put(f, close);			/* inside CONNECT: nothing moved */
	opened(f, "a.example", 80);
	close.bytes_up = 50;		/* a body that broke off */
	put(f, close);
	put(f, request);
	opened(f, "b.example", 8000);	/* a rule for tcp, through the proxy */
	close = record(RECORD_FLOW_CLOSE, RECORD_DENY, REASON_FRAMING_INVALID,
		       "b.example", 8000);
	close.via = RECORD_VIA_FORWARD;
	close.bytes_up = 70;
	put(f, close);
	s = summary_of(f);
	assert_int_equal(s.n, 3);
	assert_int_equal(row_of(&s, "a.example", false)->count, 1);
	assert_int_equal(row_of(&s, "a.example", true)->count, 2);
	assert_int_equal(row_of(&s, "b.example", false)->count, 1);
	query_summary_done(&s);
}

static void observed_flows_say_what_would_have_been(void **state)
{
	struct file *f = *state;
	struct query_summary s;
	struct record r = record(RECORD_FLOW_CLOSE, RECORD_WOULD_DENY,
				 REASON_CLIENT_CLOSED, "new.example", 443);

	put(f, record(RECORD_FLOW_OPEN, RECORD_WOULD_DENY,
		      REASON_HOST_NOT_ALLOWED, "new.example", 443));
	r.bytes_down = 9;
	put(f, r);
	s = summary_of(f);
	assert_int_equal(s.n, 1);
	assert_false(s.row[0].refused);
	assert_true(s.row[0].would_deny);
	assert_string_equal(s.row[0].reason, "host_not_allowed");
	assert_int_equal(s.row[0].bytes_down, 9);
	query_summary_done(&s);
}

static struct record question(const char *host, uint32_t count)
{
	struct record r = record(RECORD_DNS, RECORD_DENY,
				 REASON_HOST_NOT_ALLOWED, host, 0);

	r.qtype = "A";
	r.rcode = 3;
	r.count = count;
	return r;
}

static void refused_lookup(struct file *f, const char *host)
{
	put(f, question(host, 2));
}

static void a_refused_lookup_is_told_once(void **state)
{
	struct file *f = *state;
	struct query_summary s;

	refused_lookup(f, "both.example");
	denied(f, "both.example", 443, REASON_HOST_NOT_ALLOWED);
	refused_lookup(f, "only.example");
	s = summary_of(f);
	assert_int_equal(s.n, 2);
	assert_string_equal(row_of(&s, "both.example", true)->transport, "tcp");
	assert_string_equal(row_of(&s, "only.example", true)->transport, "dns");
	assert_int_equal(row_of(&s, "only.example", true)->count, 2);
	query_summary_done(&s);
	/* Each record counts what it says, the first one itself. */
	put(f, question("again.example", 0));
	put(f, question("again.example", 3));
	put(f, question("again.example", 1));
	s = summary_of(f);
	assert_int_equal(row_of(&s, "again.example", true)->count, 5);
	query_summary_done(&s);
}

/* LOG-11 */
static void our_own_self_test_is_passed_over(void **state)
{
	struct file *f = *state;
	struct record r = record(RECORD_FLOW_DENY, RECORD_DENY,
				 REASON_ADDRESS_DOCUMENTATION, "", 443);
	struct query_summary s;

	r.internal = true;
	put(f, r);
	s = summary_of(f);
	assert_int_equal(s.n, 0);
	assert_int_equal(s.records, 1);
	query_summary_done(&s);
}

static void a_flow_without_a_name_is_shown_by_its_address(void **state)
{
	struct file *f = *state;
	struct record r = record(RECORD_FLOW_DENY, RECORD_DENY,
				 REASON_ADDRESS_METADATA, "", 80);
	struct query_summary s;

	r.asked = ip_addr_v4(0xa9fea9fe);
	r.transport = "udp";
	put(f, r);
	s = summary_of(f);
	assert_int_equal(s.n, 1);
	assert_string_equal(s.row[0].host, "169.254.169.254");
	assert_string_equal(s.row[0].transport, "udp");
	query_summary_done(&s);
	denied(f, "", 0, REASON_CLIENT_CLOSED_EARLY);
	s = summary_of(f);
	assert_non_null(row_of(&s, "-", true));
	query_summary_done(&s);
}

/* LOG-12: what was lost is in the answer. */
static void gaps_are_summed(void **state)
{
	struct file *f = *state;
	struct record r = record(RECORD_LOG_GAP, RECORD_ACT_NONE,
				 REASON_ALLOWED, "", 0);
	struct query_summary s;

	r.count = 5;
	put(f, r);
	r.count = 1;
	put(f, r);
	s = summary_of(f);
	assert_int_equal(s.lost, 6);
	query_summary_done(&s);
}

static void times_that_connections_waited_are_summed(void **state)
{
	struct file *f = *state;
	struct record r = record(RECORD_LIMIT, RECORD_ACT_NONE,
				 REASON_CONNECTIONS_EXCEEDED, "", 0);
	struct query_summary s;

	put(f, r);
	r.count = 3;
	put(f, r);
	s = summary_of(f);
	assert_int_equal(s.full, 4);
	assert_int_equal(s.n, 0);	/* nobody was refused */
	query_summary_done(&s);
}

static void the_end_says_how_often_the_run_was_over_its_budget(void **state)
{
	struct file *f = *state;
	struct record r = record(RECORD_RUN_END, RECORD_ACT_NONE,
				 REASON_RUN_ENDED, "", 0);
	struct query_summary s;

	r.over_budget = 7;
	put(f, r);
	s = summary_of(f);
	assert_true(s.ended);
	assert_int_equal(s.over_budget, 7);
	query_summary_done(&s);
}

static void lines_that_are_no_records_are_counted_and_passed_over(void **state)
{
	struct file *f = *state;
	struct query_summary s;
	char *longer = mem_new(200000);

	assert_non_null(longer);
	memset(longer, 'x', 200000);
	opened(f, "a.example", 443);
	raw(f, STR("\n  \nnot json\n[1]\n{}\n"));
	raw(f, STR("{\"v\":2,\"ts\":\"t\",\"ev\":\"flow_open\"}\n"));
	raw(f, STR("{\"v\":1,\"ts\":\"t\",\"ts\":\"t\",\"ev\":\"x\"}\n"));
	raw(f, STR("{\"v\":1,\"ts\":\"t\",\"ev\":\"flow_deny\","
		   "\"dst_port\":70000}\n"));
	raw(f, str_make(longer, 200000));
	raw(f, STR("\n"));
	opened(f, "b.example", 443);
	raw(f, STR("{\"v\":1,\"ts\":\"2026"));	/* torn tail */
	s = summary_of(f);
	assert_int_equal(s.bad, 8);
	assert_int_equal(s.records, 10);
	assert_non_null(row_of(&s, "a.example", false));
	assert_non_null(row_of(&s, "b.example", false));
	query_summary_done(&s);
	mem_free(longer);
}

static void a_last_line_without_its_newline_still_counts(void **state)
{
	struct file *f = *state;
	struct query_summary s;

	opened(f, "a.example", 443);
	f->text.n--;
	s = summary_of(f);
	assert_int_equal(s.bad, 0);
	assert_int_equal(s.n, 1);
	query_summary_done(&s);
}

static void later_events_and_keys_are_no_errors(void **state)
{
	struct file *f = *state;
	struct query_summary s;

	raw(f, STR("{\"v\":1,\"ts\":\"t\",\"ev\":\"approval\",\"new\":{}}\n"));
	s = summary_of(f);
	assert_int_equal(s.bad, 0);
	assert_int_equal(s.records, 1);
	query_summary_done(&s);
}

static void rows_are_bounded(void **state)
{
	struct file *f = *state;
	struct query_summary s;
	char host[32];
	int i;

	for (i = 0; i < QUERY_ROWS_MAX + 7; i++) {
		assert_true(snprintf(host, sizeof(host), "h%d.example", i) > 0);
		denied(f, host, 443, REASON_HOST_NOT_ALLOWED);
	}
	s = summary_of(f);
	assert_int_equal(s.n, QUERY_ROWS_MAX);
	assert_int_equal(s.more, 7);
	query_summary_done(&s);
}

struct seen {
	unsigned n, stop_at;
	char host[64];
	char ts[28];
};

static bool see(void *arg, const struct query_flow *f)
{
	struct seen *s = arg;

	assert_true(strlen(f->host) < sizeof(s->host));
	memcpy(s->host, f->host, strlen(f->host) + 1);
	memcpy(s->ts, f->ts, sizeof(s->ts));
	return ++s->n != s->stop_at;
}

static void reading_stops_when_told(void **state)
{
	struct file *f = *state;
	struct seen s = { .stop_at = 2 };
	uint64_t bad = 9;
	int i, fd;

	for (i = 0; i < 5; i++)
		opened(f, "a.example", 443);
	fd = fd_of(f);
	assert_int_equal(query_each(fd, see, &s, &bad), 0);
	assert_int_equal(s.n, 2);
	assert_int_equal(bad, 0);
	assert_string_equal(s.host, "a.example");
	assert_string_equal(s.ts, "2026-11-29T23:31:07.412345Z");
	close(fd);
	assert_int_equal(query_each(-1, see, &s, &bad), -EBADF);
}

/* LOG-01: what is shown on a terminal cannot drive it. */
static void strings_that_are_not_plain_are_not_given_out(void **state)
{
	struct file *f = *state;
	struct seen s = { 0 };
	int fd;

	denied(f, "a\x1b[2J\n.example", 443, REASON_HOST_NOT_ALLOWED);
	fd = fd_of(f);
	assert_int_equal(query_each(fd, see, &s, NULL), 0);
	assert_int_equal(s.n, 1);
	assert_string_equal(s.host, "?");
	close(fd);
}

static void running_out_of_memory_is_said(void **state)
{
	struct file *f = *state;
	struct query_summary s;
	unsigned nth;
	int err, fd;

	opened(f, "a.example", 443);
	denied(f, "b.example", 443, REASON_HOST_NOT_ALLOWED);
	for (nth = 1; nth < 100; nth++) {
		fd = fd_of(f);
		mem_test_fail_at(nth);
		err = query_summarise(fd, &s);
		mem_test_fail_at(0);
		close(fd);
		if (err == 0)
			break;
		assert_int_equal(err, -ENOMEM);
	}
	assert_true(nth > 5 && nth < 100);
	query_summary_done(&s);
}

static const struct query_wish refusals = { .run = "7f3a91", .refused = true };
static const struct query_wish forged = { .run = "7f3a91\n[allow all]" };

static void the_policy_proposes_what_a_host_rule_can_lift(void **state)
{
	struct file *f = *state;
	struct buf out = BUF_INIT(65536);
	struct query_summary s;

	put(f, record(RECORD_FLOW_OPEN, RECORD_WOULD_DENY,
		      REASON_HOST_NOT_ALLOWED, "new.example", 443));
	denied(f, "new.example", 8443, REASON_PORT_NOT_ALLOWED);
	denied(f, "new.example", 443, REASON_HOST_NOT_ALLOWED);
	refused_lookup(f, "looked-up.example");
	opened(f, "allowed.example", 443);
	denied(f, "inner.example", 443, REASON_ADDRESS_PRIVATE);
	denied(f, "169.254.169.254", 80, REASON_ADDRESS_METADATA);
	denied(f, "203.0.113.9", 443, REASON_HOST_NOT_ALLOWED);
	denied(f, "x]\n[allow *", 443, REASON_HOST_NOT_ALLOWED);
	s = summary_of(f);
	assert_int_equal(query_policy(&s, &refusals, &out), 0);
	assert_string_equal(buf_cstr(&out),
		"; What run 7f3a91 was refused, or would have been: a proposal "
		"to review, not a policy.\n"
		"; Delete what is not wanted; say in 'reason' why the rest is.\n"
		"\n[policy]\nname = run-7f3a91\n"
		"\n; port 443: let through x1, host_not_allowed, 0 bytes up, "
		"0 down\n"
		"; port 443: refused x1, host_not_allowed, 0 bytes up, 0 down\n"
		"; port 8443: refused x1, port_not_allowed, 0 bytes up, 0 down\n"
		"[allow new.example]\nhosts = new.example\nports = 443 8443\n"
		"reason = seen in run 7f3a91; review before use\n"
		"\n; only looked up, the port is not known: host_not_allowed x2\n"
		"[allow looked-up.example]\nhosts = looked-up.example\n"
		"reason = seen in run 7f3a91; review before use\n"
		"\n"
		"; not written: 169.254.169.254 port 80, address_metadata\n"
		"; not written: 203.0.113.9 port 443, host_not_allowed\n"
		"; not written: (no name) port 443, host_not_allowed\n"
		"; not written: inner.example port 443, address_private\n");
	buf_done(&out);
	query_summary_done(&s);
}

/* A minimal policy: what the run reached, and of what it was refused a note. */
static void what_was_reached_can_be_learnt(void **state)
{
	const struct query_wish wish = { .run = "7f3a91", .reached = true };
	struct file *f = *state;
	struct buf out = BUF_INIT(65536);
	struct query_summary s;

	opened(f, "allowed.example", 443);
	put(f, record(RECORD_FLOW_OPEN, RECORD_WOULD_DENY,
		      REASON_HOST_NOT_ALLOWED, "new.example", 22));
	denied(f, "refused.example", 443, REASON_HOST_NOT_ALLOWED);
	s = summary_of(f);
	assert_int_equal(query_policy(&s, &wish, &out), 0);
	assert_string_equal(buf_cstr(&out),
		"; What run 7f3a91 needed: a proposal to review, not a policy.\n"
		"; Delete what is not wanted; say in 'reason' why the rest is.\n"
		"\n[policy]\nname = run-7f3a91\n"
		"\n; port 443: reached x1, 0 bytes up, 0 down\n"
		"[allow allowed.example]\nhosts = allowed.example\nports = 443\n"
		"reason = seen in run 7f3a91; review before use\n"
		"\n; port 22: let through x1, host_not_allowed, 0 bytes up, "
		"0 down\n"
		"[allow new.example]\nhosts = new.example\nports = 22\n"
		"reason = seen in run 7f3a91; review before use\n"
		"\n; not written: refused.example port 443, host_not_allowed\n");
	buf_done(&out);
	query_summary_done(&s);
}

static void a_wildcard_is_learnt_only_when_asked(void **state)
{
	struct query_wish wish = { .run = "7f3a91", .reached = true };
	struct file *f = *state;
	struct buf out = BUF_INIT(65536);
	struct query_summary s;

	opened(f, "a.cdn.example", 443);
	opened(f, "b.cdn.example", 443);
	opened(f, "c.cdn.example", 8443);
	opened(f, "a.few.example", 443);
	opened(f, "b.few.example", 443);
	opened(f, "one.example", 443);
	opened(f, "two.example", 443);
	opened(f, "three.example", 443);
	opened(f, "a.co.uk", 443);
	opened(f, "b.co.uk", 443);
	opened(f, "c.co.uk", 443);
	s = summary_of(f);
	assert_int_equal(query_policy(&s, &wish, &out), 0);
	assert_null(strstr(buf_cstr(&out), "*."));
	buf_done(&out);
	out = (struct buf)BUF_INIT(65536);
	wish.wildcards = true;
	assert_int_equal(query_policy(&s, &wish, &out), 0);
	assert_non_null(strstr(buf_cstr(&out),
		"\n; a.cdn.example: port 443: reached x1, 0 bytes up, 0 down\n"
		"; b.cdn.example: port 443: reached x1, 0 bytes up, 0 down\n"
		"; c.cdn.example: port 8443: reached x1, 0 bytes up, 0 down\n"
		"[allow below-cdn.example]\nhosts = *.cdn.example\n"
		"ports = 443 8443\n"));
	assert_non_null(strstr(buf_cstr(&out), "hosts = a.few.example\n"));
	assert_non_null(strstr(buf_cstr(&out), "hosts = one.example\n"));
	/* POL-12: no policy may say *.co.uk. */
	assert_non_null(strstr(buf_cstr(&out), "hosts = a.co.uk\n"));
	buf_done(&out);
	query_summary_done(&s);
}

static void told(void *arg, const struct rules_diag *diag)
{
	(void)arg;
	if (diag->severity == RULES_ERROR)
		fail_msg("line %u: %s", diag->line, diag->message);
}

static void the_policy_compiles_and_allows_what_was_seen(void **state)
{
	struct file *f = *state;
	const char *longest =
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.example";
	struct buf out = BUF_INIT(65536);
	struct rules_source source = { .name = "proposal" };
	struct rules_question q = { .port = 8443 };
	struct rules_answer a;
	struct query_summary s;
	struct ruleset *rs;
	uint16_t port;

	denied(f, "new.example", 8443, REASON_PORT_NOT_ALLOWED);
	denied(f, longest, 443, REASON_HOST_NOT_ALLOWED);
	for (port = 1; port < 200; port++)
		denied(f, "scan.example", port, REASON_HOST_NOT_ALLOWED);
	denied(f, "inner.example", 8443, REASON_ADDRESS_PRIVATE);
	s = summary_of(f);
	assert_int_equal(query_policy(&s, &refusals, &out), 0);
	source.text = buf_str(&out);
	assert_int_equal(rules_compile(&source, 1, told, NULL, &rs), 0);
	q.host = STR("new.example");
	rules_judge(rs, &q, &a);
	assert_int_equal(a.reason, REASON_ALLOWED);
	q.port = 443;
	rules_judge(rs, &q, &a);
	assert_int_equal(a.reason, REASON_PORT_NOT_ALLOWED);
	q.host = str_from(longest);
	rules_judge(rs, &q, &a);
	assert_int_equal(a.reason, REASON_ALLOWED);
	q.host = STR("inner.example");
	rules_judge(rs, &q, &a);
	assert_int_equal(a.reason, REASON_HOST_NOT_ALLOWED);
	rules_unref(rs);
	buf_done(&out);
	query_summary_done(&s);
}

static void a_policy_that_does_not_fit_is_an_error(void **state)
{
	struct file *f = *state;
	struct buf out = BUF_INIT(100);
	struct query_summary s = summary_of(f);

	assert_int_equal(query_policy(&s, &forged, &out), -ENOSPC);
	buf_done(&out);
	query_summary_done(&s);
}

#define T(f)	cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(an_empty_file_is_an_empty_summary),
		T(flows_to_one_end_are_one_row_with_their_bytes),
		T(a_flow_that_could_not_connect_counts_as_refused),
		T(a_request_that_failed_before_a_flow_counts),
		T(a_flow_that_was_cut_after_bytes_is_both),
		T(a_refused_request_is_told_once),
		T(observed_flows_say_what_would_have_been),
		T(a_refused_lookup_is_told_once),
		T(our_own_self_test_is_passed_over),
		T(a_flow_without_a_name_is_shown_by_its_address),
		T(gaps_are_summed),
		T(times_that_connections_waited_are_summed),
		T(the_end_says_how_often_the_run_was_over_its_budget),
		T(lines_that_are_no_records_are_counted_and_passed_over),
		T(a_last_line_without_its_newline_still_counts),
		T(later_events_and_keys_are_no_errors),
		T(rows_are_bounded),
		T(reading_stops_when_told),
		T(strings_that_are_not_plain_are_not_given_out),
		T(running_out_of_memory_is_said),
		T(the_policy_proposes_what_a_host_rule_can_lift),
		T(the_policy_compiles_and_allows_what_was_seen),
		T(what_was_reached_can_be_learnt),
		T(a_wildcard_is_learnt_only_when_asked),
		T(a_policy_that_does_not_fit_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
