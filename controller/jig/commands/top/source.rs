//! Where the view comes from: files of this host, or a rig elsewhere that is asked once a second.
//!
//! # Design
//! *Keys never wait for a network.* A rig elsewhere is asked by a task of its own, and the view takes what
//! has come by then. While there is no answer, it says so and shows what it knew.

use std::time::{Duration, Instant};

use jig_lab::{Catalogue, RigQuery, RigSnapshot, RigView, SnapshotReader};
use jig_model::{Fault, PlaceName};
use jig_service::client::RemoteRig;
use tokio::runtime::Builder;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use super::model::TopModel;
use crate::args::Common;
use crate::commands::execute::unexpected;
use crate::commands::serve::RigWatch;
use crate::failure::Failure;

/// Interval of the looks at the rig.
const LOOK: Duration = Duration::from_secs(1);

/// How long a rig elsewhere may be silent before the view says so: a few looks.
const SILENCE: Duration = Duration::from_secs(3);

/// Where the view comes from.
pub(super) enum TopSource {
    Here(Box<OwnRig>),
    There(RigFeed),
}

/// The files of this host.
pub(super) struct OwnRig {
    common: Common,
    catalogue: Catalogue,
    reader: SnapshotReader,
    rig_files: RigWatch,
    looked: Instant,
}

/// What a rig elsewhere tells.
pub(super) struct RigFeed {
    host: String,
    news: mpsc::Receiver<Result<RigNews, Failure>>,
    /// The place whose console is read; all places are if none.
    wanted: watch::Sender<Option<PlaceName>>,
    heard: Instant,
    /// Seconds without an answer that the view tells of.
    silent: u64,
}

enum RigNews {
    Places(RigSnapshot),
    Console(PlaceName, Vec<String>),
}

impl TopSource {
    /// Takes the first look. Call within a runtime, which the rig elsewhere is asked from.
    pub(super) async fn open(
        common: &Common,
        rig: Option<RemoteRig>,
    ) -> Result<(Self, RigSnapshot), Failure> {
        let Some(rig) = rig else {
            let catalogue = Catalogue::load(&common.lab()?)?;
            let mut reader = SnapshotReader::default();
            let (rig_files, snapshot) = (RigWatch::of(common), reader.read(&catalogue));
            let (common, looked) = (common.clone(), Instant::now());
            let here = OwnRig { common, catalogue, reader, rig_files, looked };
            return Ok((Self::Here(Box::new(here)), snapshot));
        };
        let RigView::Places(snapshot) = rig.view(RigQuery::Places).await? else {
            return Err(unexpected());
        };
        let host = rig.host();
        let ((wanted, asked), (told, news)) = (watch::channel(None), mpsc::channel(1));
        // Ends with the view, which drops the other ends. It may be later than the verb's runtime, of which
        // no timer can be set any more then, so it has its own.
        let own = Builder::new_current_thread().enable_all().build();
        let own = own.map_err(|error| Failure::of(Fault::Bug, &error))?;
        tokio::task::spawn_blocking(move || own.block_on(feed(rig, asked, told)));
        let there = RigFeed { host, news, wanted, heard: Instant::now(), silent: 0 };
        Ok((Self::There(there), snapshot))
    }

    /// Returns how long there will be nothing new.
    pub(super) fn rests(&self) -> Duration {
        match self {
            Self::Here(here) => LOOK.saturating_sub(here.looked.elapsed()),
            Self::There(_) => LOOK,
        }
    }

    /// Takes in what is new, if it is time; tells whether the view differs.
    pub(super) fn look(&mut self, model: &mut TopModel) -> Result<bool, Failure> {
        match self {
            Self::Here(here) if here.looked.elapsed() < LOOK => Ok(false),
            Self::Here(here) => {
                if here.rig_files.has_changed(&here.common)
                    // A broken file leaves the places that were known; `jig profile check` tells.
                    && let Ok(catalogue) = Catalogue::load(&here.common.own_lab())
                {
                    here.catalogue = catalogue;
                }
                here.looked = Instant::now();
                Ok(here.read(model))
            }
            Self::There(there) => there.take_in(model),
        }
    }

    /// Reads what a key has asked for.
    pub(super) fn read(&mut self, model: &mut TopModel) {
        match self {
            Self::Here(here) => drop(here.read(model)),
            Self::There(there) => there.ask(model),
        }
    }
}

impl OwnRig {
    fn read(&mut self, model: &mut TopModel) -> bool {
        let Self { reader, catalogue, .. } = self;
        match model.console.as_ref().map(|console| console.place.clone()) {
            Some(place) => {
                let lines = reader.console(catalogue, &place);
                model.take_console(&place, lines)
            }
            None => model.take_places(reader.read(catalogue)),
        }
    }
}

impl RigFeed {
    fn ask(&self, model: &TopModel) {
        let place = model.console.as_ref().map(|console| &console.place);
        self.wanted.send_if_modified(|wanted| {
            let differs = wanted.as_ref() != place;
            if differs {
                *wanted = place.cloned();
            }
            differs
        });
    }

    fn take_in(&mut self, model: &mut TopModel) -> Result<bool, Failure> {
        self.ask(model);
        let mut changed = false;
        loop {
            match self.news.try_recv() {
                Ok(news) => {
                    (self.heard, self.silent) = (Instant::now(), 0);
                    changed |= match news? {
                        RigNews::Places(snapshot) => model.take_places(snapshot),
                        RigNews::Console(place, lines) => model.take_console(&place, lines),
                    };
                }
                Err(mpsc::error::TryRecvError::Empty) => break,
                // It tells why before it ends.
                Err(mpsc::error::TryRecvError::Disconnected) => return Err(unexpected()),
            }
        }
        let silent = self.heard.elapsed();
        if silent >= SILENCE && silent.as_secs() != self.silent {
            self.silent = silent.as_secs();
            let words = format!("no answer from {} for {} s", self.host, self.silent);
            model.snapshot.missing = vec![words];
            changed = true;
        }
        Ok(changed)
    }
}

/// Asks the rig until it does not answer any more, or the view has ended.
async fn feed(
    rig: RemoteRig,
    mut asked: watch::Receiver<Option<PlaceName>>,
    told: mpsc::Sender<Result<RigNews, Failure>>,
) {
    loop {
        tokio::select! {
            () = sleep(LOOK) => {}
            // At once for the console that is opened.
            changed = asked.changed() => if changed.is_err() { return },
            () = told.closed() => return,
        }
        let place = asked.borrow_and_update().clone();
        let query = match place.clone() {
            Some(place) => RigQuery::Tail { place },
            None => RigQuery::Places,
        };
        let news = tokio::select! {
            seen = rig.view(query) => match (seen, place) {
                (Ok(RigView::Places(snapshot)), _) => Ok(RigNews::Places(snapshot)),
                (Ok(RigView::Tail(lines)), Some(place)) => Ok(RigNews::Console(place, lines)),
                (Ok(_), _) => Err(unexpected()),
                (Err(error), _) => Err(Failure::from(error)),
            },
            () = told.closed() => return,
        };
        let ends = news.is_err();
        if told.send(news).await.is_err() || ends {
            return;
        }
    }
}
