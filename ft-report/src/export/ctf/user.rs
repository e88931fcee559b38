//! Applications' events: a class for each site, with a field for each argument by its name and type.
//!
//! An argument that an event does not have is not a field of it: such events have a class of their own. The numbers of
//! locks, places and symbols are enumerations, so readers show names that the packets need not repeat.

use std::collections::{BTreeMap, HashMap, HashSet};

use ft_trace::ids::{Name, SiteId};
use ft_trace::tables::UserEvent;

use super::kernel::Field;
use super::tsdl::{Channel, Metadata};
use crate::listing::format::ArgKind;
use crate::listing::names::{Names, Site};

/// How an argument is written.
#[derive(Clone, Copy, Debug)]
enum Form {
    Word,
    Bool,
    Float,
    Text,
}

/// Events of one site that have the same arguments.
pub(super) struct Class {
    pub(super) id: u32,
    args: Vec<(usize, Form)>,
}

impl Class {
    /// Writes context and fields of an event.
    pub(super) fn put(&self, event: &UserEvent, out: &mut Vec<u8>) {
        event.pid.0.put(out);
        event.tid.0.put(out);
        for &(i, form) in &self.args {
            match form {
                Form::Word => event.arg[i].unwrap_or_default().put(out),
                // What a program calls a boolean need not be one.
                Form::Bool => {
                    out.push(event.arg[i].unwrap_or_default().try_into().unwrap_or(u8::MAX))
                }
                Form::Float => event.argf[i].unwrap_or_default().put(out),
                Form::Text => event.argt[i].as_deref().unwrap_or_default().put(out),
            }
        }
    }
}

/// Numbers with names, of one registration or process.
type Values = BTreeMap<u64, Name>;

/// The classes so far.
pub(super) struct Classes<'a> {
    names: &'a Names,
    classes: HashMap<(SiteId, u32), Class>,
    /// By kind, which is part of the enumeration's name, and registration; of symbols, process.
    values: HashMap<(&'static str, i32), Values>,
    declared: HashSet<(&'static str, i32)>,
}

impl<'a> Classes<'a> {
    pub(super) fn new(names: &'a Names) -> Classes<'a> {
        let mut values: HashMap<_, Values> = HashMap::new();
        let locks = names.locks().map(|(of, id, name)| ("locks", of, id as u32 as u64, name));
        let places = names.places().map(|(of, id, name)| ("places", of, id as u32 as u64, name));
        let symbols = names.symbols().map(|(of, at, name)| ("symbols", of.0, at as u64, name));
        for (kind, of, value, name) in locks.chain(places).chain(symbols) {
            values.entry((kind, of)).or_default().insert(value, name.clone());
        }
        Classes { names, classes: HashMap::new(), values, declared: HashSet::new() }
    }

    /// The class of an event, declared if it is the first of it.
    pub(super) fn of(&mut self, event: &UserEvent, metadata: &mut Metadata) -> &Class {
        let key = (event.site, present(event));
        if !self.classes.contains_key(&key) {
            let class = self.declare(event, metadata);
            self.classes.insert(key, class);
        }
        &self.classes[&key]
    }

    fn declare(&mut self, event: &UserEvent, metadata: &mut Metadata) -> Class {
        let mut fields: Vec<(String, String)> = Vec::new();
        let mut args = Vec::new();
        let site = self.names.site(event.site);
        for (i, name, kind) in arguments(event, site) {
            let mut field = |name: &str, ty: String| fields.push((name.to_owned(), ty));
            let form = match kind {
                ArgKind::Float => Form::Float,
                ArgKind::Text => Form::Text,
                ArgKind::Bool => Form::Bool,
                _ => Form::Word,
            };
            let by_address = site.and_then(|site| Some((site.by_address()?, site.row.source)));
            match (form, by_address, i) {
                // As `ft_user::layout::place_word` puts them together.
                (Form::Word, Some((false, source)), 1) => {
                    field(&name, self.named("places", "uint32_t", source, metadata));
                    field("lock_name", self.named("locks", "uint32_t", source, metadata));
                }
                (Form::Word, Some((true, _)), 0 | 1) => {
                    field(&name, self.named("symbols", "pointer_t", event.pid.0, metadata));
                }
                (Form::Word, ..) => field(&name, word(kind).into()),
                (Form::Bool, ..) => field(&name, bool::TYPE.into()),
                (Form::Float, ..) => field(&name, f64::TYPE.into()),
                (Form::Text, ..) => field(&name, <&str>::TYPE.into()),
            }
            args.push((i, form));
        }
        let fields = fields.iter().map(|(name, ty)| (&**name, &**ty));
        Class { id: metadata.event(Channel::User, &event.event, fields), args }
    }

    /// The enumeration of such names, or, where there are none, their plain type.
    fn named(&mut self, kind: &'static str, ty: &str, of: i32, metadata: &mut Metadata) -> String {
        let Some(values) = self.values.get(&(kind, of)) else { return ty.into() };
        let name = format!("{kind}_{}", of as u32);
        if self.declared.insert((kind, of)) {
            metadata.enumeration(&name, ty, values.iter().map(|(&value, name)| (value, &**name)));
        }
        format!("enum {name}")
    }
}

/// A bit for each argument that is there, by its column.
fn present(event: &UserEvent) -> u32 {
    let columns = [
        event.arg.each_ref().map(Option::is_some),
        event.argf.each_ref().map(Option::is_some),
        event.argt.each_ref().map(Option::is_some),
    ];
    columns.as_flattened().iter().fold(0, |bits, &is_some| bits << 1 | u32::from(is_some))
}

/// The arguments that an event has: number, name and type.
fn arguments(event: &UserEvent, site: Option<&Site>) -> Vec<(usize, String, ArgKind)> {
    let has = |i: usize, kind| match kind {
        ArgKind::Float => event.argf[i].is_some(),
        ArgKind::Text => event.argt[i].is_some(),
        _ => event.arg[i].is_some(),
    };
    match site {
        Some(site) => {
            let args = site.args().iter().enumerate().filter(|(i, arg)| has(*i, arg.kind));
            args.map(|(i, arg)| (i, arg.name.clone(), arg.kind)).collect()
        }
        // Its description was lost: what there is.
        None => {
            let kinds =
                [(ArgKind::Signed, "arg"), (ArgKind::Float, "argf"), (ArgKind::Text, "argt")];
            let all = (0..event.arg.len()).flat_map(|i| kinds.map(|(kind, name)| (i, name, kind)));
            all.filter(|&(i, _, kind)| has(i, kind))
                .map(|(i, name, kind)| (i, format!("{name}{i}"), kind))
                .collect()
        }
    }
}

/// Type of an argument of one word.
fn word(kind: ArgKind) -> &'static str {
    match kind {
        ArgKind::Unsigned => "uint64_t",
        ArgKind::Pointer => "pointer_t",
        _ => "int64_t",
    }
}
