//! What an hour of a target costs, by a table that a person keeps in the settings; the program knows none.

use serde_json::{Map, Value};

use super::read::{self, DataError, Json, Path};
use super::target::Pricing;

/// Reads the table: `{"v4-8": 3.2, "v5litepod": {"on-demand": 1.2, "spot": 0.5}}`, per hour of a target of
/// that type, or of one chip of that family.
pub(super) fn read(value: Json<'_>, path: &Path<'_>) -> Result<Map<String, Value>, DataError> {
    if value.is_null() {
        return Ok(Map::new());
    }
    let table = read::object(value, path)?;
    let is_price = |value: &Value| value.as_f64().is_some_and(|price| price >= 0.0);
    for (name, price) in &table {
        let path = Path::Key(path, name);
        let by_pricing = price.as_object().is_some_and(|prices| {
            prices.iter().all(|(key, price)| Pricing::parse(key).is_some() && is_price(price))
        });
        let by_region = name == EGRESS
            && price.as_object().is_some_and(|regions| regions.values().all(is_price));
        if !is_price(price) && !by_pricing && !by_region {
            let wanted = "a price per hour, or one for each of on-demand, preemptible, spot";
            return Err(path.error(wanted, Some(Json::new(&price.to_string()))));
        }
    }
    Ok(table)
}

/// What the settings say that things cost.
pub type Prices = Map<String, Value>;

/// What an hour of a target costs; `None` if the table does not say.
pub fn per_hour(
    table: &Prices,
    (accelerator, chips): (&str, Option<u32>),
    pricing: Pricing,
) -> Option<f64> {
    let of = |name: &str| {
        let price = table.get(name)?;
        price.as_f64().or_else(|| price.get(pricing.as_str())?.as_f64())
    };
    let by_chip = || {
        let (family, _) = accelerator.rsplit_once('-')?;
        Some(of(family)? * f64::from(chips?))
    };
    of(accelerator).or_else(by_chip)
}

/// What a gigabyte costs that leaves a region: `"egress": 0.08`, or one price for each region; `None` if the table does not
/// say.
pub fn egress_per_gb(table: &Prices, region: &str) -> Option<f64> {
    let price = table.get(EGRESS)?;
    price.as_f64().or_else(|| price.get(region.to_ascii_lowercase())?.as_f64())
}

/// The name under which the table has the price of a gigabyte.
const EGRESS: &str = "egress";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_type_comes_before_its_family_and_what_is_not_there_is_not_known() {
        let table = json!({
            "v4-8": 3.5, "v4": {"on-demand": 2.0, "spot": 0.5}, "v2": 1,
        });
        let table = read(Json::new(&table.to_string()), &Path::Root).unwrap();
        let price = |accelerator, chips, pricing| per_hour(&table, (accelerator, chips), pricing);
        assert_eq!(price("v4-8", Some(4), Pricing::Spot), Some(3.5));
        assert_eq!(price("v4-16", Some(8), Pricing::Spot), Some(4.0));
        assert_eq!(price("v4-16", Some(8), Pricing::Preemptible), None);
        assert_eq!(price("v2-8", Some(4), Pricing::OnDemand), Some(4.0));
        assert_eq!(price("v2-8", None, Pricing::OnDemand), None);
        assert_eq!(price("gpu", Some(1), Pricing::OnDemand), None);
    }

    #[test]
    fn a_gigabyte_has_one_price_or_one_for_each_region() {
        let price = |table: &Value, region| {
            let table = read(Json::new(&table.to_string()), &Path::Root).unwrap();
            egress_per_gb(&table, region)
        };
        assert_eq!(price(&json!({"egress": 0.5}), "us-east1"), Some(0.5));
        let by_region = json!({"egress": {"us-east1": 0.2}});
        assert_eq!(price(&by_region, "US-EAST1"), Some(0.2));
        assert_eq!(price(&by_region, "us-west1"), None);
        assert_eq!(price(&json!({}), "us-east1"), None);
    }

    #[test]
    fn what_is_no_price_is_refused() {
        for wrong in [
            json!({"v4": "cheap"}),
            json!({"v4": -1}),
            json!({"v4": {"monthly": 3}}),
            json!({"v4": {"spot": null}}),
            json!([1]),
        ] {
            assert!(read(Json::new(&wrong.to_string()), &Path::Root).is_err(), "{wrong}");
        }
    }
}
