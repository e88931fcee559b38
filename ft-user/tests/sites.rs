//! Sites as the program itself finds them.
#![cfg(not(ft_off))]

use ft_user::layout::{ArgType, SiteKind, SiteMeta, TRIGGER_OFF};
use ft_user::site::{self, SiteRef};
use ft_user::{Tsc, event};

fn simple() {
    let id = 7u64;
    event!("sites.simple", id: u64, load: f32 = 0.5, from: *const u8 = &0u8, at: Tsc = Tsc(1); "{id}");
}

#[inline(never)]
fn generic<T: Into<u64> + Copy>(values: &[T]) -> u64 {
    let mut sum = 0;
    for &value in values {
        let value: u64 = value.into();
        event!("sites.generic", value: u64);
        sum += value;
    }
    sum
}

fn named(name: &str) -> Vec<SiteRef> {
    let mut found = Vec::new();
    site::for_each(|site| {
        if site.meta.name() == name {
            found.push(site);
        }
    });
    found
}

#[test]
fn site_says_what_the_macro_was_told() {
    simple();
    let found = named("sites.simple");
    let [SiteRef { trigger, meta }] = found[..] else { panic!("one site, not {}", found.len()) };
    assert_eq!(meta.bytes as usize, size_of::<SiteMeta>());
    assert_eq!(SiteKind::from_u16(meta.kind), Some(SiteKind::Event));
    assert_eq!((meta.file.get(), meta.line), (file!(), 10));
    assert_eq!(meta.format.get(), "{id}");
    let args: Vec<_> = meta.args().iter().map(|a| (a.name.get(), ArgType::from_u8(a.ty))).collect();
    assert_eq!(
        args,
        [
            ("id", Some(ArgType::Unsigned)),
            ("load", Some(ArgType::Float)),
            ("from", Some(ArgType::Pointer)),
            ("at", Some(ArgType::Tsc)),
        ]
    );
    // SAFETY: the trigger is program text of this process, which may be read.
    assert_eq!(unsafe { *(trigger as *const [u8; 4]) }, TRIGGER_OFF.to_le_bytes());
}

#[test]
fn copies_of_a_site_share_their_metadata() {
    assert_eq!(generic(&[1u8, 2]) + generic(&[3u32]) + generic(&[4u64]), 10);
    let found = named("sites.generic");
    assert!(found.len() >= 3, "{} sites for three instances", found.len());
    assert!(found.iter().all(|site| std::ptr::eq(site.meta, found[0].meta)));
    let mut triggers: Vec<_> = found.iter().map(|site| site.trigger).collect();
    triggers.sort();
    triggers.dedup();
    assert_eq!(triggers.len(), found.len());
}

/// The nop of a site that is off contains its jump, and so tells where it would go.
#[test]
fn every_site_leads_into_its_own_text() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let text: Vec<_> = maps
        .lines()
        .filter(|line| line.contains(" r-xp "))
        .map(|line| {
            let (start, end) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
            let parse = |number| usize::from_str_radix(number, 16).unwrap();
            parse(start)..parse(end)
        })
        .collect();
    let mut sites = 0;
    site::for_each(|site| {
        let object = text.iter().find(|range| range.contains(&site.trigger));
        let object = object.expect("a trigger is in text that is not writable");
        // SAFETY: the eight bytes of the trigger are program text of this process.
        let distance = unsafe { ((site.trigger + 4) as *const i32).read_unaligned() };
        assert!(object.contains(&(site.trigger + 8).wrapping_add_signed(distance as isize)));
        sites += 1;
    });
    assert!(sites >= 4);
}

#[test]
fn arguments_of_a_disabled_site_are_not_evaluated() {
    let mut evaluated = false;
    event!("sites.lazy", value: bool = { evaluated = true; evaluated });
    assert!(!evaluated);
}
