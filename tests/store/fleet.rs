//! `ft-agent fleet` of a store says what it says of a directory.

use std::collections::BTreeSet;
use std::fs;

use crate::files::files;
use crate::server::Server;
use crate::stage::{Stage, URL};

#[test]
fn of_a_store_and_of_a_directory_there_are_the_same_figures_and_pages() {
    let Some(server) = Server::start() else { return };
    let stage = Stage::new(server.address);
    let recordings = ["preload", "scenarios", "system"];
    recordings.iter().for_each(|name| drop(stage.stored_trace(name, name)));
    for catalogue in [URL, "fleet"] {
        stage.says(&[&["convert"], &recordings[..], &["--to", catalogue]].concat());
        stage.says(&["analyze", catalogue]);
    }
    // One without its histograms: it is in no figure, and is named.
    let unread = &stage.traces(URL)[0];
    let part = format!("{unread}/analysis.json");
    fs::remove_file(stage.path("fleet").join(&part)).unwrap();
    let gone = server.asks("DELETE", &format!("/fleet/of/traces/{part}"));
    assert!(gone.starts_with("HTTP/1.1 204"), "{gone}");

    for options in [&["--json"][..], &["--of", "wait", "--by", "host"], &["--of", "dispatch"]] {
        let of = |catalogue| stage.says(&[&["fleet", catalogue], options].concat());
        let (of_store, of_directory) = (of(URL), of("fleet"));
        assert!(of_store.contains(&unread[..]), "{of_store}");
        assert_eq!(of_store, of_directory);
    }

    let pages = |catalogue, dir| {
        fs::create_dir(stage.path(dir)).unwrap();
        let page = format!("{dir}/fleet.html");
        stage.says(&["fleet", catalogue, "--html", &page, "--pages", "2"]);
        files(&stage.path(dir)).into_keys().collect::<BTreeSet<_>>()
    };
    let of_store = pages(URL, "of-store");
    assert_eq!(of_store.len(), 3, "{of_store:?}");
    assert_eq!(of_store, pages("fleet", "of-directory"));
    assert_eq!(files(&stage.path("tmp")).len(), 0, "no copy is left");
}
