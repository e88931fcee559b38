//! What tests use that is not installed but downloaded, into the target folder or beside the scripts: interpreters with packages
//! of their own.

use std::path::PathBuf;

use anyhow::Result;

use crate::{framed_python, node, python, workspace::in_path};

/// Something that tests find by a variable of their environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tool {
    /// Readers of Parquet, and what the traces are recomputed with.
    Python,
    /// A Python that keeps frame pointers.
    FramedPython,
    Spark,
    Sail,
    /// An object store.
    Store,
    /// Node, with what it drives a browser by.
    Node,
}

impl Tool {
    /// The variable that names it to a test.
    fn variable(self) -> &'static str {
        match self {
            Tool::Python => "FT_PYTHON",
            Tool::FramedPython => "FT_FRAMED_PYTHON",
            Tool::Spark => "FT_SPARK",
            Tool::Sail => "FT_SAIL",
            Tool::Store => "FT_MOTO",
            Tool::Node => "FT_NODE",
        }
    }

    /// What is downloaded, as a person is asked for it.
    pub(crate) fn what(self) -> &'static str {
        match self {
            Tool::Python => python::READERS.what,
            Tool::FramedPython => "a Python with frame pointers (Debian's unstable)",
            Tool::Spark => python::SPARK.what,
            Tool::Sail => python::SAIL.what,
            Tool::Store => python::STORE.what,
            Tool::Node => "what drives a browser (npm)",
        }
    }

    /// Whether it is there already.
    pub(crate) fn is_there(self) -> bool {
        match self {
            Tool::Python => python::READERS.is_there(),
            Tool::FramedPython => framed_python::program().exists(),
            Tool::Spark => python::SPARK.is_there(),
            Tool::Sail => python::SAIL.is_there(),
            Tool::Store => python::STORE.is_there(),
            Tool::Node => node::is_there(),
        }
    }

    /// Downloads it if it is missing; `None`, with a message, where it cannot be had.
    fn ensure(self) -> Result<Option<PathBuf>> {
        match self {
            Tool::Python => python::READERS.ensure(),
            Tool::FramedPython => Ok(framed_python::ensure()),
            // Without Java there is no use for it.
            Tool::Spark if !in_path("java") => Ok(None),
            Tool::Spark => python::SPARK.ensure(),
            Tool::Sail => python::SAIL.ensure(),
            Tool::Store => python::STORE.ensure(),
            Tool::Node => node::ensure(),
        }
    }
}

/// The variables of these tools. One that is missing is downloaded if it `may` be, and left out otherwise.
///
/// # Errors
///
/// When the workspace cannot be read.
pub(crate) fn ensure(tools: &[Tool], may: bool) -> Result<Vec<(&'static str, PathBuf)>> {
    let mut found = Vec::new();
    let once = tools.iter().enumerate().filter(|(at, tool)| !tools[..*at].contains(tool));
    for (_, tool) in once.filter(|(_, tool)| may || tool.is_there()) {
        found.extend(tool.ensure()?.map(|path| (tool.variable(), path)));
    }
    Ok(found)
}
