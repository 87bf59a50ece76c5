# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += %D%/librules.a
%C%_librules_a_CPPFLAGS = $(AM_CPPFLAGS) $(MD_CFLAGS) $(PSL_CFLAGS) \
	$(IDN2_CFLAGS)
%C%_librules_a_SOURCES = \
	%D%/host_name.c %D%/host_name.h \
	%D%/host_build.c \
	%D%/host_idn.c %D%/host_idn.h \
	%D%/host_list.c %D%/host_list.h \
	%D%/host_marks.c %D%/host_marks.h \
	%D%/host_cell.h %D%/host_table.c %D%/host_table.h %D%/host_walk.h \
	%D%/protocols.c \
	%D%/rules.h %D%/ruleset.h %D%/rules_ast.h \
	%D%/rules_allow.c \
	%D%/rules_bundle.c %D%/rules_bundle.h \
	%D%/rules_check.c \
	%D%/rules_compare.c \
	%D%/rules_compile.c \
	%D%/rules_cuts.c %D%/rules_cuts.h \
	%D%/rules_diff.c %D%/rules_diff.h \
	%D%/rules_samples.c %D%/rules_samples.h \
	%D%/rules_hosts.c \
	%D%/rules_keys.c \
	%D%/rules_hook.c %D%/rules_hook.h \
	%D%/rules_limits.c \
	%D%/rules_load.c %D%/rules_load.h \
	%D%/rules_judge.h %D%/rules_match.c %D%/rules_name.c \
	%D%/rules_near.c \
	%D%/rules_parse.c %D%/rules_parse.h \
	%D%/rules_path.c %D%/rules_path.h \
	%D%/rules_report.c \
	%D%/rules_request.c \
	%D%/rules_dns.c \
	%D%/rules_settings.c \
	%D%/rules_sources.c \
	%D%/rules_time.c \
	%D%/rules_show.c %D%/rules_show.h \
	%D%/rules_target.c %D%/rules_target.h \
	%D%/ruleset.c %D%/ruleset_hosts.c \
	%D%/rules_value.c %D%/rules_value.h \
	%D%/span_tree.c %D%/span_tree.h

RULES_LIBS = $(MD_LIBS) $(PSL_LIBS) $(IDN2_LIBS)
EXTRA_DIST += %D%/README.md
rules_exampledir = $(docdir)/examples
dist_rules_example_DATA = \
	%D%/examples/addresses.ini \
	%D%/examples/build-cache.ini \
	%D%/examples/coding-agent.ini \
	%D%/examples/databases.ini \
	%D%/examples/deny-all.ini \
	%D%/examples/observe.ini \
	%D%/examples/parents.ini
presetsdir = $(pkgdatadir)/presets
dist_presets_DATA = \
	%D%/presets/alpine.ini \
	%D%/presets/anthropic.ini \
	%D%/presets/crates.ini \
	%D%/presets/debian.ini \
	%D%/presets/docker-hub.ini \
	%D%/presets/github.ini \
	%D%/presets/gitlab.ini \
	%D%/presets/go.ini \
	%D%/presets/google-ai.ini \
	%D%/presets/huggingface.ini \
	%D%/presets/locked-down.ini \
	%D%/presets/maven.ini \
	%D%/presets/npm.ini \
	%D%/presets/open.ini \
	%D%/presets/openai.ini \
	%D%/presets/pypi.ini \
	%D%/presets/rubygems.ini \
	%D%/presets/ubuntu.ini
dist_man_MANS += %D%/penstock.ini.5
