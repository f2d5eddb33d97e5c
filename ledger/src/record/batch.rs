//! Many runs in one call and one durable commit: folders are read, hashed and compressed on all cores
//! while the ones before them are stored.

use super::commit::{Batch, Prepared, prepare};
use super::{Planned, RecordError, RecordRequest, Recorded, Refusal, Surroundings, plan};
use crate::store::{Access, Store};
use rayon::prelude::*;
use std::collections::HashSet;
use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};

/// Folders that are planned together; bounds memory, since their files are held until compressed.
const CHUNK: usize = 16;

enum Message {
    Runs(Vec<Prepared>),
    Refused(Refusal),
    Failed(RecordError),
}

/// Records all requests in one transaction: all of them, or none and every refusal.
///
/// # Errors
/// The first file that cannot be read, or what the store says; nothing was stored.
pub fn record_batch(
    store: &mut Store,
    requests: &[RecordRequest],
    surroundings: &Surroundings<'_>,
    advance: &(dyn Fn(u64) + Sync),
) -> Result<Result<Vec<Recorded>, Vec<Refusal>>, RecordError> {
    let folder = store.folder().to_owned();
    std::thread::scope(|scope| {
        let (send, receive) = sync_channel(1);
        scope.spawn(move || produce(&folder, requests, surroundings, advance, &send));
        let mut batch = Batch::begin(store)?;
        for planned in receive {
            match planned {
                Message::Runs(runs) => batch.add(runs)?,
                Message::Refused(refusal) => batch.refuse(refusal),
                Message::Failed(error) => return Err(error),
            }
        }
        Ok(batch.finish()?)
    })
}

/// Plans chunk after chunk. A receiver that is gone has failed, and says why itself.
fn produce(
    folder: &Path,
    requests: &[RecordRequest],
    surroundings: &Surroundings<'_>,
    advance: &(dyn Fn(u64) + Sync),
    send: &SyncSender<Message>,
) {
    let mut seen = HashSet::new();
    let store = match Store::open(folder, Access::Read) {
        Ok(store) => store,
        Err(error) => {
            let _gone = send.send(Message::Failed(error.into()));
            return;
        }
    };
    for chunk in requests.chunks(CHUNK) {
        let outcomes: Vec<Result<Planned, RecordError>> = chunk
            .par_iter()
            .map_init(
                || Store::open(folder, Access::Read),
                |own, request| {
                    plan(request, surroundings, own.as_ref().ok(), &mut |bytes| advance(bytes))
                },
            )
            .collect();
        let mut plans = Vec::with_capacity(outcomes.len());
        for outcome in outcomes {
            let message = match outcome {
                Ok(plan) => {
                    plans.push(plan);
                    continue;
                }
                Err(RecordError::Refused(refusal)) => Message::Refused(refusal),
                Err(error) => Message::Failed(error),
            };
            if send.send(message).is_err() {
                return;
            }
        }
        let message = match prepare(&store, plans, &mut seen) {
            Ok(runs) => Message::Runs(runs),
            Err(error) => Message::Failed(error.into()),
        };
        if send.send(message).is_err() {
            return;
        }
    }
}
