//! The objects, the one counter of their versions, and the bounded history that watches and old lists read.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::{Value, json};

use super::resources::{ApiResource, RESOURCES};

/// So many changes are remembered; who asks for older ones is told that they are gone.
const REMEMBERED: usize = 4000;

/// Where an object lies. Ordered as lists are: by resource, namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ObjectKey {
    /// Group and plural of the resource.
    of: (&'static str, &'static str),
    /// Empty for what lies in none.
    pub(super) namespace: String,
    /// Name.
    pub(super) name: String,
}

impl ObjectKey {
    /// The place of an object.
    pub(super) fn new(resource: &ApiResource, namespace: &str, name: &str) -> Self {
        let namespace = if resource.namespaced { namespace } else { "" };
        Self {
            of: (resource.group, resource.plural),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// Whether it is one of a resource.
    pub(super) fn is_of(&self, resource: &ApiResource) -> bool {
        self.of == (resource.group, resource.plural)
    }

    /// Its resource.
    pub(super) fn resource(&self) -> &'static ApiResource {
        let found = RESOURCES.into_iter().find(|of| self.is_of(of));
        found.unwrap_or(&super::resources::CONFIG_MAPS)
    }
}

/// What became of an object.
#[derive(Clone, Debug)]
pub(super) struct Happened {
    /// The version that it made.
    pub(super) version: u64,
    /// Where.
    pub(super) key: ObjectKey,
    /// Before; nothing where it began.
    pub(super) before: Option<Arc<Value>>,
    /// After; nothing where it ended.
    pub(super) after: Option<Arc<Value>>,
    /// As it was when it ended, with the version of its end.
    pub(super) last: Option<Arc<Value>>,
}

/// All objects.
#[derive(Debug)]
pub(super) struct ObjectStore {
    objects: BTreeMap<ObjectKey, Arc<Value>>,
    version: u64,
    history: VecDeque<Happened>,
    /// The newest version that is forgotten.
    forgotten: u64,
}

impl ObjectStore {
    /// Nothing yet. The counter begins where it is seen that it is no count of objects.
    pub(super) fn new() -> Self {
        Self { objects: BTreeMap::new(), version: 100, history: VecDeque::new(), forgotten: 100 }
    }

    /// The newest version.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// One object.
    pub(super) fn get(&self, key: &ObjectKey) -> Option<&Arc<Value>> {
        self.objects.get(key)
    }

    /// The objects of a resource, in one namespace or in all.
    pub(super) fn list<'a>(
        &'a self,
        resource: &ApiResource,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a ObjectKey, &'a Arc<Value>)> {
        let of = (resource.group, resource.plural);
        let first = ObjectKey {
            of,
            namespace: namespace.unwrap_or_default().to_owned(),
            name: String::new(),
        };
        self.objects
            .range(first..)
            .take_while(move |(key, _)| key.of == of)
            .take_while(move |(key, _)| namespace.is_none_or(|wanted| key.namespace == wanted))
    }

    /// The objects of a resource in one namespace whose names begin so.
    pub(super) fn named<'a>(
        &'a self,
        resource: &ApiResource,
        (namespace, begins): (&str, &'a str),
    ) -> impl Iterator<Item = (&'a ObjectKey, &'a Arc<Value>)> {
        let first = ObjectKey::new(resource, namespace, begins);
        let (of, within) = (first.of, first.namespace.clone());
        self.objects.range(first..).take_while(move |(key, _)| {
            key.of == of && key.namespace == within && key.name.starts_with(begins)
        })
    }

    /// Everything in a namespace, or everything at all.
    pub(super) fn all(&self) -> impl Iterator<Item = (&ObjectKey, &Arc<Value>)> {
        self.objects.iter()
    }

    /// Puts an object there, new or instead of what is there, with its new version. An object that did not change
    /// keeps its version.
    pub(super) fn put(&mut self, key: &ObjectKey, mut object: Value) -> Arc<Value> {
        let before = self.objects.get(key).cloned();
        if let Some(before) = &before {
            object["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"].clone();
            if **before == object {
                return Arc::clone(before);
            }
        }
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let object = Arc::new(object);
        self.objects.insert(key.clone(), Arc::clone(&object));
        self.remember(key, before, Some(Arc::clone(&object)), None);
        object
    }

    /// Takes an object away. What is returned is as it was, with the version of its end.
    pub(super) fn remove(&mut self, key: &ObjectKey) -> Option<Arc<Value>> {
        let before = self.objects.remove(key)?;
        self.version += 1;
        let mut last = Value::clone(&before);
        last["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let last = Arc::new(last);
        self.remember(key, Some(before), None, Some(Arc::clone(&last)));
        Some(last)
    }

    fn remember(
        &mut self,
        key: &ObjectKey,
        before: Option<Arc<Value>>,
        after: Option<Arc<Value>>,
        last: Option<Arc<Value>>,
    ) {
        let version = self.version;
        self.history.push_back(Happened { version, key: key.clone(), before, after, last });
        while self.history.len() > REMEMBERED {
            self.forgotten = self.history.pop_front().map_or(self.forgotten, |old| old.version);
        }
    }

    /// Forgets all that happened: whoever watches from an older version is told so.
    pub(super) fn forget(&mut self) {
        self.history.clear();
        self.forgotten = self.version;
    }

    /// Whether everything after a version is still remembered.
    pub(super) fn remembers(&self, version: u64) -> bool {
        version >= self.forgotten
    }

    /// What happened after a version. `None` if that is no longer known.
    pub(super) fn since(&self, version: u64) -> Option<impl Iterator<Item = &Happened>> {
        self.remembers(version).then(|| {
            let from = self.history.partition_point(|happened| happened.version <= version);
            self.history.range(from..)
        })
    }

    /// The objects of a resource as they were at a version. `None` if that is no longer known.
    pub(super) fn list_at(
        &self,
        resource: &ApiResource,
        namespace: Option<&str>,
        version: u64,
    ) -> Option<Vec<(ObjectKey, Arc<Value>)>> {
        let mut then: BTreeMap<ObjectKey, Arc<Value>> =
            self.list(resource, namespace).map(|(key, is)| (key.clone(), Arc::clone(is))).collect();
        let is_meant = |happened: &&Happened| {
            happened.key.is_of(resource)
                && namespace.is_none_or(|wanted| happened.key.namespace == wanted)
        };
        let after: Vec<&Happened> = self.since(version)?.filter(is_meant).collect();
        for happened in after.into_iter().rev() {
            match &happened.before {
                Some(before) => then.insert(happened.key.clone(), Arc::clone(before)),
                None => then.remove(&happened.key),
            };
        }
        Some(then.into_iter().collect())
    }
}
