/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_request_test.c - methods and paths, rules that only observe, and the
 *                        one preset that opens all
 */
#include <errno.h>

#include "rules/rules_bundle.h"
#include "tests/unit/rules_kit.h"

static struct rules_answer ask_http(const struct ruleset *rs,
				    const char *host, const char *method,
				    const char *target)
{
	const struct rules_request request = {
		.flow = { .host = str_from(host), .port = 80, .now = 1 },
		.method = str_from(method), .target = str_from(target),
	};
	struct rules_answer a;

	rules_judge_request(rs, &request, &a);
	return a;
}

static void check_http(const struct ruleset *rs, const char *method,
		       const char *target, enum reason reason,
		       const char *rule)
{
	struct rules_answer a = ask_http(rs, "a.example", method, target);

	if (a.reason != reason ||
	    strcmp(a.rule ? a.rule : "(none)", rule) != 0)
		fail_msg("%s %s: %s by %s", method, target,
			 reason_word(a.reason), a.rule);
}

static void an_allow_takes_its_methods_and_paths(void **state)
{
	struct ruleset *rs = compile_good(
		"[allow a]\nhosts = a.example\nprotocol = http\n"
		"methods = GET POST\npaths = /v1/** /v2/*\n"
		"[allow b]\nhosts = a.example\nports = 80\nmethods = PUT\n");

	(void)state;
	check_http(rs, "GET", "/v1/x/y?z", REASON_ALLOWED, "a");
	check_http(rs, "HEAD", "/v1/x", REASON_ALLOWED, "a");
	/* POL-14 */
	check_http(rs, "POST", "/v2/x", REASON_ALLOWED, "a");
	check_http(rs, "GET", "/v3/x", REASON_PATH_NOT_ALLOWED, "a");
	check_http(rs, "PUT", "/v3/x", REASON_ALLOWED, "b");
	check_http(rs, "DELETE", "/v1/x", REASON_METHOD_NOT_ALLOWED, "a");
	check_http(rs, "get", "/v1/x", REASON_METHOD_NOT_ALLOWED, "a");
	check_http(rs, "OPTIONS", "*", REASON_METHOD_NOT_ALLOWED, "a");
	/* POL-22 */
	check_http(rs, "GET", "/v1/../v3", REASON_PATH_AMBIGUOUS, "a");
	check_http(rs, "GET", "/v1/%2e%2e/v3", REASON_PATH_AMBIGUOUS, "a");
	/* No rule about paths is asked there. */
	check_http(rs, "PUT", "/v1/../v3", REASON_ALLOWED, "b");
	/* The flow goes on where its requests are seen. */
	assert_int_equal(ask(rs, "a.example", 80, NULL).reason,
			 REASON_ALLOWED);
	assert_int_equal(ask(rs, "a.example", 443, NULL).reason,
			 REASON_PORT_NOT_ALLOWED);
	rules_unref(rs);
}

static void what_renames_a_request_is_in_doubt(void **state)
{
	struct rules_request request = {
		.flow = { .host = STR("a.example"), .port = 80, .now = 1 },
		.method = STR("POST"), .target = STR("/v1/x"), .renamed = true,
	};
	struct ruleset *rs = compile_good(
		"[allow a]\nhosts = a.example b.example\nprotocol = http\n"
		"[deny d]\nhosts = a.example\nmethods = DELETE\n"
		"protocol = http\n");
	struct rules_answer a;

	(void)state;
	rules_judge_request(rs, &request, &a);
	assert_int_equal(a.reason, REASON_PATH_AMBIGUOUS);
	assert_string_equal(a.rule, "d");
	request.flow.host = STR("b.example");
	rules_judge_request(rs, &request, &a);
	assert_int_equal(a.reason, REASON_ALLOWED);
	rules_unref(rs);
	rs = compile_good("[allow a]\nhosts = b.example\nmethods = POST\n"
			  "protocol = http\n");
	rules_judge_request(rs, &request, &a);
	assert_int_equal(a.reason, REASON_PATH_AMBIGUOUS);
	request.renamed = false;
	rules_judge_request(rs, &request, &a);
	assert_int_equal(a.reason, REASON_ALLOWED);
	rules_unref(rs);
}

static void a_deny_shuts_its_requests_alone(void **state)
{
	struct ruleset *rs = compile_good(
		"[allow a]\nhosts = a.example\nprotocol = http\n"
		"[deny admin]\nhosts = *.example\npaths = /admin/** /Admin\n"
		"protocol = http\n"
		"[deny write]\nhosts = a.example\nmethods = POST\n"
		"paths = /files/**\nprotocol = http\n");

	(void)state;
	check_http(rs, "GET", "/x", REASON_ALLOWED, "a");
	check_http(rs, "GET", "/ADMIN/x", REASON_PATH_NOT_ALLOWED, "admin");
	check_http(rs, "GET", "/%61dmin", REASON_PATH_NOT_ALLOWED, "admin");
	check_http(rs, "GET", "/a/../b", REASON_PATH_AMBIGUOUS, "admin");
	check_http(rs, "GET", "/files/x", REASON_ALLOWED, "a");
	check_http(rs, "POST", "/files/x", REASON_PATH_NOT_ALLOWED, "write");
	check_http(rs, "GET", "/admin", REASON_PATH_NOT_ALLOWED, "admin");
	/* Some origins know a method by its letters alone. */
	check_http(rs, "post", "/files/x", REASON_PATH_NOT_ALLOWED, "write");
	check_http(rs, "Post", "/files", REASON_PATH_NOT_ALLOWED, "write");
	assert_int_equal(ask(rs, "a.example", 80, "8.8.8.8").reason,
			 REASON_ALLOWED);
	rules_unref(rs);
}

/* However many patterns there are and however they are made, one request
 * costs its worker no more than a while; an allow and a deny both refuse. */
static void comparing_a_request_is_bounded(void **state)
{
	struct buf text = BUF_INIT(1 << 20);
	char path[2048];
	struct ruleset *rs;
	int err;

	(void)state;
	memset(path, 'a', sizeof(path));
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	err = buf_add_str(&text, STR("[allow a]\nhosts = a.example\n"
				     "protocol = http\n[deny d]\n"
				     "hosts = a.example\nprotocol = http\n"));
	for (int i = 0; i < 1000 && !err; i++)
		err = buf_add_str(&text, STR("paths = /*a*a*a*a*a*a*a*b\n"));
	assert_int_equal(err, 0);
	rs = compile_good(buf_cstr(&text));
	check_http(rs, "GET", path, REASON_PATH_AMBIGUOUS, "d");
	check_http(rs, "GET", "/b", REASON_ALLOWED, "a");
	rules_unref(rs);
	buf_reset(&text);
	err = buf_add_str(&text, STR("[allow a]\nhosts = a.example\n"
				     "protocol = http\n"));
	for (int i = 0; i < 1000 && !err; i++)
		err = buf_add_str(&text, STR("paths = /*a*a*a*a*a*a*a*b\n"));
	if (!err)
		err = buf_add_str(&text, STR("paths = /a*\n"));
	assert_int_equal(err, 0);
	rs = compile_good(buf_cstr(&text));
	check_http(rs, "GET", path, REASON_PATH_AMBIGUOUS, "a");
	check_http(rs, "GET", "/aa", REASON_ALLOWED, "a");
	rules_unref(rs);
	buf_done(&text);
}

static void what_cannot_be_seen_is_refused_whole(void **state)
{
	struct ruleset *rs = compile_good(
		"[allow a]\nhosts = a.example\nmethods = GET\n"
		"[allow b]\nhosts = b.example c.example\n"
		"[deny d]\nhosts = b.example\nmethods = POST\n"
		"[allow e]\nhosts = e.example\nmethods = GET\n"
		"protocol = https\n");
	struct rules_answer a = ask(rs, "a.example", 443, NULL);

	(void)state;
	assert_int_equal(a.reason, REASON_INSPECTION_REQUIRED);
	assert_string_equal(a.rule, "a");
	assert_int_equal(ask(rs, "a.example", 443, "8.8.8.8").reason,
			 REASON_INSPECTION_REQUIRED);
	assert_int_equal(ask(rs, "a.example", 80, NULL).reason,
			 REASON_ALLOWED);
	a = ask(rs, "b.example", 443, NULL);
	assert_int_equal(a.reason, REASON_INSPECTION_REQUIRED);
	assert_string_equal(a.rule, "d");
	assert_int_equal(ask(rs, "b.example", 80, NULL).reason,
			 REASON_ALLOWED);
	assert_int_equal(ask(rs, "c.example", 443, NULL).reason,
			 REASON_ALLOWED);
	/* A name of which nothing is open is not asked for. */
	assert_int_equal(rules_judge_name(rs, STR("e.example"), 1, &a),
			 RULES_NAME_DENIED);
	assert_int_equal(a.reason, REASON_INSPECTION_REQUIRED);
	assert_int_equal(rules_judge_name(rs, STR("a.example"), 1, &a),
			 RULES_NAME_ALLOWED);
	rules_unref(rs);
	/* Another rule that allows all of it is enough. */
	rs = compile_good("[allow a]\nhosts = a.example\nmethods = GET\n"
			  "[allow b]\nhosts = *.example.org a.example\n"
			  "protocol = https\n");
	a = ask(rs, "a.example", 443, NULL);
	assert_int_equal(a.reason, REASON_ALLOWED);
	assert_string_equal(a.rule, "b");
	rules_unref(rs);
}

static void a_deny_that_observes_is_said_and_refuses_nothing(void **state)
{
	struct ruleset *rs = compile_good(
		"[allow a]\nhosts = a.example b.example\n"
		"[deny d]\nhosts = a.example\nmode = observe\nreason = trial\n"
		"[deny e]\naddresses = 8.8.8.8\nmode = observe\nreason = x\n"
		"[deny f]\nhosts = b.example\nports = 80\nmethods = POST\n"
		"mode = observe\nreason = x\n");
	struct rules_answer a = ask(rs, "a.example", 443, NULL);

	(void)state;
	assert_int_equal(a.reason, REASON_HOST_DENIED);
	assert_true(a.would_deny);
	assert_string_equal(a.rule, "d");
	assert_string_equal(a.protocol->name, "https");
	a = ask(rs, "b.example", 443, "8.8.8.8");
	assert_int_equal(a.reason, REASON_ADDRESS_DENIED);
	assert_true(a.would_deny);
	/* It opens nothing. */
	a = ask(rs, "a.example", 443, "10.0.0.1");
	assert_int_equal(a.reason, REASON_ADDRESS_PRIVATE);
	assert_false(rules_passes(&a));
	a = ask(rs, "a.example", 22, NULL);
	assert_int_equal(a.reason, REASON_PORT_NOT_ALLOWED);
	assert_false(rules_passes(&a));
	assert_int_equal(rules_judge_name(rs, STR("a.example"), 1, &a),
			 RULES_NAME_ALLOWED);
	a = ask_http(rs, "b.example", "POST", "/");
	assert_int_equal(a.reason, REASON_METHOD_NOT_ALLOWED);
	assert_true(a.would_deny);
	rules_unref(rs);
}

static void an_allow_that_observes_says_what_it_would_refuse(void **state)
{
	struct ruleset *rs = compile_good(
		"[allow a]\nhosts = a.example\nprotocol = http\n"
		"methods = GET\nmode = observe\nreason = trial\n"
		"[deny d]\nhosts = a.example\nports = 25\n");
	struct rules_answer a = ask_http(rs, "a.example", "POST", "/");

	(void)state;
	assert_int_equal(a.reason, REASON_METHOD_NOT_ALLOWED);
	assert_true(a.would_deny);
	assert_string_equal(a.rule, "a");
	a = ask_http(rs, "a.example", "GET", "/");
	assert_int_equal(a.reason, REASON_ALLOWED);
	assert_false(a.would_deny);
	a = ask(rs, "a.example", 22, NULL);
	assert_int_equal(a.reason, REASON_PORT_NOT_ALLOWED);
	assert_true(a.would_deny);
	/* Neither a deny nor a class nor another host. */
	a = ask(rs, "a.example", 25, NULL);
	assert_false(rules_passes(&a));
	a = ask(rs, "a.example", 80, "10.0.0.1");
	assert_false(rules_passes(&a));
	a = ask(rs, "a.example", 22, "10.0.0.1");
	assert_false(rules_passes(&a));
	a = ask(rs, "b.example", 80, NULL);
	assert_false(rules_passes(&a));
	rules_unref(rs);
	/* What goes on must have been found by its name. */
	rs = compile_good("[allow a]\nhosts = a.example\nprotocol = https\n"
			  "paths = /x\nmode = observe\nreason = trial\n");
	a = ask(rs, "a.example", 443, NULL);
	assert_true(rules_passes(&a));
	assert_int_equal(a.reason, REASON_INSPECTION_REQUIRED);
	assert_int_equal(rules_judge_name(rs, STR("a.example"), 1, &a),
			 RULES_NAME_ALLOWED);
	rules_unref(rs);
}

static struct ruleset *compile_preset(const char *name, const char *text,
				      const char *policy, struct told *told)
{
	const struct rules_source source[] = {
		{ .name = "p.ini", .text = str_from(policy) },
		{ .name = "preset", .text = str_from(text),
		  .kind = RULES_SOURCE_PRESET, .parent = 1, .line = 2,
		  .word = str_from(name) },
	};
	struct ruleset *rs = NULL;

	*told = (struct told){ .text = BUF_INIT(1 << 16) };
	(void)!rules_compile(source, 2, told_one, told, &rs);
	return rs;
}

#define OPEN	"[allow open]\nhosts = *\nports = *\n"

static void the_preset_open_opens_the_public_internet(void **state)
{
	struct told told;
	struct ruleset *rs = compile_preset("open", OPEN,
		"[policy]\npreset = open\n[deny d]\nhosts = *.bad.example\n"
		"[deny e]\naddresses = 8.8.4.4\n", &told);
	struct rules_answer a;

	(void)state;
	assert_non_null(rs);
	assert_int_equal(ask(rs, "any.example", 443, "8.8.8.8").reason,
			 REASON_ALLOWED);
	assert_string_equal(ask(rs, "any.example", 443, NULL).protocol->name,
			    "https");
	assert_int_equal(ask(rs, "any.example", 2222, "8.8.8.8").reason,
			 REASON_ALLOWED);
	assert_int_equal(ask(rs, NULL, 53, "8.8.8.8").reason, REASON_ALLOWED);
	assert_int_equal(ask(rs, NULL, 53, "8.8.4.4").reason,
			 REASON_ADDRESS_DENIED);
	assert_int_equal(ask(rs, NULL, 80, "169.254.169.254").reason,
			 REASON_ADDRESS_METADATA);
	assert_int_equal(ask(rs, "any.example", 443, "10.0.0.1").reason,
			 REASON_ADDRESS_PRIVATE);
	assert_int_equal(ask(rs, NULL, 443, "127.0.0.1").reason,
			 REASON_ADDRESS_LOOPBACK);
	assert_int_equal(ask(rs, "x.bad.example", 443, NULL).reason,
			 REASON_HOST_DENIED);
	assert_int_equal(rules_judge_name(rs, STR("any.example"), 1, &a),
			 RULES_NAME_ALLOWED);
	rules_unref(rs);
	buf_done(&told.text);
	/* No other preset does. */
	assert_null(compile_preset("other", OPEN,
				   "[policy]\npreset = other\n", &told));
	assert_non_null(strstr(buf_cstr(&told.text), "preset:2:9: error: '*' "
			       "would allow every host"));
	buf_done(&told.text);
}

#define METHODS_4	" A B C D"
#define METHODS_16	METHODS_4 METHODS_4 METHODS_4 METHODS_4

static void requests_are_checked_with_their_place(void **state)
{
	static const struct {
		const char *text, *told;
	} f[] = {
		{ "[allow a]\nhosts = a.example\nmethods = get\n",
		  "3:11: error: 'get' has small letters in it" },
		{ "[allow a]\nhosts = a.example\nmethods = GET,POST\n",
		  "3:11: error: 'GET,POST' has a comma in it" },
		{ "[allow a]\nhosts = a.example\nmethods =" METHODS_16
		  METHODS_16 "\nmethods =" METHODS_16 METHODS_16 "\nmethods = "
		  "TRACE\n", "5:11: error: 'TRACE' is one method too many" },
		{ "[allow a]\nhosts = a.example\nmethods = *\n",
		  "3:11: error: '*' is no method" },
		{ "[allow a]\nhosts = a.example\npaths = /a /v1/*,/v2/*\n",
		  "3:12: error: '/v1/*,/v2/*' has a comma between paths" },
		{ "[allow a]\nhosts = a.example\nprotocol = ssh\n"
		  "methods = GET\n", "4:0: error: [allow a] has 'methods' or "
		  "'paths' for what is not HTTP; write 'protocol = http'" },
		{ "[allow a]\nhosts = a.example\nports = 80 8080\npaths = /\n",
		  "4:0: error: [allow a] has 'methods' or 'paths' for what is "
		  "not HTTP" },
		{ "[allow a]\nhosts = a.example\nmethods = GET\n",
		  "3:0: warning: [allow a] opens nothing by TLS "
		  "(inspection_required)" },
		{ "[allow a]\nhosts = a.example\n[deny d]\nhosts = a.example\n"
		  "paths = /x\n", "5:0: warning: [deny d] refuses every "
		  "connection in which requests cannot be seen" },
		{ "[deny d]\nhosts = a.example\npaths = /x\n"
		  "addresses = 8.8.8.8\n", "3:0: error: [deny d] has "
		  "'addresses' beside 'methods' or 'paths'; write two rules" },
		{ "[allow a]\nhosts = a.example\nprotocol = http\npaths = /a\n"
		  "[allow b]\nhosts = a.example\nprotocol = http\n"
		  "addresses = 10.0.0.1\nreason = x\nowner = y\n",
		  "6:0: error: [allow b] and [allow a] (p.ini:1) allow the "
		  "same host with different 'addresses'" },
		{ "[allow a]\nhosts = a.example\nmode = observe\n",
		  "3:0: warning: [allow a] refuses nothing; say why with "
		  "'reason'" },
		{ "[allow a]\nhosts = a.example\nprotocol = http\n"
		  "[allow b]\nhosts = a.example\nprotocol = http\npaths = /x\n",
		  "4:0: warning: [allow b] adds nothing: [allow a] (p.ini:1) "
		  "covers it" },
		{ "[allow a]\nhosts = a.example\n[audit]\nqueries = show\n",
		  "4:0: warning: 'queries' has no effect" },
		{ "[dns]\nipv6 = maybe\n", "2:8: error: 'maybe' is no value of "
		  "'ipv6'; write auto, on or off" },
		{ "[dns]\ntypes = A AAAB\n", "2:11: error: 'AAAB' is no type "
		  "that a policy can open; there are TXT, MX" },
		{ "[allow a]\nhosts = a.example\ntypes = TXT ANY\n", "3:13: "
		  "error: 'ANY' is a type that no policy opens" },
		{ "[allow a]\naddresses = 192.0.2.1\nreason = x\n"
		  "types = TXT\n", "4:0: error: [allow a] has 'types' and no "
		  "'hosts'" },
		{ "[deny d]\nhosts = a.example\ntypes = TXT\n", "3:0: error: "
		  "'types' has no place in [deny d]; it belongs in [allow "
		  "NAME]" },
		{ "[limits]\nlabel_bytes = many\n", "2:15: error: 'many' is no "
		  "number of bytes" },
		{ "[limits]\nrate_up = 5X\n", "2:11: error: '5X' is no number "
		  "of bytes" },
		{ "[limits]\nconection = 5\n", "2:0: error: unknown key "
		  "'conection' in [limits]; did you mean 'connections'?" },
		{ "[limits]\nnames = 5\nnames = 6\n", "3:0: error: 'names' "
		  "stands in [limits] twice, first in line 2" },
		{ "[credential c]\nfile = secret\n", "2:8: error: 'secret' is "
		  "no absolute path" },
		{ "[credential c]\nhosts = *.com\n", "2:9: error: '*.com' would "
		  "allow a whole" },
		{ "[defaults]\nprotocol = htps\n", "2:12: error: unknown "
		  "protocol 'htps'; did you mean 'https'?" },
		{ "[defaults]\nhosts = a.example\n", "2:0: error: 'hosts' has "
		  "no place in [defaults]; it belongs in [allow NAME] or" },
	};
	struct told told;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(f); i++) {
		rules_unref(compile_told(f[i].text, &told));
		if (!strstr(buf_cstr(&told.text), f[i].told))
			fail_msg("of:\n%s\ntold: %s\nwanted: %s", f[i].text,
				 buf_cstr(&told.text), f[i].told);
		buf_done(&told.text);
	}
}

/* POL-08 */
static void defaults_are_of_the_rules_in_the_same_file(void **state)
{
	struct ruleset *rs = compile_good(
		"[defaults]\nprotocol = https\nowner = team\n"
		"expires = 2999-01-01\n"
		"[allow a]\nhosts = a.example\n"
		"[allow b]\nhosts = b.example\nports = 80\nowner = other\n"
		"[deny c]\nhosts = c.example\n");
	struct rules_rule_info info;

	(void)state;
	assert_int_equal(ask(rs, "a.example", 80, NULL).reason,
			 REASON_PORT_NOT_ALLOWED);
	rules_rule_info(rs, 1, &info);
	assert_string_equal(info.owner, "team");
	assert_int_not_equal(info.expires, RULES_NEVER);
	rules_rule_info(rs, 2, &info);
	assert_string_equal(info.owner, "other");
	rules_rule_info(rs, 3, &info);
	assert_int_equal(info.expires, RULES_NEVER);
	rules_unref(rs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_allow_takes_its_methods_and_paths),
		cmocka_unit_test(what_renames_a_request_is_in_doubt),
		cmocka_unit_test(a_deny_shuts_its_requests_alone),
		cmocka_unit_test(comparing_a_request_is_bounded),
		cmocka_unit_test(what_cannot_be_seen_is_refused_whole),
		cmocka_unit_test(
			a_deny_that_observes_is_said_and_refuses_nothing),
		cmocka_unit_test(
			an_allow_that_observes_says_what_it_would_refuse),
		cmocka_unit_test(the_preset_open_opens_the_public_internet),
		cmocka_unit_test(requests_are_checked_with_their_place),
		cmocka_unit_test(defaults_are_of_the_rules_in_the_same_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
