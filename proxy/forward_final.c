/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forward_final.c - requests that go no further, and have their answer from us
 *
 * OPTIONS and TRACE with Max-Forwards: 0 ask whoever has them (RFC 9110 7.6.2),
 * and OPTIONS * at the door of a proxy asks about the proxy (9.3.7).  Where they
 * name an origin they are judged as if they went there, so that nothing can be
 * learnt of what the rules refuse; nobody is asked for the answer.
 *
 * A TRACE is shown what came, but for fields in which secrets travel (9.3.8):
 * whoever can make a program ask is not always who may read what it says.
 */
#include "base/clock.h"
#include "proxy/forward_int.h"

/* Every method goes on but CONNECT, which is the explicit door's alone. */
#define METHODS	"GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS, TRACE"

static bool contains(struct str name, const char *word)
{
	size_t n = strlen(word);

	for (size_t at = 0; at + n <= name.n; at++) {
		if (str_ieq(str_make(name.p + at, n), str_make(word, n)))
			return true;
	}
	return false;
}

/* By a part of its name: few of those that services invent are standard. */
static bool is_secret(struct str name)
{
	static const char *const words[] = {
		"auth", "cookie", "credential", "csrf", "jwt", "key", "passw",
		"secret", "session", "signature", "token", "xsrf",
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (contains(name, words[i]))
			return true;
	}
	return false;
}

static int add_fields(const struct http1_head *h, struct buf *out)
{
	int err = 0;

	for (size_t i = 0; i < h->nfields && err == 0; i++) {
		const struct http1_field *f = &h->field[i];

		if (!is_secret(f->name))
			err = buf_printf(out, "%.*s: %.*s\r\n",
					 STR_ARG(f->name), STR_ARG(f->value));
	}
	return err < 0 ? err : buf_add_str(out, STR("\r\n"));
}

/* The request as a message of the type message/http. */
static int add_request(const struct http1_head *h, struct buf *out)
{
	int err = buf_printf(out, "%.*s %.*s HTTP/1.%u\r\n",
			     STR_ARG(h->method), STR_ARG(h->target), h->minor);

	return err < 0 ? err : add_fields(h, out);
}

static int add_answer(struct forward *f, struct str content, struct buf *out)
{
	bool trace = content.n > 0;
	int err = buf_printf(out, "HTTP/1.1 200 OK\r\nDate: %s\r\n",
			     clock_imf_now());

	if (err == 0 && trace)
		err = buf_add_str(out, STR("Content-Type: message/http\r\n"));
	else if (err == 0)
		err = buf_printf(out, "Allow: %s%s\r\n", METHODS,
				 f->mode == FORWARD_EXPLICIT ? ", CONNECT" :
							       "");
	if (err == 0)
		err = buf_printf(out, "Content-Length: %zu\r\n%s\r\n",
				 content.n, f->x.goes_on ? "" :
				 "Connection: close\r\n");
	return err < 0 ? err : buf_add_str(out, content);
}

static void buf_donep(struct buf *b)
{
	buf_done(b);
}

enum reason forward_final_answer(struct forward *f)
{
	CLEANUP(buf_donep) struct buf content = BUF_INIT(HTTP1_HEAD_MAX);
	size_t before = f->app.out.n;
	int err = 0;

	f->x.goes_on = forward_may_go_on(&f->x);
	if (str_eq(f->head.method, STR("TRACE")))
		err = add_request(&f->head, &content);
	if (err == 0)
		err = add_answer(f, buf_str(&content), &f->app.out);
	if (err < 0) {
		f->app.out.n = before;
		return REASON_MEMORY_EXCEEDED;
	}
	f->x.status = 200;
	f->x.bytes_down += f->app.out.n - before;
	return REASON_ALLOWED;
}

void forward_final_over(struct forward *f)
{
	forward_record_answered(f);
	forward_drain(f, REASON_CLIENT_CLOSED, !f->x.goes_on);
}
