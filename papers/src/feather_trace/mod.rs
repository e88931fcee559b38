//! Brandenburg and Anderson, "Feather-Trace: A Light-Weight Event Tracing Toolkit" (OSPERT 2007), section 3.4.

pub(crate) mod applications;
