//! The length that a log states, and files that are shorter.

use super::*;

/// A log with two commits: its bytes, and where each of them ends.
fn of_two_commits() -> (Vec<u8>, [u64; 2]) {
    let model = Model::default();
    let mut log = created(&model).unwrap();
    let ends = [1, 2].map(|value| {
        log.commit(|| [(b"a".to_vec(), Some(vec![value; 100]))], Vec::new).unwrap();
        log.lengths.whole
    });
    (model.disk().files[log.file.1].now.clone(), ends)
}

#[test]
fn each_commit_notes_its_length_in_the_older_mark() {
    let (bytes, ends) = of_two_commits();
    let noted = [4096, 8192].map(|mark| u64::from_le_bytes(bytes[mark + 8..][..8].try_into().unwrap()));
    assert_eq!(noted, ends);
}

#[test]
fn a_mark_of_an_older_file_hides_no_commit() {
    let (bytes, state) = good();
    for number in 0..2 {
        let (place, older) = mark(number, Lengths { snapshot: START, whole: START });
        let mut replaced = bytes.clone();
        replaced[usize::try_from(place).unwrap()..][..older.len()].copy_from_slice(&older);
        assert!(read(&replaced).unwrap() == state, "mark {number}");
    }
}

#[test]
fn a_file_shortened_while_it_is_read_is_damaged_and_one_that_cannot_be_read_is_not() {
    struct Broken;

    impl io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("broken"))
        }
    }

    let (bytes, [end, length]) = of_two_commits();
    let shortened = &bytes[..usize::try_from(end).unwrap() + 4];
    let path = Path::new("state.log");
    let read = |file: &mut dyn io::Read| replay(path, file, length, &mut |_, _| Ok(())).unwrap_err();
    assert!(matches!(read(&mut &*shortened), StateError::Damaged(_, at, _) if at == end));
    assert!(matches!(read(&mut io::Read::chain(shortened, Broken)), StateError::Io(..)));
}
