/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proxy_url.c - a proxy as the variables of the environment name it
 */
#include "cli/proxy_url.h"

#include <errno.h>
#include <stdio.h>

static const struct scheme {
	const char *name;
	enum proxy_kind kind;
	uint16_t port;
} schemes[] = {
	{ "http", PROXY_HTTP, 80 },
	{ "socks5", PROXY_SOCKS, 1080 },
	{ "socks5h", PROXY_SOCKS, 1080 },
};

static int wrong(const char *why, const char **ret_why)
{
	*ret_why = why;
	return -EINVAL;
}

/* The scheme of @text, which is taken off it; NULL: not one of ours. */
static const struct scheme *take_scheme(struct str *text)
{
	size_t at = str_find(*text, STR("://"));
	struct str name = str_make(text->p, at);

	if (at == text->n)
		return &schemes[0];
	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
		if (!str_ieq(name, str_from(schemes[i].name)))
			continue;
		*text = str_make(text->p + at + 3, text->n - at - 3);
		return &schemes[i];
	}
	return NULL;
}

static int hex(char c)
{
	if (ascii_is_digit(c))
		return c - '0';
	c = ascii_lower(c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* %XX undone (RFC 3986 2.1).  False: too long, or no %XX. */
static bool decode(struct str s, char *out, uint8_t *ret_n)
{
	size_t n = 0;

	for (size_t i = 0; i < s.n; i++) {
		int high, low;
		char c = s.p[i];

		if (n == PROXY_LOGIN_MAX)
			return false;
		if (c == '%') {
			if (s.n - i < 3)
				return false;
			high = hex(s.p[i + 1]);
			low = hex(s.p[i + 2]);
			if (high < 0 || low < 0)
				return false;
			c = (char)(high << 4 | low);
			i += 2;
		}
		out[n++] = c;
	}
	*ret_n = (uint8_t)n;
	return true;
}

/* What stands before the last '@', which is taken off @text. */
static bool take_login(struct str *text, struct proxy_url *ret)
{
	size_t at = text->n;
	struct str login, user;

	while (at > 0 && text->p[at - 1] != '@')
		at--;
	if (at == 0)
		return true;
	login = str_make(text->p, at - 1);
	*text = str_make(text->p + at, text->n - at);
	ret->has_login = true;
	if (!str_cut(&login, ':', &user))
		return true;
	return decode(user, ret->user, &ret->user_n) &&
	       decode(login, ret->password, &ret->password_n);
}

int proxy_url_parse(struct str text, struct proxy_url *ret,
		    const char **ret_why)
{
	const struct scheme *scheme = take_scheme(&text);
	enum host_kind kind;

	*ret = (struct proxy_url){ .port = 0 };
	if (!scheme)
		return wrong("the proxy is spoken to by http://, socks5:// or "
			     "socks5h://", ret_why);
	ret->kind = scheme->kind;
	if (str_ends(text, STR("/")))
		text.n--;
	if (!take_login(&text, ret))
		return wrong("user and password have up to 255 bytes each; "
			     "write '%' as %25", ret_why);
	kind = authority_parse(text, scheme->port, &ret->name, &ret->addr,
			       &ret->port);
	if (kind == HOST_BAD)
		return wrong("HOST or HOST:PORT is wanted, as in "
			     "http://127.0.0.1:3128", ret_why);
	if (kind == HOST_ADDRESS)
		ret->name.n = 0;
	return 0;
}

void proxy_url_text(const struct proxy_url *p, char out[PROXY_URL_TEXT_SIZE])
{
	const struct ip_endpoint at = { p->addr, p->port };
	int n;

	if (p->name.n == 0) {
		ip_endpoint_text(&at, out);
		return;
	}
	n = snprintf(out, PROXY_URL_TEXT_SIZE, "%s:%u", p->name.p, p->port);
	REQUIRE(n > 0 && n < PROXY_URL_TEXT_SIZE);
}
