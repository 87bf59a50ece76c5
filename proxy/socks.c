/* SPDX-License-Identifier: Apache-2.0 */
/*
 * socks.c - the messages of SOCKS 4, 4a and 5, as bytes
 */
#include "proxy/socks.h"

#define COMMAND_CONNECT	1
#define LOGIN_VERSION	1	/* RFC 1929 2; not the 5 of the rest */

/* RFC 1928 5 */
enum { TYPE_V4 = 1, TYPE_NAME = 3, TYPE_V6 = 4 };

/* Byte @i; the caller knows that it is there. */
static uint8_t byte(struct str in, size_t i)
{
	return (uint8_t)in.p[i];
}

static uint16_t number16(struct str in, size_t i)
{
	return (uint16_t)(byte(in, i) << 8 | byte(in, i + 1));
}

/* --- version 5, before the request ------------------------------------------ */

enum socks_result socks_greeting(struct str in, enum socks_method *ret,
				 size_t *ret_bytes)
{
	struct str methods;

	if (in.n > 0 && byte(in, 0) != SOCKS_V5)
		return SOCKS_BAD;
	if (in.n < 2 || in.n < (size_t)2 + byte(in, 1))
		return SOCKS_MORE;
	methods = str_make(in.p + 2, byte(in, 1));
	*ret_bytes = 2 + methods.n;
	if (str_chr(methods, SOCKS_NO_LOGIN) < methods.n)
		*ret = SOCKS_NO_LOGIN;
	else if (str_chr(methods, SOCKS_PASSWORD) < methods.n)
		*ret = SOCKS_PASSWORD;
	else
		*ret = SOCKS_NO_METHOD;
	return SOCKS_DONE;
}

enum socks_result socks_login(struct str in, size_t *ret_bytes)
{
	size_t user, password;

	if (in.n > 0 && byte(in, 0) != LOGIN_VERSION)
		return SOCKS_BAD;
	if (in.n < 2)
		return SOCKS_MORE;
	user = byte(in, 1);
	if (in.n < 2 + user + 1)
		return SOCKS_MORE;
	password = byte(in, 2 + user);
	if (in.n < 2 + user + 1 + password)
		return SOCKS_MORE;
	*ret_bytes = 2 + user + 1 + password;
	return SOCKS_DONE;
}

/* --- the request ------------------------------------------------------------- */

static enum socks_result bad(struct socks_request *r, enum reason why,
			     enum socks_reply reply, enum reason *ret_why)
{
	r->reply = reply;
	*ret_why = why;
	return SOCKS_BAD;
}

static void address(const char *p, size_t n, struct socks_request *ret)
{
	ret->kind = HOST_ADDRESS;
	ret->addr.family = n == 4 ? IP_V4 : IP_V6;
	memcpy(ret->addr.b, p, n);
}

static void name(struct str text, struct socks_request *ret)
{
	ret->kind = host_parse(text, &ret->name, &ret->addr);
	if (ret->kind == HOST_BAD && str_chr(text, ':') < text.n &&
	    ip_addr_parse(text, &ret->addr) == 0)
		ret->kind = HOST_ADDRESS;
}

/* The bytes are all there: can it be done? */
static enum socks_result judge(struct socks_request *r, uint8_t command,
			       struct str text, enum reason *ret_why)
{
	if (command != COMMAND_CONNECT)
		return bad(r, REASON_METHOD_NOT_SUPPORTED, SOCKS_NO_COMMAND,
			   ret_why);
	/* Too long for a name, with a dot at its end, or nothing at all. */
	if (r->kind == HOST_BAD &&
	    (text.n == 0 || text.n > HOST_NAME_MAX_LEN + 1))
		return bad(r, REASON_AUTHORITY_INVALID, SOCKS_FAILED, ret_why);
	/* An address in a spelling of old, say: no rule could allow it. */
	if (r->kind == HOST_BAD)
		return bad(r, REASON_AUTHORITY_INVALID, SOCKS_NOT_BY_RULES,
			   ret_why);
	if (r->port == 0)
		return bad(r, REASON_AUTHORITY_INVALID, SOCKS_FAILED, ret_why);
	return SOCKS_DONE;
}

/* RFC 1928 4: VER CMD RSV ATYP ADDR PORT */
static enum socks_result request5(struct str in, struct socks_request *ret,
				  enum reason *ret_why)
{
	struct str text = STR_NONE;
	size_t at = 4, n;

	if (in.n < 4)
		return SOCKS_MORE;
	if (byte(in, 2) != 0)
		return bad(ret, REASON_REQUEST_MALFORMED, SOCKS_FAILED,
			   ret_why);
	switch (byte(in, 3)) {
	case TYPE_V4:
		n = 4;
		break;
	case TYPE_V6:
		n = 16;
		break;
	case TYPE_NAME:
		if (in.n < 5)
			return SOCKS_MORE;
		n = byte(in, 4);
		at = 5;
		break;
	default:
		return bad(ret, REASON_REQUEST_MALFORMED,
			   SOCKS_NO_ADDRESS_TYPE, ret_why);
	}
	if (in.n < at + n + 2)
		return SOCKS_MORE;
	ret->bytes = at + n + 2;
	ret->port = number16(in, at + n);
	if (at == 4) {
		address(in.p + at, n, ret);
	} else {
		text = str_make(in.p + at, n);
		name(text, ret);
	}
	return judge(ret, byte(in, 1), text, ret_why);
}

/* The text from @at to its NUL, of at most @max bytes. */
static enum socks_result text_at(struct str in, size_t at, size_t max,
				 struct str *ret)
{
	struct str rest = str_make(in.p + at, MIN(in.n - at, max + 1));
	size_t n = str_chr(rest, '\0');

	if (n < rest.n) {
		*ret = str_make(rest.p, n);
		return SOCKS_DONE;
	}
	return rest.n > max ? SOCKS_BAD : SOCKS_MORE;
}

/* VN CD DSTPORT DSTIP USERID NUL; with 0.0.0.x for DSTIP: NAME NUL (4a) */
static enum socks_result request4(struct str in, struct socks_request *ret,
				  enum reason *ret_why)
{
	static const char no_ip[3];
	struct str user, text = STR_NONE;
	enum socks_result result;

	if (in.n < 8)
		return SOCKS_MORE;
	result = text_at(in, 8, SOCKS_USER_MAX, &user);
	if (result == SOCKS_DONE)
		ret->bytes = 8 + user.n + 1;
	if (result == SOCKS_DONE && memcmp(in.p + 4, no_ip, 3) == 0 &&
	    byte(in, 7) != 0) {
		result = text_at(in, ret->bytes, 255, &text);
		ret->bytes += text.n + 1;
		if (result == SOCKS_DONE)
			name(text, ret);
	} else if (result == SOCKS_DONE) {
		address(in.p + 4, 4, ret);
	}
	if (result == SOCKS_MORE)
		return SOCKS_MORE;
	ret->port = number16(in, 2);
	if (result == SOCKS_BAD)
		return bad(ret, REASON_REQUEST_MALFORMED, SOCKS_FAILED,
			   ret_why);
	return judge(ret, byte(in, 1), text, ret_why);
}

enum socks_result socks_request(uint8_t version, struct str in,
				struct socks_request *ret,
				enum reason *ret_why)
{
	REQUIRE(version == SOCKS_V4 || version == SOCKS_V5);
	*ret = (struct socks_request){ .kind = HOST_BAD };
	if (in.n == 0)
		return SOCKS_MORE;
	if (byte(in, 0) != version)
		return bad(ret, REASON_REQUEST_MALFORMED, SOCKS_FAILED,
			   ret_why);
	return version == SOCKS_V5 ? request5(in, ret, ret_why) :
				     request4(in, ret, ret_why);
}

/* --- the answer -------------------------------------------------------------- */

struct str socks_answer(uint8_t version, unsigned reply,
			char out[SOCKS_ANSWER_MAX])
{
	memset(out, 0, SOCKS_ANSWER_MAX);
	if (version == SOCKS_V4) {
		out[1] = reply == SOCKS_GRANTED ? 0x5a : 0x5b;
		return str_make(out, 8);
	}
	out[0] = SOCKS_V5;
	out[1] = (char)reply;
	out[3] = TYPE_V4;
	return str_make(out, 10);
}
