//! What the agent may have of the kernel's resources.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::inherited;

/// What an agent uses that has no limit, at most.
const ENOUGH: u64 = 1 << 17;

/// Raises the limit of open descriptors as far as is allowed and of use; returns what it is then. Each recorded
/// process takes some of them, and the soft limit of 1024 is there for programs that use select(2): so the command gets back
/// what there was ([`inherited`]).
pub(super) fn raise_descriptors() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    inherited::keep_descriptors(Rlimit { current, maximum });
    let wanted = maximum.unwrap_or(ENOUGH).max(ENOUGH);
    // Above the hard limit with CAP_SYS_RESOURCE only, and not above /proc/sys/fs/nr_open.
    let raised = [(Some(wanted), Some(wanted)), (maximum, maximum)];
    let set = |&(current, maximum): &(Option<u64>, Option<u64>)| {
        setrlimit(Resource::Nofile, Rlimit { current, maximum }).is_ok()
    };
    let limit = raised.iter().find(|limit| set(limit)).map_or(current, |limit| limit.0);
    limit.unwrap_or(ENOUGH).min(ENOUGH) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_not_lowered() {
        let before = getrlimit(Resource::Nofile);
        let allowed = raise_descriptors() as u64;
        let after = getrlimit(Resource::Nofile);
        let number = |limit: Option<u64>| limit.unwrap_or(u64::MAX);
        assert!(number(after.current) >= number(before.maximum).min(ENOUGH));
        assert!(number(after.current) >= number(before.current));
        assert!(allowed <= number(after.current));
    }
}
