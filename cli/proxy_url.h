/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proxy_url.h - a proxy as the variables of the environment name it; pure
 */
#ifndef CLI_PROXY_URL_H
#define CLI_PROXY_URL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/str.h"
#include "rules/host_name.h"

#define PROXY_LOGIN_MAX	255	/* bytes of a user, of a password (RFC 1929) */

enum proxy_kind {
	PROXY_HTTP,		/* http://, or no scheme */
	PROXY_SOCKS,		/* socks5://, socks5h:// */
};

struct proxy_url {
	enum proxy_kind kind;
	struct host_name name;	/* n is 0 for an address */
	struct ip_addr addr;
	uint16_t port;
	bool has_login;
	uint8_t user_n, password_n;
	char user[PROXY_LOGIN_MAX], password[PROXY_LOGIN_MAX];
};

/**
 * proxy_url_parse() - [SCHEME://][USER[:PASSWORD]@]HOST[:PORT][/]
 *
 * User and password have %XX undone.  With socks5:// as with socks5h:// it is
 * the proxy that looks names up.
 * @ret_why:	set on failure: what is wrong and the mend, a constant
 * Return: 0 or -EINVAL
 */
NODISCARD int proxy_url_parse(struct str text, struct proxy_url *ret,
			      const char **ret_why);

/* "HOST:PORT", and nothing of the login. */
#define PROXY_URL_TEXT_SIZE	(HOST_NAME_MAX_LEN + 9)
void proxy_url_text(const struct proxy_url *p, char out[PROXY_URL_TEXT_SIZE]);

#endif /* CLI_PROXY_URL_H */
