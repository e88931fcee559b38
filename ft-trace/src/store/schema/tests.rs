use super::*;
use crate::event::LeanUserEvent;
use crate::tables::*;
use arrow_schema::DataType;

/// Columns as `name:type`, with `?` where they are nullable.
fn schema<R: Row>() -> String {
    let column = |field: &Field| {
        let ty = match field.data_type() {
            DataType::Int64 => "i64",
            DataType::Int32 => "i32",
            DataType::Float64 => "f64",
            DataType::Boolean => "bool",
            DataType::Dictionary(key, value)
                if (&**key, &**value) == (&DataType::Int32, &DataType::Utf8) =>
            {
                "name"
            }
            other => panic!("{other} is not documented"),
        };
        format!("{}:{ty}{}", field.name(), if field.is_nullable() { "?" } else { "" })
    };
    R::columns().iter().map(column).collect::<Vec<_>>().join(" ")
}

/// What users have written queries against: a change here is a new [`SCHEMA_VERSION`].
#[test]
fn tables_have_their_documented_columns() {
    fn check<R: Row>(table: &str, expected: &str) {
        assert_eq!(R::TABLE, table);
        assert_eq!(schema::<R>(), expected.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    check::<UserEvent>(
        "user_events",
        "ts:i64 tsc:i64 pid:i32 tid:i32 cpu:i32 site:i32 event:name category:name kind:name
         arg0:i64? arg1:i64? arg2:i64? arg3:i64? arg4:i64? arg5:i64?
         argf0:f64? argf1:f64? argf2:f64? argf3:f64? argf4:f64? argf5:f64?
         argt0:name? argt1:name? argt2:name? argt3:name? argt4:name? argt5:name?",
    );
    check::<LeanUserEvent>(
        "user_events",
        "ts:i64 pid:i32 tid:i32 cpu:i32 site:i32 arg0:i64? arg1:i64? arg2:i64?",
    );
    check::<SchedSwitch>(
        "sched_switch",
        "ts:i64 cpu:i32 prev_tid:i32 prev_pid:i32 prev_comm:name prev_prio:i32 prev_state:name
         prev_woken:bool next_tid:i32 next_pid:i32 next_comm:name next_prio:i32",
    );
    check::<SchedWaking>(
        "sched_waking",
        "ts:i64 cpu:i32 waker_tid:i32 tid:i32 pid:i32 prio:i32 target_cpu:i32 is_new:bool",
    );
    check::<SchedMigrate>(
        "sched_migrate",
        "ts:i64 cpu:i32 tid:i32 pid:i32 from_cpu:i32 to_cpu:i32",
    );
    check::<Irq>("irq", "ts:i64 dur:i64 cpu:i32 kind:name number:i32 name:name tid:i32 pid:i32");
    check::<TaskEvent>(
        "task_events",
        "ts:i64 cpu:i32 kind:name tid:i32 pid:i32 comm:name parent_pid:i32?",
    );
    check::<Contention>(
        "contention",
        "ts:i64 dur:i64 cpu:i32 tid:i32 pid:i32 lock:i64 name:name? caller:name? kind:name flags:i32 end:name \
         stack:i64? cut:bool",
    );
    check::<Syscall>(
        "syscalls",
        "ts:i64 dur:i64 cpu:i32 tid:i32 pid:i32 number:i32 name:name ret:i64 file:name? seen:name",
    );
    check::<FutexCall>(
        "futex_calls",
        "ts:i64 dur:i64 cpu:i32 tid:i32 pid:i32 kind:name address:i64 shared:bool second:i64? value:i32 word:i32? \
         timeout_ns:i64? ret:i64 result:name",
    );
    check::<PageFault>(
        "page_faults",
        "ts:i64 cpu:i32 tid:i32 pid:i32 address:i64 access:name cause:name error:i32 in_kernel:bool \
         dur:i64? kind:name?",
    );
    check::<ProbeHit>(
        "probe_hits",
        "ts:i64 cpu:i32 tid:i32 pid:i32 kind:name probe:name stack_pointer:i64?",
    );
    check::<ThreadRow>(
        "threads",
        "ts:i64 tid:i32 pid:i32 name:name process:name prio:i32? observed:bool",
    );
    check::<SiteRow>(
        "sites",
        "site:i32 pid:i32 event:name category:name kind:name file:name line:i32 args:name
         format:name triggers:i32 source:i32 started:i64 program:i32 on_ns:i64?",
    );
    check::<SymbolRow>(
        "symbols",
        "pid:i32 address:i64 kind:name symbol:name file:name line:i32 object:name offset:i64",
    );
    check::<NameRow>("names", "pid:i32 source:i32 id:i32 kind:name text:name line:i32 column:i32");
    check::<ClockRow>(
        "clock",
        "ts:i64 tsc:i64 bracket_ns:i64 residual_ns:i64 bound_ns:i64 realtime_offset_ns:i64
         boottime_offset_ns:i64 cpu:i32",
    );
    check::<HostClockRow>(
        "host_clock",
        "ts:i64 state:name bound_ns:i64? estimate_ns:i64? correction_ns:i64? frequency_ppm:f64?
         tai_s:i32? status:i32?",
    );
    check::<LossRow>(
        "loss",
        "ts:i64 dur:i64 origin:name what:name cpu:i32 pid:i32 tid:i32 count:i64",
    );
    check::<CriticalSection>(
        "critical_sections",
        "ts:i64 dur:i64 pid:i32 tid:i32 lock:i64 lock_name:name kind:name site:i32 place:name
         depth:i32 depth_mark:name wait_ns:i64 condition:bool slice:name
         running_ns:i64? preempted_ns:i64? dispatch_ns:i64? blocked_ns:i64? hardirq_ns:i64?
         softirq_ns:i64? vector_ns:i64? unexplained_ns:i64? parked_ns:i64?
         sleeps:i64? switches:i64? moves:i64? faults:i64? major_faults:i64?
         counter0:i64? counter1:i64?
         preemptor_tid:i32? preemptor_comm:name? preemptor_ns:i64? agent_ns:i64? mark:name",
    );
    check::<DispatchLatency>(
        "dispatch_latency",
        "ts:i64 dur:i64 pid:i32 tid:i32 comm:name cpu:i32 prio:i32 waker_tid:i32 waker_comm:name
         running_tid:i32? running_comm:name? running_ns:i64? migrated:bool stack:i64?
         agent_ns:i64? mark:name",
    );
    check::<Gap>(
        "gaps",
        "ts:i64 dur:i64 pid:i32 tid:i32 comm:name cpu:i32 cause:name? culprit:name?
         culprit_tid:i32?
         running_ns:i64? preempted_ns:i64? dispatch_ns:i64? blocked_ns:i64? hardirq_ns:i64?
         softirq_ns:i64? vector_ns:i64? unexplained_ns:i64? parked_ns:i64?
         agent_ns:i64? inferred:name mark:name",
    );
    check::<ThreadTime>(
        "thread_time",
        "ts:i64 pid:i32 tid:i32 comm:name part:name culprit:name? culprit_tid:i32? spent_ns:i64
         stretches:i64 agent_ns:i64? wall_ns:i64 mark:name",
    );
}

#[test]
fn the_first_column_is_the_key() {
    let loss = |ts| LossRow {
        ts: crate::ids::Nanos(ts),
        dur: 1,
        origin: LossOrigin::Ring,
        what: "ring full".into(),
        cpu: crate::ids::Cpu(0),
        pid: crate::ids::Pid(1),
        tid: crate::ids::Tid(1),
        count: 1,
    };
    assert_eq!(loss(77).key(), 77);
}
