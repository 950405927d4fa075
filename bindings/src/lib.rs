//! Python bindings of glrgrid: conversion, buffer checks and GIL handling; no algorithm.

mod buffer;
mod compiled;
mod error;
mod inspect;
mod lint;
mod matcher;
mod schema;
mod vocab;

use cap::Cap;
use pyo3::prelude::*;
use std::alloc::System;

/// Counts what the native side allocates, for budgets and statistics of builds.
#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<vocab::Vocab>()?;
    module.add_class::<compiled::CompiledGrammar>()?;
    module.add_class::<compiled::CancelToken>()?;
    module.add_class::<matcher::Matcher>()?;
    module.add_class::<schema::SchemaGrammar>()?;
    module.add_function(wrap_pyfunction!(compiled::compile, module)?)?;
    module.add_function(wrap_pyfunction!(compiled::load, module)?)?;
    module.add_function(wrap_pyfunction!(schema::lower_schema, module)?)?;
    module.add_function(wrap_pyfunction!(lint::find_cuts, module)?)?;
    module.add_function(wrap_pyfunction!(lint::lint, module)?)?;
    module.add_function(wrap_pyfunction!(matcher::fill_bitmask_batch, module)?)?;
    module.add_function(wrap_pyfunction!(inspect::inspect, module)?)?;
    module.add_function(wrap_pyfunction!(inspect::dot, module)?)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
