//! What a trace says: reports and listings, as text and as JSON.
//!
//! [`analyze`](analyze::analyze()) runs all analyses over a trace and stores their tables in it. Each report of
//! [`sections`] reads those, makes its statistics ([`stats`]) and says what they mean with typed values, of which it formats
//! none ([`document`]); [`render`] makes text or JSON of that. [`listing`] puts every event into words. This crate
//! computes nothing that an analysis should have, and touches neither processes nor the kernel.
//!
//! ```
//! use std::ops::ControlFlow;
//!
//! use ft_report::sections::{self, Asked};
//! use ft_report::{analyze, document::Document};
//! use ft_trace::store::Trace;
//!
//! # use ft_analysis::timeline::{events, sites, threads};
//! # use ft_trace::event::Event;
//! # use ft_trace::store::{Footer, Meta, Row, SCHEMA_VERSION, TableWriter};
//! # use ft_trace::tables::{ClockRow, LossRow, NameRow, SiteKind, SiteRow, ThreadRow, UserEvent};
//! # fn table<R: Row>(dir: &std::path::Path, rows: impl IntoIterator<Item = R>) {
//! #     let mut writer = TableWriter::create(dir, Footer::default()).unwrap();
//! #     rows.into_iter().for_each(|row| writer.push(row).unwrap());
//! #     writer.finish().unwrap();
//! # }
//! # let folder = tempfile::tempdir()?;
//! # let dir = folder.path();
//! # table::<SiteRow>(dir, sites());
//! # table::<ThreadRow>(dir, threads());
//! # table::<NameRow>(dir, []);
//! # table::<ClockRow>(dir, []);
//! # table::<LossRow>(dir, []);
//! # table::<UserEvent>(dir, events("10 acquire a L\n 15 wait b L\n 35 release a L\n 36 acquire b L\n 40 release b L").filter_map(|event| {
//! #     let Event::User(e) = event else { return None };
//! #     let arg = [Some(e.arg[0]), Some(e.arg[1]), Some(e.arg[2]), None, None, None];
//! #     let (event, category) = ("".into(), "".into());
//! #     let (argf, argt, kind) = ([None; 6], [const { None }; 6], SiteKind::Event);
//! #     let (ts, pid, tid, cpu, site) = (e.ts, e.pid, e.tid, e.cpu, e.site);
//! #     Some(UserEvent { ts, tsc: 0, pid, tid, cpu, site, event, category, kind, arg, argf, argt })
//! # }));
//! # Meta { schema_version: SCHEMA_VERSION, ..Meta::default() }.write(dir)?;
//! let trace = Trace::open(dir)?;
//! // What this version has not analysed is analysed now; who watches could draw progress, or end it.
//! let tally = analyze::ensure(&trace, &mut |_| ControlFlow::Continue(()))?;
//! let document = Document::of(&trace, &tally, sections::find("locks"), Asked::default())?;
//! println!("{document:80}");
//! println!("{}", serde_json::to_string_pretty(&document)?);
//! # assert_eq!((tally.waits, trace.rows::<ft_trace::tables::CriticalSection>().count()), (1, 2));
//! # assert!(format!("{document:80}").contains("2 holds"), "{document:80}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod analyze;
pub mod code;
pub mod compare;
pub mod document;
pub mod export;
pub mod fleet;
pub mod listing;
pub mod render;
pub mod sections;
pub mod stats;
pub mod timeline;
pub mod tracks;
pub mod units;
