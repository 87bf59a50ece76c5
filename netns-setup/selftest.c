/* SPDX-License-Identifier: Apache-2.0 */
/*
 * selftest.c - a short proof, before each run, that all doors are as they
 *              should be
 *
 * The packets are made and read here, by hand: no libc resolver, whose
 * configuration is part of what is being tested.
 */
#include "netns-setup/selftest.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "netns-setup/fault.h"
#include "proxy/ctl_proto.h"

#define DNS_TYPE_A	1
#define DNS_ID		0x5053
#define DNS_MAX		512
#define REFUSED_TCP_PORT	9
#define REFUSED_UDP_PORT	443
#define NET_DEV_MAX	8192

static socklen_t address(const char *text, uint16_t port,
			 struct sockaddr_storage *ret)
{
	struct sockaddr_in *a4 = (void *)ret;
	struct sockaddr_in6 *a6 = (void *)ret;

	memset(ret, 0, sizeof(*ret));
	if (strchr(text, ':')) {
		a6->sin6_family = AF_INET6;
		a6->sin6_port = htons(port);
		REQUIRE(inet_pton(AF_INET6, text, &a6->sin6_addr) == 1);
		return sizeof(*a6);
	}
	a4->sin_family = AF_INET;
	a4->sin_port = htons(port);
	REQUIRE(inet_pton(AF_INET, text, &a4->sin_addr) == 1);
	return sizeof(*a4);
}

/* A connected socket, or -errno. */
static int connected(const char *to, uint16_t port, int type)
{
	CLEANUP(fd_closep) int fd = -1;
	struct sockaddr_storage a;
	socklen_t n = address(to, port, &a);

	fd = socket(a.ss_family, type | SOCK_CLOEXEC, 0);
	if (fd == -1 || connect(fd, (const struct sockaddr *)&a, n) == -1)
		return -errno;
	return fd_take(&fd);
}

/* One read, waited for; its size or -errno. */
static ssize_t wait_read(int fd, void *p, size_t cap)
{
	struct pollfd pfd = { fd, POLLIN, 0 };
	ssize_t n;
	int ready;

	do {
		ready = poll(&pfd, 1, SELFTEST_WAIT_MS);
	} while (ready == -1 && errno == EINTR);
	if (ready == -1)
		return -errno;
	if (ready == 0)
		return -ETIMEDOUT;
	n = recv(fd, p, cap, MSG_DONTWAIT);
	return n == -1 ? -errno : n;
}

/* --- DNS -------------------------------------------------------------------- */

static int put_label(struct buf *q, struct str label)
{
	int err = label.n > 63 ? -EINVAL : buf_add_char(q, (char)label.n);

	return err ? err : buf_add_str(q, label);
}

static int dns_query(struct buf *q, const char *nonce)
{
	static const char head[12] = { DNS_ID >> 8, DNS_ID & 0xff, 1, 0, 0, 1,
				       0, 0, 0, 0, 0, 0 };
	static const char tail[5] = { 0, 0, DNS_TYPE_A, 0, 1 };
	struct str rest = STR(PLUG_TEST_SUFFIX), label;
	int err = buf_add(q, head, sizeof(head));

	if (!err)
		err = put_label(q, str_from(nonce));
	rest.p++;				/* its first dot */
	rest.n--;
	while (!err && str_cut(&rest, '.', &label))
		err = put_label(q, label);
	return err ? err : buf_add(q, tail, sizeof(tail));
}

/* Our daemon's answer repeats the question and ends in the address. */
static bool dns_is_ours(struct str query, struct str answer)
{
	struct in_addr a;
	const uint8_t *b = (const uint8_t *)answer.p;
	const size_t fixed = 12;		/* owner, type, class, ttl, length */

	REQUIRE(inet_pton(AF_INET, PLUG_TEST_ANSWER, &a) == 1);
	if (answer.n < query.n + fixed + sizeof(a))
		return false;
	if (b[0] != DNS_ID >> 8 || b[1] != (DNS_ID & 0xff) ||
	    !(b[2] & 0x80) || (b[3] & 0x0f) != 0 || b[6] != 0 || b[7] != 1)
		return false;
	return memcmp(b + query.n + fixed, &a, sizeof(a)) == 0;
}

static int dns_ask(const struct selftest *t, const char *server, int *ret_fd,
		   struct launch_error *err)
{
	CLEANUP(buf_done) struct buf q = BUF_INIT(DNS_MAX);
	CLEANUP(fd_closep) int fd = -1;
	int e = dns_query(&q, t->nonce);

	if (e)
		return fault(err, -e, "self-test: cannot make a question");
	fd = connected(server, PLUG_DNS_PORT, SOCK_DGRAM);
	if (fd < 0)
		return fault(err, -fd, "self-test: cannot reach port 53");
	if (send(fd, q.p, q.n, 0) == -1)
		return fault(err, errno, "self-test: cannot ask a name");
	*ret_fd = fd_take(&fd);
	return 0;
}

static int dns_check(const struct selftest *t, const char *server, int fd,
		     struct launch_error *err)
{
	CLEANUP(buf_done) struct buf q = BUF_INIT(DNS_MAX);
	char answer[DNS_MAX];
	ssize_t n;
	int e = dns_query(&q, t->nonce);

	if (e)
		return fault(err, -e, "self-test: cannot make a question");
	n = wait_read(fd, answer, sizeof(answer));
	if (n < 0)
		return fault(err, (int)-n, "self-test: no answer to a name "
			     "asked of %s", server);
	if (!dns_is_ours(buf_str(&q), str_make(answer, (size_t)n))) {
		fault(err, 0, "self-test: the answer to a name asked of %s is "
		      "not penstockd's", server);
		return -EBADMSG;
	}
	return 0;
}

/* --- refusals --------------------------------------------------------------- */

/* Refused at once (*@ret_fd stays as it is), or accepted by our daemon. */
static int tcp_connect(const char *to, int *ret_fd, struct launch_error *err)
{
	int fd = connected(to, REFUSED_TCP_PORT, SOCK_STREAM);

	if (fd == -ECONNREFUSED || fd == -ECONNRESET)
		return 0;
	if (fd < 0)
		return fault(err, -fd, "self-test: TCP to %s was not refused "
			     "as it should be", to);
	*ret_fd = fd;
	return 0;
}

/* What our daemon accepted, it closes without a byte. */
static int tcp_check(const char *to, int fd, struct launch_error *err)
{
	char byte;
	ssize_t n;

	if (fd < 0)
		return 0;
	n = wait_read(fd, &byte, 1);
	if (n == 0 || n == -ECONNRESET)
		return 0;
	if (n < 0)
		return fault(err, (int)-n, "self-test: TCP to %s was not "
			     "refused", to);
	fault(err, 0, "self-test: somebody answers on %s", to);
	return -EBADMSG;
}

/* The firewall refuses the sending; without one, nobody is there to hear. */
static int test_udp(const struct selftest *t, const char *to,
		    struct launch_error *err)
{
	CLEANUP(fd_closep) int fd = connected(to, REFUSED_UDP_PORT, SOCK_DGRAM);
	char byte;

	if (fd < 0)
		return fault(err, -fd, "self-test: cannot open a UDP socket");
	if (send(fd, "", 1, 0) == -1)
		return 0;
	if (!t->firewall && wait_read(fd, &byte, 1) == -ECONNREFUSED)
		return 0;
	fault(err, 0, "self-test: a datagram to %s was not refused", to);
	return -EBADMSG;
}

/* --- looking around --------------------------------------------------------- */

static int test_links(struct launch_error *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(NET_DEV_MAX);
	CLEANUP(fd_closep) int fd = open("/proc/self/net/dev",
					 O_RDONLY | O_CLOEXEC);
	struct str rest, line, name;
	int e = fd == -1 ? -errno : fd_read_all(fd, &text);

	if (e)
		return fault(err, -e, "self-test: cannot list the links");
	rest = buf_str(&text);
	while (str_cut(&rest, '\n', &line)) {
		if (str_chr(line, ':') == line.n || str_chr(line, '|') < line.n)
			continue;		/* the two head lines */
		(void)str_cut(&line, ':', &name);
		if (str_eq(str_trim(name), STR("lo")))
			continue;
		fault(err, 0, "self-test: the sandbox has a link named %.*s",
		      STR_ARG(str_trim(name)));
		return -EBADMSG;
	}
	return 0;
}

static bool may_be_open(const struct selftest *t, unsigned long fd)
{
	return fd <= STDERR_FILENO || fd == (unsigned long)t->keep[0] ||
	       fd == (unsigned long)t->keep[1];
}

static int test_descriptors(const struct selftest *t, struct launch_error *err)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *d;
	int e = 0;

	if (!dir)
		return fault(err, errno, "self-test: cannot list descriptors");
	while (!e && (d = readdir(dir))) {
		unsigned long fd;

		if (str_to_uint(str_from(d->d_name), UINT32_MAX, &fd) ||
		    fd == (unsigned long)dirfd(dir) || may_be_open(t, fd))
			continue;
		fault(err, 0, "self-test: descriptor %lu is open", fd);
		e = -EBADMSG;
	}
	closedir(dir);
	return e;
}

/* Ask everything first: the daemon then answers all of it in one turn. */
static int test_network(const struct selftest *t, struct launch_error *err)
{
	CLEANUP(fd_closep) int dns4 = -1, dns6 = -1, tcp4 = -1, tcp6 = -1;
	int e = dns_ask(t, PLUG_TEST_ADDR4, &dns4, err);

	if (!e && t->v6)
		e = dns_ask(t, PLUG_TEST_ADDR6, &dns6, err);
	if (!e)
		e = tcp_connect(PLUG_TEST_ADDR4, &tcp4, err);
	if (!e && t->v6)
		e = tcp_connect(PLUG_TEST_ADDR6, &tcp6, err);
	if (!e)
		e = test_udp(t, PLUG_TEST_ADDR4, err);
	if (!e && t->v6)
		e = test_udp(t, PLUG_TEST_ADDR6, err);
	if (!e)
		e = dns_check(t, PLUG_TEST_ADDR4, dns4, err);
	if (!e && t->v6)
		e = dns_check(t, PLUG_TEST_ADDR6, dns6, err);
	if (!e)
		e = tcp_check(PLUG_TEST_ADDR4, tcp4, err);
	return e ? e : tcp_check(PLUG_TEST_ADDR6, tcp6, err);
}

int selftest_run(const struct selftest *t, struct launch_error *err)
{
	int e = test_descriptors(t, err);

	if (!e)
		e = test_links(err);
	return e ? e : test_network(t, err);
}
