/* SPDX-License-Identifier: Apache-2.0 */
/*
 * websocket.h - the handshake of RFC 6455, as far as a proxy must see it; pure
 *
 * A tunnel begins only where the origin has proved that it read this request
 * as a handshake: a 101 that somebody could make a server say proves nothing.
 */
#ifndef PROXY_WEBSOCKET_H
#define PROXY_WEBSOCKET_H

#include <stdbool.h>

#include "proxy/http1.h"

/* Base64 of a SHA-1, and its NUL. */
#define WEBSOCKET_ACCEPT_SIZE	29

/**
 * websocket_asked() - Is this a handshake, in the one way that is passed on?
 * @ret_accept:	what the origin's answer must say
 *
 * GET, no body, Upgrade: websocket, one key of 16 bytes, version 13.
 */
bool websocket_asked(const struct http1_head *h,
		     char ret_accept[WEBSOCKET_ACCEPT_SIZE]);

/* Does a 101 answer agree to it? */
bool websocket_agreed(const struct http1_head *h,
		      const char accept[WEBSOCKET_ACCEPT_SIZE]);

#endif /* PROXY_WEBSOCKET_H */
