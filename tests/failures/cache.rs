//! A cache on disk that is damaged, or cannot be used at all.

use super::child::{Folder, has_nvrtc, lines_with, play};
use std::fs;
use std::path::Path;

/// What is said about every kernel that is compiled.
const COMPILED: &str = "fuse compile: ";

/// What is said once about a folder that cannot be written to.
const NOT_KEPT: &str = "kernels are not kept between runs";

/// What becomes of an intact entry.
type Damage = fn(&[u8]) -> Vec<u8>;

fn run_in(folder: &str) -> String {
    play("run_kernels", &[("FUSE_CACHE_DIR", folder)])
}

#[test]
fn kernels_of_an_earlier_run_are_not_compiled_again() {
    if !has_nvrtc() {
        return;
    }
    let folder = Folder::new();
    assert_eq!(lines_with(&run_in(folder.path()), COMPILED), folder.files().len());
    let said = run_in(folder.path());
    assert_eq!(lines_with(&said, COMPILED), 0, "{said}");
}

#[test]
fn the_kernels_of_a_function_are_compiled_before_the_first_is_launched() {
    if !has_nvrtc() {
        return;
    }
    let said = run_in(Folder::new().path());
    let launches = |line: &str| line.starts_with("fuse launch: ") && line.contains(" grid ");
    let before = said.lines().take_while(|line| !launches(line));
    let compiled = before.filter(|line| line.starts_with(COMPILED)).count();
    assert!(compiled > 1 && compiled == lines_with(&said, COMPILED), "{said}");
}

#[test]
fn a_damaged_or_foreign_entry_is_compiled_again() {
    if !has_nvrtc() {
        return;
    }
    let folder = Folder::new();
    run_in(folder.path());
    let files = folder.files();
    let damages: [(&str, Damage); 5] = [
        ("a changed byte of the code", |good| flipped(good, good.len() / 2)),
        ("a changed byte of the header", |good| flipped(good, 9)),
        ("a file cut short", |good| good[..good.len() - 1].to_vec()),
        ("nothing", |_| vec![]),
        ("another file", |_| b"#!/bin/sh\necho not a cubin\n".to_vec()),
    ];
    for (what, damage) in damages {
        let good: Vec<Vec<u8>> = files.iter().map(|file| fs::read(file).expect("an entry")).collect();
        for (file, good) in files.iter().zip(&good) {
            fs::write(file, damage(good)).expect("the entry can be overwritten");
        }
        let said = run_in(folder.path());
        assert_eq!(lines_with(&said, "is damaged or foreign"), files.len(), "{what}:\n{said}");
        assert_eq!(lines_with(&said, COMPILED), files.len(), "{what}:\n{said}");
        let mended: Vec<Vec<u8>> = files.iter().map(|file| fs::read(file).expect("an entry")).collect();
        assert!(mended == good, "{what}: the entries are written anew");
    }
    // An intact entry under the name of another.
    if let [first, second, ..] = &files[..] {
        fs::copy(first, second).expect("the entry can be overwritten");
        let said = run_in(folder.path());
        assert_eq!(lines_with(&said, COMPILED), 1, "{said}");
    }
}

fn flipped(good: &[u8], at: usize) -> Vec<u8> {
    let mut bad = good.to_vec();
    bad[at] ^= 0x40;
    bad
}

#[test]
fn a_folder_that_does_not_exist_is_made() {
    if !has_nvrtc() {
        return;
    }
    let folder = Folder::new();
    let inside = format!("{}/not/yet", folder.path());
    let said = run_in(&inside);
    assert_eq!(lines_with(&said, NOT_KEPT), 0, "{said}");
    assert!(fs::read_dir(&inside).expect("the folder was made").count() > 0);
}

#[test]
fn a_folder_that_cannot_be_used_costs_one_line() {
    if !has_nvrtc() {
        return;
    }
    let folder = Folder::new();
    let file = format!("{}/file", folder.path());
    fs::write(&file, "in the way").expect("the folder is writable");
    let sealed = format!("{}/sealed", folder.path());
    fs::create_dir(&sealed).expect("the folder is writable");
    let mut unusable = vec![file.clone(), format!("{file}/below")];
    if seal(Path::new(&sealed)) {
        unusable.push(sealed.clone());
    }
    for path in unusable {
        let said = run_in(&path);
        assert_eq!(lines_with(&said, NOT_KEPT), 1, "{said}");
        assert!(lines_with(&said, COMPILED) > 1, "several kernels are compiled, and one line is said\n{said}");
        assert!(said.contains(&path), "{said}");
    }
}

/// Makes a folder read-only. `false` where that keeps nobody out, as it does not keep out the administrator.
fn seal(folder: &Path) -> bool {
    let mut permissions = fs::metadata(folder).expect("the folder is there").permissions();
    permissions.set_readonly(true);
    fs::set_permissions(folder, permissions).expect("the folder is ours");
    fs::write(folder.join("probe"), "").is_err()
}
