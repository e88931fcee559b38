use super::super::Status;
use super::*;
use ft_trace::spool::frame::{ClockSample, HostClock};

fn check(c: Check, status: Status) {
    assert_eq!(c.status, status, "{c:?}");
    assert_eq!(c.remedy.is_empty(), status == Status::Ok, "{c:?}");
}

#[test]
fn kernels() {
    check(kernel_version("6.18.0-rc1+deb"), Status::Ok);
    check(kernel_version("5.10.0"), Status::Ok);
    check(kernel_version("5.9.16"), Status::Fail);
    check(kernel_version("4.19.0-25-amd64"), Status::Fail);
    check(kernel_version(""), Status::Warn);
    check(btf(Some(5 << 20)), Status::Ok);
    check(btf(None), Status::Fail);
}

#[test]
fn rights() {
    check(capabilities("Name:\tx\nCapEff:\t000001ffffffffff\n"), Status::Ok);
    check(capabilities("CapEff:\t000000c000000000\n"), Status::Warn);
    check(capabilities("CapEff:\t0000008000080000\n"), Status::Fail);
    check(capabilities("CapEff:\t0000000000000000\n"), Status::Fail);
    check(capabilities(""), Status::Warn);
    check(memory_lock(Some(1 << 16)), Status::Ok);
    check(memory_lock(None), Status::Ok);
}

#[test]
fn kernel_programs() {
    check(programs(|_| Ok(Vec::new())), Status::Ok);
    let lacks = |group, tracepoint| Missing { group, tracepoint };
    let old = programs(|groups| {
        assert_eq!(groups, Group::ALL);
        Ok(vec![lacks(Group::Lock, "contention_end"), lacks(Group::Lock, "contention_begin")])
    });
    assert!(old.found.starts_with("lock not whole: this kernel has no contention_end, "));
    check(old, Status::Warn);
    let refused = programs(|_| Err(KernelError::NoTracepoint("sched_switch")));
    assert!(!refused.found.contains(&refused.remedy));
    check(refused, Status::Fail);
    // One that is not among the defaults.
    let fault = programs(|groups| match groups.contains(&Group::Fault) {
        true => Err(KernelError::NoTracepoint("page_fault_user")),
        false => Ok(Vec::new()),
    });
    assert!(fault.found.starts_with("fault cannot be recorded: "), "{fault:?}");
    check(fault, Status::Warn);
}

#[test]
fn programs_that_are_not_preempted() {
    check(events(Events::NotNeeded), Status::Ok);
    check(events(Events::Used { real_time: true }), Status::Ok);
    check(events(Events::NoTracefs), Status::Warn);
}

#[test]
fn clocks() {
    check(tsc_flags("flags\t\t: fpu constant_tsc nonstop_tsc\n"), Status::Ok);
    check(tsc_flags("flags\t\t: fpu constant_tsc\n"), Status::Fail);
    check(tsc_flags(""), Status::Fail);
    check(clock_source("tsc"), Status::Ok);
    check(clock_source("hpet"), Status::Warn);
    check(synchronised(Ok(Agreement::Agree(4))), Status::Ok);
    check(synchronised(Ok(Agreement::NotKnown)), Status::Warn);
    let apart = ClockError::Unsynchronised { cpu: 3, offset_ns: 9e3 };
    check(synchronised(Err(apart)), Status::Fail);
    check(rseq(Some(28)), Status::Ok);
    check(rseq(Some(0)), Status::Warn);
    check(rseq(None), Status::Warn);
    check(bracket(80), Status::Ok);
    check(bracket(5000), Status::Warn);
}

#[test]
fn the_time_of_day_has_a_bound_or_none() {
    let told = |result, max_error_us, estimated_error_us| {
        let host = HostClock { result, max_error_us, estimated_error_us, ..HostClock::default() };
        host_row(&ClockSample { host: Some(host), ..ClockSample::default() })
    };
    let synchronised = time_of_day(told(0, 312, 20), &["ptp0 KVM virtual PTP".into()]);
    assert_eq!(
        synchronised.found,
        "synchronised, right within 312 µs by the kernel's account; clocks for PTP, which are not read: \
         ptp0 KVM virtual PTP"
    );
    check(synchronised, Status::Ok);
    for (row, expected) in [
        (told(0, 32_000, 0), "an error of 0: how far it can be off is not known"),
        (told(5, 16_000_000, 16_000_000), "not synchronised: how far it is off is not known"),
        (told(-1, 0, 0), "does not say"),
        (None, "does not say"),
    ] {
        let check_of = time_of_day(row, &[]);
        assert!(check_of.found.contains(expected), "{}", check_of.found);
        assert!(!check_of.found.contains("16"), "no figure that is none: {}", check_of.found);
        check(check_of, Status::Warn);
    }
}

#[test]
fn steal() {
    let guest = "flags : hypervisor\n";
    check(virtualisation("flags : fpu\n", ""), Status::Ok);
    check(virtualisation(guest, "cpu  1 2 3 4 5 6 7 0 0 0\n"), Status::Ok);
    check(virtualisation(guest, "cpu  1 2 3 4 5 6 7 8 0 0\n"), Status::Warn);
    check(virtualisation(guest, ""), Status::Warn);
}
