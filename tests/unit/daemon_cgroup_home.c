/* Where our control groups are, on hosts of every shape. */
#include "check.h"

#include "cgroup/home.h"

static const struct host {
	const char *name, *cgroup, *mountinfo;
	struct expected {
		unsigned version;
		const char *path;
	} places[_CONTROLLER_N];
} hosts[] = {
	{
		"version 2, in a service",
		"0::/system.slice/laird.service\n",
		"25 30 0:23 / /sys rw,nosuid - sysfs sysfs rw\n"
		"31 25 0:28 / /sys/fs/cgroup rw,nosuid,nodev shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
		{{2, "/sys/fs/cgroup/system.slice/laird.service"},
		 {2, "/sys/fs/cgroup/system.slice/laird.service"},
		 {2, "/sys/fs/cgroup/system.slice/laird.service"}},
	},
	{
		"version 1, with controllers that share a hierarchy, and a 2 that has none",
		"9:name=systemd:/user.slice\n5:cpu,cpuacct:/user.slice\n3:memory:/user.slice/a "
		"b\n2:pids:/\n0::/x\n",
		"32 31 0:29 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n"
		"33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 master:1 - cgroup cgroup rw,cpu,cpuacct\n"
		"34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
		"35 31 0:32 / /sys/fs/my\\040memory rw - cgroup cgroup rw,memory\n"
		"36 31 0:33 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
		"37 31 0:34 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
		{{1, "/sys/fs/my memory/user.slice/a b"},
		 {1, "/sys/fs/cgroup/pids"},
		 {1, "/sys/fs/cgroup/cpu,cpuacct/user.slice"}},
	},
	{
		"half and half: the 2 comes first and has what the 1 has not",
		"0::/a\n4:memory:/m\n",
		"37 31 0:34 / /c/unified rw - cgroup2 cgroup2 rw\n"
		"35 31 0:32 / /c/memory rw - cgroup cgroup rw,memory\n",
		{{1, "/c/memory/m"}, {2, "/c/unified/a"}, {2, "/c/unified/a"}},
	},
	{
		"a container that sees its own part of version 1",
		"4:memory:/docker/1f\n2:pids:/docker/1f/in\n1:cpu:/docker/1f2\n",
		"35 31 0:32 /docker/1f /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
		"36 31 0:33 /docker/1f /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids\n"
		"36 31 0:33 /docker/1f /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n",
		{{1, "/sys/fs/cgroup/memory"}, {1, "/sys/fs/cgroup/pids/in"}, {0, NULL}},
	},
	{
		"a group above the root of its namespace",
		"0::/../other\n",
		"31 25 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
		{{0, NULL}, {0, NULL}, {0, NULL}},
	},
	{"nothing mounted", "4:memory:/\n0::/\n", "25 30 0:23 / / rw - ext4 /dev/vda rw\n", {{0}, {0}, {0}}},
	{"nothing at all", "", "", {{0}, {0}, {0}}},
	{
		"nonsense",
		"0\n::\n4:memory\n:memory:\n0::/a",
		"\n1\n1 2 3 4 5 6 7 8\n1 2 0:1 / / rw - cgroup2\n- - -\n31 25 0:28 / /c\\0 rw - cgroup2 cgroup2 rw",
		{{2, "/c\\0/a"}, {2, "/c\\0/a"}, {2, "/c\\0/a"}},
	},
};

static FILE *file_of(const char *text)
{
	return *text ? fmemopen((char *)text, strlen(text), "r") : fopen("/dev/null", "r");
}

int main(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
		const struct host *host = &hosts[i];
		struct cgroup_home places[_CONTROLLER_N] = {{0}};
		FILE *cgroup = file_of(host->cgroup), *mountinfo = file_of(host->mountinfo);

		CHECK(cgroup && mountinfo && cgroup_homes_read(places, cgroup, mountinfo) == 0);
		for (int c = 0; c < _CONTROLLER_N; c++) {
			const struct expected *wanted = &host->places[c];
			bool same = places[c].version == wanted->version && !places[c].path == !wanted->path &&
				    (!wanted->path || strcmp(places[c].path, wanted->path) == 0);

			CHECK(same);
			if (!same)
				printf("%s: %s: version %u at %s\n", host->name, controller_names[c],
				       places[c].version, places[c].path ? places[c].path : "-");
		}
		cgroup_homes_deinit(places);
		fclose(cgroup);
		fclose(mountinfo);
	}
	return check_report();
}
