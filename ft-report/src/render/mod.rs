//! Documents for people and for programs: [`text`] fits a terminal, [`html`] is a page for a browser, [`json`] has every
//! figure.
//!
//! A document displays itself as text, as wide as it is formatted (`{:80}`), or 100 columns; it serialises as
//! [`json::SCHEMA`] says. Numbers become characters in `number` alone.

pub(crate) mod colors;
pub mod columns;
pub mod html;
pub mod json;
pub(crate) mod number;
pub mod text;
