//! What the numbers of a column count.

use crate::words::words;

words! {
    /// Unit of a column.
    pub enum Unit {
        /// Nanoseconds; of a time, since the start of CLOCK_MONOTONIC.
        Ns = "ns",
        /// Cycles of the time stamp counter.
        Cycles = "cycles",
        /// How many.
        Count = "count",
        /// An address in a process, or in the kernel, as the bits of a `u64`.
        Address = "address",
        /// A thread.
        Tid = "tid",
        /// A process.
        Pid = "pid",
        /// A CPU.
        Cpu = "cpu",
        /// A row of the table `sites`.
        Site = "site",
        /// A priority of the kernel: -1 deadline, 0..=98 real-time, 100..=139 normal, the idle task 120.
        Priority = "priority",
        /// A number that somebody else has given, with the meaning that is stated.
        Number = "number",
        _ => Number
    }
}
