/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forward_kit.h - the HTTP engine between two pairs of sockets
 *
 * The test is the program, the origins and the owner.  Whatever the owner is
 * told is noted in one text, so that a test reads as a conversation and the
 * notes that it must leave.  The loop is turned until nothing happens any
 * more; time passes only where a limit of one millisecond is waited for.
 */
#ifndef TESTS_UNIT_FORWARD_KIT_H
#define TESTS_UNIT_FORWARD_KIT_H

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/event.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "proxy/forward.h"
#include "proxy/http1.h"

#define ORIGINS_MAX	8
#define H	"Host: a.example.com\r\n"
#define VIA	"Via: 1.1 penstock\r\n"
#define DATE	"Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n"
#define A_GET	"GET / HTTP/1.1\r\n" H "\r\n"
#define OK_2	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#define SENT_2	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n" VIA "\r\nok"

struct forward_kit {
	struct event_base *base;
	struct forward *f;
	struct forward_config config;
	struct forward_times times;	/* what the owner says of them */
	int app;			/* the program's end */
	int engine_app;			/* what the engine was given */
	int origin[ORIGINS_MAX];	/* the origins' ends */
	int tunnel_net;
	struct stream (*layer)(int fd);	/* of origins' connections */
	int pooled;			/* left to the owner, idle; -1: none */
	unsigned dials;
	enum reason dial_fails;		/* ALLOWED: it does not */
	bool dial_later;
	struct buf notes;
	struct buf tunnel_up, tunnel_down;
	bool over;
};

extern struct forward_kit t;

int forward_kit_open(void **state);
int forward_kit_close(void **state);
/* Every event that is due, and those that they make due. */
void turn(void);
void start_with(const char *early);
void start(void);
void pin(enum forward_mode mode, const char *name, uint16_t port);
void say_bytes(int fd, const char *p, size_t n);
void say(int fd, const char *text);
/* All that has come for us; static, until the next call. */
char *hear(int fd);
/* Of what app hears, but for DATE. */
void expect(int fd, const char *want);
void expect_end(int fd);
/* What the owner was told since the last call. */
void expect_notes(const char *want);
/* The status of the refusal that has come, which is taken off. */
unsigned refusal_status(bool *ret_close);
void expect_refusal(unsigned status, bool closes);
void close_fd(int *fd);
int nonblocking_pair(int *ret_ours);

#define T(name)	\
	cmocka_unit_test_setup_teardown(name, forward_kit_open, \
					forward_kit_close)

#endif /* TESTS_UNIT_FORWARD_KIT_H */
