//! More callsites than there is room for.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

#[path = "../../ft-user/tests/common/mod.rs"]
mod common;
mod made;

use common::Memory;
use ft_user::Config;
use ft_user::dynamic::SWITCHES;
use made::make;
use tracing::Event;

#[test]
fn who_has_no_room_is_named_once_and_all_others_are_written() {
    const MORE: usize = 20;
    common::start(Config::default());
    ft_user::enable("*");
    tracing::subscriber::set_global_default(ft_tracing::subscriber()).unwrap();
    let callsites: Vec<_> = (0..SWITCHES + MORE).map(|_| make()).collect();
    for _ in 0..3 {
        callsites
            .iter()
            .for_each(|metadata| Event::dispatch(metadata, &metadata.fields().value_set(&[])));
    }
    let events = Memory::own().take();
    let count = |name: &str| events.iter().filter(|event| event.name == name).count();
    assert_eq!((count("made.info"), count("ft_tracing.refused")), (3 * SWITCHES, MORE));
}
