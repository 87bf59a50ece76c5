/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reason_test.c - the table of reasons is whole and consistent
 */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/reason.h"

/* RFC 9209 2.3 */
static const char *const error_types[] = {
	"dns_timeout", "dns_error", "destination_not_found",
	"destination_unavailable", "destination_ip_prohibited",
	"destination_ip_unroutable", "connection_refused",
	"connection_terminated", "connection_timeout",
	"connection_read_timeout", "connection_write_timeout",
	"connection_limit_reached", "tls_protocol_error",
	"tls_certificate_error", "tls_alert_received", "http_request_error",
	"http_request_denied", "http_response_incomplete",
	"http_response_header_section_size", "http_response_header_size",
	"http_response_body_size", "http_response_trailer_section_size",
	"http_response_trailer_size", "http_response_transfer_coding",
	"http_response_content_coding", "http_response_timeout",
	"http_upgrade_failed", "http_protocol_error",
	"proxy_internal_response", "proxy_internal_error",
	"proxy_configuration_error", "proxy_loop_detected",
};

static bool is_registered(const char *type)
{
	for (size_t i = 0; i < ARRAY_SIZE(error_types); i++) {
		if (strcmp(type, error_types[i]) == 0)
			return true;
	}
	return false;
}

static void words_are_snake_case_and_lead_back(void **state)
{
	(void)state;
	for (enum reason r = 0; r < REASONS; r++) {
		const char *word = reason_word(r);

		assert_int_equal(strspn(word, "abcdefghijklmnopqrstuvwxyz_"
					      "0123456789"), strlen(word));
		assert_int_equal(reason_by_word(str_from(word)), r);
	}
	assert_int_equal(reason_by_word(STR("no_such_word")), REASONS);
	assert_int_equal(reason_by_word(STR("")), REASONS);
	assert_int_equal(reason_by_word(STR("host_not_allowe")), REASONS);
}

static void error_types_are_registered_ones(void **state)
{
	(void)state;
	for (enum reason r = 0; r < REASONS; r++) {
		const struct reason_info *i = reason_info(r);

		if (i->proxy_error && !is_registered(i->proxy_error))
			fail_msg("%s: %s", i->word, i->proxy_error);
		/* What is answered in HTTP says why in Proxy-Status. */
		if (i->http_status && !i->proxy_error)
			fail_msg("%s has no error type", i->word);
	}
}

/* Policy and outage never look alike. */
static void the_status_follows_from_the_kind(void **state)
{
	(void)state;
	for (enum reason r = 0; r < REASONS; r++) {
		const struct reason_info *i = reason_info(r);
		uint16_t s = i->http_status;
		bool good = false;

		if (s == 0)
			continue;
		switch (i->kind) {
		case REASON_OK:
			break;
		case REASON_POLICY:
			good = s == 403;
			break;
		case REASON_REQUEST:
			good = (s >= 400 && s < 500 && s != 403) ||
			       s == 501 || s == 505;
			break;
		case REASON_LIMIT:
			good = s == 429 || s == 503;
			break;
		case REASON_NETWORK:
			good = s == 502 || s == 504;
			break;
		case REASON_INTERNAL:
			good = s == 500 || s == 503;
			break;
		}
		if (!good)
			fail_msg("%s: %u", i->word, s);
	}
}

static void socks_and_dns_tell_policy_from_outage_too(void **state)
{
	(void)state;
	for (enum reason r = 0; r < REASONS; r++) {
		const struct reason_info *i = reason_info(r);

		assert_true(i->socks_reply <= 8);
		assert_int_equal(i->kind == REASON_POLICY, i->socks_reply == 2);
		assert_int_equal(i->kind == REASON_OK, i->socks_reply == 0);
		if (i->kind == REASON_POLICY)
			assert_true(i->ede >= 15 && i->ede <= 18);
		else
			assert_true(i->ede != 15);
	}
}

static void sentences_are_for_people(void **state)
{
	(void)state;
	for (enum reason r = 0; r < REASONS; r++) {
		const char *s = reason_info(r)->sentence;

		assert_true(strlen(s) > 10);
		assert_true(s[strlen(s) - 1] != '.');
		assert_false(isupper((unsigned char)s[0]) &&
			     islower((unsigned char)s[1]));
	}
}

static void address_classes_are_told_from_other_reasons(void **state)
{
	(void)state;
	assert_true(reason_is_address_class(REASON_ADDRESS_UNSPECIFIED));
	assert_true(reason_is_address_class(REASON_ADDRESS_METADATA));
	assert_true(reason_is_address_class(REASON_ADDRESS_HOST));
	assert_false(reason_is_address_class(REASON_ADDRESS_NOT_ALLOWED));
	assert_false(reason_is_address_class(REASON_ADDRESS_DENIED));
	assert_false(reason_is_address_class(REASON_TRANSPORT_NOT_ALLOWED));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_snake_case_and_lead_back),
		cmocka_unit_test(error_types_are_registered_ones),
		cmocka_unit_test(the_status_follows_from_the_kind),
		cmocka_unit_test(socks_and_dns_tell_policy_from_outage_too),
		cmocka_unit_test(sentences_are_for_people),
		cmocka_unit_test(address_classes_are_told_from_other_reasons),
	};

	return cmocka_run_group_tests_name("reason", tests, NULL, NULL);
}
