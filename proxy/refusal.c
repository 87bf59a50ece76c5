/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refusal.c - one refusal in the words of the protocol that asked
 *
 * A person reads the status line, a program Proxy-Status (RFC 9209), an agent
 * the JSON body, which also says what to ask for.  The words come from the one
 * vocabulary of base/reason.h.
 */
#include "proxy/refusal.h"

#include <errno.h>

#include "base/json.h"

#define REFUSAL_MAX	2048	/* bytes of a whole answer */
#define BODY_MAX	1536
#define SENTENCE_MAX	512
#define HOST_TEXT_MAX	253	/* of the host that is named; a name fits */
#define RETRY_AFTER_S	5

/* --- the sentence ----------------------------------------------------------- */

static struct str host_cut(struct str host)
{
	return str_make(host.p, MIN(host.n, (size_t)HOST_TEXT_MAX));
}

/* "host:port", "[v6]:port", "host", or nothing. */
static int add_where(struct buf *b, const struct refusal *r)
{
	struct str host = host_cut(r->host);
	bool v6 = str_chr(host, ':') < host.n;

	if (str_empty(host))
		return 0;
	if (r->port)
		return buf_printf(b, v6 ? "[%.*s]:%u" : "%.*s:%u",
				  STR_ARG(host), r->port);
	return buf_printf(b, "%.*s", STR_ARG(host));
}

static int add_policy(struct buf *b, const struct refusal *r)
{
	if (!r->policy)
		return 0;
	return buf_printf(b, " '%.64s'", r->policy);
}

static int add_message(struct buf *b, const struct refusal *r)
{
	const struct reason_info *info = reason_info(r->reason);
	int err = add_where(b, r);

	if (err < 0)
		return err;
	if (r->reason == REASON_HOST_NOT_ALLOWED && b->n > 0) {
		err = buf_add_str(b, STR(" is not in this sandbox's policy"));
		if (err == 0)
			err = add_policy(b, r);
		return err < 0 ? err : buf_add_char(b, '.');
	}
	if (b->n > 0)
		err = buf_add_str(b, STR(": "));
	if (err == 0)
		err = buf_printf(b, "%s", info->sentence);
	if (err == 0 && info->kind == REASON_POLICY && r->policy) {
		err = buf_add_str(b, STR(" (policy"));
		if (err == 0)
			err = add_policy(b, r);
		if (err == 0)
			err = buf_add_char(b, ')');
	}
	return err < 0 ? err : buf_add_char(b, '.');
}

/* Is this something that an operator could open by a rule for host and port? */
static bool may_be_asked_for(const struct refusal *r)
{
	return !str_empty(r->host) && r->port != 0 &&
	       (r->reason == REASON_HOST_NOT_ALLOWED ||
		r->reason == REASON_PORT_NOT_ALLOWED ||
		r->reason == REASON_PROTOCOL_NOT_ALLOWED ||
		r->reason == REASON_ADDRESS_NOT_ALLOWED);
}

static int add_request(struct buf *b, const struct refusal *r)
{
	if (!may_be_asked_for(r))
		return 0;
	return buf_printf(b, "Ask the operator for: %s %.*s port %u, "
			  "with a reason.",
			  r->reason == REASON_ADDRESS_NOT_ALLOWED ?
				  "address" : "host",
			  STR_ARG(host_cut(r->host)), r->port);
}

/* --- the answer ------------------------------------------------------------- */

static int add_json(struct buf *out, const struct refusal *r,
		    struct str message, struct str request)
{
	struct json j;
	int err;

	json_begin(&j, out);
	json_object_begin(&j, NULL);
	json_cstr(&j, "error", reason_word(r->reason));
	json_str(&j, "message", message);
	json_str_opt(&j, "host", host_cut(r->host));
	if (r->port)
		json_uint(&j, "port", r->port);
	json_str_opt(&j, "rule", str_from(r->rule));
	json_str_opt(&j, "run", str_from(r->run));
	json_str_opt(&j, "request", request);
	json_object_end(&j);
	err = json_end(&j);
	return err < 0 ? err : buf_add_char(out, '\n');
}

static void buf_donep(struct buf *b)
{
	buf_done(b);
}

static int make_body(const struct refusal *r, struct buf *out)
{
	CLEANUP(buf_donep) struct buf message = BUF_INIT(SENTENCE_MAX);
	CLEANUP(buf_donep) struct buf request = BUF_INIT(SENTENCE_MAX);
	int err = add_message(&message, r);

	if (err == 0)
		err = add_request(&request, r);
	if (err == 0)
		err = add_json(out, r, buf_str(&message), buf_str(&request));
	return err;
}

static int add_head(struct buf *out, const struct refusal *r, size_t length)
{
	const struct reason_info *info = reason_info(r->reason);
	int err = buf_printf(out, "HTTP/1.1 %u %s\r\n",
			     r->status ? r->status : info->http_status,
			     info->word);

	if (err == 0 && r->date.n)
		err = buf_printf(out, "Date: %.*s\r\n", STR_ARG(r->date));
	if (err == 0)
		err = buf_add_str(out, STR("Proxy-Status: penstock"));
	if (err == 0 && info->proxy_error)
		err = buf_printf(out, "; error=%s", info->proxy_error);
	if (err == 0)
		err = buf_printf(out, "; details=\"%s\"\r\n", info->word);
	if (err == 0)
		err = buf_printf(out, "Content-Type: application/json\r\n"
				 "Content-Length: %zu\r\n"
				 "Cache-Control: no-store\r\n", length);
	if (err == 0 && info->kind == REASON_LIMIT)
		err = buf_printf(out, "Retry-After: %d\r\n", RETRY_AFTER_S);
	if (err == 0 && r->close)
		err = buf_add_str(out, STR("Connection: close\r\n"));
	return err < 0 ? err : buf_add_str(out, STR("\r\n"));
}

int refusal_http(const struct refusal *r, struct buf *out)
{
	CLEANUP(buf_donep) struct buf body = BUF_INIT(BODY_MAX);
	struct refusal bare = *r;
	size_t before = out->n;
	int err;

	if (reason_info(r->reason)->http_status == 0)
		return -EINVAL;
	err = make_body(r, &body);
	if (err == -ENOSPC) {	/* escapes made the host too long to repeat */
		bare.host = STR_NONE;
		buf_reset(&body);
		err = make_body(&bare, &body);
	}
	if (err == 0)
		err = add_head(out, r, body.n);
	if (err == 0 && !r->head_only)
		err = buf_add_str(out, buf_str(&body));
	if (err < 0)
		out->n = before;
	else
		REQUIRE(out->n - before <= REFUSAL_MAX);
	return err;
}

/* --- TLS -------------------------------------------------------------------- */

/* Alert records of RFC 8446 6: type, version, length, level fatal, number. */
struct str refusal_tls_alert(enum reason reason)
{
	static const char access_denied[] = "\x15\x03\x01\x00\x02\x02\x31";
	static const char decode_error[] = "\x15\x03\x01\x00\x02\x02\x32";
	static const char internal_error[] = "\x15\x03\x01\x00\x02\x02\x50";
	const char *record = internal_error;

	switch (reason_info(reason)->kind) {
	case REASON_POLICY:
		record = access_denied;
		break;
	case REASON_REQUEST:
		record = decode_error;
		break;
	case REASON_OK:
	case REASON_LIMIT:
	case REASON_NETWORK:
	case REASON_INTERNAL:
		break;
	}
	return str_make(record, sizeof(internal_error) - 1);
}
