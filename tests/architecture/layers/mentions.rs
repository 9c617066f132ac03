//! Reads one source file and lists what it mentions: imports, paths, methods, attributes, modules.
//!
//! Works on the syntax tree, so a name in a comment or a string is no mention. Inside macros there is no
//! tree: there the tokens are scanned for `a::b::c` and for whole `use …;` items.

use std::collections::HashMap;

use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::ext::IdentExt as _;
use syn::visit::{self, Visit};

/// How a path is mentioned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// `use a::b;`, also as `use a::b as c;`
    Import,
    /// `use a::b::*;`
    Glob,
    /// In an expression, a type, a visibility, an attribute or a macro.
    Path,
}

/// One path somewhere in a file, absolute: it starts with `crate`, with a crate's name, or (relative
/// to the file) with the name of an item, which is then nobody else's.
#[derive(Clone, Debug)]
pub(super) struct Mention {
    /// Its segments, without generics.
    pub(super) path: Vec<String>,
    /// Import, glob or use.
    pub(super) how: How,
    /// Line, from 1.
    pub(super) line: usize,
    /// Inside something compiled only for tests.
    pub(super) in_test: bool,
    /// The import that the first segment stands for, if it does.
    pub(super) through: Option<Vec<String>>,
}

/// A `mod name;` whose text is in another file.
#[derive(Clone, Debug)]
pub(super) struct Child {
    /// Inline modules around it, then its own name.
    pub(super) path: Vec<String>,
    /// Compiled only for tests.
    pub(super) in_test: bool,
}

/// What one file mentions.
#[derive(Debug, Default)]
pub(super) struct Mentions {
    /// All paths.
    pub(super) paths: Vec<Mention>,
    /// Method calls outside tests: name and line.
    pub(super) methods: Vec<(String, usize)>,
    /// Attributes, `cfg_attr` unfolded: name and line.
    pub(super) attributes: Vec<(String, usize)>,
    /// Names of the macros called, and line.
    pub(super) macros: Vec<(String, usize)>,
    /// Modules in files of their own.
    pub(super) children: Vec<Child>,
    /// Items at the top that are not `mod`: line.
    pub(super) other_items: Vec<usize>,
    /// Public types outside tests: name and line.
    pub(super) public_types: Vec<(String, usize)>,
}

/// Reads `text` as the module `module` (`["plan", "decide"]`; the root is empty).
pub(super) fn read(text: &str, module: &[String], in_test: bool) -> syn::Result<Mentions> {
    let file = syn::parse_file(text)?;
    let mut reader = Reader { module: module.to_vec(), in_test, ..Reader::default() };
    for item in &file.items {
        if !matches!(item, syn::Item::Mod(_)) {
            reader.found.other_items.push(line_of(item));
        }
    }
    reader.visit_file(&file);
    Ok(reader.resolve())
}

fn line_of(item: &impl syn::spanned::Spanned) -> usize {
    item.span().start().line
}

/// A path as written, with the module it is written in.
struct Raw {
    module: Vec<String>,
    mention: Mention,
    /// The name an import gives.
    name: Option<String>,
}

#[derive(Default)]
struct Reader {
    module: Vec<String>,
    inline: Vec<String>,
    in_test: bool,
    raw: Vec<Raw>,
    found: Mentions,
}

impl Reader {
    fn push(&mut self, path: Vec<String>, how: How, line: usize, name: Option<String>) {
        let mention = Mention { path, how, line, in_test: self.in_test, through: None };
        self.raw.push(Raw { module: self.module.clone(), mention, name });
    }

    fn import(&mut self, item: &syn::ItemUse) {
        let mut prefix = Vec::new();
        if item.leading_colon.is_some() {
            prefix.push(String::new());
        }
        self.tree(&item.tree, &mut prefix);
    }

    fn tree(&mut self, tree: &syn::UseTree, prefix: &mut Vec<String>) {
        let leaf = |ident: &Ident, prefix: &[String]| {
            let mut path = prefix.to_vec();
            let name = ident.unraw().to_string();
            if name != "self" || path.is_empty() {
                path.push(name);
            }
            path
        };
        match tree {
            syn::UseTree::Path(path) => {
                prefix.push(path.ident.unraw().to_string());
                self.tree(&path.tree, prefix);
                prefix.pop();
            }
            syn::UseTree::Name(name) => {
                let path = leaf(&name.ident, prefix);
                let given = path.last().cloned();
                self.push(path, How::Import, line_of(&name.ident), given);
            }
            syn::UseTree::Rename(rename) => {
                let path = leaf(&rename.ident, prefix);
                let given = Some(rename.rename.unraw().to_string());
                self.push(path, How::Import, line_of(&rename.ident), given);
            }
            syn::UseTree::Glob(glob) => {
                self.push(prefix.clone(), How::Glob, line_of(glob), None);
            }
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.tree(tree, prefix);
                }
            }
        }
    }

    /// Paths, `use` items and attributes among the tokens of a macro.
    fn tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            at += 1;
            match token {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Ident(ident) if ident == "use" => {
                    let end = tokens.iter().skip(at).position(|t| is_punct(Some(t), ';'));
                    let Some(end) = end else { continue };
                    let item = tokens.iter().skip(at - 1).take(end + 2).cloned();
                    // `$crate` is no Rust outside a macro; without its `$` it is.
                    let item: TokenStream = item.filter(|t| !is_punct(Some(t), '$')).collect();
                    if let Ok(item) = syn::parse2::<syn::ItemUse>(item) {
                        self.import(&item);
                        at += end + 1;
                    }
                }
                TokenTree::Ident(first) => {
                    let mut path = vec![first.unraw().to_string()];
                    while is_punct(tokens.get(at), ':') && is_punct(tokens.get(at + 1), ':') {
                        let Some(TokenTree::Ident(next)) = tokens.get(at + 2) else { break };
                        path.push(next.unraw().to_string());
                        at += 3;
                    }
                    if is_punct(tokens.get(at), '!') {
                        self.found.macros.push((path.concat(), line_of(first)));
                    }
                    if path.len() > 1 {
                        self.push(path, How::Path, line_of(first), None);
                    }
                }
                TokenTree::Punct(mark) if mark.as_char() == '#' => {
                    if is_punct(tokens.get(at), '!') {
                        at += 1;
                    }
                    if let Some(TokenTree::Group(group)) = tokens.get(at)
                        && let Some(TokenTree::Ident(name)) = group.stream().into_iter().next()
                    {
                        self.found.attributes.push((name.to_string(), line_of(&name)));
                    }
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }

    fn meta(&mut self, meta: &syn::Meta) {
        let name = meta.path().segments.iter().map(|s| s.ident.to_string()).collect::<Vec<_>>();
        self.found.attributes.push((name.join("::"), line_of(meta.path())));
        let syn::Meta::List(list) = meta else { return };
        if list.path.is_ident("cfg_attr") {
            let nested = list.parse_args_with(
                syn::punctuated::Punctuated::<syn::Meta, syn::Token![,]>::parse_terminated,
            );
            for meta in nested.into_iter().flatten().skip(1) {
                self.meta(&meta);
            }
        }
        if list.path.is_ident("serde") {
            // The one attribute whose strings are paths: `with = "crate::…"`.
            for token in list.tokens.clone() {
                if let TokenTree::Literal(literal) = &token
                    && let Ok(text) = syn::parse2::<syn::LitStr>(token.clone().into())
                    && let Ok(path) = text.parse::<syn::Path>()
                {
                    let path = path.segments.iter().map(|s| s.ident.unraw().to_string()).collect();
                    self.push(path, How::Path, line_of(literal), None);
                }
            }
        }
        self.tokens(list.tokens.clone());
    }

    /// Notes a type that others can name.
    fn public_type(&mut self, ident: &Ident, visibility: &syn::Visibility) {
        if !self.in_test && matches!(visibility, syn::Visibility::Public(_)) {
            self.found.public_types.push((ident.unraw().to_string(), line_of(ident)));
        }
    }

    /// Runs `inside` with the test flag raised if the attributes say `cfg(test)`.
    fn under(&mut self, attributes: &[syn::Attribute], inside: impl FnOnce(&mut Self)) {
        let before = self.in_test;
        self.in_test |= attributes.iter().any(is_cfg_test);
        inside(self);
        self.in_test = before;
    }

    fn resolve(mut self) -> Mentions {
        let mut given: HashMap<(Vec<String>, String), Vec<String>> = HashMap::new();
        for raw in &self.raw {
            if let Some(name) = &raw.name
                && raw.mention.path != [name.as_str()]
            {
                given.insert((raw.module.clone(), name.clone()), raw.mention.path.clone());
            }
        }
        for Raw { module, mut mention, .. } in std::mem::take(&mut self.raw) {
            let mut path = absolute(&module, &mention.path);
            // An import may itself start at an import; a circle cannot compile, the bound is for it.
            for _ in 0..8 {
                let key = (module.clone(), path.first().cloned().unwrap_or_default());
                let Some(import) = given.get(&key).filter(|import| **import != mention.path) else {
                    break;
                };
                let import = absolute(&module, import);
                path.splice(0..1, import.iter().cloned());
                mention.through = Some(import);
            }
            mention.path = path;
            self.found.paths.push(mention);
        }
        self.found
    }
}

/// `path` as written in `module`, with `self` and `super` worked out.
fn absolute(module: &[String], path: &[String]) -> Vec<String> {
    let mut base: Option<Vec<String>> = None;
    let mut rest = path.iter();
    let mut ahead = rest.clone();
    while let Some(segment) = ahead.next() {
        match segment.as_str() {
            "self" => base = Some(base.unwrap_or_else(|| module.to_vec())),
            "super" => {
                let mut up = base.unwrap_or_else(|| module.to_vec());
                up.pop();
                base = Some(up);
            }
            "" => {}
            _ => break,
        }
        rest = ahead.clone();
    }
    let from_here = base.map(|base| std::iter::once("crate".to_owned()).chain(base));
    from_here.into_iter().flatten().chain(rest.cloned()).collect()
}

fn is_punct(token: Option<&TokenTree>, wanted: char) -> bool {
    matches!(token, Some(TokenTree::Punct(mark)) if mark.as_char() == wanted)
}

/// `#[cfg(test)]` and `#[cfg(all(test, …))]`; not `any(test, …)`, which is also built without tests.
fn is_cfg_test(attribute: &syn::Attribute) -> bool {
    fn says_test(tokens: TokenStream) -> bool {
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            if let TokenTree::Ident(name) = token {
                match tokens.peek() {
                    Some(TokenTree::Group(group)) => {
                        let nested = name == "all" && says_test(group.stream());
                        if nested {
                            return true;
                        }
                    }
                    _ if name == "test" => return true,
                    _ => {}
                }
            }
        }
        false
    }
    attribute.path().is_ident("cfg")
        && attribute.meta.require_list().is_ok_and(|list| says_test(list.tokens.clone()))
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.under(&item.attrs, |this| {
            this.import(item);
            item.attrs.iter().for_each(|a| this.visit_attribute(a));
            this.visit_visibility(&item.vis);
        });
    }

    fn visit_item_extern_crate(&mut self, item: &'ast syn::ItemExternCrate) {
        let root = if item.ident == "self" { "crate".to_owned() } else { item.ident.to_string() };
        let name = item.rename.as_ref().map_or(&item.ident, |(_, name)| name).to_string();
        self.push(vec![root], How::Import, line_of(&item.ident), Some(name));
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.under(&item.attrs, |this| {
            let name = item.ident.unraw().to_string();
            if item.content.is_none() {
                let path = this.inline.iter().chain([&name]).cloned().collect();
                this.found.children.push(Child { path, in_test: this.in_test });
            }
            this.inline.push(name.clone());
            this.module.push(name);
            visit::visit_item_mod(this, item);
            this.inline.pop();
            this.module.pop();
        });
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.public_type(&item.ident, &item.vis);
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.public_type(&item.ident, &item.vis);
        visit::visit_item_enum(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.public_type(&item.ident, &item.vis);
        visit::visit_item_trait(self, item);
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.under(&item.attrs, |this| visit::visit_item_fn(this, item));
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        self.under(&item.attrs, |this| visit::visit_item_impl(this, item));
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.under(&item.attrs, |this| visit::visit_impl_item_fn(this, item));
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let lead = path.leading_colon.map(|_| String::new());
        let names = path.segments.iter().map(|segment| segment.ident.unraw().to_string());
        let names: Vec<String> = lead.into_iter().chain(names).collect();
        self.push(names, How::Path, line_of(path), None);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        if let Some(name) = call.path.segments.last() {
            self.found.macros.push((name.ident.to_string(), line_of(&call.path)));
        }
        self.visit_path(&call.path);
        self.tokens(call.tokens.clone());
    }

    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        self.meta(&attribute.meta);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        if !self.in_test {
            self.found.methods.push((call.method.to_string(), line_of(&call.method)));
        }
        visit::visit_expr_method_call(self, call);
    }
}
