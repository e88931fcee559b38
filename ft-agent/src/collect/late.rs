//! Directory entries that the agent writes for a process: of sites in libraries that were loaded after
//! the process has last looked for its sites.

use std::collections::HashSet;

use ft_user::layout::{DirEntry, dir_kind};

use super::outside::Site;

/// META and SITE entries ([`dir_kind`]) of these sites; each metadata once.
pub fn entries(sites: &[&Site]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut described = HashSet::new();
    for site in sites {
        if described.insert(site.meta) {
            entry(&mut out, dir_kind::META, |out| meta(out, site));
        }
        entry(&mut out, dir_kind::SITE, |out| {
            out.extend(site.key().to_ne_bytes());
            out.extend(0u32.to_ne_bytes());
            out.extend(site.address.to_ne_bytes());
        });
    }
    out
}

fn meta(out: &mut Vec<u8>, site: &Site) {
    out.extend(site.key().to_ne_bytes());
    out.extend((site.kind as u16).to_ne_bytes());
    out.extend([site.args.len() as u8, 0]);
    out.extend(site.line.to_ne_bytes());
    for text in [&site.name, &site.file, &site.format] {
        string(out, text);
    }
    for (ty, name) in &site.args {
        out.push(*ty as u8);
        string(out, name);
    }
}

fn entry(out: &mut Vec<u8>, kind: u32, content: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend(kind.to_ne_bytes());
    out.extend(0u32.to_ne_bytes());
    const { assert!(size_of::<DirEntry>() == 8) };
    content(out);
    out.resize(start + (out.len() - start).next_multiple_of(8), 0);
    let bytes = (out.len() - start) as u32;
    out[start + 4..start + 8].copy_from_slice(&bytes.to_ne_bytes());
}

fn string(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u16).to_ne_bytes());
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use ft_user::directory::{self, Entry};
    use ft_user::layout::{ArgType, SiteKind};

    use super::*;

    #[test]
    fn what_is_written_reads_like_the_directory_of_a_process() {
        let site = |address, meta, name: &str| Site {
            address,
            meta,
            kind: SiteKind::Event,
            line: 17,
            name: name.into(),
            file: "x.rs".into(),
            format: "{n}".into(),
            args: vec![(ArgType::Unsigned, "n".into())],
            sled: None,
        };
        let sites = [site(100, 0x7000, "a.b"), site(108, 0x7000, "a.b"), site(116, 0x8000, "c.d")];
        let bytes = entries(&sites.iter().collect::<Vec<_>>());
        let meta = |key, name| Entry::SiteMeta {
            key,
            kind: SiteKind::Event,
            line: 17,
            name,
            file: "x.rs",
            format: "{n}",
            args: vec![(ArgType::Unsigned, "n")],
        };
        let trigger = |key, address| Entry::Site { key, address };
        let expected = [
            meta(0x7000, "a.b"),
            trigger(0x7000, 100),
            trigger(0x7000, 108),
            meta(0x8000, "c.d"),
            trigger(0x8000, 116),
        ];
        let mut parser = directory::parse(&bytes);
        assert!(parser.by_ref().eq(expected.map(Ok)));
        assert_eq!(parser.consumed(), bytes.len());
    }
}
