// A tenant and two hogs, processes, have one CPU: their control group has no other, while others are idle. As root.
#include "cgroup.h"

NOINLINE static void hoard(void) { burn_us(3000); }

static void hog(long number) {
    while (going()) hoard();
}

static void tenant(long number) {
    while (going()) burn_and_count(40000);
}

int main(void) {
    make_group("cpuset", "case-flat");
    if ((!of_version_2 && set("cpuset.mems", "0")) || set("cpuset.cpus", "0")) cannot("the group gets no CPU");
    enter_group();
    end_ns = now_ns() + RUN_MS * 1000000LL;
    for (long i = 0; i < 2; i++) process("hog-%ld", hog, i);
    process("tenant", tenant, 0);
    finish();
    leave_and_remove_group("cpuset");
    truth("tenant", "cpu", "hog-", "hoard");
}
