/* SPDX-License-Identifier: Apache-2.0 */
/*
 * socks.h - the messages of SOCKS 4, 4a and 5, as bytes; pure, strict
 *
 * RFC 1928, RFC 1929, and for version 4 the two memos of its authors.  Each
 * parser is given all bytes from the message's first on and says how many are
 * its own.  Nothing is allocated, and every message has a most that it can be.
 *
 * A host is read as everywhere: by host_parse().  A name that is an address in
 * its usual spelling is that address (also "::1" without brackets, since no
 * port can follow here); one in another spelling is refused.
 */
#ifndef PROXY_SOCKS_H
#define PROXY_SOCKS_H

#include <stdint.h>

#include "base/compiler.h"
#include "base/reason.h"
#include "base/str.h"
#include "rules/host_name.h"

#define SOCKS_V4	4
#define SOCKS_V5	5

#define SOCKS_USER_MAX		255	/* bytes of a version 4 user id */
#define SOCKS_GREETING_MAX	(2 + 255)
#define SOCKS_LOGIN_MAX		(3 + 255 + 255)
/* Of a request, in either version. */
#define SOCKS_REQUEST_MAX	(8 + SOCKS_USER_MAX + 1 + 255 + 1)

/* RFC 1928 3 */
enum socks_method {
	SOCKS_NO_LOGIN = 0x00,
	SOCKS_PASSWORD = 0x02,
	SOCKS_NO_METHOD = 0xff,
};

/* RFC 1928 6, as far as the table of reasons has no word for it. */
enum socks_reply {
	SOCKS_GRANTED = 0x00,
	SOCKS_FAILED = 0x01,
	SOCKS_NOT_BY_RULES = 0x02,
	SOCKS_NO_COMMAND = 0x07,
	SOCKS_NO_ADDRESS_TYPE = 0x08,
};

enum socks_result {
	SOCKS_MORE,	/* not all of it is there */
	SOCKS_DONE,
	SOCKS_BAD,
};

/**
 * socks_greeting() - VERSION 5, and the ways to log in that a client knows
 * @ret:	the one to answer with: none if it may be, else a password,
 *		SOCKS_NO_METHOD if it knows neither
 */
enum socks_result socks_greeting(struct str in, enum socks_method *ret,
				 size_t *ret_bytes);

/* RFC 1929 2: a name and a password, either of which may be empty. */
enum socks_result socks_login(struct str in, size_t *ret_bytes);

struct socks_request {
	enum host_kind kind;	/* HOST_BAD: none was read */
	struct host_name name;
	struct ip_addr addr;
	uint16_t port;
	size_t bytes;
	enum socks_reply reply;	/* SOCKS_BAD: what the client is answered */
};

/**
 * socks_request() - What is asked for, if it is CONNECT
 * @version:	that the client began with; another one is refused
 * @ret:	on SOCKS_BAD, too, what could be read of it, for the record
 * @ret_why:	on SOCKS_BAD: REQUEST_MALFORMED, AUTHORITY_INVALID or
 *		METHOD_NOT_SUPPORTED
 */
enum socks_result socks_request(uint8_t version, struct str in,
				struct socks_request *ret,
				enum reason *ret_why);

#define SOCKS_ANSWER_MAX	10

/**
 * socks_answer() - The answer to a request, whole
 * @reply:	of RFC 1928; version 4 has but two of its own for them
 *
 * The address in it is always 0.0.0.0:0: who is told one learns of the inside
 * of the host, and some clients would use it.
 */
struct str socks_answer(uint8_t version, unsigned reply,
			char out[SOCKS_ANSWER_MAX]);

#endif /* PROXY_SOCKS_H */
