//! What the listener sees, by what it can read when it is called. Calls may come in any number;
//! what counts is that one comes after the change is there to be read.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

use lab_testkit::Random;
use tempfile::TempDir;

use super::*;

/// Longer than any machine takes; only a failing test waits for it.
const PATIENCE: Duration = Duration::from_secs(60);

type Contents = BTreeMap<String, String>;

fn read(dir: &Path) -> Contents {
    let mut contents = Contents::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(dir).unwrap().display().to_string();
                contents.insert(name, fs::read_to_string(&path).unwrap_or_default());
            }
        }
    }
    contents
}

struct WatchedFolder {
    dir: PathBuf,
    calls: Receiver<(Changed, Contents)>,
    watch: Watch,
}

impl WatchedFolder {
    fn start(dir: &Path) -> Self {
        let (call, calls) = channel();
        let read_from = dir.to_owned();
        let watch = Watch::start(dir, false, Arc::default(), move |changed| {
            let _ = call.send((changed, read(&read_from)));
        });
        Self {
            dir: dir.to_owned(),
            calls,
            watch: watch.unwrap(),
        }
    }

    /// Waits for a call that sees the folder as it is now, and returns the changes of all calls
    /// until then.
    fn wait(&self, why: &str) -> Vec<Changed> {
        let now = read(&self.dir);
        let mut said = Vec::new();
        loop {
            let (changed, seen) = match self.calls.recv_timeout(PATIENCE) {
                Ok(call) => call,
                Err(error) => panic!("{why}: {error}; {said:?}"),
            };
            said.push(changed);
            if seen == now {
                return said;
            }
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }
}

/// On disk, because the tests replace and move files and folders.
fn site() -> (TempDir, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("site");
    fs::create_dir_all(dir.join("pages")).unwrap();
    fs::write(dir.join("pages/index.html"), "first").unwrap();
    (temp, dir)
}

#[test]
fn files_written_made_renamed_and_removed() {
    let (_temp, dir) = site();
    let site = WatchedFolder::start(&dir);
    fs::write(site.path("pages/index.html"), "second").unwrap();
    let said = site.wait("written");
    assert!(!said.contains(&Changed::Rescan), "{said:?}");
    fs::write(site.path("new.html"), "new").unwrap();
    site.wait("made");
    fs::rename(site.path("new.html"), site.path("pages/old.html")).unwrap();
    site.wait("renamed");
    fs::write(site.path("pages/.index.html.tmp"), "third").unwrap();
    fs::rename(
        site.path("pages/.index.html.tmp"),
        site.path("pages/index.html"),
    )
    .unwrap();
    site.wait("saved by a rename");
    fs::remove_file(site.path("pages/old.html")).unwrap();
    site.wait("removed");
}

#[test]
fn rights() {
    let (_temp, dir) = site();
    let site = WatchedFolder::start(&dir);
    let mode = fs::Permissions::from_mode(0o600);
    fs::set_permissions(site.path("pages/index.html"), mode).unwrap();
    assert_eq!(site.wait("chmod"), [Changed::Some]);
}

#[test]
fn folders_that_come_later_are_watched() {
    let (temp, dir) = site();
    let site = WatchedFolder::start(&dir);
    fs::create_dir_all(site.path("a/b/c")).unwrap();
    fs::write(site.path("a/b/c/x"), "1").unwrap();
    site.wait("a file in new folders");
    fs::write(site.path("a/b/c/x"), "2").unwrap();
    site.wait("a file in new folders again");

    let outside = temp.path().join("outside/deep");
    fs::create_dir_all(&outside).unwrap();
    fs::write(outside.join("y"), "1").unwrap();
    fs::rename(temp.path().join("outside"), site.path("moved")).unwrap();
    site.wait("a folder moved in");
    fs::write(site.path("moved/deep/y"), "2").unwrap();
    site.wait("a file in the folder that was moved in");

    fs::rename(site.path("moved"), site.path("again")).unwrap();
    site.wait("renamed");
    fs::write(site.path("again/deep/y"), "3").unwrap();
    site.wait("a file in the renamed folder");

    for round in 0..5 {
        fs::remove_dir_all(site.path("a")).unwrap();
        fs::create_dir_all(site.path("a/b")).unwrap();
        fs::write(site.path("a/b/x"), format!("{round}")).unwrap();
        site.wait("a folder in place of another");
        fs::write(site.path("a/b/x"), format!("{round} again")).unwrap();
        site.wait("a file in it");
    }
}

/// Folders made, moved and removed faster than they can be watched: in the end each one that is
/// left is.
#[test]
fn after_any_turmoil_every_folder_is_watched() {
    let (_temp, dir) = site();
    let site = WatchedFolder::start(&dir);
    for seed in 1..=8_u64 {
        let mut random = Random::new(seed);
        for _ in 0..200 {
            let mut folder = || {
                let depth = random.below(3) + 1;
                (0..depth).fold(dir.clone(), |path, _| {
                    path.join(random.below(3).to_string())
                })
            };
            let (one, other) = (folder(), folder());
            // Many fail, since what they name is not there; that is part of it.
            let _ = match random.below(4) {
                0 => fs::remove_dir_all(one),
                1 => fs::rename(one, other),
                _ => fs::create_dir_all(one),
            };
        }
        let mut folders = vec![dir.clone()];
        while let Some(folder) = folders.pop() {
            let entries = fs::read_dir(&folder)
                .unwrap()
                .map(|entry| entry.unwrap().path());
            folders.extend(entries.filter(|path| path.is_dir()));
            fs::write(folder.join("x"), format!("{seed}")).unwrap();
            let said = site.wait(&format!("seed {seed}, {}", folder.display()));
            assert!(!said.contains(&Changed::Rescan), "{said:?}");
        }
    }
}

#[test]
fn a_link_to_a_folder_is_followed_and_a_circle_ends() {
    let (temp, dir) = site();
    let shared = temp.path().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::write(shared.join("layout.html"), "1").unwrap();
    symlink(&shared, dir.join("templates")).unwrap();
    let (tell, calls) = channel();
    symlink(&dir, shared.join("circle")).unwrap();
    let _watch = Watch::start(&dir, false, Arc::default(), move |_| {
        let _ = tell.send(());
    });
    fs::write(shared.join("layout.html"), "2").unwrap();
    calls.recv_timeout(PATIENCE).unwrap();
}

#[test]
fn a_linked_site_and_the_link_set_to_another() {
    let (temp, dir) = site();
    let link = temp.path().join("current");
    symlink(&dir, &link).unwrap();
    let site = WatchedFolder::start(&link);
    fs::write(dir.join("pages/index.html"), "second").unwrap();
    let said = site.wait("written behind the link");
    assert!(!said.contains(&Changed::Rescan), "{said:?}");

    let next = temp.path().join("next");
    fs::create_dir(&next).unwrap();
    fs::write(next.join("x"), "1").unwrap();
    symlink(&next, temp.path().join("new")).unwrap();
    fs::rename(temp.path().join("new"), &link).unwrap();
    assert_eq!(site.wait("the next release").last(), Some(&Changed::Rescan));
    fs::write(next.join("x"), "2").unwrap();
    site.wait("written in the next release");
}

#[test]
fn a_site_that_goes_and_comes_back() {
    let (temp, dir) = site();
    let site = WatchedFolder::start(&dir);
    fs::rename(&dir, temp.path().join("away")).unwrap();
    site.wait("gone");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("x"), "1").unwrap();
    assert_eq!(site.wait("back").last(), Some(&Changed::Rescan));
    fs::write(dir.join("x"), "2").unwrap();
    site.wait("written after it came back");
}

#[test]
fn lost_events_are_a_rescan_and_the_watch_goes_on() {
    let (_temp, dir) = site();
    let site = WatchedFolder::start(&dir);
    site.watch.shared.note(Meaning::Lost);
    assert_eq!(site.wait("lost"), [Changed::Rescan]);
    fs::write(site.path("pages/index.html"), "second").unwrap();
    site.wait("after the rescan");
}

#[test]
fn a_panic_of_the_listener_does_not_end_the_watch() {
    let (_temp, dir) = site();
    let (tell, calls) = channel();
    let watch = Watch::start(&dir, false, Arc::default(), move |_| {
        let _ = tell.send(());
        std::panic::resume_unwind(Box::new("the listener"));
    })
    .unwrap();
    for _ in 0..2 {
        watch.shared.note(Meaning::Data);
        calls.recv_timeout(PATIENCE).unwrap();
    }
}

#[test]
fn dropping_ends_it() {
    let (_temp, dir) = site();
    let WatchedFolder { calls, watch, .. } = WatchedFolder::start(&dir);
    watch.shared.note(Meaning::Data);
    drop(watch);
    // The listener is dropped with the thread; at most one call was under way.
    let calls = std::iter::from_fn(|| match calls.recv_timeout(PATIENCE) {
        Ok(call) => Some(call),
        Err(RecvTimeoutError::Disconnected) => None,
        Err(RecvTimeoutError::Timeout) => panic!("the thread goes on"),
    });
    assert!(calls.count() <= 1);
}

#[test]
fn a_burst_is_one_call() {
    let shared = WatchShared::default();
    for _ in 0..1000 {
        shared.note(Meaning::Data);
    }
    shared.note(Meaning::Names);
    shared.note(Meaning::Data);
    assert!(matches!(
        shared.next(),
        FollowerAction::Burst(Meaning::Names)
    ));
    assert!(shared.pending.lock().span.is_none());
}

#[test]
fn endless_events_are_reported_in_time() {
    let shared = WatchShared::default();
    let now = Boottime::now();
    let begun = Boottime::from_nanos(now.as_nanos() - DELAY_LIMIT.as_nanos() as u64);
    // The last event is in the future: only the limit can end the burst.
    *shared.pending.lock() = PendingChanges {
        span: Some((begun, now.plus(PATIENCE * 10))),
        meaning: Some(Meaning::Data),
        stopped: false,
    };
    assert!(matches!(
        shared.next(),
        FollowerAction::Burst(Meaning::Data)
    ));
}

#[test]
fn reading_and_the_databases_own_files_make_no_event() {
    let (_temp, dir) = site();
    let ignored = ["site.db", "site.db-wal", "site.db-shm", "access.log"];
    fs::create_dir(dir.join(".git")).unwrap();
    for name in ignored.into_iter().chain([".git/index"]) {
        fs::write(dir.join(name), "1").unwrap();
    }
    let (tell, meanings) = channel();
    let _tree = Tree::plant(&dir, false, Arc::default(), move |meaning| {
        let _ = tell.send(meaning);
    })
    .unwrap();
    let first = || meanings.recv_timeout(PATIENCE).unwrap();

    read(&dir);
    for name in ignored.into_iter().chain([".git/index"]) {
        fs::write(dir.join(name), "2").unwrap();
    }
    // Of another meaning than a write, so that it is known to be the first.
    fs::create_dir(dir.join("sentinel")).unwrap();
    assert_eq!(first(), Meaning::Names);

    fs::remove_file(dir.join("site.db-wal")).unwrap();
    fs::write(dir.join("site.db-journal"), "3").unwrap();
    fs::rename(dir.join("access.log"), dir.join("access.log.1")).unwrap();
    fs::create_dir(dir.join(".git/objects")).unwrap();
    fs::write(dir.join("pages/index.html"), "second").unwrap();
    assert_eq!(first(), Meaning::Data);
}
