//! Recipes: what is to be so on the workers of a target, how one sees whether it is, and how it is brought
//! about. Data, so that no lab's paths are in the program.
//!
//! A file of recipes is TOML, one `[[recipe]]` after another; of several with one name, the first whose
//! `where` fits the target is taken. Everything is checked when the file is read, with the line of each
//! mistake: nothing runs from a file that is not understood. A recipe is an open table of parts, so that
//! whole jobs can be recipes later.

use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;

use super::target::Target;

/// A mistake in a file of recipes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {what}")]
pub struct RecipeError {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

/// A file of recipes, understood.
#[derive(Clone, Debug, Default)]
pub struct Recipes {
    all: Vec<Recipe>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    recipe: Vec<Recipe>,
}

/// What is to be so.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// Its name.
    name: Spanned<String>,
    /// For people: what it is for.
    #[serde(default)]
    pub about: String,
    /// Targets that it is for.
    #[serde(default, rename = "where")]
    fits: Where,
    /// Its steps, in order.
    #[serde(default, rename = "step")]
    steps: Vec<Spanned<Step>>,
}

/// Patterns for targets, with `*` for anything; what is not said fits all.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Where {
    target: Option<String>,
    zone: Option<String>,
    #[serde(rename = "type")]
    accelerator: Option<String>,
}

/// One thing that is to be so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Its name, which is also that of its log.
    #[serde(default)]
    pub name: String,
    /// A command that ends with 0 where it is so already.
    pub check: Option<String>,
    /// A command that brings it about.
    pub setup: Option<String>,
    /// Files to copy before that.
    #[serde(default)]
    pub files: Vec<CopyOf>,
    /// Where a secret is that the set-up reads on its standard input.
    pub input: Option<SecretSource>,
    /// Whether what the check says is shown.
    #[serde(default)]
    pub show: bool,
    /// Seconds that each command may take.
    #[serde(default = "half_an_hour")]
    pub timeout_s: u32,
    /// Instead of all this: the steps of another recipe.
    #[serde(rename = "use")]
    pub uses: Option<String>,
}

fn half_an_hour() -> u32 {
    1800
}

/// A file to copy.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CopyOf {
    /// Here; `~/` is our home.
    pub from: String,
    /// There; `~/` is the account's home.
    pub to: String,
    /// Its rights, in octal digits.
    #[serde(default = "private")]
    pub mode: String,
}

fn private() -> String {
    "600".to_owned()
}

impl CopyOf {
    /// Its rights, as a number.
    pub fn rights(&self) -> Option<u32> {
        u32::from_str_radix(&self.mode, 8).ok().filter(|mode| *mode <= 0o777)
    }
}

/// Where a secret is: the first of these that is there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretSource {
    /// An environment variable.
    pub env: Option<String>,
    /// A file.
    pub file: Option<String>,
    /// A key of data.json.
    pub data: Option<String>,
}

impl Recipes {
    /// Reads a file; all its mistakes.
    pub fn parse(text: &str, file: &str) -> Result<Self, Vec<RecipeError>> {
        let error = |span: Option<Range<usize>>, what: String| RecipeError {
            file: file.to_owned(),
            line: line_of(text, span.map_or(0, |span| span.start)),
            what,
        };
        let read: File = toml::from_str(text)
            .map_err(|e| vec![error(e.span(), e.message().replace('\n', ", "))])?;
        let recipes = Self { all: read.recipe };
        let mut mistakes = Vec::new();
        for recipe in &recipes.all {
            let name = recipe.name.get_ref();
            let mut say = |span, what: String| {
                mistakes.push(error(Some(span), format!("recipe '{name}': {what}")));
            };
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
            if name.is_empty() || !name.chars().all(plain) {
                say(
                    recipe.name.span(),
                    "its name holds more than letters, digits, - and _".to_owned(),
                );
            }
            if recipe.steps.is_empty() {
                say(recipe.name.span(), "it has no [[recipe.step]]".to_owned());
            }
            for step in &recipe.steps {
                let is_known = |name: &str| recipes.all.iter().any(|r| r.name.get_ref() == name);
                if let Some(what) = wrong(step.get_ref(), is_known) {
                    say(step.span(), what);
                }
            }
            if recipes.is_circular(name, &mut Vec::new()) {
                say(recipe.name.span(), "it uses itself".to_owned());
            }
        }
        if mistakes.is_empty() { Ok(recipes) } else { Err(mistakes) }
    }

    /// Whether the uses of a recipe lead back to one of them.
    fn is_circular(&self, name: &str, path: &mut Vec<String>) -> bool {
        if path.iter().any(|known| known == name) {
            return true;
        }
        path.push(name.to_owned());
        let found = self
            .all
            .iter()
            .filter(|recipe| recipe.name.get_ref() == name)
            .flat_map(|recipe| {
                recipe.steps.iter().filter_map(|step| step.get_ref().uses.as_deref())
            })
            .any(|used| self.is_circular(used, path));
        path.pop();
        found
    }

    /// The names, each once, with what they are for.
    pub fn names(&self) -> Vec<(&str, &str)> {
        let mut names: Vec<(&str, &str)> = Vec::new();
        for recipe in &self.all {
            if !names.iter().any(|(known, _)| known == recipe.name.get_ref()) {
                names.push((recipe.name.get_ref(), &recipe.about));
            }
        }
        names
    }

    /// The steps of a recipe for a target, with those of the recipes it uses in their places. `None` if
    /// there is none of that name for it; of a used one there may be none for this target.
    pub fn steps(&self, name: &str, target: &Target) -> Option<Vec<Step>> {
        let mut fitting = self.all.iter().filter(|recipe| recipe.name.get_ref() == name);
        let recipe = fitting.find(|recipe| recipe.fits.misfit(name, target).is_none())?;
        let mut steps = Vec::new();
        for step in recipe.steps.iter().map(Spanned::get_ref) {
            match &step.uses {
                Some(used) => steps.extend(self.steps(used, target).unwrap_or_default()),
                None => steps.push(step.clone()),
            }
        }
        Some(steps)
    }

    /// Why no recipe of a name is for a target, one reason for each: also why none of those that it is made of
    /// is.
    pub fn misfits(&self, name: &str, target: &Target) -> Vec<String> {
        let named: Vec<&Recipe> =
            self.all.iter().filter(|recipe| recipe.name.get_ref() == name).collect();
        if named.is_empty() {
            return vec![format!("nobody has written a recipe '{name}'")];
        }
        let misfit = |recipe: &&Recipe| recipe.fits.misfit(name, target);
        let Some(recipe) = named.iter().find(|recipe| misfit(recipe).is_none()) else {
            return named.iter().filter_map(misfit).collect();
        };
        let used = recipe.steps.iter().filter_map(|step| step.get_ref().uses.as_deref());
        used.flat_map(|used| self.misfits(used, target)).collect()
    }

    /// The same recipes with others behind them: what is here comes first.
    #[must_use]
    pub fn over(mut self, others: Self) -> Self {
        let here: Vec<String> = self.all.iter().map(|r| r.name.get_ref().clone()).collect();
        let new = others.all.into_iter().filter(|other| !here.contains(other.name.get_ref()));
        self.all.extend(new);
        self
    }
}

impl Where {
    /// The first condition that does not hold, in words.
    fn misfit(&self, name: &str, target: &Target) -> Option<String> {
        let is = |what, pattern: &Option<String>, text: Option<&str>| {
            let pattern = pattern.as_ref()?;
            let why = match text {
                Some(text) if like(pattern, text) => return None,
                Some(text) => format!("{} has {what} {text}", target.name),
                None => format!("nobody knows the {what} of {}", target.name),
            };
            Some(format!("'{name}' is for {what} {pattern}, and {why}"))
        };
        is("name", &self.target, Some(target.name.as_str()))
            .or_else(|| is("zone", &self.zone, target.zone.as_deref()))
            .or_else(|| is("type", &self.accelerator, target.accelerator.as_deref()))
    }
}

/// Whether a text is like a pattern, in which `*` stands for anything.
fn like(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, rest)) => text.strip_prefix(start).is_some_and(|text| {
            rest.is_empty()
                || text.char_indices().any(|(at, _)| text.get(at..).is_some_and(|t| like(rest, t)))
        }),
    }
}

/// What is wrong with a step.
fn wrong(step: &Step, is_known: impl Fn(&str) -> bool) -> Option<String> {
    if let Some(used) = &step.uses {
        let alone = Step { uses: step.uses.clone(), timeout_s: half_an_hour(), ..Step::default() };
        if *step != alone {
            return Some("a step that uses another recipe says nothing else".to_owned());
        }
        return (!is_known(used)).then(|| format!("there is no recipe '{used}' to use"));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    if step.name.is_empty() || !step.name.chars().all(plain) {
        return Some("a step needs a name of letters, digits, - and _".to_owned());
    }
    if step.check.is_none() && step.setup.is_none() {
        return Some(format!("step '{}' has neither check nor setup", step.name));
    }
    if step.setup.is_none() && (!step.files.is_empty() || step.input.is_some()) {
        return Some(format!(
            "step '{}' has files or an input for a setup that is not there",
            step.name
        ));
    }
    if step.input.as_ref().is_some_and(|input| *input == SecretSource::default()) {
        return Some(format!(
            "the input of step '{}' is an env, a file or a key of data",
            step.name
        ));
    }
    if step.timeout_s == 0 {
        return Some(format!("step '{}' has no time to run", step.name));
    }
    let odd = step.files.iter().find(|file| file.rights().is_none());
    odd.map(|file| format!("'{}' are no rights of a file, as '600' is", file.mode))
}

fn line_of(text: &str, at: usize) -> usize {
    text.get(..at).unwrap_or(text).matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::capacity::Capacity;
    use crate::model::ids::TargetName;

    fn target(zone: &str) -> Target {
        let name = TargetName::from("lab-1");
        Target { name, zone: Some(zone.to_owned()), capacity: Capacity::ONE, ..Target::local() }
    }

    fn mistakes(text: &str) -> Vec<String> {
        match Recipes::parse(text, "r.toml") {
            Ok(_) => Vec::new(),
            Err(mistakes) => mistakes.iter().map(ToString::to_string).collect(),
        }
    }

    const LAB: &str = r#"
[[recipe]]
name = "mount-disk"
where = { zone = "us-*" }
[[recipe.step]]
name = "mounted"
check = "mountpoint /us"
setup = "mount us"

[[recipe]]
name = "mount-disk"
where = { zone = "eu*-a" }
[[recipe.step]]
name = "mounted"
check = "mountpoint /eu"
setup = "mount eu"

[[recipe]]
name = "solve"
[[recipe.step]]
use = "mount-disk"
[[recipe.step]]
name = "env"
check = "true"
"#;

    #[test]
    fn the_first_that_fits_the_target_is_taken() {
        let recipes = Recipes::parse(LAB, "r.toml").unwrap();
        let check = |zone: &str| {
            let steps = recipes.steps("solve", &target(zone)).unwrap();
            steps.into_iter().filter_map(|step| step.check).collect::<Vec<_>>()
        };
        assert_eq!(check("us-central2-b"), ["mountpoint /us", "true"]);
        assert_eq!(check("europe-west4-a"), ["mountpoint /eu", "true"]);
        assert_eq!(check("asia-1"), ["true"]);
        assert!(recipes.steps("mount-disk", &target("asia-1")).is_none());
        assert!(recipes.steps("no-such", &target("us-1")).is_none());
    }

    #[test]
    fn mistakes_are_said_with_file_and_line() {
        for (text, expected) in [
            ("[[recipe]]\nname = \"a\"\nsteps = 3\n", "r.toml:3: unknown field `steps`"),
            ("[[recipe]]\nname = \"a\n", "r.toml:2: "),
            ("[[recipe]]\nname = \"a\"\n", "r.toml:2: recipe 'a': it has no [[recipe.step]]"),
            (
                "[[recipe]]\nname = \"a\"\n[[recipe.step]]\nuse = \"b\"\n",
                "r.toml:3: recipe 'a': there is no recipe 'b' to use",
            ),
            (
                "[[recipe]]\nname = \"a\"\n[[recipe.step]]\nuse = \"a\"\n",
                "r.toml:2: recipe 'a': it uses itself",
            ),
            (
                "[[recipe]]\nname = \"a\"\n[[recipe.step]]\nname = \"s\"\n",
                "r.toml:3: recipe 'a': step 's' has neither check nor setup",
            ),
            (
                "[[recipe]]\nname = \"a\"\n[[recipe.step]]\nname = \"s\"\nchek = \"x\"\n",
                "r.toml:5: unknown field `chek`",
            ),
            (
                "[[recipe]]\nname = \"a\"\n[[recipe.step]]\nname = \"s/../t\"\ncheck = \"x\"\n",
                "r.toml:3: recipe 'a': a step needs a name",
            ),
        ] {
            let found = mistakes(text);
            assert!(found.iter().any(|line| line.starts_with(expected)), "{text}: {found:?}");
        }
    }

    #[test]
    fn a_star_stands_for_anything() {
        assert!(like("*", "") && like("v4-*", "v4-8") && like("a*b*c", "axxbyyc"));
        assert!(!like("v4-*", "v5-8") && !like("a*b", "abc") && !like("", "x"));
    }

    #[test]
    fn a_labs_own_recipe_stands_before_the_built_in_one() {
        let own = Recipes::parse(
            "[[recipe]]\nname = \"test\"\n[[recipe.step]]\nname = \"own\"\ncheck = \"true\"\n",
            "r.toml",
        );
        let built_in =
            Recipes::parse(include_str!("../../../../assets/recipes.toml"), "built in").unwrap();
        let both = own.unwrap().over(built_in);
        let steps = both.steps("test", &target("z")).unwrap();
        assert_eq!(steps.iter().map(|step| step.name.as_str()).collect::<Vec<_>>(), ["own"]);
        assert!(both.names().iter().any(|(name, _)| *name == "check-env"));
    }

    #[test]
    fn the_example_is_understood() {
        let text = include_str!("../../../../assets/example/recipes.toml");
        let recipes = Recipes::parse(text, "example").unwrap();
        assert!(recipes.names().iter().any(|(name, _)| *name == "mount-disk"));
    }
}
