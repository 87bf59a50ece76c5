/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query.c - reading records back, line by line
 *
 * The file may end within a line (the writer was killed), hold lines of
 * somebody else, or of a later version with keys that we do not know: a line
 * that is not a record of ours is counted and passed over, never an error.
 * Memory is bounded: one line, and QUERY_ROWS_MAX rows.
 */
#include "audit/query.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

#include "audit/record.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"

#define READ_SIZE	(64u << 10)	/* more than one line */

/* --- one record ----------------------------------------------------------- */

static bool is_plain(const char *s, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if ((unsigned char)s[i] < 0x20 || (unsigned char)s[i] > 0x7e)
			return false;
	return true;
}

static const char *text_of(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	if (!json_is_string(v))
		return "";
	if (!is_plain(json_string_value(v), json_string_length(v)))
		return "?";
	return json_string_value(v);
}

/* A number that is not there is @otherwise; below zero counts as that too. */
static uint64_t number_of(const json_t *o, const char *key, uint64_t otherwise)
{
	const json_t *v = json_object_get(o, key);

	if (!json_is_integer(v) || json_integer_value(v) < 0)
		return otherwise;
	return (uint64_t)json_integer_value(v);
}

static bool read_time(const json_t *o, struct query_flow *f)
{
	const char *ts = text_of(o, "ts");
	size_t n = strlen(ts);

	if (n == 0 || n >= sizeof(f->ts))
		return false;
	memcpy(f->ts, ts, n + 1);
	return true;
}

/* False when @o is not a record of a version that we know. */
static bool read_flow(const json_t *o, struct query_flow *f)
{
	uint64_t port = number_of(o, "dst_port", 0);

	*f = (struct query_flow){
		.id = text_of(o, "id"),
		.event = text_of(o, "ev"),
		.act = text_of(o, "act"),
		.reason = text_of(o, "reason"),
		.rule = text_of(o, "rule"),
		.host = text_of(o, "host"),
		.via = text_of(o, "via"),
		.proto = text_of(o, "proto"),
		.run = text_of(o, "run"),
		.src = text_of(o, "src"),
		.dst_ip = text_of(o, "dst_ip"),
		.asked = text_of(o, "asked"),
		.parent = text_of(o, "parent"),
		.transport = text_of(o, "transport"),
		.policy = text_of(o, "policy"),
		.error = text_of(o, "error"),
		.generation = number_of(o, "gen", 0),
		.flows_kept = number_of(o, "flows_kept", 0),
		.flows_ended = number_of(o, "flows_ended", 0),
		.over_budget = number_of(o, "over_budget", 0),
		.port = (uint16_t)port,
		.bytes_up = number_of(o, "bytes_up", 0),
		.bytes_down = number_of(o, "bytes_down", 0),
		.dur_ms = -1,
		.count = (uint32_t)MIN(number_of(o, "count", 1), UINT32_MAX),
		.internal = json_is_true(json_object_get(o, "internal")),
	};
	f->again = strcmp(f->event, "dns") == 0 && json_object_get(o, "count");
	if (json_object_get(o, "dur_ms"))
		f->dur_ms = (int64_t)number_of(o, "dur_ms", 0);
	return number_of(o, "v", 0) == RECORD_VERSION && f->event[0] != '\0' &&
	       port <= UINT16_MAX && read_time(o, f);
}

struct each {
	query_flow_fn *fn;
	void *arg;
	uint64_t bad;
	bool stop;
};

static void on_line(struct each *e, struct str line)
{
	struct query_flow f;
	json_error_t err;
	json_t *o;

	if (str_empty(str_trim(line)))
		return;
	o = json_loadb(line.p, line.n,
		       JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &err);
	if (!o || !read_flow(o, &f))
		e->bad++;
	else if (!e->fn(e->arg, &f))
		e->stop = true;
	json_decref(o);
}

/* --- lines ---------------------------------------------------------------- */

struct lines {
	int fd;
	char *room;		/* READ_SIZE bytes */
	size_t begin, end;	/* what was read and not yet taken */
	bool skipping;		/* within a line that is too long */
	bool eof;
};

/* Make room behind what is there, and read.  0 or -errno. */
static int lines_read(struct lines *l)
{
	ssize_t got;

	memmove(l->room, l->room + l->begin, l->end - l->begin);
	l->end -= l->begin;
	l->begin = 0;
	do {
		got = read(l->fd, l->room + l->end, READ_SIZE - l->end);
	} while (got == -1 && errno == EINTR);
	if (got == -1)
		return -errno;
	l->end += (size_t)got;
	l->eof = got == 0;
	return 0;
}

/* Take one whole line that is there; false: read on. */
static bool lines_take(struct lines *l, struct each *e)
{
	struct str rest = str_make(l->room + l->begin, l->end - l->begin);
	size_t n = str_chr(rest, '\n');
	bool whole = n < rest.n;

	if (n > QUERY_LINE_MAX && !l->skipping) {
		l->skipping = true;
		e->bad++;
	}
	if (!whole && !l->eof) {
		if (l->skipping)
			l->begin = l->end;
		return false;
	}
	if (!l->skipping)
		on_line(e, str_make(rest.p, n));
	l->skipping = false;
	l->begin += whole ? n + 1 : n;
	return l->begin < l->end;
}

/**
 * query_each() - Call @fn for every record from @fd's position to its end
 * @fn:		false ends the reading
 * @ret_bad:	lines that are no records; may be NULL; set when this returns 0
 * Return: 0 or -errno
 */
int query_each(int fd, query_flow_fn *fn, void *arg, uint64_t *ret_bad)
{
	CLEANUP(mem_freep) char *room = mem_new(READ_SIZE);
	struct lines l = { .fd = fd, .room = room };
	struct each e = { .fn = fn, .arg = arg };
	int err;

	if (!room)
		return -ENOMEM;
	while (!l.eof && !e.stop) {
		err = lines_read(&l);
		if (err < 0)
			return err;
		while (!e.stop && lines_take(&l, &e))
			;
	}
	if (ret_bad)
		*ret_bad = e.bad;
	return 0;
}

/* --- summary -------------------------------------------------------------- */

struct entry {
	struct hash_node node;		/* summing.table */
	struct query_row row;
};

struct summing {
	struct hash_table table;
	struct query_summary *out;
	bool no_memory;
};

static bool is(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

static void row_done(struct query_row *r)
{
	mem_free(r->host);
	mem_free(r->reason);
	mem_free(r->transport);
}

static bool row_is(const struct query_row *a, const struct query_row *b)
{
	return a->port == b->port && a->refused == b->refused &&
	       a->would_deny == b->would_deny && is(a->host, b->host) &&
	       is(a->reason, b->reason) && is(a->transport, b->transport);
}

/* By host and port alone, so that all rows of one end are in one chain. */
static uint64_t row_hash(const struct query_row *r)
{
	return hash_str(str_from(r->host)) ^
	       (r->port * UINT64_C(0x9e3779b97f4a7c15));
}

static struct query_row *row_find(struct summing *s, const struct query_row *key)
{
	struct hash_node *n = hash_first(&s->table, row_hash(key));

	for (; n; n = hash_next(n)) {
		struct entry *e = container_of(n, struct entry, node);

		if (row_is(&e->row, key))
			return &e->row;
	}
	return NULL;
}

/* The row like @key, made when there is none; NULL: full, or no memory. */
static struct query_row *row_get(struct summing *s, const struct query_row *key)
{
	struct query_row *row = row_find(s, key);
	struct entry *e;

	if (row)
		return row;
	if (s->table.n == QUERY_ROWS_MAX) {
		s->out->more++;
		return NULL;
	}
	e = mem_new(sizeof(*e));
	if (!e) {
		s->no_memory = true;
		return NULL;
	}
	e->row = *key;
	e->row.host = mem_dup_str(str_from(key->host));
	e->row.reason = mem_dup_str(str_from(key->reason));
	e->row.transport = mem_dup_str(str_from(key->transport));
	if (!e->row.host || !e->row.reason || !e->row.transport) {
		row_done(&e->row);
		mem_free(e);
		s->no_memory = true;
		return NULL;
	}
	hash_add(&s->table, &e->node, row_hash(key));
	return &e->row;
}

/* The key's strings are borrowed from the record: never changed through it. */
static char *borrow(const char *s)
{
	union { const char *in; char *out; } u = { .in = s };

	return u.out;
}

static struct query_row key_of(const struct query_flow *f, bool refused)
{
	bool dns = is(f->event, "dns");
	const char *host = f->host;

	if (host[0] == '\0')
		host = f->dst_ip[0] ? f->dst_ip : f->asked;
	if (host[0] == '\0')
		host = "-";	/* it never said where to */
	return (struct query_row){
		.host = borrow(host),
		.port = dns ? 0 : f->port,
		.refused = refused,
		.reason = borrow(refused ? f->reason : ""),
		.transport = borrow(dns ? "dns" : f->transport[0] ?
				    f->transport : "tcp"),
	};
}

static void count_reached(struct summing *s, const struct query_flow *f)
{
	struct query_row key = key_of(f, false), *row;

	key.would_deny = is(f->act, "would_deny");
	if (key.would_deny)
		key.reason = borrow(f->reason);
	row = row_get(s, &key);
	if (row)
		row->count += f->count;
}

static void count_refused(struct summing *s, const struct query_flow *f)
{
	struct query_row key = key_of(f, true), *row;

	row = row_get(s, &key);
	if (row)
		row->count += f->count;
}

/*
 * The row that the open of this close was counted in.  A close says how the
 * flow ended, so the reason of a would-be denial is not in it.
 */
static struct query_row *row_of_open(struct summing *s,
				     const struct query_flow *f)
{
	struct query_row key = key_of(f, false), *best = NULL;
	uint64_t hash = row_hash(&key);
	struct hash_node *n;

	for (n = hash_first(&s->table, hash); n; n = hash_next(n)) {
		struct query_row *row = &container_of(n, struct entry, node)->row;

		if (row->refused || row->port != key.port ||
		    !is(row->host, key.host) ||
		    !is(row->transport, key.transport))
			continue;
		if (!best || (best->count == 0 && row->count > 0))
			best = row;
	}
	return best;
}

/*
 * Each request on such a flow is a record of its own, and so is each refusal:
 * the close only says what it led to.
 */
static bool is_of_requests(const struct query_flow *f)
{
	return is(f->proto, "http") || is(f->via, "forward");
}

static void count_close(struct summing *s, const struct query_flow *f)
{
	bool moved = f->bytes_up > 0 || f->bytes_down > 0;
	struct query_row *row = row_of_open(s, f);
	bool denied = is(f->act, "deny");

	if (row) {
		row->bytes_up += f->bytes_up;
		row->bytes_down += f->bytes_down;
	}
	if (!denied && (moved || !is(f->act, "error")))
		return;
	if (row && !moved && row->count > 0)
		row->count--;
	if (!denied || !is_of_requests(f))
		count_refused(s, f);
}

static void count_end(struct summing *s, const struct query_flow *f)
{
	s->out->ended = true;
	s->out->over_budget += f->over_budget;
}

static bool is_refusal(const struct query_flow *f)
{
	return is(f->act, "deny") || is(f->act, "error");
}

static void note_run(struct query_summary *out, const char *run)
{
	size_t n = strlen(run);

	if (n == 0 || out->several || is(out->run, run))
		return;
	out->several = out->run[0] != '\0' || n >= sizeof(out->run);
	if (out->several)
		n = 0;
	memcpy(out->run, run, n);
	out->run[n] = '\0';
}

/* Refused, or failed before it had a flow, whose close would tell of it. */
static bool is_lone_request(const struct query_flow *f)
{
	return is(f->act, "deny") || (is(f->act, "error") && !f->dst_ip[0]);
}

static bool on_flow(void *arg, const struct query_flow *f)
{
	struct summing *s = arg;

	s->out->records++;
	note_run(s->out, f->run);
	if (is(f->event, "log_gap"))
		s->out->lost += f->count;
	else if (is(f->event, "limit"))
		s->out->full += f->count;
	else if (is(f->event, "run_end"))
		count_end(s, f);
	else if (f->internal)
		return true;
	else if (is(f->event, "flow_open"))
		count_reached(s, f);
	else if (is(f->event, "flow_close"))
		count_close(s, f);
	else if (is(f->event, "flow_deny") && is_refusal(f))
		count_refused(s, f);
	else if (is(f->event, "http") && is_lone_request(f))
		count_refused(s, f);
	else if (is(f->event, "dns") && is_refusal(f))
		count_refused(s, f);
	return !s->no_memory;
}

/* Is the name of this refused lookup refused as a flow as well? */
static bool told_as_flow(const struct query_summary *sum,
			 const struct query_row *dns)
{
	size_t i;

	for (i = 0; i < sum->n; i++)
		if (sum->row[i].refused && !is(sum->row[i].transport, "dns") &&
		    is(sum->row[i].host, dns->host))
			return true;
	return false;
}

static bool is_void(const struct query_row *r)
{
	return r->count == 0 && r->bytes_up == 0 && r->bytes_down == 0;
}

static void sum_prune(struct query_summary *sum)
{
	size_t i, n = 0;

	/* Marked first: all rows must stand while they are compared. */
	for (i = 0; i < sum->n; i++)
		if (is(sum->row[i].transport, "dns") &&
		    told_as_flow(sum, &sum->row[i]))
			sum->row[i].count = 0;
	for (i = 0; i < sum->n; i++) {
		if (is_void(&sum->row[i]))
			row_done(&sum->row[i]);
		else
			sum->row[n++] = sum->row[i];
	}
	sum->n = n;
}

static int cmp_uint(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

/* Reached first; then what matters most; then by name, to be the same twice. */
static int row_cmp(const void *va, const void *vb)
{
	const struct query_row *a = va, *b = vb;
	int c;

	if (a->refused != b->refused)
		return a->refused ? 1 : -1;
	c = a->refused ? cmp_uint(b->count, a->count) :
	    cmp_uint(b->bytes_up + b->bytes_down, a->bytes_up + a->bytes_down);
	if (c == 0)
		c = strcmp(a->host, b->host);
	if (c == 0)
		c = cmp_uint(a->port, b->port);
	return c ? c : strcmp(a->reason, b->reason);
}

/* Move the table's rows to the summary, or drop them when there is no room. */
static int sum_collect(struct summing *s)
{
	struct query_summary *sum = s->out;
	struct hash_node *n, *next;
	size_t bucket = 0;

	sum->row = mem_new_array(s->table.n + 1, sizeof(*sum->row));
	for (n = hash_walk(&s->table, &bucket, NULL); n;
	     n = hash_walk(&s->table, &bucket, next)) {
		struct entry *e = container_of(n, struct entry, node);

		next = n->next;
		if (sum->row)
			sum->row[sum->n++] = e->row;
		else
			row_done(&e->row);
		mem_free(e);
	}
	hash_done(&s->table);
	return sum->row && !s->no_memory ? 0 : -ENOMEM;
}

/**
 * query_summarise() - What was reached and what was refused, by host and port
 * @fd:		read from its position to its end
 * @ret:	the caller's, for query_summary_done(); untouched on failure
 * Return: 0 or -errno
 */
int query_summarise(int fd, struct query_summary *ret)
{
	struct query_summary sum = { 0 };
	struct summing s = { .out = &sum };
	int err, collected;

	err = hash_init(&s.table, 64);
	if (err < 0)
		return err;
	err = query_each(fd, on_flow, &s, &sum.bad);
	collected = sum_collect(&s);
	if (err == 0)
		err = collected;
	if (err < 0) {
		query_summary_done(&sum);
		return err;
	}
	sum.records += sum.bad;
	sum_prune(&sum);
	qsort(sum.row, sum.n, sizeof(*sum.row), row_cmp);
	*ret = sum;
	return 0;
}

/**
 * query_summary_done() - Free the rows
 */
void query_summary_done(struct query_summary *s)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		row_done(&s->row[i]);
	mem_free(s->row);
	*s = (struct query_summary){ 0 };
}
