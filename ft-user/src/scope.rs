//! [`scope!`](crate::scope!): the begin and the end of a piece of work, on one thread.

/// Records a begin now, and an end when the value that it returns is dropped.
///
/// Takes what [`event!`](crate::event) takes; the arguments go with the begin. Both events have the name of
/// the scope, and are switched together; `kind` distinguishes them in the trace. An end pairs with the newest begin of its name on its thread. A scope
/// that is open when its sites are switched has only one of the two.
///
/// Bind it to a name that begins with an underscore. `let _ = scope!(…)` ends at once.
///
/// # Examples
///
/// ```
/// fn query(text: &str, limit: u32) {
///     let _scope = ft_user::scope!("db.query", limit: u32, text: &str; "{text}");
///     // … work …
/// }
/// # query("select", 1);
/// ```
///
/// The end is written by the thread of the begin, so a scope cannot be held across an `.await` in a task that may
/// move (see [async code](crate#async-code)):
///
/// ```compile_fail,E0277
/// let scope = ft_user::scope!("db.query");
/// std::thread::spawn(move || drop(scope));
/// ```
#[macro_export]
macro_rules! scope {
    ($name:literal $(, $arg:ident : $ty:ty $(= $value:expr)?)* $(,)? $(; $format:literal)?) => {{
        #[must_use = "the scope ends where this is dropped; bind it to a name, as `_scope`"]
        struct Scope(::core::marker::PhantomData<*const ()>);
        impl ::core::ops::Drop for Scope {
            #[inline(always)]
            fn drop(&mut self) {
                $crate::__event!(kind = ScopeEnd, $name);
            }
        }
        $crate::__event!(
            kind = ScopeBegin, $name $(, $arg : $ty $(= $value)?)* $(; $format)?
        );
        Scope(::core::marker::PhantomData)
    }};
}
