/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_daemon.c - a penstockd for tests of the launcher, told by the label how
 *                 to behave
 *
 *	ok		answers the self-test as it should
 *	refuse		refuses the sandbox
 *	die		ends instead of answering
 *	mute		answers no name
 *	lie		answers names with another address
 *	greet		sends a byte on what should be refused
 *	leave		ends at the first connection behind the self-test
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "proxy/ctl_proto.h"

#define PLUG_FD			3
#define SELFTEST_CONNECTIONS	2	/* one for each family */

static struct plug_open sandbox;
static int fd[PLUG_FDS];

static bool is(const char *behaviour)
{
	return strcmp(sandbox.sandbox, behaviour) == 0;
}

static int take_open(void)
{
	int got[FD_PASS_MAX], err;
	size_t n, nfds, next = 0;

	err = fd_recv_msg(PLUG_FD, &sandbox, sizeof(sandbox), &n, got, &nfds);
	if (err || n != sizeof(sandbox) || sandbox.head.type != PLUG_OPEN)
		return -EPROTO;
	for (size_t i = 0; i < PLUG_FDS; i++)
		fd[i] = sandbox.fds & BIT(i) ? got[next++] : -1;
	return next == nfds ? 0 : -EPROTO;
}

static int answer_open(void)
{
	struct plug_ready ready = {
		.head = { PLUG_MAGIC, PLUG_VERSION, PLUG_READY },
		.digest = "0123456789abcdef",
		.name = "fake",
	};
	struct plug_refused no = {
		.head = { PLUG_MAGIC, PLUG_VERSION, PLUG_REFUSED },
		.text = "this sandbox is not wanted",
	};

	if (is("die"))
		return -ECANCELED;
	if (is("refuse"))
		return fd_send_msg(PLUG_FD, &no, sizeof(no), NULL, 0);
	return fd_send_msg(PLUG_FD, &ready, sizeof(ready), NULL, 0);
}

/* From the address that was asked: the query's own control message goes back. */
static void answer_name(int sock)
{
	static const uint8_t head[12] = { 0xc0, 12, 0, 1, 0, 1,
					  0, 0, 0, 0, 0, 4 };
	uint8_t msg[512];
	char control[256];
	struct sockaddr_storage peer;
	struct iovec iov = { msg, sizeof(msg) - 16 };
	struct msghdr m = { &peer, sizeof(peer), &iov, 1, control,
			    sizeof(control), 0 };
	ssize_t n = recvmsg(sock, &m, 0);

	if (n < 12 || is("mute"))
		return;
	msg[2] |= 0x80;
	msg[7] = 1;
	memcpy(msg + n, head, sizeof(head));
	if (inet_pton(AF_INET, is("lie") ? "192.0.2.99" : PLUG_TEST_ANSWER,
		      msg + n + 12) != 1)
		return;
	iov.iov_len = (size_t)n + 16;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO)
			((struct in_pktinfo *)(void *)CMSG_DATA(c))
				->ipi_ifindex = 0;
	}
	if (sendmsg(sock, &m, 0) == -1)
		perror("fake_daemon: sendmsg");
}

/* Accept and close with a reset; "greet" says something first. */
static void refuse(int listener)
{
	struct linger now = { 1, 0 };
	int conn = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	if (conn == -1)
		return;
	if (is("greet") && send(conn, "x", 1, MSG_NOSIGNAL) == 1)
		shutdown(conn, SHUT_WR);
	else if (setsockopt(conn, SOL_SOCKET, SO_LINGER, &now, sizeof(now)))
		perror("fake_daemon: linger");
	close(conn);
}

/* The launcher's next message: the end of the run, or of the launcher. */
static int on_plug(void)
{
	struct plug_closed closed = {
		.head = { PLUG_MAGIC, PLUG_VERSION, PLUG_CLOSED },
		.audit_ok = 1,
		.records = 7,
	};
	struct plug_head head;
	int none[FD_PASS_MAX];
	size_t n, nfds;

	if (fd_recv_msg(PLUG_FD, &head, sizeof(head), &n, none, &nfds) ||
	    n != sizeof(head) || head.type != PLUG_CLOSE)
		return 1;
	return fd_send_msg(PLUG_FD, &closed, sizeof(closed), NULL, 0) ? 2 : 0;
}

static int serve(void)
{
	const int watch[] = { PLUG_FD, fd[PLUG_FD_DNS_UDP4],
			      fd[PLUG_FD_DNS_UDP6], fd[PLUG_FD_TPROXY4],
			      fd[PLUG_FD_TPROXY6] };
	struct pollfd p[ARRAY_SIZE(watch)];
	unsigned refused = 0;

	for (;;) {
		for (size_t i = 0; i < ARRAY_SIZE(watch); i++)
			p[i] = (struct pollfd){ watch[i], POLLIN, 0 };
		if (poll(p, ARRAY_SIZE(p), -1) == -1 && errno != EINTR)
			return 3;
		if (p[0].revents)
			return on_plug();
		for (size_t i = 1; i <= 2; i++) {
			if (p[i].revents)
				answer_name(watch[i]);
		}
		for (size_t i = 3; i <= 4; i++) {
			if (p[i].revents) {
				refuse(watch[i]);
				refused++;
			}
		}
		if (is("leave") && refused > SELFTEST_CONNECTIONS)
			return 0;
	}
}

int main(void)
{
	int err = take_open();

	if (!err)
		err = answer_open();
	return err ? 4 : serve();
}
