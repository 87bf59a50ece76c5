/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_upgrade.c - penstock upgrade: the service by the penstockd that is
 *                 installed now
 *
 * The new daemon does it all (penstockd --upgrade).  Where a service manager
 * runs the service, it must be started inside of the unit, which is what the
 * manager does at a reload; so it is asked, and else the daemon started here.
 * A script of a package need not know which of the two it is.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/cmd.h"
#include "cli/daemon_path.h"
#include "cli/opts.h"

#define CONFIG_DEFAULT	PEN_SYSCONFDIR "/penstock/penstockd.ini"
#define UNIT_DEFAULT	"penstockd.service"
#define SYSTEMD		"/run/systemd/system"	/* sd_booted(3) */
#define SYSTEMCTL	"systemctl"

enum { ID_HELP = 1, ID_CONFIG, ID_UNIT, ID_DAEMON };

static const struct opt upgrade_opts[] = {
	{ ID_CONFIG, "config", 'c', OPT_NEEDED, "FILE",
	  "the service's configuration [" CONFIG_DEFAULT "]" },
	{ ID_UNIT, "unit", 'u', OPT_NEEDED, "UNIT",
	  "the service's unit, where systemd runs it [" UNIT_DEFAULT "]" },
	{ ID_DAEMON, "daemon", 0, OPT_NEEDED, "PATH", NULL },
	{ ID_HELP, "help", 'h', OPT_NONE, NULL, "this text" },
};

struct upgrade {
	const char *config, *unit, *daemon;
	bool help;
};

static const char *upgrade_set(void *arg, int id, const char *value)
{
	struct upgrade *u = arg;

	switch (id) {
	case ID_CONFIG: u->config = value; break;
	case ID_UNIT: u->unit = value; break;
	case ID_DAEMON: u->daemon = value; break;
	case ID_HELP: u->help = true; break;
	default: break;
	}
	return NULL;
}

static const struct opts_table upgrade_table = {
	"penstock upgrade", upgrade_opts, ARRAY_SIZE(upgrade_opts), upgrade_set
};

static void upgrade_usage(void)
{
	puts("Let the penstockd that is installed now take the service over, with its\n"
	     "configuration as it is now:\n\n"
	     "  penstock upgrade\n"
	     "  penstock upgrade --config /srv/gate/penstockd.ini\n\n"
	     "No connection is refused meanwhile, runs go on, and what is open stays\n"
	     "open.  If the new one cannot start, the old one goes on as before.  As\n"
	     "root, or as the service's user.  More: UPGRADE in penstockd(8).\n\n"
	     "Exit status: 0 when the new one serves; 1 when the old one still does.\n\n"
	     "Usage: penstock upgrade [OPTION...]\n");
	opts_usage(&upgrade_table);
}

/* Exit status of a program, found in PATH; what it says is not heard. */
static int run_quietly(char *const argv[])
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		if (null >= 0 && dup2(null, STDOUT_FILENO) >= 0 &&
		    dup2(null, STDERR_FILENO) >= 0)
			execvp(argv[0], argv);
		_exit(127);
	}
	if (pid < 0)
		return -errno;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static bool is_unit_active(const char *unit)
{
	char *const argv[] = {
		(char[]){ SYSTEMCTL }, (char[]){ "is-active" },
		(char[]){ "--quiet" }, (char *)(uintptr_t)unit, NULL,
	};

	return access(SYSTEMD, F_OK) == 0 && run_quietly(argv) == 0;
}

static int reload_unit(const char *unit)
{
	char *const argv[] = {
		(char[]){ SYSTEMCTL }, (char[]){ "reload" },
		(char *)(uintptr_t)unit, NULL,
	};

	execvp(argv[0], argv);
	say(SYSTEMCTL ": %s", strerror(errno));
	return EXIT_NEGATIVE;
}

static int start_daemon(const struct upgrade *u)
{
	const char *config = u->config ? u->config : CONFIG_DEFAULT;
	char path[PATH_MAX];
	char *const argv[] = {
		path, (char[]){ "--config" }, (char *)(uintptr_t)config,
		(char[]){ "--upgrade" }, NULL,
	};

	if (daemon_path_find(u->daemon, path) < 0)
		return EXIT_USAGE;	/* it was said */
	execv(path, argv);
	say("%s: %s", path, strerror(errno));
	return EXIT_NEGATIVE;
}

int cmd_upgrade(int argc, char **argv)
{
	struct upgrade u = { .config = NULL };
	int first;

	if (opts_parse_all(&upgrade_table, argc, argv, &u, &first))
		return EXIT_USAGE;
	if (u.help) {
		upgrade_usage();
		return 0;
	}
	if (first < argc) {
		say_of("penstock upgrade", "'%s' is too much", argv[first]);
		return EXIT_USAGE;
	}
	if (u.unit && u.config) {
		say("--unit and --config: the unit says which configuration it "
		    "has; give one of them");
		return EXIT_USAGE;
	}
	/* Another configuration is another service, and not that unit's. */
	if (u.unit || (!u.config && is_unit_active(UNIT_DEFAULT)))
		return reload_unit(u.unit ? u.unit : UNIT_DEFAULT);
	return start_daemon(&u);
}
