//! `_native.Matcher` and `fill_bitmask_batch`.

use crate::buffer::{row, with_row, with_rows};
use crate::compiled::CompiledGrammar;
use crate::error::{self, Int, guard};
use dwa_runtime::{Explanation, MatcherError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes};
use std::sync::{Mutex, MutexGuard, TryLockError};

/// Bytes of the output's end that `repr` shows.
const SHOWN_BYTES: usize = 32;

/// One output being decoded.
///
/// Every method either does what it says or raises and leaves the matcher as it was. A matcher serves one call at a
/// time; a second one, from another thread, raises StateError. Any number of matchers may share a compiled grammar.
#[pyclass(frozen, module = "glrgrid._native")]
pub struct Matcher {
    inner: Mutex<dwa_runtime::Matcher>,
}

impl Matcher {
    /// The matcher, if nobody else is using it.
    fn lock(&self) -> PyResult<MutexGuard<'_, dwa_runtime::Matcher>> {
        match self.inner.try_lock() {
            Ok(guard) => Ok(guard),
            // A panic leaves a matcher as it was: its methods change it last.
            Err(TryLockError::Poisoned(guard)) => Ok(guard.into_inner()),
            Err(TryLockError::WouldBlock) => Err(error::state(
                "the matcher is in use by another call; give each thread its own (see Matcher.fork)".into(),
            )),
        }
    }
}

impl From<dwa_runtime::Matcher> for Matcher {
    fn from(inner: dwa_runtime::Matcher) -> Self {
        Matcher { inner: Mutex::new(inner) }
    }
}

fn id(token_id: i64, matcher: &dwa_runtime::Matcher) -> PyResult<u32> {
    let max = matcher.compiled().vocab().size() - 1;
    let id = u32::try_from(token_id).ok().filter(|&id| id as usize <= max);
    id.ok_or_else(|| error::matcher(MatcherError::TokenRange { id: token_id, max }))
}

fn integers(items: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    items.try_iter()?.map(|item| Ok(item?.extract::<Int>()?.0)).collect()
}

/// A `glrgrid.explain.Explanation`.
fn explanation<'py>(py: Python<'py>, e: Explanation) -> PyResult<Bound<'py, PyAny>> {
    let kind = py.import("glrgrid.explain")?.getattr("Explanation")?;
    kind.call1((e.allowed, e.reason, e.at_byte, e.expected, e.found))
}

#[pymethods]
impl Matcher {
    #[new]
    fn new(compiled: &CompiledGrammar) -> Self {
        dwa_runtime::Matcher::new(compiled.inner.clone()).into()
    }

    /// Write the tokens allowed next into row ``index`` of ``bitmask``.
    ///
    /// Parameters
    /// ----------
    /// bitmask : int32 array or CPU tensor of shape (batch, ceil(size / 32)), or (ceil(size / 32),)
    ///     C-contiguous and writable. Bit ``t % 32`` of word ``t // 32`` is token id ``t``; the whole row is written.
    ///     End ids are set if and only if the output so far is complete.
    /// index : int
    ///     Row.
    ///
    /// Raises
    /// ------
    /// StateError
    ///     For another dtype, shape or layout, a row out of range, or after an end token; the bitmask is untouched.
    /// DeadEnd
    ///     If no token is allowed and the output is not complete.
    #[pyo3(signature = (bitmask, index=Int(0)), text_signature = "($self, bitmask, index=0)")]
    fn fill_next_token_bitmask(&self, bitmask: &Bound<'_, PyAny>, index: Int) -> PyResult<()> {
        guard(|| {
            let matcher = self.lock()?;
            let words = matcher.compiled().meta().vocab_words as usize;
            with_row(bitmask, index.0, words, |row| matcher.fill_bitmask(row).map_err(error::matcher))
        })
    }

    /// Take a token. False, with nothing changed, if the mask does not allow it.
    ///
    /// Raises
    /// ------
    /// StateError
    ///     If the id is out of range or an end token was accepted before.
    fn accept_token(&self, token_id: Int) -> PyResult<bool> {
        guard(|| {
            let mut matcher = self.lock()?;
            let id = id(token_id.0, &matcher)?;
            matcher.accept_token(id).map_err(error::matcher)
        })
    }

    /// Take bytes up to the first that no continuation allows; return how many were taken.
    ///
    /// Taking any counts as one step for :meth:`rollback`.
    ///
    /// Raises
    /// ------
    /// StateError
    ///     If an end token was accepted before.
    fn accept_bytes(&self, data: &[u8]) -> PyResult<usize> {
        guard(|| self.lock()?.accept_bytes(data).map_err(error::matcher))
    }

    /// How many of ``ids`` could be accepted one after the other; the state does not change.
    ///
    /// End tokens count like others; nothing is acceptable after one, so the result is 0 if one was accepted before.
    ///
    /// Raises
    /// ------
    /// StateError
    ///     If any of the ids is out of range, wherever it stands.
    fn validate_tokens(&self, ids: &Bound<'_, PyAny>) -> PyResult<usize> {
        guard(|| {
            let ids = integers(ids)?;
            let matcher = self.lock()?;
            let ids = ids.into_iter().map(|token| id(token, &matcher)).collect::<PyResult<Vec<u32>>>()?;
            matcher.validate_tokens(&ids).map_err(error::matcher)
        })
    }

    /// Undo the last ``n`` steps, accepted end tokens included.
    ///
    /// Raises
    /// ------
    /// StateError
    ///     If fewer steps were taken.
    #[pyo3(signature = (n=Int(1)), text_signature = "($self, n=1)")]
    fn rollback(&self, n: Int) -> PyResult<()> {
        guard(|| {
            let n = usize::try_from(n.0)
                .map_err(|_| error::state(format!("cannot roll back {} steps: give 0 or more", n.0)))?;
            self.lock()?.rollback(n).map_err(error::matcher)
        })
    }

    /// An independent matcher in the same state, with the same history.
    fn fork(&self) -> PyResult<Self> {
        guard(|| Ok(self.lock()?.clone().into()))
    }

    /// Back to the empty output.
    fn reset(&self) -> PyResult<()> {
        guard(|| {
            self.lock()?.reset();
            Ok(())
        })
    }

    /// Whether the output so far is a sentence, so that an end token is allowed.
    fn is_accepting(&self) -> PyResult<bool> {
        guard(|| Ok(self.lock()?.is_accepting()))
    }

    /// Whether an end token was accepted.
    fn is_terminated(&self) -> PyResult<bool> {
        Ok(self.lock()?.is_terminated())
    }

    /// The text that must come next: bytes as long as exactly one can follow and the output is not complete.
    ///
    /// At most 4,096 bytes; empty after an end token.
    fn forced_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        guard(|| Ok(PyBytes::new(py, &self.lock()?.forced_bytes())))
    }

    /// The tokens that must come next, if it is certain how the tokenizer would write them; never end ids.
    ///
    /// Parameters
    /// ----------
    /// encode : tokenizers.Tokenizer, transformers tokenizer or callable from str to token ids, optional
    ///     The tokenizer of the vocabulary. Without it, the tokens are those of positions at which the mask allows a
    ///     single id, of which there are few: nearly every text can be spelt in several ways.
    ///
    /// Returns
    /// -------
    /// list of int
    ///     Acceptable one after the other. They are what ``encode`` gives, after the output so far, for every text
    ///     that the language allows from here, provided that the output itself is what it gives. Empty where any
    ///     choice is left.
    ///
    /// Notes
    /// -----
    /// The forced text w (:meth:`forced_bytes`) is encoded behind the end of the output. Its last tokens might be
    /// others if more text followed: a token of the longer text may lie across the end of w. The mask knows where
    /// such tokens can start. Byte pair encoding is closed under prefixes, so before such a token, the longer text is
    /// encoded as w cut off there is. What all these encodings, and those of w with one character of each kind that
    /// may follow it (which decide how text is split into words first), have in common is certain.
    ///
    /// That argument holds for byte pair encoding behind a splitter that looks at most one character ahead. Ids that
    /// do not spell the text (a tokenizer that normalises, or another vocabulary's) are never returned.
    ///
    /// Raises
    /// ------
    /// StateError
    ///     If ``encode`` cannot encode, or gives ids that are out of range.
    #[pyo3(signature = (encode=None))]
    fn forced_tokens(&self, py: Python<'_>, encode: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<u32>> {
        guard(|| {
            let Some(encode) = encode else { return Ok(self.lock()?.forced_tokens()) };
            let encoder = py.import("glrgrid.forced")?.getattr("encoder")?.call1((encode,))?;
            let matcher = self.lock()?;
            matcher.forced_tokens_by(&mut |text| {
                let encoded = encoder.call1((PyBytes::new(py, text),))?;
                if encoded.is_none() {
                    return Ok(None);
                }
                let ids = integers(&encoded)?.into_iter().map(|token| id(token, &matcher));
                ids.collect::<PyResult<Vec<u32>>>().map(Some)
            })
        })
    }

    /// Names of the terminals that may come next, or that the pending lexeme can still become.
    ///
    /// In the order of the grammar; then "end of input" if the output is complete, and "ignored text" where that may
    /// come. Empty after an end token.
    fn expected_terminals(&self) -> PyResult<Vec<String>> {
        guard(|| Ok(self.lock()?.expected_terminals()))
    }

    /// Why a token is, or is not, allowed next. For people: reads the whole output again.
    ///
    /// Raises
    /// ------
    /// StateError
    ///     If the id is out of range or an end token was accepted before.
    fn explain<'py>(&self, py: Python<'py>, token_id: Int) -> PyResult<Bound<'py, PyAny>> {
        guard(|| {
            let explained = {
                let matcher = self.lock()?;
                matcher.explain(id(token_id.0, &matcher)?).map_err(error::matcher)?
            };
            explanation(py, explained)
        })
    }

    /// As :meth:`explain`, of text.
    fn explain_bytes<'py>(&self, py: Python<'py>, data: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        guard(|| {
            let explained = self.lock()?.explain_bytes(data).map_err(error::matcher)?;
            explanation(py, explained)
        })
    }

    /// The next mask as a bool array of shape (size,), for people; raises as ``fill_next_token_bitmask``.
    fn mask<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        guard(|| {
            let bools: Vec<u8> = {
                let matcher = self.lock()?;
                let compiled = matcher.compiled();
                let mut row = vec![0u32; compiled.meta().vocab_words as usize];
                matcher.fill_bitmask(&mut row).map_err(error::matcher)?;
                (0..compiled.vocab().size()).map(|id| (row[id / 32] >> (id % 32) & 1) as u8).collect()
            };
            py.import("numpy")?.call_method1("frombuffer", (PyByteArray::new(py, &bools), "?"))
        })
    }

    /// Steps that can be rolled back.
    #[getter]
    fn steps(&self) -> PyResult<usize> {
        Ok(self.lock()?.steps())
    }

    /// Live branches, and stack tops in all of them: more than (1, 1) where the text so far is ambiguous.
    #[getter]
    fn branch_counts(&self) -> PyResult<(usize, usize)> {
        Ok(self.lock()?.branch_counts())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        guard(|| {
            let Ok(matcher) = self.lock() else { return Ok("Matcher(in use)".into()) };
            let text = matcher.text();
            let from = text.len().saturating_sub(SHOWN_BYTES);
            let shown = PyBytes::new(py, &text[from..]).repr()?;
            let more = if from > 0 { format!("{from} bytes and ") } else { String::new() };
            let state = match (matcher.is_terminated(), matcher.is_accepting()) {
                (true, _) => "terminated",
                (false, true) => "complete",
                (false, false) => "incomplete",
            };
            Ok(format!("<Matcher after {} steps, {more}{shown}: {state}>", matcher.steps()))
        })
    }
}

/// Fill the rows of many matchers, on several threads and without the GIL.
///
/// As ``fill_next_token_bitmask`` for each matcher. Small batches are filled by the calling thread.
///
/// Parameters
/// ----------
/// matchers : iterable of Matcher
///     All different, of any grammars compiled for vocabularies of one size. None may be used meanwhile.
/// bitmask : int32 array or CPU tensor of shape (batch, ceil(size / 32))
///     C-contiguous and writable. Other threads must leave these rows alone meanwhile.
/// rows : iterable of int, optional
///     Row of each matcher, all different; other rows are left as they are. Default: the matchers' positions.
///
/// Raises
/// ------
/// StateError
///     For bitmasks, rows or matchers that do not fit, a matcher that is given twice, in use, or that accepted an end
///     token. Nothing was written.
/// DeadEnd
///     If no token is allowed for some matcher and its output is not complete; the first is named. All other rows are
///     filled, its own is zero.
#[pyfunction]
#[pyo3(signature = (matchers, bitmask, rows=None))]
pub fn fill_bitmask_batch(
    py: Python<'_>,
    matchers: &Bound<'_, PyAny>,
    bitmask: &Bound<'_, PyAny>,
    rows: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    guard(|| {
        let matchers = matchers.try_iter()?.map(|m| Ok(m?.cast_into::<Matcher>()?)).collect::<PyResult<Vec<_>>>()?;
        let rows = match rows {
            Some(rows) => integers(rows)?,
            None => (0..matchers.len() as i64).collect(),
        };
        if rows.len() != matchers.len() {
            let (m, r) = (matchers.len(), rows.len());
            return Err(error::state(format!("{m} matchers and {r} rows; give one row for each matcher")));
        }
        let locked = lock_all(&matchers)?;
        let Some(first) = locked.first() else { return Ok(()) };
        let words = first.compiled().meta().vocab_words as usize;
        with_rows(bitmask, words, |bitmask| {
            let mut free: Vec<Option<&mut [u32]>> = bitmask.chunks_exact_mut(words).map(Some).collect();
            let mut jobs = Vec::with_capacity(locked.len());
            for (matcher, &index) in locked.iter().zip(&rows) {
                let place = row(index, free.len())?;
                let Some(row) = free[place].take() else {
                    return Err(error::state(format!("row {index} is given twice; give each matcher its own row")));
                };
                jobs.push((&**matcher, row));
            }
            py.detach(|| dwa_runtime::fill_bitmasks(&mut jobs)).map_err(|(i, e)| error::matcher_at(i, &e))
        })
    })
}

fn lock_all<'a>(matchers: &'a [Bound<'_, Matcher>]) -> PyResult<Vec<MutexGuard<'a, dwa_runtime::Matcher>>> {
    let at = |i: usize| {
        let first = matchers.iter().position(|m| m.is(&matchers[i])).unwrap_or(i);
        if first == i { "is in use by another call".to_string() } else { format!("is matchers[{first}] again") }
    };
    let lock = |(i, m): (usize, &'a Bound<'_, Matcher>)| {
        let locked = m.get().lock();
        locked.map_err(|_| error::state(format!("matchers[{i}] {}; give each row a matcher of its own", at(i))))
    };
    matchers.iter().enumerate().map(lock).collect()
}
