/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_env.c - what the command finds in its environment
 *
 * Left out: whatever names a socket, an agent or a display of the host (the
 * thing itself is hidden, and a name that leads nowhere confuses programs),
 * directories that are not there, and every proxy setting: inside, there is one
 * proxy, and a NO_PROXY of the caller's would send allowed hosts around it
 * into a refusal.
 *
 * Set, unless the caller wants no proxy variables: both spellings, since curl
 * reads only the small http_proxy and others only the large one; ALL_PROXY for
 * who asks for it alone, since it breaks clients without SOCKS; no_proxy in the
 * one form that every client understands.
 */
#include "cli/run_env.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "proxy/ctl_proto.h"

#define VAR_MAX		(64u << 20)	/* bytes of one variable */
#define SET_MAX		24

static const char *const left_out[] = {
	/* sockets and agents of the host */
	"SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "GNOME_KEYRING_CONTROL",
	"DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS",
	"XDG_RUNTIME_DIR", "XDG_SESSION_ID", "DISPLAY", "WAYLAND_DISPLAY",
	"WAYLAND_SOCKET", "XAUTHORITY", "PULSE_SERVER", "TMUX", "STY",
	"VSCODE_IPC_HOOK_CLI", "VSCODE_GIT_IPC_HANDLE", "DOCKER_HOST",
	"CONTAINER_HOST", "CONTAINERD_ADDRESS", "KUBECONFIG",
	"KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "KRB5CCNAME",
	"NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES",
	"JOURNAL_STREAM", "INVOCATION_ID", "WATCHDOG_PID", "WATCHDOG_USEC",
	/* directories that are fresh inside */
	"TMPDIR", "TMP", "TEMP", "TEMPDIR",
	/* what libc's resolver would take from here */
	"RES_OPTIONS", "LOCALDOMAIN", "HOSTALIASES",
	/* set anew below, or not at all */
	"NODE_USE_ENV_PROXY", "AWS_EC2_METADATA_DISABLED", "HOME",
	"PENSTOCK_RUN", "PENSTOCK_SANDBOX",
};

const char *const run_env_ca_files[] = {
	"SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "PIP_CERT",
	"NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO",
	"AWS_CA_BUNDLE", "DENO_CERT", "npm_config_cafile",
	"CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", "BUNDLE_SSL_CA_CERT",
	"COMPOSER_CAFILE", "NIX_SSL_CERT_FILE", NULL
};

/* http_proxy, NO_PROXY, all_proxy, npm_config_https_proxy, ... */
static bool is_proxy(struct str name)
{
	static const struct str tail = { "_proxy", 6 };

	return (name.n > tail.n &&
		str_ieq(str_make(name.p + name.n - tail.n, tail.n), tail)) ||
	       str_ieq(name, STR("npm_config_noproxy"));
}

static bool is_left_out(struct str name)
{
	for (size_t i = 0; i < ARRAY_SIZE(left_out); i++) {
		if (str_eq(name, str_from(left_out[i])))
			return true;
	}
	return is_proxy(name);
}

static char *variable(const char *name, const char *value)
{
	struct buf b = BUF_INIT(VAR_MAX);
	char *copy = NULL;

	if (!buf_printf(&b, "%s=%s", name, value))
		copy = mem_dup_str(buf_str(&b));
	buf_done(&b);
	return copy;
}

struct made {
	char **env;
	size_t n;
	int err;
};

static void add(struct made *m, const char *name, const char *value)
{
	char *v = m->err ? NULL : variable(name, value);

	if (!v)
		m->err = -ENOMEM;
	else
		m->env[m->n++] = v;
}

static void add_proxies(struct made *m, const struct run_env_config *c)
{
	static const char proxy[] = "http://" PLUG_HTTP_ADDR ":3128";
	static const char socks[] = "socks5h://" PLUG_SOCKS_ADDR ":1080";
	static const char direct[] = "localhost,127.0.0.1,::1";

	_Static_assert(PLUG_HTTP_PORT == 3128, "the port in proxy[]");
	_Static_assert(PLUG_SOCKS_PORT == 1080, "the port in socks[]");
	if (c->proxy) {
		add(m, "http_proxy", proxy);
		add(m, "HTTP_PROXY", proxy);
		add(m, "https_proxy", proxy);
		add(m, "HTTPS_PROXY", proxy);
		add(m, "NODE_USE_ENV_PROXY", "1");
	}
	if (c->socks) {
		add(m, "all_proxy", socks);
		add(m, "ALL_PROXY", socks);
	}
	if (c->proxy || c->socks) {
		add(m, "no_proxy", direct);
		add(m, "NO_PROXY", direct);
	}
}

static void add_ours(struct made *m, const struct run_env_config *c)
{
	add(m, "HOME", c->home ? c->home : "/");
	if (c->user) {
		add(m, "USER", c->user);
		add(m, "LOGNAME", c->user);
	}
	if (c->runtime_dir)
		add(m, "XDG_RUNTIME_DIR", c->runtime_dir);
	add(m, "PENSTOCK_SANDBOX", "1");
	add(m, "PENSTOCK_RUN", c->run_id);
	/* Its SDKs would wait for an address that nothing here answers for. */
	add(m, "AWS_EC2_METADATA_DISABLED", "true");
	add_proxies(m, c);
}

static bool is_user(struct str name)
{
	return str_eq(name, STR("USER")) || str_eq(name, STR("LOGNAME"));
}

int run_env_make(const struct run_env_config *c, char ***ret,
		 const char **ret_ignored)
{
	struct made m = { NULL, 0, 0 };
	size_t count = 0;

	*ret_ignored = NULL;
	while (c->from[count])
		count++;
	m.env = mem_new_array(count + SET_MAX + 1, sizeof(*m.env));
	if (!m.env)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		struct str whole = str_from(c->from[i]), name;

		if (!str_cut(&whole, '=', &name) || str_empty(name))
			continue;
		if (is_proxy(name))
			*ret_ignored = c->from[i];
		if (is_left_out(name) || (c->user && is_user(name)))
			continue;
		m.env[m.n] = mem_dup_str(str_from(c->from[i]));
		if (!m.env[m.n]) {
			m.err = -ENOMEM;
			break;
		}
		m.n++;
	}
	if (!m.err)
		add_ours(&m, c);
	if (m.err) {
		run_env_free(m.env);
		return m.err;
	}
	*ret = m.env;
	return 0;
}

void run_env_free(char **env)
{
	if (!env)
		return;
	for (size_t i = 0; env[i]; i++)
		mem_free(env[i]);
	mem_free(env);
}
