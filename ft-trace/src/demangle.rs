//! Names of symbols as their source has them.

use addr2line::demangle_auto;

/// The name of a function or a variable of C, C++ or Rust. Only what a compiler has mangled is read as such: the variable
/// `m` of a C program would be the type `unsigned long`.
pub fn demangled(symbol: &str) -> String {
    if symbol.starts_with("_Z") || symbol.starts_with("_R") {
        demangle_auto(symbol.into(), None).into_owned()
    } else {
        symbol.to_owned()
    }
}
