//! A schema document: where its parts are, and what its references lead to.

use rustc_hash::FxHashMap;
use serde_json::Value;
use std::cell::OnceCell;

/// Since this draft, keywords beside a `$ref` count; before, it stands alone.
pub(super) const REFERENCES_HAVE_SIBLINGS: u8 = 19;

/// A parsed schema document.
pub(super) struct Document<'a> {
    pub(super) root: &'a Value,
    /// Two digits of the draft's year or number; `None` if the document does not say: then all keywords count.
    pub(super) draft: Option<u8>,
    /// Whether anything in it could be a name; if not, references are plain pointers.
    has_ids: bool,
    index: OnceCell<Index<'a>>,
}

/// What `$id` and `$anchor` give names to.
#[derive(Default)]
struct Index<'a> {
    /// Schema by URI, with the fragment if it is an anchor.
    named: FxHashMap<String, &'a Value>,
    /// Base URI and root of the resource around each schema that holds a reference.
    around: FxHashMap<usize, (String, &'a Value)>,
}

/// Identity of a part of the document.
pub(super) fn address(value: &Value) -> usize {
    std::ptr::from_ref(value) as usize
}

impl<'a> Document<'a> {
    pub(super) fn new(root: &'a Value, text: &str) -> Self {
        let has_ids = ["\"$id\"", "\"id\"", "\"$anchor\""].iter().any(|name| text.contains(name));
        Document { root, draft: draft(root), has_ids, index: OnceCell::new() }
    }

    /// JSON Pointer of the value, or the text, that lies at an address.
    pub(super) fn pointer(&self, part: usize) -> String {
        self.pointers(&[part]).remove(&part).unwrap_or_default()
    }

    /// JSON Pointers by address; searched for, because only errors and warnings need them.
    pub(super) fn pointers(&self, parts: &[usize]) -> FxHashMap<usize, String> {
        let mut found = FxHashMap::default();
        let mut stack: Vec<(&Value, String)> = vec![(self.root, String::new())];
        while let Some((value, pointer)) = stack.pop().filter(|_| found.len() < parts.len()) {
            let mut visit = |at: usize, pointer: &str| {
                if parts.contains(&at) {
                    found.insert(at, pointer.to_owned());
                }
            };
            visit(address(value), &pointer);
            match value {
                Value::String(text) => visit(text.as_ptr() as usize, &pointer),
                Value::Array(items) => {
                    stack.extend(items.iter().enumerate().rev().map(|(i, v)| (v, format!("{pointer}/{i}"))));
                }
                Value::Object(map) => {
                    for (key, value) in map.iter().rev() {
                        let pointer = format!("{pointer}/{}", escaped(key));
                        visit(key.as_ptr() as usize, &pointer);
                        stack.push((value, pointer));
                    }
                }
                _ => {}
            }
        }
        found
    }

    /// The schema that `reference`, found in `schema`, stands for; `None` if the document has no such part.
    pub(super) fn resolve(&self, schema: &'a Value, reference: &str) -> Option<&'a Value> {
        if let Some(fragment) = reference.strip_prefix('#').filter(|_| !self.has_ids) {
            return self.root.pointer(&decoded(fragment));
        }
        let index = self.index.get_or_init(|| Index::build(self.root, self.draft));
        let (base, resource) = index.around.get(&address(schema)).cloned().unwrap_or((String::new(), self.root));
        let uri = join(&base, reference);
        if let Some(&found) = index.named.get(&uri) {
            return Some(found);
        }
        let (uri, fragment) = uri.split_once('#').unwrap_or((&uri, ""));
        let resource = if uri == base { resource } else { *index.named.get(uri)? };
        let pointer = decoded(fragment);
        // Tools put ids on subschemas and still mean the document by "#/definitions/...".
        resource.pointer(&pointer).or_else(|| self.root.pointer(&pointer))
    }
}

fn draft(root: &Value) -> Option<u8> {
    let uri = root.get("$schema")?.as_str()?;
    [("draft-04", 4), ("draft-06", 6), ("draft-07", 7), ("2019-09", 19), ("2020-12", 20)]
        .iter()
        .find(|(name, _)| uri.contains(name))
        .map(|&(_, draft)| draft)
}

impl<'a> Index<'a> {
    fn build(root: &'a Value, draft: Option<u8>) -> Self {
        let alone = draft.is_some_and(|draft| draft < REFERENCES_HAVE_SIBLINGS);
        let mut index = Index::default();
        index.named.insert(String::new(), root);
        let mut stack: Vec<(&'a Value, String, &'a Value)> = vec![(root, String::new(), root)];
        while let Some((value, mut base, mut resource)) = stack.pop() {
            let Value::Object(map) = value else {
                if let Value::Array(items) = value {
                    stack.extend(items.iter().map(|v| (v, base.clone(), resource)));
                }
                continue;
            };
            let name = |key: &str| map.get(key).and_then(Value::as_str);
            let id = name("$id").or_else(|| name("id"));
            if let Some(id) = id.filter(|_| !alone || name("$ref").is_none()) {
                let uri = join(&base, id);
                match uri.split_once('#') {
                    Some((_, fragment)) if !fragment.is_empty() => {
                        index.named.entry(uri).or_insert(value);
                    }
                    _ => {
                        base = uri.trim_end_matches('#').to_owned();
                        resource = value;
                        index.named.entry(base.clone()).or_insert(value);
                    }
                }
            }
            if let Some(anchor) = name("$anchor") {
                index.named.entry(format!("{base}#{anchor}")).or_insert(value);
            }
            if name("$ref").is_some() {
                index.around.insert(address(value), (base.clone(), resource));
            }
            stack.extend(map.values().map(|v| (v, base.clone(), resource)));
        }
        index
    }
}

/// Resolve a URI reference against a base, as far as schemas need it: no dot segments.
fn join(base: &str, reference: &str) -> String {
    let base = base.split('#').next().unwrap_or_default();
    let scheme = reference.find(':').filter(|&i| !reference[..i].contains(['/', '#', '?']));
    if scheme.is_some() {
        return reference.to_owned();
    }
    if reference.is_empty() || reference.starts_with('#') {
        return format!("{base}{}", if reference == "#" { "" } else { reference });
    }
    let authority = base.find("://").map_or(0, |i| base[i + 3..].find('/').map_or(base.len(), |j| i + 3 + j));
    if reference.starts_with('/') {
        return format!("{}{reference}", &base[..authority]);
    }
    let folder = base[authority..].rfind('/').map_or(authority, |i| authority + i + 1);
    format!("{}{reference}", &base[..folder])
}

/// Undo percent encoding.
fn decoded(fragment: &str) -> String {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = tail.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A key as one token of a JSON Pointer.
pub(super) fn escaped(token: &str) -> String {
    token.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn references_are_resolved_against_their_base() {
        let cases = [
            ("", "#/a", "#/a"),
            ("http://x.org/a/b.json", "c.json", "http://x.org/a/c.json"),
            ("http://x.org/a/b.json", "/c.json#d", "http://x.org/c.json#d"),
            ("http://x.org/a/b.json", "#d", "http://x.org/a/b.json#d"),
            ("http://x.org/a/b.json", "#", "http://x.org/a/b.json"),
            ("http://x.org/a", "urn:y", "urn:y"),
        ];
        for (base, reference, expected) in cases {
            assert_eq!(join(base, reference), expected, "{base} {reference}");
        }
    }

    #[test]
    fn references_find_pointers_ids_and_anchors() {
        let root = json!({
            "$id": "http://x.org/root.json",
            "$ref": "",
            "$defs": {"a/b": 1, "c%": 2, "d": {"$id": "d.json", "$anchor": "e", "x": 3}, "f": {"id": "#g"}},
        });
        let text = root.to_string();
        let document = Document::new(&root, &text);
        for (reference, pointer) in [
            ("#", ""),
            ("#/$defs/a~1b", "/$defs/a~1b"),
            ("#/%24defs/c%25", "/$defs/c%"),
            ("d.json", "/$defs/d"),
            ("http://x.org/d.json#/x", "/$defs/d/x"),
            ("d.json#e", "/$defs/d"),
            ("#g", "/$defs/f"),
        ] {
            let found = document.resolve(&root, reference).map(|part| document.pointer(address(part)));
            assert_eq!(found.as_deref(), Some(pointer), "{reference}");
        }
        assert_eq!(document.resolve(&root, "#/$defs/none"), None);
        assert_eq!(document.resolve(&root, "http://y.org"), None);
    }
}
