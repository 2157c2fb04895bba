//! Frames: the same ones however the bytes come, in bounded memory.

use plugd_protocol::{Decoder, Frame};

/// Limits below, around and above the lengths of what is tried.
const LIMITS: [usize; 4] = [5, 60, 5_000, 70_000];

/// So much of an oversized line is kept at most.
const HEAD_MAX: usize = 4 * 1024;

/// What a decoder allocates beyond what the limit and a read ask for.
const SLACK: usize = 32 * 1024;

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// A frame on its own.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    Line(Vec<u8>),
    /// With the head that was kept.
    TooLong(Vec<u8>),
}

/// Checks a stream, whole and in pieces of a few sizes, under several limits.
pub fn decoder(stream: &[u8]) {
    // Any size will do, but each input has always the same.
    let odd = 1 + stream.iter().fold(0_usize, |sum, byte| (sum * 31 + usize::from(*byte)) % 97);
    for limit in LIMITS {
        let expected = by_the_book(stream, limit);
        same(&expected, &frames(stream.chunks(stream.len().max(1)), limit), limit);
        same(&expected, &frames(stream.chunks(odd), limit), limit);
        if stream.len() <= 2_048 {
            same(&expected, &frames(stream.chunks(1), limit), limit);
        }
    }
}

/// Checks a stream cut in two at every place there is.
pub fn decoder_at_every_cut(stream: &[u8]) {
    for limit in LIMITS {
        let expected = by_the_book(stream, limit);
        for cut in 0..=stream.len() {
            let (first, second) = stream.split_at(cut);
            same(&expected, &frames([first, second].into_iter(), limit), limit);
        }
    }
}

/// What the decoder makes of pieces; its memory is looked at after each.
fn frames<'a>(pieces: impl Iterator<Item = &'a [u8]>, limit: usize) -> Vec<Seen> {
    let mut decoder = Decoder::new(limit);
    let mut seen = Vec::new();
    for piece in pieces {
        decoder.push(piece);
        while let Some(frame) = decoder.next_frame() {
            seen.push(owned(&frame));
        }
        let capacity = decoder.room().capacity();
        let bound = 2 * (limit + piece.len()) + SLACK;
        assert!(capacity <= bound, "{capacity} bytes are held under a limit of {limit}");
    }
    while let Some(frame) = decoder.finish() {
        seen.push(owned(&frame));
    }
    seen
}

fn owned(frame: &Frame<'_>) -> Seen {
    match frame {
        Frame::Line(line) => Seen::Line(line.to_vec()),
        Frame::TooLong { head } => Seen::TooLong(head.to_vec()),
    }
}

/// The frames of a stream as the specification words them, without a thought of memory.
fn by_the_book(stream: &[u8], limit: usize) -> Vec<Seen> {
    let mut seen = Vec::new();
    let mut at_start = true;
    for line in stream.split(|byte| *byte == b'\n') {
        let line = if at_start { line.strip_prefix(BOM).unwrap_or(line) } else { line };
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let blank = line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'));
        if line.len() > limit {
            seen.push(Seen::TooLong(line.to_vec()));
        } else if blank {
            continue;
        } else {
            seen.push(Seen::Line(line.to_vec()));
        }
        at_start = false;
    }
    seen
}

#[track_caller]
fn same(expected: &[Seen], found: &[Seen], limit: usize) {
    assert_eq!(expected.len(), found.len(), "so many frames under a limit of {limit}: {found:?}");
    for pair in expected.iter().zip(found) {
        match pair {
            (Seen::Line(expected), Seen::Line(found)) => assert_eq!(expected, found),
            (Seen::TooLong(whole), Seen::TooLong(head)) => {
                assert!(whole.starts_with(head), "a head is the beginning of its line");
                assert!(head.len() >= whole.len().min(limit).min(HEAD_MAX), "a head is long enough");
                assert!(head.len() <= HEAD_MAX, "a head is short");
            }
            (expected, found) => panic!("{expected:?} came as {found:?} under a limit of {limit}"),
        }
    }
}
