/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_tls_lib.c - OpenSSL, loaded when DNS over TLS is configured
 *
 * Everything that opens a file happens here, before the process is sealed: the
 * libraries, and the certificates of those who may vouch for servers.  Nothing
 * is taken from the environment, nor from openssl.cnf.
 */
#include "resolver/dns_tls_lib.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "resolver/resolver.h"

#define LIB_NAME	"libssl.so.3"	/* of OpenSSL 3, as its headers are */

static const char *const lib_roots[] = {
	"/etc/ssl/certs/ca-certificates.crt",	/* Debian, Alpine, Arch */
	"/etc/pki/tls/certs/ca-bundle.crt",	/* Fedora */
	"/etc/ssl/ca-bundle.pem",		/* openSUSE */
	"/etc/ssl/cert.pem",
};

static void say(char why[RESOLVER_TLS_WHY_SIZE], const char *what,
		const char *more)
{
	/* What does not fit is cut. */
	if (snprintf(why, RESOLVER_TLS_WHY_SIZE, "%s%s%s", what,
		     more ? ": " : "", more ? more : "") < 0)
		why[0] = '\0';
}

static int lib_load(struct resolver_tls *lib, char why[RESOLVER_TLS_WHY_SIZE])
{
	/* Never closed: it holds state of threads that end later. */
	void *handle = dlopen(LIB_NAME, RTLD_NOW | RTLD_LOCAL);

	if (!handle) {
		say(why, "DNS over TLS needs OpenSSL 3 (Debian: libssl3)",
		    dlerror());
		return -ENOENT;
	}
#define X(name) \
	*(void **)&lib->name = dlsym(handle, #name); \
	if (!lib->name) { \
		say(why, LIB_NAME " has no function " #name, NULL); \
		return -ENOSYS; \
	}
	DNS_TLS_LIB_FUNCTIONS(X)
#undef X
	return 0;
}

static const char *lib_error(const struct resolver_tls *lib)
{
	unsigned long e = lib->ERR_peek_error();
	const char *text = NULL;

	/* Those of the system have no text there. */
	if (ERR_SYSTEM_ERROR(e))
		return strerror(ERR_GET_REASON(e));
	if (e)
		text = lib->ERR_reason_error_string(e);
	return text ? text : "unknown error";
}

static int lib_load_roots(struct resolver_tls *lib, const char *ca_file,
			  char why[RESOLVER_TLS_WHY_SIZE])
{
	for (size_t i = 0; !ca_file && i < ARRAY_SIZE(lib_roots); i++) {
		if (access(lib_roots[i], R_OK) == 0)
			ca_file = lib_roots[i];
	}
	if (!ca_file) {
		say(why, "no certificates of this system's to verify servers with: install ca-certificates, or give a file of your own",
		    NULL);
		return -ENOENT;
	}
	lib->ERR_clear_error();
	if (lib->SSL_CTX_load_verify_file(lib->ctx, ca_file) == 1)
		return 0;
	say(why, ca_file, lib_error(lib));
	return -EINVAL;
}

static int lib_make_context(struct resolver_tls *lib)
{
	SSL_CTX *ctx;

	if (lib->OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG |
				  OPENSSL_INIT_NO_ATEXIT, NULL) != 1)
		return -EIO;
	ctx = lib->SSL_CTX_new(lib->TLS_client_method());
	if (!ctx)
		return -ENOMEM;
	lib->ctx = ctx;
	if (lib->SSL_CTX_ctrl(ctx, SSL_CTRL_SET_MIN_PROTO_VERSION,
			      TLS1_2_VERSION, NULL) != 1)
		return -EIO;
	lib->SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	lib->SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION |
				 SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET);
	lib->SSL_CTX_ctrl(ctx, SSL_CTRL_SET_SESS_CACHE_MODE,
			  SSL_SESS_CACHE_OFF, NULL);
	lib->SSL_CTX_ctrl(ctx, SSL_CTRL_MODE, SSL_MODE_ENABLE_PARTIAL_WRITE |
			  SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
			  SSL_MODE_RELEASE_BUFFERS, NULL);
	return 0;
}

int resolver_tls_new(const char *ca_file, struct resolver_tls **ret,
		     char why[RESOLVER_TLS_WHY_SIZE])
{
	struct resolver_tls *lib = mem_new(sizeof(*lib));
	int err;

	say(why, "out of memory", NULL);
	if (!lib)
		return -ENOMEM;
	err = lib_load(lib, why);
	if (!err) {
		err = lib_make_context(lib);
		if (err)
			say(why, "OpenSSL", lib_error(lib));
	}
	if (!err)
		err = lib_load_roots(lib, ca_file, why);
	if (err) {
		resolver_tls_free(lib);
		return err;
	}
	*ret = lib;
	return 0;
}

void resolver_tls_free(struct resolver_tls *lib)
{
	if (!lib)
		return;
	if (lib->ctx)
		lib->SSL_CTX_free(lib->ctx);
	mem_free(lib);
}
