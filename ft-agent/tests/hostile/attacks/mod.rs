//! The attacks, one a file.

mod descriptors;
mod far_head;
mod half_closed;
mod huge_pages;
mod large;
mod losses;
mod mapped_files;
mod registrations;
mod reused;
mod silent;
mod sparse;
mod stopped;
mod threads;
mod users;

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
    &mapped_files::ATTACK,
    &silent::ATTACK,
    &registrations::ATTACK,
    &half_closed::ATTACK,
    &stopped::ATTACK,
    &reused::ATTACK,
    &users::ATTACK,
];
