//! What a recording printed at its end, and which part of a truth one of its findings has.
//!
//! A finding is a line that begins with its number and two blanks, and the indented lines below it:
//!
//! ```text
//! 1  teller-0…2 lost 1.02 s (23 % of their time) waiting for a mutex, held by auditor
//!      auditor held it 50 times in audit (mutex_sleep.c:8), asleep in nanosleep
//! ```

use super::truth::{Amount, Truth, Words};

/// So many characters of a finding are told where it is no answer.
const SHORT: usize = 200;

/// A figure may differ by so much of itself from what the case measured.
const TOLERANCE: f64 = 0.05;

/// The paragraphs of a screen: lines that are not indented, each with the indented ones below it.
pub(super) struct Screen {
    paragraphs: Vec<Vec<String>>,
}

/// What the best finding has of a truth.
#[derive(Debug, PartialEq)]
pub(super) struct Answer {
    /// Who, behind whom, where, how much; `None` is what the truth does not ask for.
    pub(super) parts: [Option<bool>; 4],
    /// The begin of that finding, or what there is instead.
    pub(super) nearest: String,
}

impl Answer {
    pub(super) fn is_whole(&self) -> bool {
        self.parts.iter().all(|part| *part != Some(false))
    }

    /// How near it is to the truth. Of two findings with as many parts, the one about the same threads is.
    fn nearness(&self) -> (usize, bool) {
        let found = self.parts.iter().filter(|part| **part == Some(true)).count();
        (found, self.parts[0] == Some(true))
    }
}

impl Screen {
    pub(super) fn new(text: &str) -> Screen {
        let mut paragraphs: Vec<Vec<String>> = Vec::new();
        for line in text.lines() {
            match paragraphs.last_mut() {
                Some(paragraph) if line.starts_with(' ') => paragraph.push(line.to_owned()),
                // An empty line ends a paragraph, too.
                _ => paragraphs.push(vec![line.to_owned()]),
            }
        }
        Screen { paragraphs }
    }

    fn findings(&self) -> impl Iterator<Item = &[String]> {
        self.paragraphs.iter().map(Vec::as_slice).filter(|paragraph| {
            let digits = paragraph[0].trim_start_matches(|c: char| c.is_ascii_digit());
            digits.len() < paragraph[0].len() && digits.starts_with("  ")
        })
    }

    /// Which parts of a truth are in one finding: that which has most of them.
    pub(super) fn answer(&self, truth: &Truth) -> Answer {
        if truth.is_idle {
            return self.answer_idle(truth);
        }
        if self.says_unseen(truth) {
            return Answer { parts: [None; 4], nearest: String::new() };
        }
        // The last of equal ones is what `max_by_key` takes; the first is the one that is read first.
        let answers: Vec<Answer> =
            self.findings().map(|finding| in_finding(finding, truth)).collect();
        let best = answers.into_iter().rev().max_by_key(Answer::nearness);
        best.unwrap_or_else(|| Answer {
            parts: asked(truth).map(|asked| asked.then_some(false)),
            nearest: "no finding".to_owned(),
        })
    }

    /// Whether a note says that the loss cannot be seen, and no finding says of those who lost it that it was anything but what a
    /// busy machine adds.
    fn says_unseen(&self, truth: &Truth) -> bool {
        let Some(unseen) = &truth.unseen else { return false };
        let mut notes =
            self.paragraphs.iter().filter(|paragraph| paragraph[0].starts_with("note "));
        notes.any(|note| unseen.all(|word| names(&note.join("\n"), word)))
            && self.blamed(truth).is_none()
    }

    /// What says that those have lost something whom a truth is about, but for what a busy machine adds.
    fn blamed(&self, truth: &Truth) -> Option<&[String]> {
        self.findings().find(|finding| {
            let (subject, _) = halves(&finding[0]);
            truth.who.all(|who| names(subject, who)) && !is_of_a_busy_machine(&finding[0])
        })
    }

    /// Who is idle has lost nothing: no finding begins with it, but for what a busy machine adds; and the line of those that are
    /// idle says where it is.
    fn answer_idle(&self, truth: &Truth) -> Answer {
        let blamed = self.blamed(truth);
        let idle = self.paragraphs.iter().find(|paragraph| paragraph[0].starts_with("idle "));
        let said = idle.map_or(String::new(), |lines| lines.join("\n"));
        let place = truth.place.as_ref().map(|place| place.all(|word| names(&said, word)));
        let instead =
            || idle.map_or("nothing is said to be idle".to_owned(), |lines| shortened(lines));
        Answer {
            parts: [Some(blamed.is_none()), None, place, None],
            nearest: blamed.map_or_else(instead, shortened),
        }
    }
}

/// Which parts a truth asks for.
fn asked(truth: &Truth) -> [bool; 4] {
    [true, truth.behind.is_some(), truth.place.is_some(), truth.amount.is_some()]
}

fn in_finding(finding: &[String], truth: &Truth) -> Answer {
    let (subject, said) = halves(&finding[0]);
    let rest = besides(finding);
    let has = |words: &Words| words.all(|word| names(&rest, word));
    let is_behind = |behind: &Words| {
        let among_them = || AMONG_THEM.iter().any(|words| rest.contains(words));
        has(behind) || (*behind == truth.who && among_them())
    };
    Answer {
        parts: [
            Some(truth.who.all(|who| names(subject, who))),
            truth.behind.as_ref().map(is_behind),
            truth.place.as_ref().map(has),
            truth.amount.map(|amount| is_said(amount, said, &rest)),
        ],
        nearest: shortened(finding),
    }
}

/// The begin of a finding in one line.
fn shortened(finding: &[String]) -> String {
    let words: Vec<&str> = finding.iter().flat_map(|line| line.split_whitespace()).collect();
    words.join(" ").chars().take(SHORT).collect()
}

/// What says of threads that others of them are behind it.
const AMONG_THEM: [&str; 3] = ["each other", "one another", "another of them"];

/// What stands between who a finding is about and what befell them.
const VERBS: [&str; 5] = [" lost ", " waited ", " was ", " were ", ": "];

/// Who a finding is about, and what it says of them.
fn halves(first: &str) -> (&str, &str) {
    let verb = VERBS.iter().filter_map(|verb| Some((first.find(verb)?, verb.len())));
    verb.min().map_or((first, ""), |(at, len)| (&first[..at], &first[at + len..]))
}

/// All but who it is about, and whose wait was the longest: who waits for others of its own name is there in any case.
fn besides(finding: &[String]) -> String {
    let (_, first) = halves(&finding[0]);
    let rest = finding[1..].iter().map(String::as_str);
    let rest = rest.filter(|line| !line.trim_start().starts_with("longest "));
    std::iter::once(first).chain(rest).collect::<Vec<_>>().join("\n")
}

fn is_said(amount: Amount, first: &str, rest: &str) -> bool {
    match amount {
        Amount::Lost { ms, unsure_ms } => {
            let least = (ms - unsure_ms) * (1.0 - TOLERANCE);
            let most = ms * (1.0 + TOLERANCE);
            first_duration_ms(first).is_some_and(|said| (least..=most).contains(&said))
        }
        Amount::Count(count) => {
            let mut numbers = rest.split_whitespace().filter_map(number);
            numbers.any(|said| (said - count).abs() <= count * TOLERANCE)
        }
    }
}

/// Whether the first line of a finding is about CPUs, of which a busy machine has few, or about so little that it follows from that.
fn is_of_a_busy_machine(first: &str) -> bool {
    let share = first.split_once(" %").and_then(|(before, _)| number(before.rsplit(' ').next()?));
    names(first, "CPU") || share.is_some_and(|percent| percent <= TOLERANCE * 100.0)
}

/// The first number with a unit of time behind it, in milliseconds.
fn first_duration_ms(text: &str) -> Option<f64> {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.windows(2).find_map(|two| {
        let unit = match two[1].trim_end_matches(|c: char| !c.is_alphabetic()) {
            "ns" => 1e-6,
            "µs" => 1e-3,
            "ms" => 1.0,
            "s" => 1e3,
            "min" => 60e3,
            _ => return None,
        };
        Some(number(two[0])? * unit)
    })
}

/// `44,980`, `1.14`, `(3`: a number without what stands around it.
fn number(word: &str) -> Option<f64> {
    let digits = word.trim_matches(|c: char| !c.is_ascii_digit()).replace(',', "");
    digits.parse().ok()
}

/// Whether a name stands in a text: not as the end or, but for digits, the beginning of another. A name that ends in a hyphen is
/// the beginning of several.
fn names(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let is_prefix = name.ends_with('-');
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after =
            text[at + name.len()..].trim_start_matches(|c: char| c.is_ascii_digit()).chars().next();
        !before.is_some_and(is_part) && (is_prefix || !after.is_some_and(is_part))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCREEN: &str = "\
mutex_sleep  1.52 s, 5 threads, 2 CPUs   trace

1  teller-0…2 lost 1.02 s (23 % of their time) waiting for the mutex ledger, held by auditor
     auditor held it 50 times in audit (mutex_sleep.c:8): 99 % asleep in nanosleep
     longest 7.12 ms: teller-0 at 1.203 s            ft-agent view trace --at 1.203s
2  teller-0…2 waited 380 ms for a CPU, behind each other (3 % of it behind the recording)

3         buyer waited 958 ms (64 % of its time) waiting for a condition
          variable, 70 % of it behind another of them
10  heron-0…11: 10,200 of 11,000 wake-ups were for nothing: angler broadcasts in throw_fish (herd.c:30)
idle     the rest: nanosleep in main, 4 threads in epoll_wait
         and so on in futex
trust    complete";

    fn answer(truth: &str) -> [Option<bool>; 4] {
        Screen::new(SCREEN).answer(&Truth::parse(truth).unwrap()).parts
    }

    const YES: Option<bool> = Some(true);
    const NO: Option<bool> = Some(false);

    #[test]
    fn a_finding_has_all_of_a_truth() {
        let all = "who=teller- what=mutex behind=auditor where=audit lost_ms=";
        assert_eq!(answer(&format!("{all}1000")), [YES; 4]);
        assert_eq!(answer(&format!("{all}1100")), [YES, YES, YES, NO]);
        assert_eq!(answer(&format!("{all}960")), [YES, YES, YES, NO]);
        assert_eq!(answer(&format!("{all}1300 unsure_ms=300")), [YES; 4]);
        assert_eq!(
            answer("who=teller- what=cpu behind=teller- lost_ms=381"),
            [YES, YES, None, YES]
        );
        assert_eq!(
            answer("who=heron- what=herd behind=angler where=throw_fish count=10197"),
            [YES; 4]
        );
        assert_eq!(answer("who=heron- what=herd count=9000"), [YES, None, None, NO]);
    }

    #[test]
    fn what_two_findings_have_together_is_no_answer() {
        // The mutex is of the first, the amount of the second.
        assert_eq!(answer("who=teller- what=x behind=auditor lost_ms=380"), [YES, YES, None, NO]);
        // Who is behind has not lost the time.
        assert_eq!(answer("who=auditor what=x where=audit lost_ms=1020"), [NO, None, YES, YES]);
        assert_eq!(answer("who=tell what=x"), [NO, None, None, None]);
        assert_eq!(answer("who=teller- what=x where=audi"), [YES, None, NO, None]);
        // Themselves, but not behind each other.
        assert_eq!(answer("who=teller- what=x behind=teller- lost_ms=1020"), [YES, NO, None, YES]);
    }

    #[test]
    fn the_nearest_finding_is_told() {
        let told = |truth| Screen::new(SCREEN).answer(&Truth::parse(truth).unwrap()).nearest;
        assert!(told("who=teller- what=x lost_ms=380").starts_with("2 teller"));
        assert!(told("who=nobody what=x").starts_with("1 teller"));
        let none = Screen::new("trace  x (342 ms)\n   1  indented\n12 one blank\n");
        let none = none.answer(&Truth::parse("who=a what=x behind=b").unwrap());
        assert_eq!(none, Answer { parts: [NO, NO, None, None], nearest: "no finding".into() });
    }

    #[test]
    fn idle_is_no_finding() {
        assert_eq!(answer("idle who=server where=epoll_wait"), [YES, None, YES, None]);
        assert_eq!(answer("idle who=server where=futex"), [YES, None, YES, None]);
        assert_eq!(answer("idle who=server where=trust"), [YES, None, NO, None]);
        assert_eq!(answer("idle who=teller- where=epoll_wait"), [NO, None, YES, None]);
        let finding = |line: &str| {
            let screen = Screen::new(&format!("1  pool-0…3 waited {line}\nidle  futex"));
            screen.answer(&Truth::parse("idle who=pool- where=futex").unwrap()).is_whole()
        };
        assert!(finding("40 ms (0.7 % of their time) at a futex"));
        assert!(finding("400 ms (7 % of their time) waiting for a CPU"));
        assert!(!finding("400 ms (7 % of their time) at a futex"));
        assert!(!finding("for nothing"));
        let silent = Screen::new("trace  x\n").answer(&Truth::parse("idle who=a where=b").unwrap());
        assert!(!silent.is_whole());
    }

    #[test]
    fn what_cannot_be_seen_is_to_be_said() {
        let parts = |screen: &str| {
            let truth = "who=painters what=x lost_ms=800 unseen=goroutines";
            Screen::new(screen).answer(&Truth::parse(truth).unwrap()).parts
        };
        let finding = "1  painters (3 threads) lost 900 ms (20 % of their time) waiting for";
        let note = "note  goroutines are not threads: what they wait for is not seen";
        assert_eq!(parts(&format!("{finding} a CPU\n{note}")), [None; 4]);
        assert_eq!(parts(&format!("{finding} a CPU")), [YES, None, None, NO]);
        assert_eq!(parts(&format!("{finding} goroutines\n{note}")), [YES, None, None, NO]);
        assert_eq!(parts(&format!("note  Java is slow\n{finding} a CPU")), [YES, None, None, NO]);
    }

    #[test]
    fn times_have_units() {
        let times = [
            ("40 µs at", 0.04),
            ("(1.5 ms)", 1.5),
            ("2 s, 3 ms", 2000.0),
            ("in 31 of 31 periods 1,200 ns", 0.0012),
            ("1 min", 60e3),
        ];
        for (text, ms) in times {
            assert!((first_duration_ms(text).unwrap() - ms).abs() < 1e-9, "{text}");
        }
        assert_eq!(first_duration_ms("9.5 % of 3 threads"), None);
    }
}
