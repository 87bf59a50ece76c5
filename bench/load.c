/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load.c - the clients of the bench, bounded in count and time
 *
 *	load MODE HOW TARGET [OPTION...]
 *
 *	tunnels		open one, echo 64 bytes, close it
 *	hold		the same, but they stay open until standard input ends
 *	requests	1 KB by HTTP, again and again over tunnels that stay
 *	http		the same as plain requests to a proxy
 *	bulk		BYTES through each tunnel
 *	names		one question to the server at the address HOW, port 53, after
 *			the other
 *
 * HOW is "direct", "to:ADDRESS:PORT" for a forwarder, which decides by itself where
 * to, or "connect:ADDRESS:PORT" for an HTTP proxy.  TARGET is NAME:PORT, or for
 * names NAME; a % in it becomes a number of six digits (-d).
 *
 *	-n COUNT	units in all: tunnels, requests, streams, questions
 *	-c NUMBER	how many at once
 *	-s SECONDS	begin nothing after this
 *	-r RATE		begin as many units a second, whatever becomes of them; how
 *			long one took is counted from when it was due
 *	-b BYTES	of each stream
 *	-d COUNTxSTEP	for %: COUNT different numbers from 1 on, STEP apart
 *	-f ADDRESS+N	leave from these N addresses in turn
 *	-w		before that, unmeasured, a tunnel for each of the names, or a
 *			request for each that goes on at once: what a proxy remembers of
 *			a name it has then been asked for
 *
 * It says "ready", waits for a line on standard input, works, says one line of
 * JSON, and waits for the end of standard input: the bench reads the proxy's CPU
 * time in between.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "bench/net.h"

#define TIME_MAX_S	120
#define SLOTS_MAX	20000
#define COUNT_MAX	4000000
#define NAMES_MAX	1000000
#define BLOCK		65536
#define EVENTS		256
#define PATIENCE_S	3		/* for what was begun in time */
#define LOST_MS		1000		/* a question without an answer */
#define ECHO_BYTES	64
#define HEAD_MAX	1024
#define OPENING_MAX	128		/* of what is held, at once */

enum mode { TUNNELS, HOLD, REQUESTS, HTTP, BULK, NAMES, MODES };

static const char *const mode_names[MODES] = {
	[TUNNELS] = "tunnels", [HOLD] = "hold", [REQUESTS] = "requests",
	[HTTP] = "http", [BULK] = "bulk", [NAMES] = "names",
};

enum step { FREE, CONNECTING, ASKED, WORKING, HELD };

struct slot {
	int fd;
	enum step step;
	unsigned long name;
	double began;		/* the unit */
	size_t got;		/* bytes of the present step */
	uint64_t left;		/* of a body or stream */
	bool in_body;
	bool last;		/* the server closes after this answer */
	bool used;		/* it has answered before */
	char head[HEAD_MAX];
};

static struct {
	enum mode mode;
	bool warm, warming;
	bool connect;		/* through an HTTP proxy */
	const char *target;
	struct net_addr *to;	/* one, or one for each name */
	unsigned long to_n;
	unsigned long want, at_once, names, step;
	uint64_t size;		/* of a stream */
	double seconds, rate;
	struct sockaddr_in from;
	unsigned long from_n, from_next;

	struct slot *slot;
	struct slot **free;
	unsigned long slots, free_n;
	unsigned long begun, done, failed;
	uint64_t bytes;
	double begin;
	double *took;		/* of each that is done, in seconds */
	char why[160];		/* the first failed */
	int ep;
} load = {
	.want = COUNT_MAX, .at_once = 1, .names = 1, .step = 1,
	.seconds = TIME_MAX_S,
};

static char block[BLOCK];

/* TARGET for the name of this number. */
static const char *target_text(unsigned long number)
{
	static char text[300];
	const char *percent = strchr(load.target, '%');
	int n;

	if (!percent)
		return load.target;
	n = snprintf(text, sizeof(text), "%.*s%06lu%s",
		     (int)(percent - load.target), load.target,
		     1 + number % load.names * load.step, percent + 1);
	if (n < 0 || (size_t)n >= sizeof(text))
		net_usage("the target is too long\n");
	return text;
}

static bool is_over(void)
{
	return load.begun >= load.want ||
	       net_now_s() - load.begin >= load.seconds;
}

/* --- slots ------------------------------------------------------------------- */

static void slot_watch(struct slot *s, uint32_t events, int op)
{
	struct epoll_event ev = { .events = events, .data.ptr = s };

	if (epoll_ctl(load.ep, op, s->fd, &ev))
		net_fail("epoll_ctl");
}

static void slot_leave_from(const struct slot *s)
{
	struct sockaddr_in sa = load.from;
	int one = 1;

	if (!load.from_n)
		return;
	sa.sin_addr.s_addr = htonl(ntohl(sa.sin_addr.s_addr) +
				   (uint32_t)(load.from_next++ % load.from_n));
	setsockopt(s->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one,
		   sizeof(one));
	if (bind(s->fd, (struct sockaddr *)&sa, sizeof(sa)))
		net_fail("the address to leave from");
}

/* The next unit begins with a new connection. */
static void slot_open(struct slot *s)
{
	const struct net_addr *to = &load.to[s->name % load.to_n];

	s->step = CONNECTING;
	s->got = 0;
	s->used = false;
	s->head[0] = '\0';
	s->fd = socket(to->sa.ss_family,
		       SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (s->fd < 0)
		net_fail("socket");
	net_no_delay(s->fd);
	slot_leave_from(s);
	if (connect(s->fd, (const struct sockaddr *)&to->sa, to->n) &&
	    errno != EINPROGRESS)
		net_fail("connect");
	slot_watch(s, EPOLLOUT, EPOLL_CTL_ADD);
}

static void slot_begin(struct slot *s, double at)
{
	s->name = load.begun++;
	s->began = at;
	slot_open(s);
}

static void slot_close(struct slot *s)
{
	close(s->fd);
	s->fd = -1;
	s->step = FREE;
	load.free[load.free_n++] = s;
}

static void slot_fail(struct slot *s, const char *why)
{
	int n;

	if (load.failed++ == 0) {
		s->head[strcspn(s->head, "\r\n\"\\")] = '\0';
		n = snprintf(load.why, sizeof(load.why), "%s, step %d: %.90s",
			     why, (int)s->step, s->head);
		if (n < 0)
			exit(2);
	}
	slot_close(s);
}

/* --- what is said ------------------------------------------------------------- */

static bool say(struct slot *s, const char *text, size_t n)
{
	return send(s->fd, text, n, MSG_NOSIGNAL) == (ssize_t)n;
}

static bool say_request(struct slot *s)
{
	const char *at = target_text(s->name);
	bool whole = load.mode == HTTP && load.connect;
	char text[1024];
	int n = snprintf(text, sizeof(text),
			 "GET %s%s/1k HTTP/1.1\r\nHost: %s\r\n"
			 "User-Agent: load\r\nAccept: */*\r\n\r\n",
			 whole ? "http://" : "", whole ? at : "", at);

	s->got = 0;
	s->in_body = s->last = false;
	return n > 0 && (size_t)n < sizeof(text) && say(s, text, (size_t)n);
}

static bool say_connect(struct slot *s)
{
	const char *at = target_text(s->name);
	char text[1024];
	int n = snprintf(text, sizeof(text), "CONNECT %s HTTP/1.1\r\n"
			 "Host: %s\r\nUser-Agent: load\r\n\r\n", at, at);

	s->step = ASKED;
	s->got = 0;
	return n > 0 && (size_t)n < sizeof(text) && say(s, text, (size_t)n);
}

/* The tunnel stands. */
static bool say_first(struct slot *s)
{
	char text[ECHO_BYTES];
	int n = ECHO_BYTES;

	s->step = WORKING;
	s->got = 0;
	if (load.mode == REQUESTS || load.mode == HTTP)
		return say_request(s);
	memset(text, 'x', sizeof(text));
	s->left = load.size;
	if (load.mode == BULK)
		n = snprintf(text, sizeof(text), "%" PRIu64 "\n", load.size);
	return say(s, text, (size_t)n);
}

/* --- what is heard: 1 the unit is done, 0 it goes on, -1 it failed --------------- */

/* Up to the end of a head. Return: also bytes behind it, in @ret_more */
static int hear_head(struct slot *s, size_t n, size_t *ret_more)
{
	size_t room = sizeof(s->head) - 1 - s->got, old = s->got;
	size_t k = n < room ? n : room;
	char *end;

	memcpy(s->head + s->got, block, k);
	s->got += k;
	s->head[s->got] = '\0';
	end = strstr(s->head, "\r\n\r\n");
	if (!end)
		return k < n ? -1 : 0;
	*ret_more = n - ((size_t)(end + 4 - s->head) - old);
	if (strncmp(s->head, "HTTP/1.", 7) || strncmp(s->head + 8, " 200", 4))
		return -1;
	return 1;
}

static int hear_connected(struct slot *s)
{
	ssize_t n = recv(s->fd, block, HEAD_MAX - 1 - s->got, 0);
	size_t more = 0;
	int heard;

	if (n <= 0)
		return n < 0 && errno == EAGAIN ? 0 : -1;
	heard = hear_head(s, (size_t)n, &more);
	if (heard <= 0 || more > 0)
		return heard < 0 || more > 0 ? -1 : 0;
	return say_first(s) ? 0 : -1;
}

static int hear_echo(struct slot *s)
{
	ssize_t n = recv(s->fd, block, BLOCK, 0);

	if (n <= 0)
		return n < 0 && errno == EAGAIN ? 0 : -1;
	s->got += (size_t)n;
	return s->got >= ECHO_BYTES;
}

/* Bytes are counted and dropped where they are: a client that copies them would
 * be what is measured. */
static int hear_stream(struct slot *s)
{
	for (int i = 0; i < 4; i++) {
		size_t most = s->left < (8u << 20) ? s->left : 8u << 20;
		ssize_t n = recv(s->fd, NULL, most, MSG_TRUNC);

		if (n <= 0)
			return n < 0 && errno == EAGAIN ? 0 : -1;
		s->left -= (uint64_t)n;
		load.bytes += (uint64_t)n;
		if (s->left == 0)
			return 1;
	}
	return 0;
}

static int hear_answer(struct slot *s)
{
	ssize_t n = recv(s->fd, block, BLOCK, 0);
	size_t more = (size_t)n;
	const char *length;

	if (n <= 0)
		return n < 0 && errno == EAGAIN ? 0 : -1;
	if (!s->in_body) {
		int heard = hear_head(s, (size_t)n, &more);

		if (heard <= 0)
			return heard;
		length = strcasestr(s->head, "\r\ncontent-length:");
		if (!length)
			return -1;
		s->left = strtoull(length + strlen("\r\ncontent-length:"),
				   NULL, 10);
		s->last = s->head[7] == '0' ||
			  strcasestr(s->head, "\r\nconnection: close");
		s->in_body = true;
	}
	if (more > s->left)
		return -1;
	s->left -= more;
	return s->left == 0;
}

static int slot_hear(struct slot *s)
{
	switch (s->step) {
	case CONNECTING:
		slot_watch(s, EPOLLIN, EPOLL_CTL_MOD);
		return (load.connect && load.mode != HTTP ? say_connect(s)
			: say_first(s)) ? 0 : -1;
	case ASKED:
		return hear_connected(s);
	case WORKING:
		if (load.mode == BULK)
			return hear_stream(s);
		if (load.mode == REQUESTS || load.mode == HTTP)
			return hear_answer(s);
		return hear_echo(s);
	case FREE:
	case HELD:
		break;			/* what is held says nothing */
	}
	return -1;
}

/* --- units -------------------------------------------------------------------- */

static void unit_done(struct slot *s)
{
	load.took[load.done++] = net_now_s() - s->began;
	if (load.mode == HOLD) {
		s->step = HELD;
		return;
	}
	if ((load.mode != REQUESTS && load.mode != HTTP) || s->last ||
	    is_over()) {
		slot_close(s);
		return;
	}
	s->used = true;
	s->began = net_now_s();
	load.begun++;
	if (!say_request(s))
		slot_fail(s, strerror(errno));
}

static void slot_event(struct slot *s)
{
	int heard;

	errno = 0;
	heard = slot_hear(s);
	if (heard > 0) {
		unit_done(s);
	} else if (heard < 0 && load.mode == HTTP && s->used && s->got == 0) {
		close(s->fd);		/* closed between two requests */
		slot_open(s);
	} else if (heard < 0) {
		slot_fail(s, errno ? strerror(errno) : "refused or closed");
	}
}

/* The units that are due. */
static void begin_units(void)
{
	double now = net_now_s();
	unsigned long due = load.want;

	if (load.rate > 0)
		due = (unsigned long)((now - load.begin) * load.rate) + 1;
	if ((load.mode == HOLD || load.warming) && load.done + load.failed + OPENING_MAX < due)
		due = load.done + load.failed + OPENING_MAX;
	while (load.free_n > 0 && load.begun < due && !is_over()) {
		struct slot *s = load.free[--load.free_n];

		slot_begin(s, load.rate > 0 ? load.begin +
			   (double)load.begun / load.rate : now);
	}
}

static struct timespec until_due(void)
{
	double wait = 0.02;

	if (load.rate > 0 && !is_over())
		wait = load.begin + (double)load.begun / load.rate - net_now_s();
	if (wait < 0)
		wait = 0;
	return (struct timespec){ .tv_nsec = (long)(wait * 1e9) % 1000000000 };
}

static bool goes_on(void)
{
	double past = net_now_s() - load.begin - load.seconds;

	if (!is_over())
		return true;
	if (load.mode == BULK && past >= 0)
		return false;
	return load.done + load.failed < load.begun && past < PATIENCE_S;
}

static void work(void)
{
	struct epoll_event ev[EVENTS];

	while (goes_on()) {
		struct timespec wait;
		int n;

		begin_units();
		wait = until_due();
		n = epoll_pwait2(load.ep, ev, EVENTS, &wait, NULL);
		for (int i = 0; i < n; i++)
			slot_event(ev[i].data.ptr);
	}
	if (load.mode != BULK)		/* what nobody answered in time */
		load.failed = load.begun - load.done;
}

/* --- names --------------------------------------------------------------------- */

/* Return: the answer to @id came. */
static bool answered(int fd, uint16_t id)
{
	for (;;) {
		ssize_t n = recv(fd, block, BLOCK, 0);

		if (n < 0)
			return false;
		if (n > 12 && (uint8_t)block[0] == id >> 8 &&
		    (uint8_t)block[1] == (id & 255))
			return true;
	}
}

static void ask_names(int fd)
{
	char text[NET_QUESTION_MAX];

	while (!is_over()) {
		uint16_t id = (uint16_t)(load.begun * 2654435761u >> 8);
		size_t n = net_question(id, target_text(load.begun++), text);
		double asked = net_now_s();

		if (send(fd, text, n, 0) == (ssize_t)n && answered(fd, id))
			load.took[load.done++] = net_now_s() - asked;
		else
			load.failed++;
	}
}

static int names_socket(const char *server)
{
	const struct timeval lost = { .tv_usec = LOST_MS * 1000 % 1000000,
				      .tv_sec = LOST_MS / 1000 };
	struct net_addr to;
	int fd;

	net_resolve(server, "53", &to);
	fd = socket(to.sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &lost, sizeof(lost)) ||
	    connect(fd, (struct sockaddr *)&to.sa, to.n))
		net_fail("server");
	return fd;
}

/* --- beginning and end ----------------------------------------------------------- */

static int shorter(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void tell(void)
{
	double seconds = net_now_s() - load.begin;
	unsigned long n = load.done;

	qsort(load.took, n, sizeof(load.took[0]), shorter);
	printf("{\"done\":%lu,\"failed\":%lu,\"seconds\":%.6f,\"bytes\":%" PRIu64
	       ",\"p50_us\":%.1f,\"p99_us\":%.1f,\"why\":\"%s\"}\n", n,
	       load.failed, seconds, load.bytes,
	       n ? load.took[n / 2] * 1e6 : 0,
	       n ? load.took[n * 99 / 100] * 1e6 : 0, load.why);
	fflush(stdout);
	while (read(STDIN_FILENO, block, BLOCK) > 0)
		;
}

/* A unit for each name that will be met, of which nothing is told. */
static void warm_up(void)
{
	unsigned long want = load.want;
	double rate = load.rate, seconds = load.seconds;

	load.warming = true;
	load.want = load.mode == TUNNELS ? load.names : load.at_once;
	load.rate = 0;
	load.seconds = TIME_MAX_S;
	load.begin = net_now_s();
	work();
	load.warming = false;
	load.want = want;
	load.rate = rate;
	load.seconds = seconds;
	load.begun = load.done = load.failed = 0;
	load.bytes = 0;
	load.why[0] = '\0';
}

static void wait_for_go(void)
{
	net_ready();
	if (read(STDIN_FILENO, block, 1) != 1)
		exit(1);
	load.begin = net_now_s();
}

/* Where to connect: all at once, so that nobody is asked while time is taken. */
static void find_addresses(const char *how)
{
	load.connect = strncmp(how, "connect:", 8) == 0;
	load.to_n = strcmp(how, "direct") == 0 ? load.names : 1;
	load.to = calloc(load.to_n, sizeof(load.to[0]));
	if (!load.to)
		net_fail("memory");
	if (load.connect) {
		net_resolve(how + 8, NULL, load.to);
	} else if (strncmp(how, "to:", 3) == 0) {
		net_resolve(how + 3, NULL, load.to);
	} else {
		for (unsigned long i = 0; i < load.to_n; i++)
			net_resolve(target_text(i), NULL, &load.to[i]);
	}
}

static void make_slots(void)
{
	load.slots = load.mode == HOLD ? load.want : load.at_once;
	if (load.slots > SLOTS_MAX)
		net_usage("so many cannot be held at once\n");
	load.slot = calloc(load.slots, sizeof(load.slot[0]));
	load.free = calloc(load.slots, sizeof(load.free[0]));
	load.took = calloc(MAX(load.want, load.names), sizeof(load.took[0]));
	load.ep = epoll_create1(EPOLL_CLOEXEC);
	if (!load.slot || !load.free || !load.took || load.ep < 0)
		net_fail("memory");
	for (unsigned long i = load.slots; i-- > 0;)
		load.free[load.free_n++] = &load.slot[i];
}

/* FIRST and the SECOND number behind @sign, which may be missing. */
static unsigned long second_number(char *text, char sign, unsigned long max)
{
	char *at = strchr(text, sign);

	if (!at)
		return 1;
	*at = '\0';
	return net_number(at + 1, max);
}

static void take_option(int letter, char *value)
{
	switch (letter) {
	case 'n':
		load.want = net_number(value, COUNT_MAX);
		return;
	case 'c':
		load.at_once = net_number(value, SLOTS_MAX);
		return;
	case 's':
		load.seconds = strtod(value, NULL);
		if (load.seconds > 0 && load.seconds <= TIME_MAX_S)
			return;
		break;
	case 'r':
		load.rate = (double)net_number(value, 1000000);
		return;
	case 'b':
		load.size = net_number(value, 1ul << 50);
		return;
	case 'd':
		load.step = second_number(value, 'x', NAMES_MAX);
		load.names = net_number(value, NAMES_MAX);
		return;
	case 'w':
		load.warm = true;
		return;
	case 'f':
		load.from.sin_family = AF_INET;
		load.from_n = second_number(value, '+', 256);
		if (inet_pton(AF_INET, value, &load.from.sin_addr) == 1)
			return;
		break;
	}
	net_usage("an option has no such value: see the head of load.c\n");
}

int main(int argc, char **argv)
{
	int letter;

	net_begin();
	prctl(PR_SET_TIMERSLACK, 1);
	while ((letter = getopt(argc, argv, "n:c:s:r:b:d:f:w")) > 0)
		take_option(letter, optarg);
	while (load.mode < MODES && argc > optind &&
	       strcmp(mode_names[load.mode], argv[optind]) != 0)
		load.mode++;
	if (argc != optind + 3 || load.mode == MODES)
		net_usage("usage: load tunnels|hold|requests|http|bulk|names HOW TARGET\n"
			  "            [-n COUNT] [-c NUMBER] [-s SECONDS] [-r RATE]\n"
			  "            [-b BYTES] [-d COUNTxSTEP] [-f ADDRESS+N] [-w]\n");
	load.target = argv[optind + 2];
	make_slots();
	if (load.mode == NAMES) {
		int fd = names_socket(argv[optind + 1]);

		wait_for_go();
		ask_names(fd);
	} else {
		find_addresses(argv[optind + 1]);
		if (load.warm)
			warm_up();
		wait_for_go();
		work();
	}
	tell();
	return 0;
}
