//! The control socket spoken by hand, so that even what no client would send can be sent.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// No answer takes longer; a test that waits for one that never comes fails by it.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// A frame of text that ends its message, and the bit that says its payload is masked.
const TEXT_FRAME: u8 = 0x81;
const MASKED: u8 = 0x80;

/// One HTTP connection, kept alive.
pub(super) struct Http(BufReader<UnixStream>);

/// One WebSocket connection.
pub(super) struct WebSocket(BufReader<UnixStream>);

impl Http {
    pub(super) fn connect(socket: &Path) -> Http {
        Http(connect(socket))
    }

    /// Posts a body to `/`, and returns the answer's status and body.
    pub(super) fn post(&mut self, body: &str) -> (u16, String) {
        let request = format!(
            "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        self.0.get_mut().write_all(request.as_bytes()).expect("the request is sent");
        let head = read_head(&mut self.0);
        let length = header(&head, "content-length").expect("an answer says how long it is");
        let mut body = vec![0; length.parse().expect("a length is a number")];
        self.0.read_exact(&mut body).expect("the whole answer comes");
        (status(&head), String::from_utf8(body).expect("an answer is UTF-8"))
    }
}

impl WebSocket {
    pub(super) fn connect(socket: &Path) -> WebSocket {
        let mut stream = connect(socket);
        let request = "GET / HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
                       sec-websocket-version: 13\r\nsec-websocket-key: AAECAwQFBgcICQoLDA0ODw==\r\n\r\n";
        stream.get_mut().write_all(request.as_bytes()).expect("the request is sent");
        assert_eq!(status(&read_head(&mut stream)), 101, "the connection becomes a WebSocket");
        WebSocket(stream)
    }

    /// Sends one short message.
    pub(super) fn send(&mut self, text: &str) {
        const MASK: [u8; 4] = [0x5A, 0x0F, 0xC3, 0x99];
        let mut frame = vec![TEXT_FRAME];
        match u8::try_from(text.len()) {
            Ok(length) if length < 126 => frame.push(MASKED | length),
            _ => {
                let length = u16::try_from(text.len()).expect("a short message");
                frame.push(MASKED | 126);
                frame.extend(length.to_be_bytes());
            }
        }
        frame.extend(MASK);
        frame.extend(text.bytes().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        self.0.get_mut().write_all(&frame).expect("the message is sent");
    }

    /// The next message of text; control frames are passed over.
    pub(super) fn receive(&mut self) -> String {
        loop {
            let [kind, length] = self.read();
            let length = match length {
                126 => u64::from(u16::from_be_bytes(self.read())),
                127 => u64::from_be_bytes(self.read()),
                short => u64::from(short),
            };
            let mut payload = vec![0; usize::try_from(length).expect("it fits into memory")];
            self.0.read_exact(&mut payload).expect("the whole message comes");
            match kind {
                TEXT_FRAME => return String::from_utf8(payload).expect("a message is UTF-8"),
                0x89 | 0x8A => {}
                other => panic!("a frame of kind {other:#x}: {}", String::from_utf8_lossy(&payload)),
            }
        }
    }

    fn read<const COUNT: usize>(&mut self) -> [u8; COUNT] {
        let mut bytes = [0; COUNT];
        self.0.read_exact(&mut bytes).expect("the connection stays open");
        bytes
    }
}

fn connect(socket: &Path) -> BufReader<UnixStream> {
    let stream = UnixStream::connect(socket).expect("the daemon listens");
    stream.set_read_timeout(Some(ANSWER_TIMEOUT)).expect("a timeout can be set");
    BufReader::new(stream)
}

/// The lines of an HTTP answer before its body.
fn read_head(stream: &mut BufReader<UnixStream>) -> Vec<String> {
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        let count = stream.read_line(&mut line).expect("an answer comes");
        assert!(count > 0, "the connection was closed after {head:?}");
        if line == "\r\n" {
            return head;
        }
        head.push(line.trim_end().to_owned());
    }
}

fn status(head: &[String]) -> u16 {
    let code = head.first().and_then(|line| line.split(' ').nth(1));
    code.and_then(|code| code.parse().ok()).expect("an HTTP status line")
}

fn header<'a>(head: &'a [String], name: &str) -> Option<&'a str> {
    let pairs = head.iter().filter_map(|line| line.split_once(':'));
    pairs.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next()
}
