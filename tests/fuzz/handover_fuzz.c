/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handover_fuzz.c - any bytes from another penstockd: as a message, as what a
 *                   run remembers, as a record
 */
#include <stdint.h>
#include <string.h>

#include "audit/record.h"
#include "audit/relay.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "proxy/handover_proto.h"
#include "proxy/handover_state.h"
#include "proxy/plug_check.h"
#include "proxy/sandbox.h"
#include "resolver/name_map.h"
#include "resolver/name_pins.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_message(struct str msg)
{
	static union handover_msg m;
	struct plug_why why = { "" };

	for (size_t nfds = 0; nfds <= FD_PASS_MAX; nfds++) {
		int type = handover_parse(msg, nfds, &m, &why);

		if (type < 0) {
			REQUIRE(why.text[0]);
			continue;
		}
		REQUIRE(type > 0 && type < HANDOVER_TYPES);
		if (type == HANDOVER_RUN)
			REQUIRE(handover_run_fds(&m.run) == nfds);
		if (type == HANDOVER_STATE)
			REQUIRE(m.state.n <= HANDOVER_STATE_MAX);
		if (type == HANDOVER_TAIL)
			REQUIRE(m.tail.n <= sizeof(m.tail.cut));
		if (type == HANDOVER_SOCKET)
			REQUIRE(m.socket.role < SANDBOX_ROLES);
	}
}

static void check_state(struct str bytes)
{
	struct handover_memory memory = { .names = NULL };
	size_t at = 0, n;

	REQUIRE(name_map_new(1 << 20, &memory.names) == 0);
	REQUIRE(name_pins_new(1 << 20, &memory.pins) == 0);
	(void)!handover_remember(&memory, bytes);
	name_map_free(memory.names);
	name_pins_free(memory.pins);
	while ((n = handover_cut(str_make(bytes.p + at, bytes.n - at), 64)) >
	       0)
		at += n;
	REQUIRE(at <= bytes.n);
}

static void check_line(struct str line)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(2 * RECORD_LINE_MAX);

	if (audit_renumber(line, UINT64_MAX, &out) < 0) {
		REQUIRE(out.n == 0);
		return;
	}
	REQUIRE(out.n <= RECORD_LINE_MAX && out.p[out.n - 1] == '\n' &&
		memchr(out.p, '\n', out.n) == out.p + out.n - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct str bytes = str_make((const char *)data, n);

	check_message(bytes);
	check_state(bytes);
	check_line(bytes);
	return 0;
}
