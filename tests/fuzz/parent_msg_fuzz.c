/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parent_msg_fuzz.c - a parent proxy that answers anything, in any pieces
 *
 * The first byte says which protocol, whether there is a login, and in how large
 * pieces the rest comes.
 */
#include <stddef.h>
#include <stdint.h>

#include "proxy/parent_msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char room[PARENT_SAY_MAX + 1];
	struct buf out = { room, 0, sizeof(room), PARENT_SAY_MAX, NULL };
	uint8_t how = n ? data[0] : 0;
	const struct parent_ask ask = {
		.kind = how & 1 ? PARENT_SOCKS5 : PARENT_HTTP,
		.host = STR("api.example.org"), .port = 443,
		.user = how & 2 ? STR("user") : STR_NONE,
		.password = STR("pw"), .basic = STR("dXNlcjpwdw=="),
	};
	enum parent_step step = PARENT_MORE;
	size_t piece = (how >> 2) + 1u, from = 1, to, used, turns = 0;
	struct parent_talk talk;

	REQUIRE(parent_talk_begin(&talk, &ask, &out) == 0);
	for (to = 1; to < n && step != PARENT_OPEN && step != PARENT_FAILED;) {
		to = MIN(to + piece, n);
		do {
			buf_reset(&out);
			step = parent_talk_read(&talk,
						str_make(data + from, to - from),
						&used, &out);
			REQUIRE(used <= to - from);
			REQUIRE(step != PARENT_MORE || used == 0);
			REQUIRE(step != PARENT_SAY || (used && out.n));
			if (step != PARENT_FAILED)
				from += used;
		} while (step == PARENT_SAY && ++turns < 4);
		REQUIRE(turns < 4);
	}
	if (step == PARENT_FAILED)
		REQUIRE(reason_info(talk.why)->kind == REASON_NETWORK);
	return 0;
}
