//! Which threads ask which others, and what is taken in turns: by who wakes whom.
//!
//! **Goal.** Whoever waits for one that sleeps has lost time if it has asked that one for something, and has none if it waits for work.
//!
//! **Rule.** Of two roles, the one that was the first to wake the other asks: one that serves waits before anybody asks it. It goes on
//! to wake the other, or that one brings things unasked. At a futex, whoever made a thread and was answered twice has asked it, too: its
//! first task came with its birth. A thing is taken in turns where a thread waits and also ends such waits: at a lock, not at a queue.
//!
//! **Situations.**
//! - *A new server that finds a request when it looks for the first time* has worked before its first word, which is an answer. Whoever
//!   waits for any of several descriptors is not taken to ask it.
//! - *A new server that had no CPU*, and finds a request then, is no other case: a sleep in which the waker could not run is no wait for its
//!   first word.
//! - *A new thread that tells its maker that it lives*: that is no first word.
//! - *A process that waits at its event loop, and has made others*: it has asked one of them that says more than that it has ended, if it
//!   has heard nobody else since. A server that makes a process for each client, and hears its end, is idle.
//! - *The end of a wait for a lock* says nothing of what two threads give each other.
//! - *Two of one role*, as all threads of some programs are: each is one of its own, and asks if it woke the other last before that
//!   woke it.
//! - *A server that is busy* is not woken by who asks it: the others of that role have done it.

use std::collections::{HashMap, HashSet};

use ft_trace::ids::{Name, ThreadKey};

/// Pairs of roles, and roles at futexes, that are kept: of others nothing is known.
///
/// Limit: of others nothing is known: they count as not asked (`asked`, `turns`).
/// Shown by: `what_is_kept_of_who_wakes_whom_is_bounded`.
const MAX_TALKS: usize = 1 << 14;

/// Who asks wakes the other one at least once for so many answers.
const ANSWERS: u64 = 8;

/// The same of one whose first word was an answer.
const TURNS: u64 = 3;

/// What is done at a futex so soon behind the begin of a wait there is no word, ns.
const WORD_NS: i64 = 100_000;

/// Who has slept for so long, while the other one could have spoken, has waited for a first word, ns.
const WAITED_NS: i64 = 1_000_000;

/// Two that wake each other; the lesser one first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Pair {
    Roles(Name, Name),
    Threads(ThreadKey, ThreadKey),
}

/// How often the lesser one woke the other, and that one it, and which was first.
#[derive(Debug)]
struct Talk {
    lesser_first: bool,
    /// That was an answer.
    answers: bool,
    /// The other one had waited for it.
    waited: bool,
    wakes: [u64; 2],
    /// Whether the lesser one woke the other in the newest of them, and in the one before.
    newest: [bool; 2],
}

/// Where a thread waits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Place {
    Futex,
    /// For any of several descriptors.
    Poll,
    Other,
}

impl Place {
    /// By the call in which it sleeps.
    pub(super) fn of(call: Option<&str>) -> Place {
        match call {
            Some("futex" | "futex_wait") => Place::Futex,
            Some("poll" | "ppoll" | "select" | "pselect6") => Place::Poll,
            Some(call) if call.starts_with("epoll") => Place::Poll,
            _ => Place::Other,
        }
    }
}

/// What one did before its first word to another.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Before {
    /// It has worked: its word is an answer.
    pub(super) served: bool,
    /// For how long of the other one's sleep it could not run, ns.
    pub(super) kept_ns: i64,
}

/// A thread with its name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Who<'a> {
    pub(super) key: ThreadKey,
    pub(super) comm: &'a str,
}

/// All that is known of it.
#[derive(Debug, Default)]
pub(super) struct Talks {
    pairs: HashMap<Pair, Talk>,
    /// Threads that have ended waits at a futex, by its address.
    ended: HashSet<(i64, ThreadKey)>,
    /// Who has made a thread: the child first.
    makers: HashMap<ThreadKey, Made>,
    /// How often those that have made others were woken at an event loop, by whomever.
    heard: HashMap<ThreadKey, u64>,
}

/// A thread was made.
#[derive(Debug)]
struct Made {
    by: ThreadKey,
    /// How often it has woken its maker, and how often at an event loop.
    told: u64,
    told_at_loop: u64,
    /// How often its maker had been woken at an event loop until then.
    heard: u64,
}

impl Talks {
    /// One wakes another, which has slept for so many ns, at `futex`, if it is at one; `before`: what the waker did until then.
    pub(super) fn woke(
        &mut self,
        by: Who<'_>,
        whom: Who<'_>,
        (futex, slept_ns): (Option<i64>, i64),
        before: impl FnOnce() -> Before,
    ) {
        if let Some(futex) = futex {
            self.released(by.key, futex);
        }
        if let Some(made) = self.makers.get_mut(&by.key).filter(|made| made.by == whom.key) {
            made.told += 1;
        }
        let (pair, is_lesser) = pair(by, whom);
        // What one does at a futex that another one of its name has hardly begun to wait at is no word, as at an interpreter's lock.
        let hardly = futex.is_some() && slept_ns < WORD_NS;
        if hardly && matches!(pair, Pair::Threads(..)) {
            return;
        }
        if self.pairs.len() >= MAX_TALKS && !self.pairs.contains_key(&pair) {
            return;
        }
        let talk = self.pairs.entry(pair).or_insert_with(|| {
            let lives =
                futex.is_some() && self.makers.get(&by.key).is_some_and(|made| made.by == whom.key);
            let lesser_first = is_lesser != lives;
            let before = before();
            let answers = !lives && before.served;
            let waited = slept_ns - before.kept_ns >= WAITED_NS;
            Talk { lesser_first, answers, waited, wakes: [0; 2], newest: [is_lesser; 2] }
        });
        talk.wakes[usize::from(!is_lesser)] += 1;
        talk.newest = [is_lesser, talk.newest[0]];
    }

    /// The wait of one at a lock is ended by another.
    pub(super) fn released(&mut self, by: ThreadKey, futex: i64) {
        if self.ended.len() < MAX_TALKS {
            self.ended.insert((futex, by));
        }
    }

    /// One makes another.
    pub(super) fn made(&mut self, by: ThreadKey, child: ThreadKey) {
        if self.makers.len() < MAX_TALKS {
            let heard = *self.heard.entry(by).or_default();
            self.makers.insert(child, Made { by, told: 0, told_at_loop: 0, heard });
        }
    }

    /// Whether a thread has made another one.
    pub(super) fn has_made(&self, by: ThreadKey, child: ThreadKey) -> bool {
        self.makers.get(&child).is_some_and(|made| made.by == by)
    }

    /// The wait of one at an event loop is ended, by a thread that is observed or by something else; no timer of its own.
    pub(super) fn hears(&mut self, whom: ThreadKey, by: Option<ThreadKey>) {
        let Some(heard) = self.heard.get_mut(&whom) else { return };
        *heard += 1;
        let made = by.and_then(|by| self.makers.get_mut(&by)).filter(|made| made.by == whom);
        made.into_iter().for_each(|made| made.told_at_loop += 1);
    }

    /// Whether one that waits there has asked the other, which ends that.
    pub(super) fn asks(&self, waiter: Who<'_>, other: Who<'_>, at: Place) -> bool {
        let (pair, is_lesser) = pair(waiter, other);
        let Some(talk) = self.pairs.get(&pair) else { return false };
        let [asked, answered] = match is_lesser {
            true => talk.wakes,
            false => [talk.wakes[1], talk.wakes[0]],
        };
        let made = self.makers.get(&other.key).filter(|made| made.by == waiter.key);
        if at == Place::Futex && made.is_some() && answered > 1 {
            return true;
        }
        let is_parent = other.key.pid != waiter.key.pid;
        if at == Place::Poll && is_parent && made.is_some_and(|made| self.is_waited_for(made)) {
            return true;
        }
        let was_first = talk.lesser_first == is_lesser;
        let goes_on = match (was_first, talk.answers) {
            // One that has just gone to sleep may have said something that found the other one busy.
            (true, false) if at == Place::Poll && !talk.waited => return false,
            (true, false) => asked * ANSWERS >= answered,
            (false, true) => at != Place::Poll && asked * TURNS >= answered,
            _ => return false,
        };
        let in_turn = matches!(pair, Pair::Roles(..)) || talk.newest == [!is_lesser, is_lesser];
        goes_on && in_turn
    }

    /// Whether a process waits at its event loop for one that it has made. Of each that ends it hears that, at least.
    fn is_waited_for(&self, made: &Made) -> bool {
        let heard = self.heard.get(&made.by).copied().unwrap_or(0);
        (2..=ANSWERS).contains(&made.told) && heard - made.heard == made.told_at_loop
    }

    /// Whether a thread also ends waits at this futex.
    pub(super) fn ends(&self, thread: ThreadKey, futex: i64) -> bool {
        self.ended.contains(&(futex, thread))
    }
}

/// Both, and whether the first one is the lesser.
fn pair(one: Who<'_>, other: Who<'_>) -> (Pair, bool) {
    let (a, b) = (role(one.comm), role(other.comm));
    match a == b {
        true if one.key < other.key => (Pair::Threads(one.key, other.key), true),
        true => (Pair::Threads(other.key, one.key), false),
        false if a < b => (Pair::Roles(a.into(), b.into()), true),
        false => (Pair::Roles(b.into(), a.into()), false),
    }
}

/// A name without its last number.
fn role(comm: &str) -> &str {
    let stem = comm.trim_end_matches(|c: char| c.is_ascii_digit());
    if stem.is_empty() { comm } else { stem }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slept so long that it has waited, ns.
    const LONG: i64 = 1 << 30;
    use ft_trace::ids::{Pid, Tid};

    fn new() -> Before {
        Before::default()
    }

    fn served() -> Before {
        Before { served: true, ..new() }
    }

    fn who(tid: i32, comm: &str) -> Who<'_> {
        Who { key: ThreadKey { pid: Pid(1), tid: Tid(tid) }, comm }
    }

    #[test]
    fn who_was_first_asks_and_who_brings_things_was_not_asked() {
        let mut talks = Talks::default();
        let (client, other, server) = (who(1, "client-1"), who(2, "client-2"), who(3, "server"));
        for _ in 0..9 {
            talks.woke(client, server, (None, LONG), new);
            talks.woke(server, client, (None, LONG), new);
        }
        assert!(
            talks.asks(client, server, Place::Other) && !talks.asks(server, client, Place::Other)
        );
        assert!(talks.asks(other, server, Place::Other), "it has asked while the server was busy");
        let (pool, main) = (who(4, "pool-1"), who(5, "main"));
        (0..9).for_each(|_| talks.woke(main, pool, (Some(64), LONG), new));
        talks.woke(pool, main, (None, LONG), new);
        assert!(!talks.asks(pool, main, Place::Futex));
        let (feed, reader) = (who(6, "feed"), who(7, "reader"));
        talks.woke(reader, feed, (None, LONG), new);
        (0..9).for_each(|_| talks.woke(feed, reader, (None, LONG), new));
        assert!(!talks.asks(reader, feed, Place::Futex), "it asked once");
        talks.made(reader.key, feed.key);
        assert!(talks.asks(reader, feed, Place::Futex) && !talks.asks(reader, feed, Place::Other));
        // Who is woken at once has not waited for a word, of its own name.
        let (d, e) = (who(11, "same"), who(12, "same"));
        talks.woke(d, e, (Some(64), 0), new);
        talks.woke(e, d, (Some(64), LONG), new);
        talks.woke(d, e, (Some(64), 0), new);
        assert!(!talks.asks(d, e, Place::Futex));
        // Of one name, each thread is one of its own.
        let (a, b, c) = (who(8, "same"), who(9, "same"), who(10, "same"));
        talks.woke(b, a, (None, LONG), new);
        talks.woke(a, b, (None, LONG), new);
        assert!(
            talks.asks(b, a, Place::Futex)
                && !talks.asks(a, b, Place::Futex)
                && !talks.asks(c, a, Place::Futex)
        );
        talks.woke(a, b, (None, LONG), new);
        assert!(!talks.asks(b, a, Place::Futex), "it was woken once more, unasked");
    }

    #[test]
    fn the_first_word_of_a_new_server_may_be_an_answer() {
        let (client, server) = (who(1, "client"), who(2, "server"));
        let mut talks = Talks::default();
        let mut first = Talks::default();
        for _ in 0..9 {
            first.woke(server, client, (None, LONG), served);
            first.woke(client, server, (None, LONG), served);
            talks.woke(server, client, (None, LONG), new);
            talks.woke(client, server, (None, LONG), new);
        }
        assert!(
            first.asks(client, server, Place::Other) && !first.asks(server, client, Place::Other)
        );
        assert!(
            !first.asks(client, server, Place::Poll) && !first.asks(server, client, Place::Poll)
        );
        assert!(
            talks.asks(server, client, Place::Poll) && !talks.asks(client, server, Place::Poll)
        );
        // A thread of a pool that tells its maker that it lives, and is told what to do then.
        let (maker, child) = (who(3, "maker"), who(4, "pool"));
        let mut talks = Talks::default();
        talks.made(maker.key, child.key);
        talks.woke(child, maker, (Some(64), LONG), served);
        talks.woke(maker, child, (Some(64), LONG), new);
        assert!(!talks.asks(child, maker, Place::Futex), "it has no work yet");
    }

    #[test]
    fn a_parent_hears_the_end_of_each_of_many_children() {
        let parent = who(1, "node");
        let mut talks = Talks::default();
        for pid in 2..40 {
            let child = Who { key: ThreadKey { pid: Pid(pid), tid: Tid(pid) }, comm: "sleep" };
            talks.made(parent.key, child.key);
            (0..3).for_each(|_| talks.woke(child, parent, (None, LONG), new));
            assert!(talks.asks(parent, child, Place::Poll), "child {pid}");
        }
    }

    #[test]
    fn a_server_that_hears_the_end_of_those_that_it_has_made_has_not_asked_them() {
        let (server, client) = (who(1, "postgres"), who(90, "psql").key);
        let child = |pid| Who { key: ThreadKey { pid: Pid(pid), tid: Tid(pid) }, comm: "postgres" };
        let mut talks = Talks::default();
        let tells = |talks: &mut Talks, pid, by_loop: bool| {
            if by_loop {
                talks.hears(server.key, Some(child(pid).key));
            }
            talks.woke(child(pid), server, (None, LONG), new);
        };
        // A client is heard, and a process made for it, which ends.
        talks.hears(server.key, Some(client));
        talks.made(server.key, child(2).key);
        tells(&mut talks, 2, true);
        assert!(!talks.asks(server, child(2), Place::Poll), "that it ends is no answer");
        // Another one says something, but the server has heard others since.
        for others in [false, true] {
            talks.made(server.key, child(3).key);
            tells(&mut talks, 3, false);
            if others {
                talks.hears(server.key, None);
            }
            tells(&mut talks, 3, true);
            assert_eq!(talks.asks(server, child(3), Place::Poll), !others);
        }
    }

    #[test]
    fn who_has_hardly_waited_for_a_first_word_may_have_asked_before() {
        let (client, server) = (who(1, "client"), who(2, "server"));
        for (slept_ns, asks) in [(WAITED_NS - 1, false), (WAITED_NS, true)] {
            let mut talks = Talks::default();
            talks.woke(server, client, (None, slept_ns), new);
            talks.woke(client, server, (None, LONG), new);
            assert_eq!(talks.asks(server, client, Place::Poll), asks, "{slept_ns}");
            assert!(talks.asks(server, client, Place::Other), "{slept_ns}");
        }
    }

    #[test]
    fn what_is_taken_in_turns_is_waited_for_by_those_who_end_waits() {
        let mut talks = Talks::default();
        talks.woke(who(1, "caller-1"), who(2, "caller-2"), (Some(64), LONG), new);
        talks.released(who(3, "other").key, 64);
        assert!(talks.ends(who(1, "").key, 64) && talks.ends(who(3, "").key, 64));
        // It has one name with who brings things to it.
        assert!(!talks.ends(who(2, "caller-2").key, 64) && !talks.ends(who(1, "").key, 72));
    }

    #[test]
    fn what_is_kept_of_who_wakes_whom_is_bounded() {
        let mut talks = Talks::default();
        let names: Vec<String> = (0..2 * MAX_TALKS).map(|i| format!("{i}a")).collect();
        for (i, name) in names.iter().enumerate() {
            talks.woke(who(i as i32, name), who(-1, "z"), (Some(i as i64), LONG), new);
            talks.made(who(i as i32, name).key, who(-(i as i32), name).key);
        }
        assert_eq!([talks.pairs.len(), talks.ended.len(), talks.makers.len()], [MAX_TALKS; 3]);
        assert!(!talks.asks(who(1, &names[2 * MAX_TALKS - 1]), who(-1, "z"), Place::Other));
    }
}
