/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls_lab.c - a name server of the lab that speaks DNS over TLS
 */
#include "tests/unit/tls_lab.h"

#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"

#define LAB_CONNS	16
#define LAB_IN		65537

/* --- certificates ---------------------------------------------------------- */

struct pair {
	X509 *cert;
	EVP_PKEY *key;
};

static struct pair authority;
static char authority_path[] = "/tmp/penstock-tls-lab-XXXXXX";

static void extend(X509 *cert, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509_EXTENSION *ext;

	X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
	ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	REQUIRE(ext && X509_add_ext(cert, ext, -1) == 1);
	X509_EXTENSION_free(ext);
}

/* @issuer: NULL for one that vouches for itself */
static struct pair make(const char *name, const struct pair *issuer,
			long from_s, long until_s)
{
	static long serial = 1;
	struct pair p = { X509_new(), EVP_EC_gen("P-256") };
	X509_NAME *subject;

	REQUIRE(p.cert && p.key && X509_set_version(p.cert, 2) == 1);
	ASN1_INTEGER_set(X509_get_serialNumber(p.cert), serial++);
	X509_gmtime_adj(X509_getm_notBefore(p.cert), from_s);
	X509_gmtime_adj(X509_getm_notAfter(p.cert), until_s);
	subject = X509_get_subject_name(p.cert);
	REQUIRE(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
					   (const unsigned char *)name, -1, -1,
					   0) == 1);
	REQUIRE(X509_set_issuer_name(p.cert, issuer ?
				     X509_get_subject_name(issuer->cert) :
				     subject) == 1);
	REQUIRE(X509_set_pubkey(p.cert, p.key) == 1);
	return p;
}

static void sign(struct pair *p, const struct pair *issuer)
{
	REQUIRE(X509_sign(p->cert, issuer->key, EVP_sha256()) > 0);
}

static struct pair make_authority(const char *name)
{
	struct pair p = make(name, NULL, -3600, 3600);

	extend(p.cert, p.cert, NID_basic_constraints, "critical,CA:TRUE");
	extend(p.cert, p.cert, NID_key_usage, "critical,keyCertSign");
	sign(&p, &p);
	return p;
}

static void pair_done(struct pair *p)
{
	X509_free(p->cert);
	EVP_PKEY_free(p->key);
	memset(p, 0, sizeof(*p));
}

static struct pair make_server(enum tls_lab_cert cert)
{
	struct pair stranger = { NULL, NULL };
	const struct pair *issuer = &authority;
	bool expired = cert == TLS_LAB_EXPIRED;
	struct pair p;

	if (cert == TLS_LAB_STRANGER) {
		stranger = make_authority("somebody else");
		issuer = &stranger;
	}
	p = make("dns.example.net", issuer, -3600, expired ? -60 : 3600);
	if (cert == TLS_LAB_OTHER_NAME)
		extend(p.cert, issuer->cert, NID_subject_alt_name,
		       "DNS:dns.example.org,IP:127.0.0.9");
	else if (cert != TLS_LAB_COMMON_NAME)
		extend(p.cert, issuer->cert, NID_subject_alt_name,
		       "DNS:dns.example.net,IP:127.0.0.1,IP:::1");
	sign(&p, issuer);
	pair_done(&stranger);
	return p;
}

const char *tls_lab_start(void)
{
	int fd = mkstemp(authority_path);
	FILE *f;

	REQUIRE(fd >= 0);
	f = fdopen(fd, "w");
	authority = make_authority("the lab");
	REQUIRE(f && PEM_write_X509(f, authority.cert) == 1);
	REQUIRE(fclose(f) == 0);
	return authority_path;
}

void tls_lab_stop(void)
{
	pair_done(&authority);
	(void)unlink(authority_path);
}

/* --- the server ------------------------------------------------------------ */

struct tls_conn {
	struct tls_fake *fake;
	struct event *ev;
	int fd;
	SSL *ssl;
	uint8_t in[LAB_IN];
	size_t n;
};

struct tls_fake {
	struct event_base *base;
	SSL_CTX *ctx;
	fake_fn *fn;
	void *arg;
	int fd;
	struct event *ev;
	struct tls_conn *conn[LAB_CONNS];
	unsigned conns, count;
	char sni[256];
};

static void conn_end(struct tls_conn *c)
{
	for (size_t i = 0; i < LAB_CONNS; i++) {
		if (c->fake->conn[i] == c)
			c->fake->conn[i] = NULL;
	}
	event_free(c->ev);
	SSL_free(c->ssl);
	close(c->fd);
	mem_free(c);
}

/* What a test answers is small: it fits into the socket's buffer. */
static void conn_send(const struct fake_ask *ask, const void *p, size_t n)
{
	struct tls_fake *f = ask->tls_fake;
	uint8_t out[2 + 65535];

	out[0] = (uint8_t)(n >> 8);
	out[1] = (uint8_t)n;
	memcpy(out + 2, p, n);
	/* A test may answer late: the connection may be gone. */
	for (size_t i = 0; i < LAB_CONNS; i++) {
		if (f->conn[i] && f->conn[i]->fd == ask->fd)
			(void)!SSL_write(f->conn[i]->ssl, out, (int)n + 2);
	}
}

static void conn_take(struct tls_conn *c)
{
	struct tls_fake *f = c->fake;
	struct fake_ask ask = { .tcp = true, .fd = c->fd, .tls_fake = f,
				.send = conn_send, .base = f->base };
	int fd = c->fd;

	/* The test may end the connection while it is told. */
	while (c->n >= 2 && c->n >= 2u + dns_get16(c->in)) {
		uint8_t p[LAB_IN];

		ask.n = dns_get16(c->in);
		memcpy(p, c->in + 2, ask.n);
		c->n -= 2 + ask.n;
		memmove(c->in, c->in + 2 + ask.n, c->n);
		ask.p = p;
		f->count++;
		(void)dns_question_parse(ask.p, ask.n, &ask.q);
		f->fn(f->arg, &ask);
		for (size_t i = 0; ; i++) {
			if (i == LAB_CONNS)
				return;
			if (f->conn[i] == c && c->fd == fd)
				break;
		}
	}
}

static void conn_cb(evutil_socket_t fd, short what, void *arg)
{
	struct tls_conn *c = arg;
	int r = 1, e;

	(void)fd;
	(void)what;
	if (!SSL_is_init_finished(c->ssl))
		r = SSL_accept(c->ssl);
	if (r == 1)
		r = SSL_read(c->ssl, c->in + c->n, (int)(sizeof(c->in) - c->n));
	if (r > 0) {
		c->n += (size_t)r;
		if (SSL_pending(c->ssl))
			event_active(c->ev, EV_READ, 0);
		conn_take(c);
		return;
	}
	e = SSL_get_error(c->ssl, r);
	if (e != SSL_ERROR_WANT_READ)
		conn_end(c);
}

static void accept_cb(evutil_socket_t fd, short what, void *arg)
{
	struct tls_fake *f = arg;
	struct tls_conn *c = mem_new(sizeof(*c));
	size_t i = 0;

	(void)what;
	REQUIRE(c);
	c->fake = f;
	c->fd = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	REQUIRE(c->fd >= 0);
	while (i < LAB_CONNS && f->conn[i])
		i++;
	REQUIRE(i < LAB_CONNS);
	f->conn[i] = c;
	f->conns++;
	c->ssl = SSL_new(f->ctx);
	REQUIRE(c->ssl && SSL_set_fd(c->ssl, c->fd) == 1);
	SSL_set_accept_state(c->ssl);
	c->ev = event_new(f->base, c->fd, EV_READ | EV_PERSIST, conn_cb, c);
	REQUIRE(c->ev && event_add(c->ev, NULL) == 0);
}

static int sni_cb(SSL *ssl, int *alert, void *arg)
{
	const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
	struct tls_fake *f = arg;

	(void)alert;
	REQUIRE(snprintf(f->sni, sizeof(f->sni), "%s", name ? name : "") >= 0);
	return SSL_TLSEXT_ERR_OK;
}

struct tls_fake *tls_fake_new(struct event_base *base, const char *addr,
			      uint16_t port, enum tls_lab_cert cert,
			      fake_fn *fn, void *arg)
{
	struct tls_fake *f = mem_new(sizeof(*f));
	struct pair p = make_server(cert);

	REQUIRE(f);
	f->base = base;
	f->fn = fn;
	f->arg = arg;
	f->ctx = SSL_CTX_new(TLS_server_method());
	REQUIRE(f->ctx && SSL_CTX_use_certificate(f->ctx, p.cert) == 1 &&
		SSL_CTX_use_PrivateKey(f->ctx, p.key) == 1);
	SSL_CTX_set_tlsext_servername_callback(f->ctx, sni_cb);
	SSL_CTX_set_tlsext_servername_arg(f->ctx, f);
	pair_done(&p);
	f->fd = fake_listen(addr, port);
	f->ev = event_new(base, f->fd, EV_READ | EV_PERSIST, accept_cb, f);
	REQUIRE(f->ev && event_add(f->ev, NULL) == 0);
	return f;
}

void tls_fake_hang_up(struct tls_fake *f)
{
	for (size_t i = 0; i < LAB_CONNS; i++) {
		if (!f->conn[i])
			continue;
		(void)SSL_shutdown(f->conn[i]->ssl);
		conn_end(f->conn[i]);
	}
}

void tls_fake_free(struct tls_fake *f)
{
	if (!f)
		return;
	tls_fake_hang_up(f);
	event_free(f->ev);
	close(f->fd);
	SSL_CTX_free(f->ctx);
	mem_free(f);
}

void tls_fake_set(struct tls_fake *f, fake_fn *fn, void *arg)
{
	f->fn = fn;
	f->arg = arg;
}

void tls_fake_age(struct tls_fake *f)
{
	SSL_CTX_set_security_level(f->ctx, 0);
	REQUIRE(SSL_CTX_set_min_proto_version(f->ctx, TLS1_VERSION) == 1);
	REQUIRE(SSL_CTX_set_max_proto_version(f->ctx, TLS1_1_VERSION) == 1);
}

unsigned tls_fake_conns(const struct tls_fake *f)
{
	return f->conns;
}

unsigned tls_fake_open(const struct tls_fake *f)
{
	unsigned n = 0;

	for (size_t i = 0; i < LAB_CONNS; i++)
		n += f->conn[i] != NULL;
	return n;
}

unsigned tls_fake_count(const struct tls_fake *f)
{
	return f->count;
}

const char *tls_fake_sni(const struct tls_fake *f)
{
	return f->sni;
}
