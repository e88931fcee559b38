//! The exported symbols: for each a stub in assembly, and the place where the C library's function is
//! remembered ([`crate::real`]).

use core::ffi::{c_int, c_void};

use libc::{
    clockid_t, pthread_barrier_t, pthread_cond_t, pthread_mutex_t, pthread_rwlock_t,
    pthread_spinlock_t, sem_t, timespec,
};

use crate::event::*;
use crate::real::{Real, resolve_keeping_arguments};
use crate::wait::{self, Routine};
use crate::{condition, mutex, rwlock, semaphore, spin};

/// `name(arguments) register [events] => function;` with the register of the argument behind the last,
/// in which the Rust function gets the return address.
macro_rules! interpose {
    ($(
        $name:ident $(@ $version:literal)? ($($arg:ident: $ty:ty),*) $caller:literal
        [$($meta:ident)+] => $traced:path;
    )+) => {
        $(
            #[doc = concat!("`", stringify!($name), "`, with its events while they are on.")]
            ///
            /// # Safety
            ///
            /// As the function of the C library.
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            pub(crate) unsafe extern "C-unwind" fn $name($($arg: $ty),*) -> c_int {
                core::arch::naked_asm!(
                    ".cfi_startproc",
                    $(
                        "2:",
                        ".long {off}",
                        ".long 9f - 3f",
                        "3:",
                        ".pushsection ft_sites,\"aR\",@progbits",
                        ".p2align 2",
                        ".short 16, 1",
                        ".long 2b - .",
                        concat!(".long {", stringify!($meta), "} - ."),
                        ".long 0",
                        ".popsection",
                    )+
                    "jmp qword ptr [rip + {real}]",
                    "9:",
                    concat!("mov ", $caller, ", qword ptr [rsp]"),
                    "jmp {traced}",
                    ".cfi_endproc",
                    $($meta = sym $meta,)+
                    off = const ft_user::layout::TRIGGER_OFF,
                    real = sym real::$name,
                    traced = sym $traced,
                )
            }
        )+

        /// The C library's functions by name.
        #[allow(non_upper_case_globals, reason = "named as the functions that they hold")]
        pub(crate) mod real {
            use super::*;

            $(
                #[doc = concat!("The C library's `", stringify!($name), "`.")]
                pub(crate) static $name: Real<unsafe extern "C-unwind" fn($($ty),*) -> c_int> = {
                    #[unsafe(naked)]
                    unsafe extern "C" fn first_call() {
                        core::arch::naked_asm!(
                            ".cfi_startproc",
                            "call {resolve}",
                            "jmp qword ptr [rip + {real}]",
                            ".cfi_endproc",
                            resolve = sym resolve_keeping_arguments,
                            real = sym $name,
                        )
                    }
                    Real::new(first_call as *mut c_void)
                };
            )+

            /// Names, versions where there is a choice, and places.
            pub(crate) static ALL: &[crate::real::Entry] = &[$(
                crate::real::Entry {
                    name: match core::ffi::CStr::from_bytes_with_nul(
                        concat!(stringify!($name), "\0").as_bytes(),
                    ) {
                        Ok(name) => name,
                        Err(_) => panic!("one NUL, at the end"),
                    },
                    version: interpose!(@version $($version)?),
                    address: $name.address(),
                },
            )+];
        }
    };
    (@version) => { None };
    (@version $version:literal) => { Some($version) };
}

interpose! {
    pthread_mutex_lock(mutex: *mut pthread_mutex_t) "rsi"
        [MUTEX_WAIT MUTEX_ACQUIRE] => mutex::lock;
    pthread_mutex_unlock(mutex: *mut pthread_mutex_t) "rsi"
        [MUTEX_RELEASE] => mutex::unlock;
    pthread_mutex_trylock(mutex: *mut pthread_mutex_t) "rsi"
        [MUTEX_ACQUIRE] => mutex::trylock;
    pthread_mutex_timedlock(mutex: *mut pthread_mutex_t, until: *const timespec) "rdx"
        [MUTEX_WAIT MUTEX_ACQUIRE MUTEX_ABANDON] => mutex::timedlock;
    pthread_mutex_clocklock(
        mutex: *mut pthread_mutex_t, clock: clockid_t, until: *const timespec
    ) "rcx"
        [MUTEX_WAIT MUTEX_ACQUIRE MUTEX_ABANDON] => mutex::clocklock;

    pthread_rwlock_rdlock(lock: *mut pthread_rwlock_t) "rsi"
        [READ_WAIT READ_ACQUIRE] => rwlock::rdlock;
    pthread_rwlock_tryrdlock(lock: *mut pthread_rwlock_t) "rsi"
        [READ_ACQUIRE] => rwlock::tryrdlock;
    pthread_rwlock_timedrdlock(lock: *mut pthread_rwlock_t, until: *const timespec) "rdx"
        [READ_WAIT READ_ACQUIRE READ_ABANDON] => rwlock::timedrdlock;
    pthread_rwlock_clockrdlock(
        lock: *mut pthread_rwlock_t, clock: clockid_t, until: *const timespec
    ) "rcx"
        [READ_WAIT READ_ACQUIRE READ_ABANDON] => rwlock::clockrdlock;
    pthread_rwlock_wrlock(lock: *mut pthread_rwlock_t) "rsi"
        [WRITE_WAIT WRITE_ACQUIRE] => rwlock::wrlock;
    pthread_rwlock_trywrlock(lock: *mut pthread_rwlock_t) "rsi"
        [WRITE_ACQUIRE] => rwlock::trywrlock;
    pthread_rwlock_timedwrlock(lock: *mut pthread_rwlock_t, until: *const timespec) "rdx"
        [WRITE_WAIT WRITE_ACQUIRE WRITE_ABANDON] => rwlock::timedwrlock;
    pthread_rwlock_clockwrlock(
        lock: *mut pthread_rwlock_t, clock: clockid_t, until: *const timespec
    ) "rcx"
        [WRITE_WAIT WRITE_ACQUIRE WRITE_ABANDON] => rwlock::clockwrlock;
    pthread_rwlock_unlock(lock: *mut pthread_rwlock_t) "rsi"
        [RWLOCK_RELEASE] => rwlock::unlock;

    pthread_spin_lock(lock: *mut pthread_spinlock_t) "rsi"
        [SPIN_WAIT SPIN_ACQUIRE] => spin::lock;
    pthread_spin_trylock(lock: *mut pthread_spinlock_t) "rsi"
        [SPIN_ACQUIRE] => spin::trylock;
    pthread_spin_unlock(lock: *mut pthread_spinlock_t) "rsi"
        [SPIN_RELEASE] => spin::unlock;

    // glibc has two kinds of condition variables by version: the older one, of 2002, keeps a pointer.
    pthread_cond_wait @ c"GLIBC_2.3.2" (
        condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t
    ) "rdx"
        [COND_WAIT COND_WAKE] => condition::wait;
    pthread_cond_timedwait @ c"GLIBC_2.3.2" (
        condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, until: *const timespec
    ) "rcx"
        [COND_WAIT COND_WAKE] => condition::timedwait;
    pthread_cond_clockwait(
        condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, clock: clockid_t,
        until: *const timespec
    ) "r8"
        [COND_WAIT COND_WAKE] => condition::clockwait;

    sem_wait(semaphore: *mut sem_t) "rsi"
        [SEMAPHORE_WAIT SEMAPHORE_ACQUIRE SEMAPHORE_ABANDON] => semaphore::wait;
    sem_trywait(semaphore: *mut sem_t) "rsi"
        [SEMAPHORE_ACQUIRE] => semaphore::trywait;
    sem_timedwait(semaphore: *mut sem_t, until: *const timespec) "rdx"
        [SEMAPHORE_WAIT SEMAPHORE_ACQUIRE SEMAPHORE_ABANDON] => semaphore::timedwait;
    sem_clockwait(semaphore: *mut sem_t, clock: clockid_t, until: *const timespec) "rcx"
        [SEMAPHORE_WAIT SEMAPHORE_ACQUIRE SEMAPHORE_ABANDON] => semaphore::clockwait;
    sem_post(semaphore: *mut sem_t) "rsi"
        [SEMAPHORE_RELEASE] => semaphore::post;

    pthread_barrier_wait(barrier: *mut pthread_barrier_t) "rsi"
        [BARRIER_WAIT BARRIER_WAKE] => wait::barrier;
    pthread_once(control: *mut c_int, routine: Routine) "rdx"
        [ONCE_WAIT ONCE_WAKE] => wait::once;
}
