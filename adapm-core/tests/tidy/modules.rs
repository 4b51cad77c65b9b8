//! The modules of a crate, the names that each takes from others, and the resulting circles.
//!
//! A file depends on another if its code, tests excluded, names an item that the other defines; a
//! re-export (`pub use`) is no dependency. Not seen: methods, and names made by macros.

use std::collections::{BTreeMap, BTreeSet};

use crate::scan::{self, Token};
use crate::tree::File;

/// The modules of one crate that have a file of their own.
pub(crate) struct Modules {
    modules: Vec<Module>,
}

struct Module {
    file: String,
    /// The path of the module in the tree: empty for the root.
    place: Vec<String>,
    children: BTreeMap<String, usize>,
    items: BTreeSet<String>,
    uses: Vec<Use>,
    /// Paths in the code, each from its first name on.
    paths: Vec<Vec<String>>,
}

/// One name that a `use` imports into a module.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Use {
    path: Vec<String>,
    /// The name in the module; `*` for all names.
    name: String,
    is_handed_on: bool,
}

/// An item of the crate: the module that defines it, and its name there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Item {
    pub(crate) file: String,
    pub(crate) name: String,
}

/// The target of a path.
enum Target {
    Module(usize),
    Item(usize, String),
}

impl Modules {
    /// Finds the modules of the sources below `folder`, which ends in a slash.
    pub(crate) fn of(files: &[File], folder: &str) -> Self {
        let sources = files.iter().filter(|file| file.is_rust() && !file.is_test());
        let mut modules: Vec<Module> = sources
            .filter_map(|file| Some(Module::of(file, file.path.strip_prefix(folder)?)))
            .filter(|module| module.place.first().is_none_or(|first| first != "bin"))
            .collect();
        modules.sort_by(|one, other| one.file.cmp(&other.file));
        let places: BTreeMap<Vec<String>, usize> =
            modules.iter().enumerate().map(|(at, module)| (module.place.clone(), at)).collect();
        for (place, at) in &places {
            if let Some((name, parent)) = place.split_last()
                && let Some(parent) = places.get(parent)
            {
                modules[*parent].children.insert(name.clone(), *at);
            }
        }
        Self { modules }
    }

    /// Returns the item that `path` means in `file`, if the crate defines it.
    pub(crate) fn item(&self, file: &str, path: &[String]) -> Option<Item> {
        let from = self.modules.iter().position(|module| module.file == file)?;
        match self.resolve(from, path, RESOLVE_DEPTH)? {
            Target::Item(at, name) => Some(Item { file: self.modules[at].file.clone(), name }),
            Target::Module(_) => None,
        }
    }

    /// Returns files that depend on each other in circles, each circle in the order of the paths,
    /// with the names that close it.
    pub(crate) fn circles(&self) -> Vec<Vec<String>> {
        let edges: Vec<BTreeSet<usize>> =
            (0..self.modules.len()).map(|at| self.dependencies(at)).collect();
        let reached: Vec<BTreeSet<usize>> = (0..edges.len()).map(|at| reach(&edges, at)).collect();
        let mut circles = BTreeSet::new();
        for at in 0..edges.len() {
            let circle: Vec<String> = (0..edges.len())
                .filter(|other| reached[at].contains(other) && reached[*other].contains(&at))
                .map(|other| self.modules[other].file.clone())
                .collect();
            if circle.len() > 1 {
                circles.insert(circle);
            }
        }
        circles.into_iter().collect()
    }

    /// Describes the names by which the files of `circle` depend on each other.
    pub(crate) fn reasons(&self, circle: &[String]) -> Vec<String> {
        let mut reasons = BTreeSet::new();
        for (at, module) in
            self.modules.iter().enumerate().filter(|(_, module)| circle.contains(&module.file))
        {
            for (other, name) in self.named(at) {
                let target = &self.modules[other].file;
                if circle.contains(target) {
                    reasons.insert(format!("{} names `{name}` of {target}", module.file));
                }
            }
        }
        reasons.into_iter().collect()
    }

    fn dependencies(&self, at: usize) -> BTreeSet<usize> {
        self.named(at).into_iter().map(|(other, _)| other).collect()
    }

    /// Returns the names of other modules that the module uses.
    fn named(&self, at: usize) -> Vec<(usize, String)> {
        let module = &self.modules[at];
        let own = module.uses.iter().filter(|one| !one.is_handed_on);
        let (all, single): (Vec<&Use>, Vec<&Use>) = own.partition(|one| one.name == "*");
        let mut found: Vec<(usize, String)> = all
            .into_iter()
            .filter_map(|one| match self.resolve(at, &one.path, RESOLVE_DEPTH)? {
                Target::Module(other) => Some((other, String::from("*"))),
                Target::Item(other, name) => Some((other, name)),
            })
            .collect();
        let paths = single.into_iter().map(|one| &one.path).chain(&module.paths);
        found.extend(paths.filter_map(|path| match self.resolve(at, path, RESOLVE_DEPTH)? {
            Target::Item(other, name) => Some((other, name)),
            Target::Module(_) => None,
        }));
        found.retain(|(other, _)| *other != at);
        found
    }

    fn resolve(&self, from: usize, path: &[String], depth: usize) -> Option<Target> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => self.walk(self.root()?, rest, depth),
            "self" => self.walk(from, rest, depth),
            "super" => {
                let place = &self.modules[from].place;
                let (_, parent) = place.split_last()?;
                let parent = self.modules.iter().position(|module| module.place == parent)?;
                match rest.first().map(String::as_str) {
                    Some("super") => self.resolve(parent, rest, depth),
                    _ => self.walk(parent, rest, depth),
                }
            }
            _ => self.walk(from, path, depth),
        }
    }

    fn walk(&self, at: usize, path: &[String], depth: usize) -> Option<Target> {
        let Some((first, rest)) = path.split_first() else { return Some(Target::Module(at)) };
        let depth = depth.checked_sub(1)?;
        let module = &self.modules[at];
        if module.items.contains(first) {
            return Some(Target::Item(at, first.clone()));
        }
        if let Some(child) = module.children.get(first) {
            return self.walk(*child, rest, depth);
        }
        for one in module.uses.iter().filter(|one| one.name == *first) {
            // A name imported under itself does not tell its origin.
            if one.path.as_slice() != [first.clone()] {
                let whole: Vec<String> = one.path.iter().chain(rest).cloned().collect();
                return self.resolve(at, &whole, depth);
            }
        }
        module.uses.iter().filter(|one| one.name == "*").find_map(|one| {
            match self.resolve(at, &one.path, depth)? {
                Target::Module(other) if other != at => self.walk(other, path, depth),
                _ => None,
            }
        })
    }

    fn root(&self) -> Option<usize> {
        self.modules.iter().position(|module| module.place.is_empty())
    }
}

impl Module {
    fn of(file: &File, inner: &str) -> Self {
        let mut place: Vec<String> =
            inner.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
        if place.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
            place.pop();
        }
        let code = scan::blank(&file.text);
        let tokens = scan::without_tests(&scan::tokens(&code));
        let (mut items, mut uses, mut paths) = (BTreeSet::new(), Vec::new(), Vec::new());
        let (mut at, mut depth) = (0, 0_usize);
        while at < tokens.len() {
            let text = tokens[at].text;
            match text {
                "{" => depth += 1,
                "}" => depth = depth.saturating_sub(1),
                _ => {}
            }
            // Not the captures of a type: `impl Sized + use<>`.
            if text == "use" && tokens.get(at + 1).is_some_and(|next| next.text != "<") {
                let is_handed_on = at > 0 && matches!(tokens[at - 1].text, "pub" | ")");
                let mut branch =
                    Branch { tokens: &tokens, at: at + 1, is_handed_on, uses: &mut uses };
                branch.read(&[]);
                at = branch.at;
                continue;
            }
            if depth == 0
                && DEFINES.contains(&text)
                && let Some(name) = tokens.get(at + 1)
            {
                items.insert(name.text.to_owned());
            }
            if text == "macro_rules"
                && let Some(name) = tokens.get(at + 2)
            {
                items.insert(name.text.to_owned());
            }
            let path = path_at(&tokens, at);
            at += path.len().max(1) * 3 - 2;
            if path.len() > 1 {
                paths.push(path);
            }
        }
        let children = BTreeMap::new();
        Self { file: file.path.clone(), place, children, items, uses, paths }
    }
}

/// A `use` that is being read.
struct Branch<'a> {
    tokens: &'a [Token<'a>],
    at: usize,
    is_handed_on: bool,
    uses: &'a mut Vec<Use>,
}

impl Branch<'_> {
    /// Reads one tree of names after `before`, up to the next comma, brace or semicolon.
    fn read(&mut self, before: &[String]) {
        let mut path = before.to_vec();
        while let Some(token) = self.tokens.get(self.at) {
            self.at += 1;
            match token.text {
                ":" => {}
                "{" => return self.read_braces(&path),
                "as" => {
                    let name = self.tokens.get(self.at).map_or("_", |token| token.text).to_owned();
                    self.at += 1;
                    return self.push(path, name);
                }
                "*" => return self.push(path, String::from("*")),
                "," | "}" | ";" => {
                    self.at -= 1;
                    break;
                }
                "self" if !before.is_empty() => {}
                name => path.push(name.to_owned()),
            }
        }
        if let Some(name) = path.last().cloned() {
            self.push(path, name);
        }
    }

    fn read_braces(&mut self, path: &[String]) {
        while let Some(token) = self.tokens.get(self.at) {
            match token.text {
                "}" => {
                    self.at += 1;
                    return;
                }
                ";" => return,
                "," => self.at += 1,
                _ => self.read(path),
            }
        }
    }

    fn push(&mut self, path: Vec<String>, name: String) {
        self.uses.push(Use { path, name, is_handed_on: self.is_handed_on });
    }
}

/// Returns the names of the path that begins at `at`, one by one: `a::b::c`.
pub(crate) fn path_at(tokens: &[Token<'_>], at: usize) -> Vec<String> {
    let is_name = |at: usize| tokens.get(at).is_some_and(|token| scan::is_name(token.text));
    let is_colon = |at: usize| tokens.get(at).is_some_and(|token| token.text == ":");
    let mut path = Vec::new();
    let mut next = at;
    while is_name(next) {
        path.push(tokens[next].text.to_owned());
        if !(is_colon(next + 1) && is_colon(next + 2)) {
            break;
        }
        next += 3;
    }
    path
}

/// Returns everything that can be reached from `at` in one step or more.
fn reach(edges: &[BTreeSet<usize>], at: usize) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut open = vec![at];
    while let Some(next) = open.pop() {
        open.extend(edges[next].iter().copied().filter(|other| reached.insert(*other)));
    }
    reached
}

/// Keywords after which an item is named.
const DEFINES: [&str; 8] = ["struct", "enum", "union", "trait", "type", "fn", "const", "static"];
/// Number of re-exports after which a path is given up.
const RESOLVE_DEPTH: usize = 32;
