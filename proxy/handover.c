/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handover.c - this process hands its service to the next one
 *
 * Theory of operation
 * ===================
 *
 * The next process comes to the plug, as launchers do, and says HELLO
 * (handover_proto.h).  Ownership changes in one step, and until then nothing
 * here has been given up: what the other one gets are second descriptors of
 * sockets and a description of what is remembered.  So whatever becomes of it
 * before that step, the connection's end, a refusal or our own patience leads
 * back to IDLE, and all goes on as if nothing had been.
 *
 *	IDLE --> OFFERED --> SETTLING --> FREEZING --> TELLING --> TOLD
 *	  ^         |           |            |            |          |
 *	  |         v           v            v            v          v
 *	  +----- BACKING <------------------------------------ COMMITTED
 *	                                                            |
 *	                                                          GIVEN
 *
 *   from       to         by                  because
 *   IDLE       OFFERED    handover_on_hello() it may, and speaks our version
 *   OFFERED    SETTLING   on_take()           it is ready for all of it
 *   SETTLING   FREEZING   settle()            no run is in the middle of
 *                                             something; nothing new is heard
 *   FREEZING   TELLING    start_telling()     every worker rests, and questions
 *                                             are answered or waited too long
 *   TELLING    TOLD       handover_tell_next() the last one was told
 *   TOLD       COMMITTED  on_ready()          READY: it has taken all of it in
 *   COMMITTED  GIVEN      given()             SERVING: it is its own from here
 *   any        BACKING    handover_go_on()    it failed, or time is up
 *   BACKING    IDLE       on_thawed()         every worker goes on
 *
 * Who owns what when: up to COMMITTED everything is ours.  In COMMITTED we wait
 * for one word and do nothing: if it comes, everything is the other one's, if
 * the connection ends without it, ours.  The other one says it before it acts,
 * so that the two never serve at once.
 *
 * From FREEZING to GIVEN sandboxes rest (leave.h): connections wait in their
 * listening sockets and questions in theirs, and records of open flows in a
 * pipe.  It is told of one run at a time, so that one run's memory is all that
 * is copied at once.  Steps on workers go by mail and cannot be called back:
 * who breaks off while some are out waits for them first (BACKING).
 */
#include "proxy/handover.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "proxy/handover_own.h"
#include "proxy/host_listen.h"
#include "proxy/leave.h"
#include "proxy/plug.h"
#include "proxy/plug_check.h"

#define REPORT_MS	250	/* between two reports of what was used */

static const struct {
	const char *name;
	uint32_t next;
} phases[] = {
	[HANDOVER_IDLE]      = { "idle",      BIT(HANDOVER_OFFERED) },
	[HANDOVER_OFFERED]   = { "offered",   BIT(HANDOVER_SETTLING) |
					      BIT(HANDOVER_BACKING) },
	[HANDOVER_SETTLING]  = { "settling",  BIT(HANDOVER_FREEZING) |
					      BIT(HANDOVER_BACKING) },
	[HANDOVER_FREEZING]  = { "freezing",  BIT(HANDOVER_TELLING) |
					      BIT(HANDOVER_BACKING) },
	[HANDOVER_TELLING]   = { "telling",   BIT(HANDOVER_IS_TOLD) |
					      BIT(HANDOVER_BACKING) },
	[HANDOVER_IS_TOLD]   = { "told",      BIT(HANDOVER_COMMITTED) |
					      BIT(HANDOVER_BACKING) },
	[HANDOVER_COMMITTED] = { "committed", BIT(HANDOVER_GIVEN) |
					      BIT(HANDOVER_BACKING) },
	[HANDOVER_BACKING]   = { "backing",   BIT(HANDOVER_IDLE) },
	[HANDOVER_GIVEN]     = { "given",     0 },
};
_Static_assert(ARRAY_SIZE(phases) == HANDOVER_PHASES, "name every phase");

void handover_set_phase(struct handover *h, enum handover_phase to)
{
	REQUIRE(phases[h->phase].next & BIT(to));
	log_debug("hand-over: %s -> %s", phases[h->phase].name,
		  phases[to].name);
	h->phase = to;
	REQUIRE((h->fd >= 0) == (to != HANDOVER_IDLE &&
				 to != HANDOVER_BACKING));
}

void handover_wait_ms(struct handover *h, int ms)
{
	struct timeval t = { .tv_sec = ms / 1000,
			     .tv_usec = ms % 1000 * 1000 };

	if (event_add(h->timer, &t) < 0)
		log_error("hand-over: out of memory");
}

static void be_patient(struct handover *h, int ms)
{
	const struct timeval t = { .tv_sec = ms / 1000 };

	if (event_add(h->limit, &t) < 0)
		log_error("hand-over: out of memory");
}

/* --- breaking off ------------------------------------------------------------- */

static void hang_up(struct handover *h)
{
	if (h->readable)
		event_free(h->readable);
	if (h->writable)
		event_free(h->writable);
	h->readable = h->writable = NULL;
	handover_drop_letters(h);
	fd_closep(&h->fd);
}

static void on_thawed(struct leave *l)
{
	struct handover *h = l->arg;

	if (--h->out == 0)
		handover_set_phase(h, HANDOVER_IDLE);
}

/* Every worker is asked to go on; none of them has a step to do. */
void handover_go_on(struct handover *h)
{
	bool rested = h->phase != HANDOVER_OFFERED &&
		      h->phase != HANDOVER_SETTLING;
	size_t i;

	event_del(h->timer);
	event_del(h->limit);
	hang_up(h);
	if (h->phase != HANDOVER_BACKING)
		handover_set_phase(h, HANDOVER_BACKING);
	for (i = 0; rested && i < h->n; i++)
		h->leave[i]->back = on_thawed;
	if (rested) {
		h->out = plug_leave_abort(h->c.plug) +
			 host_listens_thaw(h->c.listens);
		h->c.rest(h->c.arg, false);
	}
	h->n = 0;
	if (h->out == 0)
		handover_set_phase(h, HANDOVER_IDLE);
	log_warn("hand-over: this process goes on serving");
}

/* @why: NULL: it knows, or has gone */
void handover_give_back(struct handover *h, const char *why)
{
	union handover_msg m;
	size_t n = handover_begin(HANDOVER_FAILED, &m);

	if (h->phase == HANDOVER_IDLE || h->phase == HANDOVER_BACKING ||
	    h->phase == HANDOVER_GIVEN)
		return;
	if (why) {
		(void)!snprintf(m.failed.text, sizeof(m.failed.text), "%s",
				why);
		log_warn("hand-over: %s", m.failed.text);
		(void)!fd_send_msg(h->fd, &m, n, NULL, 0);
	}
	if (h->out == 0) {
		handover_go_on(h);
		return;
	}
	/* The last step that is under way comes back to it. */
	hang_up(h);
	handover_set_phase(h, HANDOVER_BACKING);
}

void handover_break_off(struct handover *h, const char *why)
{
	if (h)
		handover_give_back(h, why);
}

const char *handover_words(int err)
{
	return err == -EIO ? "records cannot be written: mend that first (a full disk, perhaps)" :
	       err == -EMFILE ? "no descriptors are left: raise LimitNOFILE" :
	       strerror(-err);
}

/* --- resting ------------------------------------------------------------------- */

static void add_leave(void *arg, struct leave *l)
{
	struct handover *h = arg;
	struct leave **more;

	l->arg = h;
	if (h->n == h->room) {
		more = mem_new_array(2 * h->room + 16, sizeof(more[0]));
		if (!more) {
			h->err = -ENOMEM;
			return;
		}
		if (h->n)
			memcpy(more, h->leave, h->n * sizeof(more[0]));
		mem_free(h->leave);
		h->leave = more;
		h->room = 2 * h->room + 16;
	}
	h->leave[h->n++] = l;
}

/* Is nothing in the middle of something?  Then it all rests from here on. */
static void settle(struct handover *h)
{
	if (plug_leave_busy(h->c.plug) || host_listens_busy(h->c.listens) ||
	    h->c.reading(h->c.arg)) {
		if (clock_mono_ms() < h->until_ms)
			handover_wait_ms(h, HANDOVER_STEP_MS);
		else
			handover_give_back(h, "a run or a policy was in the middle of something for too long: try again");
		return;
	}
	h->c.rest(h->c.arg, true);
	handover_set_phase(h, HANDOVER_FREEZING);
	h->n = h->next = 0;
	h->err = 0;
	plug_leave_begin(h->c.plug, add_leave, h);
	host_listens_leave(h->c.listens, add_leave, h);
	if (h->err < 0) {
		handover_give_back(h, handover_words(h->err));
		return;
	}
	h->since_ms = clock_mono_ms();
	h->until_ms = h->since_ms + HANDOVER_QUIET_MS;
	be_patient(h, HANDOVER_REST_MS);
	handover_freeze_all(h);
}

/* --- given ---------------------------------------------------------------------------- */

static void given(struct handover *h)
{
	handover_set_phase(h, HANDOVER_GIVEN);
	event_del(h->limit);
	plug_leave_commit(h->c.plug, h->fd);
	/* A service manager hears of it from us before it does from there. */
	h->c.on_given(h->c.arg, (int)h->pid);
	if (handover_say_word(h, HANDOVER_OVER) == 0)
		handover_flush(h);
	log_info("hand-over: what comes had to wait for %lld ms",
		 (long long)(clock_mono_ms() - h->since_ms));
	handover_wait_ms(h, REPORT_MS);
}

static void lose_line(struct handover *h)
{
	plug_leave_line_lost(h->c.plug);
	event_del(h->timer);
	event_del(h->readable);
	h->c.on_end(h->c.arg);
}

/* --- what the other one says ------------------------------------------------------------ */

static void on_ready(struct handover *h)
{
	if (handover_say_word(h, HANDOVER_COMMIT) < 0) {
		handover_give_back(h, "out of memory");
		return;
	}
	handover_set_phase(h, HANDOVER_COMMITTED);
	handover_flush(h);
}

static void on_take(struct handover *h)
{
	handover_set_phase(h, HANDOVER_SETTLING);
	h->until_ms = clock_mono_ms() + HANDOVER_SETTLE_MS;
	settle(h);
}

/* Before it is given. */
static void on_step(struct handover *h, int type)
{
	char words[HANDOVER_CGROUP_MAX];

	if (type == HANDOVER_FAILED) {
		(void)!snprintf(words, sizeof(words), "the other one: %.400s",
				h->m.failed.text);
		log_warn("hand-over: %s", words);
		handover_give_back(h, NULL);
	} else if (type == HANDOVER_TAKE && h->phase == HANDOVER_OFFERED) {
		on_take(h);
	} else if (type == HANDOVER_READY && h->phase == HANDOVER_IS_TOLD) {
		on_ready(h);
	} else if (type == HANDOVER_SERVING &&
		   h->phase == HANDOVER_COMMITTED) {
		given(h);
	} else {
		handover_give_back(h, "that message does not come now");
	}
}

/* Behind that; takes *@fd. */
static void on_line(struct handover *h, int type, int *fd)
{
	if (type == HANDOVER_RELOAD)
		h->c.on_reload(h->c.arg);
	else if (type == HANDOVER_END || type == HANDOVER_POLICY ||
		 type == HANDOVER_USED)
		plug_leave_on_about(h->c.plug, &h->m, fd_take(fd));
	else
		lose_line(h);
}

static void readable_cb(evutil_socket_t sock, short what, void *arg)
{
	struct handover *h = arg;
	int fd[FD_PASS_MAX], type;
	struct plug_why why;
	size_t n = 0, nfds = 0, i;
	int err = fd_recv_msg(sock, h->bytes, sizeof(h->bytes), &n, fd, &nfds);

	(void)what;
	if (err == -EAGAIN)
		return;
	if (err < 0 || n == 0) {
		if (h->phase == HANDOVER_GIVEN) {
			lose_line(h);
			return;
		}
		log_warn("hand-over: the other process has gone");
		handover_give_back(h, NULL);
		return;
	}
	type = handover_parse(str_make(h->bytes, n), nfds, &h->m, &why);
	if (nfds == 0)
		fd[nfds++] = -1;
	if (h->phase == HANDOVER_GIVEN)
		on_line(h, type, &fd[0]);
	else if (type < 0)
		handover_give_back(h, why.text);
	else
		on_step(h, type);
	for (i = 0; i < nfds; i++)
		fd_closep(&fd[i]);
}

static void writable_cb(evutil_socket_t sock, short what, void *arg)
{
	struct handover *h = arg;

	(void)sock;
	(void)what;
	handover_flush(h);
	if (h->phase == HANDOVER_TELLING && h->out == 0 &&
	    list_empty(&h->letters))
		handover_tell_next(h);
}

static void timer_cb(evutil_socket_t fd, short what, void *arg)
{
	struct handover *h = arg;

	(void)fd;
	(void)what;
	if (h->phase == HANDOVER_GIVEN) {
		plug_leave_report(h->c.plug);
		handover_wait_ms(h, REPORT_MS);
	} else if (h->phase == HANDOVER_SETTLING) {
		settle(h);
	} else if (h->phase == HANDOVER_FREEZING && h->out == 0) {
		handover_freeze_all(h);
	}
}

/*
 * Time is up.  The word that we wait for last may be on its way: from here on it
 * can be sent no more, and what was sent is read.
 */
static void limit_cb(evutil_socket_t fd, short what, void *arg)
{
	struct handover *h = arg;

	(void)fd;
	(void)what;
	if (h->phase == HANDOVER_COMMITTED) {
		(void)!shutdown(h->fd, SHUT_RD);
		readable_cb(h->fd, EV_READ, h);
	}
	if (h->phase != HANDOVER_GIVEN)
		handover_give_back(h, "the other process took too long");
}

/* --- the beginning ------------------------------------------------------------------------ */

static int listen_to(struct handover *h, int fd)
{
	struct ucred peer;
	socklen_t n = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0)
		return -errno;
	h->pid = peer.pid;
	h->readable = event_new(h->c.base, fd, EV_READ | EV_PERSIST,
				readable_cb, h);
	h->writable = event_new(h->c.base, fd, EV_WRITE, writable_cb, h);
	if (!h->readable || !h->writable || event_add(h->readable, NULL) < 0)
		return -ENOMEM;
	return 0;
}

static int check_hello(struct handover *h, struct str msg,
		       struct plug_why *why)
{
	int type = handover_parse(msg, 0, &h->m, why);

	if (type < 0)
		return type;
	if (type != HANDOVER_HELLO)
		return plug_refuse(why, "a hand-over begins with HELLO");
	if (h->m.hello.plug_version != PLUG_VERSION)
		return plug_refuse(why, "runs here speak version %d of the plug, and the other penstockd version %u: stop the service and start it anew; its runs end by that",
				   PLUG_VERSION, h->m.hello.plug_version);
	if (h->phase == HANDOVER_GIVEN)
		return plug_refuse(why, "this process has handed its service over already");
	if (h->phase != HANDOVER_IDLE)
		return plug_refuse(why, "process %d is about to take this service over: wait for it",
				   (int)h->pid);
	if (plug_listen_fd(h->c.plug) < 0)
		return plug_refuse(why, "this service is going down: start it when it has");
	return 0;
}

void handover_on_hello(struct handover *h, struct str msg, int fd)
{
	CLEANUP(fd_closep) int owned = fd;
	union handover_msg m;
	struct plug_why why;
	size_t n;
	int err = check_hello(h, msg, &why);

	if (err < 0) {
		n = handover_begin(HANDOVER_FAILED, &m);
		memcpy(m.failed.text, why.text, sizeof(m.failed.text) - 1);
		log_warn("hand-over: %s", why.text);
		(void)!fd_send_msg(fd, &m, n, NULL, 0);
		return;
	}
	h->fd = fd_take(&owned);
	handover_set_phase(h, HANDOVER_OFFERED);
	be_patient(h, HANDOVER_OPEN_MS);
	err = listen_to(h, fd);
	if (err == 0)
		err = handover_say_offer(h);
	if (err < 0)
		handover_give_back(h, handover_words(err));
	else
		handover_flush(h);
	log_info("hand-over: process %d asks for this service", (int)h->pid);
}

int handover_new(const struct handover_config *config, struct handover **ret)
{
	struct handover *h = mem_new(sizeof(*h));

	if (!h)
		return -ENOMEM;
	h->c = *config;
	h->fd = -1;
	list_init(&h->letters);
	h->timer = event_new(config->base, -1, 0, timer_cb, h);
	h->limit = event_new(config->base, -1, 0, limit_cb, h);
	if (!h->timer || !h->limit) {
		handover_free(h);
		return -ENOMEM;
	}
	*ret = h;
	return 0;
}

void handover_free(struct handover *h)
{
	if (!h)
		return;
	hang_up(h);
	if (h->timer)
		event_free(h->timer);
	if (h->limit)
		event_free(h->limit);
	mem_free(h->leave);
	mem_free(h);
}
