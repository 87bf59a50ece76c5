/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nflog_test.c - refused packets become records (LOG-19, SBX-09), few of them
 */
#include <errno.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/event.h>
#include <libmnl/libmnl.h>

#include "audit/writer.h"
#include "base/clock.h"
#include "base/fd.h"
#include "proxy/nflog.h"
#include "proxy/sandbox.h"
#include "proxy/worker.h"
#include "resolver/name_map.h"
#include "tests/unit/proxy_lab.h"

/* --- packets --------------------------------------------------------------------- */

/* IPv4, UDP, 10.0.0.1:4660 to 203.0.113.10:443 */
static const uint8_t udp4[] = {
	0x45, 0, 0, 28, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1,
	203, 0, 113, 10, 0x12, 0x34, 0x01, 0xbb, 0, 8, 0, 0,
};
/* IPv6, hop-by-hop, UDP, to [2001:db8::9]:53 */
static const uint8_t udp6[] = {
	0x60, 0, 0, 0, 0, 16, 0, 64,
	0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
	0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9,
	17, 0, 1, 4, 0, 0, 0, 0, 0, 1, 0, 53, 0, 8, 0, 0,
};

static bool parse(const void *p, size_t n, struct nflog_packet *ret)
{
	return nflog_parse_packet(str_make(p, n), ret);
}

static void expect_dst(const struct nflog_packet *p, const char *want)
{
	char text[IP_ENDPOINT_TEXT_SIZE];

	ip_endpoint_text(&p->dst, text);
	assert_string_equal(text, want);
}

static void a_udp_packet_tells_where_it_was_going(void **state)
{
	struct nflog_packet p;

	(void)state;
	assert_true(parse(udp4, sizeof(udp4), &p));
	expect_dst(&p, "203.0.113.10:443");
	assert_int_equal(p.src.port, 0x1234);
	assert_string_equal(nflog_transport(p.proto), "udp");
	assert_true(parse(udp6, sizeof(udp6), &p));
	expect_dst(&p, "[2001:db8::9]:53");
	assert_string_equal(nflog_transport(p.proto), "udp");
}

static void a_packet_that_is_cut_tells_what_is_left(void **state)
{
	struct nflog_packet p;
	size_t n;

	(void)state;
	for (n = 0; n < 20; n++)
		assert_false(parse(udp4, n, &p));
	for (; n < 24; n++) {
		assert_true(parse(udp4, n, &p));
		assert_int_equal(p.dst.port, 0);
	}
	for (n = 0; n < 40; n++)
		assert_false(parse(udp6, n, &p));
	assert_true(parse(udp6, 44, &p));
	assert_int_equal(p.dst.port, 0);
}

static void what_is_no_ip_is_no_packet(void **state)
{
	uint8_t b[sizeof(udp4)];
	struct nflog_packet p;

	(void)state;
	memcpy(b, udp4, sizeof(b));
	b[0] = 0x44;	/* a header shorter than a header */
	assert_false(parse(b, sizeof(b), &p));
	b[0] = 0x55;
	assert_false(parse(b, sizeof(b), &p));
}

static void fragments_and_icmp_have_no_port(void **state)
{
	uint8_t b[sizeof(udp4)];
	struct nflog_packet p;

	(void)state;
	memcpy(b, udp4, sizeof(b));
	b[7] = 1;	/* a later fragment: its bytes are no header */
	assert_true(parse(b, sizeof(b), &p));
	assert_int_equal(p.dst.port, 0);
	memcpy(b, udp4, sizeof(b));
	b[9] = IPPROTO_ICMP;
	assert_true(parse(b, sizeof(b), &p));
	assert_int_equal(p.dst.port, 0);
	assert_string_equal(nflog_transport(p.proto), "icmp");
	assert_string_equal(nflog_transport(253), "ip");
}

static void a_chain_of_extensions_is_bounded(void **state)
{
	uint8_t b[40 + 8 * (NFLOG_EXT_MAX + 4)] = { 0 };
	struct nflog_packet p;
	size_t i;

	(void)state;
	memcpy(b, udp6, 40);
	b[6] = 60;
	for (i = 40; i < sizeof(b); i += 8)
		b[i] = 60;	/* destination options, for ever */
	assert_true(parse(b, sizeof(b), &p));
	assert_int_equal(p.proto, 60);
	b[41] = 255;	/* longer than what is there */
	assert_true(parse(b, sizeof(b), &p));
}

/* --- datagrams --------------------------------------------------------------------- */

static size_t put_message(char *at, uint16_t type, const void *packet,
			  size_t n)
{
	struct nlmsghdr *h = mnl_nlmsg_put_header(at);

	h->nlmsg_type = type;
	memset(mnl_nlmsg_put_extra_header(h, sizeof(struct nfgenmsg)), 0,
	       sizeof(struct nfgenmsg));
	mnl_attr_put_strz(h, NFULA_PREFIX, "udp");
	mnl_attr_put(h, NFULA_PAYLOAD, n, packet);
	return MNL_ALIGN(h->nlmsg_len);
}

static void count_packet(void *arg, const struct nflog_packet *p)
{
	unsigned *n = arg;

	(void)p;
	++*n;
}

static void each_packet_of_a_datagram_is_found(void **state)
{
	_Alignas(struct nlmsghdr) char buf[1024];
	const uint16_t logged = NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET;
	size_t n = 0, cut;
	unsigned seen = 0;

	(void)state;
	n += put_message(buf + n, logged, udp4, sizeof(udp4));
	n += put_message(buf + n, NLMSG_ERROR, udp4, sizeof(udp4));
	n += put_message(buf + n, logged, udp4, 5);
	n += put_message(buf + n, logged, udp6, sizeof(udp6));
	assert_int_equal(nflog_parse_datagram(str_make(buf, n), count_packet,
					      &seen), 2);
	assert_int_equal(seen, 2);
	for (cut = 0; cut < n; cut++)
		assert_true(nflog_parse_datagram(str_make(buf, cut),
						 count_packet, &seen) <= 2);
}

/* --- records -------------------------------------------------------------------------- */

struct lab {
	struct worker *worker;
	struct audit_writer *writer;
	struct sandbox s;
	int file, peer;
};

static int open_lab(void **state)
{
	static const struct record_labels labels = { .run = "r1" };
	static struct lab l;
	int pair[2];

	l = (struct lab){ .s = { .diag_fd = -1 } };
	assert_int_equal(worker_new(0, &l.worker), 0);
	assert_int_equal(audit_writer_new(&l.writer), 0);
	l.file = memfd_create("records", MFD_CLOEXEC);
	assert_int_equal(audit_sink_new(l.writer, dup(l.file), &labels,
					&l.s.sink), 0);
	assert_int_equal(name_map_new(1 << 20, &l.s.names), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC |
				    SOCK_NONBLOCK, 0, pair), 0);
	l.peer = pair[0];
	l.s.worker = l.worker;
	list_init(&l.s.node);
	list_init(&l.s.conns);
	list_init(&l.s.pool);
	clock_test_set_ms(1000);
	assert_int_equal(nflog_new(&l.s, pair[1], &l.s.nflog), 0);
	*state = &l;
	return 0;
}

static int close_lab(void **state)
{
	struct lab *l = *state;

	nflog_free(l->s.nflog);
	clock_test_set_ms(-1);
	name_map_free(l->s.names);
	audit_sink_free(l->s.sink);
	audit_writer_free(l->writer, 5000);
	worker_free(l->worker);
	close(l->file);
	close(l->peer);
	return 0;
}

static struct nflog_packet packet_to(const char *to, uint8_t proto)
{
	struct nflog_packet p = { .proto = proto };

	assert_int_equal(ip_endpoint_parse(str_from(to), 0, &p.dst), 0);
	return p;
}

static void send_packets(struct lab *l, const char *to, uint8_t proto,
			 unsigned n)
{
	struct nflog_packet p = packet_to(to, proto);

	while (n--)
		nflog_on_packet(l->s.nflog, &p);
}

/* What was written so far; how many lines hold @want. */
static unsigned lines_with(struct lab *l, const char *want)
{
	static char text[256 << 10];
	struct str rest, line;
	unsigned n = 0;
	ssize_t got;

	clock_test_set_ms(-1);	/* the writer's waiting goes by the clock */
	assert_int_equal(audit_sink_flush(l->s.sink, 5000), 0);
	got = pread(l->file, text, sizeof(text) - 1, 0);
	assert_true(got >= 0);
	text[got] = '\0';
	rest = str_make(text, (size_t)got);
	while (str_cut(&rest, '\n', &line))
		n += memmem(line.p, line.n, want, strlen(want)) != NULL;
	return n;
}

static void equal_refusals_are_one_record_with_a_count(void **state)
{
	struct lab *l = *state;

	send_packets(l, "203.0.113.10:443", IPPROTO_UDP, 50);
	clock_test_set_ms(1000 + NFLOG_WINDOW_MS);
	send_packets(l, "8.8.8.8:53", IPPROTO_UDP, 1);
	assert_int_equal(lines_with(l, "\"via\":\"firewall\""), 3);
	assert_int_equal(lines_with(l, "203.0.113.10"), 2);
	assert_int_equal(lines_with(l, "\"count\":49"), 1);
	assert_int_equal(l->s.flows_denied, 51);
}

static void what_is_still_counted_is_written_at_the_end(void **state)
{
	struct lab *l = *state;

	send_packets(l, "8.8.8.8:443", IPPROTO_UDP, 3);
	nflog_free(l->s.nflog);
	l->s.nflog = NULL;
	assert_int_equal(lines_with(l, "\"count\":2"), 1);
	assert_int_equal(lines_with(l, "\"transport\":\"udp\""), 2);
}

static void a_scan_costs_a_bounded_number_of_records(void **state)
{
	struct lab *l = *state;
	struct nflog_packet p = packet_to("8.8.8.8:1", IPPROTO_UDP);
	unsigned i;

	for (i = 0; i < 5000; i++) {
		p.dst.port = (uint16_t)(i + 1);
		nflog_on_packet(l->s.nflog, &p);
	}
	nflog_free(l->s.nflog);
	l->s.nflog = NULL;
	/* Each key's first, the shared one's first, and its count. */
	assert_int_equal(lines_with(l, "flow_deny"), NFLOG_KEYS_MAX + 2);
	assert_int_equal(l->s.flows_denied, 5000);
}

static void the_reason_says_what_kind_of_address_it_was(void **state)
{
	struct lab *l = *state;

	send_packets(l, "169.254.169.254:80", IPPROTO_UDP, 1);
	send_packets(l, "10.1.2.3:9", IPPROTO_SCTP, 1);
	send_packets(l, "8.8.8.8", IPPROTO_ICMP, 1);
	assert_int_equal(lines_with(l, "\"reason\":\"address_metadata\""), 1);
	assert_int_equal(lines_with(l, "\"reason\":\"address_private\""), 1);
	assert_int_equal(lines_with(l, "\"reason\":\"transport_not_allowed\""),
			 1);
	assert_int_equal(lines_with(l, "\"transport\":\"sctp\""), 1);
	assert_int_equal(lines_with(l, "\"transport\":\"icmp\""), 1);
}

static void a_synthetic_address_is_told_by_its_name(void **state)
{
	struct lab *l = *state;
	struct id question = { { 1 } };
	struct nflog_packet p = { .proto = IPPROTO_UDP };

	assert_int_equal(name_map_give(l->s.names, STR("quic.example.org"),
				       IP_V4, &question, &p.dst.addr), 0);
	p.dst.port = 443;
	nflog_on_packet(l->s.nflog, &p);
	assert_int_equal(lines_with(l, "\"host\":\"quic.example.org\""), 1);
	assert_int_equal(lines_with(l, "\"dst_ip\""), 0);
	assert_int_equal(lines_with(l, "\"reason\":\"transport_not_allowed\""),
			 1);
}

static void the_self_test_is_marked_and_not_counted(void **state)
{
	struct lab *l = *state;

	l->s.self_tests_left = 2;
	send_packets(l, PLUG_TEST_ADDR4 ":9", IPPROTO_UDP, 1);
	send_packets(l, "[" PLUG_TEST_ADDR6 "]:9", IPPROTO_UDP, 1);
	assert_int_equal(lines_with(l, "\"internal\":true"), 2);
	assert_int_equal(l->s.flows_denied, 0);
}

/* The command may ask for the same addresses once the launcher has. */
static void no_more_than_the_self_test_is_hidden(void **state)
{
	struct lab *l = *state;

	l->s.self_tests_left = 1;
	send_packets(l, PLUG_TEST_ADDR4 ":9", IPPROTO_UDP, 1);
	send_packets(l, PLUG_TEST_ADDR4 ":53", IPPROTO_UDP, 1);
	assert_int_equal(lines_with(l, "\"internal\":true"), 1);
	assert_int_equal(l->s.flows_denied, 1);
}

/* The peer of this socket is no kernel. */
static void only_the_kernel_is_listened_to(void **state)
{
	_Alignas(struct nlmsghdr) char buf[512];
	struct lab *l = *state;
	size_t n = put_message(buf, NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET,
			       udp4, sizeof(udp4));

	assert_int_equal(send(l->peer, buf, n, 0), n);
	lab_turn(l->worker->base);
	assert_int_equal(lines_with(l, "flow_deny"), 0);
}

#define IN_LAB(f)	cmocka_unit_test_setup_teardown(f, open_lab, close_lab)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_udp_packet_tells_where_it_was_going),
		cmocka_unit_test(a_packet_that_is_cut_tells_what_is_left),
		cmocka_unit_test(what_is_no_ip_is_no_packet),
		cmocka_unit_test(fragments_and_icmp_have_no_port),
		cmocka_unit_test(a_chain_of_extensions_is_bounded),
		cmocka_unit_test(each_packet_of_a_datagram_is_found),
		IN_LAB(equal_refusals_are_one_record_with_a_count),
		IN_LAB(what_is_still_counted_is_written_at_the_end),
		IN_LAB(a_scan_costs_a_bounded_number_of_records),
		IN_LAB(the_reason_says_what_kind_of_address_it_was),
		IN_LAB(a_synthetic_address_is_told_by_its_name),
		IN_LAB(the_self_test_is_marked_and_not_counted),
		IN_LAB(no_more_than_the_self_test_is_hidden),
		IN_LAB(only_the_kernel_is_listened_to),
	};

	lab_enter();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
