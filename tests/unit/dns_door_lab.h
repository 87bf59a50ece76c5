/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_door_lab.h - a sandbox's door with the world behind it, for tests
 */
#ifndef TESTS_UNIT_DNS_DOOR_LAB_H
#define TESTS_UNIT_DNS_DOOR_LAB_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "audit/writer.h"
#include "base/mem_account.h"
#include "resolver/dns_door.h"
#include "resolver/name_map.h"
#include "resolver/name_pins.h"
#include "rules/rules.h"
#include "tests/unit/dns_lab.h"

#define DOOR_MEMORY	((size_t)256 << 20)	/* at most */
#define ASKED	"127.0.0.9"	/* what a program takes for its server */

/* Allows a good many names below example.com at the lab's addresses. */
extern const char policy[];

extern struct event_base *base;
extern struct resolver *resolver;
extern struct fake *upstream;
extern struct name_map *names;
extern struct name_pins *pins;
extern struct dns_budget *run_budget;
extern struct dns_door *door;
extern struct mem_account held;		/* for the door; nothing at its end */
extern struct audit_sink *sink;
extern const struct ip_hosts *hosts;	/* NULL in the beginning */
extern int client, client6;	/* UDP sockets of the sandbox's */
/* Its turns, from the next reopen() on; NULL: it has all the time. */
extern void (*door_due)(void *arg);
extern bool (*door_spend)(void *arg, unsigned questions);
extern bool hold;		/* the server keeps silent about "late" and the
				 * A of "fail6" */
extern uint16_t next_id;	/* of the next question */

/* The whole of a test program: in namespaces of its own, skipped where there are
 * none.  Return: what main() does */
int door_lab_run(const struct CMUnitTest *tests, size_t n);
int door_setup(void **state);
int door_teardown(void **state);
#define DOOR_TEST(fn) \
	cmocka_unit_test_setup_teardown(fn, door_setup, door_teardown)

/* The server's answer, by the name that is asked. */
void zone(void *arg, const struct fake_ask *ask);

struct ruleset *compile(const char *text);
/* Another door in the place of this one. */
void reopen(const char *text, size_t names_budget, int record_fd);
/* The same with room for names, and records where records() looks. */
void open_with(const char *text);
int log_file(void);		/* where records() looks */
int connected(int type, const char *to);

struct msg {
	uint8_t p[8192];
	size_t n;
};

struct reply {
	struct msg m;
	unsigned rcode, answers;
	struct ip_addr addr;	/* of the first answer */
	uint32_t ttl;
	int ede;		/* -1: none */
	char why[80];
};

void question(struct msg *m, const char *name, unsigned type, bool edns);
void turn(void);
/* What the loop has to do now, without waiting for more. */
void turn_idle(void);
void read_reply(struct reply *r);
void receive(int fd, struct reply *r);
void tell(int fd, const struct msg *m);		/* send it, whole */
/* A question of the client's, whose answer the test takes or leaves. */
void ask_only(const char *name, unsigned type);
/* The same, to a server that holds its tongue, until it has had @n messages. */
void ask_held(const char *name, unsigned type, unsigned n);
void exchange(const struct msg *m, struct reply *r);
void ask(struct reply *r, const char *name, unsigned type);

void assert_addr(const struct ip_addr *a, const char *want);
void assert_no(const struct reply *r, unsigned rcode, int ede,
	       const char *why);
unsigned count_records(const char *part);
/* The last record has all of these in it. */
void assert_last(const char *const part[]);
#define LAST(...)	assert_last((const char *const[]){ __VA_ARGS__, NULL })

#endif /* TESTS_UNIT_DNS_DOOR_LAB_H */
