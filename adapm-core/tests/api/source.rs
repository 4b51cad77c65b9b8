//! The modules of a crate: their items, and the names that their `use` declarations import.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use syn::{Attribute, Item, Meta, UseTree, Visibility};

/// The path of a module; empty for the root.
pub(crate) type Place = Vec<String>;

/// One module.
#[derive(Default)]
pub(crate) struct Module {
    /// True if its parent says `pub`.
    pub(crate) is_public: bool,
    pub(crate) items: Vec<Item>,
    pub(crate) uses: Vec<Use>,
}

/// A name that a `use` declaration imports.
pub(crate) struct Use {
    /// `*`: all public names of the target.
    pub(crate) name: String,
    pub(crate) target: Vec<String>,
    pub(crate) is_public: bool,
}

/// All modules of a crate by their paths, without those of tests.
pub(crate) type Crate = BTreeMap<Place, Module>;

/// Reads the crate whose sources lie in `folder`.
pub(crate) fn read(folder: &Path) -> Crate {
    let mut all = Crate::new();
    read_module(&folder.join("lib.rs"), folder, Vec::new(), true, &mut all);
    all
}

/// Reads a crate of one file.
pub(crate) fn parse(text: &str) -> Crate {
    let mut all = Crate::new();
    let file = syn::parse_file(text).expect("sound source");
    add(file.items, Path::new(""), Vec::new(), true, &mut all);
    all
}

fn read_module(file: &Path, folder: &Path, place: Place, is_public: bool, all: &mut Crate) {
    let text =
        fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let parsed =
        syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    add(parsed.items, folder, place, is_public, all);
}

fn add(items: Vec<Item>, folder: &Path, place: Place, is_public: bool, all: &mut Crate) {
    let mut module = Module { is_public, ..Module::default() };
    for item in items {
        if is_hidden(attributes(&item)) {
            continue;
        }
        match item {
            Item::Mod(inner) => {
                let name = inner.ident.to_string();
                let (mut below, public) = (place.clone(), is_pub(&inner.vis));
                below.push(name.clone());
                match inner.content {
                    Some((_, items)) => add(items, &folder.join(&name), below, public, all),
                    None => {
                        let file = file_of(folder, &name);
                        read_module(&file, &folder.join(&name), below, public, all);
                    }
                }
            }
            Item::Use(declared) => {
                let public = is_pub(&declared.vis);
                collect(&declared.tree, &mut Vec::new(), public, &mut module.uses);
            }
            item => module.items.push(item),
        }
    }
    all.insert(place, module);
}

fn file_of(folder: &Path, name: &str) -> PathBuf {
    let file = folder.join(format!("{name}.rs"));
    if file.exists() { file } else { folder.join(name).join("mod.rs") }
}

fn collect(tree: &UseTree, path: &mut Vec<String>, is_public: bool, uses: &mut Vec<Use>) {
    match tree {
        UseTree::Path(step) => {
            path.push(step.ident.to_string());
            collect(&step.tree, path, is_public, uses);
            path.pop();
        }
        UseTree::Group(group) => {
            group.items.iter().for_each(|tree| collect(tree, path, is_public, uses));
        }
        UseTree::Glob(_) => {
            uses.push(Use { name: "*".to_owned(), target: path.clone(), is_public })
        }
        UseTree::Name(name) if name.ident == "self" => {
            let name = path.last().cloned().unwrap_or_default();
            uses.push(Use { name, target: path.clone(), is_public });
        }
        UseTree::Name(name) => {
            let target = path.iter().cloned().chain([name.ident.to_string()]).collect();
            uses.push(Use { name: name.ident.to_string(), target, is_public });
        }
        UseTree::Rename(renamed) => {
            let target = path.iter().cloned().chain([renamed.ident.to_string()]).collect();
            uses.push(Use { name: renamed.rename.to_string(), target, is_public });
        }
    }
}

pub(crate) fn is_pub(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// Returns true if the item is visible only to tests and models.
pub(crate) fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let Meta::List(list) = &attribute.meta else { return false };
        let tokens = list.tokens.to_string();
        (list.path.is_ident("doc") && tokens == "hidden")
            || (list.path.is_ident("cfg")
                && ["test", "adapm_loom", "all (test , not (adapm_loom))"].contains(&&*tokens))
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
