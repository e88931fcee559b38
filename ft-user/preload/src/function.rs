//! Functions of programs that are compiled with `-finstrument-functions`: the hooks, which the C library has as well, where they
//! do nothing.

ft_user::__instrument_functions! {
    __cyg_profile_func_enter => enter,
    __cyg_profile_func_exit => exit,
}
