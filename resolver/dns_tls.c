/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_tls.c - packets to one server by DNS over TLS (RFC 7858)
 *
 * Theory of operation
 * ===================
 *
 *	CLOSED --ask--> CONNECT --> HANDSHAKE --> OPEN --idle--> CLOSED
 *	   ^               |            |           |
 *	   +---------------+---failed---+-----------+
 *
 *	from		to		by		because
 *	CLOSED		CONNECT		tls_open()	there is something to ask
 *	CONNECT		HANDSHAKE	tls_connected()	the server took it
 *	HANDSHAKE	OPEN		tls_shake()	the server is verified
 *	any		CLOSED		tls_close()	failed, idle, or freed
 *
 * Questions are written one behind the other as they come, and answers may come
 * in any order (RFC 7766 6.2.1): they are told apart by id and question, so
 * ids are unique among those that are under way.  What answers none of them is
 * passed over.
 *
 * The server may close a connection whenever it likes, also when a question is
 * on its way.  When a connection that had brought answers breaks off, what is
 * open is asked again, once, over a new one; when one did not bring any, it has
 * failed.  A question that ran out of time while nothing at all was heard takes
 * its connection along.
 *
 * OpenSSL works on the socket itself; it is asked to go on whenever the socket
 * is ready, or there is more to send.
 */
#include "resolver/dns_tls.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "resolver/dns_tls_lib.h"

#define TLS_MAGIC	0x646f7431u
#define TLS_CHUNK	4096		/* bytes that are read at once */
#define TLS_TURN	64		/* reads of one turn */
#define TLS_FRAME_MAX	(2 + DNS_MSG_MAX)
#define TLS_WHY_SIZE	128

enum tls_state { TLS_CLOSED, TLS_CONNECT, TLS_HANDSHAKE, TLS_OPEN, TLS_STATES };

static const struct {
	const char *name;
	unsigned next;		/* states that may follow, as bits */
} tls_states[] = {
	[TLS_CLOSED]    = { "closed", BIT(TLS_CONNECT) },
	[TLS_CONNECT]   = { "connect", BIT(TLS_HANDSHAKE) | BIT(TLS_CLOSED) },
	[TLS_HANDSHAKE] = { "handshake", BIT(TLS_OPEN) | BIT(TLS_CLOSED) },
	[TLS_OPEN]      = { "open", BIT(TLS_CLOSED) },
};
_Static_assert(ARRAY_SIZE(tls_states) == TLS_STATES, "name every state");

struct dns_tls {
	unsigned magic;
	const struct resolver_tls *lib;
	struct resolver_server server;
	struct event_base *base;
	int attempt_ms, idle_ms;
	enum tls_state state;
	int fd;				/* -1 when closed */
	SSL *ssl;
	struct event readable, writable;	/* of @fd */
	struct event kick;		/* there is more to do now */
	struct event timer;
	struct buf out, in;
	struct list asks;		/* struct dns_tls_ask.node, oldest first */
	unsigned nasks;
	unsigned heard;			/* answers over this connection */
	int64_t heard_ms;		/* when there was a byte of them */
	int64_t quiet_until_ms;		/* after a failure */
	enum dns_sent quiet_how;
	char told[TLS_WHY_SIZE];	/* what the log was told last */
};

static void tls_set_state(struct dns_tls *t, enum tls_state to)
{
	REQUIRE(tls_states[t->state].next & BIT(to));
	log_debug("dns: tls: %s -> %s", tls_states[t->state].name,
		  tls_states[to].name);
	t->state = to;
	REQUIRE((t->fd < 0) == (to == TLS_CLOSED));
}

/* --- questions ------------------------------------------------------------- */

static void ask_end(struct dns_tls *t, struct dns_tls_ask *a,
		    enum dns_sent how, const uint8_t *p, size_t n)
{
	list_del(&a->node);
	t->nasks--;
	a->fn(a->arg, how, p, n);
}

static int ask_write(struct dns_tls *t, const struct dns_tls_ask *a)
{
	uint8_t length[2];
	int err;

	dns_put16(length, a->ask->n);
	err = buf_reserve(&t->out, sizeof(length) + a->ask->n);
	if (!err)
		err = buf_add(&t->out, length, sizeof(length));
	return err ? err : buf_add(&t->out, a->ask->p, a->ask->n);
}

static bool ask_is_answered_by(const struct dns_tls_ask *a, const uint8_t *p,
			       size_t n)
{
	const struct dns_ask *ask = a->ask;

	return n >= DNS_HEADER_SIZE + (size_t)ask->question_n &&
	       memcmp(p, ask->p, 2) == 0 &&
	       str_ieq(str_make(p + DNS_HEADER_SIZE, ask->question_n),
		       str_make(ask->p + DNS_HEADER_SIZE, ask->question_n));
}

/* Of a server that says it cannot read the question, the id must do. */
static bool ask_is_faulted_by(const struct dns_tls_ask *a, const uint8_t *p,
			      size_t n)
{
	return n >= DNS_HEADER_SIZE && memcmp(p, a->ask->p, 2) == 0 &&
	       dns_get16(p + 4) == 0 && (p[3] & 0xf) != DNS_NOERROR;
}

static void tls_on_message(struct dns_tls *t, const uint8_t *p, size_t n)
{
	struct list *it, *tmp;

	list_each(&t->asks, it, tmp) {
		struct dns_tls_ask *a = container_of(it, struct dns_tls_ask,
						     node);

		if (!ask_is_answered_by(a, p, n) && !ask_is_faulted_by(a, p, n))
			continue;
		t->heard++;
		t->told[0] = '\0';
		ask_end(t, a, DNS_SENT_HEARD, p, n);
		return;
	}
}

bool dns_tls_has_id(const struct dns_tls *t, uint16_t id)
{
	struct list *it, *tmp;

	list_each(&t->asks, it, tmp) {
		const struct dns_tls_ask *a = container_of(it,
						struct dns_tls_ask, node);

		if (dns_get16(a->ask->p) == id)
			return true;
	}
	return false;
}

/* --- the connection -------------------------------------------------------- */

static void tls_rearm(struct dns_tls *t)
{
	int64_t now_ms = clock_mono_ms(), ms = t->idle_ms;
	struct timeval tv;

	if (!list_empty(&t->asks))
		ms = list_first(&t->asks, struct dns_tls_ask, node)->until_ms -
		     now_ms;
	else if (t->state == TLS_CLOSED)
		return;
	ms = MAX(ms, 0);
	tv.tv_sec = (time_t)(ms / 1000);
	tv.tv_usec = (suseconds_t)(ms % 1000 * 1000);
	event_add(&t->timer, &tv);
}

static void tls_close(struct dns_tls *t)
{
	if (t->state == TLS_CLOSED)
		return;
	event_del(&t->readable);
	event_del(&t->writable);
	event_del(&t->timer);
	if (t->state == TLS_OPEN) {
		t->lib->ERR_clear_error();
		(void)t->lib->SSL_shutdown(t->ssl);	/* as far as it goes */
	}
	t->lib->SSL_free(t->ssl);
	t->ssl = NULL;
	fd_closep(&t->fd);
	t->fd = -1;
	buf_done(&t->in);
	buf_done(&t->out);
	tls_set_state(t, TLS_CLOSED);
}

/* Once for each fault that is another than the last, not for each question. */
static void tls_tell(struct dns_tls *t, const char *why)
{
	char at[IP_ENDPOINT_TEXT_SIZE];

	if (strncmp(t->told, why, sizeof(t->told) - 1) == 0)
		return;
	memset(t->told, 0, sizeof(t->told));
	memcpy(t->told, why, MIN(strlen(why), sizeof(t->told) - 1));
	ip_endpoint_text(&t->server.at, at);
	log_warn("dns: tls://%s%s%s: %s", at, t->server.tls_name[0] ? "#" : "",
		 t->server.tls_name, why);
}

static int tls_open(struct dns_tls *t, const char **ret_why);

/* What is open is asked again, once, when the connection had been good. */
static void tls_failed(struct dns_tls *t, enum dns_sent how, const char *why)
{
	bool again = t->heard > 0;
	struct list *it, *tmp;

	tls_close(t);
	list_each(&t->asks, it, tmp) {
		struct dns_tls_ask *a = container_of(it, struct dns_tls_ask,
						     node);

		if (!again || a->again)
			ask_end(t, a, how, NULL, 0);
		else
			a->again = true;
	}
	if (!again) {
		tls_tell(t, why);
		t->quiet_how = how;
		t->quiet_until_ms = clock_mono_ms() +
			(how == DNS_SENT_TIMEOUT ? 0 : DNS_TLS_QUIET_MS);
	}
	t->heard = 0;
	if (!list_empty(&t->asks) && tls_open(t, &why) != 0)
		tls_failed(t, DNS_SENT_FAILED, why);
	tls_rearm(t);
}

/* In words, what OpenSSL says of the call that just returned @r. */
static const char *tls_why(const struct dns_tls *t, int r, int saved_errno)
{
	long verdict = t->lib->SSL_get_verify_result(t->ssl);
	unsigned long e = t->lib->ERR_peek_last_error();
	const char *text = NULL;

	if (t->state == TLS_HANDSHAKE && verdict != X509_V_OK)
		return t->lib->X509_verify_cert_error_string(verdict);
	if (e && !ERR_SYSTEM_ERROR(e))
		text = t->lib->ERR_reason_error_string(e);
	if (text)
		return text;
	return r < 0 && saved_errno ? strerror(saved_errno)
				    : "the server closed the connection";
}

/*
 * A call into OpenSSL did not succeed: is it to be made again later?
 * Otherwise the connection is gone when this returns.
 */
static bool tls_later(struct dns_tls *t, int r)
{
	int saved_errno = errno;
	int e = t->lib->SSL_get_error(t->ssl, r);
	char why[TLS_WHY_SIZE];
	bool shaking = t->state == TLS_HANDSHAKE;

	if (e == SSL_ERROR_WANT_READ)
		return true;
	if (e == SSL_ERROR_WANT_WRITE) {
		event_add(&t->writable, NULL);
		return true;
	}
	if (snprintf(why, sizeof(why), "%s%s", shaking ?
		     "no verified TLS connection: " : "",
		     tls_why(t, r, saved_errno)) < 0)
		why[0] = '\0';
	tls_failed(t, shaking ? DNS_SENT_NO_TLS : DNS_SENT_FAILED, why);
	return false;
}

static bool tls_connected(struct dns_tls *t)
{
	socklen_t n = sizeof(int);
	int err = 0;

	if (getsockopt(t->fd, SOL_SOCKET, SO_ERROR, &err, &n) < 0)
		err = errno;
	if (err) {
		tls_failed(t, DNS_SENT_FAILED, strerror(err));
		return false;
	}
	tls_set_state(t, TLS_HANDSHAKE);
	return true;
}

static bool tls_shake(struct dns_tls *t)
{
	int r;

	t->lib->ERR_clear_error();
	errno = 0;
	r = t->lib->SSL_do_handshake(t->ssl);
	if (r != 1)
		return tls_later(t, r) && false;
	tls_set_state(t, TLS_OPEN);
	return true;
}

static bool tls_write(struct dns_tls *t)
{
	while (t->out.n > 0) {
		int r;

		t->lib->ERR_clear_error();
		errno = 0;
		r = t->lib->SSL_write(t->ssl, t->out.p, (int)t->out.n);
		if (r <= 0)
			return tls_later(t, r);
		buf_consume(&t->out, (size_t)r);
	}
	return true;
}

/* All messages that are there whole. */
static void tls_take(struct dns_tls *t)
{
	size_t at = 0;

	for (;;) {
		const uint8_t *p = (const uint8_t *)t->in.p + at;
		size_t left = t->in.n - at, n;

		if (left < 2)
			break;
		n = dns_get16(p);
		if (left < 2 + n)
			break;
		tls_on_message(t, p + 2, n);
		at += 2 + n;
	}
	buf_consume(&t->in, at);
}

static bool tls_read(struct dns_tls *t)
{
	for (unsigned i = 0; i < TLS_TURN; i++) {
		int r;

		if (buf_reserve(&t->in, TLS_CHUNK) != 0) {
			tls_failed(t, DNS_SENT_FAILED, "out of memory");
			return false;
		}
		t->lib->ERR_clear_error();
		errno = 0;
		r = t->lib->SSL_read(t->ssl, t->in.p + t->in.n, TLS_CHUNK);
		if (r <= 0)
			return tls_later(t, r);
		t->in.n += (size_t)r;
		t->heard_ms = clock_mono_ms();
		tls_take(t);
	}
	/* There may be more, with no event to tell of it. */
	event_active(&t->kick, EV_TIMEOUT, 0);
	return true;
}

/* As far as the connection goes now. */
static void tls_drive(struct dns_tls *t)
{
	if (t->state == TLS_HANDSHAKE && !tls_shake(t))
		return;
	if (t->state != TLS_OPEN)
		return;
	if (tls_write(t) && tls_read(t))
		tls_rearm(t);
}

static void tls_readable_cb(evutil_socket_t fd, short what, void *arg)
{
	struct dns_tls *t = arg;

	(void)fd;
	(void)what;
	REQUIRE(t->magic == TLS_MAGIC);
	tls_drive(t);
}

static void tls_writable_cb(evutil_socket_t fd, short what, void *arg)
{
	struct dns_tls *t = arg;

	(void)fd;
	(void)what;
	REQUIRE(t->magic == TLS_MAGIC);
	if (t->state != TLS_CONNECT || tls_connected(t))
		tls_drive(t);
}

static void tls_kick_cb(evutil_socket_t fd, short what, void *arg)
{
	struct dns_tls *t = arg;

	(void)fd;
	(void)what;
	REQUIRE(t->magic == TLS_MAGIC);
	tls_drive(t);
}

static void tls_timer_cb(evutil_socket_t fd, short what, void *arg)
{
	struct dns_tls *t = arg;
	int64_t now_ms = clock_mono_ms();
	bool idle = list_empty(&t->asks), dead = false;
	/* Connected, and no TLS spoken: that is not merely slow. */
	bool shaking = t->state == TLS_HANDSHAKE;
	enum dns_sent how = shaking ? DNS_SENT_NO_TLS : DNS_SENT_TIMEOUT;

	(void)fd;
	(void)what;
	REQUIRE(t->magic == TLS_MAGIC);
	while (!list_empty(&t->asks)) {
		struct dns_tls_ask *a = list_first(&t->asks,
						   struct dns_tls_ask, node);

		if (a->until_ms > now_ms)
			break;
		dead = dead || a->sent_ms > t->heard_ms;
		ask_end(t, a, how, NULL, 0);
	}
	if (dead)
		tls_failed(t, how, shaking ?
			   "no verified TLS connection: no answer in time" :
			   "no answer in time");
	else if (idle)
		tls_close(t);
	else
		tls_rearm(t);
}

/* Whom to expect: the name, else the address. */
static bool tls_expect(struct dns_tls *t)
{
	const struct resolver_server *s = &t->server;
	X509_VERIFY_PARAM *param = t->lib->SSL_get0_param(t->ssl);

	if (!s->tls_name[0])
		return t->lib->X509_VERIFY_PARAM_set1_ip(param,
				s->at.addr.b,
				s->at.addr.family == IP_V4 ? 4 : 16) == 1;
	t->lib->X509_VERIFY_PARAM_set_hostflags(param,
			X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
			X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
	return t->lib->X509_VERIFY_PARAM_set1_host(param, s->tls_name,
						   strlen(s->tls_name)) == 1 &&
	       t->lib->SSL_ctrl(t->ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME,
				TLSEXT_NAMETYPE_host_name,
				(void *)t->server.tls_name) == 1;
}

static int tls_socket(const struct dns_tls *t, int *ret_fd)
{
	CLEANUP(fd_closep) int fd = -1;
	struct sockaddr_storage ss;
	socklen_t n = ip_endpoint_to_sockaddr(&t->server.at, &ss);
	int on = 1, err;

	fd = socket(ss.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
		    0);
	if (fd < 0)
		return -errno;
	err = dns_zone_bind(fd, t->server.zone);
	if (err < 0)
		return err;
	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&ss, n) < 0 &&
	    errno != EINPROGRESS)
		return -errno;
	*ret_fd = fd_take(&fd);
	return 0;
}

/* Begin a connection, with all that is to be asked. */
static int tls_open(struct dns_tls *t, const char **ret_why)
{
	struct list *it, *tmp;
	int err = tls_socket(t, &t->fd);

	*ret_why = strerror(-err);
	if (err < 0)
		return err;
	tls_set_state(t, TLS_CONNECT);
	*ret_why = "out of memory";
	if (event_assign(&t->readable, t->base, t->fd, EV_READ | EV_PERSIST,
			 tls_readable_cb, t) != 0 ||
	    event_assign(&t->writable, t->base, t->fd, EV_WRITE,
			 tls_writable_cb, t) != 0)
		return -ENOMEM;
	t->heard = 0;
	t->heard_ms = 0;
	t->in = BUF_INIT(TLS_FRAME_MAX + TLS_CHUNK);
	t->out = BUF_INIT(DNS_TLS_ASKS_MAX * (2 + DNS_ASK_MAX));
	t->ssl = t->lib->SSL_new(t->lib->ctx);
	if (!t->ssl || t->lib->SSL_set_fd(t->ssl, t->fd) != 1 ||
	    !tls_expect(t))
		return -ENOMEM;
	t->lib->SSL_set_connect_state(t->ssl);
	list_each(&t->asks, it, tmp) {
		err = ask_write(t, container_of(it, struct dns_tls_ask, node));
		if (err)
			return err;
	}
	return event_add(&t->readable, NULL) != 0 ||
	       event_add(&t->writable, NULL) != 0 ? -ENOMEM : 0;
}

int dns_tls_send(struct dns_tls *t, const struct dns_ask *ask,
		 struct dns_tls_ask *slot)
{
	const char *why = "out of memory";
	int err = 0;

	if (t->nasks == DNS_TLS_ASKS_MAX)
		return -EAGAIN;
	slot->ask = ask;
	slot->again = false;
	slot->sent_ms = clock_mono_ms();
	slot->until_ms = slot->sent_ms + t->attempt_ms;
	list_add(&t->asks, &slot->node);
	t->nasks++;
	if (t->state == TLS_CLOSED && slot->sent_ms < t->quiet_until_ms) {
		ask_end(t, slot, t->quiet_how, NULL, 0);
		return 0;
	}
	if (t->state == TLS_CLOSED)
		err = tls_open(t, &why);
	else
		err = ask_write(t, slot);
	if (err) {
		tls_failed(t, DNS_SENT_FAILED, why);
		return 0;
	}
	tls_rearm(t);
	/* Those of one turn are sent together. */
	event_active(&t->kick, EV_TIMEOUT, 0);
	return 0;
}

int dns_tls_new(const struct dns_tls_config *config, struct dns_tls **ret)
{
	struct dns_tls *t = mem_new(sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->magic = TLS_MAGIC;
	t->lib = config->tls;
	t->server = *config->server;
	t->base = config->base;
	t->attempt_ms = config->attempt_ms;
	t->idle_ms = config->idle_ms;
	t->fd = -1;
	list_init(&t->asks);
	if (event_assign(&t->kick, t->base, -1, 0, tls_kick_cb, t) != 0 ||
	    evtimer_assign(&t->timer, t->base, tls_timer_cb, t) != 0) {
		mem_free(t);
		return -ENOMEM;
	}
	*ret = t;
	return 0;
}

void dns_tls_free(struct dns_tls *t)
{
	if (!t)
		return;
	tls_close(t);
	event_del(&t->kick);
	event_del(&t->timer);
	while (!list_empty(&t->asks))
		ask_end(t, list_first(&t->asks, struct dns_tls_ask, node),
			DNS_SENT_FAILED, NULL, 0);
	t->magic = 0;
	mem_free(t);
}

bool dns_tls_is_open(const struct dns_tls *t)
{
	return t->state != TLS_CLOSED;
}
