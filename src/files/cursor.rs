//! Reads and writes the fields of a record in order.

/// A place in the bytes of a record.
#[derive(Clone, Copy)]
pub struct Cursor<const BYTES: usize> {
    /// All bytes.
    pub bytes: [u8; BYTES],
    /// The place of the next field.
    pub at: usize,
}

impl<const BYTES: usize> Cursor<BYTES> {
    /// At the first field.
    pub fn new(bytes: [u8; BYTES]) -> Self {
        Cursor { bytes, at: 0 }
    }

    /// Writes the next field.
    pub fn put(&mut self, field: &[u8]) {
        self.bytes[self.at..self.at + field.len()].copy_from_slice(field);
        self.at += field.len();
    }

    /// Writes a text to a field of `longest` + 1 bytes. Cuts a longer text.
    pub fn put_text(&mut self, text: &str, longest: usize) {
        let start = self.at;
        let mut len = text.len().min(longest);
        while !text.is_char_boundary(len) {
            len -= 1;
        }
        self.put(&[len as u8]);
        self.put(&text.as_bytes()[..len]);
        self.at = start + 1 + longest;
    }

    /// Reads the next field.
    pub fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut field = [0; N];
        field.copy_from_slice(&self.bytes[self.at..self.at + N]);
        self.at += N;
        field
    }

    /// Reads a text from a field of `longest` + 1 bytes.
    pub fn take_text(&mut self, longest: usize) -> Option<String> {
        let [len] = self.take();
        let start = self.at;
        self.at += longest;
        let len = usize::from(len);
        if len > longest {
            return None;
        }
        String::from_utf8(self.bytes[start..start + len].to_vec()).ok()
    }
}
