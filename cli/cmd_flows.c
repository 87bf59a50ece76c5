/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_flows.c - penstock flows: the record of a run as a table
 *
 * One line a flow, in the order of its decision: a refusal, an allowed flow
 * with its bytes and its end, or one that has no end in the record.  The close
 * of a flow stands later in the file than its opening, so the file is read
 * twice: first for what closed, then to print.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "audit/query.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/cmd.h"
#include "cli/opts.h"
#include "cli/run_state.h"
#include "cli/text.h"

#define LINE_BYTES	(16u << 10)	/* of a row in JSON */

enum { ID_HELP = 1, ID_RUN, ID_DENIED, ID_DNS, ID_JSON };

static const struct opt flows_opts[] = {
	{ ID_RUN, "run", 'r', OPT_NEEDED, "ID", "a run of yours, by its id" },
	{ ID_DENIED, "denied", 0, OPT_NONE, NULL, "only what was, or would have been, refused" },
	{ ID_DNS, "dns", 0, OPT_NONE, NULL, "DNS questions too" },
	{ ID_JSON, "json", 0, OPT_NONE, NULL, "one JSON object a line of the table" },
	{ ID_HELP, "help", 'h', OPT_NONE, NULL, "this text" },
};

struct closed {
	struct hash_node node;
	char id[40];
	char end[48];
	uint64_t up, down;
};

struct flows {
	const char *run;
	bool help, denied, dns, json;
	struct hash_table closed;
	int err;
	uint64_t rows;
};

static const char *flows_set(void *arg, int id, const char *value)
{
	struct flows *f = arg;

	switch (id) {
	case ID_RUN: f->run = value; break;
	case ID_DENIED: f->denied = true; break;
	case ID_DNS: f->dns = true; break;
	case ID_JSON: f->json = true; break;
	case ID_HELP: f->help = true; break;
	default: break;
	}
	return NULL;
}

static const struct opts_table flows_table = {
	"penstock flows", flows_opts, ARRAY_SIZE(flows_opts), flows_set
};

static void flows_usage(void)
{
	puts("Show what a run reached and what it was refused, flow by flow:\n\n"
	     "  penstock flows --run 7f3a91\n"
	     "  penstock flows --denied audit.jsonl\n\n"
	     "A line tells where another policy came into force.\n\n"
	     "Exit status: 0, or 2 when the record cannot be read or holds lines\n"
	     "that are none.  The record itself is JSON lines: penstock-audit(5);\n"
	     "--json has what is shown here, a flow and its end in one object.\n\n"
	     "Usage: penstock flows [OPTION...] --run ID | FILE\n");
	opts_usage(&flows_table);
}

/* --- first reading: what closed ------------------------------------------------- */

static struct closed *find_closed(const struct flows *f, const char *id)
{
	struct hash_node *n = hash_first(&f->closed, hash_str(str_from(id)));

	for (; n; n = hash_next(n)) {
		struct closed *c = container_of(n, struct closed, node);

		if (strcmp(c->id, id) == 0)
			return c;
	}
	return NULL;
}

static void copy_text(char *out, size_t size, const char *text)
{
	size_t n = MIN(strlen(text), size - 1);

	memcpy(out, text, n);
	out[n] = '\0';
}

static bool note_closed(void *arg, const struct query_flow *r)
{
	struct flows *f = arg;
	struct closed *c;

	if (strcmp(r->event, "flow_close") != 0 || find_closed(f, r->id))
		return true;
	c = mem_new(sizeof(*c));
	if (!c) {
		f->err = -ENOMEM;
		return false;
	}
	copy_text(c->id, sizeof(c->id), r->id);
	copy_text(c->end, sizeof(c->end), r->reason);
	c->up = r->bytes_up;
	c->down = r->bytes_down;
	hash_add(&f->closed, &c->node, hash_str(str_from(c->id)));
	return true;
}

static void forget_closed(struct flows *f)
{
	size_t bucket = 0;
	struct hash_node *n = hash_walk(&f->closed, &bucket, NULL);

	while (n) {
		struct hash_node *next = hash_walk(&f->closed, &bucket,
						   n->next);

		mem_free(container_of(n, struct closed, node));
		n = next;
	}
	hash_done(&f->closed);
}

/* --- second reading: the table ---------------------------------------------------- */

/* "2026-11-29T23:31:07.412345Z" as local time of day; as it is when odd. */
static void local_time(const char *ts, char out[9])
{
	struct tm tm = { 0 };
	const char *rest = strptime(ts, "%Y-%m-%dT%H:%M:%S", &tm);
	time_t t;

	copy_text(out, 9, strlen(ts) > 11 ? ts + 11 : ts);
	if (!rest)
		return;
	t = timegm(&tm);
	if (localtime_r(&t, &tm))
		(void)!strftime(out, 9, "%H:%M:%S", &tm);
}

static void print_head(void)
{
	printf("%-8s  %-10s  %-30s  %-20s  %-11s  %8s  %8s  %s\n", "TIME",
	       "VERDICT", "HOST", "ADDRESS", "WAY", "DOWN", "UP", "END");
}

static bool is_shown(const struct flows *f, const struct query_flow *r)
{
	bool refused = strcmp(r->act, "deny") == 0;
	bool observed = strcmp(r->act, "would_deny") == 0;

	if (r->internal || (f->denied && !refused && !observed))
		return false;
	if (strcmp(r->event, "dns") == 0)
		return f->dns;
	/* Refused, or failed before anything was dialled: no flow of its own
	 * tells of it. */
	if (strcmp(r->event, "http") == 0)
		return refused || (strcmp(r->act, "error") == 0 &&
				   !r->dst_ip[0]);
	return strcmp(r->event, "flow_open") == 0 ||
	       strcmp(r->event, "flow_deny") == 0;
}

/* Refused for who it was, who is then the news. */
static bool is_of_client(const struct query_flow *r)
{
	return strcmp(r->act, "deny") == 0 &&
	       strncmp(r->reason, "client_", 7) == 0 && r->src[0];
}

static const char *or_dash(const char *text)
{
	return text && text[0] ? text : "-";
}

/* Which policy judged what stands below. */
static void print_policy(struct flows *f, const struct query_flow *r)
{
	bool failed = strcmp(r->event, "policy_reload_failed") == 0;
	char when[9];

	local_time(r->ts, when);
	if (f->rows++ == 0)
		print_head();
	if (failed)
		printf("%-8s  policy not replaced: %s\n", when,
		       or_dash(r->error));
	else
		printf("%-8s  policy %s, generation %" PRIu64 ": %" PRIu64
		       " open flows kept, %" PRIu64 " cut\n", when,
		       or_dash(r->policy), r->generation, r->flows_kept,
		       r->flows_ended);
}

static void json_opt(struct json *j, const char *key, const char *text)
{
	if (text && text[0])
		json_cstr(j, key, text);
}

static void json_row(struct json *j, const struct query_flow *r,
		     const struct closed *c)
{
	bool policy = strncmp(r->event, "policy_", 7) == 0;

	json_cstr(j, "ts", r->ts);
	json_cstr(j, "ev", r->event);
	json_opt(j, "id", r->id);
	json_opt(j, "act", r->act);
	json_opt(j, "src", r->src);
	json_opt(j, "host", r->host);
	json_opt(j, "asked", r->asked);
	json_opt(j, "address", r->dst_ip);
	if (r->port)
		json_uint(j, "port", r->port);
	json_opt(j, "via", r->via);
	json_opt(j, "parent", r->parent);
	json_opt(j, "rule", r->rule);
	json_opt(j, "reason", r->reason);
	if (c) {
		json_opt(j, "end", c->end);
		json_uint(j, "bytes_up", c->up);
		json_uint(j, "bytes_down", c->down);
	}
	if (r->count > 1 || r->again)
		json_uint(j, "count", r->count);
	if (!policy)
		return;
	json_opt(j, "policy", r->policy);
	json_opt(j, "error", r->error);
	json_uint(j, "generation", r->generation);
	json_uint(j, "flows_kept", r->flows_kept);
	json_uint(j, "flows_ended", r->flows_ended);
}

static bool print_json(struct flows *f, const struct query_flow *r)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(LINE_BYTES);
	const struct closed *c = strcmp(r->event, "flow_open") == 0 ?
				 find_closed(f, r->id) : NULL;
	struct json j;

	json_begin(&j, &out);
	json_object_begin(&j, NULL);
	json_row(&j, r, c);
	json_object_end(&j);
	f->err = json_end(&j) ? -ENOSPC : buf_add_char(&out, '\n');
	if (!f->err)
		text_put(&out);
	f->rows++;
	return !f->err;
}

static bool print_flow(void *arg, const struct query_flow *r)
{
	struct flows *f = arg;
	const struct closed *c = NULL;
	bool policy = strncmp(r->event, "policy_", 7) == 0 && !f->denied;
	char when[9], host[TEXT_ENDPOINT], down[TEXT_SIZE] = "-";
	char up[TEXT_SIZE] = "-";
	const char *end = r->reason, *address = r->dst_ip;

	if (f->json)
		return (!policy && !is_shown(f, r)) || print_json(f, r);
	if (policy)
		print_policy(f, r);
	if (!is_shown(f, r))
		return true;
	if (strcmp(r->event, "flow_open") == 0) {
		c = find_closed(f, r->id);
		end = c ? c->end : "no end in the record";
	}
	if (c) {
		text_size(c->down, down);
		text_size(c->up, up);
	}
	/* Where there was no name, the address stands for it. */
	text_endpoint(r->host && r->host[0] ? r->host :
		      or_dash(r->dst_ip && r->dst_ip[0] ? r->dst_ip : r->asked),
		      r->port, host);
	local_time(r->ts, when);
	if (f->rows++ == 0)
		print_head();
	printf("%-8s  %-10s  %-30s  %-20s  %-11s  %8s  %8s  %s", when, r->act,
	       host, or_dash(address), or_dash(r->via), down, up,
	       or_dash(end));
	if (r->count > 1 || r->again)
		printf("  %sx%" PRIu32, r->again ? "again " : "", r->count);
	if (is_of_client(r))
		printf("  from %s", r->src);
	putchar('\n');
	return true;
}

static int show(struct flows *f, const char *path)
{
	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t bad = 0;
	int e;

	if (fd < 0) {
		say("cannot read %s: %s", path, strerror(errno));
		return EXIT_USAGE;
	}
	e = query_each(fd, note_closed, f, &bad);
	if (!e)
		e = f->err;
	if (!e && lseek(fd, 0, SEEK_SET) == -1)
		e = -errno;
	if (!e)
		e = query_each(fd, print_flow, f, &bad);
	if (!e)
		e = f->err;
	if (e) {
		say("cannot read %s: %s", path, strerror(-e));
		return EXIT_USAGE;
	}
	if (f->rows == 0 && !f->json)
		puts(f->denied ? "nothing was refused" :
		     "no flow is in this record");
	if (bad) {
		say("%s: %" PRIu64 " line%s are no records of ours: it was "
		    "altered, or is another file", path, bad,
		    bad == 1 ? "" : "s");
		return EXIT_USAGE;
	}
	return 0;
}

/* Say where it was looked for, and where else it may be. */
static void not_there(const char *id, const char *path)
{
	if (geteuid() == 0)
		say("no run %s: there is no %s; the runs of an ordinary user "
		    "are in that user's ~/.local/state/penstock", id, path);
	else
		say("no run %s: there is no %s; what ran under sudo is in %s "
		    "(sudo penstock flows --run %s)", id, path, RUN_ROOT_BASE,
		    id);
}

/* The record of run @id; false: said why not. */
static bool find_run(const char *id, char ret_path[RUN_PATH_MAX])
{
	int e = run_state_find(id, ret_path);

	if (e == -ENOENT)
		say("there is no place for records: set HOME or "
		    "XDG_STATE_HOME as it was for the run, or name the FILE");
	else if (e)
		say("'%s' is no run id: it is six hex digits, and the summary "
		    "of a run begins with it", id);
	else if (access(ret_path, F_OK) && errno == ENOENT)
		not_there(id, ret_path);
	else
		return true;
	return false;
}

int cmd_flows(int argc, char **argv)
{
	struct flows f = { 0 };
	char path[RUN_PATH_MAX];
	const char *file;
	int first, code;

	if (opts_parse_all(&flows_table, argc, argv, &f, &first))
		return EXIT_USAGE;
	if (f.help) {
		flows_usage();
		return 0;
	}
	file = first < argc ? argv[first] : NULL;
	if (!file == !f.run || argc - first > 1) {
		say_of(flows_table.command, "give one of --run ID and FILE");
		return EXIT_USAGE;
	}
	if (f.run && !find_run(f.run, path))
		return EXIT_USAGE;
	if (f.run)
		file = path;
	if (hash_init(&f.closed, 256)) {
		say("out of memory");
		return EXIT_USAGE;
	}
	code = show(&f, file);
	forget_closed(&f);
	return code;
}
