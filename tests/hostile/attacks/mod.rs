//! The attacks, one a file.

mod compiled;
mod cut;
mod descriptors;
mod disguised;
mod elsewhere;
mod execs;
mod executing;
mod far_head;
mod files;
mod fuse;
mod half_closed;
mod huge_pages;
mod large;
mod lingering;
mod locked;
mod losses;
mod mapped_files;
mod messages;
mod names;
mod opened;
mod registrations;
mod reused;
mod silent;
mod sparse;
mod split;
mod stopped;
mod threads;
mod times;
mod twice;
mod unanswered;
mod unborn;
mod users;
mod written;

use crate::Attack;

/// All, in the order in which they run.
pub(crate) const ALL: &[&Attack] = &[
    &descriptors::ATTACK,
    &far_head::ATTACK,
    &huge_pages::ATTACK,
    &large::ATTACK,
    &losses::ATTACK,
    &sparse::ATTACK,
    &threads::ATTACK,
    &unborn::ATTACK,
    &times::ATTACK,
    &twice::ATTACK,
    &names::ATTACK,
    &execs::ATTACK,
    &messages::ATTACK,
    &mapped_files::ATTACK,
    &silent::ATTACK,
    &registrations::ATTACK,
    &half_closed::ATTACK,
    &stopped::ATTACK,
    &reused::ATTACK,
    &users::ATTACK,
    &written::ATTACK,
    &disguised::ATTACK,
    &unanswered::ATTACK,
    &executing::ATTACK,
    &locked::ATTACK,
];

/// Those that go on once more beside records of the kernel.
pub(crate) const WITH_KERNEL: &[&Attack] = &[
    &far_head::ATTACK,
    &files::ATTACK,
    &split::ATTACK,
    &cut::ATTACK,
    &elsewhere::ATTACK,
    &compiled::ATTACK,
    &fuse::ATTACK,
    &lingering::ATTACK,
    &executing::ATTACK,
    &opened::ATTACK,
    &threads::ATTACK,
    &unborn::ATTACK,
    &execs::ATTACK,
    &registrations::ATTACK,
];
