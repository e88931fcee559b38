//! More sites of run time than there is room for.
#![cfg(all(target_arch = "x86_64", target_os = "linux", not(ft_off)))]

use ft_user::dynamic::{Description, Event, Kind, SWITCHES, Switch};

fn of(name: &str) -> Description<'_> {
    Description { kind: Kind::Event, name, file: "", line: 0, args: &[] }
}

#[test]
fn what_has_no_room_is_refused_and_all_else_stays() {
    let switches: Vec<Switch> =
        (0..2 * SWITCHES).map_while(|n| Switch::new(&of(&format!("full.{n}")))).collect();
    assert_eq!(switches.len(), SWITCHES);
    assert!(Switch::new(&of("full.more")).is_none());
    // With the descriptions of these switches.
    let events = (0..8192).map_while(|n| Event::new(&of(&format!("form.{n}")))).count();
    assert!((2000..=4096 - SWITCHES).contains(&events), "{events}");
    assert_eq!(ft_user::enable("full.*"), SWITCHES);
    assert!(switches.iter().all(|switch| switch.is_on()));
    assert_eq!(ft_user::disable("full.1"), 1);
    assert!(!switches[1].is_on() && switches[10].is_on());
}
