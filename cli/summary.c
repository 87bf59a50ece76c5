/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary.c - the end of a run in words and in JSON
 */
#include "cli/summary.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/ip_addr.h"
#include "base/json.h"
#include "base/reason.h"
#include "base/str.h"
#include "cli/odd_name.h"
#include "cli/text.h"

#define HOST_COLUMN	30
#define ROWS_SHOWN	20	/* of each kind; the rest is counted */

static bool is_address(const char *host)
{
	struct ip_addr a;

	return ip_addr_parse(str_from(host), &a) == 0;
}

static int text_reached(struct buf *out, const struct query_row *r)
{
	char down[TEXT_SIZE], up[TEXT_SIZE], host[TEXT_ENDPOINT];

	text_size(r->bytes_down, down);
	text_size(r->bytes_up, up);
	text_endpoint(r->host, r->port, host);
	return buf_printf(out, "%-*s %" PRIu64 " flow%s  %s down  %s up%s%s\n",
			  HOST_COLUMN, host, r->count, r->count == 1 ? " " :
			  "s", down, up, r->would_deny ? "  observed: " : "",
			  r->would_deny ? r->reason : "");
}

static int text_refused(struct buf *out, const struct query_row *r)
{
	char host[TEXT_ENDPOINT];
	bool tcp = strcmp(r->transport, "tcp") == 0 || !r->transport[0];

	text_endpoint(r->host, r->port, host);
	return buf_printf(out, "%-*s %s  x%" PRIu64 "%s%s\n", HOST_COLUMN, host,
			  r->reason, r->count, tcp ? "" : "  ",
			  tcp ? "" : r->transport);
}

enum outcome { REACHED, REFUSED, FAILED, OUTCOMES };

static const char *const outcome_word[OUTCOMES] = {
	"reached", "refused", "failed",
};

/* What policy refused, and what the network could not do, never look alike. */
static enum outcome outcome_of(const struct query_row *r)
{
	enum reason why = reason_by_word(str_from(r->reason));

	if (!r->refused)
		return REACHED;
	return why != REASONS && reason_info(why)->kind == REASON_NETWORK ?
	       FAILED : REFUSED;
}

static int text_rows(struct buf *out, const struct query_summary *q,
		     enum outcome outcome)
{
	size_t shown = 0, more = 0;
	int err = 0;

	for (size_t i = 0; i < q->n && !err; i++) {
		if (outcome_of(&q->row[i]) != outcome)
			continue;
		if (shown == ROWS_SHOWN) {
			more++;
			continue;
		}
		err = buf_printf(out, "  %-9s ", shown ? "" :
				 outcome_word[outcome]);
		if (!err)
			err = outcome == REACHED ?
			      text_reached(out, &q->row[i]) :
			      text_refused(out, &q->row[i]);
		shown++;
	}
	if (!err && more)
		err = buf_printf(out, "            and %zu more in the record\n",
				 more);
	return err;
}

/* Would --allow open it? A class of addresses, or an address, never. */
static bool can_be_allowed(const struct query_row *r)
{
	enum reason why = reason_by_word(str_from(r->reason));

	return !is_address(r->host) && strcmp(r->host, "-") != 0 &&
	       (why == REASON_HOST_NOT_ALLOWED ||
		why == REASON_PORT_NOT_ALLOWED);
}

static bool has_address_class(const struct query_summary *q)
{
	for (size_t i = 0; i < q->n; i++) {
		if (q->row[i].refused && reason_is_address_class(
				reason_by_word(str_from(q->row[i].reason))))
			return true;
	}
	return false;
}

/* The same host may be refused on many ports, and by DNS, too. */
static bool said_before(const struct query_summary *q, size_t i, bool web)
{
	for (size_t j = 0; j < i; j++) {
		const struct query_row *r = &q->row[j];
		bool r_web = r->port == 0 || r->port == 443 || r->port == 80;

		if (r->refused && can_be_allowed(r) &&
		    strcmp(r->host, q->row[i].host) == 0 &&
		    (web ? r_web : r->port == q->row[i].port))
			return true;
	}
	return false;
}

/* What to_allow lines begin with: the first is named. */
static const char *to_allow(size_t lines)
{
	return lines ? "            " : "  to allow  ";
}

/* One of the names that are left out, of each kind; or NULL. */
struct left_out {
	const char *odd, *vain;
};

static bool leave_out(const struct query_summary *q, const struct query_row *r,
		      struct left_out *ret)
{
	const char **kind = vain_name(r->host) ? &ret->vain :
			    odd_name(r->host) || odd_siblings(q, r) ?
			    &ret->odd : NULL;

	if (kind && !*kind)
		*kind = r->host;
	return kind;
}

/* The names to paste behind "penstock run". */
static int text_proposals(struct buf *out, const struct query_summary *q,
			  size_t *ret_shown, struct left_out *ret_left)
{
	size_t shown = 0;
	int err = 0;

	for (size_t i = 0; i < q->n && !err; i++) {
		const struct query_row *r = &q->row[i];
		bool web = r->port == 0 || r->port == 443 || r->port == 80;

		if (!r->refused || !can_be_allowed(r) || shown == ROWS_SHOWN ||
		    said_before(q, i, web))
			continue;
		if (leave_out(q, r, ret_left))
			continue;
		err = buf_printf(out, "%s--allow %s", shown ? " " : to_allow(0),
				 r->host);
		if (!err && !web)
			err = buf_printf(out, ":%u", r->port);
		shown++;
	}
	*ret_shown = shown;
	return err || !shown ? err : buf_add_char(out, '\n');
}

static int text_to_allow(struct buf *out, const struct summary *s)
{
	const struct query_summary *q = s->flows;
	struct left_out left = { NULL, NULL };
	size_t lines = 0;
	int err = text_proposals(out, q, &lines, &left);

	if (!err && lines && s->has_file)
		err = buf_printf(out, "%s(beside --policy only where its file "
				 "says 'extend = yes'; or write a rule "
				 "there)\n", to_allow(lines++));
	if (!err && lines && s->has_name)
		err = buf_printf(out, "%s(not beside --policy-name: a rule in "
				 "the service's policy does it)\n",
				 to_allow(lines++));
	if (!err && left.odd)
		err = buf_printf(out, "%s(not names like %s, which look "
				 "generated: data can leave in a name)\n",
				 to_allow(lines++), left.odd);
	if (!err && left.vain)
		err = buf_printf(out, "%s(not %s and its like: --allow opens "
				 "names of the Internet only)\n",
				 to_allow(lines++), left.vain);
	if (!err && has_address_class(q))
		err = buf_printf(out, "%s(address classes are never opened by "
				 "--allow: see 'addresses' in penstock.ini(5))\n",
				 to_allow(lines));
	return err;
}

static int text_head(const struct summary *s, struct buf *out)
{
	const struct launch_result *r = s->result;
	int err = buf_printf(out, "\npenstock: run %s  %s %d  %" PRId64 ".%"
			     PRId64 " s%s\n", s->run, r->signal ? "signal" :
			     "exit", r->signal ? r->signal : r->exit_code,
			     s->duration_ms / 1000, s->duration_ms % 1000 / 100,
			     s->observe ? "  (observed: nothing by name was "
			     "refused)" : "");

	if (!err && r->daemon_lost)
		err = buf_add_str(out, STR("  warning   penstockd ended before "
			"the run: from then on there was no network\n"));
	if (!err && s->flows->full)
		err = buf_printf(out, "  warning   as many connections as a "
				 "sandbox may have were open: new ones waited "
				 " x%" PRIu64 "\n", s->flows->full);
	if (!err && s->flows->over_budget)
		err = buf_printf(out, "  warning   more names were looked up "
				 "than a run may: %s x%" PRIu64 "\n",
				 s->observe ? "let through" : "refused",
				 s->flows->over_budget);
	if (!err && !r->audit_ok)
		err = buf_add_str(out, STR("  warning   not every record could "
					   "be written\n"));
	return err;
}

static int text_tail(const struct summary *s, struct buf *out)
{
	size_t n = s->home ? strlen(s->home) : 0;
	bool in_home = n > 1 && strncmp(s->records, s->home, n) == 0 &&
		       s->records[n] == '/';
	int err = 0;

	if (s->flows->lost)
		err = buf_printf(out, "  lost      %" PRIu64 " records\n",
				 s->flows->lost);
	if (!err && s->flows->more)
		err = buf_printf(out, "  and       %" PRIu64 " more flows\n",
				 s->flows->more);
	return err ? err : buf_printf(out, "  record    %s%s\n",
				      in_home ? "~" : "",
				      s->records + (in_home ? n : 0));
}

int summary_text(const struct summary *s, struct buf *out)
{
	int err = text_head(s, out);

	for (int i = 0; i < OUTCOMES && !err; i++)
		err = text_rows(out, s->flows, (enum outcome)i);
	if (!err)
		err = text_to_allow(out, s);
	return err ? err : text_tail(s, out);
}

static void json_row(struct json *j, const struct query_row *r)
{
	json_object_begin(j, NULL);
	json_cstr(j, "host", r->host);
	if (r->port)
		json_uint(j, "port", r->port);
	json_cstr(j, "transport", r->transport[0] ? r->transport : "tcp");
	json_uint(j, "count", r->count);
	if (r->refused || r->would_deny)
		json_cstr(j, "reason", r->reason);
	if (!r->refused) {
		json_uint(j, "bytes_up", r->bytes_up);
		json_uint(j, "bytes_down", r->bytes_down);
		json_bool(j, "would_deny", r->would_deny);
	}
	json_object_end(j);
}

static void json_rows(struct json *j, const struct query_summary *q,
		      enum outcome outcome)
{
	json_array_begin(j, outcome_word[outcome]);
	for (size_t i = 0; i < q->n; i++) {
		if (outcome_of(&q->row[i]) == outcome)
			json_row(j, &q->row[i]);
	}
	json_array_end(j);
}

int summary_json(const struct summary *s, struct buf *out)
{
	const struct launch_result *r = s->result;
	struct json j;
	int err;

	json_begin(&j, out);
	json_object_begin(&j, NULL);
	json_cstr(&j, "schema", "penstock-run/1");
	json_cstr(&j, "run", s->run);
	json_cstr(&j, "policy", r->policy);
	json_cstr(&j, "mode", s->observe ? "observe" : "enforce");
	if (r->signal)
		json_int(&j, "signal", r->signal);
	json_int(&j, "exit", r->signal ? 128 + r->signal : r->exit_code);
	json_int(&j, "duration_ms", s->duration_ms);
	for (int i = 0; i < OUTCOMES; i++)
		json_rows(&j, s->flows, (enum outcome)i);
	json_cstr(&j, "records", s->records);
	json_uint(&j, "records_read", s->flows->records);
	json_uint(&j, "records_lost", s->flows->lost);
	json_uint(&j, "flows_more", s->flows->more);
	json_uint(&j, "connections_full", s->flows->full);
	json_uint(&j, "over_budget", s->flows->over_budget);
	json_bool(&j, "audit_ok", r->audit_ok);
	json_bool(&j, "daemon_lost", r->daemon_lost);
	json_bool(&j, "transparent", r->tproxy);
	json_object_end(&j);
	err = json_end(&j);
	return err ? err : buf_add_char(out, '\n');
}
