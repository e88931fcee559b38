//! Who answers for a user, where each has a share.
//!
//! One who owns a range of numbers (subuid(5)) can be as many users as it has: [`owner_of`] all of them is that one. The numbers of a range of
//! root's, or of an owner whose number is not known, are together one user, by the first of them: what runs in containers takes nothing of
//! root's share.
//!
//! Rights are no matter of this: they are those of the user itself.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::sync::OnceLock;

/// Most that is read of each of the lists, bytes: some ten thousand users.
///
/// Limit: a user whose owner is not found is its own.
/// Shown by: none: no figure depends on it.
const MAX_BYTES: u64 = 1 << 20;

const ROOT: u32 = 0;

/// Who answers for this user on this machine, by what its lists say when this is asked first: itself, if they say nothing of it.
pub fn owner_of(user: u32) -> u32 {
    static OWNERS: OnceLock<Owners> = OnceLock::new();
    let list = |path| {
        let mut bytes = Vec::new();
        let _ = File::open(path).and_then(|list| list.take(MAX_BYTES).read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let owners = || Owners::parse(&list("/etc/subuid"), &list("/etc/passwd"));
    OWNERS.get_or_init(owners).of(user)
}

/// First number of a range, the first one behind it, and its owner; by number, and no number is in two.
struct Owners(Vec<(u32, u32, u32)>);

impl Owners {
    /// As subuid(5) and passwd(5) say; lines that are not as they should be are left out.
    fn parse(ranges: &str, users: &str) -> Owners {
        let user = |line: &'_ str| {
            let mut words = line.split(':');
            Some((words.next()?.to_owned(), words.nth(1)?.parse().ok()?))
        };
        let numbers: HashMap<String, u32> = users.lines().filter_map(user).collect();
        let range = |line: &str| {
            let mut words = line.trim_end().split(':');
            let name = words.next()?;
            let mut number = || words.next()?.parse::<u32>().ok();
            let (start, count) = (number()?, number()?);
            let owner = numbers.get(name).copied().or_else(|| name.parse().ok());
            let owner = owner.filter(|owner| *owner != ROOT).unwrap_or(start);
            Some((start, start.saturating_add(count), owner))
        };
        let mut all: Vec<_> = ranges.lines().filter_map(range).collect();
        all.sort_unstable();
        // What two have is that one's whose range begins first.
        let mut end = ROOT + 1;
        for range in &mut all {
            range.0 = range.0.max(end);
            end = end.max(range.1);
        }
        all.retain(|(start, end, _)| start < end);
        Owners(all)
    }

    fn of(&self, user: u32) -> u32 {
        let behind = self.0.partition_point(|(start, ..)| *start <= user);
        match self.0[..behind].last() {
            Some((_, end, owner)) if user < *end => *owner,
            _ => user,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_of_a_range_are_its_owner() {
        let users = "root:x:0:0::/root:/bin/sh\nanna:x:1001:1001::/:/bin/sh\nbad:x\n";
        let ranges = "\
anna:100000:65536
1002:165536:65536
root:300000:1000
gone:400000:10
anna:400005:10
bad:x:1
1003:0:5
1004:4294967290:100
";
        let owners = Owners::parse(ranges, users);
        for (user, owner) in [
            (0, 0),
            (4, 1003),
            (5, 5),
            (1001, 1001),
            (99_999, 99_999),
            (100_000, 1001),
            (165_535, 1001),
            (165_536, 1002),
            (231_072, 231_072),
            (300_000, 300_000),
            (300_999, 300_000),
            (400_009, 400_000),
            (400_010, 1001),
            (u32::MAX - 1, 1004),
        ] {
            assert_eq!(owners.of(user), owner, "{user}");
        }
        assert_eq!(Owners::parse("", "").of(100_000), 100_000, "no list");
        assert_eq!(owner_of(ROOT), ROOT);
    }
}
