//! The one integration binary: it runs `ledger` as a user does. Each module is listed here;
//! `tidy.rs` fails when one is forgotten.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    reason = "a test that cannot go on must fail"
)]
#![expect(unreachable_pub, reason = "tests are no interface")]

mod amend;
mod capabilities;
mod cases;
mod concurrency;
mod crash;
mod ids;
mod import;
mod layers;
mod real_files;
mod record;
mod refuse;
mod sandbox;
mod tamper;
mod tidy;
mod views;
