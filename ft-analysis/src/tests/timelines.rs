//! Timelines that several tests have in common.

/// A chain of waits. a holds K from 10 to 60, without a CPU from 20 to 50. b waits for it from 15 on, holds L, and releases
/// that at 80, after 10 more without a CPU. c waits for L.
pub(crate) const CHAIN: &str = "
    0 0 .>a S
    0 1 .>b S
    0 2 .>c S
    10 acquire a K
    12 acquire b L
    15 wait b K
    16 1 b>. S
    20 0 a>X R
    25 wait c L
    26 2 c>. S
    50 0 X>a S
    60 release a K
    60 wake a b 1
    61 1 .>b S
    62 acquire b K
    63 release b K
    65 1 b>X R
    75 1 X>b S
    80 release b L
    81 wake b c 2
    82 2 .>c S
    83 acquire c L";

/// Workers a and b of a load take turns on CPU 0, and X has it in between.
pub(crate) const TURNS: &str = "
    0 0 .>a S
    1 worker a 0 0 0
    3 first a 3
    20 0 a>b R
    22 worker b 1 2 0
    25 first b 25
    40 yield b
    42 0 b>a R
    46 gap a 0 18 45
    60 0 a>X R
    64 0 X>b S
    67 gap b 0 39 66
    80 irq b soft 3
    84 gap b 0 79 83
    95 sleep b 200
    100 0 b>X S
    110 0 X>a S
    114 gap a 0 58 113";
