//! The module tree of each crate, as its sources declare it: which files belong to it, and
//! which modules import each other in a circle.
//!
//! Reads `mod` and `use` declarations as text. A name that a module re-exports counts as an
//! import from where it is defined, so a `mod.rs` that only opens its folder ties nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::manifest::repository;

/// A module by its path from the crate's root, such as `["console", "log"]`.
type Name = Vec<String>;

/// One source file of a crate.
#[derive(Default, Clone)]
struct Module {
    file: PathBuf,
    children: BTreeSet<String>,
    /// What its own code imports: paths as written, split at `::`.
    imports: Vec<Name>,
    /// Names that it passes on: the name, and the path behind it.
    exports: BTreeMap<String, Name>,
}

/// All modules of one crate.
struct Tree(BTreeMap<Name, Module>);

impl Tree {
    fn of(root: &Path) -> Self {
        let mut tree = Self(BTreeMap::new());
        let folder = root.parent().unwrap().to_owned();
        tree.add(Vec::new(), root.to_owned(), &folder);
        tree
    }

    /// Adds a file and all that it declares; `folder` holds the files of its child modules.
    fn add(&mut self, name: Name, file: PathBuf, folder: &Path) {
        let text = fs::read_to_string(repository().join(&file))
            .unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let mut module = Module { file: file.clone(), ..Module::default() };
        let mut path = None;
        for line in text.lines() {
            let line = line.trim();
            if let Some(rest) = line.strip_prefix("#[path = \"") {
                path = rest.strip_suffix("\"]").map(str::to_owned);
            } else if let Some(child) = declared(line) {
                module.children.insert(child.to_owned());
                let beside = file.parent().unwrap();
                let (file, below) = match path.take() {
                    Some(path) => (beside.join(path), folder.join(child)),
                    None => located(folder, child),
                };
                let name = name.iter().cloned().chain([child.to_owned()]).collect();
                self.add(name, file, &below);
            }
        }
        for (is_public, leaf) in uses(without_inner_tests(&text)) {
            match is_public {
                true => drop(module.exports.insert(leaf.last().unwrap().clone(), leaf)),
                false => module.imports.push(leaf),
            }
        }
        self.0.insert(name, module);
    }

    /// Finds the module that a path of one module leads to, if it is of this crate.
    fn target(&self, from: &Name, path: &[String], depth: usize) -> Option<Name> {
        let mut at = match path.first()?.as_str() {
            "crate" => Vec::new(),
            "super" => from[..from.len().checked_sub(1)?].to_vec(),
            "self" => from.clone(),
            child if self.0[from].children.contains(child) => {
                from.iter().cloned().chain([child.to_owned()]).collect()
            }
            _ => return None,
        };
        for (index, part) in path.iter().enumerate().skip(1) {
            let module = self.0.get(&at)?;
            if part == "super" {
                at.pop()?;
            } else if module.children.contains(part) {
                at.push(part.clone());
            } else if let Some(behind) = module.exports.get(part).filter(|_| depth < 8) {
                let rest = behind.iter().chain(&path[index + 1..]).cloned().collect::<Vec<_>>();
                return self.target(&at, &rest, depth + 1).or(Some(at));
            } else {
                break;
            }
        }
        Some(at)
    }

    /// Returns which modules each module imports.
    fn edges(&self) -> BTreeMap<&Name, BTreeSet<Name>> {
        let of = |(name, module): (&_, &Module)| {
            let targets = module.imports.iter().filter_map(|path| self.target(name, path, 0));
            targets.filter(|target| target != name).collect()
        };
        self.0.iter().map(|(name, module)| (name, of((name, module)))).collect()
    }

    /// Returns the files of modules that can be reached from themselves.
    fn files_in_circles(&self) -> BTreeSet<&Path> {
        let edges = self.edges();
        let mut found = BTreeSet::new();
        for (name, targets) in &edges {
            let (mut seen, mut open) = (BTreeSet::new(), targets.iter().collect::<Vec<_>>());
            while let Some(next) = open.pop() {
                if seen.insert(next) {
                    open.extend(edges.get(next).into_iter().flatten());
                }
            }
            if seen.contains(name) {
                found.insert(self.0[*name].file.as_path());
            }
        }
        found
    }
}

/// Returns the name in `mod name;`, however visible.
fn declared(line: &str) -> Option<&str> {
    let name = line.strip_suffix(';')?.split("mod ").collect::<Vec<_>>();
    let [before, name] = name[..] else { return None };
    let is_name = name.chars().all(|c| c.is_alphanumeric() || c == '_');
    (is_name && (before.is_empty() || before.starts_with("pub"))).then_some(name)
}

/// Returns the file of a module in a folder, and the folder of its children.
fn located(folder: &Path, child: &str) -> (PathBuf, PathBuf) {
    let below = folder.join(child);
    let inside = below.join("mod.rs");
    match repository().join(&inside).exists() {
        true => (inside, below),
        false => (folder.join(format!("{child}.rs")), below),
    }
}

/// Cuts off the tests at the end of a file: they may import what they test.
fn without_inner_tests(text: &str) -> &str {
    text.find("#[cfg(test)]\nmod tests {").map_or(text, |at| &text[..at])
}

/// Lists the leaves of all `use` declarations, and whether each is passed on to others.
fn uses(text: &str) -> Vec<(bool, Name)> {
    let mut leaves = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("use ") {
        let line_start = rest[..at].rfind('\n').map_or(0, |at| at + 1);
        let before = rest[line_start..at].trim();
        let (head, tail) = rest[at + 4..].split_once(';').unwrap_or((&rest[at + 4..], ""));
        if before.is_empty() || before.starts_with("pub") {
            let mut found = Vec::new();
            spread(&head.split_whitespace().collect::<Vec<_>>().join(" "), &[], &mut found);
            leaves.extend(found.into_iter().map(|leaf| (before.starts_with("pub"), leaf)));
            rest = tail;
        } else {
            rest = &rest[at + 4..];
        }
    }
    leaves
}

/// Spreads `a::{b, c::d}` into its leaves.
fn spread(text: &str, before: &[String], leaves: &mut Vec<Name>) {
    let text = text.trim();
    let Some(brace) = text.find('{') else {
        let path = text.split(" as ").next().unwrap().split("::");
        let path = path.filter(|part| !part.is_empty() && *part != "*").map(str::to_owned);
        let leaf: Name = before.iter().cloned().chain(path).collect();
        // `self` at the end of a list names what stands before the list.
        let ends_in_self = leaf.len() > 1 && leaf.last().is_some_and(|part| part == "self");
        leaves.push(if ends_in_self { leaf[..leaf.len() - 1].to_vec() } else { leaf });
        return;
    };
    let head = text[..brace].split("::").filter(|part| !part.is_empty()).map(str::to_owned);
    let head: Name = before.iter().cloned().chain(head).collect();
    let inner = text[brace + 1..].trim_end().strip_suffix('}').unwrap_or(&text[brace + 1..]);
    let (mut depth, mut start) = (0, 0);
    for (at, c) in inner.char_indices().chain([(inner.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if !inner[start..at].trim().is_empty() {
                    spread(&inner[start..at], &head, leaves);
                }
                start = at + 1;
            }
            _ => {}
        }
    }
}

/// Finds the root file of every crate.
fn roots() -> Vec<PathBuf> {
    let mut roots = vec!["controller/jig/main.rs".into(), "tests/it/main.rs".into()];
    for entry in fs::read_dir(repository().join("controller")).unwrap() {
        let folder = Path::new("controller").join(entry.unwrap().file_name()).join("src");
        let of_crate = ["lib.rs", "main.rs"].map(|name| folder.join(name));
        roots.extend(of_crate.into_iter().filter(|root| repository().join(root).exists()));
    }
    roots
}

/// Lists the sources below a folder.
fn sources(folder: &Path, found: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(repository().join(folder)).unwrap() {
        let path = folder.join(entry.unwrap().file_name());
        if repository().join(&path).is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.insert(path);
        }
    }
}

#[test]
fn each_source_file_is_part_of_a_module_tree() {
    let trees: Vec<Tree> = roots().iter().map(|root| Tree::of(root)).collect();
    let compiled: BTreeSet<&PathBuf> =
        trees.iter().flat_map(|tree| tree.0.values().map(|module| &module.file)).collect();
    let mut all = BTreeSet::new();
    for root in roots() {
        sources(root.parent().unwrap(), &mut all);
    }
    let build_script = |path: &&PathBuf| path.ends_with("build.rs");
    let orphans: Vec<_> =
        all.iter().filter(|path| !compiled.contains(path) && !build_script(path)).collect();
    assert!(orphans.is_empty(), "no `mod` line names these files: {orphans:?}");
    assert!(compiled.len() > 300, "only {} files were found", compiled.len());
}

#[test]
fn modules_do_not_import_each_other_in_circles() {
    let mut wrong = Vec::new();
    for root in roots() {
        let tree = Tree::of(&root);
        wrong.extend(tree.files_in_circles().iter().map(|file| file.display().to_string()));
    }
    assert!(wrong.is_empty(), "files that import each other in circles:\n{}", wrong.join("\n"));
}

#[test]
fn a_circle_is_found_and_a_folder_that_only_opens_is_none() {
    let module = |text: &str| {
        let mut module = Module::default();
        for (is_public, leaf) in uses(text) {
            match is_public {
                true => drop(module.exports.insert(leaf.last().unwrap().clone(), leaf)),
                false => module.imports.push(leaf),
            }
        }
        module
    };
    let opener = Module {
        children: ["a", "b"].map(str::to_owned).into(),
        file: "mod.rs".into(),
        ..module("pub use a::A;\npub(crate) use self::b::{B, c};")
    };
    let with = |a: &str, b: &str| {
        let a = Module { file: "a.rs".into(), ..module(a) };
        let b = Module { file: "b.rs".into(), ..module(b) };
        Tree([(vec![], opener.clone()), (vec!["a".into()], a), (vec!["b".into()], b)].into())
    };
    let none: [&Path; 0] = [];
    assert!(with("use super::B;", "use std::fs;").files_in_circles().into_iter().eq(none));
    let circle = with("use super::{B, b::{self, c}};", "use crate::A as Other;");
    assert!(circle.files_in_circles().into_iter().eq(["a.rs", "b.rs"].map(Path::new)));
}
