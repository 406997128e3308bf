//! Writes and reads the fields of a record in order, little-endian, by one list of the fields.

/// A position in the bytes of a record: the next field is written or read there.
pub struct Cursor<'a> {
    bytes: &'a mut [u8],
    at: usize,
    is_writing: bool,
}

/// A number in a record.
pub trait Number {
    /// Writes or reads the number.
    fn pass(&mut self, record: &mut Cursor);
}

macro_rules! numbers {
    ($($number:ty),*) => {
        $(impl Number for $number {
            fn pass(&mut self, record: &mut Cursor) {
                *self = <$number>::from_le_bytes(record.pass(self.to_le_bytes()));
            }
        })*
    };
}
numbers!(u8, u32, u64, i64, u128);

impl<'a> Cursor<'a> {
    /// Writes from this byte on.
    pub fn writing(bytes: &'a mut [u8], at: usize) -> Self {
        Cursor { bytes, at, is_writing: true }
    }

    /// Reads from this byte on.
    pub fn reading(bytes: &'a mut [u8], at: usize) -> Self {
        Cursor { bytes, at, is_writing: false }
    }

    /// Writes or reads the next field. Returns its bytes.
    pub fn pass<const N: usize>(&mut self, mut field: [u8; N]) -> [u8; N] {
        let place = &mut self.bytes[self.at..self.at + N];
        if self.is_writing {
            place.copy_from_slice(&field);
        } else {
            field.copy_from_slice(place);
        }
        self.at += N;
        field
    }

    /// Writes or reads numbers.
    pub fn numbers(&mut self, fields: &mut [&mut dyn Number]) {
        fields.iter_mut().for_each(|field| field.pass(self));
    }
}
