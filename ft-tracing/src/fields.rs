//! Fields as `tracing` visits them, made to arguments.

use std::fmt::{self, Debug, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};

use ft_user::dynamic::{MAX_ARGS, Types, Values};
use ft_user::{Arg, ArgType};
use tracing_core::Metadata;
use tracing_core::field::{Field, Visit};

/// Stands for the number of a field where the argument is the text of all that have none of their own.
pub(crate) const REST: u8 = u8::MAX;

/// Which fields there are, by their numbers at the callsite, and their types: with all other arguments in front.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Form {
    types: Types,
    fields: [u8; MAX_ARGS],
    count: usize,
}

impl Form {
    /// Number and type of each field.
    pub(crate) fn fields(self) -> impl Iterator<Item = (u8, ArgType)> {
        let fixed = self.types.len() - self.count;
        self.fields.into_iter().zip(self.types.iter().skip(fixed))
    }
}

/// Arguments of an event that is being recorded.
pub(crate) struct Fields {
    values: Values,
    fields: [u8; MAX_ARGS],
    count: usize,
    /// Fields that can still be arguments of their own; the others are text of one.
    left: usize,
    /// Whether there is text of others: the last argument.
    rest: Rest,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    None,
    Empty,
    Some,
}

impl Fields {
    /// Behind what `fixed` adds, fields of these metadata keep their types as far as there is room for arguments.
    #[inline(always)]
    pub(crate) fn typed(metadata: &Metadata<'_>, fixed: impl Fn(&mut Values)) -> Fields {
        let mut all = Fields::new();
        fixed(&mut all.values);
        let room = MAX_ARGS - all.values.types().len();
        // The last argument is needed for the rest, if there can be one.
        all.left = if metadata.fields().len() <= room { room } else { room - 1 };
        all
    }

    /// Made where it stays: to move it costs more than to fill it.
    #[inline(always)]
    fn new() -> Fields {
        let (values, fields) = (Values::new(), [0; MAX_ARGS]);
        Fields { values, fields, count: 0, left: 0, rest: Rest::None }
    }

    /// Behind what `fixed` adds, all fields are text of one argument.
    pub(crate) fn untyped(fixed: impl Fn(&mut Values)) -> Fields {
        let mut all = Fields::new();
        fixed(&mut all.values);
        all.values.push("");
        all.rest = Rest::Empty;
        all
    }

    pub(crate) fn form(&self) -> Form {
        Form { types: self.values.types(), fields: self.fields, count: self.count }
    }

    pub(crate) fn values(&self) -> &Values {
        &self.values
    }

    /// Whether a field becomes an argument of its own, which is then to be added.
    #[inline]
    fn takes(&mut self, field: &Field) -> bool {
        let number = u8::try_from(field.index()).unwrap_or(REST);
        let takes = self.left > 0 && number != REST;
        if takes {
            self.left -= 1;
            self.fields[self.count] = number;
            self.count += 1;
        }
        takes
    }

    #[inline]
    fn value<T: Arg + Debug>(&mut self, field: &Field, value: T) {
        if self.takes(field) {
            self.values.push(value);
        } else {
            self.add_to_rest(field, &value);
        }
    }

    #[cold]
    fn add_to_rest(&mut self, field: &Field, value: &dyn Debug) {
        let text = if self.rest == Rest::None {
            self.left = 0;
            self.fields[self.count] = REST;
            self.count += 1;
            self.values.text()
        } else {
            self.values.more()
        };
        // There is room for this one: `left` was so.
        let Some(mut text) = text else { return };
        let blank = if self.rest == Rest::Some { " " } else { "" };
        self.rest = Rest::Some;
        // Of no interest: there is no room for more, and the event will say so.
        let _ = write!(text, "{blank}{}=", field.name());
        write_unwinding(&mut text, value);
    }
}

/// Writes a value whose implementation may panic: what traces a program must not end it.
fn write_unwinding(to: &mut impl fmt::Write, value: &dyn Debug) {
    // What was written so far is whole characters, whenever it ends.
    let _ = catch_unwind(AssertUnwindSafe(|| write!(to, "{value:?}")));
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.value(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.value(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.value(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.value(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.value(field, value);
    }

    fn record_bytes(&mut self, field: &Field, value: &[u8]) {
        self.value(field, value);
    }

    // 128 bits and errors come here, too.
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if !self.takes(field) {
            return self.add_to_rest(field, value);
        }
        if let Some(mut text) = self.values.text() {
            write_unwinding(&mut text, value);
        }
    }
}
