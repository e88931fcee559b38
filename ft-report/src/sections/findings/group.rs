//! Rows of `blame` that belong together: of threads of one role that waited for one thing.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use ft_trace::Mark;
use ft_trace::ids::Name;
use ft_trace::tables::{Blame, FileKind, Part, PathKind, Withheld};

use super::kind::Kind;
use super::role::{Role, role};

/// Groups, and in each of them those who are behind it, that are distinguished; others are one.
///
/// Limit: what has no room is in the sum of the finding alone.
/// Shown by: none: a finding shows two of those behind it, and three functions.
pub(super) const MAX_FOUND: usize = 4096;

/// What distinguishes two groups.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key {
    pub(super) role: String,
    pub(super) kind: Kind,
    /// Address of the lock.
    pub(super) object: Option<i64>,
    /// What it is of, or the call, where the kind does not say that.
    pub(super) what: String,
}

/// What those did that others waited for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    pub(super) kind: PathKind,
    pub(super) call: Option<Name>,
    pub(super) file: Option<FileKind>,
    pub(super) culprit: Option<String>,
}

/// Who is behind it: threads of one role.
#[derive(Clone, Debug, Default)]
pub(super) struct Behind {
    pub(super) who: Role,
    /// How much each of them is behind, whose number is known.
    pub(super) each: HashMap<(i32, i32), (Name, i64)>,
    /// Those who waited for them meanwhile.
    pub(super) through: HashMap<String, (Role, i64)>,
    pub(super) ns: i64,
    pub(super) states: HashMap<State, i64>,
    /// Those who did that to them, by what their names have in common.
    pub(super) culprits: HashMap<String, Role>,
    /// Where they were: time, and of how many pieces.
    pub(super) slept: HashMap<i64, i64>,
    pub(super) sampled: HashMap<i64, (i64, i64)>,
    /// Where they had no CPU, as one took it from them: pieces.
    pub(super) preempted: HashMap<i64, i64>,
    /// Where they woke others, or lost their CPU after they had run.
    pub(super) woke: HashMap<i64, i64>,
}

impl Behind {
    fn merge(&mut self, other: Behind) {
        self.who.merge(other.who);
        self.ns += other.ns;
        merge_roles(&mut self.through, other.through);
        for (thread, (name, ns)) in other.each {
            self.each.entry(thread).or_insert((name, 0)).1 += ns;
        }
        for (stem, who) in other.culprits {
            self.culprits.entry(stem).or_default().merge(who);
        }
        for (state, ns) in other.states {
            *self.states.entry(state).or_default() += ns;
        }
        for (own, others) in [
            (&mut self.slept, other.slept),
            (&mut self.preempted, other.preempted),
            (&mut self.woke, other.woke),
        ] {
            others.into_iter().for_each(|(stack, ns)| *own.entry(stack).or_default() += ns);
        }
        for (stack, (ns, pieces)) in other.sampled {
            let own = self.sampled.entry(stack).or_default();
            *own = (own.0 + ns, own.1 + pieces);
        }
    }
}

fn merge_roles(own: &mut HashMap<String, (Role, i64)>, other: HashMap<String, (Role, i64)>) {
    for (name, (who, ns)) in other {
        let own = own.entry(name).or_default();
        own.0.merge(who);
        own.1 += ns;
    }
}

/// Those that have most first.
pub(super) fn most_first(roles: HashMap<String, (Role, i64)>) -> Vec<(Role, i64)> {
    let mut roles: Vec<(Role, i64)> = roles.into_values().collect();
    roles.sort_by_key(|(who, most)| (Reverse(*most), who.name.clone()));
    roles
}

/// One lock is one thing, however its waits look: of what kind it is, most of them say.
pub(super) fn by_lock(groups: HashMap<Key, Group>) -> Vec<(Key, Group)> {
    let mut sorted: Vec<_> = groups.into_iter().collect();
    sorted.sort_by(|(a, x), (b, y)| y.lost_ns.cmp(&x.lost_ns).then_with(|| a.cmp(b)));
    let (mut all, mut locks) = (Vec::<(Key, Group)>::new(), HashMap::new());
    for (key, group) in sorted {
        let lock = key.object.map(|object| (key.role.clone(), object));
        match lock.as_ref().and_then(|lock| locks.get(lock)) {
            Some(&at) => {
                let (_, known): &mut (Key, Group) = &mut all[at];
                known.merge(group);
            }
            None => {
                locks.extend(lock.map(|lock| (lock, all.len())));
                all.push((key, group));
            }
        }
    }
    all
}

/// The name of a lock.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Called {
    #[default]
    Unknown,
    By(Name),
    /// Several locks are in one group, as at one address of several programs.
    Differently,
}

impl Called {
    /// By the name of the futex at which the lock is waited for: one with readers and writers has several within it.
    pub(super) fn by(kind: Kind, futex: &Name) -> Called {
        let within = ["+0x4", "+0x8", "+0xc"].iter().find_map(|end| futex.strip_suffix(end));
        Called::By(within.filter(|_| kind == Kind::RwLock).map_or(futex.clone(), Name::from))
    }

    pub(super) fn merge(&mut self, other: Called) {
        match (&*self, other) {
            (_, Called::Unknown) => {}
            (Called::Unknown, other) => *self = other,
            (own, other) if *own == other => {}
            _ => *self = Called::Differently,
        }
    }

    pub(super) fn name(&self) -> Option<&Name> {
        match self {
            Called::By(name) => Some(name),
            Called::Unknown | Called::Differently => None,
        }
    }
}

/// A group.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    pub(super) who: Role,
    pub(super) lost_ns: i64,
    /// Waits for a lock that a timer has ended, and of which nobody that is known has ended the rest.
    pub(super) again_ns: i64,
    /// What others kept from them, or were asked for.
    pub(super) needed_ns: i64,
    /// What of the waits was over, and had no CPU yet.
    pub(super) dispatch_ns: i64,
    pub(super) waits: i64,
    /// Those who ended the waits.
    pub(super) wakers: HashMap<String, (Role, i64)>,
    pub(super) behind: HashMap<String, Behind>,
    /// Where they waited.
    pub(super) stacks: HashMap<i64, i64>,
    /// Those behind them had no CPU, as a thread had it that is less urgent than these.
    pub(super) inverted_ns: i64,
    /// In which calls, ns.
    pub(super) calls: BTreeMap<String, i64>,
    pub(super) lock: Called,
    pub(super) longest: Option<Longest>,
    pub(super) mark: Mark,
}

/// The longest wait of a group.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Longest {
    pub(super) ns: i64,
    pub(super) ts: i64,
    pub(super) comm: Name,
    pub(super) pid: i32,
    pub(super) tid: i32,
}

/// Adds to one of a bounded number of sums.
pub(super) fn bounded<K: Clone + Eq + std::hash::Hash, V: Default>(
    of: &mut HashMap<K, V>,
    key: K,
) -> Option<&mut V> {
    let has_room = of.len() < MAX_FOUND || of.contains_key(&key);
    has_room.then(|| of.entry(key).or_default())
}

impl Group {
    pub(super) fn add(&mut self, row: &Blame, kind: Kind, needs: bool) {
        self.who.add(&row.comm, Some(row.pid.0), Some(row.tid.0));
        self.lost_ns += row.ns;
        self.needed_ns += if needs { row.ns } else { 0 };
        self.waits += row.waits;
        self.mark = self.mark.max(row.mark);
        if let Some(call) = &row.call {
            *self.calls.entry(call.to_string()).or_default() += row.ns;
        }
        if let Some(stack) = row.stack {
            bounded(&mut self.stacks, stack).into_iter().for_each(|ns| *ns += row.ns);
        }
        if let Some(comm) = &row.waker_comm
            && let Some((who, ns)) = bounded(&mut self.wakers, role(comm).to_owned())
        {
            who.add(comm, row.waker_pid, row.waker_tid);
            *ns += row.ns;
        }
        // Of a sleep after which it had no CPU, only that is here.
        let is_whole = kind != Kind::Cpu || row.part == Part::Preempted || row.call.is_none();
        if is_whole && self.longest.as_ref().is_none_or(|longest| row.longest_ns > longest.ns) {
            self.longest = Some(Longest {
                ns: row.longest_ns,
                ts: row.longest_ts.0,
                comm: row.comm.clone(),
                pid: row.pid.0,
                tid: row.tid.0,
            });
        }
        // It has asked for the lock again, whoever has it.
        if kind.is_held() && row.depth == 0 && row.kind == PathKind::Timer {
            self.again_ns += row.ns;
            return;
        }
        self.add_behind(row);
    }

    /// Takes in another one, of the same threads and lock.
    fn merge(&mut self, other: Group) {
        for (stack, ns) in other.stacks {
            *self.stacks.entry(stack).or_default() += ns;
        }
        for (call, ns) in other.calls {
            *self.calls.entry(call).or_default() += ns;
        }
        self.lock.merge(other.lock);
        merge_roles(&mut self.wakers, other.wakers);
        for (name, behind) in other.behind {
            self.behind.entry(name).or_default().merge(behind);
        }
        self.who.merge(other.who);
        self.lost_ns += other.lost_ns;
        self.needed_ns += other.needed_ns;
        self.again_ns += other.again_ns;
        self.inverted_ns += other.inverted_ns;
        self.dispatch_ns += other.dispatch_ns;
        self.waits += other.waits;
        self.mark = self.mark.max(other.mark);
        let longer = |l: &Longest| self.longest.as_ref().is_none_or(|own| l.ns > own.ns);
        if other.longest.as_ref().is_some_and(longer) {
            self.longest = other.longest;
        }
    }

    fn add_behind(&mut self, row: &Blame) {
        let is_agents = row.recording;
        let own_dispatch = row.part == Part::Dispatch;
        self.dispatch_ns += if own_dispatch { row.ns } else { 0 };
        let culprit = match is_agents {
            true => Some("the recording itself".to_owned()),
            false => row.culprit.as_ref().map(|name| role(name).to_owned()),
        };
        // Who had the CPU of one who had none is behind that; else the thread whose time it was.
        let had_cpu =
            row.depth == 0 && matches!(row.kind, PathKind::Preempted | PathKind::Dispatch);
        let has_no_cpu = matches!(row.part, Part::Preempted | Part::Dispatch);
        // A quota, or a late timer, is nobody's doing.
        let by_itself = matches!(row.withheld, Some(Withheld::Quota | Withheld::Late));
        let (name, comm, tid) = match &row.behind_comm {
            Some(comm) => (role(comm).to_owned(), comm.to_string(), row.behind_tid),
            // They struck whoever had the CPU.
            _ if row.depth == 0 && row.kind == PathKind::Interrupt && has_no_cpu => {
                let name = format!("interrupts ({})", row.culprit.as_deref().unwrap_or("unknown"));
                (name.clone(), name, Some(0))
            }
            _ if had_cpu && row.culprit_tid != Some(0) && !by_itself => {
                let comm = row.culprit.as_ref().map_or(String::new(), ToString::to_string);
                let name = culprit.clone().unwrap_or_default();
                let shown = if is_agents { name.clone() } else { comm };
                (name, shown, row.culprit_tid)
            }
            _ => (String::new(), String::new(), None),
        };
        let Some(behind) = bounded(&mut self.behind, name) else { return };
        let pid = row.behind_comm.as_ref().and(row.behind_pid);
        if !comm.is_empty() {
            behind.who.add(&comm, pid, tid);
        }
        behind.ns += row.ns;
        if let (Some(pid), Some(tid), Some(name)) = (pid, tid, &row.behind_comm)
            && let Some(each) = bounded(&mut behind.each, (pid, tid))
        {
            *each = (name.clone(), each.1 + row.ns);
        }
        if let Some(through) =
            row.through_comm.as_ref().filter(|name| role(name) != role(&row.comm))
            && let Some((who, ns)) = bounded(&mut behind.through, role(through).to_owned())
        {
            who.add_name(through);
            *ns += row.ns;
        }
        if let (Some(stem), Some(name), false) = (&culprit, &row.culprit, is_agents)
            && let Some(who) = bounded(&mut behind.culprits, stem.clone())
        {
            who.add_name(name);
        }
        let state = State {
            kind: row.kind,
            call: row.behind_call.clone(),
            file: row.behind_file,
            culprit: culprit.filter(|_| row.culprit_tid != Some(0)),
        };
        bounded(&mut behind.states, state).into_iter().for_each(|ns| *ns += row.ns);
        let Some(stack) = row.behind_stack else { return };
        let slept = row.behind_call.is_some()
            || matches!(row.kind, PathKind::Timer | PathKind::Device | PathKind::Outside);
        if row.sampled {
            if let Some((ns, pieces)) = bounded(&mut behind.sampled, stack) {
                (*ns, *pieces) = (*ns + row.ns, *pieces + row.pieces);
            }
            return;
        }
        let (of, how_much) = match () {
            () if slept => (&mut behind.slept, row.ns),
            () if row.kind == PathKind::Preempted => (&mut behind.preempted, row.pieces),
            () => (&mut behind.woke, row.ns),
        };
        bounded(of, stack).into_iter().for_each(|sum| *sum += how_much);
    }
}
