//! The form of a site that is compiled out: `--cfg ft_off`, or a target for which no trigger exists.
//!
//! The arguments are still type-checked, by a branch that is never taken and leaves no code.
//!
//! It is a `--cfg` and not a feature. Cargo builds a crate once for a whole program, with the features that any crate asks for: one
//! crate, deep in somebody's program, would silence all others. A feature that adds sites would have to be passed on by every
//! library in between, and a program that forgets it would record nothing and not say why. A `--cfg` comes from the builder of
//! the final program, and reaches every crate. Its price: it holds for all that one command builds.

/// The event that never happens.
#[doc(hidden)]
#[macro_export]
macro_rules! __event {
    (
        kind = $kind:ident, $name:expr
        $(, $arg:ident : $ty:ty $(= $value:expr)?)* $(; $format:literal)?
    ) => {{
        const _: $crate::layout::SiteKind = $crate::layout::SiteKind::$kind;
        const _: () = assert!($crate::site::has_category($name), "an event is `category.name`");
        const _: usize = $crate::site::count(&[$(stringify!($arg)),*]);
        $(const _: &str = $format;)?
        if false {
            $(let _: u64 = $crate::__word!($arg, $ty $(, $value)?);)*
        }
    }};
}

/// The site that is not there.
#[doc(hidden)]
#[macro_export]
macro_rules! __site {
    ($meta:ident $(, $arg:ident : $ty:ty $(= $value:expr)?)*) => {
        if false {
            let _: &$crate::layout::SiteMeta = &$meta;
            $(let _: u64 = $crate::__word!($arg, $ty $(, $value)?);)*
        }
    };
}
