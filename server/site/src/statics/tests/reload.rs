//! A folder that is loaded again takes over exactly what has not changed.

use super::super::plain::Plain;
use super::super::stamp::Stamp;
use super::*;

#[test]
fn what_is_the_same_is_taken_over() {
    let temp = folder(&[("same", b"same"), ("changed", b"before"), ("fresh", b"1")]);
    write(&temp, "fresh", b"2");
    let before = load(&temp, None);
    let settled = |path| before.find(path).unwrap().loaded.settled;
    assert!(settled("/same") && !settled("/fresh"));
    write(&temp, "changed", b"after!");
    write(&temp, "new", b"new");
    let after = load(&temp, Some(&before));
    let is_same = |path| Arc::ptr_eq(prepared(&before, path), prepared(&after, path));
    assert!(is_same("/same") && is_same("/fresh") && !is_same("/changed"));
    assert_eq!(content(&after, "/changed").unwrap(), b"after!");
    assert_eq!((before.len(), after.len()), (3, 4));
    assert_eq!(content(&before, "/changed").unwrap(), b"before");
    fs::remove_file(temp.path().join("static/same")).unwrap();
    assert!(load(&temp, Some(&after)).find("/same").is_none());
}

#[test]
fn a_settled_file_is_not_read_again() {
    let temp = folder(&[("x", b"x")]);
    let before = load(&temp, None);
    // The loaded content is made to differ from the file: only a read of the file would show the
    // file's content.
    let mut other = Statics::default();
    let mut file = before.find("/x").unwrap().clone();
    let elsewhere = folder(&[("x", b"y")]);
    let elsewhere = load(&elsewhere, None);
    let other_plain = &elsewhere.find("/x").unwrap().loaded.plain;
    file.loaded.plain = Arc::new(Plain {
        stamp: file.loaded.plain.stamp,
        media: other_plain.media.clone(),
        source: ContentSource::Copy(Arc::clone(other_plain.prepared().unwrap())),
    });
    other.files.insert("/x".to_owned(), file);
    assert_eq!(content(&load(&temp, Some(&other)), "/x").unwrap(), b"y");
}

#[test]
fn a_write_that_left_the_same_times_is_noticed() {
    let temp = folder(&[]);
    write(&temp, "x", b"one");
    let mut before = load(&temp, None);
    // The same size and, as far as the file system can show, the same time.
    write(&temp, "x", b"two");
    let file = File::open(temp.path().join("static/x")).unwrap();
    let loaded = &mut before.files.get_mut("/x").unwrap().loaded;
    loaded.plain = Arc::new(Plain {
        stamp: Stamp::of(&file.metadata().unwrap()),
        media: loaded.plain.media.clone(),
        source: ContentSource::Copy(Arc::clone(loaded.plain.prepared().unwrap())),
    });
    assert_eq!(content(&load(&temp, Some(&before)), "/x").unwrap(), b"two");
}

#[test]
fn times_set_back_do_not_hide_a_change() {
    let temp = folder(&[("x", b"one")]);
    let before = load(&temp, None);
    let path = temp.path().join("static/x");
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    fs::write(&path, "two").unwrap();
    File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_modified(time)
        .unwrap();
    assert_eq!(content(&load(&temp, Some(&before)), "/x").unwrap(), b"two");
}

#[test]
fn the_largest_stay_on_disk_when_memory_is_used_up() {
    let temp = folder(&[
        ("a", &[b'a'; 400]),
        ("b", &[b'b'; 500]),
        ("c", &[b'c'; 600]),
    ]);
    let with = |memory| StaticOptions { memory, ..OPTIONS };
    let statics = load_with(&temp, &with(1000), None);
    let is_copy = |statics: &Statics, path| statics.find(path).unwrap().loaded.plain.is_copy();
    assert!(is_copy(&statics, "/a") && is_copy(&statics, "/b") && !is_copy(&statics, "/c"));
    assert_eq!(content(&statics, "/c").unwrap(), [b'c'; 600]);
    let all = load_with(&temp, &with(2000), Some(&statics));
    assert!(is_copy(&all, "/c"), "there is room now");
    assert!(Arc::ptr_eq(prepared(&statics, "/a"), prepared(&all, "/a")));
}
