/* SPDX-License-Identifier: Apache-2.0 */
/*
 * websocket.c - the handshake of RFC 6455, as far as a proxy must see it
 */
#include "proxy/websocket.h"

#include <sha1.h>
#include <stdint.h>

#define KEY_CHARS	24	/* base64 of 16 bytes */

static const char digits[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* The field's value where there is one such field. */
static bool only_field(const struct http1_head *h, struct str name,
		       struct str *ret)
{
	unsigned found = 0;

	for (size_t i = 0; i < h->nfields; i++) {
		if (!str_ieq(h->field[i].name, name))
			continue;
		*ret = h->field[i].value;
		found++;
	}
	return found == 1;
}

static bool names_websocket(const struct http1_head *h)
{
	struct str protocol = STR_NONE;

	return h->upgrade && only_field(h, STR("upgrade"), &protocol) &&
	       str_ieq(protocol, STR("websocket"));
}

static bool is_key(struct str s)
{
	if (s.n != KEY_CHARS || s.p[KEY_CHARS - 2] != '=' ||
	    s.p[KEY_CHARS - 1] != '=')
		return false;
	for (size_t i = 0; i < KEY_CHARS - 2; i++) {
		if (s.p[i] == '\0' || !strchr(digits, s.p[i]))
			return false;
	}
	return true;
}

/* RFC 4648 4, of the 20 bytes of a SHA-1. */
static void encode(const uint8_t sum[SHA1_DIGEST_LENGTH],
		   char out[WEBSOCKET_ACCEPT_SIZE])
{
	size_t n = 0;

	for (size_t i = 0; i < SHA1_DIGEST_LENGTH; i += 3) {
		bool three = i + 2 < SHA1_DIGEST_LENGTH;
		uint32_t v = (uint32_t)sum[i] << 16 | (uint32_t)sum[i + 1] << 8 |
			     (three ? sum[i + 2] : 0u);

		out[n++] = digits[v >> 18 & 63];
		out[n++] = digits[v >> 12 & 63];
		out[n++] = digits[v >> 6 & 63];
		out[n++] = three ? digits[v & 63] : '=';
	}
	out[n] = '\0';
	REQUIRE(n == WEBSOCKET_ACCEPT_SIZE - 1);
}

/* RFC 6455 4.2.2, 5.4: the key as it stands, and a constant behind it. */
static void accept_of(struct str key, char out[WEBSOCKET_ACCEPT_SIZE])
{
	static const char constant[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
	uint8_t sum[SHA1_DIGEST_LENGTH];
	SHA1_CTX ctx;

	SHA1Init(&ctx);
	SHA1Update(&ctx, (const uint8_t *)key.p, key.n);
	SHA1Update(&ctx, (const uint8_t *)constant, sizeof(constant) - 1);
	SHA1Final(sum, &ctx);
	encode(sum, out);
}

bool websocket_asked(const struct http1_head *h,
		     char ret_accept[WEBSOCKET_ACCEPT_SIZE])
{
	struct str key = STR_NONE, version = STR_NONE;

	if (!names_websocket(h) || !str_eq(h->method, STR("GET")) ||
	    h->framing != HTTP1_NO_BODY ||
	    !only_field(h, STR("sec-websocket-version"), &version) ||
	    !str_eq(version, STR("13")) ||
	    !only_field(h, STR("sec-websocket-key"), &key) || !is_key(key))
		return false;
	accept_of(key, ret_accept);
	return true;
}

bool websocket_agreed(const struct http1_head *h,
		      const char accept[WEBSOCKET_ACCEPT_SIZE])
{
	struct str said = STR_NONE;

	return names_websocket(h) &&
	       only_field(h, STR("sec-websocket-accept"), &said) &&
	       str_eq(said, str_from(accept));
}
