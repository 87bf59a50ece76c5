/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ns_net_test.c - link, sockets and firewall of a sandbox, in a real namespace
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "netns-setup/fault.h"
#include "netns-setup/ns_link.h"
#include "netns-setup/ns_listen.h"
#include "netns-setup/ns_nft.h"
#include "netns-setup/ns_nft_rules.h"
#include "netns-setup/selftest.h"
#include "tests/unit/netns_lab.h"

#define FAR4	"203.0.113.9"
#define FAR6	"2001:db8:3::9"

struct net {
	struct ns_sockets s;
	struct ns_nft_config nft;
	bool v6;
};

static socklen_t to_sockaddr(const char *addr, uint16_t port,
			     struct sockaddr_storage *ret)
{
	struct sockaddr_in *a4 = (void *)ret;
	struct sockaddr_in6 *a6 = (void *)ret;

	memset(ret, 0, sizeof(*ret));
	if (inet_pton(AF_INET, addr, &a4->sin_addr) == 1) {
		a4->sin_family = AF_INET;
		a4->sin_port = htons(port);
		return sizeof(*a4);
	}
	LAB_CHECK(inet_pton(AF_INET6, addr, &a6->sin6_addr) == 1);
	a6->sin6_family = AF_INET6;
	a6->sin6_port = htons(port);
	return sizeof(*a6);
}

static int open_socket(const char *addr, int type)
{
	int fd = socket(strchr(addr, ':') ? AF_INET6 : AF_INET,
			type | SOCK_CLOEXEC, 0);

	LAB_CHECK(fd >= 0);
	return fd;
}

/* 0, or the errno of connect(2). */
static int tcp_try(const char *from, const char *to, uint16_t port, int *ret)
{
	struct sockaddr_storage a;
	int fd = open_socket(to, SOCK_STREAM), one = 1;
	socklen_t n;
	int err;

	if (from) {
		LAB_CHECK(!setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &one,
				      sizeof(one)) || !strchr(from, ':'));
		n = to_sockaddr(from, 0, &a);
		LAB_CHECK(bind(fd, (struct sockaddr *)&a, n) == 0);
	}
	n = to_sockaddr(to, port, &a);
	err = connect(fd, (struct sockaddr *)&a, n) ? errno : 0;
	if (ret)
		*ret = fd;
	else
		close(fd);
	return err;
}

/* 0 when the datagram went, or the errno of sendto(2). */
static int udp_try(const char *to, uint16_t port)
{
	struct sockaddr_storage a;
	socklen_t n = to_sockaddr(to, port, &a);
	int fd = open_socket(to, SOCK_DGRAM);
	int err = sendto(fd, "x", 1, 0, (struct sockaddr *)&a, n) == 1 ? 0 :
									 errno;

	close(fd);
	return err;
}

static void net_up(struct net *net)
{
	struct launch_error err = { 0, "" };
	int e;

	*net = (struct net){ .s = NS_SOCKETS_INIT };
	e = ns_link_up(&net->v6, &err);
	if (!e)
		e = ns_listen_open(&net->s, net->v6, &err);
	if (!e)
		e = ns_listen_tproxy(&net->s, net->v6, false, &err);
	net->nft = (struct ns_nft_config){ net->s.tproxy4, net->s.tproxy6,
					   net->s.fd[PLUG_FD_NFLOG] >= 0 };
	if (!e)
		e = ns_nft_load(&net->nft, &err);
	if (e)
		fprintf(stderr, "# %s\n", err.text);
	LAB_CHECK(e == 0);
}

/* --- link ----------------------------------------------------------------- */

static void body_v6_first(void *arg)
{
	struct net net;
	(void)arg;

	net_up(&net);
	/* SBX-30: no tentative address, even as the very first action. */
	LAB_CHECK(net.v6);
	LAB_CHECK(tcp_try(NULL, FAR6, 443, NULL) == 0);
}

static void an_ipv6_connection_works_as_the_first_action(void **state)
{
	(void)state;
	assert_int_equal(lab_run(body_v6_first, NULL), 0);
}

static void body_no_v6(void *arg)
{
	int fd = open("/proc/sys/net/ipv6/conf/all/disable_ipv6", O_WRONLY);
	struct net net;
	(void)arg;

	LAB_CHECK(fd >= 0 && write(fd, "1", 1) == 1);
	close(fd);
	net_up(&net);
	LAB_CHECK(!net.v6);
	LAB_CHECK(net.s.fd[PLUG_FD_DNS_UDP6] == -1);
	LAB_CHECK(net.s.fd[PLUG_FD_TPROXY6] == -1);
	LAB_CHECK(tcp_try(NULL, FAR4, 443, NULL) == 0);
	LAB_CHECK(tcp_try(NULL, FAR6, 443, NULL) != 0);
}

/* OPS-12, SBX-07 */
static void without_ipv6_the_sandbox_has_ipv4_alone(void **state)
{
	(void)state;
	assert_int_equal(lab_run(body_no_v6, NULL), 0);
}

static void body_twice(void *arg)
{
	struct launch_error err = { 0, "" };
	bool v6;
	(void)arg;

	LAB_CHECK(ns_link_up(&v6, &err) == 0);
	LAB_CHECK(ns_link_up(&v6, &err) == 0);
}

static void setting_the_link_up_twice_does_no_harm(void **state)
{
	(void)state;
	assert_int_equal(lab_run(body_twice, NULL), 0);
}

/* --- sockets and firewall --------------------------------------------------- */

static void tproxied(const struct net *net, const char *to, uint16_t port)
{
	int lfd = net->s.fd[strchr(to, ':') ? PLUG_FD_TPROXY6 :
					      PLUG_FD_TPROXY4];
	struct sockaddr_storage want, is = { 0 };
	socklen_t n = sizeof(is), wn = to_sockaddr(to, port, &want);
	struct pollfd p = { lfd, POLLIN, 0 };
	int fd = -1, got;

	LAB_CHECK(tcp_try(NULL, to, port, &fd) == 0);
	LAB_CHECK(poll(&p, 1, 5000) == 1);
	got = accept(lfd, NULL, NULL);
	LAB_CHECK(got >= 0);
	LAB_CHECK(getsockname(got, (struct sockaddr *)&is, &n) == 0);
	LAB_CHECK(n == wn && memcmp(&want, &is, n) == 0);
	close(got);
	close(fd);
}

static void body_tproxy(void *arg)
{
	struct net net;
	(void)arg;

	net_up(&net);
	tproxied(&net, FAR4, 443);
	tproxied(&net, FAR4, 9);
	tproxied(&net, FAR6, 443);
	tproxied(&net, "169.254.169.254", 80);
	tproxied(&net, "10.1.2.3", 22);
	/* The listener hit directly is reset, in both families. */
	LAB_CHECK(tcp_try(NULL, PLUG_TPROXY_ADDR4, net.s.tproxy4, NULL) ==
		  ECONNREFUSED);
	LAB_CHECK(tcp_try(NULL, PLUG_TPROXY_ADDR6, net.s.tproxy6, NULL) ==
		  ECONNREFUSED);
	/* A source that is not the sandbox's is refused at once. */
	LAB_CHECK(tcp_try("203.0.113.77", FAR4, 443, NULL) == ECONNREFUSED);
	LAB_CHECK(tcp_try("2001:db8:3::77", FAR6, 443, NULL) == ECONNREFUSED);
}

static void any_tcp_arrives_with_the_address_that_was_asked(void **state)
{
	(void)state;
	assert_int_equal(lab_run(body_tproxy, NULL), 0);
}

static void body_daemon_gone(void *arg)
{
	struct net net;
	(void)arg;

	net_up(&net);
	ns_sockets_close(&net.s);
	/* SBX-05: refused, not dropped. */
	LAB_CHECK(tcp_try(NULL, FAR4, 443, NULL) == ECONNREFUSED);
	LAB_CHECK(tcp_try(NULL, FAR6, 443, NULL) == ECONNREFUSED);
	LAB_CHECK(tcp_try(NULL, FAR4, 53, NULL) == ECONNREFUSED);
	LAB_CHECK(tcp_try(NULL, "127.0.0.1", 3128, NULL) == ECONNREFUSED);
	LAB_CHECK(tcp_try(NULL, "127.0.0.1", 1080, NULL) == ECONNREFUSED);
}

static void when_the_sockets_close_everything_is_refused_at_once(void **state)
{
	(void)state;
	assert_int_equal(lab_run(body_daemon_gone, NULL), 0);
}

static bool logged(int fd)
{
	struct pollfd p = { fd, POLLIN, 0 };
	char skip[4096];

	if (poll(&p, 1, 5000) != 1)
		return false;
	while (recv(fd, skip, sizeof(skip), 0) > 0)
		;
	return true;
}

static void body_udp(void *arg)
{
	struct net net;
	int raw;
	struct sockaddr_storage a;
	socklen_t n = to_sockaddr(FAR4, 0, &a);
	(void)arg;

	net_up(&net);
	LAB_CHECK(udp_try(FAR4, 443) == EPERM);
	LAB_CHECK(logged(net.s.fd[PLUG_FD_NFLOG]));
	LAB_CHECK(udp_try(FAR6, 443) == EPERM);
	LAB_CHECK(logged(net.s.fd[PLUG_FD_NFLOG]));
	raw = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
	LAB_CHECK(raw >= 0);
	LAB_CHECK(sendto(raw, "\x08\0\xf7\xff\0\0\0\0", 8, 0,
			 (struct sockaddr *)&a, n) == -1 && errno == EPERM);
	LAB_CHECK(logged(net.s.fd[PLUG_FD_NFLOG]));
	/* The controls: DNS to any address, and the sandbox's own addresses. */
	LAB_CHECK(udp_try(FAR4, 53) == 0);
	LAB_CHECK(udp_try(FAR6, 53) == 0);
	LAB_CHECK(udp_try("127.0.0.1", 9) == 0);
	LAB_CHECK(udp_try(NS_ADDR6, 9) == 0);
	LAB_CHECK(recv(net.s.fd[PLUG_FD_NFLOG], &a, sizeof(a), 0) == -1);
}

/* SBX-09 */
static void udp_and_icmp_are_refused_at_once_and_logged(void **state)
{
	(void)state;
	assert_int_equal(lab_run(body_udp, NULL), 0);
}

static int bind_try(int type, const char *addr, uint16_t port)
{
	struct sockaddr_storage a;
	socklen_t n = to_sockaddr(addr, port, &a);
	int fd = open_socket(addr, type), one = 1, err;

	LAB_CHECK(!setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)));
	LAB_CHECK(!setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)));
	err = bind(fd, (struct sockaddr *)&a, n) ? errno : 0;
	close(fd);
	return err;
}

static void body_steal(void *arg)
{
	struct net net;
	(void)arg;

	net_up(&net);
	LAB_CHECK(bind_try(SOCK_DGRAM, "127.0.0.1", 53) == EADDRINUSE);
	LAB_CHECK(bind_try(SOCK_DGRAM, "8.8.8.8", 53) == EADDRINUSE);
	LAB_CHECK(bind_try(SOCK_STREAM, "127.0.0.1", 53) == EADDRINUSE);
	LAB_CHECK(bind_try(SOCK_STREAM, "127.0.0.1", 3128) == EADDRINUSE);
	LAB_CHECK(bind_try(SOCK_STREAM, "127.0.0.1", 1080) == EADDRINUSE);
	LAB_CHECK(bind_try(SOCK_STREAM, "127.0.0.2", net.s.tproxy4) ==
		  EADDRINUSE);
	LAB_CHECK(bind_try(SOCK_STREAM, "127.0.0.1", 8000) == 0);
}

static void no_port_of_ours_can_be_bound_beside_us(void **state)
{
	(void)state;
	assert_int_equal(lab_run(body_steal, NULL), 0);
}

/* --- without a firewall ------------------------------------------------------ */

/* A process that sends the first datagram to @fd back. */
static void echo(int fd)
{
	struct sockaddr_storage from;
	socklen_t n = sizeof(from);
	char byte;
	pid_t pid = fork();

	LAB_CHECK(pid >= 0);
	if (pid)
		return;
	LAB_CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
	LAB_CHECK(recvfrom(fd, &byte, 1, 0, (struct sockaddr *)&from, &n) == 1);
	LAB_CHECK(sendto(fd, &byte, 1, 0, (struct sockaddr *)&from, n) == 1);
	_exit(0);
}

/*
 * The self-test where nothing but lo is up; @arg: somebody hears UDP on that
 * address.  It never gets to an answer, for want of a daemon.
 */
static void body_selftest(void *arg)
{
	struct launch_error err = { 0, "" };
	struct selftest t = { .nonce = "n", .v6 = true };
	const char *heard = arg;
	struct sockaddr_storage a;
	int fd = open_socket(heard ? heard : FAR4, SOCK_DGRAM), one = 1, e;
	socklen_t n;
	bool v6;

	LAB_CHECK(ns_link_up(&v6, &err) == 0 && v6);
	n = to_sockaddr(heard ? heard : FAR4, heard ? 443 : 0, &a);
	LAB_CHECK(!setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &one,
			      sizeof(one)) || a.ss_family == AF_INET);
	LAB_CHECK(bind(fd, (struct sockaddr *)&a, n) == 0);
	if (heard)
		echo(fd);
	LAB_CHECK(dup2(fd, 3) == 3 && !close_range(4, ~0u, 0));
	t.keep[0] = t.keep[1] = 3;
	e = selftest_run(&t, &err);
	LAB_CHECK(e == (heard ? -EBADMSG : -ECONNREFUSED));
	LAB_CHECK(!strstr(err.text, "a datagram") == !heard);
	LAB_CHECK(heard || strstr(err.text, "no answer to a name"));
}

static void the_self_test_finds_who_hears_udp_without_a_firewall(void **state)
{
	(void)state;
	assert_int_equal(lab_run(body_selftest, NULL), 0);
	assert_int_equal(lab_run(body_selftest,
				 (void *)(uintptr_t)PLUG_TEST_ADDR4), 0);
	assert_int_equal(lab_run(body_selftest,
				 (void *)(uintptr_t)PLUG_TEST_ADDR6), 0);
}

/* --- reading back ----------------------------------------------------------- */

static void body_tampered(void *arg)
{
	struct launch_error err = { 0, "" };
	struct net net;
	struct ns_nft_config other;
	(void)arg;

	net_up(&net);
	LAB_CHECK(ns_nft_verify(&net.nft, &err) == 0);
	other = net.nft;
	other.tproxy4++;
	LAB_CHECK(ns_nft_verify(&other, &err) == -EBADMSG);
	LAB_CHECK(strstr(err.text, "not what was loaded"));
	other = net.nft;
	other.log = !other.log;
	LAB_CHECK(ns_nft_verify(&other, &err) == -EBADMSG);
	/* A table that is there already is never taken for ours. */
	LAB_CHECK(ns_nft_load(&net.nft, &err) == -EEXIST);
}

static void a_ruleset_that_differs_is_noticed(void **state)
{
	(void)state;
	assert_int_equal(lab_run(body_tampered, NULL), 0);
}

static void every_rule_changes_the_canonical_text(void **state)
{
	const struct ns_nft_config config = { 40001, 40002, true };
	struct buf text = BUF_INIT(65536);
	struct str rest, line;
	size_t lines = 0;

	(void)state;
	assert_int_equal(ns_nft_text(&config, &text), 0);
	rest = buf_str(&text);
	while (str_cut(&rest, '\n', &line)) {
		lines++;
		assert_null(memchr(line.p, '?', line.n));
	}
	assert_int_equal(lines, nft_nchains + nft_nrules);
	buf_done(&text);
}

static void a_failure_has_its_step_its_errno_and_its_mend(void **state)
{
	struct launch_error err = { 0, "" };

	(void)state;
	assert_int_equal(fault(&err, EPERM, "cannot %s", "fly"), -EPERM);
	fault_mend(&err, "grow %d wings", 2);
	assert_string_equal(err.text, "cannot fly: Operation not permitted\n"
				      "  grow 2 wings");
	assert_int_equal(err.exit_code, 125);
	for (int i = 0; i < 200; i++)
		fault_mend(&err, "one more line of many");
	assert_true(strlen(err.text) < sizeof(err.text));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_ipv6_connection_works_as_the_first_action),
		cmocka_unit_test(without_ipv6_the_sandbox_has_ipv4_alone),
		cmocka_unit_test(setting_the_link_up_twice_does_no_harm),
		cmocka_unit_test(any_tcp_arrives_with_the_address_that_was_asked),
		cmocka_unit_test(
			when_the_sockets_close_everything_is_refused_at_once),
		cmocka_unit_test(udp_and_icmp_are_refused_at_once_and_logged),
		cmocka_unit_test(no_port_of_ours_can_be_bound_beside_us),
		cmocka_unit_test(
			the_self_test_finds_who_hears_udp_without_a_firewall),
		cmocka_unit_test(a_ruleset_that_differs_is_noticed),
		cmocka_unit_test(every_rule_changes_the_canonical_text),
		cmocka_unit_test(a_failure_has_its_step_its_errno_and_its_mend),
	};

	if (!lab_works()) {
		puts("1..0 # SKIP no user namespaces here");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
