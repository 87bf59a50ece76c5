# SPDX-License-Identifier: Apache-2.0
# End to end: real binaries in real namespaces.  Needs root; not a part of
# `make check`, which also runs where namespaces cannot be made.
E2E_TESTS = \
	%D%/conftest.py %D%/test_addresses.py %D%/test_attacks.py %D%/test_bench.py %D%/test_client_table.py %D%/test_clients.py %D%/test_connect.py \
	%D%/test_dns_repeats.py \
	%D%/test_dns_compliance.py %D%/test_dns_types.py %D%/test_doors.py %D%/test_explicit.py %D%/test_first_run.py \
	%D%/test_host_files.py %D%/test_ipv6.py \
	%D%/test_life.py %D%/test_listen.py %D%/test_map_root.py %D%/test_mark.py %D%/test_names.py %D%/test_parents.py \
	%D%/test_dns_clients.py %D%/test_dns_explain.py \
	%D%/test_no_nftables.py %D%/test_policy_files.py %D%/test_presets.py \
	%D%/test_real_answers.py %D%/test_reload.py %D%/test_service.py %D%/test_summary.py \
	%D%/test_exfiltration.py %D%/test_transparent.py %D%/test_upgrade.py %D%/test_upstreams.py
EXTRA_DIST += $(E2E_TESTS) %D%/soak.py %D%/churn.py tests/lab/demo.py tests/lab/lab.py tests/lab/dnsd.py \
	tests/lab/dnswire.py \
	tests/lab/names.py tests/lab/no_nftables.py tests/lab/origin.py scripts/lib.sh

e2e: all
	PENSTOCK_BUILD='$(abs_top_builddir)' /usr/bin/python3 -B -m pytest -q \
		-p no:cacheprovider $(top_srcdir)/tests/e2e

# Ten minutes of everything in a service: memory and descriptors stay flat.
# make soak SOAK_SECONDS=3600
SOAK_SECONDS = 600
soak: all
	PENSTOCK_BUILD='$(abs_top_builddir)' /usr/bin/python3 -B \
		$(top_srcdir)/tests/e2e/soak.py $(SOAK_SECONDS)

# The drawn cases of the unit tests, 100,000 of each kind; and 500 starts, which
# need root as `make e2e` does.
STRESS_CASES = 100000
STRESS_STARTS = 500
STRESS_TESTS = tests/unit/rules_property_test \
	tests/unit/http1_differential.py tests/unit/forward_differential.py \
	tests/unit/dns_oracle_test.py
stress: all
	PENSTOCK_CASES=$(STRESS_CASES) \
		$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(STRESS_TESTS)'
	PENSTOCK_BUILD='$(abs_top_builddir)' PENSTOCK_STARTS=$(STRESS_STARTS) \
		/usr/bin/python3 -B -m pytest -q -p no:cacheprovider \
		-k every_first_command $(top_srcdir)/tests/e2e/test_life.py
