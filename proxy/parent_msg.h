/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parent_msg.h - what is said to a parent proxy, and what it may answer; pure
 *
 * HTTP CONNECT (RFC 9110 9.3.6) and SOCKS 5 (RFC 1928, 1929).  The parent is
 * not trusted to be well: its answers are bounded and read strictly, and what
 * stands behind the last of them belongs to the tunnel, never to us.
 */
#ifndef PROXY_PARENT_MSG_H
#define PROXY_PARENT_MSG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/ip_addr.h"
#include "base/reason.h"
#include "base/str.h"

/* Bytes of an answer's head; interim answers before the final one. */
#define PARENT_HEAD_MAX		16384
#define PARENT_INTERIM_MAX	8
/* Of a user's name and of a password, as RFC 1929 has it. */
#define PARENT_LOGIN_MAX	255
/* What is said at once never takes more. */
#define PARENT_SAY_MAX		2048

enum parent_kind { PARENT_HTTP, PARENT_SOCKS5 };

/* All borrowed while the conversation lasts. */
struct parent_ask {
	enum parent_kind kind;
	struct str host;	/* canonical; empty: @addr */
	struct ip_addr addr;
	uint16_t port;
	struct str user, password;	/* empty @user: no login */
	struct str basic;	/* "user:password" in base64, or empty */
};

enum parent_step {
	PARENT_MORE,	/* all that came belongs to the answer; more is to come */
	PARENT_SAY,	/* send what was appended, then read on */
	PARENT_OPEN,	/* the tunnel begins behind the bytes used */
	PARENT_FAILED,
};

struct parent_talk {
	struct parent_ask ask;
	uint8_t state;
	enum reason why;	/* of FAILED */
	unsigned status;	/* that the parent said; 0: nothing */
};

/* "user:password" in base64; 0, -ENOSPC or -ENOMEM. */
NODISCARD int parent_msg_basic(struct str login, struct buf *out);

/**
 * parent_talk_begin() - Whom to ask for, and the first bytes to send
 * @out:	appended
 * Return: 0, -ENOSPC or -ENOMEM
 */
NODISCARD int parent_talk_begin(struct parent_talk *t,
				const struct parent_ask *ask, struct buf *out);

/**
 * parent_talk_read() - The parent's bytes that no earlier call has used
 * @ret_used:	bytes of @in that were read; 0 with PARENT_MORE, where the next
 *		call wants the same ones and more
 * @out:	appended with PARENT_SAY
 */
enum parent_step parent_talk_read(struct parent_talk *t, struct str in,
				  size_t *ret_used, struct buf *out);

#endif /* PROXY_PARENT_MSG_H */
