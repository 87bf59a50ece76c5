# SPDX-License-Identifier: Apache-2.0
# End to end: real binaries in real namespaces.  Needs root; not a part of
# `make check`, which also runs where namespaces cannot be made.
E2E_TESTS = \
	%D%/conftest.py %D%/test_addresses.py %D%/test_clients.py \
	%D%/test_doors.py %D%/test_explicit.py %D%/test_first_run.py \
	%D%/test_life.py %D%/test_names.py %D%/test_service.py %D%/test_summary.py \
	%D%/test_transparent.py
EXTRA_DIST += $(E2E_TESTS) tests/lab/demo.py tests/lab/lab.py tests/lab/dnsd.py \
	tests/lab/names.py tests/lab/origin.py scripts/lib.sh

e2e: all
	PENSTOCK_BUILD='$(abs_top_builddir)' /usr/bin/python3 -B -m pytest -q \
		-p no:cacheprovider $(top_srcdir)/tests/e2e
