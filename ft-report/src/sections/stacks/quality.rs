//! How far the chains of a trace can be believed.

use std::collections::HashSet;

use serde::Serialize;

use crate::code::Frame;
use crate::document::{N, Section, Share, Text, Word};
use crate::sections::Input;
use crate::text;
use ft_trace::ids::Name;
use ft_trace::store::Result;
use ft_trace::tables::{BinaryRow, LossRow, LostRecords, UNSEEN};

/// Functions that must have been looked at before a program is said to have nothing that leads to their callers.
const MIN_FUNCTIONS: i32 = 8;

/// How far the chains of a trace can be believed.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Quality {
    /// Chains.
    pub chains: u64,
    /// Of these, longer than what is recorded.
    pub cut: u64,
    /// Of these, without an address of user space: of threads of the kernel, or their memory could not be read.
    pub without_user: u64,
    /// Of these, with addresses of which the conversion has kept none: there were too many different chains.
    pub not_kept: u64,
    /// Of these, of processes that had ended before anybody could look at what they had mapped.
    pub unseen: u64,
    /// Records of chains that were lost.
    pub lost: u64,
    /// Functions without a name among those of user space that the chains have.
    pub unnamed: u64,
    /// Functions of user space that the chains have.
    pub functions: u64,
    /// Programs and libraries without unwinding tables and frame pointers: a chain can leave out the caller of a function of theirs,
    /// or end there.
    pub unframed: Vec<Unframed>,
    /// Programs and libraries of which no function is known: they are gone or stripped.
    pub nameless: Vec<Nameless>,
    /// Programs and libraries that the chains go through.
    #[serde(skip)]
    objects: HashSet<Name>,
}

/// A program or library whose functions do not say who has called them.
#[derive(Clone, Debug, Serialize)]
pub struct Unframed {
    /// Program or library.
    pub object: String,
    /// Functions that were looked at.
    pub functions: i32,
    /// Of these, who has an entry in the unwinding tables, or a frame pointer.
    pub framed: i32,
}

/// A program or library of which no function is known.
#[derive(Clone, Debug, Serialize)]
pub struct Nameless {
    /// Program or library.
    pub object: String,
    /// By which a copy of it can be known; empty when it has none.
    pub build_id: String,
}

impl Quality {
    /// What was lost, and which programs do not say who calls their functions.
    pub(in crate::sections) fn read(&mut self, input: Input<'_>) -> Result<()> {
        input.rows(|r: LossRow| {
            if r.records() == Some(LostRecords::Chains) {
                self.lost = self.lost.saturating_add(r.count.max(0) as u64);
            }
        })?;
        if input.trace.has::<BinaryRow>() {
            input.rows(|r: BinaryRow| {
                if r.functions == 0 && self.objects.contains(&r.object) {
                    let (object, build_id) = (r.object.to_string(), r.build_id.to_string());
                    self.nameless.push(Nameless { object, build_id });
                }
                let few = i64::from(r.framed) * 2 < i64::from(r.functions);
                if r.functions >= MIN_FUNCTIONS && few && self.objects.contains(&r.object) {
                    let (object, functions, framed) = (r.object.to_string(), r.functions, r.framed);
                    self.unframed.push(Unframed { object, functions, framed });
                }
            })?;
        }
        Ok(())
    }

    /// Counts a chain that so many records have: `user`, its functions of user space as they were recorded.
    pub(in crate::sections) fn add(&mut self, chain: &[&Frame], cut: bool, user: i32, n: u64) {
        self.chains += n;
        self.cut += if cut { n } else { 0 };
        self.without_user += if user == 0 { n } else { 0 };
        self.not_kept += if user > 0 && chain.is_empty() { n } else { 0 };
        let user = chain.iter().filter(|frame| !frame.kernel);
        self.unseen += if user.clone().any(|frame| &*frame.object == UNSEEN) { n } else { 0 };
        for frame in user.clone() {
            if !self.objects.contains(&frame.object) {
                self.objects.insert(frame.object.clone());
            }
        }
        self.functions += n * user.clone().count() as u64;
        self.unnamed += n * user.filter(|frame| !frame.named).count() as u64;
    }

    /// What a reader of chains must know.
    pub(in crate::sections) fn say(&self, s: &mut Section) {
        let parts = [
            (self.lost, "lost"),
            (self.cut, "longer than the 127 functions, or the 4 KiB of a stack, that are recorded"),
            (self.without_user, "without a function of user space"),
            (self.not_kept, "too many to be kept"),
            (
                self.unseen,
                "of processes that had ended before they could be looked at, of which only addresses are known",
            ),
        ];
        let parts = parts.iter().filter(|(n, _)| *n > 0);
        if let Some(parts) = Text::join(parts.map(|(n, what)| text!("{} {}", N(*n), *what)), ", ") {
            s.say(text!("Of the chains: {}.", parts));
        }
        if self.unnamed > 0 {
            s.say(text!(
                "{} of the functions in them have no name: of programs that are stripped or gone, of processes that \
                 had ended, and of code that was generated at run time and has no map in /tmp.",
                Share::of(self.unnamed, self.functions)
            ));
        }
        let name = |n: &Nameless| {
            let file = n.object.rsplit('/').next().unwrap_or_default();
            match &*n.build_id {
                "" => text!("{} (no build id)", Word(file)),
                id => text!("{} (build id {})", Word(file), Word(id)),
            }
        };
        if let Some(most) = Text::join(self.nameless.iter().take(5).map(name), ", ") {
            s.say(text!(
                "Gone, or without names of functions: {}{}. A copy with that build id and the addresses in `frames` gives \
                 the names.",
                most,
                if self.nameless.len() > 5 { ", …" } else { "" }
            ));
        }
        if !self.unframed.is_empty() {
            let name = |u: &Unframed| {
                let file = u.object.rsplit('/').next().unwrap_or_default();
                text!(
                    "{} ({} of {} functions)",
                    Word(file),
                    N((u.functions - u.framed) as u64),
                    N(u.functions as u64)
                )
            };
            let most = Text::join(self.unframed.iter().take(5).map(name), ", ").unwrap_or_default();
            s.say(text!(
                "Without unwinding tables and frame pointers: {}{}. The caller of one of their functions can be missing from a chain, and a \
                 chain can end there.",
                most,
                if self.unframed.len() > 5 { ", …" } else { "" }
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_lead_to_no_caller_are_counted_not_those_that_do() {
        let demo = Unframed { object: "/bin/demo".into(), functions: 234, framed: 40 };
        let mut s = Section::new("stacks", "");
        Quality { unframed: vec![demo], ..Quality::default() }.say(&mut s);
        let text = format!("{s:200}");
        assert!(
            text.contains(
                "Without unwinding tables and frame pointers: demo (194 of 234 functions)."
            ),
            "{text}"
        );
    }
}
