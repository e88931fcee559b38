// A control group for a case, of version 1 or 2: made, entered, limited, left and removed. As root.
#include "../common.h"

static char group[128];
static int of_version_2;

static inline int set(const char *file, const char *value) {
    char path[192];
    snprintf(path, sizeof path, "%s/%s", group, file);
    int fd = open(path, O_WRONLY | O_TRUNC);
    int failed = fd < 0 || write(fd, value, strlen(value)) < 0;
    if (fd >= 0) close(fd);
    return failed;
}

// Makes the group `name` of a controller, and writes so to it. Ends the case where that cannot be.
static inline void make_group(const char *controller, const char *name) {
    of_version_2 = access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0;
    if (of_version_2) {
        // Its parent may have processes of its own only at the root, where this is.
        char enable[32];
        snprintf(group, sizeof group, "/sys/fs/cgroup");
        snprintf(enable, sizeof enable, "+%s", controller);
        set("cgroup.subtree_control", enable);
        snprintf(group, sizeof group, "/sys/fs/cgroup/%s", name);
    } else {
        snprintf(group, sizeof group, "/sys/fs/cgroup/%s/%s", controller, name);
    }
    if (mkdir(group, 0755) && errno != EEXIST) cannot("no control group can be made");
}

static inline void enter_group(void) {
    char pid[16];
    snprintf(pid, sizeof pid, "%d", getpid());
    if (set("cgroup.procs", pid)) cannot("the control group cannot be entered");
}

static inline void leave_and_remove_group(const char *controller) {
    char own[128];
    snprintf(own, sizeof own, "%s", group);
    snprintf(group, sizeof group, of_version_2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/%s", controller);
    char pid[16];
    snprintf(pid, sizeof pid, "%d", getpid());
    set("cgroup.procs", pid);
    rmdir(own);
}

// A number of one of the group's files, behind a word.
static inline int64_t read_number(const char *file, const char *word) {
    char path[192], line[128];
    long long n = 0;
    snprintf(path, sizeof path, "%s/%s", group, file);
    FILE *in = fopen(path, "r");
    while (in && fgets(line, sizeof line, in)) {
        if (!strncmp(line, word, strlen(word))) n = atoll(line + strlen(word));
    }
    if (in) fclose(in);
    return n;
}
