/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_tls_lib.h - OpenSSL, loaded when DNS over TLS is configured
 *
 * Linked, its two libraries would cost every start of a daemon some 140 page
 * faults, and more time than the rest of the start; so they are loaded by those
 * who use them.  Its functions are called through a table of their own names,
 * with the types of its headers.
 */
#ifndef RESOLVER_DNS_TLS_LIB_H
#define RESOLVER_DNS_TLS_LIB_H

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/compiler.h"

#define DNS_TLS_LIB_FUNCTIONS(X) \
	X(OPENSSL_init_ssl) \
	X(TLS_client_method) \
	X(SSL_CTX_new) \
	X(SSL_CTX_free) \
	X(SSL_CTX_ctrl) \
	X(SSL_CTX_set_options) \
	X(SSL_CTX_set_verify) \
	X(SSL_CTX_load_verify_file) \
	X(SSL_new) \
	X(SSL_free) \
	X(SSL_ctrl) \
	X(SSL_set_fd) \
	X(SSL_set_connect_state) \
	X(SSL_do_handshake) \
	X(SSL_read) \
	X(SSL_write) \
	X(SSL_shutdown) \
	X(SSL_get_error) \
	X(SSL_get_verify_result) \
	X(SSL_get0_param) \
	X(X509_VERIFY_PARAM_set1_host) \
	X(X509_VERIFY_PARAM_set1_ip) \
	X(X509_VERIFY_PARAM_set_hostflags) \
	X(X509_verify_cert_error_string) \
	X(ERR_clear_error) \
	X(ERR_peek_error) \
	X(ERR_peek_last_error) \
	X(ERR_reason_error_string)

struct resolver_tls {
#define X(name) __typeof__(name) *name;
	DNS_TLS_LIB_FUNCTIONS(X)
#undef X
	SSL_CTX *ctx;
};

#endif /* RESOLVER_DNS_TLS_LIB_H */
