//! A reader of the kernel's BTF, for two questions: where is a member of a structure, and what does a
//! tracepoint pass. The format is `Documentation/bpf/btf.rst` of the kernel.
//!
//! aya parses BTF, too, but keeps members and parameters to itself.

use std::collections::HashMap;

use ft_trace::bytes::u32_at;

use super::KernelError;

/// `BTF_KIND_*` (linux/btf.h), those that are told apart here.
mod kind {
    pub(super) const INT: u32 = 1;
    pub(super) const PTR: u32 = 2;
    pub(super) const ARRAY: u32 = 3;
    pub(super) const STRUCT: u32 = 4;
    pub(super) const UNION: u32 = 5;
    pub(super) const ENUM: u32 = 6;
    pub(super) const TYPEDEF: u32 = 8;
    pub(super) const VOLATILE: u32 = 9;
    pub(super) const CONST: u32 = 10;
    pub(super) const RESTRICT: u32 = 11;
    pub(super) const FUNC_PROTO: u32 = 13;
    pub(super) const VAR: u32 = 14;
    pub(super) const DATASEC: u32 = 15;
    pub(super) const DECL_TAG: u32 = 17;
    pub(super) const TYPE_TAG: u32 = 18;
    pub(super) const ENUM64: u32 = 19;
}

const MAGIC: u16 = 0xeb9f;

/// Typedefs of tracepoints' prototypes are named with this prefix.
const TRACEPOINT: &[u8] = b"btf_trace_";

/// How deep anonymous members and modifiers are followed.
const DEPTH: u32 = 16;

/// The types of a kernel.
pub(super) struct Btf<'a> {
    types: &'a [u8],
    strings: &'a [u8],
    /// Offset in `types` by type id less one; id 0 is `void`.
    offsets: Vec<u32>,
    /// Ids of the structs and of the tracepoints' typedefs, by name.
    names: HashMap<&'a [u8], u32>,
}

/// One type: the words before what its kind appends.
#[derive(Clone, Copy)]
struct Type {
    at: usize,
    name: u32,
    info: u32,
    size_or_type: u32,
}

impl Type {
    const BYTES: usize = 12;

    fn kind(self) -> u32 {
        self.info >> 24 & 0x1f
    }

    fn entries(self) -> usize {
        (self.info & 0xffff) as usize
    }

    fn has_bitfields(self) -> bool {
        self.info >> 31 != 0
    }

    /// Bytes that follow; `None` for a kind of the future, which nobody can skip.
    fn appended(self) -> Option<usize> {
        Some(match self.kind() {
            kind::INT | kind::VAR | kind::DECL_TAG => 4,
            kind::ARRAY => 12,
            kind::STRUCT | kind::UNION | kind::DATASEC | kind::ENUM64 => 12 * self.entries(),
            kind::ENUM | kind::FUNC_PROTO => 8 * self.entries(),
            1..=kind::ENUM64 => 0,
            _ => return None,
        })
    }
}

impl<'a> Btf<'a> {
    /// Reads BTF of this machine's byte order.
    ///
    /// # Errors
    ///
    /// [`KernelError::MalformedBtf`] when the data is not BTF or ends early.
    pub(super) fn parse(data: &'a [u8]) -> Result<Self, KernelError> {
        let malformed = |at| KernelError::MalformedBtf { at };
        let word = |at| u32_at(data, at).ok_or(malformed(at));
        if data.get(..2) != Some(&MAGIC.to_ne_bytes()) {
            return Err(malformed(0));
        }
        let section = |at| -> Result<&'a [u8], KernelError> {
            let start = word(4)? as usize + word(at)? as usize;
            data.get(start..start + word(at + 4)? as usize).ok_or(malformed(at))
        };
        let mut btf = Self {
            types: section(8)?,
            strings: section(16)?,
            offsets: vec![],
            names: HashMap::new(),
        };
        let mut at = 0;
        while at < btf.types.len() {
            let ty = btf.type_at(at).ok_or(malformed(at))?;
            btf.offsets.push(at as u32);
            let wanted = match ty.kind() {
                kind::STRUCT => true,
                kind::TYPEDEF => btf.string(ty.name).starts_with(TRACEPOINT),
                _ => false,
            };
            if wanted {
                btf.names.entry(btf.string(ty.name)).or_insert(btf.offsets.len() as u32);
            }
            at += Type::BYTES + ty.appended().ok_or(malformed(at))?;
        }
        Ok(btf)
    }

    /// Offset in bytes of a member that is no bitfield; the path goes through nested structures
    /// (`thread_info.cpu`), anonymous ones need no name.
    pub(super) fn member_offset(&self, structure: &str, path: &str) -> Option<u32> {
        let mut ty = self.type_by_id(*self.names.get(structure.as_bytes())?)?;
        let mut bits = 0;
        for name in path.split('.') {
            let (offset, member) = self.member(ty, name.as_bytes(), DEPTH)?;
            bits += offset;
            ty = self.resolve(member)?;
        }
        (bits % 8 == 0).then_some(bits / 8)
    }

    /// Whether the kernel has the tracepoint.
    pub(super) fn has_tracepoint(&self, name: &str) -> bool {
        self.tracepoint(name).is_some()
    }

    /// For each argument of a tracepoint, whether it is a pointer.
    pub(super) fn tracepoint_arguments(&self, name: &str) -> Option<Vec<bool>> {
        let typedef = self.type_by_id(self.tracepoint(name)?)?;
        let pointer = self.resolve(typedef.size_or_type)?;
        let prototype = self.resolve(pointer.size_or_type)?;
        if (pointer.kind(), prototype.kind()) != (kind::PTR, kind::FUNC_PROTO) {
            return None;
        }
        // The first parameter is the tracepoint's own `void *`; programs do not see it.
        let parameters = prototype.at + Type::BYTES;
        (1..prototype.entries())
            .map(|i| {
                let ty = self.resolve(u32_at(self.types, parameters + 8 * i + 4)?)?;
                Some(ty.kind() == kind::PTR)
            })
            .collect()
    }

    fn tracepoint(&self, name: &str) -> Option<u32> {
        self.names.get([TRACEPOINT, name.as_bytes()].concat().as_slice()).copied()
    }

    /// Offset in bits and type of a member.
    fn member(&self, ty: Type, name: &[u8], depth: u32) -> Option<(u32, u32)> {
        if !matches!(ty.kind(), kind::STRUCT | kind::UNION) || depth == 0 {
            return None;
        }
        for i in 0..ty.entries() {
            let at = ty.at + Type::BYTES + 12 * i;
            let member = u32_at(self.types, at + 4)?;
            let placed = u32_at(self.types, at + 8)?;
            let (width, offset) =
                if ty.has_bitfields() { (placed >> 24, placed & 0xff_ffff) } else { (0, placed) };
            let member_name = self.string(u32_at(self.types, at)?);
            if member_name == name {
                return (width == 0).then_some((offset, member));
            }
            if member_name.is_empty()
                && let Some(inner) = self.resolve(member)
                && let Some((more, member)) = self.member(inner, name, depth - 1)
            {
                return Some((offset + more, member));
            }
        }
        None
    }

    /// The type behind typedefs and qualifiers.
    fn resolve(&self, id: u32) -> Option<Type> {
        let mut ty = self.type_by_id(id)?;
        for _ in 0..DEPTH {
            match ty.kind() {
                kind::TYPEDEF | kind::VOLATILE | kind::CONST | kind::RESTRICT | kind::TYPE_TAG => {
                    ty = self.type_by_id(ty.size_or_type)?;
                }
                _ => return Some(ty),
            }
        }
        None
    }

    fn type_by_id(&self, id: u32) -> Option<Type> {
        let index = (id as usize).checked_sub(1)?;
        self.type_at(*self.offsets.get(index)? as usize)
    }

    fn type_at(&self, at: usize) -> Option<Type> {
        Some(Type {
            at,
            name: u32_at(self.types, at)?,
            info: u32_at(self.types, at + 4)?,
            size_or_type: u32_at(self.types, at + 8)?,
        })
    }

    /// A name; empty when there is none.
    fn string(&self, at: u32) -> &'a [u8] {
        let from = self.strings.get(at as usize..).unwrap_or_default();
        from.split(|byte| *byte == 0).next().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// BTF in the making.
    struct Maker {
        types: Vec<u8>,
        strings: Vec<u8>,
    }

    impl Maker {
        fn new() -> Self {
            Self { types: vec![], strings: vec![0] }
        }

        fn name(&mut self, name: &str) -> u32 {
            if name.is_empty() {
                return 0;
            }
            let at = self.strings.len() as u32;
            self.strings.extend_from_slice(name.as_bytes());
            self.strings.push(0);
            at
        }

        fn ty(&mut self, name: &str, kind: u32, entries: usize, word: u32, appended: &[u32]) {
            let name = self.name(name);
            for word in [&[name, kind << 24 | entries as u32, word], appended].concat() {
                self.types.extend_from_slice(&word.to_ne_bytes());
            }
        }

        fn make(&self) -> Vec<u8> {
            let (types, strings) = (self.types.len() as u32, self.strings.len() as u32);
            let mut out = MAGIC.to_ne_bytes().to_vec();
            out.extend_from_slice(&[1, 0]);
            for word in [24, 0, types, types, strings] {
                out.extend_from_slice(&word.to_ne_bytes());
            }
            out.extend_from_slice(&self.types);
            out.extend_from_slice(&self.strings);
            out
        }
    }

    /// `struct task { int a; struct { int b; }; struct info { int cpu; } inner; }`, and the tracepoint
    /// `void (*)(void *, int, struct task *)`.
    fn sample() -> Vec<u8> {
        let mut m = Maker::new();
        let [a, b, cpu, inner] = ["a", "b", "cpu", "inner"].map(|name| m.name(name));
        m.ty("int", kind::INT, 0, 4, &[32]); // 1
        m.ty("", kind::STRUCT, 1, 4, &[b, 1, 0]); // 2
        m.ty("info", kind::STRUCT, 1, 8, &[cpu, 1, 32]); // 3
        m.ty("task", kind::STRUCT, 3, 16, &[a, 1, 0, 0, 2, 32, inner, 3, 64]); // 4
        m.ty("", kind::PTR, 0, 4, &[]); // 5
        m.ty("", kind::FUNC_PROTO, 3, 0, &[0, 5, 0, 1, 0, 5]); // 6
        m.ty("", kind::PTR, 0, 6, &[]); // 7
        m.ty("btf_trace_thing", kind::TYPEDEF, 0, 7, &[]); // 8
        m.make()
    }

    #[test]
    fn members_are_found_through_nesting() {
        let data = sample();
        let btf = Btf::parse(&data).unwrap();
        let check =
            |path, expected| assert_eq!(btf.member_offset("task", path), expected, "{path}");
        check("a", Some(0));
        check("b", Some(4));
        check("inner.cpu", Some(12));
        check("cpu", None);
        check("a.b", None);
        assert_eq!(btf.member_offset("nothing", "a"), None);
    }

    #[test]
    fn a_tracepoint_tells_its_arguments() {
        let data = sample();
        let btf = Btf::parse(&data).unwrap();
        assert!(btf.has_tracepoint("thing") && !btf.has_tracepoint("other"));
        assert_eq!(btf.tracepoint_arguments("thing"), Some(vec![false, true]));
    }

    #[test]
    fn no_damage_panics() {
        let data = sample();
        for end in 0..data.len() {
            assert!(Btf::parse(&data[..end]).is_err(), "cut at {end}");
        }
        for at in 0..data.len() {
            let mut damaged = data.clone();
            damaged[at] ^= 0xff;
            if let Ok(btf) = Btf::parse(&damaged) {
                btf.member_offset("task", "inner.cpu");
                btf.tracepoint_arguments("thing");
            }
        }
    }
}
