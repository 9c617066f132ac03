//! The setting `checkpoint_copy`: where the checkpoints of one lab lie, region by region.
//!
//! `{"us-central1": "gs://lab-us/logs", "europe-west4": "gs://lab-eu/logs", "here": "/nfs/logs"}`: what lies below one of
//! these places has its copy under the same path below another one. A word that is no region is a place that is near none.

use serde_json::{Map, Value};

use super::bucket::BucketPlace;
use super::objects::StoragePlace;
use super::read::{self, DataError, Json, Path};

/// Reads the table; each value is an address of a bucket or a whole path.
pub(super) fn read(value: Json<'_>, path: &Path<'_>) -> Result<Map<String, Value>, DataError> {
    if value.is_null() {
        return Ok(Map::new());
    }
    let table = read::object(value, path)?;
    for (region, place) in &table {
        let path = Path::Key(path, region);
        let text = place.as_str().unwrap_or_default();
        let is_whole = |place: StoragePlace| match place {
            StoragePlace::Directory(dir) => dir.is_absolute(),
            StoragePlace::Bucket(_) => true,
        };
        if !StoragePlace::parse(text).is_ok_and(is_whole) {
            let wanted = "gs://BUCKET/PREFIX, or a path that begins with /";
            return Err(path.error(wanted, Some(Json::new(&place.to_string()))));
        }
    }
    Ok(table)
}

/// A place and the region that it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionPlace {
    /// The region, or another word.
    pub region: String,
    /// The place.
    pub place: StoragePlace,
}

impl RegionPlace {
    /// Whether it is where a zone is. Its word may be a zone itself: then it is near all zones of that one's region.
    pub fn is_near(&self, zone: &str) -> bool {
        let is_at = |location: &str| {
            let place = BucketPlace { location: location.to_owned(), ..BucketPlace::default() };
            place.is_near(zone) == Some(true)
        };
        let region = self.region.rsplit_once('-').filter(|(_, letter)| letter.len() == 1);
        is_at(&self.region) || region.is_some_and(|(region, _)| is_at(region))
    }
}

/// The places of the setting, in its order.
pub fn places(table: &Map<String, Value>) -> Vec<RegionPlace> {
    let read = |(region, place): (&String, &Value)| {
        let place = StoragePlace::parse(place.as_str()?).ok()?;
        Some(RegionPlace { region: region.clone(), place })
    };
    table.iter().filter_map(read).collect()
}

/// The place for a zone, or for a region that is named itself.
pub fn for_zone<'a>(places: &'a [RegionPlace], zone: &str) -> Option<&'a RegionPlace> {
    let named = places.iter().find(|one| one.region.eq_ignore_ascii_case(zone));
    named.or_else(|| places.iter().find(|one| one.is_near(zone)))
}

/// The place below which another one lies, and the path from there.
pub fn above<'a>(
    places: &'a [RegionPlace],
    whole: &StoragePlace,
) -> Option<(&'a RegionPlace, String)> {
    places.iter().find_map(|one| Some((one, one.place.below(whole)?)))
}

/// Where what lies at a place has its copies: under the same path below each place, its own among them; none where it is
/// below none.
pub fn counterparts(places: &[RegionPlace], whole: &StoragePlace) -> Vec<StoragePlace> {
    let below = above(places, whole).map(|(_, below)| below);
    below.iter().flat_map(|below| places.iter().map(|one| one.place.join(below))).collect()
}

/// The place to which what lies below `root` goes for a job in a zone: `None` where `root` serves that zone already.
pub fn other_for_zone<'a>(
    places: &'a [RegionPlace],
    root: &RegionPlace,
    zone: &str,
) -> Option<&'a RegionPlace> {
    let is_named = |one: &RegionPlace| one.region.eq_ignore_ascii_case(zone);
    let there = for_zone(places, zone)?;
    (there != root && (!root.is_near(zone) || is_named(there))).then_some(there)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_zone_has_the_place_of_its_region_and_a_path_its_counterpart() {
        let table = json!({
            "us-central1": "gs://lab-us/logs", "EU": "gs://lab-eu/logs", "here": "/nfs/logs",
        });
        let table = read(Json::new(&table.to_string()), &Path::Root).unwrap();
        let places = places(&table);
        let of = |zone: &str| for_zone(&places, zone).map(|one| one.place.to_string());
        assert_eq!(of("us-central1-a").as_deref(), Some("gs://lab-us/logs"));
        assert_eq!(of("europe-west4-b").as_deref(), Some("gs://lab-eu/logs"));
        assert_eq!(of("here").as_deref(), Some("/nfs/logs"));
        assert_eq!(of("us-east5-b"), None);
        let whole = StoragePlace::parse("/nfs/logs/a/b").unwrap();
        let (root, below) = above(&places, &whole).unwrap();
        assert_eq!((root.region.as_str(), below.as_str()), ("here", "a/b"));
        let copies =
            counterparts(&places, &whole).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(copies, ["gs://lab-us/logs/a/b", "gs://lab-eu/logs/a/b", "/nfs/logs/a/b"]);
        assert!(counterparts(&places, &StoragePlace::parse("/other").unwrap()).is_empty());
        for wrong in [json!({"us": "logs"}), json!({"us": "gs://"}), json!({"us": 1}), json!([1])] {
            assert!(read(Json::new(&wrong.to_string()), &Path::Root).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_zone_may_name_a_place_itself() {
        let table = json!({
            "us-central1-a": "gs://lab-a/logs", "us-central1-b": "gs://lab-b/logs",
            "europe-west4-a": "gs://lab-eu/logs",
        });
        let table = read(Json::new(&table.to_string()), &Path::Root).unwrap();
        let all = places(&table);
        let [a, b, eu] = all.as_slice() else { panic!("{all:?}") };
        let other = |root: &RegionPlace, zone: &str| {
            other_for_zone(&all, root, zone).map(|one| one.region.clone())
        };
        assert_eq!(other(a, "us-central1-a"), None);
        assert_eq!(other(a, "us-central1-b").as_deref(), Some("us-central1-b"), "it is named");
        assert_eq!(other(b, "us-central1-f"), None, "in the same region, and none is named");
        assert_eq!(other(b, "europe-west4-b").as_deref(), Some("europe-west4-a"));
        assert_eq!(other(eu, "asia-east1-a"), None);
    }
}
