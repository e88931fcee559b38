//! The hooks that gcc and clang call at the begin and the end of each function of a program that is compiled with
//! `-finstrument-functions`: for libraries that stand in front of the C library, whose own do nothing.
//!
//! They are a crate of their own because a linker takes whole objects from a static library: a program that has hooks of its
//! own, and links `libfeather_trace.a`, does not need this object, and so keeps its own.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

/// Each adds where it was called from, and the stack pointer before that, to its two arguments, and jumps.
macro_rules! hooks {
    ($($hook:ident => $tell:ident;)*) => {$(
        /// The hook of the compiler.
        ///
        /// # Safety
        ///
        /// Called by what a compiler makes of a function, with its address and its return address.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $hook() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "mov rdx, [rsp]",
                "lea rcx, [rsp + 8]",
                "jmp {tell}",
                ".cfi_endproc",
                tell = sym ft_user::function::$tell,
            )
        }
    )*};
}

hooks! {
    __cyg_profile_func_enter => enter;
    __cyg_profile_func_exit => exit;
}
