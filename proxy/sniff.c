/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sniff.c - what the first bytes of a connection are
 *
 * Theory of operation
 * ===================
 *
 * A ClientHello is a handshake message (RFC 8446 4) that may be split over any
 * number of records (5.1), each split over any number of segments.  The caller
 * gives everything it has read so far, each time from the first byte: the
 * records' payloads are laid end to end in @scratch until the length that the
 * handshake's head announces is there, and then the message is walked once
 * with a cursor that cannot leave it.
 *
 * The server name is what the far end will serve by, so it is taken only when
 * it can be read in one way: one extension, one name of type host_name, which
 * passes host_name_parse().  All lengths must fit exactly; a hello with bytes
 * left over anywhere is no hello.
 */
#include "proxy/sniff.h"

#include "proxy/http1.h"

#define RECORD_HEAD		5
#define RECORD_HANDSHAKE	0x16
#define RECORD_PAYLOAD_MAX	16384	/* RFC 8446 5.1 */
#define HANDSHAKE_HEAD		4
#define HANDSHAKE_CLIENT_HELLO	1
#define EXTENSION_SERVER_NAME	0
#define EXTENSION_ECH		0xfe0d
#define NAME_TYPE_HOST		0
/* --- a cursor that cannot leave its bytes ----------------------------------- */

struct cursor {
	const unsigned char *p;
	size_t n;
};

static bool take(struct cursor *c, size_t n, struct cursor *ret)
{
	if (n > c->n)
		return false;
	*ret = (struct cursor){ c->p, n };
	c->p += n;
	c->n -= n;
	return true;
}

static bool take_number(struct cursor *c, unsigned bytes, size_t *ret)
{
	struct cursor field;
	size_t v = 0;

	if (!take(c, bytes, &field))
		return false;
	for (unsigned i = 0; i < bytes; i++)
		v = v << 8 | field.p[i];
	*ret = v;
	return true;
}

/* A vector with a length of @bytes bytes before it. */
static bool take_vector(struct cursor *c, unsigned bytes, struct cursor *ret)
{
	size_t n;

	return take_number(c, bytes, &n) && take(c, n, ret);
}

/* --- records into one handshake message ------------------------------------- */

static bool is_record_head(const unsigned char *p, size_t n)
{
	return (n < 1 || p[0] == RECORD_HANDSHAKE) && (n < 2 || p[1] == 3) &&
	       (n < 3 || p[2] <= 4);
}

static size_t handshake_size(const unsigned char *p)
{
	return HANDSHAKE_HEAD + ((size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3]);
}

static enum sniff_result no_tls(enum reason *ret_why)
{
	*ret_why = REASON_PROTOCOL_MISMATCH;
	return SNIFF_BAD;
}

/* Lay the payloads together; @ret_n: bytes of the whole message. */
static enum sniff_result gather(struct cursor in, char *scratch,
				size_t *ret_n, enum reason *ret_why)
{
	const unsigned char *out = (const unsigned char *)scratch;
	size_t have = 0;

	for (unsigned i = 0; i < SNIFF_RECORDS_MAX; i++) {
		struct cursor head, payload;
		size_t n;

		if (!is_record_head(in.p, in.n))
			return no_tls(ret_why);
		if (!take(&in, RECORD_HEAD, &head))
			return SNIFF_MORE;
		n = (size_t)head.p[3] << 8 | head.p[4];
		if (n == 0 || n > RECORD_PAYLOAD_MAX)
			return no_tls(ret_why);
		if (!take(&in, MIN(n, in.n), &payload) ||
		    payload.n > SNIFF_HELLO_MAX - have)
			break;
		memcpy(scratch + have, payload.p, payload.n);
		have += payload.n;
		if (have > 0 && out[0] != HANDSHAKE_CLIENT_HELLO)
			return no_tls(ret_why);
		if (have >= HANDSHAKE_HEAD) {
			*ret_n = handshake_size(out);
			if (*ret_n > SNIFF_HELLO_MAX)
				break;
			if (have >= *ret_n)
				return SNIFF_DONE;
		}
		if (payload.n < n)
			return SNIFF_MORE;
	}
	*ret_why = REASON_HELLO_INCOMPLETE;
	return SNIFF_BAD;
}

/* --- the message ------------------------------------------------------------ */

/* RFC 6066 3: a list of names, at most one of each type. */
static bool server_name(struct cursor ext, struct sniff_hello *ret)
{
	struct cursor list, name;
	size_t type;

	if (ret->has_sni || !take_vector(&ext, 2, &list) || ext.n != 0)
		return false;
	if (!take_number(&list, 1, &type) || type != NAME_TYPE_HOST ||
	    !take_vector(&list, 2, &name) || list.n != 0)
		return false;
	ret->has_sni = true;
	ret->sni_raw = str_make(name.p, name.n);
	return host_name_parse(ret->sni_raw, &ret->sni) == 0;
}

static enum sniff_result extensions(struct cursor all, struct sniff_hello *ret,
				    enum reason *ret_why)
{
	while (all.n > 0) {
		struct cursor ext;
		size_t type;

		if (!take_number(&all, 2, &type) || !take_vector(&all, 2, &ext))
			return no_tls(ret_why);
		if (type == EXTENSION_ECH)
			ret->has_ech = true;
		if (type == EXTENSION_SERVER_NAME && !server_name(ext, ret)) {
			*ret_why = REASON_SNI_INVALID;
			return SNIFF_BAD;
		}
	}
	return SNIFF_DONE;
}

/* RFC 8446 4.1.2, and the same in RFC 5246 7.4.1.2. */
static enum sniff_result hello(struct cursor c, struct sniff_hello *ret,
			       enum reason *ret_why)
{
	struct cursor skipped, suites, methods, all;
	size_t version;

	if (!take(&c, HANDSHAKE_HEAD, &skipped) ||
	    !take_number(&c, 2, &version) || version >> 8 != 3 ||
	    !take(&c, 32, &skipped) ||			/* random */
	    !take_vector(&c, 1, &skipped) || skipped.n > 32 ||	/* session */
	    !take_vector(&c, 2, &suites) || suites.n == 0 || suites.n % 2 ||
	    !take_vector(&c, 1, &methods) || methods.n == 0)
		return no_tls(ret_why);
	if (c.n == 0)
		return SNIFF_DONE;
	if (!take_vector(&c, 2, &all) || c.n != 0)
		return no_tls(ret_why);
	return extensions(all, ret, ret_why);
}

enum sniff_result sniff_hello(struct str in, char *scratch,
			      struct sniff_hello *ret, enum reason *ret_why)
{
	struct cursor bytes = { (const unsigned char *)in.p, in.n };
	enum sniff_result result;
	size_t n = 0;

	memset(ret, 0, sizeof(*ret));
	result = gather(bytes, scratch, &n, ret_why);
	if (result != SNIFF_DONE)
		return result;
	bytes = (struct cursor){ (const unsigned char *)scratch, n };
	return hello(bytes, ret, ret_why);
}

bool sniff_looks_tls(struct str in)
{
	return in.n >= 2 && in.p[0] == RECORD_HANDSHAKE && in.p[1] == 3;
}

/* --- HTTP ------------------------------------------------------------------- */

/* The preface of RFC 9113 3.4, as far as it is there. */
static enum sniff_result not_preface(struct str in)
{
	static const struct str preface = { "PRI * HTTP/2", 12 };

	if (!str_starts(preface, str_make(in.p, MIN(in.n, preface.n))))
		return SNIFF_DONE;
	return in.n < preface.n ? SNIFF_MORE : SNIFF_BAD;
}

enum sniff_result sniff_http(struct str in)
{
	size_t n;

	if (str_starts(in, STR("\r\n")))
		in = str_make(in.p + 2, in.n - 2);
	if (in.n == 0 || (in.n == 1 && in.p[0] == '\r'))
		return SNIFF_MORE;
	n = str_chr(in, ' ');
	if (n > HTTP1_METHOD_MAX || !http1_is_token(str_make(in.p, n)))
		return SNIFF_BAD;
	if (n == in.n)
		return SNIFF_MORE;
	return not_preface(in);
}
