//! The public items of a crate, one line each.

use std::collections::{BTreeMap, BTreeSet};

use syn::spanned::Spanned;
use syn::{
    Attribute, Fields, ImplItem, Item, ItemEnum, ItemImpl, ItemStruct, ItemTrait, TraitItem, Type,
};

use crate::source::{Crate, Place, is_hidden, is_pub};

/// A type or trait: the module that defines it, and its name there.
type Name = (Place, String);

/// Returns the sorted lines.
pub(crate) fn of(all: &Crate) -> Vec<String> {
    let mut listing = Listing { all, impls: impls(all), lines: BTreeSet::new() };
    listing.module(&Vec::new(), &Vec::new());
    listing.macros();
    listing.lines.into_iter().collect()
}

struct Listing<'a> {
    all: &'a Crate,
    impls: BTreeMap<Name, Vec<&'a ItemImpl>>,
    lines: BTreeSet<String>,
}

impl Listing<'_> {
    /// Lists the module at `place`, which users call `shown`.
    fn module(&mut self, place: &Place, shown: &Place) {
        let module = &self.all[place];
        if !shown.is_empty() {
            self.lines.insert(format!("mod {}", shown.join("::")));
        }
        for item in &module.items {
            if let Some((name, true)) = name_of(item) {
                self.item(item, place, &name, shown, &name);
            }
        }
        for (below, inner) in self.all.range(place.clone()..) {
            if below.len() == place.len() + 1 && below.starts_with(place) && inner.is_public {
                let shown = with(shown, below.last().expect("not the root"));
                self.module(below, &shown);
            }
        }
        for used in module.uses.iter().filter(|used| used.is_public) {
            self.reexport(place, &used.target, &used.name, shown);
        }
    }

    fn reexport(&mut self, place: &Place, target: &[String], name: &str, shown: &Place) {
        let Some((home, last)) = resolve(self.all, place, target) else {
            let line = format!("{}: use {}", with(shown, name).join("::"), target.join("::"));
            self.lines.insert(line);
            return;
        };
        let as_module = with(&home, &last);
        if name == "*" {
            self.module(&as_module, shown);
        } else if let Some(item) = defined(self.all, &home, &last) {
            self.item(item, &home, &last, shown, name);
        } else if self.all.contains_key(&as_module) {
            self.module(&as_module, &with(shown, name));
        } else if let Some(used) = self.all[&home].uses.iter().find(|used| used.name == last) {
            let target = used.target.clone();
            self.reexport(&home, &target, name, shown);
        }
    }

    /// Lists an item and its parts.
    fn item(&mut self, item: &Item, place: &Place, name: &str, shown: &Place, shown_name: &str) {
        let path = with(shown, shown_name).join("::");
        let mut add = |line: String| self.lines.insert(format!("{path}: {line}"));
        match item {
            Item::Const(item) => add(format!("const {shown_name}: {}", text(&item.ty))),
            Item::Static(item) => add(format!("static {shown_name}: {}", text(&item.ty))),
            Item::Fn(item) => add(text(&item.sig)),
            Item::Type(item) => {
                add(format!("type {shown_name}{} = {}", text(&item.generics), text(&item.ty)))
            }
            Item::Struct(item) => {
                add(format!(
                    "struct {shown_name}{}{}",
                    text(&item.generics),
                    bounds(&item.generics)
                ));
                for (at, field) in
                    item.fields.iter().enumerate().filter(|(_, field)| is_pub(&field.vis))
                {
                    let name =
                        field.ident.as_ref().map_or_else(|| at.to_string(), ToString::to_string);
                    add(format!("field {name}: {}", text(&field.ty)));
                }
                true
            }
            Item::Enum(item) => {
                add(format!("enum {shown_name}{}", text(&item.generics)));
                for variant in &item.variants {
                    let fields = if matches!(variant.fields, Fields::Unit) {
                        String::new()
                    } else {
                        fields(&variant.fields)
                    };
                    self.lines.insert(format!("{path}::{}{fields}", variant.ident));
                    let from = variant.fields.iter().filter(|field| has(&field.attrs, "from"));
                    for field in from {
                        self.lines.insert(format!(
                            "impl From<{}> for {}",
                            text(&field.ty),
                            item.ident
                        ));
                    }
                }
                true
            }
            Item::Trait(item) => {
                self.trait_(item, &path, shown_name);
                true
            }
            _ => false,
        };
        if let Item::Struct(ItemStruct { attrs, .. }) | Item::Enum(ItemEnum { attrs, .. }) = item
            && let derived = derived(attrs)
            && !derived.is_empty()
        {
            self.lines.insert(format!("{path}: derives {}", derived.join(", ")));
        }
        self.implemented(place, name, &path);
    }

    /// Lists a trait and its items.
    fn trait_(&mut self, item: &ItemTrait, path: &str, name: &str) {
        let above = if item.supertraits.is_empty() {
            String::new()
        } else {
            format!(": {}", text(&item.supertraits))
        };
        let mut add = |line: String| self.lines.insert(format!("{path}: {line}"));
        add(format!("trait {name}{}{above}", text(&item.generics)));
        for inner in &item.items {
            match inner {
                TraitItem::Fn(inner) => {
                    let provided = if inner.default.is_some() { " { .. }" } else { "" };
                    add(format!("{}{provided}", text(&inner.sig)));
                }
                TraitItem::Const(inner) => {
                    add(format!("const {}: {}", inner.ident, text(&inner.ty)));
                }
                TraitItem::Type(inner) => {
                    add(text(inner).trim_end_matches(';').to_owned());
                }
                _ => {}
            }
        }
    }

    /// Lists the implementations for a type that users call `path`.
    fn implemented(&mut self, place: &Place, name: &str, path: &str) {
        for block in self.impls.get(&(place.clone(), name.to_owned())).into_iter().flatten() {
            if let Some((_, of, _)) = &block.trait_ {
                self.lines.insert(format!(
                    "impl{} {} for {}",
                    text(&block.generics),
                    text(of),
                    text(&block.self_ty)
                ));
                continue;
            }
            for inner in &block.items {
                let line = match inner {
                    ImplItem::Fn(inner) if is_pub(&inner.vis) && !is_hidden(&inner.attrs) => {
                        text(&inner.sig)
                    }
                    ImplItem::Const(inner) if is_pub(&inner.vis) => {
                        format!("const {}: {}", inner.ident, text(&inner.ty))
                    }
                    _ => continue,
                };
                self.lines.insert(format!("{path}: {line}"));
            }
        }
    }

    fn macros(&mut self) {
        for item in self.all.values().flat_map(|module| &module.items) {
            if let Item::Macro(item) = item
                && item.attrs.iter().any(|attribute| attribute.path().is_ident("macro_export"))
                && let Some(name) = &item.ident
            {
                self.lines.insert(format!("macro {name}!"));
            }
        }
    }
}

fn has(attributes: &[Attribute], name: &str) -> bool {
    attributes.iter().any(|attribute| attribute.path().is_ident(name))
}

/// Returns the names of the derived traits, ascending.
fn derived(attributes: &[Attribute]) -> Vec<String> {
    let mut found = Vec::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("derive")) {
        let each = |meta: syn::meta::ParseNestedMeta<'_>| {
            found.extend(meta.path.segments.last().map(|segment| segment.ident.to_string()));
            Ok(())
        };
        attribute.parse_nested_meta(each).expect("a derive names traits");
    }
    found.sort_unstable();
    found
}

fn with(place: &Place, name: &str) -> Place {
    place.iter().cloned().chain([name.to_owned()]).collect()
}

/// Returns the name of an item, and true if it is public.
fn name_of(item: &Item) -> Option<(String, bool)> {
    let (name, visibility) = match item {
        Item::Const(item) => (&item.ident, &item.vis),
        Item::Static(item) => (&item.ident, &item.vis),
        Item::Fn(item) => (&item.sig.ident, &item.vis),
        Item::Type(item) => (&item.ident, &item.vis),
        Item::Struct(item) => (&item.ident, &item.vis),
        Item::Enum(item) => (&item.ident, &item.vis),
        Item::Trait(item) => (&item.ident, &item.vis),
        _ => return None,
    };
    Some((name.to_string(), is_pub(visibility)))
}

fn defined<'a>(all: &'a Crate, place: &Place, name: &str) -> Option<&'a Item> {
    all.get(place)?.items.iter().find(|item| name_of(item).is_some_and(|(found, _)| found == name))
}

/// Returns the module and name that `target`, used in `place`, refers to within the crate.
fn resolve(all: &Crate, place: &Place, target: &[String]) -> Option<(Place, String)> {
    let (mut at, rest) = match target.first()?.as_str() {
        "crate" => (Vec::new(), &target[1..]),
        "self" => (place.clone(), &target[1..]),
        "super" => (place[..place.len().checked_sub(1)?].to_vec(), &target[1..]),
        _ => (place.clone(), target),
    };
    let (last, steps) = rest.split_last()?;
    for step in steps {
        if step == "super" {
            at.pop()?;
        } else {
            at.push(step.clone());
        }
    }
    let known = all.get(&at)?;
    let is_here = defined(all, &at, last).is_some()
        || all.contains_key(&with(&at, last))
        || known
            .uses
            .iter()
            .any(|used| used.name == *last && (at != *place || used.target != target));
    is_here.then(|| (at, last.clone()))
}

/// Returns the impl blocks of each type.
fn impls(all: &Crate) -> BTreeMap<Name, Vec<&ItemImpl>> {
    let mut found: BTreeMap<Name, Vec<&ItemImpl>> = BTreeMap::new();
    for (place, module) in all {
        for item in &module.items {
            let Item::Impl(block) = item else { continue };
            let Type::Path(path) = &*block.self_ty else { continue };
            let steps: Vec<String> =
                path.path.segments.iter().map(|step| step.ident.to_string()).collect();
            if let Some(name) = origin(all, place, &steps) {
                found.entry(name).or_default().push(block);
            }
        }
    }
    found
}

/// Returns the place of the type that `steps` name in `place`.
fn origin(all: &Crate, place: &Place, steps: &[String]) -> Option<Name> {
    let (home, name) = resolve(all, place, steps)?;
    if defined(all, &home, &name).is_some() {
        return Some((home, name));
    }
    let used = all[&home].uses.iter().find(|used| used.name == name)?;
    if (&home, &used.target[..]) == (place, steps) {
        None
    } else {
        origin(all, &home, &used.target)
    }
}

fn bounds(generics: &syn::Generics) -> String {
    generics.where_clause.as_ref().map_or_else(String::new, |clause| format!(" {}", text(clause)))
}

fn fields(fields: &Fields) -> String {
    let shown: Vec<String> = fields
        .iter()
        .map(|field| match &field.ident {
            Some(name) => format!("{name}: {}", text(&field.ty)),
            None => text(&field.ty),
        })
        .collect();
    if matches!(fields, Fields::Named(_)) {
        format!(" {{ {} }}", shown.join(", "))
    } else {
        format!("({})", shown.join(", "))
    }
}

/// Returns the source of a piece of syntax, on one line.
fn text(piece: &impl Spanned) -> String {
    let source = piece.span().source_text().unwrap_or_default();
    let words: Vec<&str> =
        source.lines().map(|line| line.trim()).filter(|line| !line.starts_with("//")).collect();
    let line = words.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
    [("( ", "("), (", )", ")"), (" )", ")"), ("< ", "<"), (", >", ">"), (" >", ">")]
        .into_iter()
        .fold(line, |line, (from, to)| line.replace(from, to))
}
