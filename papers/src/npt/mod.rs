//! Beamonte and Dagenais, "Linux Low-Latency Tracing for Multicore Hard Real-Time Systems" (2015), sections 3 to 6.
//!
//! Left out: what needs kernel modules (LTTng's kernel tracer, SystemTap), and kernels with PREEMPT_RT.

pub(crate) mod loops;
mod lttng;
mod passes;
pub(crate) mod table1;
pub(crate) mod table4;
