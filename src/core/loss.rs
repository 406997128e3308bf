//! Why a leased page has ended.

/// Why a leased page has ended. The page has its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Loss {
    /// Another host has taken the line, above all that this page may have issued.
    Taken = 1,
    /// The store has lost data: the line is older than what it confirmed, or absent.
    Reverted,
    /// This host has ended it: it was released, lost its name, or another process took its line over.
    Released,
    /// This machine was restored from a snapshot. The original may hold the line, and go on.
    Restored,
}

impl Loss {
    /// The one with this number.
    pub fn of_number(number: u64) -> Option<Loss> {
        let all = [Loss::Taken, Loss::Reverted, Loss::Released, Loss::Restored];
        all.into_iter().find(|one| *one as u64 == number)
    }

    /// Whether another machine may issue the page's IDs, too. So what was made ahead is handed out no more: bookings, and the IDs in
    /// a ring.
    pub fn is_disputed(self) -> bool {
        matches!(self, Loss::Reverted | Loss::Restored)
    }
}
