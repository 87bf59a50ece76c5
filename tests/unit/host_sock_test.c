/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_sock_test.c - sockets that workers share, and nobody else
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "proxy/host_sock.h"
#include "proxy/own_doors.h"
#include "tests/unit/proxy_lab.h"

#define HOUSE	"[service]\nlog = /log\n[plug]\npolicies = /policies\n"
#define WORKERS	4

static struct config config;
static struct host_socks socks;

static void on_error(void *arg, const struct config_place *place,
		     const char *message)
{
	(void)arg;
	fail_msg("%u: %s", place->line, message);
}

static int open_as(const char *text, size_t workers)
{
	assert_int_equal(config_parse(str_from(text), on_error, NULL, &config),
			 0);
	return host_socks_open(&config, workers, &socks);
}

static int close_all(void **state)
{
	(void)state;
	host_socks_done(&socks);
	config_done(&config);
	return 0;
}

/* A socket bound to @at; -errno where that is not to be had. */
static int bound(const char *at, int type, bool share)
{
	struct ip_endpoint end;
	struct sockaddr_storage ss;
	socklen_t n;
	int fd, on = 1;

	assert_int_equal(ip_endpoint_parse(str_from(at), 0, &end), 0);
	n = ip_endpoint_to_sockaddr(&end, &ss);
	fd = socket(ss.ss_family, type | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	if (share)
		assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on,
					    sizeof(on)), 0);
	if (bind(fd, (struct sockaddr *)&ss, n) < 0 ||
	    (type == SOCK_STREAM && listen(fd, 8) < 0)) {
		int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}

/* Whose socket of @role has something to take; taken. */
static size_t heard_by(enum sandbox_role role)
{
	size_t i, who = WORKERS;

	for (i = 0; i < socks.n; i++) {
		struct pollfd p = { .fd = socks.sock[i].fd, .events = POLLIN };
		char byte;
		int fd;

		if (socks.sock[i].role != role || poll(&p, 1, 0) != 1)
			continue;
		assert_int_equal(who, WORKERS);
		who = socks.sock[i].worker;
		if (role == SANDBOX_DNS_UDP) {
			assert_int_equal(recv(p.fd, &byte, 1, 0), 1);
			continue;
		}
		fd = accept4(p.fd, NULL, NULL, SOCK_CLOEXEC);
		assert_true(fd >= 0);
		lab_reset(fd);
	}
	assert_in_range(who, 0, WORKERS - 1);
	return who;
}

static void send_to(const char *from, const char *to, int type)
{
	int fd = bound(from, type == SOCK_STREAM ? SOCK_STREAM : SOCK_DGRAM,
		       false);
	struct sockaddr_storage ss;
	struct ip_endpoint end;
	socklen_t n;

	if (type == SOCK_STREAM) {
		close(fd);
		assert_int_equal(ip_endpoint_parse(str_from(from), 0, &end), 0);
		n = ip_endpoint_to_sockaddr(&end, &ss);
		fd = socket(ss.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_int_equal(bind(fd, (struct sockaddr *)&ss, n), 0);
	}
	assert_int_equal(ip_endpoint_parse(str_from(to), 0, &end), 0);
	n = ip_endpoint_to_sockaddr(&end, &ss);
	assert_int_equal(connect(fd, (struct sockaddr *)&ss, n), 0);
	if (type == SOCK_DGRAM)
		assert_int_equal(send(fd, "x", 1, 0), 1);
	close(fd);
}

static void each_worker_has_a_socket_of_each_address(void **state)
{
	size_t i, per[WORKERS] = { 0 };

	(void)state;
	assert_int_equal(open_as(HOUSE "[listen a]\npolicy = p\n"
				 "http = localhost\nsocks = 127.0.0.1\n"
				 "dns = 127.0.0.1\n"
				 "[listen b]\npolicy = p\nhttp = 127.0.0.9\n",
				 WORKERS), 0);
	assert_int_equal(socks.n, 6 * WORKERS);
	for (i = 0; i < socks.n; i++)
		per[socks.sock[i].worker]++;
	for (i = 0; i < WORKERS; i++)
		assert_int_equal(per[i], 6);
	/* TCP and UDP of DNS are two of them. */
	assert_int_equal(socks.doors->n, 6);
}

/* A second daemon of the same user: not even if it wants to share. */
static void nobody_else_gets_an_address_that_is_shared(void **state)
{
	static const char text[] = HOUSE "[listen a]\npolicy = p\n"
		"http = 127.0.0.1:3128\ndns = 127.0.0.1:5353\n";
	struct host_socks first;
	struct config kept;
	int fd;

	(void)state;
	assert_int_equal(open_as(text, WORKERS), 0);
	first = socks;
	kept = config;
	assert_int_equal(open_as(text, WORKERS), -EADDRINUSE);
	close_all(NULL);
	assert_int_equal(open_as(HOUSE "[listen a]\npolicy = p\n"
				 "dns = 127.0.0.1:5353\n", 1), -EADDRINUSE);
	close_all(NULL);
	socks = first;
	config = kept;
	close_all(NULL);
	/* And we take part in nobody's sharing. */
	fd = bound("127.0.0.1:3128", SOCK_STREAM, true);
	assert_true(fd >= 0);
	assert_int_equal(open_as(text, WORKERS), -EADDRINUSE);
	close(fd);
	close_all(NULL);
	fd = bound("127.0.0.1:5353", SOCK_DGRAM, true);
	assert_true(fd >= 0);
	assert_int_equal(open_as(text, WORKERS), -EADDRINUSE);
	close(fd);
	close_all(NULL);
	assert_int_equal(open_as(text, WORKERS), 0);
}

/* What lingers of connections of a daemon before does not keep one out. */
static void a_restart_gets_its_addresses_back(void **state)
{
	static const char text[] = HOUSE "[listen a]\npolicy = p\n"
		"http = 127.0.0.1:3128\n";
	int client, server;

	(void)state;
	assert_int_equal(open_as(text, 1), 0);
	client = lab_connect("127.0.0.1", 3128);
	server = accept4(socks.sock[0].fd, NULL, NULL, SOCK_CLOEXEC);
	assert_true(server >= 0);
	/* Who closes first lingers in TIME_WAIT. */
	close(server);
	lab_expect_fin(NULL, client);
	close(client);
	close_all(NULL);
	assert_int_equal(open_as(text, WORKERS), 0);
}

static void one_client_always_comes_to_the_same_worker(void **state)
{
	char from[32];
	unsigned seen = 0, i;

	(void)state;
	assert_int_equal(open_as(HOUSE "[listen a]\npolicy = p\n"
				 "http = 127.0.0.1:3128\nsocks = 127.0.0.1\n"
				 "dns = 127.0.0.1:53\n", WORKERS), 0);
	for (i = 1; i <= 64; i++) {
		size_t who;

		assert_true(snprintf(from, sizeof(from), "127.0.3.%u", i) > 0);
		send_to(from, "127.0.0.1:53", SOCK_DGRAM);
		who = heard_by(SANDBOX_DNS_UDP);
		send_to(from, "127.0.0.1:53", SOCK_STREAM);
		assert_int_equal(heard_by(SANDBOX_DNS_TCP), who);
		send_to(from, "127.0.0.1:3128", SOCK_STREAM);
		assert_int_equal(heard_by(SANDBOX_HTTP), who);
		send_to(from, "127.0.0.1:1080", SOCK_STREAM);
		assert_int_equal(heard_by(SANDBOX_SOCKS), who);
		seen |= 1u << who;
	}
	/* And clients are spread over all of them. */
	assert_int_equal(seen, (1u << WORKERS) - 1);
}

/* Any address of the lab's may be bound to. */
static void bind_all(void)
{
	FILE *f = fopen("/proc/sys/net/ipv6/ip_nonlocal_bind", "we");

	assert_non_null(f);
	assert_true(fputs("1", f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void so_does_one_of_ipv6(void **state)
{
	char from[64];
	unsigned seen = 0, i;

	(void)state;
	bind_all();
	assert_int_equal(open_as(HOUSE "[listen a]\npolicy = p\n"
				 "clients = 2001:db8::/32\n"
				 "http = [2001:db8:3::1]:3128\n"
				 "dns = [2001:db8:3::1]:53\n", WORKERS), 0);
	for (i = 1; i <= 64; i++) {
		size_t who;

		assert_true(snprintf(from, sizeof(from), "2001:db8:3::3:%x",
				     i) > 0);
		send_to(from, "[2001:db8:3::1]:53", SOCK_DGRAM);
		who = heard_by(SANDBOX_DNS_UDP);
		send_to(from, "[2001:db8:3::1]:3128", SOCK_STREAM);
		assert_int_equal(heard_by(SANDBOX_HTTP), who);
		seen |= 1u << who;
	}
	assert_int_equal(seen, (1u << WORKERS) - 1);
}

static void an_address_of_nobody_is_an_error(void **state)
{
	(void)state;
	assert_int_equal(open_as(HOUSE "[listen a]\npolicy = p\n"
				 "clients = 192.0.2.0/24\nhttp = 240.0.0.1\n"
				 , 1), -EADDRNOTAVAIL);
}

#define CLEAN(f)	cmocka_unit_test_teardown(f, close_all)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLEAN(each_worker_has_a_socket_of_each_address),
		CLEAN(nobody_else_gets_an_address_that_is_shared),
		CLEAN(a_restart_gets_its_addresses_back),
		CLEAN(one_client_always_comes_to_the_same_worker),
		CLEAN(so_does_one_of_ipv6),
		CLEAN(an_address_of_nobody_is_an_error),
	};

	lab_enter();
	return cmocka_run_group_tests_name("host_sock", tests, NULL, NULL);
}
