// A miner may compute for 20 of each 100 ms: its control group has a quota, while CPUs are idle. As root.
#include "cgroup.h"

static void miner(long number) {
    while (going()) burn_and_count(50000);
}

int main(void) {
    make_group("cpu", "case-mine");
    int failed = of_version_2 ? set("cpu.max", "20000 100000")
                              : set("cpu.cfs_period_us", "100000") | set("cpu.cfs_quota_us", "20000");
    if (failed) cannot("the group gets no quota");
    enter_group();
    end_ns = now_ns() + RUN_MS * 1000000LL;
    start("miner", miner, 0);
    finish();
    int64_t throttled_ns =
        of_version_2 ? read_number("cpu.stat", "throttled_usec ") * 1000 : read_number("cpu.stat", "throttled_time ");
    leave_and_remove_group("cpu");
    // What the quota did not take was a wait behind others.
    lost->unsure_ns = lost->all_ns > throttled_ns ? lost->all_ns - throttled_ns : 0;
    truth("miner", "quota", "quota|throttled", "case-mine");
}
