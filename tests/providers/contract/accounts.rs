//! Quotas and bills: what the simulator knows of itself and what the API says of it are the same.

use tpu_core::model::billing::{BillingQuery, BillingTable, ChargeBy, Month};
use tpu_engine::provider::Trouble;
use tpu_lab::sim::{AccountChange, BillLine, Call, Event};

use super::{World, ZONE, each, worlds};

fn change(world: &dyn World, change: AccountChange) {
    world.pull(Event::Account { change });
}

fn bill(day: &str, cost: f64) -> AccountChange {
    AccountChange::Bill(BillLine {
        table: "lab.billing.t".to_owned(),
        day: day.to_owned(),
        service: "Cloud TPU".to_owned(),
        sku: "v4".to_owned(),
        project: None,
        cost,
        credits: -cost / 8.0,
        currency: None,
    })
}

fn october(by: ChargeBy) -> BillingQuery {
    let table = BillingTable::parse("lab.billing.t").unwrap();
    BillingQuery { table, month: Month::parse("2026-10").unwrap(), by }
}

#[test]
fn quotas_are_the_same_from_inside_and_through_the_api() {
    let [inside, through] = worlds().try_into().ok().unwrap();
    for world in [&inside, &through] {
        // What the seed grants first, then what somebody sets.
        assert!(world.cloud().quota().unwrap().rows.len() > 10);
        for (quota, location, limit, used) in [
            ("TPUV2sPreemptiblePodPerProjectPerZoneForTPUAPI", ZONE, 256, 0),
            ("TPUV4sPodPerProjectPerZoneForTPUAPI", ZONE, 0, 0),
            ("IN_USE_ADDRESSES", "zone", 575, 7),
            ("INSTANCES", "global", -1, 2),
        ] {
            let (quota, location) = (quota.to_owned(), location.to_owned());
            change(&**world, AccountChange::Limit { quota, location, limit, used });
        }
    }
    let sorted = |world: &dyn World| {
        let report = world.cloud().quota().unwrap();
        assert_eq!(report.unknown, []);
        let mut rows: Vec<_> =
            report.rows.into_iter().map(|row| (row.zone, row.kind, row.used, row.limit)).collect();
        rows.sort();
        rows
    };
    let row = |zone: &str, kind: &str, used, limit| (zone.to_owned(), kind.to_owned(), used, limit);
    let expected = [
        row("global", "instances", Some(2), None),
        // The one target there has four workers.
        row("zone", "in-use-addresses", Some(11), Some(575)),
        row(ZONE, "v2-pod-preemptible", Some(32), Some(256)),
        row(ZONE, "v4", Some(0), Some(0)),
    ];
    assert_eq!(sorted(&*inside), expected);
    assert_eq!(sorted(&*through), expected);
}

#[test]
fn bills_are_the_same_from_inside_and_through_the_api() {
    each(|world| {
        let missing = world.cloud().charges(&october(ChargeBy::Service)).unwrap_err();
        assert_eq!(missing.trouble, Trouble::NotFound);
        for (day, cost) in [("2026-09-30", 1.0), ("2026-10-31", 80.8), ("2026-11-01", 3.0)] {
            change(world, bill(day, cost));
        }
        for (by, category) in
            [(ChargeBy::Service, "Cloud TPU"), (ChargeBy::Sku, "v4"), (ChargeBy::Project, "-")]
        {
            let charges = world.cloud().charges(&october(by)).unwrap();
            let [only] = charges.as_slice() else { panic!("{charges:?}") };
            assert_eq!((only.day.as_str(), only.category.as_str()), ("2026-10-31", category));
            assert!((only.cost - 80.8).abs() < 1e-9 && (only.credits + 10.1).abs() < 1e-9);
        }
        let class = Trouble::Permission;
        let (call, times) = (Some(Call::Query), Some(1));
        world.pull(Event::Error { class, call, target: None, zone: None, times, for_s: None });
        let denied = world.cloud().charges(&october(ChargeBy::Sku)).unwrap_err();
        assert_eq!(denied.trouble, Trouble::Permission);
    });
}
