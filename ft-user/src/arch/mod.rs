//! What depends on the processor: x86-64, in assembly where the compiler cannot promise what is needed.

#[cfg(all(feature = "dynamic", not(ft_off)))]
mod call;
mod frame;
mod slow;
#[cfg(all(test, not(ft_off)))]
mod tests;
mod text;
mod tls;
mod x86_64;

#[cfg(all(feature = "dynamic", not(ft_off)))]
pub(crate) use call::*;
#[cfg(all(feature = "sleds", not(ft_off)))]
pub(crate) use frame::{frame_macros, frame_macros_end};
pub(crate) use tls::*;
pub(crate) use x86_64::*;
