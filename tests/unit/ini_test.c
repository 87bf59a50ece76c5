/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ini_test.c - each trap of INI, and that inih sees it as we do
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/ini.h"

/* What was reported, one line each: "[a]@1 a.k=v@2 !3:1 message". */
struct seen {
	struct buf text;
};

static void on_section(void *arg, unsigned line, struct str name)
{
	struct seen *s = arg;

	assert_int_equal(buf_printf(&s->text, "[%.*s]@%u\n", STR_ARG(name),
				    line), 0);
}

static void on_key(void *arg, unsigned line, struct str section,
		   struct str key, struct str value)
{
	struct seen *s = arg;

	assert_int_equal(buf_printf(&s->text, "%.*s.%.*s=%.*s@%u\n",
				    STR_ARG(section), STR_ARG(key),
				    STR_ARG(value), line), 0);
}

static void on_error(void *arg, unsigned line, unsigned column,
		     const char *message)
{
	struct seen *s = arg;

	assert_int_equal(buf_printf(&s->text, "!%u:%u %s\n", line, column,
				    message), 0);
}

static const struct ini_handler handler = { on_section, on_key, on_error };

static void assert_read(struct str text, int result, const char *want)
{
	struct seen s = { BUF_INIT(1 << 20) };

	assert_int_equal(ini_read(text, &handler, &s), result);
	assert_string_equal(buf_cstr(&s.text), want);
	buf_done(&s.text);
}

static void sections_keys_and_comments_are_told_apart(void **state)
{
	(void)state;
	assert_read(STR("; c\n# d\n\n \t\nbefore = 1\n[policy]\nname=x\n"
			"a b =  c d \t\nempty =\n"), 0,
		    ".before=1@5\n[policy]@6\npolicy.name=x@7\n"
		    "policy.a b=c d@8\npolicy.empty=@9\n");
	assert_read(STR(""), 0, "");
	assert_read(STR("[a]"), 0, "[a]@1\n");
	assert_read(STR("k=v"), 0, ".k=v@1\n");
	assert_read(STR("   ; an indented comment\n"), 0, "");
}

static void empty_and_doubled_sections_are_reported(void **state)
{
	(void)state;
	assert_read(STR("[a]\n[a]\n[b]\nk=1\n[a]\nk=2\n[ a ]\n"), 0,
		    "[a]@1\n[a]@2\n[b]@3\nb.k=1@4\n[a]@5\na.k=2@6\n[a]@7\n");
}

static void a_mark_and_crlf_are_accepted(void **state)
{
	(void)state;
	assert_read(STR("\xef\xbb\xbf[a]\r\nk = v\r\n\r\n; c\r\n"), 0,
		    "[a]@1\na.k=v@2\n");
	assert_read(STR("\xef\xbb\xbf"), 0, "");
	/* Only at the very beginning. */
	assert_read(STR("[a]\n\xef\xbb\xbfk=v\n"), -EINVAL,
		    "[a]@1\n!2:1 a control or invisible character\n");
}

static void inline_comments_are_part_of_the_value(void **state)
{
	(void)state;
	assert_read(STR("k = v ; not # a comment\n[s]\n"), 0,
		    ".k=v ; not # a comment@1\n[s]@2\n");
	assert_read(STR("k = a=b:c\n"), 0, ".k=a=b:c@1\n");
	assert_read(STR("[s] ; c\nk=v\n[t]\nk=w\n"), -EINVAL,
		    "!1:4 nothing may stand behind ']'; a comment has its own "
		    "line\n[t]@3\nt.k=w@4\n");
}

static void continuation_lines_are_refused(void **state)
{
	(void)state;
	assert_read(STR("k = v\n  more\nl = w\n"), -EINVAL,
		    ".k=v@1\n!2:1 a line that begins with a blank continues "
		    "nothing; a value that goes on is written by repeating its "
		    "key\n.l=w@3\n");
}

/* POL-16: never ignored, and never a part of the value above. */
static void blanks_around_a_line_mean_nothing(void **state)
{
	(void)state;
	assert_read(STR("\t[s]\r\n  k = v \n\t; note\n \t l=w\t\n"), 0,
		    "[s]@1\ns.k=v@2\ns.l=w@4\n");
}

static void a_colon_is_no_equals_sign(void **state)
{
	(void)state;
	assert_read(STR("hosts : a = b\nk = a:b\n"), -EINVAL,
		    "!1:7 write 'key = value', with '='\n.k=a:b@2\n");
	assert_read(STR("hosts: a\n"), -EINVAL,
		    "!1:6 write 'key = value', with '='\n");
}

static void lines_that_say_nothing_are_faults(void **state)
{
	(void)state;
	assert_read(STR("word\n= v\n[\n[]\n[ ]\n[a\nx]\n[[a]]\n[a[b]\n"),
		    -EINVAL,
		    "!1:1 expected 'key = value' or '[section]'\n"
		    "!2:1 a key must stand before '='\n"
		    "!3:2 a section line must end with ']'\n"
		    "!4:2 a section must have a name\n"
		    "!5:2 a section must have a name\n"
		    "!6:3 a section line must end with ']'\n"
		    "!7:1 expected 'key = value' or '[section]'\n"
		    "!8:5 nothing may stand behind ']'; a comment has its own "
		    "line\n"
		    "!9:2 a section name must not hold '['\n");
}

static void bytes_that_hide_something_are_faults(void **state)
{
	(void)state;
	assert_read(str_make("k=a\0b\n", 6), -EINVAL, "!1:4 a NUL byte; take it out, or save the "
		    "file as UTF-8\n");
	assert_read(str_make("\0", 1), -EINVAL, "!1:1 a NUL byte; take it out, or save the "
		    "file as UTF-8\n");
	assert_read(STR("k=a\rl=b\n"), -EINVAL,
		    "!1:4 a carriage return that ends no line\n");
	assert_read(STR("k=a\r\r\n"), -EINVAL,
		    "!1:4 a carriage return that ends no line\n");
	assert_read(STR("k=a\r"), -EINVAL,
		    "!1:4 a carriage return that ends no line\n");
	assert_read(STR("k=\xff\n"), -EINVAL, "!1:3 not valid UTF-8; save the file as "
		    "UTF-8\n");
	assert_read(STR("; \xc3\n"), -EINVAL, "!1:3 not valid UTF-8; save the file as "
		    "UTF-8\n");
	assert_read(STR("k=\x1b[2J\n"), -EINVAL,
		    "!1:3 a control or invisible character\n");
	assert_read(STR("k=\x0b\n"), -EINVAL,
		    "!1:3 a control or invisible character\n");
	/* Text that is shown in another order than it is read. */
	assert_read(STR("; \xe2\x80\xae\n"), -EINVAL,
		    "!1:3 a control or invisible character\n");
	assert_read(STR("k=\xc3\xa9\n"), 0, ".k=\xc3\xa9@1\n");
}

static void a_section_name_has_48_bytes_and_no_more(void **state)
{
	static const char name[] =
		"0123456789012345678901234567890123456789012345678";
	struct buf in = BUF_INIT(1024), want = BUF_INIT(1024);

	(void)state;
	/* inih cuts at 49: the key would land in a section never written. */
	assert_int_equal(buf_printf(&in, "[%s]\nk=1\n[%.48s]\nk=2\n", name,
				    name), 0);
	assert_int_equal(buf_printf(&want,
		"!1:2 a section name has at most 48 bytes\n"
		"[%.48s]@3\n%.48s.k=2@4\n", name, name), 0);
	assert_read(buf_str(&in), -EINVAL, buf_cstr(&want));
	buf_done(&in);
	buf_done(&want);
}

static void keys_under_a_refused_section_belong_to_none(void **state)
{
	(void)state;
	assert_read(STR("[a]\nk=1\n[]\nk=2\n[b]\nk=3\n"), -EINVAL,
		    "[a]@1\na.k=1@2\n!3:2 a section must have a name\n"
		    "[b]@5\nb.k=3@6\n");
}

static void a_line_of_the_greatest_length_is_whole(void **state)
{
	struct buf in = BUF_INIT(INI_LINE_MAX + 100);
	struct buf want = BUF_INIT(INI_LINE_MAX + 100);
	static char x[INI_LINE_MAX];

	(void)state;
	memset(x, 'x', sizeof(x));
	assert_int_equal(buf_printf(&in, "k=%.*s\nl=1\n", INI_LINE_MAX - 2, x),
			 0);
	assert_int_equal(buf_printf(&want, ".k=%.*s@1\n.l=1@2\n",
				    INI_LINE_MAX - 2, x), 0);
	assert_read(buf_str(&in), 0, buf_cstr(&want));
	buf_reset(&in);
	assert_int_equal(buf_printf(&in, "k=%.*s\nl=1\n", INI_LINE_MAX - 1, x),
			 0);
	assert_read(buf_str(&in), -EINVAL,
		    "!1:8193 a line has at most 8192 bytes\n.l=1@2\n");
	buf_done(&in);
	buf_done(&want);
}

static void errors_are_bounded(void **state)
{
	struct seen s = { BUF_INIT(1 << 20) };
	struct buf in = BUF_INIT(1 << 20);
	unsigned lines = 0;

	(void)state;
	for (int i = 0; i < 5000; i++)
		assert_int_equal(buf_add_str(&in, STR("nonsense\n")), 0);
	assert_int_equal(ini_read(buf_str(&in), &handler, &s), -EINVAL);
	for (size_t i = 0; i < s.text.n; i++)
		lines += s.text.p[i] == '\n';
	assert_int_equal(lines, INI_ERRORS_MAX + 1);
	assert_non_null(strstr(buf_cstr(&s.text), "!64:1 too many errors"));
	buf_done(&in);
	buf_done(&s.text);
}

static void the_nearest_known_word_is_proposed(void **state)
{
	static const char *const words[] = {
		"hosts", "addresses", "ports", "protocol", "reason", "methods",
		NULL,
	};
	static const char *const none[] = { NULL };

	(void)state;
	assert_string_equal(ini_did_you_mean(STR("host"), words), "hosts");
	assert_string_equal(ini_did_you_mean(STR("Hosts"), words), "hosts");
	assert_string_equal(ini_did_you_mean(STR("adress"), words),
			    "addresses");
	assert_string_equal(ini_did_you_mean(STR("prot"), words), "ports");
	assert_string_equal(ini_did_you_mean(STR("resaon"), words), "reason");
	assert_string_equal(ini_did_you_mean(STR("protcol"), words),
			    "protocol");
	assert_null(ini_did_you_mean(STR("colour"), words));
	assert_null(ini_did_you_mean(STR("x"), words));
	assert_null(ini_did_you_mean(STR(""), words));
	assert_null(ini_did_you_mean(STR("hosts"), none));
	assert_null(ini_did_you_mean(STR(
		"hostshostshostshostshostshostshostshostshostshostshostshosts"
		"hosts"), words));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sections_keys_and_comments_are_told_apart),
		cmocka_unit_test(empty_and_doubled_sections_are_reported),
		cmocka_unit_test(a_mark_and_crlf_are_accepted),
		cmocka_unit_test(inline_comments_are_part_of_the_value),
		cmocka_unit_test(continuation_lines_are_refused),
		cmocka_unit_test(blanks_around_a_line_mean_nothing),
		cmocka_unit_test(a_colon_is_no_equals_sign),
		cmocka_unit_test(lines_that_say_nothing_are_faults),
		cmocka_unit_test(bytes_that_hide_something_are_faults),
		cmocka_unit_test(a_section_name_has_48_bytes_and_no_more),
		cmocka_unit_test(keys_under_a_refused_section_belong_to_none),
		cmocka_unit_test(a_line_of_the_greatest_length_is_whole),
		cmocka_unit_test(errors_are_bounded),
		cmocka_unit_test(the_nearest_known_word_is_proposed),
	};

	return cmocka_run_group_tests_name("ini", tests, NULL, NULL);
}
